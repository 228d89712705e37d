//! The execution of an experiment: checks beforehand, replications, the study directory, verdicts on its claims, and
//! errors of the whole study.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use volary_actors::program::Launcher as _;
use volary_engine::results::{ClaimResult, SCHEMA, Summary};
use volary_experiment::config::experiment::MOST_REPLICATIONS;
use volary_experiment::config::{CellLoad, ConfigError, Experiment, Repeat, Run, RuntimeKind, describe};
use volary_experiment::control::{ExpectedRun, Fleet, NOTICE, StudyControl};
use volary_experiment::number::plural;
use volary_experiment::parallel;
use volary_experiment::stats::enough;
use volary_experiment::storage::input_log::{self, Sink};
use volary_experiment::storage::manifest::{Failure, Manifest, OfferedLoad, Provenance, RunState, utc_now};
use volary_experiment::storage::slices::{Slices, SweepSlice};
use volary_experiment::storage::study::Study;
use volary_experiment::storage::{self, Render, RenderedReport, StudyDir};

use super::pool;
use crate::hosts::executor::{assign_cpus, free_cpus};
use crate::hosts::{Controller, HostsError, WITHOUT_HOSTS};

/// Options of `volary run` beyond the experiment itself.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    pub out: PathBuf,
    /// Run only the runs that the study directory lacks.
    pub resume: bool,
    /// Number of concurrent runs; if absent, one per processor.
    pub threads: Option<usize>,
    /// Run only this slice of the runs.
    pub slice: Option<SweepSlice>,
    /// The hosts of a run on several machines.
    pub fleet: Option<Fleet>,
    /// The renderer of the report; `None` for no report.
    pub render: Option<Render>,
    /// The command line, which the manifest records.
    pub argv: Vec<String>,
}

/// The results of a study.
#[derive(Debug)]
pub struct Outcome {
    /// The content of the study directory.
    pub study: Study,
    /// Summaries of the finished runs, in order of runs.
    pub summaries: Vec<Summary>,
    /// The experiment's claims with their verdicts.
    pub claims: Vec<ClaimResult>,
    /// Runs that could not finish.
    pub failures: Vec<Failure>,
    pub state: RunState,
    /// Number of concurrent runs.
    pub threads: usize,
    /// The times when the first run began and the last one ended.
    pub span: [Instant; 2],
}

/// Sorts paced runs so that the policies of a cell under one seed are adjacent.
fn order(runs: &mut [Run], experiment: &Experiment, control: &StudyControl) {
    if control.pace.is_some() {
        let policies = experiment.labels().len();
        runs.sort_by_key(|run| (run.point / policies, run.replication));
    }
}

/// Executes every run of `experiment`, and stores each run in the study directory as it finishes.
///
/// # Errors
/// When the study cannot begin, or its results cannot be written; a run that fails is in [`Outcome::failures`].
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    control: &StudyControl,
) -> Result<Outcome, StudyError> {
    check(experiment, options)?;
    let logged = experiment.run.record.inputs;
    let bundle = logged.then(|| experiment.bundle()).transpose().map_err(StudyError::Bundle)?;
    let mut runs = experiment.runs(options.slice);
    let mut manifest = manifest(experiment, options, &runs);
    order(&mut runs, experiment, control);
    // The hosts are connected before the folder is made: a study that cannot start leaves no folder.
    let fleet = options.fleet.as_ref();
    let controller = fleet.map(|fleet| Controller::open(fleet, experiment, control)).transpose()?;
    manifest.hosts = controller.as_ref().map(|controller| controller.unused());
    let make = if options.resume { StudyDir::open } else { StudyDir::create };
    let folder = make(&options.out, manifest).map_err(StudyError::Folder)?;
    let folder = folder.with_jobs(experiment.run.record.jobs);
    if options.resume {
        take_up(&runs, &folder, control);
    }
    if let Some(controller) = &controller {
        folder.keep_logs(|logs| controller.keep_logs_in(logs))?;
    }
    let controller = controller.map(Mutex::new);
    let path = options.out.join(input_log::FILE);
    let sink =
        |bundle| if options.resume { Sink::append(&path, &bundle) } else { Sink::create(&path, &bundle) };
    let log = bundle.map(sink).transpose()?;
    let (count, cells) = (plural(runs.len() as u64, "run"), plural(experiment.cells().len() as u64, "cell"));
    tracing::info!("{}: {count} in {cells}, results in {}", experiment.name, options.out.display());
    let render: Render = options.render.unwrap_or(|_| RenderedReport::default());
    let (threads, begun) = (options.threads.unwrap_or_else(parallel::threads), Instant::now());
    let mut failures = Vec::new();
    let mut measure = || -> Result<(), storage::Error> {
        let mut todo = runs.clone();
        while !todo.is_empty() {
            let (controller, log) = (controller.as_ref(), log.as_ref());
            failures.extend(pool::run(experiment, &todo, threads, &folder, controller, log, control)?);
            todo = match experiment.repeat {
                Repeat::Auto if failures.is_empty() && !control.stopped() => more(experiment, &runs, &folder),
                Repeat::Auto | Repeat::Times(_) => Vec::new(),
            };
            folder.expect(todo.iter().map(|run| run.id.clone()).collect())?;
            control.report(|observer| observer.expect(&expected(experiment, &todo)));
            show_kept(&todo, &folder, control);
            runs.extend(todo.iter().cloned());
        }
        Ok(())
    };
    measure().inspect_err(|_| {
        // The disk is probably full. Closing the manifest with the stored results may still work.
        let _ = folder.finish(RunState::Failed, &[], render);
        control.report(|observer| observer.over(RunState::Failed));
    })?;
    let span = [begun, Instant::now()];
    // This releases the hosts, and their references to the log.
    drop(controller);
    let summaries: Vec<_> = runs.iter().filter_map(|run| folder.summary(&run.id)).collect();
    let claims = experiment.judge(&summaries);
    // A stop after the last planned run interrupts nothing, unless a stopping rule could have added replications.
    let left = experiment.repeat == Repeat::Auto || runs.len() > summaries.len() + failures.len();
    let state = match (control.stopped() && left, failures.is_empty()) {
        (true, _) => RunState::Interrupted,
        (false, true) => RunState::Finished,
        (false, false) => RunState::Failed,
    };
    let study = folder.finish(state, &claims, render)?;
    control.report(|observer| observer.over(state));
    log.map_or(Ok(()), Sink::close)?;
    Ok(Outcome { study, summaries, claims, failures, state, threads: threads.min(runs.len().max(1)), span })
}

