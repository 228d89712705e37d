//! The delivery class of a message.

use serde::Deserialize;

/// The way in which a message travels. Each message kind has one class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A message that can be lost, duplicated and reordered: gossip, heartbeats, progress, probes.
    Datagram,
    /// A message that carries work or its result. Loss delays the message. If the peer stays unreachable, the message
    /// returns to its sender as undelivered.
    Stream,
}
