//! The state of a running experiment, which runs report and viewers read, and samples of its runs in progress: the
//! source of the live page in virtual time, in one process and on hosts.
//!
//! A sample reads the recorder and does not affect the order of events. Counts are always sampled. Details are costly,
//! and are sampled only for a few seconds after [`SnapshotSource::request_details`]. The interval between two samples
//! grows with the duration of a sample: samples take at most half a per cent of the time of a run without viewers, and
//! at most a fortieth with viewers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use volary_actors::base::{CoreSet, Endpoint, Time};
use volary_actors::message::kind_name;
use volary_engine::cores::{Cores, Injection};
use volary_engine::metrics::{Recorder, SoFar};
use volary_engine::results::{Cell, cell_name};
use volary_engine::world::World;
use volary_experiment::control::{BegunRun, Counted, ExpectedRun, RunObserver, ShardSample, StudyObserver};
use volary_experiment::guard::guard;
use volary_experiment::storage::manifest::RunState;
use volary_experiment::storage::run_record::{RunRecord, Sketch, looks};

use super::snapshot;
use super::snapshot::{
    CellView, CoresView, Counts, CurveView, Disturbance, HistoryPoint, HostCores, PageHeader, RunEntry,
    RunStage, RunView, ShardView, Snapshot, SnapshotSource,
};
use crate::chart::timeline::Tile;

/// Duration for which a request for details holds.
const REQUEST: Duration = Duration::from_secs(3);
/// Maximum number of stored points of the distributions of all ended runs.
const POINTS: usize = 1 << 20;
/// Minimum number of stored points of the distribution of an ended run.
const FEWEST: usize = 128;
/// Minimum real time between two samples.
const INTERVAL: Duration = Duration::from_millis(250);
/// Minimum real time between two samples without viewers, as a multiple of the duration of the last sample.
const UNSEEN: u32 = 200;
/// Minimum real time between two samples with viewers, as a multiple of the duration of the last sample.
const SEEN: u32 = 40;
/// Maximum number of jobs whose response times are in a sample.
const JOBS: u32 = 20_000;
/// Maximum number of cores in a sample.
const CORES: u32 = 600;
/// Maximum number of points of a history.
const HISTORY: usize = 400;

/// An experiment in progress.
#[derive(Debug)]
pub struct Dashboard {
    origin: Instant,
    /// Real time since `origin` until which details are requested, ms.
    requested_until: AtomicU64,
    state: Mutex<Plan>,
}

/// The planned runs, and the data that they have reported.
#[derive(Debug, Default)]
struct Plan {
    header: PageHeader,
    state: String,
    running: bool,
    entries: Vec<RunEntry>,
    /// Index of each run among the entries, by id.
    places: BTreeMap<String, usize>,
    /// The cells, by name.
    cells: BTreeMap<String, PlannedCell>,
    /// Start of each run in this process, by index.
    began: BTreeMap<usize, Instant>,
    /// Number of submitted jobs of the ended runs that this process did not execute.
    kept: u64,
    /// Response times of the ended runs, with their numbers of jobs.
    ended: BTreeMap<usize, (Sketch, u64)>,
    /// Response times of the runs in progress.
    growing: BTreeMap<usize, CurveView>,
    /// Details of the runs in progress, of the ended runs that the page shows, and of those that it will show when
    /// another run of their cell begins.
    views: BTreeMap<usize, RunView>,
    /// Index of the run that began last.
    latest: Option<usize>,
    /// The cores of each host in the latest run; empty unless it is on hosts.
    hosts: Vec<(String, CoreSet)>,
    /// Injections into the latest run: the number of each, and its share on each host. They are in the order of their
    /// requests: of several injections into one core, the last applies.
    injections: Vec<(u64, Vec<(String, Injection)>)>,
}

/// A cell of the plan.
#[derive(Debug)]
struct PlannedCell {
    /// Indices of the cell's runs.
    runs: Vec<usize>,
    /// Faults and injections of the experiment, which are the same in all runs.
    disturbances: Vec<Disturbance>,
}

