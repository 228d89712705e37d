//! Samples of a run in progress: the source of the live page in virtual time, in one process and on hosts.
//!
//! A sample reads the recorder and does not affect the order of events. Counts are always sampled, details only while
//! there are viewers. The interval between two samples grows with the duration of a sample: samples take at most half a
//! per cent of the time of a run without viewers, and at most a fortieth with viewers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use volary_actors::base::{CoreSet, Endpoint, Time};
use volary_actors::message::kind_name;
use volary_engine::cores::{Cores, Injection};
use volary_engine::metrics::{Recorder, SoFar};
use volary_engine::world::World;
use volary_experiment::control::{BegunRun, Counted, ExpectedRun, RunObserver, ShardSample, StudyObserver};
use volary_experiment::storage::manifest::RunState;
use volary_experiment::storage::run_record::{RunRecord, Sketch, looks};

use super::snapshot;
use super::snapshot::{CoresView, Counts, CurveView, HistoryPoint, HostCores, RunView, ShardView};
use super::state::Dashboard;
use crate::chart::timeline::Tile;

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

/// A sampler of one run.
#[derive(Debug)]
pub(super) struct Sampler<'a> {
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
    pub(super) fn new(dashboard: &'a Dashboard, run: &str, world: &'a World) -> Self {
        let (run, history, hosts) = (run.to_owned(), History::default(), dashboard.hosts());
        if !hosts.is_empty() {
            let faults = &world.point().resolved.network.fault;
            dashboard.planned(&run, snapshot::placed(faults, world.scheduled(), &hosts));
        }
        Self { dashboard, run, world, cores: None, history, due: Instant::now() }
    }

    /// Takes a sample of the records until `now`, if a sample is due.
    fn sample(&mut self, now: Time, recorder: &Recorder<'_>, counted: &dyn Fn() -> Counted) {
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

impl StudyObserver for Dashboard {
    fn expect(&self, runs: &[ExpectedRun<'_>]) {
        self.expect(runs);
    }

    fn begin(&self, run: &BegunRun<'_>) {
        self.begin(run.id, run.jobs);
    }

    fn of_run<'a>(&'a self, run: &str, world: &'a World) -> Box<dyn RunObserver + 'a> {
        Box::new(Sampler::new(self, run, world))
    }

    fn placed(&self, hosts: &[(String, CoreSet)]) {
        self.placed(hosts);
    }

    fn inject(&self, number: u64, shares: &[(String, Injection)]) {
        self.inject(number, shares);
    }

    fn sees_kept_runs(&self) -> bool {
        true
    }

    fn finished(&self, record: &RunRecord) {
        self.finished(record);
    }

    fn failed(&self, run: &str, why: &str) {
        self.failed(run, why);
    }

    fn over(&self, state: RunState) {
        self.over(state);
    }
}

impl RunObserver for Sampler<'_> {
    fn look(&mut self, now: Time, recorder: &Recorder<'_>, counted: &dyn Fn() -> Counted) {
        self.sample(now, recorder, counted);
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
