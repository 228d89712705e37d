//! Limits on numbers that their types cannot express, and on combinations of them.

use volary_actors::base::Span;

use super::document::Document;
use super::error::ConfigError;
use super::file::File;
use super::repeat::Repeat;
use volary_engine::scenario::Resolved;
use volary_engine::workload::WorkloadSpec;

/// The range of emulated time, s.
const EVER: f64 = u64::MAX as f64 * 1e-9;

/// Work drawn from laws must fit into the range of emulated time.
pub(super) fn check_lasting(
    document: &Document<'_>,
    world: &Resolved,
    jobs: u32,
    seed: u64,
) -> Result<(), ConfigError> {
    let (WorkloadSpec::Synthetic(spec), Some(demand)) = (&world.workload, &world.service.demand) else {
        return Ok(());
    };
    let work = f64::from(jobs) * spec.tasks.mean().max(1.0) * demand.mean();
    let lasts = work / world.cluster.capacity(seed);
    // A law without a finite mean cannot be checked by its mean.
    if !lasts.is_finite() || lasts < EVER / 2.0 {
        return Ok(());
    }
    Err(document
        .error_at(
            &["service", "demand"],
            "the cores would need more than the 292 years that are safe to emulate",
        )
        .help("lower the work, the jobs or the tasks, or add cores"))
}

/// More runs than this are treated as a typing error.
const MOST_RUNS: u64 = 1_000_000;

/// Checks the total number of runs.
pub(super) fn check_runs(document: &Document<'_>, points: usize, repeat: Repeat) -> Result<(), ConfigError> {
    let runs = points as u64 * u64::from(repeat.times().unwrap_or(1));
    if runs <= MOST_RUNS {
        return Ok(());
    }
    Err(document
        .error_at(&["repeat"], format!("{runs} runs are more than {MOST_RUNS}"))
        .help("lower `repeat` (or --repeat), shorten the sweep, or split the experiment"))
}

/// Checks numbers whose range their type cannot express.
pub(super) fn check_numbers(document: &Document<'_>, file: &File) -> Result<(), ConfigError> {
    if !(file.precision > 0.0 && file.precision < 1.0) {
        return Err(document
            .error_at(
                &["precision"],
                format!("`precision` must lie between 0 and 1, not be {}", file.precision),
            )
            .help("write 0.05 for a half-width of 5 %"));
    }
    if file.repeat == Repeat::Times(0) {
        return Err(document.error_at(&["repeat"], "nothing is to be run").help("write repeat = 1 or more"));
    }
    if file.run.until == Some(Span::ZERO) {
        let error = document.error_at(&["run", "until"], "`run.until`: the run would end before it begins");
        return Err(error.help("write for example \"60s\", or leave it out to run to the end"));
    }
    Ok(())
}
