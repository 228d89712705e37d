//! The jobs of one run: arrivals, shapes, work and estimates, each a pure function of the experiment and seed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use volary_actors::base::{Address, CopyId, Feature, JobId, Law, Purpose, Span, TaskId, Time};
use volary_actors::catalog::{Catalog, JobSpec};

use super::config::Estimate;
use super::generate::{LikeJob, duration};
use super::homes::Homes;
use super::mix::Stages;
use super::trace::Trace;
use super::work::{Demand, JobDemand};

/// The jobs of one run.
///
/// Results count *chains*: a job of a mix with all its stages, each of which is a job of the [catalog](Catalog). Jobs
/// of other workloads are chains of one.
///
/// Drawn jobs cost 12 to 16 bytes each and nothing per task; jobs of a trace share the parsed trace. A mean over the
/// tasks of a job is computed when it is first asked for.
#[derive(Debug)]
pub struct Workload {
    pub(super) shapes: Shapes,
    /// Of chains.
    pub(super) arrivals: Vec<Time>,
    pub(super) deadlines: Option<Vec<Time>>,
    pub(super) demand: Option<Demand>,
    pub(super) estimate: Estimate,
    pub(super) cutoff: Option<Span>,
    pub(super) classes: Vec<Arc<str>>,
    pub(super) schedulers: u32,
    /// Computed on the first query.
    pub(super) homes: OnceLock<Homes>,
    pub(super) addresses: Addresses,
    pub(super) means: Means,
    pub(super) warnings: Vec<String>,
}

/// Shapes of jobs, apart from their arrivals.
#[derive(Debug)]
pub(super) enum Shapes {
    /// Numbers of tasks, drawn from a law.
    Drawn(Vec<u32>),
    /// Jobs of a generator.
    Like(Vec<LikeJob>),
    /// Jobs of a trace.
    Traced(Arc<Trace>),
    /// Stages of the jobs of a mix.
    Staged(Stages),
}

impl Shapes {
    /// Number of jobs of the catalog.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Drawn(tasks) => tasks.len(),
            Self::Like(jobs) => jobs.len(),
            Self::Traced(trace) => trace.jobs().len(),
            Self::Staged(stages) => stages.len(),
        }
    }

    /// Number of chains.
    pub(super) fn chains(&self) -> usize {
        if let Self::Staged(stages) = self { stages.chains() as usize } else { self.len() }
    }
}

/// Roots of the draws that jobs need after they are built.
#[derive(Debug)]
pub(super) struct Addresses {
    work: Address,
    home: Address,
    estimate: Address,
}

impl Addresses {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            work: Address::new(seed, Purpose::Work),
            home: Address::new(seed, Purpose::Home),
            estimate: Address::new(seed, Purpose::Estimate),
        }
    }
}

impl Workload {
    /// The work of a copy on a healthy core: a pure function of the seed and the copy's ids.
    pub fn work(&self, copy: CopyId) -> Span {
        match self.demand(copy.task.job) {
            Some(demand) => demand.copy(copy.task.index, copy.attempt),
            None => self.own(copy.task),
        }
    }

