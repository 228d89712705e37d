//! The file `manifest.json`: the plan of a study, and its progress.
//!
//! It also records the hosts of each run with their actors, and the origin of the results: the program, the machine,
//! and the files that were read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::SystemTime;
use std::{fmt, fs};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use volary_engine::results::{Cell, Injected, Summary, run_name};

use super::slices::Slices;
use crate::files::FileSum;
use crate::parallel;

/// Name of the line of [`Manifest::world`] about the binding of tasks.
pub const BINDING: &str = "binding";

/// A study: its experiment, times and state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the results schema.
    pub schema: u32,
    pub version: String,
    /// Path of the experiment file below `experiments/`, without suffix.
    pub experiment: String,
    pub title: String,
    /// The reproduced paper, section or figure, if any.
    pub source: Option<String>,
    /// Runtime of the study: `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Seed of the first replication.
    pub seed: u64,
    pub spec: Value,
    /// The world of the first cell in words, as lines with their names.
    pub world: Vec<(String, String)>,
    /// Offered load ρ of each cell.
    pub loads: Vec<OfferedLoad>,
    pub argv: Vec<String>,
    /// Hosts that took part in a `hosts` run, in order of shards; null for other runtimes.
    pub hosts: Option<Vec<HostRecord>>,
    /// Largest bound on the error of hosts' corrected clocks in a run so far, real seconds; null with a single clock,
    /// and before the first run ends.
    pub clock_error_s: Option<f64>,
    /// Injections by run; absent if there were none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub injections: BTreeMap<String, Vec<Injected>>,
    /// Program, machine and files of the processes that filled the folder, without repetitions.
    pub origins: Vec<Provenance>,
    /// Ids of the runs of the plan, in display order.
    pub runs: Vec<String>,
    /// The slices of the experiment that the folder holds; absent if the folder has all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    pub state: RunState,
    /// Start time, UTC, RFC 3339.
    pub started: String,
    /// End time, UTC, RFC 3339.
    pub ended: Option<String>,
}

/// The offered load of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfferedLoad {
    /// Values of the swept keys.
    pub cell: Cell,
    /// Share of the cores' time under interference that one copy of each task needs; null if it is not known.
    pub load: Option<f64>,
}

/// The state of a study, from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Every run is finished.
    Finished,
    /// The user stopped the study, or it was killed; finished runs are kept.
    Interrupted,
    /// The study is in progress, or ended without a final state.
    Running,
    /// A run failed; its log is in `failed/`.
    Failed,
}

impl RunState {
    /// The state after the process of the study has ended. A process that was killed, or had no disk space left, could
    /// not write the final state.
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

    /// Adds the hosts, injections and origins of another manifest of the same experiment, which is from an earlier
    /// process in the folder or from another slice.
    pub(super) fn unite(&mut self, other: &Self) {
        if let Some(more) = &other.hosts {
            add(self.hosts.get_or_insert_default(), more);
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
    /// The points in the order of the experiment, adjacent for each cell; empty if the experiment is missing.
    pub fn points(&self) -> impl Iterator<Item = PlannedPoint<'_>> {
        self.spec.get("points").and_then(Value::as_array).into_iter().flatten().map(PlannedPoint)
    }
}

impl<'a> PlannedPoint<'a> {
    /// The label of the policy; empty if the manifest lacks it.
    pub fn label(self) -> &'a str {
        self.0["label"].as_str().unwrap_or_default()
    }

    /// The kind of the policy and its parameters, including defaults.
    pub fn policy(self) -> Option<(&'a str, &'a Value)> {
        let (kind, parameters) = self.0["policy"].as_object()?.iter().next()?;
        Some((kind, parameters))
    }

    /// The values of the swept keys.
    pub fn cell(self) -> Cell {
        let values = self.0["cell"].as_object().into_iter().flatten();
        values.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// A key of the world at a JSON pointer; `None` if the key is missing.
    pub fn world(self, pointer: &str) -> Option<&'a Value> {
        self.0["resolved"].pointer(pointer)
    }

    /// Whether a generator replaces a trace that was not found.
    pub fn has_stand_in(self) -> bool {
        self.world("/workload/trace").is_some() && self.world("/trace").is_none_or(Value::is_null)
    }
}

