//! The characteristics of a trace, with the outcomes of its jobs (Park's thesis, section 3.5), and a comparison of
//! weeks and months with the whole trace (section 3.7).

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use volary_actors::base::{JobId, Span};
use volary_engine::workload::{Outcome, Trace};

use super::arrivals::Arrivals;
use super::quantiles::{Quantiles, share};

/// The characteristics of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Description {
    pub file: PathBuf,
    pub jobs: usize,
    /// Number of tasks of all jobs.
    pub tasks: u64,
    /// Whether the trace states numbers of tasks; if not, each job counts as one task.
    pub counts_tasks: bool,
    /// Work of all tasks, core-seconds; without tasks, the run time of all jobs.
    pub work_s: f64,
    /// Mean number of cores that the work keeps busy: work over the time from the first to the last arrival. Divided by
    /// the cores of a cluster, it is the load offered to that cluster.
    pub offered_cores: f64,
    /// Number of tasks per job.
    pub fan_out: Quantiles,
    /// Number of cores per job, if the trace states it.
    pub cores: Option<Quantiles>,
    /// Number of GPUs per job, over the jobs that have some; absent if the trace states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Quantiles>,
    /// Number of stages on the longest path of dependent stages, over the jobs whose tasks wait for others; absent if
    /// there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<Quantiles>,
    /// Critical path of these jobs: the largest sum of longest tasks along a path of dependent stages, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path_s: Option<Quantiles>,
    /// Share of the jobs whose tasks wait for others.
    pub dependent: f64,
    /// Mean task duration of jobs, as stated in the trace, s.
    pub mean_s: Quantiles,
    /// Duration of the longest task of each job, s.
    pub duration_s: Quantiles,
    /// Durations of tasks, s.
    pub task_s: Quantiles,
    /// Work of jobs, core-seconds.
    pub job_work_s: Quantiles,
    /// Share of the jobs that have one task.
    pub single_task: f64,
    /// Share of the jobs that last less than 12 minutes.
    pub under_12min: f64,
    /// Share of the jobs that last less than 2 hours.
    pub under_2h: f64,
    pub arrivals: Arrivals,
    /// Differences between the tasks of a job, if enough jobs have durations per task.
    pub within_job: Option<WithinJob>,
    /// Differences between the jobs of the same user, if the trace names users.
    pub users: Option<Users>,
    /// Differences between the jobs of the same size, if the trace states sizes.
    pub sizes: Option<Sizes>,
    /// Outcomes of jobs, if the trace states them.
    pub outcomes: Option<Outcomes>,
    /// Error of a job's mean duration as an estimate of each of its tasks: |duration / mean − 1|, if tasks have
    /// durations of their own (Kairos, Fig. 1).
    pub mean_error: Option<Quantiles>,
    /// Weeks compared with the whole trace; empty if the trace has less than two.
    pub weeks: Vec<Period>,
    /// Months of 29 days compared with the whole trace; empty if the trace has less than two.
    pub months: Vec<Period>,
    /// Short and long jobs, if a boundary is known.
    pub classes: Option<Classes>,
    /// The published trace with which this trace is compared.
    pub reference: Option<Reference>,
    /// Measured and published values.
    pub comparison: Vec<PublishedValue>,
    /// Notes, such as the number of rows skipped.
    pub notes: Vec<String>,
}

impl Description {
    /// Whether the trace states the size of jobs, in cores or in tasks.
    pub fn has_sizes(&self) -> bool {
        self.counts_tasks || self.cores.is_some()
    }
}

/// Spread of the durations within jobs of at least fifteen tasks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WithinJob {
    /// Number of jobs of at least fifteen tasks.
    pub jobs: usize,
    /// Coefficient of variation of the durations of a job's tasks.
    pub cov: Quantiles,
    /// Standard deviation over the square root of the mean, √s: 1.41 for Gaussian tasks with a variance of twice their
    /// mean, as in the Yahoo trace.
    pub std_over_root_mean: Quantiles,
}

/// Spread between the jobs of the same user, over users with at least two jobs (thesis, Fig. 3.7 and 4.2b).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Users {
    /// Number of users with at least two jobs.
    pub users: usize,
    /// Coefficient of variation of a user's fan-outs.
    pub fan_out_cov: Quantiles,
    /// Coefficient of variation of a user's durations.
    pub duration_cov: Quantiles,
    /// Share of the users with at least three jobs whose durations have a coefficient of variation above 1.
    pub highly_variable: f64,
    /// Share of the jobs whose cores, or tasks, are within a factor of two of their user's mean.
    pub near_mean_size: f64,
}

