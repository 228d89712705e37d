//! The interference that cores met in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much interference there was, by the bursts of the profile and of injections: from the start of the run to its
/// end, whether cores were busy or not. What real cores did beyond it is in `fidelity.cores`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterferenceMet {
    /// Share of the core time in which cores were degraded.
    pub degraded: f64,
    /// Share of the work of healthy cores that degraded ones could not do: the mean of 1 − 1/σ over all core time.
    pub work_lost: f64,
    /// Number of cores that were counted: all, or as many, evenly spaced, as have a million slots together.
    pub cores: u32,
}
