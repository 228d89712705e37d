//! The queue of a central scheduler: tasks in the order of their jobs.

use std::collections::VecDeque;
use std::ops::Range;

use crate::base::{CopyId, JobId};

/// Consecutive tasks of a job with the same attempt number.
#[derive(Clone, Debug)]
struct TaskRun {
    job: JobId,
    tasks: Range<u32>,
    attempt: u32,
}

/// Waiting tasks. Tasks of older jobs come first, whether they wait for the first time or were lost.
#[derive(Clone, Debug, Default)]
pub struct TaskQueue {
    /// Runs of tasks in the order of jobs; no run is empty.
    runs: VecDeque<TaskRun>,
    /// Number of tasks.
    len: u64,
}

impl TaskQueue {
    /// Number of waiting tasks.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether no task waits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds tasks of a job, ahead of others of the same job. Jobs are numbered by arrival, so tasks usually go to the
    /// end.
    pub fn add(&mut self, job: JobId, tasks: Range<u32>, attempt: u32) {
        if tasks.is_empty() {
            return;
        }
        self.len += u64::from(tasks.end - tasks.start);
        let at = match self.runs.back() {
            Some(last) if last.job >= job => self.runs.partition_point(|run| run.job < job),
            _ => self.runs.len(),
        };
        self.runs.insert(at, TaskRun { job, tasks, attempt });
    }

    /// Adds one copy, ahead of other tasks of its job.
    pub fn add_copy(&mut self, copy: CopyId) {
        let index = copy.task.index;
        self.add(copy.task.job, index..index + 1, copy.attempt);
    }

    /// The next task of the oldest job.
    pub fn next(&self) -> Option<CopyId> {
        self.runs.front().map(|run| run.job.task(run.tasks.start).copy(run.attempt))
    }

    /// Takes the next task of the oldest job.
    pub fn pop(&mut self) -> Option<CopyId> {
        let copy = self.next()?;
        let run = self.runs.front_mut()?;
        run.tasks.start += 1;
        if run.tasks.is_empty() {
            self.runs.pop_front();
        }
        self.len -= 1;
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_jobs_come_first_and_lost_tasks_precede_the_rest_of_their_job() {
        let mut queue = TaskQueue::default();
        queue.add(JobId(4), 0..2, 0);
        queue.add(JobId(7), 0..2, 0);
        queue.add(JobId(5), 3..3, 0);
        queue.add_copy(JobId(4).task(9).copy(1));
        queue.add_copy(JobId(2).task(1).copy(6));
        assert_eq!((queue.len(), queue.next()), (6, Some(JobId(2).task(1).copy(6))));
        let order = [(2, 1, 6), (4, 9, 1), (4, 0, 0), (4, 1, 0), (7, 0, 0), (7, 1, 0)];
        let next = || queue.pop().map(|copy| (copy.task.job.0, copy.task.index, copy.attempt));
        assert_eq!(std::iter::from_fn(next).collect::<Vec<_>>(), order);
        assert!(queue.is_empty() && queue.next().is_none());
    }
}