/// Spread between the jobs of the same size, over sizes with at least two jobs (thesis, Fig. 4.2c).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sizes {
    /// Number of sizes with at least two jobs. A size is a number of cores, or of tasks if the trace has no cores.
    pub sizes: usize,
    /// Coefficient of variation of the durations of a size's jobs.
    pub duration_cov: Quantiles,
    /// Share of the sizes whose durations have a coefficient of variation above 1.
    pub highly_variable: f64,
}

/// Short and long jobs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Classes {
    /// Boundary between short and long jobs: jobs whose mean duration is at or above it are long.
    pub cutoff: Span,
    /// Share of the jobs that are long.
    pub long_jobs: f64,
    /// Share of the tasks that belong to long jobs.
    pub long_tasks: f64,
    /// Share of the work that belongs to long jobs.
    pub long_work: f64,
}

/// A trace about which papers state facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Yahoo, as the Hawk, Eagle, Kairos, Pigeon and Murmuration papers use it.
    Yahoo,
    /// Cloudera-c, as the Hawk, Eagle, Kairos, Pigeon and Murmuration papers use it.
    Cloudera,
    /// Google 2011, whole or as the papers on Hawk, Eagle and their successors use it.
    Google,
    /// Alibaba 2018 batch jobs, as the Murmuration paper uses them.
    Alibaba,
    /// TwoSigma's clusters, from Park's thesis.
    TwoSigma,
    /// LANL's Mustang, from Park's thesis.
    Mustang,
    /// LANL's OpenTrinity, from Park's thesis.
    OpenTrinity,
}

/// A measured and a published value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PublishedValue {
    /// The compared quantity.
    pub what: &'static str,
    /// Value of the described trace.
    pub measured: f64,
    /// The published value.
    pub published: f64,
    /// The publication that states the value.
    pub source: &'static str,
}

/// Outcomes of the jobs of a trace, if it states them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcomes {
    /// Share of each outcome (Fig. 3.7).
    pub shares: Vec<OutcomeShare>,
    /// Share of the jobs that were successful. A job that ended at its time limit counts as successful, since it has
    /// done useful work (section 3.5).
    pub successful: f64,
    /// Share of the CPU time that successful jobs took.
    pub successful_time: f64,
    /// Cores of successful jobs, or their tasks if the trace has no cores (Fig. 3.8).
    pub successful_size: Quantiles,
    /// Cores of all other jobs, or their tasks if the trace has no cores.
    pub unsuccessful_size: Quantiles,
    /// Share of successful jobs among the tenth of the jobs with the most CPU time.
    pub successful_of_longest: f64,
    /// Successful jobs by the CPU time that they took (Fig. 3.9).
    pub by_cpu_hours: Vec<SuccessByHours>,
}

/// The share of an outcome.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct OutcomeShare {
    pub outcome: &'static str,
    /// Share of the jobs.
    pub jobs: f64,
    /// Share of the CPU time: run time times cores, or times tasks.
    pub cpu_time: f64,
}

/// Group of jobs that took about the same CPU time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SuccessByHours {
    /// Minimum CPU-hours of the group, a power of ten; zero for the first group.
    pub from_h: f64,
    pub jobs: u64,
    /// Share of the jobs of the group that were successful.
    pub successful: f64,
}

/// A job that has ended: its outcome, its size, its CPU time in s.
struct Ended {
    outcome: Outcome,
    size: f64,
    cpu_s: f64,
}

impl Ended {
    const fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Finished | Outcome::TimedOut)
    }
}

/// Exponents of the powers of ten of CPU-hours at which groups begin.
const DECADES: std::ops::RangeInclusive<i32> = -3..=4;

impl Outcomes {
    pub(super) fn of(trace: &Trace, works: &[f64]) -> Option<Self> {
        let ended = |(job, &work): (JobId, &f64)| {
            let tasks = f64::from(trace.jobs()[job.index()].tasks);
            let cores = trace.cores(job).map(f64::from);
            // `work` assumes one core per task.
            let cpu_s = cores.map_or(work, |cores| work * cores / tasks);
            Some(Ended { outcome: trace.outcome(job)?, size: cores.unwrap_or(tasks), cpu_s })
        };
        let jobs: Vec<Ended> = (0..).map(JobId).zip(works).filter_map(ended).collect();
        let size = |success| {
            let those = jobs.iter().filter(|job| job.is_success() == success);
            Quantiles::of(those.map(|job| job.size))
        };
        (!jobs.is_empty()).then(|| Self {
            shares: shares(&jobs),
            successful: share(jobs.iter(), |job| job.is_success()),
            successful_time: time_share(&jobs, Ended::is_success),
            successful_size: size(true),
            unsuccessful_size: size(false),
            successful_of_longest: successful_of_longest(&jobs),
            by_cpu_hours: by_cpu_hours(&jobs),
        })
    }

