//! The jobs that a workload draws: shapes, work and estimates, each a pure function of the experiment and seed.
//!
//! Jobs and chains have the numbers under which they are drawn. The first job of a run may have a number above 0.
//!
//! The numbers of the generators were measured on the published traces themselves. In both, the gaps between
//! arrivals are almost periodic, a job's fan-out is independent of its mean duration within its class (except for
//! long Cloudera jobs), and the durations within a job are Gaussian with variance 2 × mean (in s²), cut at zero: the
//! tasks of a long job are nearly equal, and the tasks of a short job vary.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt;
use volary_actors::base::distribution::{DistributionSpec, Normal};
use volary_actors::base::{Address, CopyId, Draw, Feature, JobId, Purpose, Span, TaskId};

use super::config::{Estimate, Model};
use super::graph::Staging;
use super::mix::Stages;
use super::trace::Trace;
use super::work::{Demand, JobDemand};

/// All jobs of a workload.
///
/// Drawn jobs cost 12 to 16 bytes each and nothing per task; jobs of a trace share the parsed trace. A mean over the
/// tasks of a job is computed on the first query.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) shapes: Shapes,
    pub(super) demand: Option<Demand>,
    pub(super) estimate: Estimate,
    /// Unit to which estimates are rounded down; zero if estimates are not rounded.
    pub(super) estimate_unit: Span,
    /// Requested run time of a job as a multiple of its longest task; `None` for the time that the trace states.
    pub(super) requested: Option<DistributionSpec<f64>>,
    /// Whether all tasks of a job have equal work, the mean of the work that its trace or generator states.
    pub(super) gang: bool,
    pub(super) addresses: Addresses,
    pub(super) means: Means,
}

/// Id that narrows a job's address to the draw of its requested time.
const REQUESTED: u64 = 1;

/// Shapes of jobs, apart from their arrivals.
#[derive(Debug)]
pub(super) enum Shapes {
    /// Numbers of tasks, drawn from a distribution.
    Drawn(Vec<u32>),
    /// Jobs of a generator.
    Like(Vec<LikeJob>),
    /// Jobs of a trace, and their stages if dependencies apply and some job has any.
    Traced(Arc<Trace>, Option<Staging>),
    /// Stages of the jobs of a mix.
    Staged(Stages),
}

impl Shapes {
    /// Number of jobs of the catalog.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Drawn(tasks) => tasks.len(),
            Self::Like(jobs) => jobs.len(),
            Self::Traced(trace, staging) => staging.as_ref().map_or_else(|| trace.jobs().len(), Staging::len),
            Self::Staged(stages) => stages.staging.len(),
        }
    }

    /// The stages of chains, if jobs have stages.
    pub(super) const fn staging(&self) -> Option<&Staging> {
        match self {
            Self::Traced(_, staging) => staging.as_ref(),
            Self::Staged(stages) => Some(&stages.staging),
            Self::Drawn(_) | Self::Like(_) => None,
        }
    }

    /// Number of chains.
    pub(super) fn chains(&self) -> u32 {
        self.staging().map_or_else(|| self.len() as u32, Staging::chains)
    }

    /// The chain that a job belongs to.
    pub(super) fn chain(&self, job: JobId) -> u32 {
        self.staging().map_or(job.0, |staging| staging.chain(job))
    }

    /// Ids of the jobs of a chain. A job follows the jobs that it waits for.
    pub(super) fn jobs_of(&self, chain: u32) -> Range<u32> {
        self.staging().map_or(chain..chain + 1, |staging| staging.stages_of(chain))
    }

    /// The task of the trace that corresponds to a task of a job.
    fn of_trace(&self, task: TaskId) -> TaskId {
        let staged = |staging: &Staging| {
            JobId(staging.chain(task.job)).task(staging.tasks_before(task.job) + task.index)
        };
        self.staging().map_or(task, staged)
    }

    /// Number of tasks of a job.
    pub(super) fn tasks(&self, job: JobId) -> u32 {
        match self {
            Self::Drawn(tasks) => tasks[job.index()],
            Self::Like(jobs) => jobs[job.index()].tasks,
            Self::Traced(_, Some(staging)) => staging.tasks(job),
            Self::Traced(trace, None) => trace.jobs()[job.index()].tasks,
            Self::Staged(stages) => stages.staging.tasks(job),
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
            Self::Traced(trace, staging) => {
                *trace = Arc::new(trace.of(chains));
                staging.iter_mut().for_each(|staging| staging.keep(chains));
            }
            Self::Staged(stages) => stages.keep(chains),
        }
    }
}