    /// The work of a job that follows a law.
    fn demand(&self, job: JobId) -> Option<JobDemand<'_>> {
        match (&self.shapes, &self.demand) {
            (Shapes::Staged(stages), _) => Some(stages.demand(job)),
            (_, Some(demand)) => Some(demand.of_job(job, None)),
            (_, None) => None,
        }
    }

    fn stages(&self) -> Option<&Stages> {
        if let Shapes::Staged(stages) = &self.shapes { Some(stages) } else { None }
    }

    /// Number of chains.
    pub fn chains(&self) -> u32 {
        self.arrivals.len() as u32
    }

    /// The chain that a job belongs to.
    pub fn chain(&self, job: JobId) -> u32 {
        self.stages().map_or(job.0, |stages| stages.chain(job))
    }

    /// Ids of the jobs of a chain, in order of submission.
    pub fn jobs_of(&self, chain: u32) -> Range<u32> {
        self.stages().map_or(chain..chain + 1, |stages| stages.of_chain(chain))
    }

    /// Number of tasks of the stages before a job in its chain.
    pub fn tasks_before(&self, job: JobId) -> u32 {
        let Some(stages) = self.stages() else { return 0 };
        (stages.of_chain(stages.chain(job)).start..job.0).map(|before| stages.tasks(JobId(before))).sum()
    }

    /// The response time of a job alone in the cluster, if the workload states it.
    pub fn alone(&self, job: JobId) -> Option<Span> {
        self.stages()?.alone(job)
    }

    /// The class of a job as results see it: an index of [`classes`](Self::classes).
    pub fn class_index(&self, job: JobId) -> usize {
        self.stages().map_or_else(|| usize::from(Catalog::class(self, job)), |stages| stages.class(job))
    }

    /// The work of the job's longest task, attempt 0 of each.
    pub fn longest(&self, job: JobId) -> Span {
        self.attempts(job).max().unwrap_or_default()
    }

    /// Work of attempt 0 of every task, in core-seconds. Iterates over all tasks.
    pub fn total_work(&self) -> f64 {
        (0..self.jobs()).flat_map(|job| self.attempts(JobId(job))).map(Span::as_secs_f64).sum()
    }

    /// Warnings for the user: a generator that replaces a missing trace, skipped rows of a trace.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Labels of the classes of jobs: those of a mix, or short and long. Without a cutoff all jobs are of the first.
    pub fn classes(&self) -> &[Arc<str>] {
        &self.classes
    }

    /// Number of tasks of a job.
    pub fn tasks(&self, job: JobId) -> u32 {
        match &self.shapes {
            Shapes::Drawn(tasks) => tasks[job.index()],
            Shapes::Like(jobs) => jobs[job.index()].tasks,
            Shapes::Traced(trace) => trace.jobs()[job.index()].tasks,
            Shapes::Staged(stages) => stages.tasks(job),
        }
    }

    /// Number of tasks of all jobs.
    pub fn total_tasks(&self) -> u64 {
        (0..self.jobs()).map(|job| u64::from(self.tasks(JobId(job)))).sum()
    }

    fn attempts(&self, job: JobId) -> impl Iterator<Item = Span> + '_ {
        (0..self.tasks(job)).map(move |index| self.work(job.task(index).copy(0)))
    }

    /// The work that a trace or a generator gives a task.
    fn own(&self, task: TaskId) -> Span {
        match &self.shapes {
            Shapes::Like(jobs) => {
                let address = self.addresses.work.at(u64::from(task.job.0)).at(u64::from(task.index));
                Span::from_secs_f64(duration(f64::from(jobs[task.job.index()].mean), &mut address.draw()))
            }
            Shapes::Traced(trace) => trace.duration(task),
            Shapes::Drawn(_) | Shapes::Staged(_) => {
                unreachable!("drawn jobs have a law of demand; the plan refuses others")
            }
        }
    }

    /// The client a chain arrives at.
    fn home(&self, chain: u32) -> u32 {
        (self.addresses.home.at(u64::from(chain)).unit() * f64::from(self.schedulers)) as u32
    }

    /// Work of a task as far as it is known before a copy of it runs.
    fn exact(&self, task: TaskId) -> Span {
        self.demand(task.job).map_or_else(|| self.own(task), |demand| demand.exact(task.index))
    }

    /// Mean of the exact estimates of a job's tasks.
    fn exact_mean(&self, job: JobId) -> Span {
        if self.demand(job).is_some_and(|demand| demand.homogeneous()) {
            return self.exact(job.task(0));
        }
        self.means.get(job, || {
            let tasks = self.tasks(job);
            let sum: u128 = (0..tasks).map(|index| u128::from(self.exact(job.task(index)).0)).sum();
            Span(((sum + u128::from(tasks) / 2) / u128::from(tasks)) as u64)
        })
    }

    /// The mean that a trace states, else the mean of the exact estimates.
    fn mean(&self, job: JobId) -> Span {
        match (&self.demand, &self.shapes) {
            (None, Shapes::Traced(trace)) => trace.jobs()[job.index()].mean,
            _ => self.exact_mean(job),
        }
    }

    /// The factor of the estimation error of a job with all its stages.
    fn factor(&self, job: JobId, error: &Law<f64>) -> f64 {
        error.sample(&mut self.addresses.estimate.at(u64::from(self.chain(job))).draw())
    }
}

