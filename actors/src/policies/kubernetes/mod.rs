//! The default scheduler of Kubernetes: one queue, no queues at nodes, and retries.

mod nodes;
mod pending;
mod policy;
mod scheduler;

pub use pending::Retry;
pub use policy::Kubernetes;
