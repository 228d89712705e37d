//! The interface between a study and its caller: hosts, stop flag, observers, and the reasons why a run has no result.
//!
//! Runtimes report to observers, such as the live page, while a study runs.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use volary_actors::base::{CoreSet, Span, Time};
use volary_actors::message::KINDS;
use volary_engine::cores::{Injection, ScheduledInjection};
use volary_engine::metrics::Recorder;
use volary_engine::results::{Cell, Measured};
use volary_engine::shard::Traffic;
use volary_engine::virtual_time::Progress;
use volary_engine::world::{EngineError, World};
use volary_netem::FaultSpec;

use crate::storage::manifest::RunState;
use crate::storage::run_record::RunRecord;

/// The target of log lines at level `INFO` that are shown by default, unlike other lines of this level.
pub const NOTICE: &str = "volary::notice";

/// The hosts of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fleet {
    /// The hosts of a file, each with a listening agent.
    Hosts {
        file: PathBuf,
        /// Maximum wait for hosts that are busy.
        wait: Span,
    },
    /// Number of agents on this machine that are started for the run and end with it.
    Spawn(u16),
}

/// The stop flag of a study, and its observers.
#[derive(Debug, Default)]
pub struct StudyControl {
    /// Stops every run as soon as possible.
    pub stop: AtomicBool,
    /// Emulated seconds per real second of runs in virtual time; `None` for no limit.
    pub pace: Option<f64>,
    /// Observers, such as the progress bar and the live page.
    pub observers: Vec<Arc<dyn StudyObserver>>,
}

impl StudyControl {
    /// Whether runs must stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports to every observer.
    pub fn report(&self, what: impl Fn(&dyn StudyObserver)) {
        self.observers.iter().for_each(|observer| what(&**observer));
    }

    /// The observers of the run with this id, which is about to start.
    pub fn of_run<'a>(&'a self, run: &str, world: &'a World) -> Vec<Box<dyn RunObserver + 'a>> {
        self.observers.iter().map(|observer| observer.of_run(run, world)).collect()
    }
}

/// The progress interface of the engine, which uses only the stop flag.
impl Progress for StudyControl {
    fn is_stopped(&self) -> bool {
        self.stopped()
    }
}

/// The control of a run in virtual time.
#[derive(Debug)]
pub struct ObservedRun<'a> {
    control: &'a StudyControl,
    /// Time of the first wait of a paced run.
    begun: OnceCell<Instant>,
    observers: RefCell<Vec<Box<dyn RunObserver + 'a>>>,
}

impl<'a> ObservedRun<'a> {
    /// The control of the run with this id.
    pub fn new(control: &'a StudyControl, run: &str, world: &'a World) -> Self {
        Self { control, begun: OnceCell::new(), observers: RefCell::new(control.of_run(run, world)) }
    }
}

impl Progress for ObservedRun<'_> {
    fn look(&self, now: Time, recorder: &Recorder<'_>, traffic: &Traffic) {
        for observer in &mut *self.observers.borrow_mut() {
            observer.look(now, recorder, &|| Counted::of_traffic(traffic));
        }
    }

    fn is_stopped(&self) -> bool {
        self.control.stopped()
    }

    fn wait(&self, due: Time) -> Time {
        let Some(pace) = self.control.pace else { return Time::MAX };
        let begun = self.begun.get_or_init(Instant::now);
        loop {
            let now = Time::ZERO + Span::from_secs_f64(begun.elapsed().as_secs_f64() * pace);
            if now >= due || self.control.stopped() {
                return now;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Real time between two steps of a paced run.
const STEP: Duration = Duration::from_millis(20);

/// The reason why a run of one point has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run was stopped. The measurements up to then are kept if the run had started.
    #[error("interrupted")]
    Interrupted(Option<Box<Measured>>),
    /// The experiment cannot be run with this seed or on this machine.
    #[error("{0}")]
    Refused(String),
    /// The run started and could not continue.
    #[error("{why}")]
    Broken {
        why: String,
        /// The measurements up to the failure.
        measured: Box<Measured>,
    },
}

impl From<EngineError> for RunError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Interrupted(measured) => Self::Interrupted(Some(measured)),
            EngineError::Refused(why) => Self::Refused(why),
        }
    }
}

/// The message of a panic, as an error text.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("a bug in volary stopped this run: {text}")
}

/// A run that has not begun.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedRun<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Label of the policy.
    pub policy: &'a str,
    /// Values of the swept keys.
    pub cell: &'a Cell,
    pub seed: u64,
    /// Faults of the experiment.
    pub faults: &'a [FaultSpec],
    /// Injections that the experiment schedules.
    pub injections: &'a [ScheduledInjection],
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub struct BegunRun<'a> {
    /// Id of the run.
    pub id: &'a str,
    /// Label of the policy.
    pub policy: &'a str,
    /// Number of the run among the requested runs, from one.
    pub number: u64,
    /// The number of requested runs.
    pub of: u64,
    /// Number of jobs of the run.
    pub jobs: u64,
}

