//! Time, ids and randomness: the part of this crate that `netem` may use.

pub mod id;
pub mod law;
pub mod rng;
pub mod score;
pub mod time;

pub use id::{ActorId, CopyId, Endpoint, JobId, TaskId};
pub use law::Law;
pub use rng::{Address, Draw, Purpose, Rng};
pub use score::Score;
pub use time::{Span, Time};

/// How a message travels. Each message kind has one class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Can be lost, duplicated and reordered: gossip, heartbeats, progress, probes.
    Datagram,
    /// Carries work or its result. Loss delays it; if the peer stays unreachable, it comes back to its sender as
    /// undelivered.
    Stream,
}
