//! The entries of a node's queue: tasks that were launched, and places reserved for tasks of a scheduler.

use super::row_state::RowState;
use crate::base::{ActorId, JobId};

/// Places reserved by a scheduler that binds late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The scheduler.
    pub from: ActorId,
    /// Its job.
    pub job: JobId,
    /// The group of the job's tasks.
    pub group: u32,
    /// How many places.
    pub count: u32,
    /// Whether it repairs a loss.
    pub repair: bool,
}

/// An entry of a node's queue.
pub(super) enum Entry {
    Row(RowState),
    Reservation(Reservation),
}

impl Entry {
    /// Whether it holds tasks of a job of the long class.
    pub(super) const fn is_long_row(&self) -> bool {
        matches!(self, Self::Row(row) if row.long)
    }

    /// The job that it is of.
    pub(super) const fn job(&self) -> JobId {
        match self {
            Self::Row(row) => row.row.job,
            Self::Reservation(place) => place.job,
        }
    }

    /// Whether it reserves places for that group of a scheduler's job.
    pub(super) fn is_reservation(&self, by: ActorId, about: JobId, which: u32) -> bool {
        matches!(*self, Self::Reservation(Reservation { from, job, group, .. }) if (from, job, group) == (by, about, which))
    }
}
