//! A row at a node, and which of its tasks are gone.

use crate::base::{ActorId, CopyId, Time};
use crate::message::{Row, TaskRange};
use crate::roles::job_table::TaskSet;
use crate::roles::node_queue::Place;

/// A row and its position.
pub(super) struct RowState {
    /// Who sent it.
    pub from: ActorId,
    /// Its tasks.
    pub row: Row,
    /// Whether its job is of the long class.
    pub long: bool,
    /// Dropped or finished positions.
    gone: TaskSet,
    /// The running position, or the first that may run.
    pub at: u16,
    /// When the running copy began.
    pub began: Time,
    /// The group and the place that it was claimed for, if its scheduler is to be asked again after it.
    pub stick: Option<(u32, Place)>,
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

    /// Positions from `at` on that are not gone.
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
