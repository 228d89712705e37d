//! The characteristics of a trace.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use volary_actors::base::Span;

use super::arrivals::Arrivals;
use super::outcomes::Outcomes;
use super::periods::Period;
use super::quantiles::Quantiles;

/// The characteristics of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Description {
    pub file: PathBuf,
    pub jobs: usize,
    /// Number of tasks of all jobs.
    pub tasks: u64,
    /// Whether the trace states numbers of tasks; if not, each job counts as one.
    pub counts_tasks: bool,
    /// Work of all tasks, core-seconds; without tasks, the run time of all jobs.
    pub work_s: f64,
    /// Cores that the work keeps busy from the first to the last arrival: work over span. Divided by the number of a
    /// cluster's cores, it is the load offered to that cluster.
    pub offered_cores: f64,
    /// Tasks per job.
    pub fan_out: Quantiles,
    /// Cores per job, if the trace states them.
    pub cores: Option<Quantiles>,
    /// Mean task duration of jobs, as stated in the trace, s.
    pub mean_s: Quantiles,
    /// Longest task of jobs, s.
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
    /// Differences between the jobs of a user, if the trace names users.
    pub users: Option<Users>,
    /// Differences between the jobs of a size, if there are sizes.
    pub sizes: Option<Sizes>,
    /// Outcomes of jobs, if the trace states them.
    pub outcomes: Option<Outcomes>,
    /// Error of a job's mean duration as an estimate of each of its tasks: |duration / mean − 1|, if tasks have
    /// durations of their own (Kairos, Fig. 1).
    pub mean_error: Option<Quantiles>,
    /// Weeks against the whole trace; empty if it is shorter than two.
    pub weeks: Vec<Period>,
    /// Months of 29 days against the whole trace; empty if it is shorter than two.
    pub months: Vec<Period>,
    /// Short and long jobs, if a boundary is known.
    pub classes: Option<Classes>,
    /// The published trace it is compared with.
    pub reference: Option<Reference>,
    /// Measured and published values.
    pub comparison: Vec<PublishedValue>,
    /// Notes, such as the number of rows skipped.
    pub notes: Vec<String>,
}

impl Description {
    /// Whether the trace states the size of jobs: by cores, or else by tasks.
    pub fn has_sizes(&self) -> bool {
        self.counts_tasks || self.cores.is_some()
    }
}

/// Spread of the durations within jobs of at least fifteen tasks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WithinJob {
    /// Number of such jobs.
    pub jobs: usize,
    /// Coefficient of variation of the durations of a job's tasks.
    pub cov: Quantiles,
    /// Standard deviation over the square root of the mean, √s: 1.41 for Gaussian tasks with a variance of twice their
    /// mean, as in the Yahoo trace.
    pub std_over_root_mean: Quantiles,
}

/// Spread between the jobs of users with at least two jobs (thesis, Fig. 3.7 and 4.2b).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Users {
    /// Number of such users.
    pub users: usize,
    /// Coefficient of variation of a user's fan-outs.
    pub fan_out_cov: Quantiles,
    /// Coefficient of variation of a user's durations.
    pub duration_cov: Quantiles,
    /// Share of the users with at least three jobs whose durations vary more than exponential ones (CoV above 1).
    pub highly_variable: f64,
    /// Share of the jobs whose cores, or tasks, are within a factor of two of their user's mean.
    pub near_mean_size: f64,
}

/// Spread between the jobs of a size with at least two jobs (thesis, Fig. 4.2c).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sizes {
    /// Number of such sizes: cores, or tasks if the trace has no cores.
    pub sizes: usize,
    /// Coefficient of variation of the durations of a size's jobs.
    pub duration_cov: Quantiles,
    /// Share of the sizes whose durations vary more than exponential ones (CoV above 1).
    pub highly_variable: f64,
}

/// Short and long jobs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Classes {
    /// Boundary of the mean duration: jobs at or above it are long.
    pub cutoff: Span,
    /// Share of the jobs that are long.
    pub long_jobs: f64,
    /// Their share of the tasks.
    pub long_tasks: f64,
    /// Their share of the work.
    pub long_work: f64,
}

/// A trace about which facts were published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Yahoo, as the Hawk, Eagle, Kairos, Pigeon and Murmuration papers use it.
    Yahoo,
    /// Cloudera-c, as the same papers use it.
    Cloudera,
    /// Google 2011, whole or as the same papers use it.
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
    /// The trace's value.
    pub measured: f64,
    /// The published value.
    pub published: f64,
    /// The publication.
    pub source: &'static str,
}
