//! The replay of a study directory: the worlds of its log, planned from the logged experiment, and the sections of the
//! log for the engine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use volary_engine::metrics::RunConfig;
use volary_engine::replay::Logged;
use volary_engine::results::{Injected, Summary};
use volary_engine::scenario::Point;
use volary_engine::world::World;
use volary_experiment::config::{Bundle, ConfigError, Experiment, RunSection, RuntimeKind, id_under};
use volary_experiment::control::{RunError, panic_text};
use volary_experiment::number::plural;
use volary_experiment::storage;
use volary_experiment::storage::input_log::{self, Digester, FILE, InputLog, LogSection};
use volary_experiment::storage::manifest::{HostRecord, RunState, of_shard};

pub use volary_engine::replay::{Cut, Difference, Divergence, Replayed};

/// The reason why a run could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The study directory cannot be read.
    #[error(transparent)]
    StudyDir(#[from] storage::Error),
    /// The directory has no log.
    #[error("{} has no {FILE}; run again with --set run.record.inputs=true", .0.display())]
    NoLog(PathBuf),
    /// The log cannot be read.
    #[error("{}: {source}", path.display())]
    Log { path: PathBuf, source: input_log::Error },
    /// The log does not contain the requested run.
    #[error("{FILE} has no run {asked}; it has {there}")]
    NoRun { asked: String, there: String },
    /// The log belongs to another run.
    #[error(
        "{FILE} has run {run} ({policy}, seed {seed}), which the study in {} lacks; the log belongs to another study, or its \
         experiment was planned by another version of volary",
        path.display()
    )]
    OtherExperiment { path: PathBuf, run: String, policy: String, seed: u64 },
    /// The experiment in the log cannot be planned.
    #[error("the experiment in {FILE} cannot be planned by this version of volary: {0}")]
    Plan(ConfigError),
    /// The run cannot be replayed.
    #[error("run {run}: {why}")]
    Run { run: String, why: String },
}

/// A study directory with its log, and the experiment that is planned from the log.
pub struct Source<R> {
    path: PathBuf,
    log: InputLog<R>,
    runs: Vec<String>,
    state: RunState,
    /// The hosts of the run; empty for a run on one machine.
    hosts: Vec<HostRecord>,
    recorded: Vec<(String, Summary)>,
    /// The injections of each run.
    injections: BTreeMap<String, Vec<Injected>>,
    /// Number and plan of the experiment that was planned last.
    planned: Option<(usize, Experiment)>,
}

/// Opens a study directory for replay.
///
/// # Errors
/// When `path` is not a study directory, or has no log that this version can read.
pub fn open(path: &Path) -> Result<Source<File>, Error> {
    let manifest = storage::load_manifest(path)?;
    let name = path.join(FILE);
    if !name.exists() {
        return Err(Error::NoLog(path.to_owned()));
    }
    let of_log = |source| Error::Log { path: path.to_owned(), source };
    let file = File::open(&name).map_err(|source| of_log(input_log::Error::Io { doing: "open", source }))?;
    let log = InputLog::new(file).map_err(of_log)?;
    let study = storage::load(path)?;
    let recorded = study.records().map(|record| (record.id.clone(), record.summary.clone())).collect();
    let hosts = manifest.hosts.unwrap_or_default();
    let (runs, state, injections) = (manifest.runs, manifest.state, manifest.injections);
    Ok(Source { path: path.to_owned(), log, runs, state, hosts, recorded, injections, planned: None })
}

impl<R: Read + Seek> Source<R> {
    /// Ids of the runs in the log, in the order in which they began. If a study was resumed under another plan, only
    /// runs of the last plan are listed; if no logged run is in that plan, all runs are.
    pub fn runs(&self) -> Vec<String> {
        let mut runs: Vec<String> = Vec::new();
        for found in self.log.found() {
            if !runs.contains(&found.header.run) {
                runs.push(found.header.run.clone());
            }
        }
        if runs.iter().any(|run| self.runs.contains(run)) {
            runs.retain(|run| self.runs.contains(run));
        }
        runs
    }

    /// The missing part of the log; `None` if the run reached its end, or the log is complete.
    pub fn ends_early(&self) -> Option<String> {
        let (logged, state) = (self.runs(), self.state);
        let missing = self.runs.iter().filter(|run| !logged.contains(run)).count();
        (state != RunState::Finished && missing > 0).then(|| {
            let all = plural(self.runs.len() as u64, "run");
            format!("the record ends early: {state}, and lacks {missing} of {all}")
        })
    }

    /// Whether the file ends within a frame, as after a killed run.
    pub fn is_cut(&self) -> bool {
        self.log.is_cut()
    }

