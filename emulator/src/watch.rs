//! The interface between a study and its caller: stop flag, progress bar, observer, and why a run has no result.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use volary_actors::base::Time;
use volary_engine::metrics::{Aggregator, EndReason, Recorder};
use volary_engine::results::Measured;
use volary_engine::shard::Traffic;
use volary_engine::virtual_time::Progress;
use volary_engine::world::{EngineError, World};

use crate::guard::guard;
use crate::number::{count, elided, rough, seconds, short};
use crate::observer::{Counted, RunObserver, StudyObserver};
use crate::real_time::sample::ShardSample;

/// The target of log lines at level `INFO` that are shown by default, unlike others of that level.
pub const NOTICE: &str = "volary::notice";

/// The stop flag of a run, and what shows its progress.
#[derive(Debug)]
pub struct Watch {
    /// Stops every run as soon as possible.
    pub stop: AtomicBool,
    /// Counts finished jobs.
    pub bar: ProgressBar,
    /// What else is told of the study, such as the live page.
    pub(crate) observer: Option<Arc<dyn StudyObserver>>,
    clock: Arc<EmulatedClock>,
    running: Mutex<RunningRuns>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            stop: AtomicBool::new(false),
            bar: ProgressBar::hidden(),
            observer: None,
            clock: Arc::default(),
            running: Mutex::default(),
        }
    }
}

impl Watch {
    /// With a bar on standard error, if that is a terminal and no log is written there. It has as many lines as it
    /// takes to fit `width` columns.
    pub fn on_terminal(width: Option<usize>) -> Self {
        if tracing::enabled!(tracing::Level::INFO) {
            return Self::default();
        }
        let watch = Self { bar: ProgressBar::no_length(), ..Self::default() };
        let (clock, pace) = (Arc::clone(&watch.clock), Arc::new(Mutex::new(Pace::default())));
        guard(&watch.running).width = width;
        let style = ProgressStyle::with_template(template(width));
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = style.with_key("jobs", |state: &ProgressState, out: &mut dyn Write| {
            drawn(write!(out, "{} of {} jobs", count(state.pos()), count(state.len().unwrap_or(0))));
        });
        let style = style.with_key("left", move |state: &ProgressState, out: &mut dyn Write| {
            let mut pace = guard(&pace);
            pace.observe(state.elapsed(), state.pos());
            drawn(out.write_str(&pace.text(state.len().unwrap_or(0).saturating_sub(state.pos()))));
        });
        let style = style.with_key("clock", move |_: &ProgressState, out: &mut dyn Write| {
            drawn(out.write_str(&clock.text()));
        });
        watch.bar.set_style(style);
        watch
    }

    /// The same with an observer of the study.
    pub fn observed_by(self, observer: Option<Arc<dyn StudyObserver>>) -> Self {
        Self { observer, ..self }
    }

    /// The view of a run that begins, the `number`-th of `of`, until it is dropped. The bar names the oldest run under
    /// way, and shows its clock while there is no other.
    pub(crate) fn of_run(&self, number: u64, of: u64, policy: &str) -> RunWatch<'_> {
        self.change_running(|running| {
            running.of = of;
            running.oldest_first.push((number, policy.to_owned()));
        });
        RunWatch { watch: self, number, observer: RefCell::default() }
    }

    /// Changes which runs are under way, and what the bar says of them.
    fn change_running(&self, change: impl FnOnce(&mut RunningRuns)) {
        let mut running = guard(&self.running);
        change(&mut running);
        self.clock.follow(running.only().unwrap_or(0));
        self.bar.set_message(running.text());
    }

    /// An observer of the run with this id, if the study has one.
    fn observer_of<'a>(&'a self, run: &str, world: &'a World) -> Option<Box<dyn RunObserver + 'a>> {
        self.observer.as_deref().map(|observer| observer.of_run(run, world))
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

/// A write to the bar. It fails where there is no memory, and a bar that is not drawn is no error of the run.
fn drawn(written: fmt::Result) {
    let _ = written;
}

/// The lines of the bar on a terminal of this width, of which the last names the runs.
fn template(width: Option<usize>) -> &'static str {
    match width {
        Some(..NARROW) => "{wide_bar:.cyan} {percent:>3}%\n{jobs}{clock}\n{left}\n{wide_msg}",
        Some(..WIDE) => "{wide_bar:.cyan} {percent:>3}%  {jobs}{left}{clock}\n{wide_msg}",
        _ => "{bar:12.cyan} {percent:>3}%  {jobs}{left}{clock}\n{wide_msg}",
    }
}

