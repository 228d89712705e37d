//! The actors and building blocks that policies share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`client`] | job source: submits, resubmits when a scheduler dies |
//! | [`worker`] | one core |
//! | [`node`] | the standard node manager: cores and a queue of rows and reservations |
//! | [`reporter`] | the same, reporting how far its copies are |
//! | [`queue`] | what waits at a node, and which of it is next |
//! | [`early`] | a scheduler that binds each task to a node at once |
//! | [`late`] | a scheduler that keeps places on nodes and binds a task to the one that asks first |
//! | [`central`] | a scheduler with one queue that knows which cores are free, and may back up stragglers |
//! | [`redundant`] | a scheduler that runs groups of tasks on groups of servers, every task on each |
//! | [`members`] | the nodes believed alive: picking and sampling |
//! | [`ahead`] | what a central scheduler reckons is ahead of a task at every node |
//! | [`bits`] | which nodes have long work |
//! | [`jobs`] | open jobs and which of their tasks are done |
//! | [`waits`] | the work expected at every node, the least at hand |
//! | [`returned`](returned()) | what a scheduler does with a message that comes back |

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a machine has a use for a few messages; the rest are counted as unexpected"
)]

pub mod ahead;
pub mod bits;
pub mod central;
pub mod client;
pub mod early;
pub mod jobs;
pub mod late;
pub mod members;
pub mod node;
pub mod queue;
pub mod redundant;
pub mod reporter;
mod returned;
pub mod waits;
pub mod worker;

pub use client::Client;
pub use node::Node;
pub use reporter::Reporter;
pub(crate) use returned::AVOIDED;
pub use returned::returned;
pub use worker::Worker;
