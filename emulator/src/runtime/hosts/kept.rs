//! What hosts send that is only to be kept.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::logs::Logs;
use crate::record::inputs::{self, Relay};

/// Keeps hosts' logs, and their inputs while a unit that logs them is run. Clones keep in the same place.
#[derive(Clone, Default, Debug)]
pub(super) struct Kept {
    logs: Logs,
    /// Where inputs go, by shard.
    relays: Arc<Mutex<Vec<Relay>>>,
}

impl Kept {
    /// Adds a host.
    pub(super) fn add(&self, host: &str) {
        self.logs.add(host);
    }

    /// Keeps logs in a folder from now on, and what they have said so far.
    pub(super) fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        self.logs.keep_in(folder)
    }

    /// A unit begins whose inputs are logged, if they are.
    pub(super) fn begin(&self, log: Option<&inputs::Unit>, hosts: usize) {
        let relay = |log: &inputs::Unit| (0..hosts).map(|i| log.relay(i as u16, hosts as u16)).collect();
        *self.relays() = log.map(relay).unwrap_or_default();
    }

    /// It is over: what still comes of it comes too late, and the log can be closed.
    pub(super) fn end(&self) {
        self.relays().clear();
    }

    /// Lines of a host's log.
    pub(super) fn log(&self, host: usize, text: &str) {
        self.logs.write(host, text);
    }

    /// A frame of a host's inputs. While the disk is behind, the host waits, and no other one does.
    pub(super) fn inputs(&self, host: usize, frame: Vec<u8>) {
        let relay = self.relays().get(host).cloned();
        if let Some(relay) = relay
            && !tokio::task::block_in_place(|| relay.put(frame))
        {
            tracing::warn!("host {host} sends inputs in frames that are too large: they are not kept");
        }
    }

    fn relays(&self) -> MutexGuard<'_, Vec<Relay>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
