//! The snapshot of an experiment: the content of the live page at one moment, in one form for all runtimes and for
//! folders.
//!
//! Times are emulated seconds unless a name contains `real`. `volary run --live` serves the snapshot as
//! `snapshot.json`.
//!
//! Disturbances are the faults and injections of the experiment, and the injections from outside. The view of an ended
//! run is made from its record.

use std::collections::BTreeMap;

use serde::Serialize;
use volary_actors::base::{CoreSet, Span, Time};
use volary_engine::cores::{Injection, InjectionSpec, Interference};
use volary_engine::metrics::SoFar;
use volary_engine::results::{Applied, Cell, HostVitals, Injected, Late, Summary};
use volary_experiment::config::describe;
use volary_experiment::control::{LateSoFar, VitalsSample};
use volary_experiment::number;
use volary_experiment::storage::run_record::{Look, RunRecord, Sketch};
use volary_netem::FaultSpec;

use crate::chart::timeline::Tile;

/// An experiment at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Snapshot {
    pub header: PageHeader,
    /// Whether further runs are expected; `false` once the experiment has ended.
    pub running: bool,
    /// The state of the experiment, as in the manifest.
    pub state: String,
    /// Real time since the start of the experiment, s; `None` if unknown.
    pub real_s: Option<f64>,
    /// Estimate of the real time left, s; `None` before the first job has finished, and at the end.
    pub real_left_s: Option<f64>,
    /// The reason why a folder cannot be read now; the snapshot is then the content at the last successful reading.
    pub outdated: Option<String>,
    /// Every planned run, in the order of the experiment.
    pub runs: Vec<RunEntry>,
    /// The displayed cell: the cell of the run that began last, or, for a folder, of the run that ended last.
    pub cell: Option<CellView>,
}

impl Snapshot {
    /// The faults and injections of a displayed run, with those from outside.
    pub(super) fn disturbances<'a>(&'a self, run: &'a RunView) -> impl Iterator<Item = &'a Disturbance> {
        let entry = self.runs.iter().find(|entry| entry.run == run.run);
        let of_cell = self.cell.iter().flat_map(|cell| &cell.disturbances).filter(|one| one.at_s <= run.at_s);
        of_cell.chain(entry.into_iter().flat_map(|entry| &entry.injections))
    }
}

/// A source of snapshots for the page.
pub trait SnapshotSource: Send + Sync {
    /// Takes a snapshot.
    fn snapshot(&self) -> Snapshot;
    /// Requests details during the next seconds.
    fn request_details(&self);
}

/// The data of a page that does not change during an experiment.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PageHeader {
    /// Name of the experiment.
    pub experiment: String,
    pub title: String,
    /// `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Labels of the policies. The position of a policy determines its colour.
    pub policies: Vec<String>,
    /// Path of the study directory.
    pub folder: String,
}

impl PageHeader {
    /// The index of a policy's colour.
    pub(super) fn colour(&self, policy: &str) -> usize {
        self.policies.iter().position(|known| known == policy).unwrap_or(0)
    }
}

/// A planned run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RunEntry {
    /// Id of the run.
    pub run: String,
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// Seed of the run; `None` if a folder does not state it yet.
    pub seed: Option<u64>,
    pub stage: RunStage,
    /// Number of jobs in the workload; 0 before the workload is built.
    pub jobs: u64,
    /// Number of jobs that have finished.
    pub finished: u64,
    /// Median and 99th percentile of the response times of an ended run, s.
    pub response_s: Option<(f64, f64)>,
    /// Estimate of the real time left, s; `None` unless the run is in progress and a job has finished.
    pub real_left_s: Option<f64>,
    /// The reason why the run failed; `None` if it did not.
    pub why: Option<String>,
    /// Injections from outside into the run, in the order of their requests. They are kept when the run ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<Disturbance>,
}

impl RunEntry {
    /// The entry of a run that has not begun.
    pub fn waiting(run: &str, policy: &str, cell: &Cell, seed: Option<u64>) -> Self {
        Self { run: run.to_owned(), policy: policy.to_owned(), cell: cell.clone(), seed, ..Self::default() }
    }

