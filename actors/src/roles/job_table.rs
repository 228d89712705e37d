//! The open jobs of a scheduler, with their finished tasks.

use std::collections::VecDeque;

use crate::base::{ATTEMPTS_PER_ROUND, JobId, TaskId};
use crate::catalog::{Catalog, JobSpec};
use crate::machine::Effects;
use crate::message::Job;

/// Open jobs by id. Jobs open and close roughly in order, so the table is a window that slides over the ids. It holds a
/// pointer for every id between the first open job and the last, including jobs of other schedulers, so entries are
/// boxed.
#[derive(Clone, Debug)]
pub struct JobTable<T> {
    first: u32,
    window: VecDeque<Option<Box<T>>>,
}

impl<T> Default for JobTable<T> {
    fn default() -> Self {
        Self { first: 0, window: VecDeque::new() }
    }
}

impl<T> JobTable<T> {
    /// Opens a job; replaces it if it was open.
    pub fn open(&mut self, job: JobId, value: T) {
        if self.window.is_empty() {
            self.first = job.0;
        }
        while job.0 < self.first {
            self.window.push_front(None);
            self.first -= 1;
        }
        let at = (job.0 - self.first) as usize;
        if at >= self.window.len() {
            self.window.resize_with(at + 1, || None);
        }
        self.window[at] = Some(Box::new(value));
    }

    /// The entry of a job submitted for the `round`-th time; `None` if the job is open already, because a submission to
    /// an earlier epoch of this scheduler can still arrive.
    pub fn admit(&mut self, job: JobId, round: u32, catalog: &dyn Catalog) -> Option<OpenJob> {
        self.get_mut(job).is_none().then(|| OpenJob::new(catalog.job(job), round))
    }

    /// The job, if it is open.
    pub fn get_mut(&mut self, job: JobId) -> Option<&mut T> {
        self.window.get_mut(job.0.checked_sub(self.first)? as usize)?.as_deref_mut()
    }

    /// The first open job; if none is open, the job after the last one that was open. All opened jobs before it are
    /// closed.
    pub const fn first_open(&self) -> JobId {
        JobId(self.first)
    }

    /// Closes a job and returns its entry.
    pub fn close(&mut self, job: JobId) -> Option<T> {
        let at = job.0.checked_sub(self.first)? as usize;
        let value = self.window.get_mut(at)?.take();
        while let Some(None) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
        value.map(|value| *value)
    }

    /// Records a finished copy of a task. If the task is the last of its job, notifies the client and closes the job.
    /// `open` projects the job's entry to its [`OpenJob`].
    pub fn complete(
        &mut self,
        task: TaskId,
        open: impl FnOnce(&mut T) -> &mut OpenJob,
        fx: &mut Effects<'_>,
    ) -> Completion {
        let Some(open) = self.get_mut(task.job).map(open) else { return Completion::Duplicate };
        let completion = open.complete(task.index);
        if completion == Completion::Job {
            open.report(task.job, false, fx);
            self.close(task.job);
        }
        completion
    }

    /// Open jobs in order of id.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (JobId, &mut T)> {
        let first = self.first;
        self.window
            .iter_mut()
            .enumerate()
            .filter_map(move |(i, slot)| slot.as_deref_mut().map(|value| (JobId(first + i as u32), value)))
    }
}

/// A set of integers below a fixed length, in 16 bytes; lengths up to 64 need no allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSet(Words);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Words {
    One(u64),
    Many(Box<[u64]>),
}

const _: () = assert!(size_of::<TaskSet>() <= 16, "a row on a core fits into a cache line");

impl TaskSet {
    /// The empty set over `0..len`.
    pub fn new(len: u32) -> Self {
        Self(if len <= 64 { Words::One(0) } else { Words::Many(vec![0; len.div_ceil(64) as usize].into()) })
    }

    /// Whether the set holds `i`.
    #[inline]
    pub fn has(&self, i: u32) -> bool {
        let word = match &self.0 {
            Words::One(word) => std::slice::from_ref(word),
            Words::Many(words) => words,
        }[i as usize / 64];
        word >> (i % 64) & 1 == 1
    }

