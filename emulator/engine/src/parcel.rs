//! What one shard hands to another: a message on its way, or an observation.

use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::Note;
use volary_actors::message::Message;

/// A message that crosses from one shard to another, stamped by its sender: the receiver holds it until `due`
/// on the common clock, so that the emulated delay replaces the real path's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// When it was sent.
    pub sent: Time,
    /// When it is to be delivered: `sent` and the emulated delay.
    pub due: Time,
    /// Who sent it.
    pub from: ActorId,
    /// The sender's count of events: with `due` and `from` it orders deliveries.
    pub count: u32,
    /// To whom.
    pub to: ActorId,
    /// What it says.
    pub msg: Message,
    /// Whether it comes back to `from`, because `to` crashed before it arrived.
    pub returned: bool,
}

/// One entry of the note stream, as shards report it to whoever keeps the books.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Observation {
    /// When it was made.
    pub at: Time,
    /// What was seen.
    pub what: Seen,
}

/// What a shard observes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Seen {
    /// An actor noted something.
    Note(ActorId, Note),
    /// The node of a core crashed, and what the core ran is lost.
    Crashed(u32),
}