/// A run that could not finish, or was interrupted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Id of the run: the hash of everything its result depends on.
    #[serde(rename = "run")]
    pub id: String,
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    pub seed: u64,
    /// The error of the run, and the last lines of its log.
    pub log: String,
    /// The measurements up to the failure, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Whether the user stopped the run; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl Failure {
    /// The run in words: policy, cell and seed.
    pub fn name(&self) -> String {
        run_name(&self.policy, &self.cell, self.seed)
    }

    /// The end of the run in one word.
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

/// A host that took part in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HostRecord {
    /// Name of the host, as in its certificate.
    pub name: String,
    /// The address of its agent.
    pub address: SocketAddr,
    /// Share of the nodes and schedulers that the host takes, relative to the other hosts.
    pub weight: f64,
    /// The actors that the host held. Runs with the same assignment share an entry.
    pub held: Vec<HostShard>,
    /// Runs in which the host was lost, including runs that were repeated since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<HostLoss>,
}

/// The loss of a host while a run was executed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostLoss {
    /// Id of the run.
    pub run: String,
    /// The reason, as far as known.
    pub why: String,
    /// Whether the experiment's faults had already crashed all actors on the host for good; such a run continues.
    pub expected: bool,
}

impl HostLoss {
    /// The text of the loss, for a host of this name.
    pub fn note(&self, host: &str) -> String {
        let when = if self.expected { ", after all of its actors had crashed for good" } else { "" };
        format!("host {host} was lost{when}: {}", self.why)
    }
}

/// The part of the emulated cluster that a host held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostShard {
    /// Number of the shard in the run.
    pub shard: u16,
    /// Numbers of the host's nodes, such as `0-5,8`; empty for none.
    pub nodes: String,
    /// Numbers of the host's schedulers, each with its client, in the same form.
    pub schedulers: String,
    /// Numbers of the policy's auxiliary actors after their kind, such as `masters 0-3`; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extras: String,
    /// Ids of the runs in which the host held these actors.
    pub runs: Vec<String>,
}

/// Adds hosts, their assignments and their losses to the known ones. The assignment of a repeated run replaces its
/// earlier one.
pub fn add(known: &mut Vec<HostRecord>, more: &[HostRecord]) {
    let again = |run: &String| more.iter().flat_map(|host| &host.held).any(|held| held.runs.contains(run));
    for host in known.iter_mut() {
        host.held.iter_mut().for_each(|held| held.runs.retain(|run| !again(run)));
        host.held.retain(|held| !held.runs.is_empty());
    }
    for host in more {
        let same = known.iter_mut().find(|old| (&old.name, old.address) == (&host.name, host.address));
        let Some(old) = same else {
            known.push(host.clone());
            continue;
        };
        old.weight = host.weight;
        old.lost.extend(host.lost.iter().cloned());
        for held in &host.held {
            let alike = |old: &&mut HostShard| {
                old.shard == held.shard
                    && [&old.nodes, &old.schedulers, &old.extras]
                        == [&held.nodes, &held.schedulers, &held.extras]
            };
            match old.held.iter_mut().find(alike) {
                Some(old) => old.runs.extend(held.runs.iter().cloned()),
                None => old.held.push(held.clone()),
            }
        }
    }
}

/// The host that held a shard of a run.
pub fn of_shard<'a>(hosts: &'a [HostRecord], run: &str, shard: u16) -> Option<&'a str> {
    let held_it = |held: &HostShard| held.shard == shard && held.runs.iter().any(|id| id == run);
    hosts.iter().find(|host| host.held.iter().any(held_it)).map(|host| host.name.as_str())
}

/// The commit of the program, which the environment variable states at build time.
const COMMIT: Option<&str> = option_env!("VOLARY_COMMIT");

/// The program, the machine and the input files of one process that filled a study directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// The commit of the program; null if the build did not state it in `VOLARY_COMMIT`.
    pub commit: Option<String>,
    pub machine: Machine,
    /// The experiment file and every file that it names, in order of names.
    pub files: Vec<FileSum>,
}

/// The machine of the process; for a run on hosts, the machine of the controller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that the process may use.
    pub cores: usize,
    /// Model of the first processor; null if the system does not state it.
    pub cpu: Option<String>,
    /// Release of the Linux kernel; null on other systems.
    pub kernel: Option<String>,
    /// Operating system and architecture, such as `linux x86_64`.
    pub platform: String,
}