/// Columns that the bar needs for the counts of jobs, their rate and the clock in one line.
const NARROW: usize = 80;
/// Columns from which there is room for a bar of constant length beside the counts of millions of jobs.
const WIDE: usize = 100;

/// The runs under way.
#[derive(Debug, Default)]
struct RunningRuns {
    /// Columns of the terminal, if known.
    width: Option<usize>,
    /// Number of all runs.
    of: u64,
    /// Their numbers, and the labels of their policies.
    oldest_first: Vec<(u64, String)>,
}

impl RunningRuns {
    /// The number of the run under way, if there is one only.
    fn only(&self) -> Option<u64> {
        if let [(number, _)] = self.oldest_first[..] { Some(number) } else { None }
    }

    fn text(&self) -> String {
        let Some((number, policy)) = self.oldest_first.first() else { return String::new() };
        let text = |policy: &str| match self.oldest_first.len() {
            1 => format!("run {number} of {}: {policy}", self.of),
            runs => format!("{runs} runs, oldest {number} of {}: {policy}", self.of),
        };
        let room = self.width.map(|width| width.saturating_sub(text("").chars().count() + 1));
        text(&elided(policy, room.unwrap_or(usize::MAX)))
    }
}

/// The emulated clock of one run; run 0 is none.
#[derive(Debug, Default)]
struct EmulatedClock {
    run: AtomicU64,
    now_ns: AtomicU64,
}

impl EmulatedClock {
    /// Shows the clock of this run from now on.
    fn follow(&self, run: u64) {
        if self.run.swap(run, Ordering::Relaxed) != run {
            self.now_ns.store(0, Ordering::Relaxed);
        }
    }

    fn show(&self, now: Time) {
        if now < Time::MAX {
            self.now_ns.store(now.0, Ordering::Relaxed);
        }
    }

    fn text(&self) -> String {
        match self.now_ns.load(Ordering::Relaxed) {
            0 => String::new(),
            now => format!("  at {}", seconds(Time(now).as_secs_f64())),
        }
    }
}

/// A run among those of a watch.
#[derive(Debug)]
pub(crate) struct RunWatch<'a> {
    watch: &'a Watch,
    number: u64,
    observer: RefCell<Option<Box<dyn RunObserver + 'a>>>,
}

impl<'a> RunWatch<'a> {
    /// Has the run with this id observed as well.
    pub(crate) fn observed(self, run: &str, world: &'a World) -> Self {
        self.observer.replace(self.watch.observer_of(run, world));
        self
    }
}

impl Drop for RunWatch<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.watch.change_running(|running| running.oldest_first.retain(|(other, _)| *other != number));
    }
}

impl Progress for Watch {
    fn finished(&self, jobs: u64, now: Time) {
        self.bar.inc(jobs);
        self.clock.show(now);
    }

    fn is_stopped(&self) -> bool {
        self.stopped()
    }
}

impl Progress for RunWatch<'_> {
    fn finished(&self, jobs: u64, now: Time) {
        if self.watch.clock.run.load(Ordering::Relaxed) == self.number {
            self.watch.finished(jobs, now);
        } else {
            self.watch.bar.inc(jobs);
        }
    }

    fn look(&self, now: Time, recorder: &Recorder<'_>, traffic: &Traffic) {
        if let Some(observer) = &mut *self.observer.borrow_mut() {
            observer.look(now, recorder, &|| Counted::of_traffic(traffic));
        }
    }

    fn is_stopped(&self) -> bool {
        self.watch.stopped()
    }
}

/// Real time between two samples of the number of finished jobs.
const SAMPLE: Duration = Duration::from_millis(500);
/// Number of samples whose median is the rate.
const SAMPLES: usize = 15;

/// The rate at which jobs finish: the median over the last few samples, which neither the start of a run nor a pause
/// changes much.
#[derive(Debug, Default)]
struct Pace {
    last: (Duration, u64),
    /// Jobs per second.
    rates: VecDeque<f64>,
}

impl Pace {
    /// Takes a sample, if the last one is old enough. Where time has gone back another run has begun.
    fn observe(&mut self, elapsed: Duration, jobs: u64) {
        if elapsed < self.last.0 {
            *self = Self::default();
        }
        let since = elapsed.saturating_sub(self.last.0);
        if since < SAMPLE {
            return;
        }
        if self.rates.len() == SAMPLES {
            self.rates.pop_front();
        }
        self.rates.push_back(jobs.saturating_sub(self.last.1) as f64 / since.as_secs_f64());
        self.last = (elapsed, jobs);
    }

