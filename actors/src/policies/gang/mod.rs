//! Gang scheduling: all tasks of a job run in the same time slice, on distinct cores.

mod matrix;
mod node;
mod policy;
mod scheduler;

pub use policy::Gang;