impl Dashboard {
    /// The state before the first run.
    pub fn new(header: PageHeader, runs: &[ExpectedRun<'_>]) -> Self {
        let mut plan = Plan { header, running: true, state: "running".to_owned(), ..Plan::default() };
        plan.add(runs);
        Self { origin: Instant::now(), requested_until: AtomicU64::new(0), state: Mutex::new(plan) }
    }

    /// Reports that `finished` jobs of a run have finished, and, if requested, its details and response times.
    pub(super) fn look(&self, run: &str, finished: u64, details: Option<(RunView, CurveView)>) {
        let mut plan = guard(&self.state);
        let Some(&at) = plan.places.get(run) else { return };
        plan.entries[at].finished = finished;
        if let Some((view, curve)) = details {
            plan.growing.insert(at, curve);
            plan.views.insert(at, view);
        }
    }

    /// The injections into the run that began last.
    pub(super) fn injections(&self) -> Vec<Injection> {
        let plan = guard(&self.state);
        plan.injections
            .iter()
            .flat_map(|(_, shares)| shares)
            .map(|(_, injection)| injection.clone())
            .collect()
    }

    /// The cores of each host in the run that began last; empty unless it is on hosts.
    fn hosts(&self) -> Vec<(String, CoreSet)> {
        guard(&self.state).hosts.clone()
    }

    /// Reports the faults and injections of the experiment in the cell of a run that begins.
    fn planned(&self, run: &str, planned: Vec<Disturbance>) {
        let mut plan = guard(&self.state);
        let Some(&at) = plan.places.get(run) else { return };
        let cell = cell_name(&plan.entries[at].cell);
        if let Some(cell) = plan.cells.get_mut(&cell) {
            cell.disturbances = planned;
        }
    }

    /// Whether runs must report details.
    fn details_requested(&self) -> bool {
        (self.origin.elapsed().as_millis() as u64) < self.requested_until.load(Ordering::Relaxed)
    }
}

impl SnapshotSource for Dashboard {
    fn snapshot(&self) -> Snapshot {
        guard(&self.state).snapshot(self.origin.elapsed().as_secs_f64())
    }

    fn request_details(&self) {
        let until = self.origin.elapsed() + REQUEST;
        self.requested_until.store(until.as_millis() as u64, Ordering::Relaxed);
    }
}

impl StudyObserver for Dashboard {
    fn expect(&self, runs: &[ExpectedRun<'_>]) {
        guard(&self.state).add(runs);
    }

    fn begin(&self, run: &BegunRun<'_>) {
        let mut plan = guard(&self.state);
        let Some(&at) = plan.places.get(run.id) else { return };
        plan.began.insert(at, Instant::now());
        let entry = &mut plan.entries[at];
        (entry.stage, entry.jobs, entry.finished) = (RunStage::Running, run.jobs, 0);
        entry.injections.clear();
        plan.latest = Some(at);
        plan.injections.clear();
        plan.hosts.clear();
        plan.forget();
    }

    fn of_run<'a>(&'a self, run: &str, world: &'a World) -> Box<dyn RunObserver + 'a> {
        Box::new(Sampler::new(self, run, world))
    }

    fn placed(&self, hosts: &[(String, CoreSet)]) {
        guard(&self.state).hosts = hosts.to_vec();
    }

    fn inject(&self, number: u64, shares: &[(String, Injection)]) {
        let mut plan = guard(&self.state);
        match plan.injections.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => *known = shares.to_vec(),
            None => plan.injections.push((number, shares.to_vec())),
        }
        if let Some(latest) = plan.latest {
            let injections = plan.injections.iter();
            plan.entries[latest].injections =
                injections.filter_map(|(_, shares)| snapshot::injecting(shares)).collect();
        }
    }

    fn sees_kept_runs(&self) -> bool {
        true
    }

    fn finished(&self, record: &RunRecord) {
        let mut plan = guard(&self.state);
        let Some(&at) = plan.places.get(&record.id) else { return };
        let (summary, here) = (&record.summary, plan.began.contains_key(&at));
        plan.entries[at].finish(summary);
        plan.kept += if here { 0 } else { summary.jobs.submitted };
        plan.growing.remove(&at);
        let points = (POINTS / plan.entries.len()).max(FEWEST);
        plan.ended.insert(at, (record.response.thinned(points), summary.jobs.submitted));
        plan.latest.get_or_insert(at);
        plan.views.entry(at).or_default();
        plan.forget();
        let is_beside = plan.is_beside(at);
        // A kept run of another cell is not shown, and needs no view.
        if let Some(view) = plan.views.get_mut(&at) {
            let RunView { history, cores, .. } = std::mem::take(view);
            let cores = if is_beside { cores } else { CoresView::default() };
            *view = RunView { history, cores, ..snapshot::view(record) };
        }
    }

