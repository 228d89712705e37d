//! The work of copies under `service.demand` (the four models of the latin-square paper), numbers of tasks that
//! follow a distribution, and shares of jobs as experiment files write them.
//!
//! The draws of a job, of a task and of a copy have addresses of their own, so the work of a copy depends only on the
//! seed and its ids, not on the policy or the order of execution. The uncorrelated heterogeneous model takes the task's
//! draw as a *mean*. If the draw were a rate, as Table IV prints it, the work would have no mean.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use volary_actors::base::{Address, DistributionSpec, JobId, Purpose, Span};

use super::trace::{MOST_TASKS, WorkloadError};

/// Work that follows a distribution.
#[derive(Debug)]
pub(super) struct Demand {
    distribution: DistributionSpec<Span>,
    /// Mean of the distribution, s.
    mean: f64,
    homogeneous: Share,
    correlated: Share,
    work: Address,
    shape: Address,
}

/// The root of the draws of the stages with this number. Jobs without stages draw like first stages. Addresses of jobs
/// are smaller than addresses of stages.
pub(super) const fn draws_of(stage: usize, seed: u64, purpose: Purpose) -> Address {
    let root = Address::new(seed, purpose);
    if stage == 0 { root } else { root.at((1 << 32) + stage as u64) }
}

/// Ids that narrow a job's address of purpose `Shape` to the draws that decide if all copies of a task, or all tasks
/// of the job, have equal work.
const CORRELATED: u64 = 1;
const HOMOGENEOUS: u64 = 2;

impl Demand {
    pub(super) fn new(
        distribution: DistributionSpec<Span>,
        homogeneous: Share,
        correlated: Share,
        seed: u64,
    ) -> Self {
        Self::for_stage(0, distribution, homogeneous, correlated, seed)
    }

    /// The work of the stages with this number in their chains; each number has draws of its own. Jobs are numbered by
    /// chain.
    pub(super) fn for_stage(
        stage: usize,
        distribution: DistributionSpec<Span>,
        homogeneous: Share,
        correlated: Share,
        seed: u64,
    ) -> Self {
        let [work, shape] = [Purpose::Work, Purpose::Shape].map(|draws| draws_of(stage, seed, draws));
        Self { mean: distribution.mean(), distribution, homogeneous, correlated, work, shape }
    }

    /// The work of a job, by the number under which it is drawn; `mean` is the mean of its name, if the name has a
    /// mean.
    pub(super) const fn for_job(&self, job: JobId, mean: Option<Span>) -> JobDemand<'_> {
        JobDemand { demand: self, job, mean }
    }
}

/// Work of the copies of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobDemand<'a> {
    demand: &'a Demand,
    job: JobId,
    /// Mean work of a copy, in place of the mean of the distribution.
    mean: Option<Span>,
}

impl JobDemand<'_> {
    /// The work of a copy.
    pub(super) fn copy(&self, index: u32, attempt: u32) -> Span {
        if self.correlated() {
            return self.exact(index);
        }
        let (distribution, mean) = (&self.demand.distribution, self.demand.mean);
        let task = self.job_address().at(u64::from(index));
        let own = distribution.sample(&mut task.at(u64::from(attempt)).draw());
        if self.homogeneous() {
            return self.about_mean(own);
        }
        let of_task = distribution.sample(&mut task.draw());
        self.about_mean(if mean > 0.0 { of_task.scale(own.as_secs_f64() / mean) } else { Span::ZERO })
    }

    /// Work of a task as far as it is known before a copy of it runs.
    pub(super) fn exact(&self, index: u32) -> Span {
        let (distribution, job) = (&self.demand.distribution, self.job_address());
        match (self.correlated(), self.homogeneous()) {
            (true, true) => self.mean.unwrap_or_else(|| distribution.sample(&mut job.draw())),
            (false, true) => self.mean.unwrap_or_else(|| Span::from_secs_f64(self.demand.mean)),
            (_, false) => self.about_mean(distribution.sample(&mut job.at(u64::from(index)).draw())),
        }
    }

    /// Whether all copies of the job have equal work.
    pub(super) fn is_uniform(&self) -> bool {
        self.demand.distribution.is_constant() || self.correlated() && self.homogeneous()
    }

    /// Whether all tasks of the job have equal work.
    pub(super) fn homogeneous(&self) -> bool {
        self.includes(self.demand.homogeneous, HOMOGENEOUS)
    }

    /// Whether all copies of a task have equal work.
    fn correlated(&self) -> bool {
        self.includes(self.demand.correlated, CORRELATED)
    }

    fn includes(&self, share: Share, what: u64) -> bool {
        // Skips the draw in the common cases.
        share == Share::ALL
            || (share != Share::NONE
                && share.includes(self.demand.shape.at(u64::from(self.job.0)).at(what).unit()))
    }

    fn job_address(&self) -> Address {
        self.demand.work.at(u64::from(self.job.0))
    }

    /// A sample of the distribution, scaled to the mean of the job.
    fn about_mean(&self, sample: Span) -> Span {
        match self.mean {
            None => sample,
            Some(mean) if self.demand.mean > 0.0 => mean.scale(sample.as_secs_f64() / self.demand.mean),
            Some(_) => Span::ZERO,
        }
    }
}

