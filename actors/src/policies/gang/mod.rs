//! Gang scheduling: all tasks of a job run in the same time slice, on distinct cores.

mod node;
mod scheduler;

pub use scheduler::Gang;