    /// Jobs per second; `None` before anything has finished.
    fn rate(&self) -> Option<f64> {
        let mut rates: Vec<f64> = self.rates.iter().copied().collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().filter(|rate| *rate > 0.0)
    }

    /// The rate, and the time that the jobs that are left take at it.
    fn text(&self, left: u64) -> String {
        let Some(rate) = self.rate() else { return String::new() };
        let per_s = if rate < 10.0 { short(rate) } else { count(rate.round() as u64) };
        format!("  {per_s}/s  {} left", rough(left as f64 / rate))
    }
}

/// Real time without any observation after which a run ends if nothing is pending, and a warning is logged otherwise.
/// What is on its way between two hosts arrives earlier, or their link ends.
const QUIET: Duration = Duration::from_secs(60);

/// The progress bar and the samples of a run in real time, and what is done when nothing happens.
#[derive(Debug)]
pub struct Monitor<'a> {
    /// Finished jobs that the progress bar shows.
    shown_jobs: u64,
    /// Number of observations when they were last counted, and the real time at which it last grew.
    folded: (u64, Instant),
    warned: bool,
    /// When an event was pending last.
    pending: Instant,
    observer: Option<Box<dyn RunObserver + 'a>>,
    /// The latest sample of each shard, with its name.
    samples: Vec<(String, Option<ShardSample>)>,
}

impl<'a> Monitor<'a> {
    /// A monitor of the run with this id, whose shards have these names.
    pub fn new(watch: &'a Watch, run: &str, world: &'a World, shards: impl Iterator<Item = String>) -> Self {
        Self {
            shown_jobs: 0,
            folded: (0, Instant::now()),
            warned: false,
            pending: Instant::now(),
            observer: watch.observer_of(run, world),
            samples: shards.map(|name| (name, None)).collect(),
        }
    }

    /// Keeps the latest sample of a shard.
    pub fn sampled(&mut self, shard: usize, sample: ShardSample) {
        if sample.pending > 0 {
            self.pending = Instant::now();
        }
        if let Some((_, latest)) = self.samples.get_mut(shard) {
            *latest = Some(sample);
        }
    }

    /// Records that a shard has ended: nothing is pending there.
    pub fn ended(&mut self, shard: usize) {
        if let Some((_, latest)) = self.samples.get_mut(shard) {
            latest.get_or_insert_default().pending = 0;
        }
    }

    /// Why the run has ended, or `None` while it goes on. Updates the progress bar and the observer.
    pub fn end_reason(&mut self, aggregator: &Aggregator<'_>, watch: &Watch) -> Option<EndReason> {
        let finished = aggregator.finished_jobs();
        watch.bar.inc(finished - self.shown_jobs);
        self.shown_jobs = finished;
        watch.clock.show(aggregator.complete());
        if let Some(observer) = &mut self.observer {
            let samples = || self.samples.iter().map(|(name, sample)| (name.clone(), sample.as_ref()));
            observer.look(aggregator.now(), aggregator.recorder(), &|| Counted::of_shards(samples()));
        }
        if aggregator.folded() > self.folded.0 {
            self.folded = (aggregator.folded(), Instant::now());
        }
        let reason = aggregator.end_reason(watch.stopped());
        let quiet = reason.is_none() && aggregator.is_quiet() && self.folded.1.elapsed() > QUIET;
        if quiet && self.is_idle() {
            return Some(EndReason::Idle);
        }
        if quiet && !self.warned {
            self.warned = true;
            tracing::warn!(
                "nothing has happened for {} s; Ctrl-C ends the run, and keeps what was measured",
                QUIET.as_secs()
            );
        }
        reason
    }

