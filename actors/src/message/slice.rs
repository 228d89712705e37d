//! Scheduler ↔ node: synchronised time slices of gang scheduling, and suspension of a running copy, which keeps its
//! progress, and its resumption.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{CopyId, JobId};

/// The work of a core in a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SliceWork {
    /// It rests.
    Rest,
    /// It runs a copy that it was not ordered to run before.
    Begin(CopyId),
    /// It runs a copy that it was ordered to run before. A node that has restarted since has lost it.
    GoOn(CopyId),
}

impl SliceWork {
    /// The copy that runs.
    pub const fn copy(self) -> Option<CopyId> {
        match self {
            Self::Rest => None,
            Self::Begin(copy) | Self::GoOn(copy) => Some(copy),
        }
    }
}

/// Orders of a gang scheduler to a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Slice {
    /// Scheduler → node: the slice changes. Suspend what this core runs and run that copy
    /// instead, resuming it if it was suspended here.
    Switch {
        /// The number of the core within the node.
        core: u16,
        /// Its work in this slice.
        work: SliceWork,
        /// Number of restarts of the scheduler.
        epoch: u16,
        /// The number of this order to the core in the scheduler's epoch. A core ignores orders that are older than the
        /// last one, by epoch and then by number.
        order: u32,
        /// The first open job: the scheduler orders no copy of earlier ones any more.
        open: JobId,
    },
}

protocol! {
    Slice in run;
    Switch = "gang.switch", Stream, Scheduler -> Node: Self::Switch { core, work, .. }
        if matches!(run.to, Role::Node(node) if u32::from(core) < run.layout.cores(node))
            && work.copy().is_none_or(|copy| run.has_task(copy.task)) => work.copy().map(|copy| copy.task.job),
}

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
