//! Messages between shards, and observations of a shard.

use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, JobId, Time};
use volary_actors::machine::Note;
use volary_actors::message::Message;

/// A message from one shard to another, with the time stamps of its sender. The receiver holds it until `due` on the
/// common clock, so that the emulated delay replaces the delay of the real path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// Time of sending.
    pub sent: Time,
    /// Due time: `sent` plus the emulated delay.
    pub due: Time,
    /// The actor that sent the message.
    pub from: ActorId,
    /// The sender's count of events; orders deliveries together with `due` and `from`.
    pub count: u32,
    /// The actor that receives the message.
    pub to: ActorId,
    /// The message itself.
    pub msg: Message,
    /// Whether the message is returned to `from` because `to` crashed before it arrived.
    pub returned: bool,
}

/// One entry of the note stream, as a shard reports it to the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Observation {
    /// Time of the observation.
    pub at: Time,
    /// The kind of observation.
    pub what: Seen,
}

/// The kinds of observations of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Seen {
    /// A note of an actor.
    Note(ActorId, Note),
    /// The node of a core crashed, and the copy on the core is lost.
    Crashed(u32),
    /// An actor handles a message that the timeline shows.
    Delivered(Delivered),
}

/// A message that crossed the emulated network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delivered {
    /// Time of sending, to the microsecond: the due time of the message minus its delay. If the receiver was paused at
    /// the due time, the end of the pause minus the delay.
    pub sent: Time,
    /// The actor that sent the message.
    pub from: ActorId,
    /// The actor that handles the message.
    pub to: ActorId,
    /// Kind of the message, an index into [`KINDS`](volary_actors::message::KINDS).
    pub kind: u8,
    /// The job that the message concerns, if any.
    pub job: Option<JobId>,
}
