//! The jobs that a workload draws: shapes, work and estimates, each a pure function of the experiment and seed.
//!
//! Jobs and chains have the numbers under which they are drawn; the first one of a run may have a later number.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volary_actors::base::{Address, CopyId, DistributionSpec, Feature, JobId, Purpose, Span, TaskId};

use super::config::Estimate;
use super::generate::{LikeJob, duration};
use super::mix::Stages;
use super::trace::Trace;
use super::work::{Demand, JobDemand};

/// All jobs of a workload.
///
/// Drawn jobs cost 12 to 16 bytes each and nothing per task; jobs of a trace share the parsed trace. A mean over the
/// tasks of a job is computed when it is first asked for.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) shapes: Shapes,
    pub(super) demand: Option<Demand>,
    pub(super) estimate: Estimate,
    /// Zero if estimates are not rounded.
    pub(super) estimate_unit: Span,
    /// Whether all tasks of a job have equal work, the mean of those that its trace or generator states.
    pub(super) gang: bool,
    pub(super) addresses: Addresses,
    pub(super) means: Means,
}

/// Shapes of jobs, apart from their arrivals.
#[derive(Debug)]
pub(super) enum Shapes {
    /// Numbers of tasks, drawn from a distribution.
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
    pub(super) fn chains(&self) -> u32 {
        if let Self::Staged(stages) = self { stages.chains() } else { self.len() as u32 }
    }

    /// Ids of the jobs of a chain, in order of submission.
    pub(super) fn jobs_of(&self, chain: u32) -> Range<u32> {
        if let Self::Staged(stages) = self { stages.of_chain(chain) } else { chain..chain + 1 }
    }

    /// Number of tasks of a job.
    pub(super) fn tasks(&self, job: JobId) -> u32 {
        match self {
            Self::Drawn(tasks) => tasks[job.index()],
            Self::Like(jobs) => jobs[job.index()].tasks,
            Self::Traced(trace) => trace.jobs()[job.index()].tasks,
            Self::Staged(stages) => stages.tasks(job),
        }
    }

    /// Number of tasks of the largest job of a chain.
    pub(super) fn most_tasks(&self, chain: u32) -> u32 {
        self.jobs_of(chain).map(|job| self.tasks(JobId(job))).max().unwrap_or(0)
    }

    /// Keeps some of the chains, given their numbers in order. They are numbered anew.
    pub(super) fn keep(&mut self, chains: &[u32]) {
        let at = chains.iter().map(|&chain| chain as usize);
        match self {
            Self::Drawn(tasks) => *tasks = at.map(|i| tasks[i]).collect(),
            Self::Like(jobs) => *jobs = at.map(|i| jobs[i]).collect(),
            Self::Traced(trace) => *trace = Arc::new(trace.of(chains)),
            Self::Staged(stages) => stages.keep(chains),
        }
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

impl Drawn {
    /// The work of a copy on a healthy core: a pure function of the seed and the copy's ids.
    pub(super) fn work(&self, copy: CopyId) -> Span {
        match self.demand(copy.task.job) {
            Some(demand) => demand.copy(copy.task.index, copy.attempt),
            None => self.own(copy.task),
        }
    }

    /// The work of a job that follows a distribution.
    fn demand(&self, job: JobId) -> Option<JobDemand<'_>> {
        match (&self.shapes, &self.demand) {
            (Shapes::Staged(stages), _) => Some(stages.demand(job)),
            (_, Some(demand)) => Some(demand.of_job(job, None)),
            (_, None) => None,
        }
    }

    pub(super) const fn stages(&self) -> Option<&Stages> {
        if let Shapes::Staged(stages) = &self.shapes { Some(stages) } else { None }
    }

    /// The work of the job's longest task, attempt 0 of each.
    pub(super) fn longest(&self, job: JobId) -> Span {
        self.attempts(job).max().unwrap_or_default()
    }

    /// The run time of a chain: the work of the longest task of each of its stages.
    pub(super) fn run(&self, chain: u32) -> Span {
        self.shapes.jobs_of(chain).fold(Span::ZERO, |sum, job| sum + self.longest(JobId(job)))
    }

    /// The work of all tasks of a chain, attempt 0 of each, core-seconds.
    pub(super) fn total_work(&self, chain: u32) -> f64 {
        self.shapes.jobs_of(chain).flat_map(|job| self.attempts(JobId(job))).map(Span::as_secs_f64).sum()
    }

    pub(super) fn attempts(&self, job: JobId) -> impl Iterator<Item = Span> + '_ {
        (0..self.shapes.tasks(job)).map(move |index| self.work(job.task(index).copy(0)))
    }

