//! What was injected into a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Interference that somebody injected into a cell with `volary inject`: for a time the profile ruled these cores
/// instead of the experiment's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Injected {
    /// Tells injections apart, 16 hex digits.
    pub id: String,
    /// The profile, with all that it refers to: a table as `[interference]` has it.
    pub profile: BTreeMap<String, Value>,
    /// The seed of its slots.
    pub seed: u64,
    /// Whom it was aimed at, in the user's words; empty for all.
    pub targets: Vec<String>,
    /// The hosts that applied it, each to those of the cores that it held.
    pub hosts: Vec<Applied>,
}

/// What a host applied of an injection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The host.
    pub host: String,
    /// Numbers of the cores, as in `0-5,8`.
    pub cores: String,
    /// From when, in emulated seconds.
    pub from_s: f64,
    /// Until when.
    pub until_s: f64,
    /// Why it ended then, and whether a later injection ruled some of its cores meanwhile.
    pub ended: String,
    /// Share of this time in which its slots degraded the cores; null if that takes too long to count, or if a later
    /// injection ruled some of them meanwhile.
    pub degraded: Option<f64>,
}

impl Injected {
    /// It in words.
    #[must_use]
    pub fn says(&self) -> String {
        let (from, until) = self.hosts.iter().fold((f64::INFINITY, 0.0_f64), |(from, until), applied| {
            (from.min(applied.from_s), until.max(applied.until_s))
        });
        let cores = self.hosts.iter().map(|applied| format!("{} on {}", applied.cores, applied.host));
        let cores = cores.collect::<Vec<_>>().join(", ");
        format!("interference was injected from {from:.3} s to {until:.3} s: cores {cores}")
    }
}
