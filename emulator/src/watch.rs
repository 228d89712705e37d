//! The interface between a run and its caller: stop flag, progress bar, and why a cell has no result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use volary_engine::metrics::{Aggregator, EndReason};
use volary_engine::results::Measured;
use volary_engine::world::EngineError;

/// The stop flag and progress bar of a run.
#[derive(Debug)]
pub struct Watch {
    /// Stops every run as soon as possible.
    pub stop: AtomicBool,
    /// Counts finished jobs.
    pub bar: ProgressBar,
}

impl Default for Watch {
    fn default() -> Self {
        Self { stop: AtomicBool::new(false), bar: ProgressBar::hidden() }
    }
}

impl Watch {
    /// With a bar on standard error, if that is a terminal and no log is written there.
    pub fn on_terminal() -> Self {
        if tracing::enabled!(tracing::Level::INFO) {
            return Self::default();
        }
        let bar = ProgressBar::no_length();
        let style =
            "{bar:32.cyan} {percent:>3}%  {human_pos} of {human_len} jobs  {per_sec}  {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, ..Self::default() }
    }

    /// Draws the bar from now on. Before the first run starts the number of jobs is unknown.
    pub(crate) fn draw(&self) {
        self.bar.reset();
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Whether runs must stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Real time without any observation after which a warning is logged.
const QUIET_WARNING: Duration = Duration::from_secs(60);

/// The progress bar of a run in real time, and its warning when nothing happens.
#[derive(Debug)]
pub struct Monitor {
    /// Finished jobs that the progress bar shows.
    shown_jobs: u64,
    /// Number of observations when they were last counted, and the real time at which it last grew.
    folded: (u64, Instant),
    warned: bool,
}

impl Default for Monitor {
    fn default() -> Self {
        Self { shown_jobs: 0, folded: (0, Instant::now()), warned: false }
    }
}

impl Monitor {
    /// Why the run has ended, or `None` while it goes on. Updates the progress bar.
    pub fn end_reason(&mut self, aggregator: &Aggregator<'_>, watch: &Watch) -> Option<EndReason> {
        let finished = aggregator.finished_jobs();
        watch.bar.inc(finished - self.shown_jobs);
        self.shown_jobs = finished;
        if aggregator.folded() > self.folded.0 {
            self.folded = (aggregator.folded(), Instant::now());
        }
        let reason = aggregator.end_reason(watch.stopped());
        let quiet = reason.is_none() && aggregator.is_quiet() && self.folded.1.elapsed() > QUIET_WARNING;
        if quiet && !self.warned {
            self.warned = true;
            tracing::warn!("nothing has happened for {} s; Ctrl-C ends the run", QUIET_WARNING.as_secs());
        }
        reason
    }
}

/// Why a run of one point has no result.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// It was stopped.
    #[error("interrupted")]
    Interrupted,
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

impl From<EngineError> for CellError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Interrupted => Self::Interrupted,
            EngineError::Refused(why) => Self::Refused(why),
        }
    }
}

/// The message of a panic, as an error text.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("a bug in volary stopped this run: {text}")
}
