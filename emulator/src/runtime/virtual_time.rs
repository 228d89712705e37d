//! The execution of one run in virtual time, and its cost.

use std::time::Instant;

use volary_engine::results::Measured;
use volary_engine::shard::Observer;
use volary_engine::virtual_time::{Progress, measure_with};
use volary_engine::world::{EngineError, World};
use volary_experiment::config::RunSection;
use volary_experiment::control::RunError;
use volary_experiment::cost;

/// Runs one point under one seed, from the first arrival to the last completion.
///
/// # Errors
/// [`RunError::Interrupted`] when stopped, with what was measured; [`RunError::Refused`] for errors that appear only
/// under this seed.
///
/// # Panics
/// On a bug in a policy: a job that finishes twice, counters that do not add up.
pub fn measure(
    name: &str,
    world: &World,
    run: &RunSection,
    progress: &dyn Progress,
) -> Result<Measured, RunError> {
    // The engine compiles this function, with its loop and all that the loop calls, in one unit.
    with_cost(|| volary_engine::virtual_time::measure(name, world, &run.config(), progress))
}

/// As [`measure`], with an observer of every input of every actor.
///
/// # Errors
/// As [`measure`].
pub fn measure_observed(
    name: &str,
    world: &World,
    run: &RunSection,
    observer: impl Observer,
    progress: &dyn Progress,
) -> Result<Measured, RunError> {
    with_cost(|| measure_with(name, world, &run.config(), observer, progress))
}

/// Adds what a run has cost to its results.
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