    /// Notes the end of the run with these results.
    pub(super) fn finish(&mut self, summary: &Summary) {
        (self.stage, self.why) = (RunStage::Finished, None);
        (self.jobs, self.finished) = (summary.jobs.submitted, summary.jobs.finished);
        self.injections = injected(&summary.injections);
        // The quantiles are NaN if no job finished.
        let response = &summary.times.response_s;
        self.response_s = Some((response.p50, response.p99)).filter(|(p50, _)| p50.is_finite());
    }
}

/// The progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStage {
    #[default]
    Waiting,
    Running,
    Finished,
    Failed,
}

/// The view of the displayed cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CellView {
    /// Values of the swept keys.
    pub cell: Cell,
    /// Distributions of response times of runs that have ended or are in progress.
    pub curves: Vec<CurveView>,
    /// One run of each policy: a run in progress if there is one, or else the run that began last (in a folder, the run
    /// that ended last).
    pub runs: Vec<RunView>,
    /// Faults and injections of the experiment that have begun in one of these runs.
    pub disturbances: Vec<Disturbance>,
}

impl CellView {
    /// The view of a cell with these faults and injections, which are the same under all policies.
    pub(super) fn new(
        cell: &Cell,
        curves: Vec<CurveView>,
        runs: Vec<RunView>,
        planned: &[Disturbance],
    ) -> Self {
        let has_begun = |one: &&Disturbance| runs.iter().any(|run| one.at_s <= run.at_s);
        let disturbances = planned.iter().filter(has_begun).cloned().collect();
        Self { cell: cell.clone(), curves, runs, disturbances }
    }
}

/// Response times of a policy's ended runs, or of one run in progress.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CurveView {
    pub policy: String,
    /// Whether the run is in progress; the curve then ends at the share of jobs that have finished.
    pub running: bool,
    /// Number of jobs per value of a distribution. It exceeds 1 if the jobs of a run in progress are sampled.
    pub each: u32,
    /// The distribution of each run, with its number of jobs divided by `each`.
    pub runs: Vec<(Sketch, u64)>,
}

impl CurveView {
    /// The curves of ended runs, one per policy in the order of first appearance. `runs` gives policy, distribution and
    /// number of jobs.
    pub(super) fn of_ended(runs: impl Iterator<Item = (String, Sketch, u64)>) -> Vec<Self> {
        let mut curves: Vec<Self> = Vec::new();
        for (policy, sketch, jobs) in runs {
            match curves.iter_mut().find(|curve| curve.policy == policy) {
                Some(curve) => curve.runs.push((sketch, jobs)),
                None => curves.push(Self { policy, running: false, each: 1, runs: vec![(sketch, jobs)] }),
            }
        }
        curves
    }
}

/// A run in detail.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RunView {
    /// Id of the run.
    pub run: String,
    pub policy: String,
    pub seed: u64,
    pub running: bool,
    /// The emulated clock, s.
    pub at_s: f64,
    /// Numbers of jobs, tasks and copies so far.
    pub counts: Counts,
    /// Running copies and waiting tasks over time, evenly thinned in a long run.
    pub history: Vec<HistoryPoint>,
    /// Numbers of messages sent over the network, by kind.
    pub messages: BTreeMap<String, u64>,
    /// Number of datagrams lost and of stream messages returned to their sender.
    pub dropped: u64,
    /// Staleness over time: means over the observed caches or, under a policy with a shared state, over its copies.
    #[serde(rename = "staleness")]
    pub looks: Vec<Look>,
    /// The cores, or evenly spaced cores of a large cluster. An ended run keeps the cores of its last sample if another
    /// displayed run of the cell has cores, and has none otherwise.
    pub cores: CoresView,
    /// Lateness and vitals, by shard; empty in virtual time.
    pub shards: Vec<ShardView>,
}

/// Counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Number of jobs in the workload.
    pub jobs: u64,
    pub jobs_submitted: u64,
    pub jobs_finished: u64,
    pub tasks_submitted: u64,
    pub tasks_finished: u64,
    pub copies_started: u64,
    pub copies_finished: u64,
    pub copies_preempted: u64,
    pub copies_lost: u64,
    /// Number of copies that run on cores now.
    pub copies_running: u64,
    /// Number of submitted tasks that neither finished nor run.
    pub tasks_waiting: u64,
}

impl Counts {
    /// The current counts of a run with a workload of `jobs` jobs.
    pub fn new(jobs: u64, so_far: SoFar) -> Self {
        let SoFar { jobs: job_counts, tasks, copies, running, waiting } = so_far;
        Self {
            jobs,
            jobs_submitted: job_counts.submitted,
            jobs_finished: job_counts.finished,
            tasks_submitted: tasks.submitted,
            tasks_finished: tasks.finished,
            copies_started: copies.started,
            copies_finished: copies.finished,
            copies_preempted: copies.preempted,
            copies_lost: copies.lost,
            copies_running: running.into(),
            tasks_waiting: waiting,
        }
    }
}

/// The load at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct HistoryPoint {
    pub at_s: f64,
    pub copies_running: u64,
    pub tasks_waiting: u64,
}

/// Cores at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CoresView {
    /// Number of cores of the cluster.
    pub total: u32,
    /// Distance between listed cores: every `step`-th core is listed.
    pub step: u32,
    pub listed: Vec<Tile>,
}

/// The cores of the hosts of a run, by host; empty unless the run is on hosts.
pub type HostCores = [(String, CoreSet)];

/// A shard in real time. The first shard of a process also has the vitals of its host.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ShardView {
    pub name: String,
    /// Lateness of messages; `None` if it was not measured by shard.
    pub deliveries: Option<LateSoFar>,
    /// Lateness of timers.
    pub timers: Option<LateSoFar>,
    pub vitals: Option<VitalsSample>,
}

/// A fault of the experiment, or an injection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Disturbance {
    /// `crash`, `pause`, `partition`, `degrade`, `scheduled injection` or `injection`.
    pub kind: String,
    pub at_s: f64,
    /// End of the disturbance, s; `None` if it lasts until the end, or until it is lifted.
    pub until_s: Option<f64>,
    /// Targets and effect of the disturbance.
    pub says: String,
}

/// The faults and injections of an experiment, in its order.
pub(super) fn planned<'a>(
    faults: &[FaultSpec],
    injections: impl Iterator<Item = &'a InjectionSpec>,
) -> Vec<Disturbance> {
    faults.iter().map(fault).chain(injections.map(scheduled)).collect()
}

/// The start of a fault, and its duration; `None` if the fault has no end.
const fn window(fault: &FaultSpec) -> (Span, Option<Span>) {
    match fault {
        FaultSpec::Partition(fault) => (fault.at, Some(fault.lasting)),
        FaultSpec::Crash(fault) => (fault.at, fault.lasting),
        FaultSpec::Pause(fault) => (fault.at, Some(fault.lasting)),
        FaultSpec::Degrade(fault) => (fault.at, Some(fault.lasting)),
    }
}

fn fault(fault: &FaultSpec) -> Disturbance {
    let (at, lasting) = window(fault);
    let sides = fault.targets().map(|(_, targets)| {
        let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
        names.join(", ")
    });
    let mut says = sides.collect::<Vec<_>>().join(" against ");
    if let FaultSpec::Degrade(degrade) = fault {
        says = format!("{says}: delays ×{}", number::short(degrade.delay_factor));
    }
    Disturbance {
        kind: fault.kind().to_owned(),
        at_s: at.as_secs_f64(),
        until_s: lasting.map(|lasting| (at + lasting).as_secs_f64()),
        says,
    }
}

/// A part of an injection: cores, their host, and start and end, s; the end is infinite if unknown.
type Part = (String, String, (f64, f64));

fn part(cores: &CoreSet, host: &str, injection: &Injection) -> Part {
    let until = if injection.until < Time::MAX { injection.until.as_secs_f64() } else { f64::INFINITY };
    (cores.to_string(), host.to_owned(), (injection.from.as_secs_f64(), until))
}

