//! A policy and a cell that two studies ran, and the differences of its metrics.

use serde::{Deserialize, Serialize};
use volary_engine::results::Cell;

/// A policy in a cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ComparedPoint {
    pub policy: String,
    pub cell: Cell,
    /// Number of seeds that both ran.
    pub paired_seeds: usize,
    /// Whether equal seeds gave equal event orders: not only the same world but the same run.
    pub identical: bool,
    /// Whether some run of the first is degraded.
    #[serde(default)]
    pub a_degraded: bool,
    /// The same of the second.
    #[serde(default)]
    pub b_degraded: bool,
    /// Whether interference was injected into some run of the first.
    #[serde(default)]
    pub a_injected: bool,
    /// The same of the second.
    #[serde(default)]
    pub b_injected: bool,
    /// Whether runs under one seed were injected into unequally, so that no difference is judged.
    #[serde(default)]
    pub unequal: bool,
    /// Number of runs of the first, and of the second.
    #[serde(default)]
    pub runs: [usize; 2],
    /// Jobs of the first that did not finish, and of the second, over all runs.
    #[serde(default)]
    pub unfinished: [u64; 2],
    pub metrics: Vec<MetricDifference>,
}

impl ComparedPoint {
    /// Whether both studies ran the same and measured the same.
    pub(super) fn is_same(&self) -> bool {
        let is_equal = |metric: &MetricDifference| metric.a == metric.b;
        let is_noted = self.a_degraded || self.b_degraded || self.a_injected || self.b_injected;
        let is_whole = self.has_all_seeds() && self.unfinished == [0, 0];
        self.identical && is_whole && !is_noted && self.metrics.iter().all(is_equal)
    }

    /// Whether both studies ran the same seeds.
    pub(super) fn has_all_seeds(&self) -> bool {
        self.runs == [self.paired_seeds; 2]
    }
}

/// A metric in both studies.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MetricDifference {
    /// Its name in the results, such as `response_s.p50`.
    pub metric: String,
    /// Mean over the compared replications of the first study.
    pub a: Option<f64>,
    /// The same of the second.
    pub b: Option<f64>,
    /// `b - a`.
    pub difference: Option<f64>,
    /// `(b - a) / a`.
    pub relative: Option<f64>,
    /// Number of paired seeds under which both have a value.
    #[serde(default)]
    pub pairs: usize,
    /// Half-width of the 95 % interval of the difference; absent with fewer than two pairs.
    pub half_width: Option<f64>,
    /// Whether the interval excludes zero; absent without one, and for times of finished jobs where jobs are
    /// unfinished.
    pub differs: Option<bool>,
}
