//! Scenarios, without the file they were written in: machines, workload, service, network, interference, policy.

mod cluster;
mod error;
mod point;
mod policy;
mod room;
mod schedule;
mod section;

pub use cluster::{Cluster, ClusterError, Machines, RACK};
pub use error::KeyError;
pub use point::{Point, Resolved};
pub use policy::PolicyEntry;
pub use room::{Needs, NodeSharing, Room};
pub use section::{ClusterSection, NodeKind};