impl Provenance {
    /// The origin of results of this process, with the files that it has read.
    pub fn here(files: Vec<FileSum>) -> Self {
        let (version, commit) = (env!("CARGO_PKG_VERSION").to_owned(), COMMIT.map(str::to_owned));
        Self { version, commit, machine: Machine::here(), files }
    }
}

impl Machine {
    fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self {
            cores: parallel::threads(),
            cpu: read("/proc/cpuinfo").and_then(|text| model(&text)),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }

    /// The machine in one line.
    pub fn says(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("processors of an unknown model");
        let kernel = self.kernel.as_ref().map_or_else(String::new, |release| format!(", kernel {release}"));
        format!("{} × {cpu}, {}{kernel}", self.cores, self.platform)
    }
}

/// The model of the first processor in the text of `/proc/cpuinfo`.
fn model(cpuinfo: &str) -> Option<String> {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut models = lines.filter(|(key, _)| key.trim() == "model name");
    models.next().map(|(_, model)| model.trim().to_owned()).filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_rfc_3339() {
        let now = utc_now();
        assert!(now.len() == 20 && now.ends_with('Z') && now.starts_with("20"), "{now}");
    }

    fn host(name: &str, shard: u16, nodes: &str, runs: &[&str]) -> HostRecord {
        let runs = runs.iter().map(|&run| run.to_owned()).collect();
        let (nodes, schedulers) = (nodes.to_owned(), "0".to_owned());
        let held = vec![HostShard { shard, nodes, schedulers, extras: String::new(), runs }];
        HostRecord {
            name: name.to_owned(),
            address: ([127, 0, 0, 1], 4433).into(),
            weight: 1.0,
            held,
            lost: Vec::new(),
        }
    }

    #[test]
    fn the_last_hosts_of_a_run_are_recorded() {
        let mut known = vec![host("h1", 0, "0-5", &["a"]), host("h2", 1, "6-9", &["a"])];
        add(&mut known, &[host("h1", 0, "0-5", &["b"]), host("h2", 1, "6-9", &["b"])]);
        assert_eq!(known.len(), 2);
        assert_eq!(known[0].held, host("", 0, "0-5", &["a", "b"]).held, "alike: one entry");
        // The run `b` is resumed on h2 and a new host.
        add(&mut known, &[host("h2", 0, "0-4", &["b"]), host("h3", 1, "5-9", &["b"])]);
        assert_eq!([0, 1].map(|shard| of_shard(&known, "a", shard)), [Some("h1"), Some("h2")]);
        assert_eq!([0, 1].map(|shard| of_shard(&known, "b", shard)), [Some("h2"), Some("h3")]);
        assert_eq!(of_shard(&known, "c", 0), None);
    }

    #[test]
    fn losses_of_all_attempts_are_recorded() {
        let lost = |run: &str| HostLoss {
            run: run.to_owned(),
            why: "the peer fell silent".to_owned(),
            expected: false,
        };
        let mut known = vec![host("h1", 0, "0-9", &["a"])];
        // The host is lost in run `a`, and again in run `b`.
        add(&mut known, &[HostRecord { lost: vec![lost("a")], ..host("h1", 0, "0-9", &["a"]) }]);
        add(&mut known, &[HostRecord { lost: vec![lost("b")], ..host("h1", 0, "0-9", &["b"]) }]);
        assert_eq!((known.len(), &known[0].lost[..]), (1, &[lost("a"), lost("b")][..]));
        add(&mut known, &[host("h2", 0, "0-9", &["a"])]);
        assert_eq!(known[0].lost, [lost("a"), lost("b")], "the run was repeated on another host");
        assert_eq!(lost("a").note("h1"), "host h1 was lost: the peer fell silent");
    }

    #[test]
    fn the_model_of_the_first_processor_is_recorded() {
        let text = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Fast CPU @ 2.00GHz\n\nmodel name\t: other\n";
        assert_eq!(model(text).as_deref(), Some("Fast CPU @ 2.00GHz"));
        assert_eq!(model("processor\t: 0\nCPU part\t: 0xd0c\n"), None);
        let machine =
            Machine { cores: 2, cpu: None, kernel: Some("6.1".into()), platform: "linux x86_64".into() };
        assert_eq!(machine.says(), "2 × processors of an unknown model, linux x86_64, kernel 6.1");
    }
}