    /// Whether no shard has had an event pending for long, so that nothing will happen any more.
    fn is_idle(&self) -> bool {
        let is_empty = |(_, sample): &(String, Option<ShardSample>)| {
            sample.as_ref().is_some_and(|sample| sample.pending == 0)
        };
        self.pending.elapsed() > QUIET && self.samples.iter().all(is_empty)
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
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("a bug in volary stopped this run: {text}")
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{JobId, Span};
    use volary_actors::machine::Note;
    use volary_engine::metrics::Recording;
    use volary_engine::parcel::{Observation, Seen};

    use super::*;
    use crate::config::{Experiment, Overrides};
    use crate::workload::Traces;

    /// A job waits, and no shard has anything to do: in virtual time such a run ends at once.
    #[test]
    fn a_quiet_run_ends_if_nothing_is_pending() {
        let text = "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 1\ntasks = 1\n\
                    interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n";
        let experiment = Experiment::plan("quiet.toml", text, &Overrides::default()).unwrap();
        let world = World::build(&experiment.points[0], 1, &Traces::new(Vec::new())).unwrap();
        let mut aggregator = Aggregator::new(world.recorder(Recording::default()), 1, None, Time::ZERO);
        let arrived = Seen::Note(world.layout().client(0), Note::Arrived { job: JobId(0) });
        aggregator.report(0, [Observation { at: Time(1), what: arrived }], Time(2)).unwrap();
        let watch = Watch::default();
        let mut monitor = Monitor::new(&watch, "r", &world, ["s".to_owned()].into_iter());
        assert_eq!(monitor.end_reason(&aggregator, &watch), None);
        let long_ago = Instant::now().checked_sub(QUIET + Duration::from_secs(1)).unwrap();
        monitor.sampled(0, ShardSample { pending: 1, ..ShardSample::default() });
        (monitor.folded.1, monitor.pending) = (long_ago, long_ago);
        assert_eq!(monitor.end_reason(&aggregator, &watch), None, "a timer is armed");
        monitor.sampled(0, ShardSample::default());
        assert_eq!(monitor.end_reason(&aggregator, &watch), Some(EndReason::Idle));
        monitor.sampled(0, ShardSample { pending: 1, ..ShardSample::default() });
        monitor.sampled(0, ShardSample::default());
        assert_eq!(monitor.end_reason(&aggregator, &watch), None, "something was pending a moment ago");
    }

    #[test]
    fn what_is_left_follows_from_the_median_rate() {
        let mut pace = Pace::default();
        assert_eq!(pace.text(100), "", "nothing is known before a job has finished");
        let mut jobs = 0;
        for second in 1..=40 {
            // A pause of three seconds, and a burst after it.
            jobs += if (30..33).contains(&second) {
                0
            } else if second == 33 {
                500
            } else {
                100
            };
            pace.observe(Duration::from_secs(second), jobs);
            pace.observe(Duration::from_secs(second), jobs + 1_000_000);
        }
        assert_eq!(pace.text(90_000), "  100/s  15 min left");
        // The next run, in which jobs finish slower.
        (1..=5).for_each(|second| pace.observe(Duration::from_secs(second), second));
        assert_eq!(pace.text(60), "  1.00/s  60 s left");
    }

    #[test]
    fn the_bar_fits_its_width() {
        let oldest_first = vec![(1_000, "a-policy-with-a-long-label".to_owned()), (1_001, String::new())];
        let text = |width| RunningRuns { width, of: 2_000, oldest_first: oldest_first.clone() }.text();
        assert!(text(None).ends_with("a-policy-with-a-long-label"));
        let narrow = text(Some(40));
        assert!(narrow.chars().count() < 40 && narrow.contains('…') && narrow.ends_with("el"), "{narrow}");
        assert!(template(Some(99)).starts_with("{wide_bar") && template(Some(100)).starts_with("{bar:12"));
        assert!(template(Some(80)).lines().count() < template(Some(79)).lines().count());
    }

    #[test]
    fn the_bar_counts_runs_and_shows_the_oldest() {
        let watch = Watch::default();
        let first = watch.of_run(1, 3, "random");
        assert_eq!(watch.bar.message(), "run 1 of 3: random");
        let second = watch.of_run(2, 3, "sparrow");
        assert_eq!(watch.bar.message(), "2 runs, oldest 1 of 3: random");
        second.finished(3, Time::ZERO + Span::from_secs(9));
        first.finished(4, Time::ZERO + Span::from_millis(2_500));
        assert_eq!(watch.clock.text(), "", "of several runs none is shown");
        drop(first);
        assert_eq!(
            (watch.bar.message(), watch.clock.text()),
            ("run 2 of 3: sparrow".to_owned(), String::new())
        );
        second.finished(1, Time::ZERO + Span::from_secs(10));
        assert_eq!(watch.clock.text(), "  at 10.0\u{202f}s");
        assert_eq!(watch.bar.position(), 8);
    }
}