/// Addresses of the draws of a job's work, client and estimates.
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

    /// The distribution of a job's work; `None` if a trace or a generator states the work.
    fn demand(&self, job: JobId) -> Option<JobDemand<'_>> {
        match (&self.shapes, &self.demand) {
            (Shapes::Staged(stages), _) => Some(stages.demand(job)),
            (_, Some(demand)) => Some(demand.for_job(job, None)),
            (_, None) => None,
        }
    }

    /// The work of the job's longest task, counting attempt 0 of each task.
    pub(super) fn longest(&self, job: JobId) -> Span {
        self.attempts(job).max().unwrap_or_default()
    }

    /// The run time of a chain on enough healthy cores: its critical path, on which each stage takes the work of its
    /// longest task.
    pub(super) fn run(&self, chain: u32) -> Span {
        let first = self.shapes.jobs_of(chain).start;
        let time = |stage| self.longest(JobId(first + stage));
        self.shapes.staging().map_or_else(|| time(0), |staging| staging.graph(chain).critical_path(time))
    }

    /// The work of all tasks of a chain, counting attempt 0 of each task, core-seconds.
    pub(super) fn total_work(&self, chain: u32) -> f64 {
        self.shapes.jobs_of(chain).flat_map(|job| self.attempts(JobId(job))).map(Span::as_secs_f64).sum()
    }

    pub(super) fn attempts(&self, job: JobId) -> impl Iterator<Item = Span> + '_ {
        let work = move |index| self.work(job.task(index).copy(0));
        let uniform = self.demand(job).is_some_and(|demand| demand.is_uniform());
        let all = uniform.then(|| work(0));
        (0..self.shapes.tasks(job)).map(move |index| all.unwrap_or_else(|| work(index)))
    }

    /// The work that a trace or a generator states for a task; for a gang, the mean over its tasks.
    fn own(&self, task: TaskId) -> Span {
        if self.gang { self.exact_mean(task.job) } else { self.stated(task) }
    }

    fn stated(&self, task: TaskId) -> Span {
        match &self.shapes {
            Shapes::Like(jobs) => {
                let address = self.addresses.work.at(u64::from(task.job.0)).at(u64::from(task.index));
                Span::from_secs_f64(duration(f64::from(jobs[task.job.index()].mean), &mut address.draw()))
            }
            Shapes::Traced(trace, _) => trace.duration(self.shapes.of_trace(task)),
            Shapes::Drawn(_) | Shapes::Staged(_) => {
                unreachable!("drawn jobs have a distribution of demand; the plan refuses others")
            }
        }
    }

    /// The client at which a chain arrives. There is one client per scheduler.
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
            (None, Shapes::Traced(trace, _)) if !self.gang && self.is_whole(job) => {
                trace.jobs()[self.shapes.chain(job) as usize].mean
            }
            _ => self.exact_mean(job),
        }
    }

    /// Whether a job is the only stage of its chain.
    fn is_whole(&self, job: JobId) -> bool {
        self.shapes.jobs_of(self.shapes.chain(job)).len() == 1
    }

    /// The factor of the estimation error, which is the same for all stages of a job.
    fn factor(&self, job: JobId, error: &DistributionSpec<f64>) -> f64 {
        error.sample(&mut self.misjudged(job).draw())
    }

    /// The root of the draws of estimates, which is the same for all stages of a job.
    fn misjudged(&self, job: JobId) -> Address {
        self.addresses.estimate.at(u64::from(self.shapes.chain(job)))
    }

    /// The run time that the job's user requested, if it is known.
    pub(super) fn requested_time(&self, job: JobId) -> Option<Span> {
        match (&self.requested, &self.shapes) {
            (Some(factor), _) => {
                let factor = factor.sample(&mut self.misjudged(job).at(REQUESTED).draw());
                Some(self.longest(job).scale(factor))
            }
            (None, Shapes::Traced(trace, _)) => trace.requested(JobId(self.shapes.chain(job))),
            (None, _) => None,
        }
    }

    /// The value of a job's feature, zero if it is unknown.
    pub(super) fn feature(&self, job: JobId, feature: Feature) -> u32 {
        match &self.shapes {
            Shapes::Traced(trace, Some(_)) if feature == Feature::Size && !trace.states(feature) => {
                if trace.counts_tasks() { self.shapes.tasks(job) } else { 0 }
            }
            Shapes::Traced(trace, _) => trace.feature(JobId(self.shapes.chain(job)), feature),
            Shapes::Staged(stages) => stages.feature(job, feature),
            Shapes::Drawn(_) | Shapes::Like(_) if feature == Feature::Size => self.shapes.tasks(job),
            Shapes::Drawn(_) | Shapes::Like(_) => 0,
        }
    }

    /// Request of each task of a job as stated by a trace: CPU in cores, and memory in GiB.
    pub(super) fn requested(&self, job: JobId) -> [Option<f64>; 2] {
        let Shapes::Traced(trace, _) = &self.shapes else { return [None; 2] };
        let job = JobId(self.shapes.chain(job));
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

    /// The estimate that decides the class of all stages of a job: the estimate of the mean over all its tasks.
    pub(super) fn chain_estimate(&self, job: JobId) -> Span {
        let Shapes::Traced(trace, Some(staging)) = &self.shapes else { return self.job_estimate(job) };
        let chain = staging.chain(job);
        let mean = if self.demand.is_some() || self.gang {
            let stages = || staging.stages_of(chain).map(JobId);
            let tasks: u128 = stages().map(|stage| u128::from(self.shapes.tasks(stage))).sum();
            let work = stages()
                .map(|stage| u128::from(self.exact_mean(stage).0) * u128::from(self.shapes.tasks(stage)));
            Span((work.sum::<u128>() / tasks) as u64)
        } else {
            trace.jobs()[chain as usize].mean
        };
        self.rounded(match &self.estimate {
            Estimate::Exact | Estimate::Mean => mean,
            Estimate::Error(error) => mean.scale(self.factor(job, error)),
        })
    }

    /// An estimate, rounded down to a multiple of its unit.
    fn rounded(&self, estimate: Span) -> Span {
        Span(estimate.0 - estimate.0.checked_rem(self.estimate_unit.0).unwrap_or(0))
    }
}

