//! The execution of one experiment and seed in several runtimes, and the comparison of their results.

use volary_experiment::config::{ConfigError, Experiment, Repeat, RuntimeKind};
use volary_experiment::control::StudyControl;
use volary_experiment::storage::Study;
use volary_experiment::storage::manifest::RunState;
use volary_experiment::storage::run_record::RunRecord;
use volary_experiment::storage::study::measured_window;

use super::against::against;
use super::cores_as_found::as_found;
use super::validation::{SkippedRuntime, ValidatedPoint, Validation};
use super::variant::{Error, RunVariant, VariantRuns};
use crate::runtime::{self, Outcome, RunOptions, StudyError};

/// The options of a validation.
#[derive(Clone, Debug)]
pub struct ValidateOptions {
    /// The variants to run. The first variant that can run is the reference.
    pub variants: Vec<RunVariant>,
    /// Number of runs in each real-time runtime, all under the same seed.
    pub repeat: u32,
    /// The options of every run. `out` is the folder of the study directories, which are named
    /// `<variant>-<repetition>`; only the runtime `hosts` uses `fleet`.
    pub run: RunOptions,
}

/// Runs the experiment in every variant and compares the results; `load` reads the experiment for one variant.
///
/// # Errors
/// See [`Error`].
pub fn validate(
    load: &dyn Fn(RunVariant) -> Result<Experiment, ConfigError>,
    options: &ValidateOptions,
    control: &StudyControl,
) -> Result<Validation, Error> {
    let (mut possible, mut skipped) = (Vec::new(), Vec::new());
    for &variant in &options.variants {
        let mut experiment = load(variant)?;
        experiment.repeat = Repeat::Times(1);
        match runtime::check(&experiment, &run_options(variant, 1, options)) {
            Ok(()) => possible.push((variant, experiment)),
            Err(StudyError::Unsupported(why)) => {
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
        let runs = runs(&experiment, variant, options, control)?;
        all.push((experiment, VariantRuns { variant, runs }));
    }
    let Some(((experiment, reference), others)) = all.split_first() else {
        return Err(Error::Alone(String::new()));
    };
    let others: Vec<&VariantRuns> = others.iter().map(|(_, runs)| runs).collect();
    let points = experiment.points.iter().map(|point| ValidatedPoint {
        policy: point.label.clone(),
        cell: point.cell.clone(),
        window: reference.of(&point.label, &point.cell).first().and_then(|run| measured_window(&run.summary)),
        against: Vec::new(),
    });
    let mut points: Vec<ValidatedPoint> = points.collect();
    for (number, point) in points.iter_mut().enumerate() {
        let rerun = |run: &RunRecord| match reference.variant.runtime {
            RuntimeKind::Virtual => as_found(experiment, number, run, control),
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

/// The runs of one variant; repeated only if repetitions can differ.
fn runs(
    experiment: &Experiment,
    variant: RunVariant,
    options: &ValidateOptions,
    control: &StudyControl,
) -> Result<Vec<Study>, Error> {
    let times = if variant.runtime == RuntimeKind::Virtual { 1 } else { options.repeat.max(1) };
    let run = |repetition| {
        let options = run_options(variant, repetition, options);
        let outcome = runtime::run(experiment, &options, control)?;
        finished(variant, outcome)
    };
    (1..=times).map(run).collect()
}

fn run_options(variant: RunVariant, repetition: u32, options: &ValidateOptions) -> RunOptions {
    let out = options.run.out.join(format!("{variant}-{repetition}").replace(' ', "-"));
    let fleet = options.run.fleet.clone().filter(|_| variant.runtime == RuntimeKind::Hosts);
    RunOptions { out, fleet, ..options.run.clone() }
}

fn finished(variant: RunVariant, outcome: Outcome) -> Result<Study, Error> {
    let why = match (outcome.state, outcome.failures.first()) {
        (RunState::Finished, None) => return Ok(outcome.study),
        (_, Some(failure)) => format!("{}: {}", failure.policy, failure.log),
        (_, None) => "interrupted".to_owned(),
    };
    Err(Error::Broken { variant, why })
}
