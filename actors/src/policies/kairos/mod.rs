//! Kairos: a central scheduler deals tasks to nodes, which run the copies with the least attained service.

mod config;
mod node;
mod scheduler;

pub use config::{Kairos, KairosPass, KairosPick};
