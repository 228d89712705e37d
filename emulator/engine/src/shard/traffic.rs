//! What a shard counts of messages.

use volary_actors::message::KINDS;

/// Messages sent, by kind; what became of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Sent over the network, by [`KINDS`].
    pub by_kind: [u64; KINDS.len()],
    /// Of these, repairs of losses.
    pub recovery: u64,
    /// Datagrams lost and streams given back.
    pub dropped: u64,
    /// Transmissions that streams repeated.
    pub retransmissions: u64,
}
