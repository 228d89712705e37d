//! The variants of an experiment by runtime and by whether copies burn cores, and their runs.

use std::fmt;

use volary_engine::results::Cell;
use volary_experiment::config::{ConfigError, Experiment, RunSection, RuntimeKind};
use volary_experiment::storage::Study;
use volary_experiment::storage::run_record::RunRecord;

use crate::runtime::StudyError;

/// A variant of an experiment: a runtime, and whether copies burn its cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunVariant {
    pub runtime: RuntimeKind,
    /// Whether copies burn real cores; `None` if the experiment has no copies that burn cores.
    pub real: Option<bool>,
}

impl RunVariant {
    /// The variants of an experiment in the runtimes `runtimes`. If copies burn real cores, each real-time runtime has
    /// a variant with timed copies and a variant with copies that burn.
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

    /// The override that turns an experiment into this variant; `None` if the experiment needs no change.
    pub fn set(&self) -> Option<&'static str> {
        (self.real == Some(false)).then_some("run.real.kernel=none")
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

/// The reason why a validation has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment is invalid.
    #[error(transparent)]
    Spec(#[from] ConfigError),
    /// A run could not start, or its results could not be read.
    #[error(transparent)]
    Run(#[from] StudyError),
    /// A run stopped early.
    #[error("the {variant} run could not finish: {why}")]
    Broken { variant: RunVariant, why: String },
    /// Fewer than two runtimes can run.
    #[error("nothing to compare: {0}name at least two with --runtimes")]
    Alone(String),
}

/// All runs of one variant.
pub(super) struct VariantRuns {
    pub(super) variant: RunVariant,
    pub(super) runs: Vec<Study>,
}

impl VariantRuns {
    /// The runs of a policy in a cell.
    pub(super) fn of(&self, policy: &str, cell: &Cell) -> Vec<&RunRecord> {
        let is = |record: &&RunRecord| record.summary.policy == policy && record.summary.cell == *cell;
        self.runs.iter().filter_map(|study| study.records().find(is)).collect()
    }
}
