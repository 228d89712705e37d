//! A central scheduler: one FIFO queue of tasks, and the rule by which stragglers are backed up.

pub mod attempts;
#[cfg(test)]
pub(crate) mod fixture;
pub mod rule;
mod scheduler;

pub use self::attempts::{Attempt, Attempts};
pub use self::rule::{Action, Cluster, JobView, NoBackups, Rule};
pub use self::scheduler::CentralScheduler;