/// Means over the tasks of jobs, computed on the first query. Concurrent writers of an entry store the same value.
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

/// Published figures of a trace.
pub(super) struct Published {
    /// Number of jobs.
    pub(super) jobs: u32,
    /// Gap between arrivals: almost constant.
    pub(super) gap: DistributionSpec<Span>,
    /// Boundary of the mean duration between short and long jobs (Eagle's published settings).
    pub(super) cutoff: Span,
    /// Share of short jobs.
    short: f64,
    /// Mean durations of short jobs are exponential with this scale, cut off at the boundary, s.
    short_scale: f64,
    /// Quantiles of the mean durations of long jobs: (probability, s).
    long_means: &'static [(f64, f64)],
}

/// A job's fan-out, and the mean of its tasks' durations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LikeJob {
    pub(super) tasks: u32,
    /// Mean duration, s.
    pub(super) mean: f32,
}

const YAHOO_LONG: [(f64, f64); 17] = [
    (0.0, 90.581_1),
    (0.05, 101.7),
    (0.1, 121.2),
    (0.2, 209.6),
    (0.25, 281.5),
    (0.3, 345.6),
    (0.4, 490.1),
    (0.5, 668.4),
    (0.6, 896.4),
    (0.7, 1193.5),
    (0.75, 1373.7),
    (0.8, 1648.8),
    (0.9, 2421.2),
    (0.95, 3238.5),
    (0.99, 5659.3),
    (0.999, 17_246.0),
    (1.0, 20_513.0),
];

const CLOUDERA_LONG: [(f64, f64); 17] = [
    (0.0, 272.783),
    (0.05, 286.6),
    (0.1, 304.0),
    (0.2, 339.5),
    (0.25, 370.2),
    (0.3, 408.5),
    (0.4, 541.4),
    (0.5, 762.1),
    (0.6, 1117.6),
    (0.7, 1555.2),
    (0.75, 1898.3),
    (0.8, 2423.2),
    (0.9, 4698.5),
    (0.95, 8200.7),
    (0.99, 15_985.0),
    (0.998, 25_404.0),
    (1.0, 96_821.0),
];

