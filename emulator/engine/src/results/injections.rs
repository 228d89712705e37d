//! Injections into a run, as its results list them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Interference injected into a run with `volary inject`. For some time `profile` replaced the experiment's profile on
/// some cores.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Injected {
    /// Identifier of the injection, 16 hex digits.
    pub id: String,
    /// The profile with everything it refers to, as a table like `[interference]`.
    pub profile: BTreeMap<String, Value>,
    /// Seed of the draws of the profile.
    pub seed: u64,
    /// Targets of the injection as the user wrote them; empty for all cores.
    pub targets: Vec<String>,
    /// The hosts that applied it, each to its own cores.
    pub hosts: Vec<Applied>,
}

/// The part of an injection that a host applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// Name of the host.
    pub host: String,
    /// Numbers of the cores, as in `0-5,8`.
    pub cores: String,
    /// Start, in emulated seconds.
    pub from_s: f64,
    /// End, in emulated seconds.
    pub until_s: f64,
    /// Reason for the end of the injection, and a note if a later injection replaced this injection on some cores for a
    /// time.
    pub ended: String,
    /// Whether the end of the run cut the injection short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Share of the time of the injection in which the injection degraded the cores. Null if there are too many slots
    /// to count, or if a later injection replaced this injection on some cores for a time.
    pub degraded: Option<f64>,
}

/// Cores and span of a scheduled injection in one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledSpan {
    /// Numbers of the cores, as in `0-5,8`.
    pub cores: String,
    /// Start, in emulated seconds.
    pub from_s: f64,
    /// End, in emulated seconds; at most the end of the run.
    pub until_s: f64,
}

impl Injected {
    /// Describes the injection in words.
    pub fn describe(&self) -> String {
        let (from, until) = self.hosts.iter().fold((f64::INFINITY, 0.0_f64), |(from, until), applied| {
            (from.min(applied.from_s), until.max(applied.until_s))
        });
        let cores = self.hosts.iter().map(|applied| format!("{} on {}", applied.cores, applied.host));
        let cores = cores.collect::<Vec<_>>().join(", ");
        format!("interference was injected from {from:.3} s to {until:.3} s: cores {cores}")
    }
}
