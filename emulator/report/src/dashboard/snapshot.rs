//! The snapshot of an experiment: what the live page shows at one moment, in one form for all runtimes and for folders.
//!
//! Times are emulated seconds unless a name says `real`. `volary run --live` serves it as `snapshot.json`.

use std::collections::BTreeMap;

use serde::Serialize;
use volary_engine::metrics::SoFar;
use volary_engine::results::Cell;
use volary_experiment::observer::LateSoFar;
use volary_experiment::observer::VitalsSample;
use volary_experiment::storage::run_record::{Look, Sketch};

/// An experiment at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Snapshot {
    pub header: PageHeader,
    /// Whether runs are still to come; `false` once the experiment has ended.
    pub running: bool,
    /// How the experiment ended, or that it goes on, as the manifest says it.
    pub state: String,
    /// Real time since the experiment began, s; `None` if that is not known.
    pub real_s: Option<f64>,
    /// Estimate of the real time left, s; `None` before a job has finished, and at the end.
    pub real_left_s: Option<f64>,
    /// Why a folder cannot be read now, where this is what it held before.
    pub outdated: Option<String>,
    /// Every planned run, in the order of the experiment.
    pub runs: Vec<RunEntry>,
    /// The cell that is looked at: the one whose run began last, or in a folder ended last.
    pub cell: Option<CellView>,
}

/// What does not change while an experiment runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PageHeader {
    /// Name of the experiment.
    pub experiment: String,
    pub title: String,
    /// `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Labels of the policies, in order; a policy's place decides its colour.
    pub policies: Vec<String>,
    /// The study directory.
    pub folder: String,
}

impl PageHeader {
    /// The index of a policy's colour.
    pub(super) fn colour(&self, policy: &str) -> usize {
        self.policies.iter().position(|known| known == policy).unwrap_or(0)
    }
}

/// A planned run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunEntry {
    /// Id of the run.
    pub run: String,
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// `None` where a folder does not say it yet.
    pub seed: Option<u64>,
    pub stage: RunStage,
    /// Jobs of the workload; 0 until it has been built.
    pub jobs: u64,
    /// Number of these that have finished.
    pub finished: u64,
    /// Median and 99th percentile of the response times of a run that has ended, s.
    pub response_s: Option<(f64, f64)>,
    /// Estimate of the real time left, s; `None` unless it is running and a job has finished.
    pub real_left_s: Option<f64>,
    /// Why it failed.
    pub why: Option<String>,
}

impl RunEntry {
    /// A run that has not begun.
    pub fn waiting(run: &str, policy: &str, cell: &Cell, seed: Option<u64>) -> Self {
        Self {
            run: run.to_owned(),
            policy: policy.to_owned(),
            cell: cell.clone(),
            seed,
            stage: RunStage::Waiting,
            jobs: 0,
            finished: 0,
            response_s: None,
            real_left_s: None,
            why: None,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStage {
    #[default]
    Waiting,
    Running,
    Finished,
    Failed,
}

/// The cell that is looked at.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CellView {
    /// Values of the swept keys.
    pub cell: Cell,
    /// Distributions of response times, of ended and of running runs.
    pub curves: Vec<CurveView>,
    /// The run that began last, or in a folder ended last.
    pub run: Option<RunView>,
}

/// Response times of a policy: of its runs that have ended, or of one that goes on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CurveView {
    pub policy: String,
    /// Whether the run goes on: then the curve ends at the share of jobs that have finished.
    pub running: bool,
    /// Jobs that each value of a distribution represents: more than one if a sample of the jobs of a running cell is
    /// enough.
    pub each: u32,
    /// The distribution of each run, with its number of jobs over `each`.
    pub runs: Vec<(Sketch, u64)>,
}

impl CurveView {
    /// A curve for each policy, in the order in which they appear, from the distributions and numbers of jobs of runs
    /// that have ended.
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
    /// The emulated clock.
    pub at_s: f64,
    /// Jobs, tasks and copies so far.
    pub counts: Counts,
    /// Running copies and waiting tasks over time, evenly thinned in a long run.
    pub history: Vec<HistoryPoint>,
    /// Messages sent over the network, by kind.
    pub messages: BTreeMap<String, u64>,
    /// Datagrams lost and stream messages returned to their sender.
    pub dropped: u64,
    /// Means over the observed caches, or copies of a shared state.
    #[serde(rename = "staleness")]
    pub looks: Vec<Look>,
    /// The cores, or evenly spaced ones of them; empty for a run that has ended.
    pub cores: CoresView,
    /// Lateness and vitals, by shard; empty in virtual time.
    pub shards: Vec<ShardView>,
    /// Faults and injections that have begun, by time.
    pub disturbances: Vec<Disturbance>,
}

/// Counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Jobs of the workload.
    pub jobs: u64,
    pub jobs_submitted: u64,
    pub jobs_finished: u64,
    pub tasks_submitted: u64,
    pub tasks_finished: u64,
    pub copies_started: u64,
    pub copies_finished: u64,
    pub copies_preempted: u64,
    pub copies_lost: u64,
    /// Copies on cores now.
    pub copies_running: u64,
    /// Submitted tasks that have neither finished nor a running copy.
    pub tasks_waiting: u64,
}

impl Counts {
    /// The counts so far of a run with a workload of `jobs` jobs.
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
    /// All cores of the cluster.
    pub total: u32,
    /// Every `step`-th of them is listed.
    pub step: u32,
    pub listed: Vec<CoreState>,
}

/// A core at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CoreState {
    pub core: u32,
    /// Whether it runs a copy.
    pub busy: bool,
    /// Factor by which interference slows it down, at least 1; `None` while its node is down or paused.
    pub slowdown: Option<f64>,
}

/// A shard in real time, and for the first one of a process the vitals of its host.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ShardView {
    pub name: String,
    /// Lateness of messages; `None` where it was not measured by shard.
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
    /// `None` if it lasts until the end, or until it is lifted.
    pub until_s: Option<f64>,
    /// Whom it concerns, and what it does.
    pub says: String,
}