/// Maximum number of jobs of a generated workload: each costs memory, and a larger number is a mistake.
pub(super) const MOST_JOBS: u32 = 100_000_000;

/// Checks a number of jobs.
pub(super) fn check_jobs(section: &str, jobs: u32) -> Result<(), WorkloadError> {
    if (1..=MOST_JOBS).contains(&jobs) {
        return Ok(());
    }
    let why = format!("{jobs} jobs are not between 1 and {MOST_JOBS}; write for example 10_000");
    Err(WorkloadError::config(format!("{section}.jobs"), why))
}

/// Refuses a distribution whose bounds state that jobs have less than one task. Where only the tail of a distribution
/// is below one, samples are raised to one.
pub(super) fn check_tasks(key: &str, distribution: &DistributionSpec<f64>) -> Result<(), WorkloadError> {
    let written: &[f64] = match distribution {
        DistributionSpec::Constant(tasks) => std::slice::from_ref(tasks),
        DistributionSpec::Empirical(observed) => &observed.values,
        DistributionSpec::Uniform(_)
        | DistributionSpec::Normal(_)
        | DistributionSpec::Lognormal(_)
        | DistributionSpec::Exponential(_)
        | DistributionSpec::Gamma(_)
        | DistributionSpec::Erlang(_)
        | DistributionSpec::Pareto(_)
        | DistributionSpec::Weibull(_)
        | DistributionSpec::Hyperexponential(_) => &[],
    };
    let error = |what: f64| {
        let why = format!("a job cannot have {what} tasks; write whole numbers of at least 1");
        Err(WorkloadError::config(key, why))
    };
    if let Some(&part) = written.iter().find(|tasks| tasks.fract() != 0.0) {
        return error(part);
    }
    match distribution.bounds().0.unwrap_or_else(|| distribution.mean()) {
        least if least < 1.0 => error(least),
        _ => Ok(()),
    }
}

/// Checks a distribution of work, `correlated` if the copies of a task are alike.
pub(super) fn check_demand(
    key: String,
    distribution: &DistributionSpec<Span>,
    correlated: bool,
) -> Result<(), WorkloadError> {
    if distribution.mean() == 0.0 {
        let why = "no copy would have any work; write for example { exponential = { mean = \"1s\" } }";
        return Err(WorkloadError::config(key, why));
    }
    if !correlated && !distribution.mean().is_finite() {
        let why = "uncorrelated copies need a distribution with a finite mean; give a pareto a shape above 1";
        return Err(WorkloadError::config(key, why));
    }
    Ok(())
}

/// Number of tasks of a drawn job.
///
/// # Errors
/// When there are more tasks than a run can have; the text names the remedy.
pub(super) fn task_count(
    distribution: &DistributionSpec<f64>,
    job: u32,
    shape: Address,
) -> Result<u32, String> {
    let tasks = distribution.sample(&mut shape.at(u64::from(job)).draw()).round().max(1.0);
    if tasks > f64::from(MOST_TASKS) {
        return Err(format!(
            "job {job} drew {tasks:.0} tasks, more than {MOST_TASKS}; give the distribution a lighter tail"
        ));
    }
    Ok(tasks as u32)
}

/// A share, mostly of the jobs: `true` for all, `false` for none, or a number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Share(f64);

impl Share {
    /// Share that includes all jobs.
    pub const ALL: Self = Self(1.0);
    /// Share that includes no job.
    pub const NONE: Self = Self(0.0);

    /// The share `part`; `None` if it is not in [0, 1].
    pub fn new(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then_some(Self(part))
    }

    /// The share as a number in [0, 1].
    pub const fn part(self) -> f64 {
        self.0
    }

    /// Whether the share includes the job that drew `unit`, uniform in [0, 1).
    pub fn includes(self, unit: f64) -> bool {
        unit < self.0
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::ALL => serializer.serialize_bool(true),
            Self::NONE => serializer.serialize_bool(false),
            Self(part) => serializer.serialize_f64(part),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Share;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a share from 0 to 1")
            }
            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Share, E> {
                Ok(if all { Share::ALL } else { Share::NONE })
            }
            fn visit_f64<E: de::Error>(self, part: f64) -> Result<Share, E> {
                Share::new(part).ok_or_else(|| E::invalid_value(de::Unexpected::Float(part), &self))
            }
            fn visit_i64<E: de::Error>(self, part: i64) -> Result<Share, E> {
                self.visit_f64(part as f64)
            }
            fn visit_u64<E: de::Error>(self, part: u64) -> Result<Share, E> {
                self.visit_f64(part as f64)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "true (all), false (none), or a share from 0 to 1",
            "anyOf": [{ "type": "boolean" }, { "type": "number", "minimum": 0, "maximum": 1 }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_in_the_form_in_which_they_are_read() {
        for text in ["true", "false", "0.25"] {
            let share: Share = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&share).unwrap(), text);
        }
        assert_eq!(serde_json::from_str::<Share>("1").unwrap(), Share::ALL);
        assert!(Share::ALL.includes(0.999_999) && !Share::NONE.includes(0.0));
    }
}