/// Fan-outs of the few short Yahoo jobs that do not follow an exponential distribution.
const YAHOO_WIDE: [(f64, f64); 8] = [
    (0.0, 151.0),
    (0.1, 166.0),
    (0.25, 191.0),
    (0.5, 329.0),
    (0.75, 717.0),
    (0.9, 1028.0),
    (0.95, 1278.0),
    (1.0, 3991.0),
];
const YAHOO_WIDE_SHARE: f64 = 0.0035;

impl Model {
    /// The published figures that the generator follows.
    pub(super) fn published(self) -> Published {
        let gap = |mean: f64, std: f64| {
            DistributionSpec::Normal(Normal {
                mean: Span::from_secs_f64(mean),
                std: Span::from_secs_f64(std),
            })
        };
        match self {
            Self::YahooLike => Published {
                jobs: 24_262,
                gap: gap(7.482, 0.086),
                cutoff: Span(90_581_100_000),
                short: 21_981.0 / 24_262.0,
                short_scale: 20.13,
                long_means: &YAHOO_LONG,
            },
            Self::ClouderaLike => Published {
                jobs: 21_030,
                gap: gap(12.326, 0.11),
                cutoff: Span(272_783_000_000),
                short: 0.949,
                short_scale: 65.6,
                long_means: &CLOUDERA_LONG,
            },
        }
    }

    /// Draws one job.
    pub(super) fn shape(self, facts: &Published, draw: &mut Draw) -> LikeJob {
        let short = unit(draw) < facts.short;
        let mean = if short {
            cut_exponential(facts.short_scale, facts.cutoff.as_secs_f64(), unit(draw))
        } else {
            quantile(facts.long_means, unit(draw))
        };
        let tasks = match (self, short) {
            (Self::YahooLike, true) if unit(draw) < YAHOO_WIDE_SHARE => quantile(&YAHOO_WIDE, unit(draw)),
            (Self::YahooLike, true) => exponential(20.8, draw),
            // Two populations: jobs of a dozen tasks, and jobs of hundreds.
            (Self::YahooLike, false) if unit(draw) < 0.62 => exponential(14.5, draw),
            (Self::YahooLike, false) => exponential(500.0, draw),
            (Self::ClouderaLike, true) => exponential(171.0, draw),
            // On average 2,213 tasks over the means of long jobs above.
            (Self::ClouderaLike, false) => exponential(12_097.0 * mean.powf(-0.252), draw),
        };
        LikeJob { tasks: (tasks.ceil() as u32).max(1), mean: mean as f32 }
    }
}

/// The duration of one task of a job with this mean, s: Gaussian of variance 2 × mean, above zero.
pub(super) fn duration(mean: f64, draw: &mut Draw) -> f64 {
    let distribution = DistributionSpec::Normal(Normal { mean, std: (2.0 * mean).sqrt() });
    // At least half of the draws are above zero, so 64 failures in a row imply a mean of zero.
    (0..64).map(|_| distribution.sample(draw)).find(|&x| x > 0.0).unwrap_or(mean)
}

fn unit(draw: &mut Draw) -> f64 {
    draw.random::<f64>()
}

fn exponential(mean: f64, draw: &mut Draw) -> f64 {
    -mean * (-unit(draw)).ln_1p()
}

/// The `u`-quantile of an exponential of this scale, conditional on being below `bound`.
fn cut_exponential(scale: f64, bound: f64, u: f64) -> f64 {
    -scale * (u * (-bound / scale).exp_m1()).ln_1p()
}

