//! The actors and building blocks that policies share.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | job source: submits jobs, again after a scheduler's crash; job controller if requests are limited |
//! | [`worker`] | one core |
//! | [`node`] | the standard node manager: cores, and a queue of rows and reservations |
//! | [`node_queue`] | the queue of a node and its order |
//! | [`dispatcher`] | the scheduler around a policy's rule: attempts, crashes, undeliverable messages |
//! | [`early_binding`] | a scheduler that binds each task to a node at once |
//! | [`late_binding`] | a rule of the dispatcher: nodes hold reservations, and a task goes to the node that claims first |
//! | [`speculation`] | a scheduler that may launch further copies of a task, on free cores or random nodes |
//! | [`replication`] | a scheduler that runs every task of a group on several servers |
//! | [`las`] | the cores of a node and its suspended copies, least attained service first |
//! | [`gossip`] | a member of a group that spreads updates, and its source |
//! | [`detector`] | a member of a group that detects failures |
//! | [`heartbeats`] | the times of a node's heartbeats |
//! | [`planning`] | a central scheduler that decides in cycles which jobs run, all tasks of a job together |
//! | [`task_queue`] | a central queue of tasks |
//! | [`ranked_nodes`] | a central scheduler's nodes by a policy's rank, with the copies of each |
//! | [`membership`] | the nodes believed alive, with picks and samples |
//! | [`backlog`] | a central scheduler's estimate of the work ahead of a new task at every node |
//! | [`partitions`] | partitions of nodes, for long tasks and for short tasks only; Eagle's bitmap of long work |
//! | [`job_table`] | open jobs and their finished tasks |
//! | [`min_wait_index`] | the work expected at every node, with a fast query of the minimum |
//! | [`yarn`] | a resource manager that gives containers on heartbeats, and its nodes |
//! | [`resend`](resend()) | a scheduler's reaction to a message that could not be delivered |

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a machine handles a few messages; the others count as unexpected, or a comment says why they cannot occur"
)]

pub mod backlog;
pub mod client;
pub mod detector;
pub mod dispatcher;
pub mod early_binding;
pub mod gossip;
pub mod heartbeats;
pub mod job_table;
pub mod las;
pub mod late_binding;
pub mod membership;
pub mod min_wait_index;
pub mod node;
pub mod node_queue;
pub mod partitions;
pub mod planning;
pub mod ranked_nodes;
pub mod replication;
mod resend;
pub mod speculation;
pub mod task_queue;
pub mod worker;
pub mod yarn;

pub use client::Client;
pub use node::NodeManager;
pub use resend::{LONGEST_WAIT, RETRY_AFTER, back_off, resend};
pub use worker::Worker;
