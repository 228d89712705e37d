//! Peacock's ring: probes that carry their task's identity and move from node to node, and the cluster-wide
//! state that rides along.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{Span, TaskId, Time};

/// A probe on the ring: scheduler → node, or node → its successor. It is a variant of `Message` and not of [`Ring`],
/// which keeps messages short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RingProbe {
    /// Its task.
    pub task: TaskId,
    /// The scheduler that knows the task: its number.
    pub scheduler: u16,
    /// Queue limit q when it was submitted.
    pub limit: u8,
    /// Nodes that passed it on.
    pub hops: u16,
    /// Whether it repairs a loss: then so do its further hops and its claim.
    pub repair: bool,
    /// Time from its job's arrival for which it may wait before it stops moving: the mean load w̄ when it was
    /// submitted.
    pub max_wait: Span,
}

/// Cluster-wide state, sent along the ring and between schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ring {
    /// Scheduler → node, node → successor: cluster-wide state, newest wins.
    State {
        /// Queue limit q: waiting probes a node should hold at most.
        limit: u32,
        /// Mean load w̄: work a node should hold at most.
        load: Span,
        /// When the scheduler computed it.
        at: Time,
    },
    /// Scheduler → scheduler: the unfinished work of the sender's jobs. Reports are sums, not changes, so that a lost
    /// or duplicated one does no lasting harm; the newest wins.
    Load {
        /// Number of the report: the sender's epoch in the upper half, its count below.
        report: u64,
        /// Unfinished tasks, A.
        active: u32,
        /// Their estimated work, Ω.
        work: Span,
    },
}

protocol! {
    RingProbe in run;
    Probe = "ring.visit", Stream, Scheduler -> Node | Node -> Node:
        Self { task, scheduler, .. } if run.has_scheduler(u32::from(scheduler)) && run.has_task(task)
            => task.job,
}

protocol! {
    Ring in run;
    State = "ring.state", Datagram, Scheduler -> Node | Node -> Node: Self::State { .. },
    Load = "ring.load", Datagram, Scheduler -> Scheduler: Self::Load { .. },
}
