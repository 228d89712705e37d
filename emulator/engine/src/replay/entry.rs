//! Entries of a log of inputs.

use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::Input;

/// An event on a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// The time. In a file: since the previous entry, or since zero for the first entry of a frame.
    pub at: Time,
    /// The event.
    pub what: LogEvent,
}

/// The kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LogEvent {
    /// An actor processed an input.
    Step {
        /// The actor.
        who: ActorId,
        /// The input.
        input: Input,
        /// The digest of the effects.
        effects: Digest,
    },
    /// The node of a core crashed.
    Crashed(u32),
    /// An endpoint restarted without state, and a node's workers with it.
    Restarted {
        /// The endpoint.
        who: ActorId,
        /// Number of its crashes so far.
        epoch: u32,
    },
    /// The shard ended normally; nothing follows.
    End,
}

/// The digest of the effects of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest {
    /// Number of effects.
    pub count: u32,
    /// CRC-32 of their encoding.
    pub crc: [u8; 4],
}
