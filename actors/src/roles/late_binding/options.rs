//! Options of a scheduler that binds late.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::Span;

/// How nodes are sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingForm {
    /// d·f reservations on distinct nodes for the f tasks of a job, bound late (batch sampling).
    #[default]
    Batch,
    /// Groups of `group` tasks, each on as many random servers with d reservations apiece, bound late: the
    /// latin-square paper's simulator.
    Pairs,
    /// d samples for each task; it is bound at once to the shorter queue (power of d choices).
    PerTask,
}

/// Options of a scheduler that binds late.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// How nodes are sampled.
    pub form: SamplingForm,
    /// Reservations, or samples, per task.
    pub ratio: f64,
    /// Reservations of a job, at least.
    pub at_least: u32,
    /// Whether a node can be drawn more than once for a job.
    pub replacement: bool,
    /// Tasks and servers of a group in the `Pairs` form.
    pub group: u32,
    /// Cancel reservations at the nodes once the last task is launched.
    pub cancellation: bool,
    /// First wait before a reservation or sample that may have been lost is sent again; doubles each time.
    pub timeout: Span,
}
