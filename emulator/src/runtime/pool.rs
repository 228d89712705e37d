//! The thread pool of a run: each unit has one thread and its own memory; only traces are shared.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use volary_engine::results::{Cell, Summary, run_name};
use volary_engine::world::World;

use super::{local, virtual_time};
use crate::cluster::controller::Controller;
use crate::config::{Experiment, Run, RuntimeKind};
use crate::cost;
use crate::guard::guard;
use crate::number::{plural, seconds};
use crate::observer::StudyObserver;
use crate::storage::input_log::Sink;
use crate::storage::manifest::Failure;
use crate::storage::{self, StudyDir};
use crate::watch::{RunError, RunWatch, Watch, panic_text};
use crate::workload::Traces;

/// The state that the threads share.
struct Pool<'a> {
    /// Threads of a single run in real time.
    threads: usize,
    controller: Option<&'a Mutex<Controller>>,
    experiment: &'a Experiment,
    folder: &'a StudyDir,
    log: Option<&'a Sink>,
    watch: &'a Watch,
    traces: Traces,
    /// Number of runs.
    runs: u64,
    /// Number of runs that have started, and of their jobs.
    begun: Mutex<(u64, u64)>,
    failures: Mutex<Vec<Failure>>,
    trouble: Mutex<Option<storage::Error>>,
}

/// Runs the runs that the folder lacks and stores each as it finishes; returns those that failed.
pub(super) fn run(
    experiment: &Experiment,
    runs: &[Run],
    threads: Option<usize>,
    folder: &StudyDir,
    controller: Option<&Mutex<Controller>>,
    log: Option<&Sink>,
    watch: &Watch,
) -> Result<Vec<Failure>, storage::Error> {
    let (send, receive) = crossbeam_channel::unbounded();
    for run in runs.iter().filter(|run| !folder.has(&run.id)) {
        // Cannot fail: the receiver is below.
        let _ = send.send(run);
    }
    drop(send);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or(cores);
    // Concurrent runs in real time would disturb each other.
    let side_by_side = if experiment.run.runtime == RuntimeKind::Virtual { threads } else { 1 };
    let pool = Pool {
        threads,
        controller,
        experiment,
        folder,
        log,
        watch,
        traces: experiment.traces(),
        runs: receive.len() as u64,
        begun: Mutex::default(),
        failures: Mutex::default(),
        trouble: Mutex::default(),
    };
    let side_by_side = side_by_side.clamp(1, receive.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(|| {
                receive.iter().take_while(|_| !pool.watch.stopped()).for_each(|run| pool.execute(run))
            });
        }
    });
    watch.bar.finish_and_clear();
    let trouble = guard(&pool.trouble).take();
    trouble.map_or_else(|| Ok(std::mem::take(&mut *guard(&pool.failures))), Err)
}