    fn failed(&self, run: &str, why: &str) {
        let mut plan = guard(&self.state);
        let Some(&at) = plan.places.get(run) else { return };
        let entry = &mut plan.entries[at];
        (entry.stage, entry.why) = (RunStage::Failed, Some(why.to_owned()));
        plan.growing.remove(&at);
        let is_beside = plan.is_beside(at);
        if let Some(view) = plan.views.get_mut(&at) {
            view.running = false;
            if !is_beside {
                view.cores = CoresView::default();
            }
        }
        plan.forget();
    }

    fn over(&self, state: RunState) {
        let mut plan = guard(&self.state);
        (plan.running, plan.state) = (false, state.to_string());
        // An interrupted run has no result.
        plan.growing.clear();
        plan.entries.iter_mut().filter(|entry| entry.stage == RunStage::Running).for_each(|entry| {
            (entry.stage, entry.finished) = (RunStage::Waiting, 0);
        });
        plan.views.values_mut().for_each(|view| view.running = false);
    }
}

impl Plan {
    /// Adds runs that have not begun.
    fn add(&mut self, runs: &[ExpectedRun<'_>]) {
        for run in runs {
            let at = self.entries.len();
            self.places.insert(run.run.to_owned(), at);
            self.entries.push(RunEntry::waiting(run.run, run.policy, run.cell, Some(run.seed)));
            let cell = self.cells.entry(cell_name(run.cell)).or_insert_with(|| {
                let injections = run.injections.iter().map(|scheduled| &scheduled.spec);
                PlannedCell { runs: Vec::new(), disturbances: snapshot::planned(run.faults, injections) }
            });
            cell.runs.push(at);
        }
    }

    /// The cell of a planned run.
    fn planned(&self, cell: &Cell) -> &PlannedCell {
        &self.cells[&cell_name(cell)]
    }

    /// The runs of a cell whose details the page shows, one for each policy: a run in progress if there is one, or else
    /// the run that began last.
    fn shown(&self, cell: &Cell) -> Vec<usize> {
        let rank =
            |at: &usize| (self.entries[*at].stage == RunStage::Running, self.began.get(at).copied(), *at);
        let mut shown: Vec<usize> = Vec::new();
        for &at in self.planned(cell).runs.iter().filter(|at| self.views.contains_key(at)) {
            match shown.iter_mut().find(|other| self.entries[**other].policy == self.entries[at].policy) {
                Some(other) => *other = std::cmp::max_by_key(*other, at, rank),
                None => shown.push(at),
            }
        }
        shown
    }

    /// Whether another displayed run of the cell has cores; a run that ends then keeps its cores. Concurrent runs thus
    /// stay side by side, while of runs that execute one after the other, only the run in progress has cores.
    fn is_beside(&self, at: usize) -> bool {
        let has_cores = |other: &usize| *other != at && !self.views[other].cores.listed.is_empty();
        self.shown(&self.entries[at].cell).iter().any(has_cores)
    }

    /// Removes the details of ended runs that the page neither shows nor will show again when another run of their cell
    /// begins.
    fn forget(&mut self) {
        let latest = self.latest.map(|latest| &self.entries[latest].cell);
        let is_open = |entry: &RunEntry| matches!(entry.stage, RunStage::Waiting | RunStage::Running);
        let returns = |cell: &Cell| self.planned(cell).runs.iter().any(|at| is_open(&self.entries[*at]));
        let is_kept = |at: &usize| {
            let RunEntry { stage, cell, .. } = &self.entries[*at];
            let is_displayed = || Some(cell) == latest || returns(cell);
            *stage == RunStage::Running || (is_displayed() && self.shown(cell).contains(at))
        };
        let kept: BTreeSet<usize> = self.views.keys().copied().filter(is_kept).collect();
        self.views.retain(|at, _| kept.contains(at));
    }

    fn snapshot(&self, real_s: f64) -> Snapshot {
        let mut runs = self.entries.clone();
        for (at, began) in &self.began {
            let entry = &mut runs[*at];
            if entry.stage == RunStage::Running {
                entry.real_left_s = left(entry.finished, entry.jobs, began.elapsed().as_secs_f64());
            }
        }
        Snapshot {
            header: self.header.clone(),
            running: self.running,
            state: self.state.clone(),
            real_s: Some(real_s),
            real_left_s: self.running.then(|| self.left(real_s)).flatten(),
            outdated: None,
            runs,
            cell: self.latest.map(|latest| self.cell(latest)),
        }
    }

    /// Estimate of the real time left, if all runs have the same number of jobs.
    fn left(&self, real_s: f64) -> Option<f64> {
        let known = || self.entries.iter().filter(|entry| entry.jobs > 0);
        let mean = known().map(|entry| entry.jobs).sum::<u64>() as f64 / known().count().max(1) as f64;
        let failed = |entry: &&RunEntry| entry.stage == RunStage::Failed;
        let over = self.entries.iter().filter(failed).count() as f64 * mean;
        let all = mean * self.entries.len() as f64 - over - self.kept as f64;
        // An ended run leaves no work, whether its jobs finished or not.
        let done = known().filter(|entry| entry.stage != RunStage::Failed).map(|entry| match entry.stage {
            RunStage::Finished => entry.jobs,
            RunStage::Waiting | RunStage::Running | RunStage::Failed => entry.finished,
        });
        left(done.sum::<u64>().saturating_sub(self.kept), all.max(0.0) as u64, real_s)
    }

    /// The view of the cell of a run.
    fn cell(&self, latest: usize) -> CellView {
        let cell = &self.entries[latest].cell;
        let PlannedCell { runs: of_cell, disturbances } = self.planned(cell);
        let ended = of_cell.iter().filter_map(|at| {
            let (sketch, jobs) = self.ended.get(at)?;
            Some((self.entries[*at].policy.clone(), sketch.clone(), *jobs))
        });
        let mut curves = CurveView::of_ended(ended);
        curves.extend(of_cell.iter().filter_map(|at| self.growing.get(at).cloned()));
        let runs = self.shown(cell).iter().filter_map(|at| self.views.get(at).cloned()).collect();
        CellView::new(cell, curves, runs, disturbances)
    }
}

/// Estimate of the real time left after `done` of `all` jobs took `real_s`; `None` before the first job and after the
/// last.
fn left(done: u64, all: u64, real_s: f64) -> Option<f64> {
    (done > 0 && done < all).then(|| real_s * (all - done) as f64 / done as f64)
}

/// A sampler of one run.
#[derive(Debug)]
struct Sampler<'a> {
    dashboard: &'a Dashboard,
    /// Id of the run.
    run: String,
    world: &'a World,
    /// Cores of the world without copies, from which slowdowns are computed, and the injections applied to these cores;
    /// `None` before the first detailed sample.
    cores: Option<(Cores, Vec<Injection>)>,
    history: History,
    due: Instant,
}

impl<'a> Sampler<'a> {
    /// A sampler of the run with this id.
    fn new(dashboard: &'a Dashboard, run: &str, world: &'a World) -> Self {
        let (run, history, hosts) = (run.to_owned(), History::default(), dashboard.hosts());
        if !hosts.is_empty() {
            let faults = &world.point().resolved.network.fault;
            dashboard.planned(&run, snapshot::placed(faults, world.scheduled(), &hosts));
        }
        Self { dashboard, run, world, cores: None, history, due: Instant::now() }
    }

