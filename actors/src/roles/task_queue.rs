//! The queue of a central scheduler: tasks in the order of their jobs.

use std::collections::VecDeque;
use std::ops::Range;

use crate::base::{CopyId, JobId};

/// Consecutive tasks of a job with one attempt number.
#[derive(Clone, Debug)]
struct TaskRun {
    job: JobId,
    tasks: Range<u32>,
    attempt: u32,
}

/// Tasks that wait. Those of older jobs come first, whether they wait for the first time or were lost.
#[derive(Clone, Debug, Default)]
pub struct TaskQueue {
    /// By job, none empty.
    runs: VecDeque<TaskRun>,
    /// How many tasks there are.
    len: u64,
}

impl TaskQueue {
    /// How many tasks wait.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether none waits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds tasks of a job, ahead of others of it. Jobs are numbered by arrival, so the place is at the end as a rule.
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

    /// Adds one copy.
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
        let copy = next_of(self.runs.front_mut()?);
        if self.runs.front().is_some_and(|run| run.tasks.is_empty()) {
            self.runs.pop_front();
        }
        self.len -= 1;
        Some(copy)
    }

    /// Takes the next task of the newest job.
    pub fn pop_newest(&mut self) -> Option<CopyId> {
        let copy = next_of(self.runs.back_mut()?);
        if self.runs.back().is_some_and(|run| run.tasks.is_empty()) {
            self.runs.pop_back();
        }
        self.len -= 1;
        Some(copy)
    }
}

/// Takes the first task of a run.
fn next_of(run: &mut TaskRun) -> CopyId {
    let index = run.tasks.start;
    run.tasks.start += 1;
    run.job.task(index).copy(run.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(mut next: impl FnMut() -> Option<CopyId>) -> Vec<(u32, u32, u32)> {
        std::iter::from_fn(|| next().map(|copy| (copy.task.job.0, copy.task.index, copy.attempt))).collect()
    }

    fn filled() -> TaskQueue {
        let mut queue = TaskQueue::default();
        queue.add(JobId(4), 0..2, 0);
        queue.add(JobId(7), 0..2, 0);
        queue.add(JobId(5), 3..3, 0);
        queue.add_copy(JobId(4).task(9).copy(1));
        queue.add_copy(JobId(2).task(1).copy(6));
        queue
    }

    #[test]
    fn older_jobs_come_first_and_lost_tasks_first_of_their_job() {
        let mut queue = filled();
        assert_eq!((queue.len(), queue.next()), (6, Some(JobId(2).task(1).copy(6))));
        let order = [(2, 1, 6), (4, 9, 1), (4, 0, 0), (4, 1, 0), (7, 0, 0), (7, 1, 0)];
        assert_eq!(drain(|| queue.pop()), order);
        assert!(queue.is_empty() && queue.next().is_none());
    }

    #[test]
    fn the_newest_job_can_come_first() {
        let mut queue = filled();
        let order = [(7, 0, 0), (7, 1, 0), (4, 0, 0), (4, 1, 0), (4, 9, 1), (2, 1, 6)];
        assert_eq!(drain(|| queue.pop_newest()), order);
        assert_eq!(queue.len(), 0);
    }
}
