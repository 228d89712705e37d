//! The interface between a study and its caller: hosts, stop flag, observers, and why a run has no result.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use volary_actors::base::{Span, Time};
use volary_engine::metrics::Recorder;
use volary_engine::results::Measured;
use volary_engine::shard::Traffic;
use volary_engine::virtual_time::Progress;
use volary_engine::world::{EngineError, World};

use crate::observer::{Counted, RunObserver, StudyObserver};

/// The target of log lines at level `INFO` that are shown by default, unlike others of that level.
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
    /// This many agents on this machine, started for the run and ended with it.
    Spawn(u16),
}

/// The stop flag of a study, and its observers.
#[derive(Debug, Default)]
pub struct StudyControl {
    /// Stops every run as soon as possible.
    pub stop: AtomicBool,
    /// Such as the progress bar and the live page.
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

    /// The observers of the run with this id, which begins.
    pub fn of_run<'a>(&'a self, run: &str, world: &'a World) -> Vec<Box<dyn RunObserver + 'a>> {
        self.observers.iter().map(|observer| observer.of_run(run, world)).collect()
    }
}

/// Only the stop flag.
impl Progress for StudyControl {
    fn is_stopped(&self) -> bool {
        self.stopped()
    }
}

/// The control of a run in virtual time.
#[derive(Debug)]
pub struct ObservedRun<'a> {
    control: &'a StudyControl,
    observers: RefCell<Vec<Box<dyn RunObserver + 'a>>>,
}

impl<'a> ObservedRun<'a> {
    /// The control of the run with this id.
    pub fn new(control: &'a StudyControl, run: &str, world: &'a World) -> Self {
        Self { control, observers: RefCell::new(control.of_run(run, world)) }
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
}

/// Why a run of one point has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It was stopped; this was measured by then, if it had begun.
    #[error("interrupted")]
    Interrupted(Option<Box<Measured>>),
    /// The experiment cannot be run with this seed or on this machine.
    #[error("{0}")]
    Refused(String),
    /// It started and could not continue.
    #[error("{why}")]
    Broken {
        why: String,
        /// Measured by then.
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
