//! The monitor of a real-time run: its progress bar, and a warning when nothing happens.

use std::time::{Duration, Instant};

use crate::runtime::watch::Watch;
use volary_engine::metrics::{Aggregator, EndReason};

/// Real time without any observation after which a warning is logged.
const QUIET_WARNING: Duration = Duration::from_secs(60);

/// What the caller of a run has been shown.
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