impl Pool<'_> {
    fn execute(&self, run: &Run) {
        // A bug in one run must not end the others.
        let measured = catch_unwind(AssertUnwindSafe(|| self.measure(run)));
        self.kept(measured.unwrap_or_else(|panic| self.fail(run, panic_text(panic.as_ref()), None)));
    }

    fn measure(&self, run: &Run) -> Result<(), storage::Error> {
        let name = &self.experiment.name;
        let section = &self.experiment.run;
        let point = &self.experiment.points[run.point];
        let world = World::build(point, run.seed, &self.traces).map_err(RunError::from);
        let world = world.map(|world| world.with_clock(cost::thread_cpu_ns));
        let measured = world.and_then(|world| {
            let point = world.point();
            let jobs = u64::from(world.workload().chains());
            let progress = self.begin(run, &point.label, &point.cell, jobs);
            let id = &run.id;
            let log = self.log.map(|log| log.attempt(&run.id, &point.label, run.seed));
            match (section.runtime, log) {
                (RuntimeKind::Virtual, None) => {
                    virtual_time::measure(name, &world, section, &progress.observed(id, &world))
                }
                (RuntimeKind::Virtual, Some(log)) => {
                    let progress = progress.observed(id, &world);
                    virtual_time::measure_observed(name, &world, section, log.section(0, 1), &progress)
                }
                (RuntimeKind::Local, log) => {
                    local::measure(name, id, world, section, self.threads, log, self.watch)
                }
                (RuntimeKind::Hosts, log) => {
                    let controller =
                        self.controller.ok_or_else(|| RunError::Refused("no hosts were given".to_owned()))?;
                    let mut controller = guard(controller);
                    controller.remove_lost_hosts();
                    let before = controller.held(&world, &run.id);
                    self.kept(self.folder.held(&before));
                    let measured =
                        controller.measure(name, &world, run.point, section, log.as_ref(), self.watch);
                    self.kept(self.folder.injected(&run.id, controller.injected()));
                    let after = controller.held(&world, &run.id);
                    // Hosts were lost during the run.
                    if after != before {
                        self.kept(self.folder.held(&after));
                    }
                    measured
                }
            }
        });
        match measured {
            // Without its log the run must be made again: it does not count as finished.
            Ok(_) if self.log.is_some_and(|log| !log.is_whole()) => {
                self.watch.stop.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(measured) => {
                finished(&measured.summary);
                let record = self.folder.store(&run.id, &measured)?;
                self.report(|observer| observer.finished(&record));
                Ok(())
            }
            Err(RunError::Interrupted(measured)) => {
                measured.map_or(Ok(()), |measured| self.interrupt(run, measured.summary))
            }
            Err(RunError::Refused(why)) => self.fail(run, why, None),
            Err(RunError::Broken { why, measured }) => self.fail(run, why, Some(measured.summary)),
        }
    }

    /// Logs the start of a run. The length of the bar is an estimate of all jobs of all runs.
    fn begin(&self, run: &Run, label: &str, cell: &Cell, jobs: u64) -> RunWatch<'_> {
        self.report(|observer| observer.begin(&run.id, jobs));
        let mut begun = guard(&self.begun);
        *begun = (begun.0 + 1, begun.1 + jobs);
        let (number, jobs_so_far) = *begun;
        self.watch.bar.set_length(expected(jobs_so_far, number, self.runs));
        let watched = self.watch.of_run(number, self.runs, label);
        if number == 1 {
            self.watch.draw();
        }
        let name = run_name(label, cell, run.seed);
        tracing::info!("run {number} of {}: {name}, {}", self.runs, plural(jobs, "job"));
        watched
    }

    /// Reports to the observer, if there is one.
    fn report(&self, what: impl FnOnce(&dyn StudyObserver)) {
        self.watch.observer.as_deref().map(what);
    }

    /// Stops all runs if results cannot be stored any more.
    fn kept(&self, stored: Result<(), storage::Error>) {
        if let Err(error) = stored {
            *guard(&self.trouble) = Some(error);
            self.watch.stop.store(true, Ordering::Relaxed);
        }
    }

    fn fail(&self, run: &Run, log: String, summary: Option<Summary>) -> Result<(), storage::Error> {
        self.report(|observer| observer.failed(&run.id, &log));
        let failure = self.failure(run, log, summary, false);
        self.folder.fail(&failure)?;
        guard(&self.failures).push(failure);
        Ok(())
    }

    /// Stores what was measured of a run that was interrupted, if anything was. It has not failed, and is missing.
    fn interrupt(&self, run: &Run, summary: Summary) -> Result<(), storage::Error> {
        let jobs = summary.jobs;
        if jobs.submitted == 0 {
            return Ok(());
        }
        let log = format!(
            "interrupted after {} of emulated time, with {} of {} finished that had arrived",
            seconds(summary.makespan_s),
            jobs.finished,
            plural(jobs.submitted, "job")
        );
        self.folder.fail(&self.failure(run, log, Some(summary), true))
    }

    fn failure(&self, run: &Run, log: String, summary: Option<Summary>, interrupted: bool) -> Failure {
        let point = &self.experiment.points[run.point];
        Failure {
            id: run.id.clone(),
            policy: point.label.clone(),
            cell: point.cell.clone(),
            seed: run.seed,
            log,
            summary,
            interrupted,
        }
    }
}

/// Jobs of all runs, if later runs have as many as those that have started.
const fn expected(jobs: u64, begun: u64, runs: u64) -> u64 {
    (jobs as u128 * runs as u128 / begun as u128) as u64
}

