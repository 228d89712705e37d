//! Descriptions of jobs.
//!
//! A job's description is a pure function of the experiment and its seed, so messages carry its id and actors look up
//! the rest. A policy may look up a job once the job has been submitted to it.
//!
//! A job may be a *stage* of a chain: its client submits it when the ends of all stages that it waits for have been
//! reported to the client. Policies see every stage as a job of its own.

use crate::base::Amount;
use crate::base::{Feature, JobId, Span, TaskId, Time};

/// A job as its client submits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobSpec {
    /// Time at which the job arrives at its client. Later stages of a chain have the arrival of the first stage.
    pub arrival: Time,
    /// Number of tasks, at least one.
    pub tasks: u32,
    /// The client at which the job arrives, below [`Layout::schedulers`](crate::layout::Layout::schedulers).
    pub client: u32,
    /// Class of the job: 0 is short, 1 is long. Policies without classes ignore it.
    pub class: u8,
    /// Time by which the job must be finished. A job with a deadline is an *SLO job* (service-level objective), a job
    /// without a deadline is *best-effort* (Park's thesis, section 4.1).
    pub deadline: Option<Time>,
}

/// The nodes that a job prefers, and how much longer it takes on others (Park's thesis, section 4.4.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preference {
    /// Bit mask of the preferred [kinds](crate::layout::Layout::kind) of nodes; 0 without a preference.
    pub kinds: u32,
    /// Factor on the run time of all tasks of the job if any of them runs on a node of another kind; at least 1.
    pub slowdown: f64,
}

impl Preference {
    /// No preference: all nodes are equally suitable.
    pub const NONE: Self = Self { kinds: 0, slowdown: 1.0 };

    /// Whether nodes of this kind are among those that the job prefers.
    pub const fn includes(self, kind: u8) -> bool {
        self.kinds == 0 || self.kinds & 1 << kind != 0
    }
}

/// The use of a [shared](crate::layout::Layout::sharing) node by a task while nothing throttles it, over its run time.
/// All tasks of a job have the same mean and maximum; the course over time differs from task to task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// The mean over the run time. The CPU-time of a task is its mean CPU times its run time.
    pub mean: Amount,
    /// The maximum over the run time.
    pub max: Amount,
}

impl Usage {
    /// One core and no memory: the usage of a task where nodes are not shared.
    pub const CORE: Self = Self { mean: Amount::CORE, max: Amount::CORE };
}

/// A job that ended before the run: history, for predictors of run times and use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PastJob {
    /// Values of the job's features by [`Feature::index`]; zero if unknown.
    pub features: [u32; Feature::ALL.len()],
    /// Run time of the job: the work of its longest task, on nodes that the job prefers.
    pub run: Span,
    /// Usage of each of the job's tasks.
    pub usage: Usage,
}

impl PastJob {
    /// The value of a feature.
    pub const fn feature(&self, feature: Feature) -> u32 {
        self.features[feature.index()]
    }
}

/// The dependencies of a stage. A stage has a larger id than the stages that it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Links<'a> {
    /// The stage.
    pub job: JobId,
    /// The stages that it waits for, each as the difference of its id to this stage's id; ascending.
    pub predecessors: &'a [u32],
    /// The stages that wait for it, likewise.
    pub successors: &'a [u32],
}

impl<'a> Links<'a> {
    /// The stages whose ends the client awaits before it submits this one.
    pub fn predecessors(self) -> impl Iterator<Item = JobId> + 'a {
        self.predecessors.iter().map(move |before| JobId(self.job.0 - before))
    }

    /// The stages that wait for this one.
    pub fn successors(self) -> impl Iterator<Item = JobId> + 'a {
        self.successors.iter().map(move |after| JobId(self.job.0 + after))
    }
}

/// The description of every job of a run, by dense id in order of arrival. The stages of a chain have consecutive ids.
pub trait Catalog: Send + Sync {
    /// Number of jobs.
    fn jobs(&self) -> u32;
    /// The job's description.
    fn job(&self, job: JobId) -> JobSpec;
    /// The stages that the job waits for, and the stages that wait for the job; none for a job without a chain.
    fn links(&self, job: JobId) -> Links<'_> {
        Links { job, predecessors: &[], successors: &[] }
    }

    /// The first job from number `from` on that arrives at a client and waits for no other stage. Catalogs of many
    /// clients keep an index, so that the cost per client is proportional to its own jobs.
    fn next_of(&self, client: u32, from: u32) -> Option<JobId> {
        let arrives =
            |job: &JobId| self.job(*job).client == client && self.links(*job).predecessors.is_empty();
        (from..self.jobs()).map(JobId).find(arrives)
    }
    /// Number of tasks of the job.
    fn tasks(&self, job: JobId) -> u32 {
        self.job(job).tasks
    }
    /// The job's class.
    fn class(&self, job: JobId) -> u8 {
        self.job(job).class
    }
    /// The value of a job's feature, by which predictors find similar jobs; zero if it is unknown. Predictors only
    /// compare values for equality.
    fn feature(&self, _job: JobId, _feature: Feature) -> u32 {
        0
    }
    /// The run time that the job's user requested (walltime); `None` if it is unknown.
    fn requested(&self, _job: JobId) -> Option<Span> {
        None
    }
    /// Whether the job is a gang: its tasks have equal work and should start together.
    fn is_gang(&self, _job: JobId) -> bool {
        false
    }
    /// The nodes that the job prefers.
    fn preference(&self, _job: JobId) -> Preference {
        Preference::NONE
    }
    /// The user's request for each task of the job. Nodes divide their CPU in proportion to it. The actual use can be
    /// less or more.
    fn request(&self, _job: JobId) -> Amount {
        Amount::CORE
    }
    /// The actual use of each task of the job, which only policies with perfect estimates may look at.
    fn usage(&self, _job: JobId) -> Usage {
        Usage::CORE
    }
    /// Number of jobs that ended before the run. Every machine may look at them from the start.
    fn past(&self) -> u32 {
        0
    }
    /// The past job with this number, which is below [`past`](Self::past), in order of arrival.
    ///
    /// # Panics
    /// If there is no such job.
    fn past_job(&self, number: u32) -> PastJob {
        panic!("there is no past job {number}")
    }
    /// The estimate of a task's work for estimate-based policies, in reference-core time.
    fn estimate(&self, task: TaskId) -> Span;
    /// Mean of the estimates of the job's tasks.
    fn job_estimate(&self, job: JobId) -> Span;
}
