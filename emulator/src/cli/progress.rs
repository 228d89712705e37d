//! The progress bar of a study: the finished jobs of all its runs, their rate, and the oldest run in progress.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use volary_actors::base::Time;
use volary_engine::metrics::Recorder;
use volary_engine::world::World;
use volary_experiment::control::{BegunRun, Counted, RunObserver, StudyObserver};
use volary_experiment::guard::guard;
use volary_experiment::number::{count, elided, rough, seconds, short};
use volary_experiment::storage::manifest::RunState;
use volary_experiment::storage::run_record::RunRecord;

/// A bar on standard error. It is drawn from the first run on, since the number of jobs is unknown before.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
    clock: Arc<EmulatedClock>,
    running: Mutex<RunningRuns>,
}

impl Bar {
    /// A bar with the number of lines that `width` columns require.
    pub(super) fn new(width: Option<usize>) -> Self {
        let running = Mutex::new(RunningRuns { width, ..RunningRuns::default() });
        let bar = Self { bar: ProgressBar::no_length(), clock: Arc::default(), running };
        let (clock, pace) = (Arc::clone(&bar.clock), Arc::new(Mutex::new(Pace::default())));
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
        bar.bar.set_style(style);
        bar
    }

    /// Changes the runs in progress, and the text of the bar accordingly.
    fn change(&self, change: impl FnOnce(&mut RunningRuns)) {
        let mut running = guard(&self.running);
        change(&mut running);
        self.clock.follow(running.only().unwrap_or(0));
        self.bar.set_message(running.text());
    }

    /// Removes a run from the runs in progress. A run that an earlier process finished is not in progress, and does not
    /// cause the bar to be drawn.
    fn ended(&self, run: &str) {
        if guard(&self.running).oldest_first.iter().any(|(_, id, _)| id == run) {
            self.change(|running| running.oldest_first.retain(|(_, id, _)| id != run));
        }
    }
}

impl StudyObserver for Bar {
    /// The length of the bar is an estimate of the number of jobs of all runs.
    fn begin(&self, run: &BegunRun<'_>) {
        // A run that lost a host begins again.
        if guard(&self.running).oldest_first.iter().any(|(_, id, _)| id == run.id) {
            return;
        }
        self.change(|running| {
            running.jobs = if run.number == 1 { run.jobs } else { running.jobs + run.jobs };
            running.of = run.of;
            running.oldest_first.push((run.number, run.id.to_owned(), run.policy.to_owned()));
            self.bar.set_length(expected(running.jobs, run.number, run.of));
        });
        if run.number == 1 {
            self.bar.reset();
            if !self.bar.is_hidden() {
                self.bar.enable_steady_tick(Duration::from_millis(100));
            }
        }
    }

    fn of_run<'a>(&'a self, run: &str, _: &'a World) -> Box<dyn RunObserver + 'a> {
        let running = guard(&self.running);
        let found = running.oldest_first.iter().find(|(_, id, _)| id == run);
        Box::new(RunProgress { bar: self, number: found.map_or(0, |(number, ..)| *number), shown: 0 })
    }

    fn finished(&self, record: &RunRecord) {
        self.ended(&record.id);
    }

    fn failed(&self, run: &str, _: &str) {
        self.ended(run);
    }

    fn idle(&self) {
        self.bar.finish_and_clear();
    }

    fn over(&self, _: RunState) {
        self.bar.finish_and_clear();
    }
}

/// Observer that shows the progress of one run.
#[derive(Debug)]
struct RunProgress<'a> {
    bar: &'a Bar,
    number: u64,
    /// Number of finished jobs of the run that the bar already counts.
    shown: u64,
}

impl RunProgress<'_> {
    fn show(&mut self, finished: u64, now: Time) {
        self.bar.bar.inc(finished - self.shown);
        self.shown = finished;
        if self.bar.clock.run.load(Ordering::Relaxed) == self.number {
            self.bar.clock.show(now);
        }
    }
}

impl RunObserver for RunProgress<'_> {
    fn look(&mut self, now: Time, recorder: &Recorder<'_>, _: &dyn Fn() -> Counted) {
        self.show(recorder.finished_jobs(), now);
    }
}