/// Logs the end of a run.
fn finished(summary: &Summary) {
    let (jobs, engine) = (&summary.jobs, &summary.engine);
    tracing::info!(
        "{} finished {} of {} in {} of emulated time: {}, {} of CPU time, order hash {}",
        summary.name(),
        jobs.finished,
        plural(jobs.submitted, "job"),
        seconds(summary.makespan_s),
        plural(engine.events, "event"),
        seconds(engine.cpu_s),
        engine.order_hash,
    );
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::time::Duration;

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;
    use crate::config::Overrides;
    use crate::runtime::run::RunOptions;
    use crate::storage::manifest::RunState;

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
    fn the_bar_is_drawn_once_jobs_are_known() {
        let text = "title = \"bar\"\nrepeat = 2\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 20\n\
                    tasks = 1\ninterarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n";
        let experiment = Experiment::plan("bar.toml", text, &Overrides::default()).unwrap();
        let (watch, spy) = (Watch::on_terminal(None), Spy::default());
        watch.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(spy.clone())));
        // As after a large plan, or a wait for hosts.
        std::thread::sleep(Duration::from_millis(250));
        let folder = tempfile::tempdir().unwrap();
        let options = RunOptions { out: folder.path().join("r"), threads: Some(1), ..RunOptions::default() };
        crate::runtime::run(&experiment, &options, &watch).unwrap();
        let drawn = spy.0.lock().unwrap();
        assert!(drawn.contains(" of 40 jobs") && !drawn.contains(" of 0 jobs"), "{drawn}");
    }

    #[test]
    fn a_stop_after_the_last_run_interrupts_nothing() {
        let text = "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 20\ntasks = 1\n\
                    interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n";
        let experiment = Experiment::plan("stop.toml", text, &Overrides::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let stopped = Watch::default();
        stopped.stop.store(true, Ordering::Relaxed);
        let state = |watch: &Watch, resume| {
            let out = folder.path().join("r");
            let options = RunOptions { out, resume, ..RunOptions::default() };
            crate::runtime::run(&experiment, &options, watch).unwrap().state
        };
        assert_eq!(state(&stopped, false), RunState::Interrupted, "a run is left");
        assert_eq!(state(&Watch::default(), true), RunState::Finished);
        assert_eq!(state(&stopped, true), RunState::Finished, "nothing was left to run");
    }

    /// Stopped after the first job, in virtual time and in real time; another call runs it to its end.
    #[test]
    fn an_interrupted_run_keeps_what_was_measured_until_it_is_run_again() {
        for (runtime, jobs, set) in [("virtual", 2_000_000, "run.speed=1"), ("local", 40, "run.speed=20")] {
            let text = format!(
                "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = {jobs}\ntasks = 1\n\
                 interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {{}}\n\
                 [run]\nruntime = \"{runtime}\"\n"
            );
            let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
            let experiment = Experiment::plan("kept.toml", &text, &overrides).unwrap();
            let (folder, watch) = (tempfile::tempdir().unwrap(), Watch::default());
            let options =
                |resume| RunOptions { out: folder.path().join("r"), resume, ..RunOptions::default() };
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while watch.bar.position() == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    watch.stop.store(true, Ordering::Relaxed);
                });
                crate::runtime::run(&experiment, &options(false), &watch).unwrap()
            });
            assert_eq!((outcome.state, outcome.failures.len()), (RunState::Interrupted, 0), "{runtime}");
            let [kept] = &outcome.study.failures[..] else {
                panic!("{runtime}: {:?}", outcome.study.failures)
            };
            let jobs_then = kept.summary.as_ref().unwrap().jobs;
            assert!(
                kept.interrupted && jobs_then.finished > 0 && jobs_then.finished < jobs,
                "{runtime}: {kept:?}"
            );
            assert!(kept.reason().starts_with("interrupted after "), "{}", kept.reason());
            let again = crate::runtime::run(&experiment, &options(true), &Watch::default()).unwrap();
            assert_eq!((again.state, again.study.failures.len()), (RunState::Finished, 0), "{runtime}");
            assert_eq!(again.summaries[0].jobs.finished, jobs, "{runtime}");
        }
    }

    #[test]
    fn the_bar_is_as_long_as_all_runs() {
        assert_eq!(expected(4_000, 1, 20), 80_000);
        assert_eq!(expected(80_000, 20, 20), 80_000);
        assert_eq!(expected(300, 2, 3), 450, "runs of 100 and 200 jobs, and one to come");
    }
}
