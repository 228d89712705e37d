//! Eagle: a central scheduler for long jobs, and distributed ones for short jobs, which avoid nodes with long work.

mod node;
mod policy;
mod scheduler;

pub use policy::Eagle;
pub(super) use scheduler::{Hybrid, LeastWait};