/// An injection of a kind with its parts, and the profile as text.
fn injection(kind: &str, profile: &str, parts: &[Part]) -> Disturbance {
    let cores = parts.iter().map(|(cores, host, _)| format!("cores {cores} on {host}"));
    let says = cores.chain([profile.to_owned()]);
    let until = parts.iter().map(|part| part.2.1).fold(0.0, f64::max);
    Disturbance {
        kind: kind.to_owned(),
        at_s: parts.iter().map(|part| part.2.0).fold(f64::INFINITY, f64::min),
        until_s: Some(until).filter(|until| until.is_finite()),
        says: says.collect::<Vec<_>>().join(", "),
    }
}

/// The kind of an injection from outside.
const INJECTION: &str = "injection";
/// The kind of an injection that the experiment schedules.
const SCHEDULED: &str = "scheduled injection";

/// An injection from outside into a run in progress, by host.
pub(super) fn injecting(shares: &[(String, Injection)]) -> Option<Disturbance> {
    let profile = describe::profile(&shares.first()?.1.profile.table);
    let parts: Vec<Part> = shares.iter().map(|(host, share)| part(&share.cores, host, share)).collect();
    Some(injection(INJECTION, &profile, &parts))
}

/// The injections from outside into a run that has ended.
pub(super) fn injected(injections: &[Injected]) -> Vec<Disturbance> {
    let of = |injected: &Injected| {
        let table = injected.profile.clone().into_iter().collect();
        let table = serde_json::from_value::<Interference>(serde_json::Value::Object(table));
        let kinds = |_| injected.profile.keys().cloned().collect::<Vec<_>>().join(", ");
        let profile = table.map_or_else(kinds, |table| describe::profile(&table));
        let part = |applied: &Applied| {
            (applied.cores.clone(), applied.host.clone(), (applied.from_s, applied.until_s))
        };
        injection(INJECTION, &profile, &injected.hosts.iter().map(part).collect::<Vec<_>>())
    };
    injections.iter().map(of).collect()
}

/// An injection that the experiment schedules.
fn scheduled(spec: &InjectionSpec) -> Disturbance {
    let cores = (!spec.cores.is_empty()).then(|| format!("cores {}", spec.cores));
    let mut says: Vec<String> = spec.who.iter().map(ToString::to_string).chain(cores).collect();
    if says.is_empty() {
        says.push("all cores".to_owned());
    }
    says.push(describe::profile(&spec.profile));
    Disturbance {
        kind: SCHEDULED.to_owned(),
        at_s: spec.at.as_secs_f64(),
        until_s: spec.lasting.map(|lasting| (spec.at + lasting).as_secs_f64()),
        says: says.join(", "),
    }
}

/// The faults and scheduled injections of a run on hosts, with the hosts of the injected cores.
pub(super) fn placed(faults: &[FaultSpec], injections: &[Injection], hosts: &HostCores) -> Vec<Disturbance> {
    let by_host = |one: &Injection| {
        let shares = hosts.iter().map(|(host, cores)| (host, cores.intersection(&one.cores)));
        let shares = shares.filter(|(_, cores)| !cores.is_empty());
        let parts: Vec<Part> = shares.map(|(host, cores)| part(&cores, host, one)).collect();
        injection(SCHEDULED, &describe::profile(&one.profile.table), &parts)
    };
    faults.iter().map(fault).chain(injections.iter().map(by_host)).collect()
}

/// The view of an ended run, without cores and history.
pub(super) fn view(record: &RunRecord) -> RunView {
    let summary = &record.summary;
    RunView {
        run: record.id.clone(),
        policy: summary.policy.clone(),
        seed: summary.seed,
        running: false,
        at_s: summary.makespan_s,
        counts: counts(summary),
        messages: summary.messages.by_kind.clone(),
        dropped: summary.messages.dropped,
        looks: record.looks.clone(),
        shards: shards(summary),
        ..RunView::default()
    }
}

fn counts(summary: &Summary) -> Counts {
    let &Summary { jobs, tasks, copies, .. } = summary;
    Counts::new(jobs.submitted, SoFar { jobs, tasks, copies, running: 0, waiting: 0 })
}

