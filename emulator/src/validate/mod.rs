//! `volary validate`: one experiment and one seed in several runtimes, and how far their answers diverge.
//!
//! | module | what it holds |
//! |---|---|
//! | [`against`] | one policy in one runtime against the reference |
//! | [`staleness`] | the same of caches |
//! | `found` | the reference with cores as a run found them |
//! | [`cause`] | what explains a divergence, as far as the certificate tells |
//! | [`text`] | tables for people |

pub mod against;
pub mod cause;
mod found;
pub mod staleness;
pub mod text;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use against::{Against, Divergence, Draws, Placement};

use crate::cluster::Fleet;
use crate::config::{ConfigError, Experiment, Repeat, RunSection, RuntimeKind};
use crate::record::cell::CellRecord;
use crate::results::Cell;
use crate::runtime::{self, Outcome, RunError, RunOptions, Watch};
use crate::stats::Interval;
use crate::storage::Study;
use crate::storage::manifest::RunState;

/// How far a quantile of response time may be from the reference, as a share of it.
pub const BAR: f64 = 0.05;
/// Repetitions from which on the spread of a runtime's own runs says something.
pub const ENOUGH: usize = 3;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How to run it; the first way that is possible is the reference.
    pub ways: Vec<Way>,
    /// Runs in each real-time runtime, all under the same seed.
    pub repeat: u32,
    /// A folder for the run directories, `<way>-<repetition>`.
    pub out: PathBuf,
    /// The machines of `hosts`.
    pub fleet: Fleet,
    /// As for `volary run`.
    pub threads: Option<usize>,
    /// The command line, for the manifests.
    pub argv: Vec<String>,
}

/// A way to run an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// In which runtime.
    pub runtime: RuntimeKind,
    /// Whether copies burn real cores; nothing for an experiment in which they never do.
    pub real: Option<bool>,
}

impl Way {
    /// The ways to run an experiment in these runtimes: where copies burn real cores, once timed and once burnt.
    #[must_use]
    pub fn all(experiment: &Experiment, runtimes: &[RuntimeKind]) -> Vec<Self> {
        let burns = |runtime| {
            let run = RunSection { runtime, ..experiment.run.clone() };
            run.burning().is_some()
        };
        let ways = runtimes.iter().flat_map(|&runtime| {
            let real: &[Option<bool>] = if burns(runtime) { &[Some(false), Some(true)] } else { &[None] };
            real.iter().map(move |&real| Self { runtime, real })
        });
        let mut all: Vec<Self> = Vec::new();
        ways.for_each(|way| all.extend((!all.contains(&way)).then_some(way)));
        all
    }

    /// What is to be set so that the experiment is run like this.
    #[must_use]
    pub fn set(&self) -> Option<&'static str> {
        (self.real == Some(false)).then_some("run.real.kernel=none")
    }

    /// Its name in folders.
    fn folder(&self) -> String {
        self.to_string().replace(' ', "-")
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.real {
            None => "",
            Some(false) => " timed",
            Some(true) => " burnt",
        };
        write!(f, "{}{how}", self.runtime)
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment is wrong.
    #[error(transparent)]
    Spec(#[from] ConfigError),
    /// A run could not begin, or what it left not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run broke off.
    #[error("the {way} run could not finish: {why}")]
    Broken {
        /// Which.
        way: Way,
        /// Why.
        why: String,
    },
    /// Fewer than two runtimes can run.
    #[error("nothing to compare: {0}name at least two with --runtimes")]
    Alone(String),
}

/// How the runtimes compare.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    /// The experiment's name.
    pub experiment: String,
    /// The seed.
    pub seed: u64,
    /// The runtime that the others are compared with.
    pub reference: String,
    /// Runtimes that could not run here.
    pub skipped: Vec<Skipped>,
    /// Every policy in every cell.
    pub points: Vec<Point>,
}

/// A runtime that could not run here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// Which.
    pub runtime: String,
    /// Why not.
    pub why: String,
}

/// A policy in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Its label.
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// Each other runtime.
    pub against: Vec<Against>,
}

impl Validation {
    /// Whether every runtime met the same world and closed the same books, and every run that calls itself
    /// faithful stays within the bar.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.points.iter().flat_map(|point| &point.against).all(Against::holds)
    }
}

/// All runs of one way.
struct Ran {
    way: Way,
    runs: Vec<(PathBuf, Study)>,
}

