//! How stale caches were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::nan_if_null;

/// How stale caches were. A cache keeps the work expected at every node; the truth is the work of what was
/// placed there and has not ended, by the same estimates.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Staleness {
    /// Age of the oldest news about a node that a scheduler has not taken in, 0 if there is none: over time,
    /// schedulers and nodes.
    pub age_s: Spread,
    /// Size of what a cache says of a node less the truth: over time, schedulers and nodes.
    pub error_s: Spread,
    /// Mean of `error_s` with its sign.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub bias_s: f64,
    /// News that a scheduler has not taken in: over time and schedulers.
    pub in_flight: Spread,
    /// Size of what a scheduler believed of the node it chose less the truth: over decisions.
    pub decision_error_s: Spread,
    /// True wait at the node that was chosen less that of the best: over decisions.
    pub regret_s: Spread,
    /// Time between two looks.
    pub every_s: f64,
    /// Schedulers looked at.
    pub schedulers: u32,
    /// Nodes looked at.
    pub nodes: u32,
}

/// Mean, three percentiles of three significant digits, and maximum.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Median.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub p50: f64,
    /// 90th percentile.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub p90: f64,
    /// 99th percentile.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub p99: f64,
    /// Maximum.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub max: f64,
}

impl Spread {
    /// Nothing was measured.
    pub const UNMEASURED: Self =
        Self { mean: f64::NAN, p50: f64::NAN, p90: f64::NAN, p99: f64::NAN, max: f64::NAN };
}

/// A look at a scheduler's cache, a row of `staleness.parquet`: over the nodes that are looked at.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct StalenessRow {
    /// When, s.
    pub time: f64,
    /// Which scheduler.
    pub scheduler: u32,
    /// Mean age of the oldest news that it has not taken in, s.
    pub age: f64,
    /// The oldest, s.
    pub age_max: f64,
    /// Mean size of the error, s.
    pub error: f64,
    /// Mean error with its sign, s.
    pub bias: f64,
    /// Largest size of the error, s.
    pub error_max: f64,
    /// News that it has not taken in, about all nodes.
    pub in_flight: u64,
}
