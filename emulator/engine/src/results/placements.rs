//! When tasks got their nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Spread;
use super::schema::nan_if_null;

/// When tasks got their nodes, of policies whose schedulers bind a task to a node at once (Murmuration paper,
/// section 2.1). A task that is bound anew counts by its last binding.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Placements {
    /// Tasks bound to a node, each as often as it was.
    pub count: u64,
    /// Most of them in a second of emulated time.
    pub peak_per_s: u64,
    /// From the first arrival to the last of them.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub last_s: f64,
    /// From a job's arrival until its tasks had their nodes: the paper's TST.
    pub scheduled_s: Stage,
    /// Until they began to run: TST + w2x.
    pub started_s: Stage,
    /// Until they ended: TCT.
    pub ended_s: Stage,
}

/// The tasks of a job at a point of their lives, over the jobs all of whose tasks ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Mean of the job's tasks.
    pub average: Spread,
    /// The job's last task.
    pub tail: Spread,
    /// Standard deviation within the job.
    pub deviation: Spread,
}