    /// The work that a trace or a generator gives a task.
    fn own(&self, task: TaskId) -> Span {
        if self.gang { self.exact_mean(task.job) } else { self.stated(task) }
    }

    fn stated(&self, task: TaskId) -> Span {
        match &self.shapes {
            Shapes::Like(jobs) => {
                let address = self.addresses.work.at(u64::from(task.job.0)).at(u64::from(task.index));
                Span::from_secs_f64(duration(f64::from(jobs[task.job.index()].mean), &mut address.draw()))
            }
            Shapes::Traced(trace) => trace.duration(task),
            Shapes::Drawn(_) | Shapes::Staged(_) => {
                unreachable!("drawn jobs have a distribution of demand; the plan refuses others")
            }
        }
    }

    /// The client that a chain arrives at, of `schedulers` clients.
    pub(super) fn home(&self, chain: u32, schedulers: u32) -> u32 {
        (self.addresses.home.at(u64::from(chain)).unit() * f64::from(schedulers)) as u32
    }

    /// Work of a task as far as it is known before a copy of it runs.
    fn exact(&self, task: TaskId) -> Span {
        self.demand(task.job).map_or_else(|| self.own(task), |demand| demand.exact(task.index))
    }

    /// Mean of the exact estimates of a job's tasks.
    fn exact_mean(&self, job: JobId) -> Span {
        let demand = self.demand(job);
        if let Some(demand) = demand.filter(JobDemand::homogeneous) {
            return demand.exact(0);
        }
        self.means.get(job, || {
            let tasks = self.shapes.tasks(job);
            let exact =
                |index| demand.map_or_else(|| self.stated(job.task(index)), |demand| demand.exact(index));
            let sum: u128 = (0..tasks).map(|index| u128::from(exact(index).0)).sum();
            Span(((sum + u128::from(tasks) / 2) / u128::from(tasks)) as u64)
        })
    }

    /// The mean that a trace states, else the mean of the exact estimates.
    fn mean(&self, job: JobId) -> Span {
        match (&self.demand, &self.shapes) {
            (None, Shapes::Traced(trace)) if !self.gang => trace.jobs()[job.index()].mean,
            _ => self.exact_mean(job),
        }
    }

    /// The factor of the estimation error of a job with all its stages.
    fn factor(&self, job: JobId, error: &DistributionSpec<f64>) -> f64 {
        let chain = self.stages().map_or(job.0, |stages| stages.chain(job));
        error.sample(&mut self.addresses.estimate.at(u64::from(chain)).draw())
    }

    /// The value of a job's feature, zero if it is unknown.
    pub(super) fn feature(&self, job: JobId, feature: Feature) -> u32 {
        match &self.shapes {
            Shapes::Traced(trace) => trace.feature(job, feature),
            Shapes::Staged(stages) => stages.feature(job, feature),
            Shapes::Drawn(_) | Shapes::Like(_) if feature == Feature::Size => self.shapes.tasks(job),
            Shapes::Drawn(_) | Shapes::Like(_) => 0,
        }
    }

    /// Request of each task of a job as stated by a trace: CPU in cores, and memory in GiB.
    pub(super) fn requested(&self, job: JobId) -> [Option<f64>; 2] {
        let Shapes::Traced(trace) = &self.shapes else { return [None; 2] };
        if !trace.counts_tasks() {
            return [None; 2];
        }
        let tasks = f64::from(trace.jobs()[job.index()].tasks.max(1));
        [trace.cores(job), trace.memory(job)].map(|all| all.map(|all| f64::from(all) / tasks))
    }

    /// The estimate of a task's work.
    pub(super) fn estimate(&self, task: TaskId) -> Span {
        self.rounded(match &self.estimate {
            Estimate::Exact => self.exact(task),
            Estimate::Mean => self.mean(task.job),
            Estimate::Error(error) => {
                let right =
                    if self.demand(task.job).is_some() { self.exact(task) } else { self.mean(task.job) };
                right.scale(self.factor(task.job, error))
            }
        })
    }

    /// Mean of the estimates of a job's tasks.
    pub(super) fn job_estimate(&self, job: JobId) -> Span {
        self.rounded(match &self.estimate {
            Estimate::Exact => self.exact_mean(job),
            Estimate::Mean => self.mean(job),
            Estimate::Error(error) => self.mean(job).scale(self.factor(job, error)),
        })
    }

    /// An estimate, rounded down to a multiple of its unit.
    fn rounded(&self, estimate: Span) -> Span {
        Span(estimate.0 - estimate.0.checked_rem(self.estimate_unit.0).unwrap_or(0))
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
