//! Results of the metrics of policies: placement times and the staleness of caches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::{Spread, nan_if_null};

/// What the metrics of policies measured. The first two are sections of the summary.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PolicyResults {
    /// Placement times; `None` if the policy does not note them.
    pub placements: Option<Placements>,
    /// Staleness of caches; `None` if the policy has none.
    pub staleness: Option<Staleness>,
    /// Observations of caches.
    #[serde(skip)]
    pub looks: Vec<StalenessRow>,
}

/// Placement times, for policies whose schedulers bind each task to a node directly (Murmuration paper, section 2.1). A
/// task that is bound again counts by its last binding.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Placements {
    /// Number of bindings of tasks to nodes, repeated ones included.
    pub count: u64,
    /// Maximum number of bindings in a second of emulated time.
    pub peak_per_s: u64,
    /// Time from the first arrival to the last binding.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub last_s: f64,
    /// Time from a job's arrival until its tasks were bound: the paper's TST.
    pub scheduled_s: Stage,
    /// Time until its tasks started: TST + w2x.
    pub started_s: Stage,
    /// Time until its tasks ended: TCT.
    pub ended_s: Stage,
}

/// The times at which a job's tasks reached a stage, over the jobs whose tasks all ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Mean over the job's tasks.
    pub average: Spread,
    /// The job's last task.
    pub tail: Spread,
    /// Standard deviation within the job.
    pub deviation: Spread,
}

/// Staleness of caches. A cache holds the work expected at every node; the truth is the work of the tasks placed there
/// that have not ended, by the same estimates.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Staleness {
    /// Age of the oldest update about a node that a scheduler has not received, 0 if there is none: over time,
    /// schedulers and nodes.
    pub age_s: Spread,
    /// Absolute difference between the cached and the true load of a node: over time, schedulers and nodes.
    pub error_s: Spread,
    /// Mean signed error (cached minus true).
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub bias_s: f64,
    /// Number of updates that a scheduler has not received: over time and schedulers.
    pub in_flight: Spread,
    /// Absolute difference between the cached and the true load of the chosen node: over decisions.
    pub decision_error_s: Spread,
    /// True wait at the chosen node minus that at the best node: over decisions.
    pub regret_s: Spread,
    /// Time between two observations.
    pub every_s: f64,
    /// Number of schedulers observed.
    pub schedulers: u32,
    /// Number of nodes observed.
    pub nodes: u32,
}

/// An observation of a scheduler's cache, a row of `staleness.parquet`: over the observed nodes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct StalenessRow {
    /// Time of the observation, s.
    pub time: f64,
    /// Number of the scheduler.
    pub scheduler: u32,
    /// Mean age of the oldest update that it has not received, s.
    pub age: f64,
    /// Maximum of these ages, s.
    pub age_max: f64,
    /// Mean absolute error, s.
    pub error: f64,
    /// Mean signed error, s.
    pub bias: f64,
    /// Maximum absolute error, s.
    pub error_max: f64,
    /// Updates that it has not received, about all nodes.
    pub in_flight: u64,
}
