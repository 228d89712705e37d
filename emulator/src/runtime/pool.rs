//! The thread pool of a study: each run has one thread and its own memory; runs share only traces. A run in virtual
//! time is executed here, and its cost is measured.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use volary_actors::base::Span;
use volary_engine::results::{Cell, Measured, Summary, run_name};
use volary_engine::scenario::Point;
use volary_engine::shard::Observer;
use volary_engine::virtual_time::{Progress, measure_with};
use volary_engine::world::{EngineError, World};
use volary_experiment::config::{Experiment, Run, RunSection, RuntimeKind};
use volary_experiment::control::{BegunRun, ObservedRun, RunError, StudyControl, panic_text};
use volary_experiment::cost;
use volary_experiment::guard::guard;
use volary_experiment::number::{plural, seconds};
use volary_experiment::storage::input_log::Sink;
use volary_experiment::storage::manifest::Failure;
use volary_experiment::storage::{self, StudyDir};
use volary_experiment::workload::Traces;

use crate::hosts::{Controller, local};

/// The first run of a policy's program is executed twice if it takes at most this real time, s, to check that its
/// results can be repeated.
const LONGEST_SECOND_S: f64 = 5.0;

/// The state that the threads share.
struct Pool<'a> {
    /// Number of threads that a single run in real time takes.
    threads: usize,
    controller: Option<&'a Mutex<Controller>>,
    experiment: &'a Experiment,
    folder: &'a StudyDir,
    log: Option<&'a Sink>,
    control: &'a StudyControl,
    traces: Traces,
    /// Number of runs.
    runs: u64,
    /// Number of runs that have started.
    begun: AtomicU64,
    failures: Mutex<Vec<Failure>>,
    trouble: Mutex<Option<storage::Error>>,
}

/// Executes the runs that the folder lacks, and stores each run as it finishes; returns the failed runs.
pub(super) fn run(
    experiment: &Experiment,
    runs: &[Run],
    threads: usize,
    folder: &StudyDir,
    controller: Option<&Mutex<Controller>>,
    log: Option<&Sink>,
    control: &StudyControl,
) -> Result<Vec<Failure>, storage::Error> {
    let (send, receive) = crossbeam_channel::unbounded();
    let missing = runs.iter().filter(|run| !folder.has(&run.id));
    let count = missing.clone().count() as u64;
    for equal in experiment.equal_runs(missing) {
        // Sending cannot fail, since the receiver is below.
        let _ = send.send(equal);
    }
    drop(send);
    // Concurrent runs in real time would disturb each other.
    let side_by_side = if experiment.run.runtime == RuntimeKind::Virtual { threads } else { 1 };
    let pool = Pool {
        threads,
        controller,
        experiment,
        folder,
        log,
        control,
        traces: experiment.traces(),
        runs: count,
        begun: AtomicU64::new(0),
        failures: Mutex::default(),
        trouble: Mutex::default(),
    };
    let side_by_side = side_by_side.clamp(1, receive.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(|| {
                receive.iter().take_while(|_| !pool.control.stopped()).for_each(|equal| pool.execute(&equal))
            });
        }
    });
    control.report(|observer| observer.idle());
    let trouble = guard(&pool.trouble).take();
    trouble.map_or_else(|| Ok(std::mem::take(&mut *guard(&pool.failures))), Err)
}

