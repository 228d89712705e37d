//! Numbers of tasks that follow a distribution: checks and draws.

use volary_actors::base::{Address, DistributionSpec};

use super::error::WorkloadError;
use super::trace::MOST_TASKS;

/// Refuses a distribution whose bounds state that jobs have less than one task. Where only the tail of a distribution
/// is below one, samples are rounded and count as at least one.
pub(super) fn check_tasks(key: &str, distribution: &DistributionSpec<f64>) -> Result<(), WorkloadError> {
    let written: &[f64] = match distribution {
        DistributionSpec::Constant(tasks) => std::slice::from_ref(tasks),
        DistributionSpec::Empirical(observed) => &observed.values,
        DistributionSpec::Uniform(_)
        | DistributionSpec::Normal(_)
        | DistributionSpec::Lognormal(_)
        | DistributionSpec::Exponential(_)
        | DistributionSpec::Gamma(_)
        | DistributionSpec::Erlang(_)
        | DistributionSpec::Pareto(_)
        | DistributionSpec::Weibull(_)
        | DistributionSpec::Hyperexponential(_) => &[],
    };
    let error = |what: f64| {
        let why = format!("a job cannot have {what} tasks; write whole numbers of at least 1");
        Err(WorkloadError::config(key, why))
    };
    if let Some(&part) = written.iter().find(|tasks| tasks.fract() != 0.0) {
        return error(part);
    }
    match distribution.bounds().0.unwrap_or_else(|| distribution.mean()) {
        least if least < 1.0 => error(least),
        _ => Ok(()),
    }
}

/// Number of tasks of a drawn job.
///
/// # Errors
/// When there are more than a run can have; the text names the remedy.
pub(super) fn task_count(
    distribution: &DistributionSpec<f64>,
    job: u32,
    shape: Address,
) -> Result<u32, String> {
    let tasks = distribution.sample(&mut shape.at(u64::from(job)).draw()).round().max(1.0);
    if tasks > f64::from(MOST_TASKS) {
        return Err(format!(
            "job {job} drew {tasks:.0} tasks, more than {MOST_TASKS}; give the distribution a lighter tail"
        ));
    }
    Ok(tasks as u32)
}
