//! Time, ids and randomness: the part of this crate that `netem` may use.

pub mod amount;
pub mod class;
pub mod core_set;
pub mod distribution;
pub mod feature;
pub mod id;
mod parameters;
pub mod rng;
pub mod score;
pub mod time;

pub use amount::Amount;
pub use class::Class;
pub use core_set::CoreSet;
pub use distribution::DistributionSpec;
pub use feature::Feature;
pub use id::{ATTEMPTS_PER_ROUND, ActorId, CopyId, Endpoint, JobId, TaskId, is_same_submission};
pub use parameters::{Parameters, check_period, parameters, within};
pub use rng::{Address, Draw, Purpose, Rng};
pub use score::Score;
pub use time::{Span, Time};