/// Number of jobs of all runs, if later runs have as many as the runs that have started.
const fn expected(jobs: u64, begun: u64, runs: u64) -> u64 {
    (jobs as u128 * runs as u128 / begun as u128) as u64
}

/// Ignores the result of a write to the bar. A write fails only if no memory is left, and a bar that is not drawn is
/// not an error of the run.
fn drawn(written: fmt::Result) {
    let _ = written;
}

/// The lines of the bar on a terminal of this width; the last line names the runs.
fn template(width: Option<usize>) -> &'static str {
    match width {
        Some(..NARROW) => "{wide_bar:.cyan} {percent:>3}%\n{jobs}{clock}\n{left}\n{wide_msg}",
        Some(..WIDE) => "{wide_bar:.cyan} {percent:>3}%  {jobs}{left}{clock}\n{wide_msg}",
        _ => "{bar:12.cyan} {percent:>3}%  {jobs}{left}{clock}\n{wide_msg}",
    }
}

/// Number of columns that a line with the counts of jobs, their rate and the clock takes.
const NARROW: usize = 80;
/// Number of columns from which a bar of constant length fits beside counts of millions of jobs.
const WIDE: usize = 100;

/// The runs in progress.
#[derive(Debug, Default)]
struct RunningRuns {
    /// Columns of the terminal, if known.
    width: Option<usize>,
    /// Number of all runs.
    of: u64,
    /// Number of jobs of all runs that have begun.
    jobs: u64,
    /// The runs in progress, oldest first: number, id, and label of the policy.
    oldest_first: Vec<(u64, String, String)>,
}

impl RunningRuns {
    /// Number of the run in progress, if there is only one.
    fn only(&self) -> Option<u64> {
        if let [(number, ..)] = self.oldest_first[..] { Some(number) } else { None }
    }

    fn text(&self) -> String {
        let Some((number, _, policy)) = self.oldest_first.first() else { return String::new() };
        let text = |policy: &str| match self.oldest_first.len() {
            1 => format!("run {number} of {}: {policy}", self.of),
            runs => format!("{runs} runs, oldest {number} of {}: {policy}", self.of),
        };
        let room = self.width.map(|width| width.saturating_sub(text("").chars().count() + 1));
        text(&elided(policy, room.unwrap_or(usize::MAX)))
    }
}

/// The emulated clock of one run; run 0 stands for no run.
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

/// Real time between two samples of the number of finished jobs.
const SAMPLE: Duration = Duration::from_millis(500);
/// Number of samples whose median is the rate.
const SAMPLES: usize = 15;

/// The rate at which jobs finish: the median over the last few samples, on which the start of a run and a pause have
/// little effect.
#[derive(Debug, Default)]
struct Pace {
    last: (Duration, u64),
    /// Rates of the last samples, jobs per second.
    rates: VecDeque<f64>,
}

impl Pace {
    /// Takes a sample if the last sample is old enough. If `elapsed` has decreased, another run has begun, and earlier
    /// samples are dropped.
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

    /// Jobs per second; `None` before a job has finished.
    fn rate(&self) -> Option<f64> {
        let mut rates: Vec<f64> = self.rates.iter().copied().collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().filter(|rate| *rate > 0.0)
    }

