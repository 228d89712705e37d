//! The stop flag and the progress bar that a run shares with its caller, and the text of a caught panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What a run shares with whoever watches it.
#[derive(Debug)]
pub struct Watch {
    /// Set to stop every run as soon as possible.
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
    /// With a bar on standard error, if that is a terminal and no log is written there run by run.
    #[must_use]
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

    /// Draws the bar from now on: until a run begins nobody knows how many jobs there are.
    pub(super) fn draw(&self) {
        self.bar.reset();
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Whether runs should stop.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("a bug in volary stopped this run: {text}")
}
