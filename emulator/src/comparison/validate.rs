//! The execution of one experiment and seed in several runtimes, and the comparison of their results.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::against::{Against, against};
use super::cores_as_found::as_found;
use crate::cluster::Fleet;
use crate::config::{ConfigError, Experiment, Repeat, RunSection, RuntimeKind};
use crate::runtime::{self, Outcome, RunError, RunOptions, Watch};
use crate::storage::Study;
use crate::storage::cell::CellRecord;
use crate::storage::manifest::RunState;
use volary_engine::results::Cell;

/// The options of a validation.
#[derive(Clone, Debug)]
pub struct ValidateOptions {
    /// The variants to run; the first possible one is the reference.
    pub variants: Vec<RunVariant>,
    /// Runs in each real-time runtime, all under the same seed.
    pub repeat: u32,
    /// The folder of the run directories, `<variant>-<repetition>`.
    pub out: PathBuf,
    /// The hosts of the runtime `hosts`.
    pub fleet: Fleet,
    /// Threads of a run, as in `volary run`.
    pub threads: Option<usize>,
    /// The command line, for the manifests.
    pub argv: Vec<String>,
}

/// A runtime, and how copies use its cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunVariant {
    pub runtime: RuntimeKind,
    /// Whether copies burn real cores; `None` for an experiment in which they never do.
    pub real: Option<bool>,
}

impl RunVariant {
    /// The variants of an experiment in these runtimes. If copies burn real cores, each runs once with timed copies
    /// and once with burning ones.
    #[must_use]
    pub fn all(experiment: &Experiment, runtimes: &[RuntimeKind]) -> Vec<Self> {
        let burns = |runtime| {
            let run = RunSection { runtime, ..experiment.run.clone() };
            run.burning().is_some()
        };
        let variants = runtimes.iter().flat_map(|&runtime| {
            let real: &[Option<bool>] = if burns(runtime) { &[Some(false), Some(true)] } else { &[None] };
            real.iter().map(move |&real| Self { runtime, real })
        });
        let mut all: Vec<Self> = Vec::new();
        variants.for_each(|variant| all.extend((!all.contains(&variant)).then_some(variant)));
        all
    }

    /// The override that turns an experiment into this variant.
    #[must_use]
    pub fn set(&self) -> Option<&'static str> {
        (self.real == Some(false)).then_some("run.real.kernel=none")
    }

    /// Its name in folders.
    fn folder(&self) -> String {
        self.to_string().replace(' ', "-")
    }
}

impl fmt::Display for RunVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.real {
            None => "",
            Some(false) => " timed",
            Some(true) => " burnt",
        };
        write!(f, "{}{how}", self.runtime)
    }
}

/// Why a validation has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment is invalid.
    #[error(transparent)]
    Spec(#[from] ConfigError),
    /// A run could not start, or its results could not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run broke off.
    #[error("the {variant} run could not finish: {why}")]
    Broken { variant: RunVariant, why: String },
    /// Fewer than two runtimes can run.
    #[error("nothing to compare: {0}name at least two with --runtimes")]
    Alone(String),
}

/// The result of a validation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    pub experiment: String,
    pub seed: u64,
    /// The runtime that the others are compared with.
    pub reference: String,
    /// Runtimes that could not run here.
    pub skipped: Vec<SkippedRuntime>,
    /// Every policy in every cell.
    pub points: Vec<ValidatedPoint>,
}

/// A runtime that could not run here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SkippedRuntime {
    pub runtime: String,
    pub why: String,
}

/// A policy in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValidatedPoint {
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// One entry for each other runtime.
    pub against: Vec<Against>,
}

impl Validation {
    /// Whether every runtime had the same jobs and equal final counts, and every run that is not degraded stays within
    /// the bar.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.points.iter().flat_map(|point| &point.against).all(Against::holds)
    }
}

/// All runs of one variant.
pub(super) struct VariantRuns {
    pub(super) variant: RunVariant,
    pub(super) runs: Vec<(PathBuf, Study)>,
}

