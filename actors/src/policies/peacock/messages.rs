//! The messages of Peacock: probes that carry the id of their task along a ring of nodes, and the cluster-wide state. A
//! part of `crate::message`.

use serde::{Deserialize, Serialize};

use crate::base::{Span, TaskId, Time};
use crate::message::protocol::protocol;

/// A probe on the ring: scheduler → node, or node → its successor. It is a variant of `Message` and not of [`Ring`],
/// because this keeps messages short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RingProbe {
    /// The probe's task.
    pub task: TaskId,
    /// Number of the scheduler that knows the task.
    pub scheduler: u16,
    /// Queue limit q at the time of submission.
    pub limit: u8,
    /// Number of nodes that passed the probe on.
    pub hops: u16,
    /// Whether the probe repairs a loss; its further hops and its claim are then repairs, too.
    pub repair: bool,
    /// Longest time since the job's arrival for which the probe may wait before it stops moving: the mean load w̄ at
    /// the time of submission.
    pub max_wait: Span,
}

/// Cluster-wide state, sent along the ring and between schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ring {
    /// Scheduler → node, node → successor: cluster-wide state, newest wins.
    State {
        /// Queue limit q: maximum number of waiting probes that a node should hold.
        limit: u32,
        /// Mean load w̄: maximum work that a node should hold.
        load: Span,
        /// Time at which the scheduler computed the state.
        at: Time,
    },
    /// Scheduler → scheduler: the unfinished work of the sender's jobs. Reports are sums, not changes, so a lost or
    /// duplicated report does no lasting harm; the newest wins.
    Load {
        /// Number of the report: the sender's epoch in the upper half, its count below.
        report: u64,
        /// A: number of unfinished tasks.
        active: u32,
        /// Ω: estimated work of the unfinished tasks.
        work: Span,
    },
}

protocol! {
    RingProbe in run;
    Probe = "ring.visit", Stream, 26, Scheduler -> Node | Node -> Node:
        Self { task, scheduler, .. } if run.has_scheduler(u32::from(scheduler)) && run.has_task(task)
            => task.job,
}

protocol! {
    Ring in run;
    State = "ring.state", Datagram, 28, Scheduler -> Node | Node -> Node: Self::State { .. },
    Load = "ring.load", Datagram, 28, Scheduler -> Scheduler: Self::Load { .. },
}
