//! Speculative execution: the rule by which tasks get further copies, and the binding by which copies get nodes.

pub mod binding;
#[cfg(test)]
pub(crate) mod fixture;
mod queue;
mod reservations;
pub mod rule;
mod scheduler;

pub use self::binding::CopyBinding;
pub use self::queue::{FreeCores, RandomNodes};
pub use self::reservations::Reservations;
pub use self::rule::{Action, Cluster, JobView, NoBackups, Rule};
pub use self::rule::{Attempt, Attempts};
pub use self::scheduler::{SpeculatingScheduler, speculate};