    /// Shares of the jobs, and of the CPU time, that belong to unsuccessful jobs.
    pub fn unsuccessful(&self) -> (f64, f64) {
        (1.0 - self.successful, 1.0 - self.successful_time)
    }
}

/// Share of the CPU time that belongs to the jobs for which `so` holds; all of it if no job took CPU time.
fn time_share(jobs: &[Ended], so: impl Fn(&Ended) -> bool) -> f64 {
    let all: f64 = jobs.iter().map(|job| job.cpu_s).sum();
    let those: f64 = jobs.iter().filter(|job| so(job)).map(|job| job.cpu_s).sum();
    if all > 0.0 { those / all } else { 1.0 }
}

fn shares(jobs: &[Ended]) -> Vec<OutcomeShare> {
    let of = |outcome: Outcome| {
        let count = share(jobs.iter(), |job| job.outcome == outcome);
        let cpu_time = time_share(jobs, |job| job.outcome == outcome);
        (count > 0.0).then_some(OutcomeShare { outcome: outcome.name(), jobs: count, cpu_time })
    };
    Outcome::ALL.into_iter().filter_map(of).collect()
}

fn successful_of_longest(jobs: &[Ended]) -> f64 {
    let p90 = Quantiles::of(jobs.iter().map(|job| job.cpu_s)).p90;
    share(jobs.iter().filter(|job| job.cpu_s >= p90), |job| job.is_success())
}

fn by_cpu_hours(jobs: &[Ended]) -> Vec<SuccessByHours> {
    let starts: Vec<f64> = std::iter::once(0.0).chain(DECADES.map(|power| 10f64.powi(power))).collect();
    let group = |(at, &from_h): (usize, &f64)| {
        let until = starts.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let those = || jobs.iter().filter(move |job| (from_h..until).contains(&(job.cpu_s / 3600.0)));
        let count = those().count() as u64;
        let successful = share(those(), |job| job.is_success());
        (count > 0).then_some(SuccessByHours { from_h, jobs: count, successful })
    };
    starts.iter().enumerate().filter_map(group).collect()
}

/// A period of a trace, with averages relative to those of the whole trace (Fig. 3.11).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Period {
    /// Number of the period, from one.
    pub number: u32,
    pub jobs: u64,
    /// Mean gap between arrivals relative to that of the trace.
    pub gap: f64,
    /// Mean duration of jobs relative to that of the trace.
    pub duration: f64,
}

const DAY: u64 = Span::from_secs(86_400).0;
/// Limit on the number of periods: a single wrong arrival must not make millions.
const MOST: usize = 5_000;

/// Divides a trace into periods of `days` days from its first arrival on. A last incomplete period is left out; a trace
/// of fewer than two periods gives none. `durations` are the durations of the jobs, s.
pub(super) fn periods(trace: &Trace, durations: &[f64], days: u64) -> Vec<Period> {
    let (jobs, durations) = (&trace.jobs()[trace.early()..], &durations[trace.early()..]);
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return Vec::new() };
    let span = last.arrival.since(first.arrival).0;
    let count = (span / (days * DAY)) as usize;
    if !(2..=MOST).contains(&count) {
        return Vec::new();
    }
    let mut parts = vec![(0u64, 0.0); count];
    for (job, duration) in jobs.iter().zip(durations) {
        let at = (job.arrival.since(first.arrival).0 / (days * DAY)) as usize;
        if let Some((jobs, sum)) = parts.get_mut(at) {
            *jobs += 1;
            *sum += duration;
        }
    }
    let gap = span as f64 / (jobs.len() - 1) as f64;
    let mean = durations.iter().sum::<f64>() / durations.len() as f64;
    let part = |(number, (jobs, sum)): (u32, (u64, f64))| Period {
        number,
        jobs,
        gap: (days * DAY) as f64 / jobs as f64 / gap,
        duration: if mean > 0.0 { sum / jobs as f64 / mean } else { 0.0 },
    };
    (1..).zip(parts).filter(|(_, (jobs, _))| *jobs > 0).map(part).collect()
}
