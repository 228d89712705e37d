//! Eagle: a central scheduler for long jobs, and distributed ones for short jobs, which avoid nodes with long work.

mod central;
mod node;
mod policy;
mod scheduler;

pub(super) use central::LeastWait;
pub use policy::Eagle;
pub(super) use scheduler::Hybrid;
