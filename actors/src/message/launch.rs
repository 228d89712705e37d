//! Scheduler ↔ node: work that is bound to a node when it is sent.

use serde::{Deserialize, Serialize};

use super::protocol::{Run, protocol};
use crate::base::{CopyId, JobId, TaskId, Time, is_same_submission};

/// Tasks that one server runs one after the other: the first `width` of the `len` tasks of a job from `base` on,
/// rotated left by `turn`. A single task is a row of length one. Row i of a latin square of order v has `len` = `width`
/// = v and `turn` = i; a Youden rectangle has a smaller `width`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The job.
    pub job: JobId,
    /// Index of the first task of the group.
    pub base: u32,
    /// Number of tasks in the group, at least one.
    pub len: u16,
    /// Position in the group at which the row starts.
    pub turn: u16,
    /// Number of tasks of the row, at least one.
    pub width: u16,
    /// Attempt number of every copy of the row.
    pub attempt: u32,
    /// Whether another task of the row's gang runs on a node that the job does not
    /// [prefer](crate::catalog::Preference); all tasks of the gang then take longer. The scheduler that starts the gang
    /// sets the flag, because a node knows only its own kind.
    pub elsewhere: bool,
}

impl Row {
    /// A row of one task.
    pub const fn single(copy: CopyId) -> Self {
        Self {
            job: copy.task.job,
            base: copy.task.index,
            len: 1,
            turn: 0,
            width: 1,
            attempt: copy.attempt,
            elsewhere: false,
        }
    }

    /// This row as part of a gang; `elsewhere` says whether a task of the gang runs on a node that the job does not
    /// prefer.
    pub const fn in_gang(self, elsewhere: bool) -> Self {
        Self { elsewhere, ..self }
    }

    /// Whether position and width are within the row's length, and its tasks are tasks of the job.
    pub(super) fn fits(&self, run: &Run<'_>) -> bool {
        self.turn < self.len
            && (1..=self.len).contains(&self.width)
            && TaskRange { job: self.job, base: self.base, len: u32::from(self.len), below: 0 }.fits(run)
    }

    /// The copy at a position below `width`.
    pub const fn copy(&self, position: u16) -> CopyId {
        let index = (position as u32 + self.turn as u32) % self.len as u32;
        self.job.task(self.base + index).copy(self.attempt)
    }

    /// The row's tasks in the order in which they run.
    pub fn tasks(self) -> impl Iterator<Item = TaskId> {
        (0..self.width).map(move |position| self.copy(position).task)
    }

    /// The position of a task in this row, if the row has the task.
    pub fn position(&self, task: TaskId) -> Option<u16> {
        let index = task.index.checked_sub(self.base).filter(|&i| i < u32::from(self.len))?;
        let len = u32::from(self.len);
        let position = ((index + len - u32::from(self.turn) % len) % len) as u16;
        (task.job == self.job && position < self.width).then_some(position)
    }
}

/// A range of a job's tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskRange {
    /// The job.
    pub job: JobId,
    /// Index of the first task.
    pub base: u32,
    /// Number of tasks, at least one.
    pub len: u32,
    /// Exclusive upper limit of attempt numbers. Only attempts of the same submission as attempt `below` − 1 are
    /// covered. So the range affects neither later launches nor another scheduler that got the job in another
    /// submission.
    pub below: u32,
}

impl TaskRange {
    /// The range of a single task.
    pub const fn one(task: TaskId, below: u32) -> Self {
        Self { job: task.job, base: task.index, len: 1, below }
    }

    fn fits(&self, run: &Run<'_>) -> bool {
        let end = self.base.checked_add(self.len);
        self.len > 0 && run.has_job(self.job) && end.is_some_and(|end| end <= run.catalog.tasks(self.job))
    }

    /// Whether a task is in the range.
    pub fn contains(&self, task: TaskId) -> bool {
        task.job == self.job && task.index >= self.base && task.index - self.base < self.len
    }

