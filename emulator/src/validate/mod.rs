//! `volary validate`: one experiment and one seed in several runtimes, and how far their answers diverge.
//!
//! | module | what it holds |
//! |---|---|
//! | [`against`] | one policy in one runtime against the reference |
//! | [`staleness`] | the same of caches |
//! | [`cause`] | what explains a divergence, as far as the certificate tells |
//! | [`text`] | tables for people |

pub mod against;
pub mod cause;
pub mod staleness;
pub mod text;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use against::{Against, Divergence, Draws, Placement};

use crate::record::cell::CellRecord;
use crate::record::manifest::State;
use crate::report::Study;
use crate::results::Cell;
use crate::runtime::hosts::Fleet;
use crate::runtime::{self, Outcome, RunError, RunOptions, Watch};
use crate::spec::{Experiment, Repeat, RuntimeKind, SpecError};
use crate::stats::Interval;

/// How far a quantile of response time may be from the reference, as a share of it.
pub const BAR: f64 = 0.05;
/// Repetitions from which on the spread of a runtime's own runs says something.
pub const ENOUGH: usize = 3;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runtimes; the first that can run is the reference.
    pub runtimes: Vec<RuntimeKind>,
    /// Runs in each real-time runtime, all under the same seed.
    pub repeat: u32,
    /// A folder for the run directories, `<runtime>-<repetition>`.
    pub out: PathBuf,
    /// The machines of `hosts`.
    pub fleet: Fleet,
    /// As for `volary run`.
    pub threads: Option<usize>,
    /// The command line, for the manifests.
    pub argv: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A run could not begin, or what it left not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run broke off.
    #[error("the {runtime} run could not finish: {why}")]
    Broken {
        /// In which runtime.
        runtime: RuntimeKind,
        /// Why.
        why: String,
    },
    /// Fewer than two runtimes can run.
    #[error("nothing to compare: {0}; name at least two with --runtimes")]
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

/// All runs in one runtime.
struct Ran {
    runtime: RuntimeKind,
    runs: Vec<(PathBuf, Study)>,
}

/// Runs the experiment in every runtime and compares; `load` reads it for a runtime.
///
/// # Errors
/// See [`Error`].
pub fn validate(
    load: &dyn Fn(RuntimeKind) -> Result<Experiment, SpecError>,
    plan: &Plan,
    watch: &Watch,
) -> Result<Validation, Error> {
    let (mut all, mut skipped) = (Vec::new(), Vec::new());
    for &runtime in &plan.runtimes {
        let mut experiment = load(runtime)?;
        experiment.repeat = Repeat::Times(1);
        match runs(&experiment, runtime, plan, watch) {
            Ok(runs) => all.push((experiment, Ran { runtime, runs })),
            Err(Error::Run(RunError::Unsupported(why))) => {
                skipped.push(Skipped { runtime: runtime.to_string(), why });
            }
            Err(error) => return Err(error),
        }
    }
    let Some(((experiment, reference), others)) = all.split_first().filter(|(_, others)| !others.is_empty())
    else {
        let why = skipped.iter().map(|skipped| format!("{}: {}", skipped.runtime, skipped.why));
        return Err(Error::Alone(why.collect::<Vec<_>>().join("; ")));
    };
    let others: Vec<&Ran> = others.iter().map(|(_, ran)| ran).collect();
    let points = experiment.points.iter().map(|point| Point {
        policy: point.label.clone(),
        cell: point.cell.clone(),
        against: Vec::new(),
    });
    let mut points: Vec<Point> = points.collect();
    for point in &mut points {
        let against = others.iter().filter_map(|ran| against::against(point, reference, ran).transpose());
        point.against = against.collect::<Result<_, _>>().map_err(RunError::RunDir)?;
    }
    Ok(Validation {
        experiment: experiment.name.clone(),
        seed: experiment.seed,
        reference: reference.runtime.to_string(),
        skipped,
        points,
    })
}

/// Runs in one runtime: repeated where repetitions can differ.
fn runs(
    experiment: &Experiment,
    runtime: RuntimeKind,
    plan: &Plan,
    watch: &Watch,
) -> Result<Vec<(PathBuf, Study)>, Error> {
    let times = if runtime == RuntimeKind::Virtual { 1 } else { plan.repeat.max(1) };
    let run = |repetition| {
        let out = plan.out.join(format!("{runtime}-{repetition}"));
        let options = RunOptions {
            out: out.clone(),
            fleet: (runtime == RuntimeKind::Hosts).then(|| plan.fleet.clone()),
            threads: plan.threads,
            argv: plan.argv.clone(),
            ..RunOptions::default()
        };
        let outcome = runtime::run(experiment, &options, watch)?;
        finished(runtime, outcome).map(|study| (out, study))
    };
    (1..=times).map(run).collect()
}

fn finished(runtime: RuntimeKind, outcome: Outcome) -> Result<Study, Error> {
    let why = match (outcome.state, outcome.failures.first()) {
        (State::Finished, None) => return Ok(outcome.study),
        (_, Some(failure)) => format!("{}: {}", failure.policy, failure.log),
        (_, None) => "interrupted".to_owned(),
    };
    Err(Error::Broken { runtime, why })
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