    /// Adds `i`; returns whether it is new.
    #[inline]
    pub fn add(&mut self, i: u32) -> bool {
        let word = &mut match &mut self.0 {
            Words::One(word) => std::slice::from_mut(word),
            Words::Many(words) => words,
        }[i as usize / 64];
        let new = *word >> (i % 64) & 1 == 0;
        *word |= 1 << (i % 64);
        new
    }
}

/// The effect of a completion on its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Another copy of the task had finished before.
    Duplicate,
    /// The task's first finished copy; other tasks of the job are open.
    Task,
    /// The first finished copy of the last open task.
    Job,
}

/// An open job: its description and its finished tasks.
#[derive(Clone, Debug)]
pub struct OpenJob {
    /// Description of the job.
    pub spec: JobSpec,
    remaining: u32,
    done: TaskSet,
    attempt: u32,
}

impl OpenJob {
    /// A job as submitted for the `round`-th time.
    pub fn new(spec: JobSpec, round: u32) -> Self {
        let attempt = round.wrapping_mul(ATTEMPTS_PER_ROUND);
        Self { spec, remaining: spec.tasks, done: TaskSet::new(spec.tasks), attempt }
    }

    /// Reserves `count` attempt numbers for every task and returns the first.
    pub fn attempts(&mut self, count: u32) -> u32 {
        let first = self.attempt;
        self.attempt += count;
        debug_assert!(first / ATTEMPTS_PER_ROUND == self.attempt / ATTEMPTS_PER_ROUND, "attempts ran out");
        first
    }

    /// The attempt number reserved last.
    pub const fn latest_attempt(&self) -> u32 {
        self.attempt.saturating_sub(1)
    }

    /// A number above every attempt number reserved so far.
    pub const fn next_attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether the launch with this attempt number repeats the job, or a part of it.
    pub const fn is_repeated(&self, attempt: u32) -> bool {
        attempt != 0 && attempt != self.first_attempt()
    }

    /// The first attempt number of this submission.
    pub const fn first_attempt(&self) -> u32 {
        self.attempt / ATTEMPTS_PER_ROUND * ATTEMPTS_PER_ROUND
    }

    /// Whether a task has a finished copy.
    pub fn is_done(&self, task: u32) -> bool {
        self.done.has(task)
    }

    /// Number of tasks with a finished copy.
    pub const fn finished(&self) -> u32 {
        self.spec.tasks - self.remaining
    }

    /// Records a finished copy of a task.
    pub fn complete(&mut self, task: u32) -> Completion {
        if !self.done.add(task) {
            return Completion::Duplicate;
        }
        self.remaining -= 1;
        if self.remaining == 0 { Completion::Job } else { Completion::Task }
    }

    /// Notifies the client that this job, which has number `job`, is finished or was killed.
    pub fn report(&self, job: JobId, killed: bool, fx: &mut Effects<'_>) {
        fx.send(fx.layout().client(self.spec.client), Job::Finished { job, killed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Time;

    #[test]
    fn a_job_table_slides_over_closed_jobs_and_reopens_them() {
        let mut table = JobTable::default();
        for id in [5, 7, 6, 3] {
            table.open(JobId(id), id);
        }
        assert_eq!(table.iter_mut().map(|(id, _)| id.0).collect::<Vec<_>>(), [3, 5, 6, 7]);
        assert_eq!(table.close(JobId(3)), Some(3));
        assert_eq!(table.close(JobId(3)), None);
        assert_eq!(table.close(JobId(5)), Some(5));
        assert_eq!(table.get_mut(JobId(7)), Some(&mut 7));
        assert_eq!(table.close(JobId(7)), Some(7));
        assert_eq!(table.close(JobId(6)), Some(6));
        assert_eq!(table.iter_mut().count(), 0);
        table.open(JobId(2), 2);
        assert_eq!(table.get_mut(JobId(2)), Some(&mut 2));
    }

    #[test]
    fn only_the_first_finished_copy_of_a_task_counts() {
        let spec = JobSpec { arrival: Time::ZERO, tasks: 130, client: 0, class: 0, deadline: None };
        let mut open = OpenJob::new(spec, 2);
        assert_eq!((open.attempts(3), open.attempts(1)), (2 << 20, (2 << 20) + 3));
        for task in 0..129 {
            assert_eq!(open.complete(task), Completion::Task);
            assert_eq!(open.complete(task), Completion::Duplicate);
        }
        assert_eq!(open.complete(129), Completion::Job);
    }
}
