//! Results of shared nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::nan_if_null;

/// What copies used of shared nodes, and what the want of CPU and memory did to them (Park's thesis, section 5.4.1).
/// CPU-time is what copies have done, as it takes on a healthy reference core: the integral of the CPU that they were
/// given, where nothing slows its work down.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SharedNodes {
    /// Share of the time of copies in which they were given less CPU than they would have used.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub throttled: f64,
    /// How often a copy was given less CPU than it would have used, each change of it counted, per node and second of
    /// the makespan.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub throttle_rate: f64,
    /// Number of copies evicted because memory was short. They count as preempted too.
    pub evictions: u64,
    /// CPU-time of all copies, core-hours.
    pub used_core_h: f64,
    /// The part of it of copies that were evicted, preempted or lost, core-hours.
    pub wasted_core_h: f64,
    /// The part of it of copies that still ran when `run.until` ended the run, core-hours: neither useful nor wasted.
    #[serde(default)]
    pub in_progress_core_h: f64,
    /// CPU that copies were given over the CPU of all nodes times the makespan; at most 1, also where speed or
    /// interference changes the work that a core does in that time.
    #[serde(deserialize_with = "nan_if_null")]
    #[schemars(with = "Option<f64>")]
    pub cpu: f64,
}
