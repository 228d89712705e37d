//! Dense ids: tables are vectors indexed by them, never maps.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An actor's address, dense within a run; [`Layout`](crate::layout::Layout) gives its role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ActorId(pub u32);

/// A place on the emulated network: a node, or the frontend on which a scheduler runs. Actors of one endpoint
/// exchange messages without network delay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Endpoint(pub u32);

/// A job, numbered by arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// A task of a job, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskId {
    /// The job of the task.
    pub job: JobId,
    /// Index of the task within its job.
    pub index: u32,
}

/// One execution of a task on one core. `attempt` distinguishes the copies of a task. It is also part of the address of
/// the copy's work, so attempt 0 of a task needs the same work under every policy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CopyId {
    /// The task of which this is a copy.
    pub task: TaskId,
    /// Attempt number of the copy, unique within the task.
    pub attempt: u32,
}

/// Number of attempts reserved for one submission of a job. A resubmission starts at the next multiple, so attempts of
/// a crashed scheduler are never reused. Only a crash raises the number of a submission, and no job survives 4,096
/// crashes.
pub const ATTEMPTS_PER_ROUND: u32 = 1 << 20;

/// Whether two attempts of a task belong to the same submission of its job.
pub const fn is_same_submission(a: u32, b: u32) -> bool {
    a / ATTEMPTS_PER_ROUND == b / ATTEMPTS_PER_ROUND
}

impl JobId {
    /// Converts to an index into tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The `index`-th task of this job.
    #[inline]
    pub const fn task(self, index: u32) -> TaskId {
        TaskId { job: self, index }
    }
}

impl TaskId {
    /// The copy of this task with that attempt number.
    #[inline]
    pub const fn copy(self, attempt: u32) -> CopyId {
        CopyId { task: self, attempt }
    }
}

impl ActorId {
    /// Converts to an index into tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Endpoint {
    /// Converts to an index into tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {}", self.0)
    }
}

impl fmt::Display for CopyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} task {} attempt {}", self.task.job.0, self.task.index, self.attempt)
    }
}
