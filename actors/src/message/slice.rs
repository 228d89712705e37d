//! Scheduler ↔ node: synchronised time slices of gang scheduling. Also the suspension of a running copy, which keeps
//! its progress, and its resumption.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{CopyId, JobId};

/// The work of a core in a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SliceWork {
    /// The core runs no copy in this slice.
    Rest,
    /// The core runs a copy that it was not ordered to run before.
    Begin(CopyId),
    /// The core runs a copy that it was ordered to run before. A node that has restarted since then has lost the copy.
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
    /// Scheduler → node: the slice changes. The core suspends its copy and runs the copy of `work` instead, from where
    /// it stopped if it was suspended on this core.
    Switch {
        /// The number of the core within the node.
        core: u16,
        /// The core's work in this slice.
        work: SliceWork,
        /// Number of restarts of the scheduler.
        epoch: u16,
        /// The number of this order to the core in the scheduler's epoch. A core ignores orders that are older than the
        /// last one, by epoch and then by number.
        order: u32,
        /// The first open job: the scheduler orders no copies of earlier jobs any more.
        open: JobId,
    },
}

protocol! {
    Slice in run;
    Switch = "gang.switch", Stream, 36, Scheduler -> Node: Self::Switch { core, work, .. }
        if matches!(run.to, Role::Node(node) if u32::from(core) < run.layout.cores(node))
            && work.copy().is_none_or(|copy| run.has_task(copy.task)) => work.copy().map(|copy| copy.task.job),
}

/// Orders about a copy. They can overtake each other and the copy. `turn` numbers the orders about a copy from one on.
/// A node ignores orders that are older than the last one, and keeps orders about a copy that has not arrived.
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

impl Preemption {
    /// The copy of the order.
    pub const fn copy(self) -> CopyId {
        let (Self::Suspend { copy, .. } | Self::Resume { copy, .. }) = self;
        copy
    }
}

/// A copy that its scheduler suspends and resumes in turn while the copy is at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SuspendableCopy {
    /// The copy.
    pub copy: CopyId,
    /// Number of orders so far; the copy is suspended while this number is odd.
    turn: u32,
}

impl SuspendableCopy {
    /// A copy that was launched.
    pub const fn new(copy: CopyId) -> Self {
        Self { copy, turn: 0 }
    }

    /// Whether the copy is suspended.
    pub const fn is_suspended(self) -> bool {
        self.turn % 2 == 1
    }

    /// Suspends the copy, or resumes it; returns the order.
    pub const fn switch(&mut self) -> Preemption {
        self.turn += 1;
        self.newest()
    }

    /// The newest order about the copy.
    pub const fn newest(self) -> Preemption {
        let Self { copy, turn } = self;
        if self.is_suspended() {
            Preemption::Suspend { copy, turn }
        } else {
            Preemption::Resume { copy, turn }
        }
    }
}

protocol! {
    Preemption in run;
    Suspend = "preempt.suspend", Stream, 24, Scheduler -> Node:
        Self::Suspend { copy, .. } if run.has_task(copy.task) => copy.task.job,
    Resume = "preempt.resume", Stream, 24, Scheduler -> Node:
        Self::Resume { copy, .. } if run.has_task(copy.task) => copy.task.job,
}
