//! Placement times: when tasks were bound to nodes, started and ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::{Spread, nan_if_null};

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
