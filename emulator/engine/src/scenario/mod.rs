//! Scenarios, without the file they were written in: machines, workload, service, network, interference, policy.

mod cluster;
mod point;
pub mod quiet;
mod section;

pub use cluster::{Cluster, ClusterError, Machines, RACK};
pub use point::{Point, PolicyEntry, Resolved};
pub use section::{ClusterSection, KeyError, Needs, NodeKind, NodeSharing, Room};
