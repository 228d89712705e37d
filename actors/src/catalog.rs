//! Descriptions of jobs.
//!
//! A job's description is a pure function of the experiment and its seed, so messages carry its id and actors look up
//! the rest. A policy may look at a job once it was submitted to it.

use crate::base::{JobId, Span, TaskId, Time};

/// A job as its client submits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobSpec {
    /// When it arrives at its client.
    pub arrival: Time,
    /// How many tasks it has, at least one.
    pub tasks: u32,
    /// The client it arrives at, below [`Layout::schedulers`](crate::layout::Layout::schedulers).
    pub client: u32,
    /// Its class, 0 = short, 1 = long; policies without classes ignore it.
    pub class: u8,
    /// When it must be finished, for policies with deadlines.
    pub deadline: Option<Time>,
}

/// The description of every job of a run, by dense id in order of arrival.
pub trait Catalog: Send + Sync {
    /// How many jobs there are.
    fn jobs(&self) -> u32;
    /// The job's description.
    fn job(&self, job: JobId) -> JobSpec;
    /// The first job from number `from` on that arrives at a client. Catalogs of many clients keep an index, so that
    /// the cost per client is proportional to its own jobs.
    fn next_of(&self, client: u32, from: u32) -> Option<JobId> {
        (from..self.jobs()).map(JobId).find(|&job| self.job(job).client == client)
    }
    /// How many tasks the job has.
    fn tasks(&self, job: JobId) -> u32 {
        self.job(job).tasks
    }
    /// The job's class.
    fn class(&self, job: JobId) -> u8 {
        self.job(job).class
    }
    /// The estimate of a task's work for estimate-based policies, in reference-core time.
    fn estimate(&self, task: TaskId) -> Span;
    /// Mean of the estimates of the job's tasks.
    fn job_estimate(&self, job: JobId) -> Span;
}
