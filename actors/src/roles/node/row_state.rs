//! The entries of a node's queue, and the state of rows on a node.

use crate::base::{ActorId, CopyId, JobId, Time};
use crate::message::{Row, TaskRange};
use crate::roles::job_table::TaskSet;
use crate::roles::node_queue::Place;

/// Reservations of a scheduler that binds late, for one group of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The scheduler.
    pub from: ActorId,
    /// The job of the reservation.
    pub job: JobId,
    /// The group of the job's tasks.
    pub group: u32,
    /// Number of reservations.
    pub count: u32,
    /// Whether the reservation repairs a loss.
    pub repair: bool,
}

/// An entry of a node's queue.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Row(RowState),
    Reservation(Reservation),
}

impl Entry {
    /// Whether the entry is a row of a job of the long class.
    pub(super) const fn is_long_row(&self) -> bool {
        matches!(self, Self::Row(row) if row.long)
    }

    /// The job of the entry.
    pub(super) const fn job(&self) -> JobId {
        match self {
            Self::Row(row) => row.row.job,
            Self::Reservation(place) => place.job,
        }
    }

    /// Whether the entry is a reservation for this group of a scheduler's job.
    pub(super) fn is_reservation(&self, by: ActorId, about: JobId, which: u32) -> bool {
        matches!(*self, Self::Reservation(Reservation { from, job, group, .. }) if (from, job, group) == (by, about, which))
    }
}

/// A row and its position.
#[derive(Clone, Debug)]
pub(super) struct RowState {
    /// The actor that sent the row.
    pub from: ActorId,
    /// The row's tasks.
    pub row: Row,
    /// Whether the row's job is of the long class.
    pub long: bool,
    /// Positions of dropped or finished tasks.
    gone: TaskSet,
    /// The position of the running copy, or the first position that may run.
    pub at: u16,
    /// Time at which the running copy began.
    pub began: Time,
    /// Group and place in the queue of the reservation that led to the row, if the reservation returns after it.
    pub stick: Option<Box<(u32, Place)>>,
}

impl RowState {
    pub(super) fn new(from: ActorId, row: Row, long: bool) -> Self {
        Self {
            from,
            row,
            long,
            gone: TaskSet::new(u32::from(row.width)),
            at: 0,
            began: Time::ZERO,
            stick: None,
        }
    }

    /// Marks positions of tasks as gone.
    pub(super) fn remove(&mut self, tasks: TaskRange) {
        for position in 0..self.row.width {
            if tasks.contains(self.row.copy(position).task) {
                self.gone.add(u32::from(position));
            }
        }
    }

    /// Number of positions from `at` on that are not gone.
    pub(super) fn left(&self) -> u32 {
        (self.at..self.row.width).filter(|&position| !self.gone.has(u32::from(position))).count() as u32
    }

    pub(super) fn overlaps(&self, tasks: TaskRange) -> bool {
        let row = &self.row;
        tasks.job == row.job
            && tasks.covers(row.attempt)
            && tasks.base < row.base + u32::from(row.len)
            && row.base < tasks.base + tasks.len
    }

    /// Moves to the first position from `at` on that is not gone.
    pub(super) fn seek(&mut self) -> Option<CopyId> {
        while self.at < self.row.width {
            if !self.gone.has(u32::from(self.at)) {
                return Some(self.row.copy(self.at));
            }
            self.at += 1;
        }
        None
    }
}