    /// Whether the range covers copies with this attempt number.
    pub const fn covers(&self, attempt: u32) -> bool {
        attempt < self.below && is_same_submission(attempt, self.below - 1)
    }
}

/// Early binding and preemption.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Launch {
    /// Scheduler → node: queue these tasks.
    Row(Row),
    /// Node → scheduler: a copy finished.
    Completed {
        /// The copy.
        copy: CopyId,
    },
    /// Scheduler → node: tasks need no copy any more. Forget waiting copies and stop running copies.
    Drop(TaskRange),
    /// Scheduler → node: queue this task, a row of one task. The node's update about the end of the task carries the
    /// time of this decision.
    Task {
        /// The copy.
        copy: CopyId,
        /// Time of the decision.
        at: Time,
    },
}

impl Launch {
    /// The row to be queued, if this message is a launch.
    pub const fn row(&self) -> Option<Row> {
        match *self {
            Self::Row(row) => Some(row),
            Self::Task { copy, .. } => Some(Row::single(copy)),
            Self::Completed { .. } | Self::Drop(_) => None,
        }
    }
}

protocol! {
    Launch in run;
    Row = "launch.row", Stream, 28, Scheduler -> Node:
        launch @ (Self::Row(_) | Self::Task { .. }) if launch.row().is_some_and(|row| row.fits(run))
            => launch.row().map(|row| row.job),
    Completed = "launch.completed", Stream, 20, Node -> Scheduler:
        Self::Completed { copy } if run.has_task(copy.task) => copy.task.job,
    Drop = "launch.drop", Stream, 24, Scheduler -> Node: Self::Drop(tasks) if tasks.fits(run) => tasks.job,
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ATTEMPTS_PER_ROUND;

    #[test]
    fn rows_of_a_latin_square_hold_each_task_once_per_row_and_column() {
        for order in 1..=7u16 {
            let row = |turn| Row {
                job: JobId(3),
                base: 10,
                len: order,
                turn,
                width: order,
                attempt: u32::from(turn),
                elsewhere: false,
            };
            for turn in 0..order {
                let mut tasks: Vec<_> = (0..order).map(|j| row(turn).copy(j).task.index).collect();
                let mut column: Vec<_> = (0..order).map(|i| row(i).copy(turn).task.index).collect();
                tasks.sort_unstable();
                column.sort_unstable();
                let all: Vec<_> = (10..10 + u32::from(order)).collect();
                assert_eq!((&tasks, &column), (&all, &all));
                for j in 0..order {
                    assert_eq!(row(turn).position(row(turn).copy(j).task), Some(j));
                }
                assert_eq!(row(turn).position(JobId(3).task(9)), None);
                assert_eq!(row(turn).position(JobId(4).task(10)), None);
            }
        }
    }

    /// Each of seven rows has three tasks. Each task is in three rows, and once in every column.
    #[test]
    fn rows_of_a_youden_rectangle_hold_each_task_once_per_column() {
        let row =
            |turn| Row { job: JobId(3), base: 10, len: 7, turn, width: 3, attempt: 0, elsewhere: false };
        for task in 10..17 {
            let mut positions: Vec<_> =
                (0..7).filter_map(|turn| row(turn).position(JobId(3).task(task))).collect();
            positions.sort_unstable();
            assert_eq!(positions, [0, 1, 2]);
        }
    }

    /// After crashes two schedulers can have the same job open, from different submissions.
    #[test]
    fn a_range_covers_earlier_attempts_of_its_own_submission() {
        let covers = |below, attempt| TaskRange::one(JobId(0).task(0), below).covers(attempt);
        let second = ATTEMPTS_PER_ROUND;
        assert!(covers(3, 0) && covers(3, 2) && covers(second, 2));
        assert!(covers(second + 1, second) && covers(second + 3, second + 2));
        assert!(!covers(0, 0) && !covers(3, 3) && !covers(3, second));
        assert!(!covers(second + 1, 0) && !covers(second + 1, second - 1) && !covers(second + 1, second + 1));
    }
}
