//! Peacock: probes that rotate on a ring of workers until they can be served in time.

mod config;
mod node;
mod scheduler;

pub use config::{Peacock, PeacockForm, PeacockWait};
