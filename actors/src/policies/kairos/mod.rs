//! Kairos: a central scheduler deals tasks to nodes, which serve what has attained least.

mod node;
mod nodes;
mod policy;
mod scheduler;

pub use policy::{Kairos, KairosOrder, KairosPick};
