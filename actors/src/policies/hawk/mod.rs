//! Hawk: a central scheduler for long jobs, distributed ones for short jobs, and idle nodes that steal.

mod node;
mod policy;

pub use policy::Hawk;
