//! YARN's resource manager and node managers: containers given on heartbeats, in one queue or in two with shares.

mod manager;
mod node;

pub use manager::ResourceManager;
pub use manager::{Reclaiming, YarnOptions};
pub use node::ContainerNode;