/// The `u`-quantile of a distribution known by some of its quantiles, interpolated in the logarithm.
fn quantile(known: &[(f64, f64)], u: f64) -> f64 {
    let above = known.partition_point(|&(p, _)| p <= u).clamp(1, known.len() - 1);
    let ((p0, x0), (p1, x1)) = (known[above - 1], known[above]);
    x0 * (x1 / x0).powf((u - p0) / (p1 - p0))
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{Address, Purpose};

    use super::*;

    fn jobs(model: Model, n: u64) -> Vec<LikeJob> {
        let facts = model.published();
        let base = Address::new(5, Purpose::Shape);
        (0..n).map(|job| model.shape(&facts, &mut base.at(job).draw())).collect()
    }

    fn percentile<T: PartialOrd + Copy>(values: impl Iterator<Item = T>, p: f64) -> T {
        let mut values: Vec<T> = values.collect();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap());
        values[((values.len() - 1) as f64 * p).round() as usize]
    }

    fn close(what: &str, got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance * want, "{what}: {got}, published {want}");
    }

    #[test]
    fn yahoo_like_jobs_have_the_published_statistics() {
        let jobs = jobs(Model::YahooLike, 200_000);
        let n = jobs.len() as f64;
        let cutoff = 90.5811f32;
        let (short, long): (Vec<LikeJob>, Vec<LikeJob>) = jobs.iter().partition(|job| job.mean < cutoff);
        close("long jobs", long.len() as f64 / n, 0.094, 0.03);
        close("fan-out p50", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.5)), 15.0, 0.07);
        close("fan-out p99", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.99)), 636.0, 0.15);
        close("fan-out mean", jobs.iter().map(|j| f64::from(j.tasks)).sum::<f64>() / n, 39.91, 0.03);
        close("mean p50", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.5)), 15.67, 0.03);
        close("mean p99", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.99)), 2410.0, 0.06);
        close("mean of means", jobs.iter().map(|j| f64::from(j.mean)).sum::<f64>() / n, 118.78, 0.03);
        let single = short.iter().filter(|j| j.tasks == 1).count() as f64 / short.len() as f64;
        close("short jobs of one task", single, 0.048, 0.05);
        let wide = short.iter().filter(|j| j.tasks > 150).count() as f64 / short.len() as f64;
        close("short jobs above 150 tasks", wide, 0.0041, 0.15);
        let tasks = |jobs: &[LikeJob]| jobs.iter().map(|j| f64::from(j.tasks)).sum::<f64>();
        let work =
            |jobs: &[LikeJob]| jobs.iter().map(|j| f64::from(j.tasks) * f64::from(j.mean)).sum::<f64>();
        close("short tasks", tasks(&short) / tasks(&jobs), 0.53, 0.03);
        close("short work", work(&short) / work(&jobs), 0.018, 0.12);
        for (p, want) in [(0.1, 121.0), (0.25, 282.0), (0.5, 668.0), (0.75, 1374.0), (0.9, 2421.0)] {
            close("long mean", f64::from(percentile(long.iter().map(|j| j.mean), p)), want, 0.05);
        }
        for (p, want) in [(0.5, 21.0), (0.75, 168.0), (0.9, 636.0), (0.95, 1022.0)] {
            close("long fan-out", f64::from(percentile(long.iter().map(|j| j.tasks), p)), want, 0.25);
        }
    }

    #[test]
    fn cloudera_like_jobs_have_the_published_statistics() {
        let jobs = jobs(Model::ClouderaLike, 200_000);
        let n = jobs.len() as f64;
        close("fan-out p50", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.5)), 126.0, 0.03);
        close("fan-out p99", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.99)), 3650.0, 0.06);
        close("fan-out mean", jobs.iter().map(|j| f64::from(j.tasks)).sum::<f64>() / n, 272.93, 0.03);
        close("mean p50", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.5)), 48.0, 0.03);
        close("mean p99", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.99)), 2515.0, 0.10);
        close("mean of means", jobs.iter().map(|j| f64::from(j.mean)).sum::<f64>() / n, 162.19, 0.05);
        let long = jobs.iter().filter(|j| j.mean >= 272.783).count() as f64;
        close("long jobs", long / n, 0.051, 0.03);
        let work: f64 = jobs.iter().map(|j| f64::from(j.tasks) * f64::from(j.mean)).sum();
        close("work of 10,000 jobs", work / n * 10_000.0, 1.69e9, 0.05);
    }

    #[test]
    fn durations_have_twice_their_mean_as_variance() {
        let base = Address::new(9, Purpose::Work);
        for mean in [16.0, 200.0, 16_000.0] {
            let n = 50_000u64;
            let draws: Vec<f64> = (0..n).map(|k| duration(mean, &mut base.at(k).draw())).collect();
            let average = draws.iter().sum::<f64>() / n as f64;
            let std = (draws.iter().map(|x| (x - average).powi(2)).sum::<f64>() / n as f64).sqrt();
            close("mean", average, mean, 0.01);
            close("sd / sqrt(mean)", std / mean.sqrt(), std::f64::consts::SQRT_2, 0.02);
            assert!(draws.iter().all(|&x| x > 0.0));
        }
        assert_eq!(duration(0.0, &mut base.draw()), 0.0);
    }
}