/// Observes a study. The threads that execute runs call the observer, so its methods must return soon.
pub trait StudyObserver: Send + Sync + fmt::Debug {
    /// A stopping rule added runs to the plan.
    fn expect(&self, _runs: &[ExpectedRun<'_>]) {}
    /// A run begins.
    fn begin(&self, _run: &BegunRun<'_>) {}
    /// An observer of a run that begins.
    fn of_run<'a>(&'a self, run: &str, world: &'a World) -> Box<dyn RunObserver + 'a>;
    /// The cores of each host in the run that begins.
    fn placed(&self, _hosts: &[(String, CoreSet)]) {}
    /// Injection `number` into the latest run has begun on further hosts, or its end has changed; its shares by host.
    fn inject(&self, _number: u64, _shares: &[(String, Injection)]) {}
    /// Whether the observer receives runs that had finished before this process began.
    fn sees_kept_runs(&self) -> bool {
        false
    }
    /// A run has ended, in this process or before it began.
    fn finished(&self, _record: &RunRecord) {}
    /// A run has failed.
    fn failed(&self, _run: &str, _why: &str) {}
    /// No run is in progress: the study decides whether more follow, and writes its results.
    fn idle(&self) {}
    /// The study has ended, in this state.
    fn over(&self, _state: RunState) {}
}

/// Observes a run while it goes on.
pub trait RunObserver: fmt::Debug {
    /// Called often with the records until `now`. If no observation is due, returns at once without calling `counted`.
    fn look(&mut self, now: Time, recorder: &Recorder<'_>, counted: &dyn Fn() -> Counted);
}

/// Counters of a run that its shards keep, and its recorder does not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counted {
    /// Messages sent over the network, in the order of [`KINDS`].
    pub by_kind: Vec<u64>,
    /// Number of messages that the emulated network lost.
    pub dropped: u64,
    /// The latest sample of each shard, by name; none in virtual time.
    pub shards: Vec<(String, Option<ShardSample>)>,
}

impl Counted {
    /// The counters of the only shard of a run in virtual time.
    pub fn of_traffic(traffic: &Traffic) -> Self {
        Self { by_kind: traffic.by_kind.to_vec(), dropped: traffic.dropped, shards: Vec::new() }
    }

    /// The counters of shards in real time, from the name and the latest sample of each shard; `None` stands for a
    /// shard without a sample yet.
    pub fn of_shards<'a>(samples: impl IntoIterator<Item = (String, Option<&'a ShardSample>)>) -> Self {
        let mut all = Self::default();
        for (name, sample) in samples {
            all.shards.push((name, sample.cloned()));
            let Some(sample) = sample else { continue };
            // Other hosts report these numbers, so neither their count nor their size is trusted.
            all.by_kind.resize(KINDS.len(), 0);
            let sums = all.by_kind.iter_mut().zip(&sample.by_kind);
            sums.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            all.dropped = all.dropped.saturating_add(sample.dropped);
        }
        all
    }
}

/// The state of a shard since the start of its run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ShardSample {
    /// Messages sent over the network, in the order of [`KINDS`].
    pub by_kind: Vec<u64>,
    /// Datagrams lost and stream messages returned.
    pub dropped: u64,
    /// Events that are pending: deliveries, timers and ends of copies.
    pub pending: u64,
    /// Lateness of messages when their actors process them.
    pub deliveries: LateSoFar,
    /// Lateness of timers.
    pub timers: LateSoFar,
    /// The process and its machine; `None` if another shard of the process reports them.
    pub vitals: Option<VitalsSample>,
}

/// Lateness since the start of a run, in emulated seconds; all zero if nothing was due.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LateSoFar {
    /// Median, s.
    pub p50_s: f64,
    /// 99th percentile, s.
    pub p99_s: f64,
    /// Maximum, s.
    pub max_s: f64,
}

/// Use of CPU and memory by a process and its machine, since the previous sample or over a whole run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct VitalsSample {
    /// CPU time of the process, divided by real time and the number of processors.
    pub cpu_share: f64,
    /// Busy share of all processors of the machine, niced work excluded; `None` where the system does not report it.
    pub machine_share: Option<f64>,
    /// Share of processor time that the hypervisor gave to other machines; `None` where the system does not report it.
    pub steal_share: Option<f64>,
    /// Peak resident memory of the process so far, bytes.
    pub peak_rss_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_shards_are_summed() {
        let sample = |by_kind: &[u64]| ShardSample {
            by_kind: by_kind.to_vec(),
            dropped: u64::MAX,
            ..ShardSample::default()
        };
        let (one, two) = (sample(&[1, 2]), sample(&[10, 20, 30]));
        let all = Counted::of_shards([
            ("a".to_owned(), Some(&one)),
            ("b".to_owned(), None),
            ("c".to_owned(), Some(&two)),
        ]);
        assert_eq!((&all.by_kind[..4], all.dropped, all.shards.len()), (&[11, 22, 30, 0][..], u64::MAX, 3));
    }
}
