//! The default scheduler of Kubernetes: one queue, no queues at nodes, and retries.

mod pending;
mod scheduler;

pub use pending::Retry;
pub use scheduler::Kubernetes;
