//! YARN's resource manager and node managers: containers given on heartbeats, in one queue or in two with shares.

mod hosts;
mod manager;
mod node;
mod options;
mod queues;

pub use manager::ResourceManager;
pub use node::ContainerNode;
pub use options::{Reclaiming, YarnOptions};