    /// The rate, and the time that the remaining jobs take at this rate, as text.
    fn text(&self, left: u64) -> String {
        let Some(rate) = self.rate() else { return String::new() };
        let per_s = if rate < 10.0 { short(rate) } else { count(rate.round() as u64) };
        format!("  {per_s}/s  {} left", rough(left as f64 / rate))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::{ProgressDrawTarget, TermLike};
    use volary_actors::base::Span;
    use volary_experiment::config::{Experiment, Overrides};
    use volary_experiment::control::StudyControl;

    use super::*;
    use crate::runtime::RunOptions;

    /// A terminal that stores its output.
    #[derive(Clone, Debug, Default)]
    struct Spy(Arc<Mutex<String>>);

    impl TermLike for Spy {
        fn width(&self) -> u16 {
            200
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            guard(&self.0).push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_is_drawn_once_the_number_of_jobs_is_known() {
        let text = "title = \"bar\"\nrepeat = 2\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 20\n\
                    tasks = 1\ninterarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n";
        let experiment = Experiment::plan("bar.toml", text, &Overrides::default()).unwrap();
        let (bar, spy) = (Bar::new(None), Spy::default());
        bar.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(spy.clone())));
        // The delay stands for a large plan, or for a wait for hosts.
        std::thread::sleep(Duration::from_millis(250));
        let folder = tempfile::tempdir().unwrap();
        let options = RunOptions { out: folder.path().join("r"), threads: Some(1), ..RunOptions::default() };
        let control = StudyControl { observers: vec![Arc::new(bar)], ..StudyControl::default() };
        crate::runtime::run(&experiment, &options, &control).unwrap();
        let drawn = spy.0.lock().unwrap();
        assert!(drawn.contains(" of 40 jobs") && !drawn.contains(" of 0 jobs"), "{drawn}");
    }

    #[test]
    fn the_remaining_time_follows_from_the_median_rate() {
        let mut pace = Pace::default();
        assert_eq!(pace.text(100), "", "the rate is unknown before a job has finished");
        let mut jobs = 0;
        for second in 1..=40 {
            // A pause of three seconds is followed by a burst.
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
        // In the next run, jobs finish more slowly.
        (1..=5).for_each(|second| pace.observe(Duration::from_secs(second), second));
        assert_eq!(pace.text(60), "  1.00/s  60 s left");
    }

    #[test]
    fn the_bar_fits_the_width_of_the_terminal() {
        let oldest_first = [(1_000, "a-policy-with-a-long-label"), (1_001, "")]
            .map(|(number, policy)| (number, number.to_string(), policy.to_owned()))
            .to_vec();
        let text =
            |width| RunningRuns { width, of: 2_000, jobs: 0, oldest_first: oldest_first.clone() }.text();
        assert!(text(None).ends_with("a-policy-with-a-long-label"));
        let narrow = text(Some(40));
        assert!(narrow.chars().count() < 40 && narrow.contains('…') && narrow.ends_with("el"), "{narrow}");
        assert!(template(Some(99)).starts_with("{wide_bar") && template(Some(100)).starts_with("{bar:12"));
        assert!(template(Some(80)).lines().count() < template(Some(79)).lines().count());
    }

    #[test]
    fn the_bar_counts_runs_and_shows_the_oldest() {
        let bar = Bar::new(None);
        let begin = |number, policy| {
            let id = format!("{number}");
            bar.begin(&BegunRun { id: &id, policy, number, of: 3, jobs: 10 });
            RunProgress { bar: &bar, number, shown: 0 }
        };
        let mut first = begin(1, "random");
        assert_eq!((bar.bar.message().as_str(), bar.bar.length()), ("run 1 of 3: random", Some(30)));
        let mut second = begin(2, "sparrow");
        assert_eq!(bar.bar.message(), "2 runs, oldest 1 of 3: random");
        second.show(3, Time::ZERO + Span::from_secs(9));
        first.show(4, Time::ZERO + Span::from_millis(2_500));
        assert_eq!(bar.clock.text(), "", "the clock is not shown for several runs");
        bar.failed("1", "the run was stopped");
        assert_eq!((bar.bar.message(), bar.clock.text()), ("run 2 of 3: sparrow".to_owned(), String::new()));
        second.show(4, Time::ZERO + Span::from_secs(10));
        assert_eq!(bar.clock.text(), "  at 10.0\u{202f}s");
        assert_eq!(bar.bar.position(), 8);
    }

    #[test]
    fn the_length_of_the_bar_includes_the_jobs_of_later_runs() {
        assert_eq!(expected(4_000, 1, 20), 80_000);
        assert_eq!(expected(80_000, 20, 20), 80_000);
        assert_eq!(expected(300, 2, 3), 450, "two runs have 100 and 200 jobs, and a third follows");
    }
}
