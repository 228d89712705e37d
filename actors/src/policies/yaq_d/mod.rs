//! Yaq-d: schedulers that see nodes as of their last heartbeats.

mod node;
mod policy;
mod snapshot;

pub use policy::YaqD;
