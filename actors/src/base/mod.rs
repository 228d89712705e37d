//! Time, ids and randomness: the part of this crate that `netem` may use.

pub mod class;
pub mod feature;
pub mod id;
pub mod law;
mod parameters;
pub mod rng;
pub mod score;
pub mod time;

pub use class::Class;
pub use feature::Feature;
pub use id::{ATTEMPTS_PER_ROUND, ActorId, CopyId, Endpoint, JobId, TaskId, is_same_submission};
pub use law::Law;
pub use parameters::{Parameters, parameters, within};
pub use rng::{Address, Draw, Purpose, Rng};
pub use score::Score;
pub use time::{Span, Time};
