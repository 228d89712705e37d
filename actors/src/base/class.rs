//! The delivery class of a message.

/// The way in which a message travels. Each message kind has one class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Can be lost, duplicated and reordered: gossip, heartbeats, progress, probes.
    Datagram,
    /// Carries work or its result. Loss delays it; if the peer stays unreachable, it comes back to its sender as
    /// undelivered.
    Stream,
}