/// A row for the lateness of the whole run, measured over all hosts, and a row for the vitals of each host.
fn shards(summary: &Summary) -> Vec<ShardView> {
    let Some(certificate) = &summary.fidelity else { return Vec::new() };
    let late = |late: &Late| Some(LateSoFar { p50_s: late.p50_s, p99_s: late.p99_s, max_s: late.max_s });
    let all = ShardView {
        name: "all".to_owned(),
        deliveries: late(&certificate.lateness.deliveries),
        timers: late(&certificate.lateness.timers),
        vitals: None,
    };
    let host = |host: &HostVitals| ShardView {
        name: host.name.clone(),
        deliveries: None,
        timers: None,
        vitals: Some(VitalsSample {
            cpu_share: host.cpu_share,
            machine_share: host.machine_share,
            steal_share: host.steal_share,
            peak_rss_bytes: host.peak_rss_bytes,
        }),
    };
    std::iter::once(all).chain(certificate.hosts.iter().map(host)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_injection_names_the_hosts_of_its_cores() {
        let profile = "bernoulli = { slot = \"1s\", probability = 1, slowdown = 2 }";
        let profile = toml::from_str::<Interference>(profile).unwrap().resolve().unwrap();
        let [from, until] = [2, 3].map(|s| Time::ZERO + Span::from_secs(s));
        let injection = Injection { profile, seed: 1, cores: CoreSet::below(5), from, until };
        let hosts = [("h1", 0..3), ("h2", 3..9), ("h3", 9..12)];
        let hosts = hosts.map(|(host, cores)| (host.to_owned(), cores.collect()));
        let profile = "bernoulli = { slot = \"1s\", probability = 1.0, slowdown = 2.0 }";
        let [shown] = &placed(&[], &[injection], &hosts)[..] else { panic!("one injection") };
        assert_eq!(shown.says, format!("cores 0-2 on h1, cores 3-4 on h2, {profile}"));
        assert_eq!((shown.at_s, shown.until_s), (2.0, Some(3.0)));
    }

    #[test]
    fn faults_and_scheduled_injections_are_shown_from_their_start() {
        #[derive(serde::Deserialize)]
        struct Planned {
            fault: Vec<FaultSpec>,
            injection: Vec<InjectionSpec>,
        }
        let text = "[[fault]]\ncrash = { who = [\"node:3\"], at = \"2s\" }\n[[fault]]\n\
                    degrade = { a = [\"node:1\"], at = \"5s\", for = \"1s\", delay_factor = 10 }\n\
                    [[injection]]\nwho = [\"node:1\"]\ncores = \"7\"\nat = \"6s\"\nfor = \"4s\"\n\
                    profile = { bernoulli = { slot = \"1s\", probability = 1, slowdown = 2 } }\n";
        let specs = toml::from_str::<Planned>(text).unwrap();
        let planned = planned(&specs.fault, specs.injection.iter());
        let at = |times: &[f64]| {
            let run = |at_s: &f64| RunView { at_s: *at_s, ..RunView::default() };
            let runs = times.iter().map(run).collect();
            CellView::new(&Cell::new(), Vec::new(), runs, &planned).disturbances
        };
        assert_eq!((at(&[1.0]).len(), at(&[2.0]).len(), at(&[9.0]).len()), (0, 1, 3));
        assert_eq!(at(&[1.0, 9.0, 7.0]), at(&[9.0]), "runs of all lengths share them");
        let found = at(&[9.0]);
        assert_eq!((found[0].kind.as_str(), found[0].until_s), ("crash", None));
        assert_eq!((found[1].at_s, found[1].until_s), (5.0, Some(6.0)));
        assert!(found[0].says.contains('3') && found[1].says.ends_with(": delays ×10.0"), "{found:?}");
        assert_eq!((found[2].at_s, found[2].until_s), (6.0, Some(10.0)), "the planned end");
        assert!(found[2].says.starts_with("node:1, cores 7, bernoulli = {"), "{found:?}");
    }
}