/// Checks whether an experiment can be run with these options on this machine.
///
/// # Errors
/// [`StudyError::Unsupported`] with the remedy.
pub fn check(experiment: &Experiment, options: &RunOptions) -> Result<(), StudyError> {
    let unsupported = |text: &str| Err(StudyError::Unsupported(text.to_owned()));
    if cfg!(not(feature = "hosts")) && experiment.run.runtime != RuntimeKind::Virtual {
        return unsupported(WITHOUT_HOSTS);
    }
    let on_hosts = experiment.run.runtime == RuntimeKind::Hosts;
    // Hosts check their programs themselves.
    if !on_hosts {
        let mut programs = experiment.points.iter().filter_map(|point| point.policy.traits().program);
        programs
            .try_for_each(|program| experiment.launcher().check(program))
            .map_err(StudyError::Unsupported)?;
    }
    if on_hosts && options.fleet.is_none() {
        return unsupported(
            "runtime = \"hosts\" needs hosts: give --hosts FILE, as `volary certs` writes it, or --spawn N to \
             start agents on this machine",
        );
    }
    if !on_hosts && options.fleet.is_some() {
        return unsupported("--hosts and --spawn need --runtime hosts: add this option, or leave them out");
    }
    if options.slice.is_some() && experiment.repeat == Repeat::Auto {
        return unsupported(
            "a slice of a sweep cannot decide how often to repeat; give --repeat N with --slice",
        );
    }
    // Spawned agents share the CPUs of this machine; agents of other machines check their own CPUs.
    if let (Some(_), Some(Fleet::Spawn(agents))) = (experiment.run.burning(), &options.fleet) {
        let cpus = free_cpus().len();
        if usize::from(*agents) > cpus {
            return unsupported(&format!(
                "with [run.real] agents on one machine need CPUs of their own, and this machine has {cpus}: give --spawn \
                 {cpus} or less"
            ));
        }
    }
    if let Some(real) = experiment.run.burning().filter(|_| !on_hosts) {
        let most = experiment.points.iter().map(|point| point.resolved.cluster.core_count()).max();
        assign_cpus(&real, most.unwrap_or(0) as usize, &free_cpus()).map_err(StudyError::Unsupported)?;
    }
    Ok(())
}

