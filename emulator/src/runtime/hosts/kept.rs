//! What hosts send that is only to be kept.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::logs::Logs;
use crate::record::inputs::{self, Relay};

/// Keeps hosts' logs, and their inputs while a unit that logs them is run. Clones keep in the same place.
#[derive(Clone, Default, Debug)]
pub(super) struct Kept {
    logs: Logs,
    inputs: Arc<Mutex<Inputs>>,
}

#[derive(Default, Debug)]
struct Inputs {
    /// Names of the hosts, by shard.
    hosts: Vec<String>,
    /// Where their inputs go while a unit that logs them is run.
    relays: Vec<Relay>,
    /// Hosts of whose frames some were not kept, as the user knows.
    told: BTreeSet<usize>,
}

impl Kept {
    /// Adds a host.
    pub(super) fn add(&self, host: &str) {
        self.logs.add(host);
        self.shared().hosts.push(host.to_owned());
    }

    /// Keeps logs in a folder from now on, and what they have said so far.
    pub(super) fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        self.logs.keep_in(folder)
    }

    /// A unit begins whose inputs are logged, if they are.
    pub(super) fn begin(&self, log: Option<&inputs::Unit>, hosts: usize) {
        let relay = |log: &inputs::Unit| (0..hosts).map(|i| log.relay(i as u16, hosts as u16)).collect();
        let relays = log.map(relay).unwrap_or_default();
        self.shared().relays = relays;
    }

    /// It is over: what still comes of it comes too late, and the log can be closed.
    pub(super) fn end(&self) {
        self.shared().relays.clear();
    }

    /// Lines of a host's log. The disk may take its time, and the network does not wait for it.
    pub(super) fn log(&self, host: usize, text: &str) {
        tokio::task::block_in_place(|| self.logs.write(host, text));
    }

    /// A frame of a host's inputs. While the disk is behind, the host waits, and no other one does.
    pub(super) fn inputs(&self, host: usize, frame: Vec<u8>) {
        let relay = self.shared().relays.get(host).cloned();
        let lost = match relay {
            None => "while no unit that logs them is run",
            Some(relay) if tokio::task::block_in_place(|| relay.put(frame)) => return,
            Some(_) => "in frames that are too large",
        };
        self.warn(host, lost);
    }

    /// Tells of frames that are not kept, once a host: it may go on as fast as it can.
    fn warn(&self, host: usize, why: &str) {
        let mut inputs = self.shared();
        if inputs.told.insert(host) {
            let name = inputs.hosts.get(host).map_or("", String::as_str);
            tracing::warn!(
                "host {name} sends inputs {why}: they are not kept, and the log of its run has a gap"
            );
        }
    }

    fn shared(&self) -> MutexGuard<'_, Inputs> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::inputs::{FILE, Log, Section, Sink, What};
    use volary_actors::base::Time;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn frames_are_kept_from_the_beginning_of_a_unit_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let sink = Sink::create(&path, &"the experiment").unwrap();
        let unit = sink.unit("aa", "sparrow", 5);
        let (mut section, carried) = Section::carried();
        (0..3).for_each(|n| section.put(Time(n * 2_000_000_000), What::Crashed(n as u32)));
        drop(section);
        let frames: Vec<_> = std::iter::from_fn(|| carried.next()).collect();
        let kept = Kept::default();
        kept.add("h1");
        kept.inputs(0, frames[0].clone());
        kept.begin(Some(&unit), 1);
        frames.iter().for_each(|frame| kept.inputs(0, frame.clone()));
        kept.end();
        kept.inputs(0, frames[2].clone());
        assert_eq!(kept.shared().told.len(), 1, "told of once");
        drop(unit);
        sink.close().unwrap();
        let mut log = Log::new(std::fs::File::open(&path).unwrap()).unwrap();
        let mut cursor = log.found()[0].cursor();
        let entries: Vec<_> = std::iter::from_fn(|| log.next(&mut cursor).unwrap()).collect();
        let cores: Vec<_> = entries.iter().map(|entry| entry.what).collect();
        assert_eq!(cores, [0, 1, 2].map(What::Crashed));
    }
}
