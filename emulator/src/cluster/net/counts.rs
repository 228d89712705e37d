//! What is counted of a link.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the link's start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkStats {
    /// Stream parcels taken for sending.
    pub stream_sent: u64,
    /// Datagram parcels handed to the network.
    pub datagram_sent: u64,
    /// Datagram parcels dropped here, because the network did not take them fast enough.
    pub datagram_dropped: u64,
    /// Parcels received, either way.
    pub received: u64,
    /// Datagram parcels of the peer that did not come so far, though later ones did.
    pub datagram_missing: u64,
    /// Datagrams that came again, and were not delivered again.
    pub datagrams_repeated: u64,
}

/// [`LinkStats`] as the parts of a link keep them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) stream_sent: AtomicU64,
    pub(super) datagram_sent: AtomicU64,
    pub(super) datagram_dropped: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) datagram_missing: AtomicU64,
    pub(super) datagrams_repeated: AtomicU64,
}

impl Counts {
    pub(super) fn read(&self) -> LinkStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LinkStats {
            stream_sent: get(&self.stream_sent),
            datagram_sent: get(&self.datagram_sent),
            datagram_dropped: get(&self.datagram_dropped),
            received: get(&self.received),
            datagram_missing: get(&self.datagram_missing),
            datagrams_repeated: get(&self.datagrams_repeated),
        }
    }
}
