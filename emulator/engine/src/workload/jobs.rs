//! The jobs of one run: arrivals, shapes, work and estimates, each a pure function of the experiment and seed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use volary_actors::base::{Address, CopyId, JobId, Law, Purpose, Span, TaskId, Time};
use volary_actors::catalog::{Catalog, JobSpec};

use super::config::Estimate;
use super::generate::{LikeJob, duration};
use super::homes::Homes;
use super::trace::Trace;
use super::work::Demand;

/// The jobs of one run.
///
/// Drawn jobs cost 12 to 16 bytes each and nothing per task; jobs of a trace share the parsed trace. A mean over the
/// tasks of a job is computed when it is first asked for.
#[derive(Debug)]
pub struct Workload {
    pub(super) shapes: Shapes,
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
        match &self.demand {
            Some(demand) => demand.copy(copy),
            None => self.own(copy.task),
        }
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

    /// Labels of the classes of jobs, by [`JobSpec::class`]. Without a cutoff all jobs are of the first.
    pub fn classes(&self) -> &[Arc<str>] {
        &self.classes
    }

    /// Number of tasks of a job.
    pub fn tasks(&self, job: JobId) -> u32 {
        match &self.shapes {
            Shapes::Drawn(tasks) => tasks[job.index()],
            Shapes::Like(jobs) => jobs[job.index()].tasks,
            Shapes::Traced(trace) => trace.jobs()[job.index()].tasks,
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
            Shapes::Drawn(_) => unreachable!("drawn jobs have a law of demand; the plan refuses others"),
        }
    }

    /// The client a job arrives at.
    fn home(&self, job: JobId) -> u32 {
        (self.addresses.home.at(u64::from(job.0)).unit() * f64::from(self.schedulers)) as u32
    }

    /// Work of a task as far as it is known before a copy of it runs.
    fn exact(&self, task: TaskId) -> Span {
        self.demand.as_ref().map_or_else(|| self.own(task), |demand| demand.exact(task))
    }

    /// Mean of the exact estimates of a job's tasks.
    fn exact_mean(&self, job: JobId) -> Span {
        if self.demand.as_ref().is_some_and(|demand| demand.homogeneous(job)) {
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

    /// The factor of a job's estimation error.
    fn factor(&self, job: JobId, error: &Law<f64>) -> f64 {
        error.sample(&mut self.addresses.estimate.at(u64::from(job.0)).draw())
    }
}

impl Catalog for Workload {
    fn jobs(&self) -> u32 {
        self.arrivals.len() as u32
    }

    fn job(&self, job: JobId) -> JobSpec {
        JobSpec {
            arrival: self.arrivals[job.index()],
            tasks: self.tasks(job),
            client: self.home(job),
            class: self.class(job),
            deadline: self.deadlines.as_ref().map(|deadlines| deadlines[job.index()]),
        }
    }

    fn next_of(&self, client: u32, from: u32) -> Option<JobId> {
        if self.schedulers == 1 {
            return (from < self.jobs()).then_some(JobId(from));
        }
        let homes = self.homes.get_or_init(|| Homes::new(self.schedulers, self.jobs(), |job| self.home(job)));
        homes.next(client, from)
    }

    fn tasks(&self, job: JobId) -> u32 {
        Self::tasks(self, job)
    }

    fn class(&self, job: JobId) -> u8 {
        self.cutoff.is_some_and(|cutoff| self.job_estimate(job) >= cutoff).into()
    }

    fn estimate(&self, task: TaskId) -> Span {
        match &self.estimate {
            Estimate::Exact => self.exact(task),
            Estimate::Mean => self.mean(task.job),
            Estimate::Error(error) => {
                let right = if self.demand.is_some() { self.exact(task) } else { self.mean(task.job) };
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
