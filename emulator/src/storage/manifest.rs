//! `manifest.json`: what a run directory holds, and how far it came.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hosts::{self, HostRecord};
use crate::results::{Cell, Injected, Summary};

/// What was run, when, and how it ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the results schema.
    pub schema: u32,
    /// Version of volary.
    pub version: String,
    /// Experiment file without folder `experiments` and suffix.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// The paper, section or figure it reproduces, if any.
    pub source: Option<String>,
    /// `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Seed of the first replication.
    pub seed: u64,
    /// The resolved experiment.
    pub spec: Value,
    /// The command line.
    pub argv: Vec<String>,
    /// Hosts that took part, in order of shards, for `hosts` runs; null otherwise.
    pub hosts: Option<Vec<HostRecord>>,
    /// What a host's corrected clock was wrong by at most, in any cell, real seconds; null where there is one clock,
    /// and until the first cell ends.
    pub clock_error_s: Option<f64>,
    /// What was injected into cells while they were run; absent if nothing was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub injections: BTreeMap<String, Vec<Injected>>,
    /// Ids of the cells to run, in the order in which they are shown.
    pub cells: Vec<String>,
    /// How far it came.
    pub state: RunState,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// When it ended.
    pub ended: Option<String>,
}

/// How far a run came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Under way, or ended without notice.
    Running,
    /// Every cell is there.
    Finished,
    /// Stopped by its user, or killed; what had finished is there.
    Interrupted,
    /// Some cell failed; its log is in `cells/`.
    Failed,
}

impl RunState {
    /// What it is, now that the process that ran it has gone: a run that was killed, or had no room left, could not
    /// say that it ended.
    #[must_use]
    pub const fn without_its_process(self) -> Self {
        match self {
            Self::Running => Self::Interrupted,
            ended @ (Self::Finished | Self::Interrupted | Self::Failed) => ended,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "still running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed in part",
        })
    }
}

impl Manifest {
    /// Adds what another manifest of the same experiment, an earlier one of the folder or that of another shard, says
    /// of hosts and of injections.
    pub(super) fn unite(&mut self, other: &Self) {
        if let Some(more) = &other.hosts {
            hosts::add(self.hosts.get_or_insert_default(), more);
        }
        for (cell, injections) in &other.injections {
            self.injections.entry(cell.clone()).or_insert_with(|| injections.clone());
        }
        let errors = [self.clock_error_s, other.clock_error_s];
        self.clock_error_s = errors.into_iter().flatten().reduce(f64::max);
    }
}

/// A cell that could not finish.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Hash of what the cell depends on.
    pub id: String,
    /// Label of the policy.
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// Seed.
    pub seed: u64,
    /// What went wrong, and the last it said.
    pub log: String,
    /// What had been measured by then, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// The present, UTC, RFC 3339 to the second.
#[must_use]
pub fn utc_now() -> String {
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_rfc_3339() {
        let now = utc_now();
        assert!(now.len() == 20 && now.ends_with('Z') && now.starts_with("20"), "{now}");
    }
}
