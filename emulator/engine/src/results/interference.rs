//! The interference that cores met in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Amount of interference from the bursts of the profile and of injections, over the whole run, on busy and idle cores
/// alike. Deviations of real cores are in `fidelity.cores`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterferenceMet {
    /// Share of the core time in which cores were degraded.
    pub degraded: f64,
    /// Share of the work of healthy cores that degraded cores could not do: the mean of 1 − 1/σ over all core time.
    pub work_lost: f64,
    /// Number of cores counted: all cores or, beyond a million slots, an evenly spaced sample.
    pub cores: u32,
}