impl Catalog for Workload {
    fn jobs(&self) -> u32 {
        self.shapes.len() as u32
    }

    fn job(&self, job: JobId) -> JobSpec {
        let chain = self.chain(job);
        JobSpec {
            arrival: self.arrivals[chain as usize],
            tasks: self.tasks(job),
            client: self.home(chain),
            class: self.class(job),
            deadline: self.deadlines.as_ref().map(|deadlines| deadlines[job.index()]),
        }
    }

    fn next_of(&self, client: u32, from: u32) -> Option<JobId> {
        let from = self.stages().map_or(from, |stages| stages.chain_from(from));
        let next = if self.schedulers == 1 {
            (from < self.chains()).then_some(from)
        } else {
            let homes = || Homes::new(self.schedulers, self.chains(), |chain| self.home(chain));
            self.homes.get_or_init(homes).next(client, from)
        };
        next.map(|chain| JobId(self.jobs_of(chain).start))
    }

    fn after(&self, job: JobId) -> Option<JobId> {
        self.stages()?.before(job)
    }

    fn tasks(&self, job: JobId) -> u32 {
        Self::tasks(self, job)
    }

    fn class(&self, job: JobId) -> u8 {
        match &self.shapes {
            Shapes::Staged(stages) => stages.is_long(job).into(),
            Shapes::Drawn(_) | Shapes::Like(_) | Shapes::Traced(_) => {
                self.cutoff.is_some_and(|cutoff| self.job_estimate(job) >= cutoff).into()
            }
        }
    }

    fn feature(&self, job: JobId, feature: Feature) -> u32 {
        match &self.shapes {
            Shapes::Traced(trace) => trace.feature(job, feature),
            Shapes::Staged(stages) => stages.feature(job, feature),
            Shapes::Drawn(_) | Shapes::Like(_) if feature == Feature::Size => self.tasks(job),
            Shapes::Drawn(_) | Shapes::Like(_) => 0,
        }
    }

    fn estimate(&self, task: TaskId) -> Span {
        match &self.estimate {
            Estimate::Exact => self.exact(task),
            Estimate::Mean => self.mean(task.job),
            Estimate::Error(error) => {
                let right =
                    if self.demand(task.job).is_some() { self.exact(task) } else { self.mean(task.job) };
                right.scale(self.factor(task.job, error))
            }
        }
    }

    fn job_estimate(&self, job: JobId) -> Span {
        match &self.estimate {
            Estimate::Exact => self.exact_mean(job),
            Estimate::Mean => self.mean(job),
            Estimate::Error(error) => self.mean(job).scale(self.factor(job, error)),
        }
    }
}

/// Means over the tasks of jobs, computed on the first query. Concurrent writers of a cell store the same value.
#[derive(Debug)]
pub(super) struct Means(Box<[AtomicU64]>);

const UNKNOWN: u64 = u64::MAX;

impl Means {
    pub(super) fn new(jobs: usize) -> Self {
        Self((0..jobs).map(|_| AtomicU64::new(UNKNOWN)).collect())
    }

    fn get(&self, job: JobId, compute: impl FnOnce() -> Span) -> Span {
        let cell = &self.0[job.index()];
        let known = cell.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return Span(known);
        }
        let mean = compute();
        cell.store(mean.0, Ordering::Relaxed);
        mean
    }
}