    fn view(&mut self, now: Time, recorder: &Recorder<'_>, so_far: SoFar, counted: &Counted) -> RunView {
        let point = self.world.point();
        let hosts = self.dashboard.hosts();
        RunView {
            run: self.run.clone(),
            policy: point.label.clone(),
            seed: self.world.seed(),
            running: true,
            at_s: now.as_secs_f64(),
            counts: Counts::new(self.world.workload().chains().into(), so_far),
            history: self.history.points.clone(),
            messages: messages(counted),
            dropped: counted.dropped,
            looks: looks(recorder.cache_samples()),
            cores: self.cores(now, recorder, &hosts),
            shards: shards(counted),
        }
    }

    fn cores(&mut self, now: Time, recorder: &Recorder<'_>, hosts: &HostCores) -> CoresView {
        let injections = self.dashboard.injections();
        let known = self.cores.take().filter(|(_, known)| *known == injections);
        let (cores, _) = &*self.cores.insert(known.unwrap_or_else(|| {
            let mut cores = self.world.cores();
            for injection in &injections {
                cores.inject(injection);
            }
            (cores, injections)
        }));
        let layout = self.world.layout();
        let (total, faults) = (layout.workers(), self.world.faults());
        let step = total.div_ceil(CORES).max(1);
        let state = |core: u32| {
            let node = layout.node(layout.node_of_core(core));
            let rate = cores.rate(core, now);
            let up = rate > 0.0 && faults.alive(Endpoint(node.0), now);
            let slowdown = up.then(|| (cores.table().speed(core) / rate).max(1.0));
            let host = hosts.iter().find(|(_, cores)| cores.contains(core)).map(|(host, _)| host.clone());
            Tile { core, busy: recorder.is_busy(core), slowdown, host }
        };
        CoresView { total, step, listed: (0..total).step_by(step as usize).map(state).collect() }
    }
}

impl RunObserver for Sampler<'_> {
    fn look(&mut self, now: Time, recorder: &Recorder<'_>, counted: &dyn Fn() -> Counted) {
        let began = Instant::now();
        if began < self.due {
            return;
        }
        let requested = self.dashboard.details_requested();
        let so_far = recorder.so_far();
        self.history.add(HistoryPoint {
            at_s: now.as_secs_f64(),
            copies_running: so_far.running.into(),
            tasks_waiting: so_far.waiting,
        });
        let details = requested.then(|| {
            let (responses, each) = recorder.responses(JOBS);
            let jobs = self.world.workload().chains().div_ceil(each);
            let view = self.view(now, recorder, so_far, &counted());
            let runs = vec![(Sketch::new(responses), u64::from(jobs))];
            let curve = CurveView { policy: view.policy.clone(), running: true, each, runs };
            (view, curve)
        });
        self.dashboard.look(&self.run, so_far.jobs.finished, details);
        self.due = began + INTERVAL.max(began.elapsed() * if requested { SEEN } else { UNSEEN });
    }
}

