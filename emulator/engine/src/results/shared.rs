//! Results of shared nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::NanIsNull;

/// Use of shared nodes by copies, and effects of scarce CPU and memory on them (Park's thesis, section 5.4.1). CPU-time
/// is the work done by copies, as time on healthy reference cores: the integral of the CPU that they were given, unless
/// speed or interference changes their work.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SharedNodes {
    /// Share of the time of copies in which they were given less CPU than they would have used.
    #[serde(with = "NanIsNull")]
    pub throttled: f64,
    /// Throttling events per node and second of the makespan, or of the measured window. An event is a change of a
    /// copy's CPU or use that leaves it with less CPU than it would use.
    #[serde(with = "NanIsNull")]
    pub throttle_rate: f64,
    /// Number of copies evicted because memory was short. They are among the preempted copies.
    pub evictions: u64,
    /// CPU-time of all copies, core-hours.
    pub used_core_h: f64,
    /// The part of `used_core_h` on copies that were evicted, preempted or lost, core-hours. With a measured window:
    /// the whole use of copies that were evicted, preempted or lost in it.
    pub wasted_core_h: f64,
    /// The part of `used_core_h` on copies that still ran when `run.until` ended the run, core-hours; neither useful
    /// nor wasted.
    #[serde(default)]
    pub in_progress_core_h: f64,
    /// CPU that copies were given over the CPU of all nodes times the makespan or the measured window. At most 1, since
    /// speed and interference change the work that is done with the CPU, not the CPU that is given.
    #[serde(with = "NanIsNull")]
    pub cpu: f64,
}
