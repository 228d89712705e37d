//! What moves the clock, and many cells at once.

use std::path::PathBuf;

use crate::results::{ClaimResult, Summary};
use crate::spec::{Experiment, Shard};

/// What `volary run` asks for, beyond the experiment itself.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunOptions {
    /// The file that lists the machines of the `hosts` runtime.
    pub hosts: Option<PathBuf>,
    /// The run directory; absent: nothing is written.
    pub out: Option<PathBuf>,
    /// Run only what the run directory lacks.
    pub resume: bool,
    /// Cells run at once; absent: one per processor.
    pub threads: Option<usize>,
    /// Run only this share of the units.
    pub shard: Option<Shard>,
    /// Print one JSON line per unit on stdout as it finishes.
    pub json: bool,
    /// No progress bar and no table.
    pub quiet: bool,
}

/// What a run left behind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// One summary per finished unit, in order of units.
    pub summaries: Vec<Summary>,
    /// The experiment's claims with their verdicts.
    pub claims: Vec<ClaimResult>,
    /// Units that could not finish: what and why.
    pub failures: Vec<String>,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options ask for something this build cannot do.
    #[error("{0}")]
    Unsupported(String),
}

/// Runs every unit of `experiment`.
///
/// # Errors
/// When the run cannot begin; a unit that fails is in [`Outcome::failures`].
pub fn run(experiment: &Experiment, _options: &RunOptions) -> Result<Outcome, RunError> {
    Err(RunError::Unsupported(format!("no runtime is built in to run {}", experiment.name)))
}