/// Numbers of messages by the names of their kinds.
pub(super) fn messages(counted: &Counted) -> BTreeMap<String, u64> {
    let named = (0..).zip(&counted.by_kind).filter(|(_, count)| **count > 0);
    named.map(|(kind, count)| (kind_name(kind).to_owned(), *count)).collect()
}

/// The shards as the page shows them.
fn shards(counted: &Counted) -> Vec<ShardView> {
    let view = |(name, sample): &(String, Option<ShardSample>)| ShardView {
        name: name.clone(),
        deliveries: sample.as_ref().map(|sample| sample.deliveries),
        timers: sample.as_ref().map(|sample| sample.timers),
        vitals: sample.as_ref().and_then(|sample| sample.vitals),
    };
    counted.shards.iter().map(view).collect()
}

/// A history of bounded length: a long run keeps only every second, fourth, eighth … sample.
#[derive(Debug)]
struct History {
    points: Vec<HistoryPoint>,
    /// Number of samples taken, and number of samples per kept sample.
    taken: usize,
    stride: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { points: Vec::new(), taken: 0, stride: 1 }
    }
}

impl History {
    fn add(&mut self, point: HistoryPoint) {
        let keep = self.taken.is_multiple_of(self.stride);
        self.taken += 1;
        if !keep {
            return;
        }
        self.points.push(point);
        if self.points.len() == HISTORY {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_keeps_evenly_spaced_samples() {
        let mut history = History::default();
        for i in 0..10_000 {
            history.add(HistoryPoint { at_s: f64::from(i), copies_running: 1, tasks_waiting: 0 });
        }
        let times: Vec<f64> = history.points.iter().map(|point| point.at_s).collect();
        assert!(times.len() >= HISTORY / 2 && times.len() < HISTORY, "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == history.stride as f64), "{times:?}");
        assert_eq!(times[0], 0.0);
    }
}
