//! Kairos: a central scheduler deals tasks to nodes, which serve what has attained least.

mod config;
mod node;
mod scheduler;

pub use config::{Kairos, KairosPass, KairosPick};
