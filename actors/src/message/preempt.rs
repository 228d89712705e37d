//! Scheduler → node: suspension of a running copy, which keeps its progress, and its resumption.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::CopyId;

/// Orders about a copy. They can overtake each other and the copy: `turn` numbers the orders about a copy from one on,
/// and a node ignores those that are older than the last one, and keeps those about a copy that has not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Preemption {
    /// Take the copy off its core.
    Suspend {
        /// The copy.
        copy: CopyId,
        /// The number of this order.
        turn: u32,
    },
    /// Give the copy a core again.
    Resume {
        /// The copy.
        copy: CopyId,
        /// The number of this order.
        turn: u32,
    },
}

protocol! {
    Preemption in run;
    Suspend = "preempt.suspend", Stream, Scheduler -> Node:
        Self::Suspend { copy, .. } if run.has_task(copy.task) => copy.task.job,
    Resume = "preempt.resume", Stream, Scheduler -> Node:
        Self::Resume { copy, .. } if run.has_task(copy.task) => copy.task.job,
}