    /// The damage of the file; `None` if the file is whole or only truncated.
    pub fn damage(&self) -> Option<input_log::Error> {
        self.log.damage()
    }

    /// Replays the last attempt at a run.
    ///
    /// # Errors
    /// [`Error::NoRun`], [`Error::OtherExperiment`], [`Error::Plan`], [`Error::Run`].
    pub fn replay(&mut self, run: &str) -> Result<Replayed, Error> {
        let sections = self.sections(run)?;
        let path = self.path.clone();
        let header = sections[0].header.clone();
        let other = || Error::OtherExperiment {
            path,
            run: run.to_owned(),
            policy: header.policy.clone(),
            seed: header.seed,
        };
        if !self.runs.iter().any(|id| id == run) {
            return Err(other());
        }
        let experiment = self.plan(sections[0].experiment)?;
        let seed = header.seed;
        let of_run = |point: &Point| id_under(point, seed, &experiment.run) == run;
        let Some(point) = experiment.points.iter().position(of_run) else { return Err(other()) };
        let refused = |why: String| Error::Run { run: run.to_owned(), why };
        let world = World::build(&experiment.points[point], seed, &experiment.traces())
            .map_err(|error| refused(error.to_string()))?;
        let on_hosts = experiment.run.runtime == RuntimeKind::Hosts;
        let world = world.on_hosts(if on_hosts { header.shards } else { 1 });
        let recorded = self.recorded.iter().find(|(id, _)| id == run).map(|(_, summary)| summary);
        let (section, log) = (experiment.run.clone(), &mut self.log);
        // A bug that stopped the recorded run stops the replay as well.
        let mut replayed =
            catch_unwind(AssertUnwindSafe(|| replay(&world, &section, log, &sections, recorded)))
                .map_err(|panic| refused(panic_text(panic.as_ref())))?
                .map_err(|error| refused(error.to_string()))?;
        replayed.injections = self.injections.get(run).cloned().unwrap_or_default();
        for cut in &mut replayed.cuts {
            cut.host = of_shard(&self.hosts, run, cut.shard).map(str::to_owned);
        }
        Ok(replayed)
    }

    /// The sections of the last attempt at a run.
    fn sections(&self, run: &str) -> Result<Vec<LogSection>, Error> {
        let of_run = self.log.found().iter().filter(|found| found.header.run == run);
        let last = of_run.clone().map(|found| found.header.attempt).max();
        let sections: Vec<_> = of_run.filter(|found| Some(found.header.attempt) == last).cloned().collect();
        if sections.is_empty() {
            return Err(Error::NoRun { asked: run.to_owned(), there: self.runs().join(", ") });
        }
        Ok(sections)
    }

    fn plan(&mut self, index: usize) -> Result<Experiment, Error> {
        if let Some((planned, experiment)) = &self.planned
            && *planned == index
        {
            return Ok(experiment.clone());
        }
        let read = self.log.experiment::<Bundle>(index);
        let bundle = read.map_err(|source| Error::Log { path: self.path.clone(), source })?;
        let experiment = Experiment::from_bundle(&bundle).map_err(Error::Plan)?;
        self.planned = Some((index, experiment.clone()));
        Ok(experiment)
    }
}

/// Replays the sections of one attempt to run `world`.
///
/// # Errors
/// [`RunError::Refused`] if the log is damaged or belongs to another world, or if the world cannot be built.
///
/// # Panics
/// When a policy has a bug that also stopped the recorded run.
pub fn replay<R: Read + Seek>(
    world: &World,
    run: &RunSection,
    log: &mut InputLog<R>,
    sections: &[LogSection],
    recorded: Option<&Summary>,
) -> Result<Replayed, RunError> {
    let Some(LogSection { header, .. }) = sections.first() else {
        return Err(RunError::Refused("the log has no section of this run".to_owned()));
    };
    let logged = Logged {
        run: &header.run,
        config: RunConfig { until: run.until, recording: run.recording() },
        real_time: run.runtime != RuntimeKind::Virtual,
        shards: header.shards,
        recorded,
    };
    let log = RefCell::new(log);
    let entries = |section: &LogSection| {
        let (mut cursor, log) = (section.cursor(), &log);
        std::iter::from_fn(move || {
            log.borrow_mut().next(&mut cursor).map_err(|error| error.to_string()).transpose()
        })
    };
    let logs: Vec<_> = sections.iter().map(|section| (section.header.shard, entries(section))).collect();
    let mut digester = Digester::default();
    Ok(volary_engine::replay::replay(world, &logged, logs, |effects| digester.digest(effects))?)
}