fn manifest(experiment: &Experiment, options: &RunOptions, runs: &[Run]) -> Manifest {
    let slices = options.slice.map(|SweepSlice { index, of }| Slices {
        held: vec![SweepSlice { of, index }],
        runs: experiment.runs(None).len() as u64,
    });
    Manifest {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        runtime: experiment.run.runtime.to_string(),
        seed: experiment.seed,
        spec: serde_json::to_value(experiment).unwrap_or_default(),
        world: describe::first_world(experiment)
            .into_iter()
            .map(|(name, says)| (name.to_owned(), says))
            .collect(),
        loads: experiment.loads().iter().map(offered).collect(),
        argv: options.argv.clone(),
        hosts: None,
        clock_error_s: None,
        injections: BTreeMap::new(),
        origins: vec![Provenance::here(experiment.files_read())],
        runs: runs.iter().map(|run| run.id.clone()).collect(),
        slices: slices.filter(|slices| slices.left_out() > 0),
        state: RunState::Running,
        started: utc_now(),
        ended: None,
    }
}

/// The load of a cell without the digits that are rounding errors: 0.7 in place of 0.6999999999999998.
fn offered((cell, load): &CellLoad) -> OfferedLoad {
    let load = load.as_ref().map(|load| (load.offered * 1e12).round() / 1e12);
    OfferedLoad { cell: cell.clone(), load }
}

/// Logs the number of runs that the folder already has, and reports these runs to the observers.
fn take_up(runs: &[Run], folder: &StudyDir, control: &StudyControl) {
    let kept = || runs.iter().filter(|run| folder.has(&run.id));
    let (there, all) = (kept().count(), plural(runs.len() as u64, "run"));
    let disturbed = kept().filter(|run| folder.is_injected(&run.id)).count();
    let but = if disturbed > 0 {
        format!(" ({disturbed} with injections, which are not repeated)")
    } else {
        String::new()
    };
    tracing::info!(target: NOTICE, "kept {there} of {all}{but}, running {}", runs.len() - there);
    show_kept(runs, folder, control);
}

/// Reports the runs that the folder already has to the observers that want them.
fn show_kept(runs: &[Run], folder: &StudyDir, control: &StudyControl) {
    // Records with their timelines take much memory, and are read only for such observers.
    if !control.observers.iter().any(|observer| observer.sees_kept_runs()) {
        return;
    }
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    match folder.records(&ids) {
        Ok(kept) => {
            kept.iter().for_each(|record| control.report(|observer| observer.finished(record)));
        }
        Err(error) => tracing::warn!("{error}"),
    }
}

/// The planned runs, in the form that observers use.
pub fn expected<'a>(experiment: &'a Experiment, runs: &'a [Run]) -> Vec<ExpectedRun<'a>> {
    let expected = |run: &'a Run| {
        let point = &experiment.points[run.point];
        ExpectedRun {
            run: &run.id,
            policy: &point.label,
            cell: &point.cell,
            seed: run.seed,
            faults: &point.resolved.network.fault,
            injections: &point.resolved.injections,
        }
    };
    runs.iter().map(expected).collect()
}

/// The next replication of every cell whose precision is not reached yet. Each policy is compared with the first policy
/// of its cell, by the mean response time.
fn more(experiment: &Experiment, runs: &[Run], folder: &StudyDir) -> Vec<Run> {
    let mean = |point: usize, replication: u32| {
        let summary = folder.summary(&experiment.run_of(point, replication).id);
        summary.expect("without failures every run has finished").times.response_s.mean
    };
    let done = |point: usize| runs.iter().filter(|run| run.point == point).count() as u32;
    let mut wanted = BTreeSet::new();
    for (point, this) in experiment.points.iter().enumerate() {
        let reference = experiment.points.iter().position(|p| p.cell == this.cell).unwrap_or(point);
        let replications = done(point);
        let mut pairs = Vec::new();
        for replication in 0..replications {
            let own = mean(point, replication);
            // The first policy has no reference: its own confidence interval is used.
            pairs.push(if reference == point {
                (2.0 * own, own)
            } else {
                (own, mean(reference, replication))
            });
        }
        if !enough(&pairs, experiment.precision) && replications < MOST_REPLICATIONS {
            wanted.insert(reference);
        }
    }
    let is_wanted = |point: &usize| {
        wanted.iter().any(|&reference| experiment.points[reference].cell == experiment.points[*point].cell)
    };
    let next = (0..experiment.points.len()).filter(is_wanted);
    next.map(|point| experiment.run_of(point, done(point))).collect()
}

/// The reason why a study could not start, or its results could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The options do not fit the experiment.
    #[error("{0}")]
    Unsupported(String),
    /// The hosts cannot be used; no run was executed.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The study directory cannot be created or opened; no run was executed.
    #[error(transparent)]
    Folder(storage::Error),
    /// The study directory can no longer be read or written.
    #[error(transparent)]
    StudyDir(#[from] storage::Error),
    /// The experiment's files cannot be stored with the log of inputs.
    #[error(transparent)]
    Bundle(ConfigError),
    /// The log of inputs cannot be written.
    #[error(transparent)]
    Inputs(#[from] input_log::Error),
}
