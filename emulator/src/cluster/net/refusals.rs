//! Who was turned away, and why: counted, because anyone can cause it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use thiserror::Error;

use super::connection::End;
use super::hello::HelloError;
use super::plain::plain;
use crate::guard::guard;

/// How many are remembered in words.
const RECENT: usize = 16;

/// Peers that were turned away since the socket was opened.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Refusals {
    /// Because there were too many handshakes with its source, or connections of its name.
    pub full: u64,
    /// Because the handshake failed: no certificate, or not one of this run's authority, or expired.
    pub handshake: u64,
    /// Because the peer is not on the list.
    pub unlisted: u64,
    /// Because what it said first was not a proper hello.
    pub hello: u64,
    /// Because it had been let in and then sent what cannot be.
    pub protocol: u64,
    /// The last few in words, oldest first.
    pub recent: VecDeque<String>,
}

/// Why somebody was turned away.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error("too many at once")]
    Full,
    #[error("{0}")]
    Handshake(End),
    #[error("{0} is not on this run's list")]
    Unlisted(String),
    #[error("{0}")]
    Hello(#[from] HelloError),
    #[error("{0}")]
    Protocol(End),
}

/// The refusals of a socket, shared with its connections.
#[derive(Clone, Default, Debug)]
pub(super) struct Blotter(Arc<Mutex<Refusals>>);

impl Blotter {
    /// Takes note of one.
    pub(super) fn note(&self, address: SocketAddr, refusal: &Refusal) {
        let mut refusals = guard(&self.0);
        *match refusal {
            Refusal::Full => &mut refusals.full,
            Refusal::Handshake(_) => &mut refusals.handshake,
            Refusal::Unlisted(_) => &mut refusals.unlisted,
            Refusal::Hello(_) => &mut refusals.hello,
            Refusal::Protocol(_) => &mut refusals.protocol,
        } += 1;
        let words = plain(&format!("refused {address}: {refusal}"));
        tracing::debug!("{words}"); // shown when asked for
        if refusals.recent.len() == RECENT {
            refusals.recent.pop_front();
        }
        refusals.recent.push_back(words);
    }

    /// What there is so far.
    pub(super) fn read(&self) -> Refusals {
        guard(&self.0).clone()
    }
}
