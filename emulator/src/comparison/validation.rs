//! The result of a validation, which is stored as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use volary_engine::results::Cell;

use super::divergence::MetricDivergence;

/// The result of a validation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    pub experiment: String,
    pub seed: u64,
    /// The runtime that the others are compared with.
    pub reference: String,
    /// Runtimes that could not run here.
    pub skipped: Vec<SkippedRuntime>,
    /// Every policy in every cell.
    pub points: Vec<ValidatedPoint>,
}

/// A runtime that could not run here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SkippedRuntime {
    pub runtime: String,
    pub why: String,
}

/// A policy in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValidatedPoint {
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// One entry for each other runtime.
    pub against: Vec<Against>,
}

impl Validation {
    /// Whether every runtime had the same jobs and equal final counts, and the runs that are not degraded stay within
    /// the bar.
    pub fn holds(&self) -> bool {
        self.points.iter().flat_map(|point| &point.against).all(Against::holds)
    }

    /// Whether there are comparisons and all are of degraded runs, so that nothing was judged.
    pub fn is_void(&self) -> bool {
        let mut all = self.points.iter().flat_map(|point| &point.against).peekable();
        all.peek().is_some() && all.all(|against| !against.is_judged)
    }
}

/// The comparison of a runtime with the reference.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Against {
    pub runtime: String,
    pub runs: usize,
    /// Number of degraded runs that the metrics leave out; 0 if all are degraded.
    pub left_out: usize,
    /// Whether metrics count: neither the runs that they are of nor the reference are degraded.
    pub is_judged: bool,
    /// Whether its runs have certificates of fidelity, which those in virtual time need not have.
    pub is_certified: bool,
    /// Counts of jobs and tasks that differ, in words.
    pub accounts: Vec<String>,
    /// Whether its jobs are those of the reference.
    pub draws: DrawsCompared,
    /// Placement of jobs; absent if no executions were sampled.
    pub placement: Option<JobPlacement>,
    /// Reasons for degraded results, and injections, of all runs and of the reference.
    pub degraded: Vec<String>,
    pub metrics: Vec<MetricDivergence>,
    /// Metrics that only some policies have, by section of the summary.
    #[serde(flatten)]
    pub policy: BTreeMap<String, Vec<MetricDivergence>>,
}

/// Jobs compared one by one, arrival and demand bit by bit, in the repetition with the most differences.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct DrawsCompared {
    /// Jobs in either run.
    pub jobs: u64,
    /// Jobs in only one of the runs, or with another arrival time or other work.
    pub different: u64,
}

/// The placement of sampled jobs, in the repetition in which most jobs moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobPlacement {
    /// Jobs whose executions were sampled in both.
    pub jobs: u64,
    /// Of these, jobs with a task whose first finished copy ran on another core.
    pub moved: u64,
}

impl Against {
    /// See [`Validation::holds`].
    pub fn holds(&self) -> bool {
        let same = self.accounts.is_empty() && self.draws.different == 0;
        let off = self.policy.values().flatten().any(|divergence| divergence.within == Some(false));
        same && (!self.is_judged || self.beyond().next().is_none() && !off)
    }

    /// Metrics beyond the bar, with cores as asked and as found.
    pub fn beyond(&self) -> impl Iterator<Item = &MetricDivergence> {
        self.metrics.iter().filter(|divergence| divergence.is_beyond())
    }
}