impl Pool<'_> {
    /// Executes the first of several equal runs, and stores its results for all of them.
    fn execute(&self, equal: &[&Run]) {
        let Some((first, others)) = equal.split_first() else { return };
        // A bug in one run must not end the others.
        let measured = catch_unwind(AssertUnwindSafe(|| self.keep(first, others, self.measure(first))));
        let failed = |panic: Box<dyn Any + Send>| {
            equal.iter().try_for_each(|run| self.fail(run, panic_text(panic.as_ref()), None))
        };
        self.kept(measured.unwrap_or_else(failed));
    }

    /// Executes a run, and once more on the hosts that are left if it loses a host. A run with injections is not
    /// executed again, since the injections would be missing.
    fn measure(&self, run: &Run) -> Result<Measured, RunError> {
        let number = self.next_number();
        let first = self.attempt(run, number);
        let why = match &first {
            Err(RunError::Broken { why, .. } | RunError::Refused(why)) => why.clone(),
            Ok(_) | Err(RunError::Interrupted(_)) => return first,
        };
        let has_lost = self.controller.is_some_and(|controller| guard(controller).remove_lost_hosts());
        if !has_lost || self.control.stopped() || self.folder.is_injected(&run.id) {
            return first;
        }
        tracing::warn!("{why}: the run begins again on the hosts that are left");
        match (self.attempt(run, number), first) {
            (Ok(mut measured), _) => {
                let hosts = measured.summary.fidelity.iter().flat_map(|certificate| &certificate.hosts);
                let hosts: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
                measured.summary.executed_again =
                    Some(format!("{why}; executed again on {}", hosts.join(", ")));
                Ok(measured)
            }
            // The measurements of the first attempt are kept.
            (Err(RunError::Refused(now)), Err(RunError::Broken { measured, .. })) => {
                Err(RunError::Broken { why: format!("{why}; the run failed again: {now}"), measured })
            }
            (again, _) => again,
        }
    }

    /// Executes a run once; `number` is its number among the runs of the study.
    fn attempt(&self, run: &Run, number: u64) -> Result<Measured, RunError> {
        let name = &self.experiment.name;
        let section = &self.experiment.run.of_replication(run.replication);
        let point = &self.experiment.points[run.point];
        let world = World::build(point, run.seed, &self.traces).map_err(RunError::from);
        let world = world
            .map(|world| world.with_clock(cost::thread_cpu_ns).with_launcher(self.experiment.launcher()));
        world.and_then(|world| {
            let point = world.point();
            let jobs = u64::from(world.workload().chains());
            self.begin(run, number, &point.label, &point.cell, jobs);
            let id = &run.id;
            let log = self.log.map(|log| log.attempt(&run.id, &point.label, run.seed));
            match (section.runtime, log) {
                (RuntimeKind::Virtual, None) => {
                    let measured =
                        measure(name, &world, section, &ObservedRun::new(self.control, id, &world))?;
                    self.compare_with_second(run, &world, &measured.summary);
                    Ok(measured)
                }
                (RuntimeKind::Virtual, Some(log)) => {
                    let progress = ObservedRun::new(self.control, id, &world);
                    measure_observed(
                        name,
                        &world,
                        section,
                        log.section(0, 1).with_effects_of(world.asked()),
                        &progress,
                    )
                }
                (RuntimeKind::Local, log) => {
                    local::measure(name, id, world, section, self.threads, log, self.control)
                }
                (RuntimeKind::Hosts, log) => {
                    let controller =
                        self.controller.ok_or_else(|| RunError::Refused("no host was given".to_owned()))?;
                    let mut controller = guard(controller);
                    // A host can be lost between runs.
                    controller.remove_lost_hosts();
                    let before = controller.held(&world, &run.id);
                    self.kept(self.folder.held(&before));
                    let measured =
                        controller.measure(name, &world, run.point, section, log.as_ref(), self.control);
                    self.kept(self.folder.injected(&run.id, controller.injected()));
                    let after = controller.held(&world, &run.id);
                    // The run has lost hosts.
                    if after != before {
                        self.kept(self.folder.held(&after));
                    }
                    measured
                }
            }
        })
    }

    /// Stores the results of a run, and of the `others`, which are equal to it.
    fn keep(
        &self,
        run: &Run,
        others: &[&Run],
        measured: Result<Measured, RunError>,
    ) -> Result<(), storage::Error> {
        match measured {
            // A run whose log is incomplete must be repeated, and is not stored as finished.
            Ok(_) if self.log.is_some_and(|log| !log.is_whole()) => {
                self.control.stop.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(mut measured) => {
                finished(&measured.summary);
                self.store(run, &measured)?;
                for other in others {
                    measured.summary.cell.clone_from(&self.experiment.points[other.point].cell);
                    (measured.summary.engine.cpu_s, measured.summary.engine.wall_s) = (0.0, 0.0);
                    let jobs = measured.jobs.len() as u64;
                    let Summary { policy, cell, .. } = &measured.summary;
                    self.begin(other, self.next_number(), policy, cell, jobs);
                    self.store(other, &measured)?;
                }
                Ok(())
            }
            Err(RunError::Interrupted(measured)) => {
                measured.map_or(Ok(()), |measured| self.interrupt(run, measured.summary))
            }
            Err(RunError::Refused(why)) => {
                [&[run], others].concat().iter().try_for_each(|run| self.fail(run, why.clone(), None))
            }
            Err(RunError::Broken { why, measured }) => self.fail(run, why, Some(measured.summary)),
        }
    }

    /// Executes the first run of a program once more if that takes little time, and warns if the same seed gives
    /// another order of events.
    fn compare_with_second(&self, run: &Run, world: &World, first: &Summary) {
        let point = world.point();
        let verifies = point.policy.traits().program.is_some_and(|program| program.verify);
        let of_policy = |other: &Point| other.label == point.label;
        let is_first = self.experiment.points.iter().position(of_policy) == Some(run.point);
        let is_short = first.engine.wall_s <= LONGEST_SECOND_S;
        if !(verifies && is_first && is_short && run.replication == 0) {
            return;
        }
        // Only the order of events is compared.
        let mut section = self.experiment.run.clone();
        section.record.timeline = Some(Span::ZERO);
        section.record.tasks_one_in = Some(0);
        let hash = match measure(&self.experiment.name, world, &section, self.control) {
            Ok(second) => second.summary.engine.order_hash,
            Err(RunError::Interrupted(_)) => return,
            Err(RunError::Refused(why) | RunError::Broken { why, .. }) => why,
        };
        if hash != first.engine.order_hash {
            tracing::warn!(
                "{}: two runs of seed {} differ, so results of this program cannot be repeated: its decisions must \
                 depend only on its input, and its random numbers only on the `seed` in that input",
                world.point().label,
                world.seed()
            );
        }
    }

    /// Stores the results of a run.
    fn store(&self, run: &Run, measured: &Measured) -> Result<(), storage::Error> {
        let record = self.folder.store(&run.id, measured)?;
        self.control.report(|observer| observer.finished(&record));
        Ok(())
    }

    /// The number of the next run of the study, from one.
    fn next_number(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Reports and logs the start of a run, or of its second attempt.
    fn begin(&self, run: &Run, number: u64, policy: &str, cell: &Cell, jobs: u64) {
        let begun = BegunRun { id: &run.id, policy, number, of: self.runs, jobs };
        self.control.report(|observer| observer.begin(&begun));
        let name = run_name(policy, cell, run.seed);
        tracing::info!("run {} of {}: {name}, {}", begun.number, begun.of, plural(jobs, "job"));
    }

    /// Stops all runs if results can no longer be stored.
    fn kept(&self, stored: Result<(), storage::Error>) {
        if let Err(error) = stored {
            *guard(&self.trouble) = Some(error);
            self.control.stop.store(true, Ordering::Relaxed);
        }
    }

    fn fail(&self, run: &Run, log: String, summary: Option<Summary>) -> Result<(), storage::Error> {
        self.control.report(|observer| observer.failed(&run.id, &log));
        let failure = self.failure(run, log, summary, false);
        self.folder.fail(&failure)?;
        guard(&self.failures).push(failure);
        Ok(())
    }

    /// Stores the measurements of an interrupted run, if it has any. The run is treated as missing, not as failed.
    fn interrupt(&self, run: &Run, summary: Summary) -> Result<(), storage::Error> {
        let jobs = summary.jobs;
        if jobs.submitted == 0 {
            return Ok(());
        }
        let log = format!(
            "interrupted after {} of emulated time: {} of {} that had arrived were finished",
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

/// Runs one point under one seed, from the first arrival to the last completion.
///
/// # Errors
/// [`RunError::Interrupted`] when stopped, with the measurements so far; [`RunError::Refused`] for errors that
/// appear only under this seed.
///
/// # Panics
/// When a policy has a bug, such as a job that finishes twice, or counters that do not add up.
pub fn measure(
    name: &str,
    world: &World,
    run: &RunSection,
    progress: &dyn Progress,
) -> Result<Measured, RunError> {
    // The whole loop is a function of the engine, so that it is compiled in one unit with the functions that it calls.
    with_cost(|| volary_engine::virtual_time::measure(name, world, &run.config(), progress))
}

/// Runs one point as [`measure`] does, with an observer of every input of every actor.
///
/// # Errors
/// The errors of [`measure`].
pub fn measure_observed(
    name: &str,
    world: &World,
    run: &RunSection,
    observer: impl Observer,
    progress: &dyn Progress,
) -> Result<Measured, RunError> {
    with_cost(|| measure_with(name, world, &run.config(), observer, progress))
}

/// Adds the cost of a run to its results.
fn with_cost(run: impl FnOnce() -> Result<Measured, EngineError>) -> Result<Measured, RunError> {
    let (clock, cpu) = (Instant::now(), cost::thread_cpu_s());
    let mut run = run();
    if let Ok(measured) = run.as_mut().or_else(|error| match error {
        EngineError::Interrupted(measured) => Ok(&mut **measured),
        EngineError::Refused(_) => Err(()),
    }) {
        let engine = &mut measured.summary.engine;
        engine.cpu_s = cost::thread_cpu_s() - cpu;
        engine.wall_s = clock.elapsed().as_secs_f64();
        engine.peak_rss_bytes = cost::peak_rss_bytes();
    }
    Ok(run?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use volary_actors::base::Time;
    use volary_engine::metrics::Recorder;
    use volary_experiment::config::Overrides;
    use volary_experiment::control::{Counted, RunObserver, StudyObserver};
    use volary_experiment::storage::manifest::RunState;

    use super::*;
    use crate::runtime::run::RunOptions;

    /// Sets a flag when the first job of a run has finished.
    #[derive(Debug, Default)]
    struct FirstJob(AtomicBool);

    impl StudyObserver for FirstJob {
        fn of_run<'a>(&'a self, _: &str, _: &'a World) -> Box<dyn RunObserver + 'a> {
            Box::new(Flag(&self.0))
        }
    }

    #[derive(Debug)]
    struct Flag<'a>(&'a AtomicBool);

    impl RunObserver for Flag<'_> {
        fn look(&mut self, _: Time, recorder: &Recorder<'_>, _: &dyn Fn() -> Counted) {
            self.0.fetch_or(recorder.finished_jobs() > 0, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_stop_after_the_last_run_leaves_the_study_finished() {
        let text = "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 20\ntasks = 1\n\
                    interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n";
        let experiment = Experiment::plan("stop.toml", text, &Overrides::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let stopped = StudyControl::default();
        stopped.stop.store(true, Ordering::Relaxed);
        let state = |control: &StudyControl, resume| {
            let out = folder.path().join("r");
            let options = RunOptions { out, resume, ..RunOptions::default() };
            crate::runtime::run(&experiment, &options, control).unwrap().state
        };
        assert_eq!(state(&stopped, false), RunState::Interrupted, "one run is missing");
        assert_eq!(state(&StudyControl::default(), true), RunState::Finished);
        assert_eq!(state(&stopped, true), RunState::Finished, "no run is missing");
    }

    /// A sweep over a parameter of one policy has three equal runs of the other one.
    #[test]
    fn equal_runs_of_a_sweep_are_executed_once() {
        let text = "title = \"t\"\n[cluster]\nnodes = 9\n[workload.synthetic]\njobs = 20\ntasks = 1\n\
                    interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n\
                    [[policy]]\nsparrow = {}\n[sweep]\n\"policy.sparrow.probe_ratio\" = [1, 2, 3]\n";
        let experiment = Experiment::plan("equal.toml", text, &Overrides::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let options = RunOptions { out: folder.path().join("r"), ..RunOptions::default() };
        let outcome = crate::runtime::run(&experiment, &options, &StudyControl::default()).unwrap();
        let of = |policy| outcome.summaries.iter().filter(move |run| run.policy == policy);
        let executed = |policy| of(policy).filter(|run| run.engine.wall_s > 0.0).count();
        assert_eq!((outcome.summaries.len(), executed("random"), executed("sparrow")), (6, 1, 3));
        let cells: std::collections::BTreeSet<String> = of("random").map(Summary::name).collect();
        assert_eq!(cells.len(), 3);
        let first = of("random").next().unwrap();
        assert!(of("random").all(|run| run.times == first.times));
        let plan = volary_experiment::config::describe::text(&experiment, None);
        assert!(plan.contains("6 runs (4 different ones; equal ones are executed once)"), "{plan}");
    }

    /// A run is stopped after its first job, in virtual and in real time. A second call runs it to its end.
    #[test]
    fn an_interrupted_run_keeps_its_measurements_until_it_is_repeated() {
        for (runtime, jobs, set) in [("virtual", 2_000_000, "run.speed=1"), ("local", 40, "run.speed=20")] {
            if runtime == "local" && cfg!(not(feature = "hosts")) {
                continue;
            }
            let text = format!(
                "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = {jobs}\ntasks = 1\n\
                 interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {{}}\n\
                 [run]\nruntime = \"{runtime}\"\n"
            );
            let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
            let experiment = Experiment::plan("kept.toml", &text, &overrides).unwrap();
            let (folder, first) = (tempfile::tempdir().unwrap(), Arc::new(FirstJob::default()));
            let control = StudyControl { observers: vec![first.clone()], ..StudyControl::default() };
            let options =
                |resume| RunOptions { out: folder.path().join("r"), resume, ..RunOptions::default() };
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !first.0.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    control.stop.store(true, Ordering::Relaxed);
                });
                crate::runtime::run(&experiment, &options(false), &control).unwrap()
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
            let again = crate::runtime::run(&experiment, &options(true), &StudyControl::default()).unwrap();
            assert_eq!((again.state, again.study.failures.len()), (RunState::Finished, 0), "{runtime}");
            assert_eq!(again.summaries[0].jobs.finished, jobs, "{runtime}");
        }
    }
}
