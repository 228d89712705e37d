//! The file `manifest.json`: the content of a study directory, and its progress.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use volary_engine::results::{Cell, Injected, Summary, run_name};

use super::hosts::{self, HostRecord};
use super::origin::Provenance;
use super::slices::Slices;

/// A run: its experiment, times and state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the results schema.
    pub schema: u32,
    pub version: String,
    /// Experiment file without folder `experiments` and suffix.
    pub experiment: String,
    pub title: String,
    /// The paper, section or figure it reproduces, if any.
    pub source: Option<String>,
    /// `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Seed of the first replication.
    pub seed: u64,
    pub spec: Value,
    /// The world of the first cell in words, as lines with their names.
    pub world: Vec<(String, String)>,
    /// The offered load ρ of each cell.
    pub loads: Vec<OfferedLoad>,
    pub argv: Vec<String>,
    /// Hosts that took part, in order of shards, for `hosts` runs; null otherwise.
    pub hosts: Option<Vec<HostRecord>>,
    /// Bound on the error of hosts' corrected clocks in any run, real seconds; null if there is a single clock, and
    /// until the first run ends.
    pub clock_error_s: Option<f64>,
    /// Injections by run; absent if there were none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub injections: BTreeMap<String, Vec<Injected>>,
    /// Program, machine and files of the processes that filled the folder, each once.
    pub origins: Vec<Provenance>,
    /// Ids of the runs of the plan, in display order.
    pub runs: Vec<String>,
    /// The slices of the experiment that it holds; absent if it has all its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    pub state: RunState,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// When it ended.
    pub ended: Option<String>,
}

/// The offered load of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfferedLoad {
    /// Values of the swept keys.
    pub cell: Cell,
    /// The share of the cores' time under interference that one copy of each task needs; null if it is not known.
    pub load: Option<f64>,
}

/// The progress of a run, from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Every run is finished.
    Finished,
    /// Stopped by the user, or killed; finished runs are kept.
    Interrupted,
    /// In progress, or ended without writing its state.
    Running,
    /// Some run failed; its log is in `failed/`.
    Failed,
}

impl RunState {
    /// The state after the process of the run has ended: a run that was killed, or had no disk space left, could not
    /// write its final state.
    pub const fn without_its_process(self) -> Self {
        if matches!(self, Self::Running) { Self::Interrupted } else { self }
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
    /// Adds runs to the plan.
    pub(super) fn expect(&mut self, ids: impl IntoIterator<Item = String>) {
        let mut known: BTreeSet<String> = self.runs.iter().cloned().collect();
        self.runs.extend(ids.into_iter().filter(|id| known.insert(id.clone())));
    }

    /// Adds the hosts, injections and origins of another manifest of the same experiment: an earlier one of the folder,
    /// or that of another slice.
    pub(super) fn unite(&mut self, other: &Self) {
        if let Some(more) = &other.hosts {
            hosts::add(self.hosts.get_or_insert_default(), more);
        }
        for (cell, injections) in &other.injections {
            self.injections.entry(cell.clone()).or_insert_with(|| injections.clone());
        }
        for origin in &other.origins {
            if !self.origins.contains(origin) {
                self.origins.push(origin.clone());
            }
        }
        let errors = [self.clock_error_s, other.clock_error_s];
        self.clock_error_s = errors.into_iter().flatten().reduce(f64::max);
    }
}

/// A policy in a cell.
#[derive(Clone, Copy)]
pub struct PlannedPoint<'a>(&'a Value);

impl Manifest {
    /// The points in the order of the experiment, those of a cell adjacent; none if the experiment is missing.
    pub fn points(&self) -> impl Iterator<Item = PlannedPoint<'_>> {
        self.spec.get("points").and_then(Value::as_array).into_iter().flatten().map(PlannedPoint)
    }
}

impl<'a> PlannedPoint<'a> {
    /// The label of the policy; empty if it is missing.
    pub fn label(self) -> &'a str {
        self.0["label"].as_str().unwrap_or_default()
    }

    /// The kind of the policy and its parameters, the defaults among them.
    pub fn policy(self) -> Option<(&'a str, &'a Value)> {
        let (kind, parameters) = self.0["policy"].as_object()?.iter().next()?;
        Some((kind, parameters))
    }

    /// The values of the swept keys.
    pub fn cell(self) -> Cell {
        let values = self.0["cell"].as_object().into_iter().flatten();
        values.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// A key of the world, as a JSON pointer; `None` if it is missing.
    pub fn world(self, pointer: &str) -> Option<&'a Value> {
        self.0["resolved"].pointer(pointer)
    }

    /// Whether a generator stands in for a trace that was not found.
    pub fn has_stand_in(self) -> bool {
        self.world("/workload/trace").is_some() && self.world("/trace").is_none_or(Value::is_null)
    }
}

/// A run that could not finish, or was interrupted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Id of the run: hash of what it depends on.
    #[serde(rename = "run")]
    pub id: String,
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    pub seed: u64,
    /// The error, and the last lines of its log.
    pub log: String,
    /// The measurements up to the failure, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Whether the user stopped it; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl Failure {
    /// The run in words.
    pub fn name(&self) -> String {
        run_name(&self.policy, &self.cell, self.seed)
    }

    /// What became of it, in one word.
    pub const fn fate(&self) -> &'static str {
        if self.interrupted { "interrupted" } else { "failed" }
    }

    /// The error, in one line.
    pub fn reason(&self) -> &str {
        self.log.lines().next().unwrap_or("no log")
    }
}

/// The current time, UTC, RFC 3339 to the second.
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