/// Runs the experiment in every way and compares; `load` reads it for one.
///
/// # Errors
/// See [`Error`].
pub fn validate(
    load: &dyn Fn(Way) -> Result<Experiment, ConfigError>,
    plan: &Plan,
    watch: &Watch,
) -> Result<Validation, Error> {
    let (mut possible, mut skipped) = (Vec::new(), Vec::new());
    for &way in &plan.ways {
        let mut experiment = load(way)?;
        experiment.repeat = Repeat::Times(1);
        match runtime::check(&experiment, &options(way, 1, plan)) {
            Ok(()) => possible.push((way, experiment)),
            Err(RunError::Unsupported(why)) => {
                tracing::warn!("{way} is left out: {why}");
                skipped.push(Skipped { runtime: way.to_string(), why });
            }
            Err(error) => return Err(error.into()),
        }
    }
    if possible.len() < 2 {
        let why = skipped.iter().map(|skipped| format!("{}: {}; ", skipped.runtime, skipped.why));
        return Err(Error::Alone(why.collect()));
    }
    let mut all = Vec::new();
    for (way, experiment) in possible {
        let runs = runs(&experiment, way, plan, watch)?;
        all.push((experiment, Ran { way, runs }));
    }
    let Some(((experiment, reference), others)) = all.split_first() else {
        return Err(Error::Alone(String::new()));
    };
    let others: Vec<&Ran> = others.iter().map(|(_, ran)| ran).collect();
    let points = experiment.points.iter().map(|point| Point {
        policy: point.label.clone(),
        cell: point.cell.clone(),
        against: Vec::new(),
    });
    let mut points: Vec<Point> = points.collect();
    for (number, point) in points.iter_mut().enumerate() {
        let as_found = |run: (&Path, &CellRecord)| match reference.way.runtime {
            RuntimeKind::Virtual => found::as_found(experiment, number, run, watch),
            RuntimeKind::Local | RuntimeKind::Hosts => Ok(None),
        };
        let against =
            others.iter().filter_map(|ran| against::against(point, reference, ran, &as_found).transpose());
        point.against = against.collect::<Result<_, _>>()?;
    }
    Ok(Validation {
        experiment: experiment.name.clone(),
        seed: experiment.seed,
        reference: reference.way.to_string(),
        skipped,
        points,
    })
}

/// Runs of one way: repeated where repetitions can differ.
fn runs(
    experiment: &Experiment,
    way: Way,
    plan: &Plan,
    watch: &Watch,
) -> Result<Vec<(PathBuf, Study)>, Error> {
    let times = if way.runtime == RuntimeKind::Virtual { 1 } else { plan.repeat.max(1) };
    let run = |repetition| {
        let options = options(way, repetition, plan);
        let outcome = runtime::run(experiment, &options, watch)?;
        finished(way, outcome).map(|study| (options.out, study))
    };
    (1..=times).map(run).collect()
}

fn options(way: Way, repetition: u32, plan: &Plan) -> RunOptions {
    RunOptions {
        out: plan.out.join(format!("{}-{repetition}", way.folder())),
        fleet: (way.runtime == RuntimeKind::Hosts).then(|| plan.fleet.clone()),
        threads: plan.threads,
        argv: plan.argv.clone(),
        ..RunOptions::default()
    }
}

fn finished(way: Way, outcome: Outcome) -> Result<Study, Error> {
    let why = match (outcome.state, outcome.failures.first()) {
        (RunState::Finished, None) => return Ok(outcome.study),
        (_, Some(failure)) => format!("{}: {}", failure.policy, failure.log),
        (_, None) => "interrupted".to_owned(),
    };
    Err(Error::Broken { way, why })
}

impl Ran {
    /// Its runs of a point, with their folders.
    fn of(&self, point: &Point) -> Vec<(&Path, &CellRecord)> {
        let is =
            |record: &&CellRecord| record.summary.policy == point.policy && record.summary.cell == point.cell;
        self.runs.iter().filter_map(|(folder, study)| Some((&**folder, study.records().find(is)?))).collect()
    }
}

/// Half-width of the 95 % interval in which one further run falls; nothing with too few runs.
fn spread(values: &[f64]) -> Option<f64> {
    let interval = Interval::new(values).filter(|interval| interval.replications >= ENOUGH)?;
    Some(interval.half_width? * (interval.replications as f64 + 1.0).sqrt())
}