/// Runs the experiment in every variant and compares the results; `load` reads the experiment for one variant.
///
/// # Errors
/// See [`Error`].
pub fn validate(
    load: &dyn Fn(RunVariant) -> Result<Experiment, ConfigError>,
    options: &ValidateOptions,
    watch: &Watch,
) -> Result<Validation, Error> {
    let (mut possible, mut skipped) = (Vec::new(), Vec::new());
    for &variant in &options.variants {
        let mut experiment = load(variant)?;
        experiment.repeat = Repeat::Times(1);
        match runtime::check(&experiment, &run_options(variant, 1, options)) {
            Ok(()) => possible.push((variant, experiment)),
            Err(RunError::Unsupported(why)) => {
                tracing::warn!("{variant} is left out: {why}");
                skipped.push(SkippedRuntime { runtime: variant.to_string(), why });
            }
            Err(error) => return Err(error.into()),
        }
    }
    if possible.len() < 2 {
        let why = skipped.iter().map(|skipped| format!("{}: {}; ", skipped.runtime, skipped.why));
        return Err(Error::Alone(why.collect()));
    }
    let mut all = Vec::new();
    for (variant, experiment) in possible {
        let runs = runs(&experiment, variant, options, watch)?;
        all.push((experiment, VariantRuns { variant, runs }));
    }
    let Some(((experiment, reference), others)) = all.split_first() else {
        return Err(Error::Alone(String::new()));
    };
    let others: Vec<&VariantRuns> = others.iter().map(|(_, runs)| runs).collect();
    let points = experiment.points.iter().map(|point| ValidatedPoint {
        policy: point.label.clone(),
        cell: point.cell.clone(),
        against: Vec::new(),
    });
    let mut points: Vec<ValidatedPoint> = points.collect();
    for (number, point) in points.iter_mut().enumerate() {
        let rerun = |run: (&Path, &CellRecord)| match reference.variant.runtime {
            RuntimeKind::Virtual => as_found(experiment, number, run, watch),
            RuntimeKind::Local | RuntimeKind::Hosts => Ok(None),
        };
        let compared = others.iter().filter_map(|runs| against(point, reference, runs, &rerun).transpose());
        point.against = compared.collect::<Result<_, _>>()?;
    }
    Ok(Validation {
        experiment: experiment.name.clone(),
        seed: experiment.seed,
        reference: reference.variant.to_string(),
        skipped,
        points,
    })
}

/// Runs of one variant: repeated if repetitions can differ.
fn runs(
    experiment: &Experiment,
    variant: RunVariant,
    options: &ValidateOptions,
    watch: &Watch,
) -> Result<Vec<(PathBuf, Study)>, Error> {
    let times = if variant.runtime == RuntimeKind::Virtual { 1 } else { options.repeat.max(1) };
    let run = |repetition| {
        let options = run_options(variant, repetition, options);
        let outcome = runtime::run(experiment, &options, watch)?;
        finished(variant, outcome).map(|study| (options.out, study))
    };
    (1..=times).map(run).collect()
}

fn run_options(variant: RunVariant, repetition: u32, options: &ValidateOptions) -> RunOptions {
    RunOptions {
        out: options.out.join(format!("{}-{repetition}", variant.folder())),
        fleet: (variant.runtime == RuntimeKind::Hosts).then(|| options.fleet.clone()),
        threads: options.threads,
        argv: options.argv.clone(),
        ..RunOptions::default()
    }
}

fn finished(variant: RunVariant, outcome: Outcome) -> Result<Study, Error> {
    let why = match (outcome.state, outcome.failures.first()) {
        (RunState::Finished, None) => return Ok(outcome.study),
        (_, Some(failure)) => format!("{}: {}", failure.policy, failure.log),
        (_, None) => "interrupted".to_owned(),
    };
    Err(Error::Broken { variant, why })
}

impl VariantRuns {
    /// Its runs of a point, with their folders.
    pub(super) fn of(&self, point: &ValidatedPoint) -> Vec<(&Path, &CellRecord)> {
        let is =
            |record: &&CellRecord| record.summary.policy == point.policy && record.summary.cell == point.cell;
        self.runs.iter().filter_map(|(folder, study)| Some((&**folder, study.records().find(is)?))).collect()
    }
}
