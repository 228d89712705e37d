//! Numbers of tasks that follow a law: checks and draws.

use volary_actors::base::{Address, Law};

use super::error::WorkloadError;
use super::trace::MOST_TASKS;

/// Refuses a law whose bounds state that jobs have less than one task. Where only the tail of a law is below one,
/// samples are rounded and count as at least one.
pub(super) fn check_tasks(key: &str, law: &Law<f64>) -> Result<(), WorkloadError> {
    let written: &[f64] = match law {
        Law::Constant(tasks) => std::slice::from_ref(tasks),
        Law::Empirical(observed) => &observed.values,
        Law::Uniform(_)
        | Law::Normal(_)
        | Law::Lognormal(_)
        | Law::Exponential(_)
        | Law::Gamma(_)
        | Law::Erlang(_)
        | Law::Pareto(_)
        | Law::Weibull(_)
        | Law::Hyperexponential(_) => &[],
    };
    let error = |what: f64| {
        let why = format!("a job cannot have {what} tasks; write whole numbers of at least 1");
        Err(WorkloadError::config(key, why))
    };
    if let Some(&part) = written.iter().find(|tasks| tasks.fract() != 0.0) {
        return error(part);
    }
    match law.bounds().0.unwrap_or_else(|| law.mean()) {
        least if least < 1.0 => error(least),
        _ => Ok(()),
    }
}

/// Number of tasks of a drawn job.
///
/// # Errors
/// When there are more than a run can have; the text names the remedy.
pub(super) fn task_count(law: &Law<f64>, job: u32, shape: Address) -> Result<u32, String> {
    let tasks = law.sample(&mut shape.at(u64::from(job)).draw()).round().max(1.0);
    if tasks > f64::from(MOST_TASKS) {
        return Err(format!(
            "job {job} drew {tasks:.0} tasks, more than {MOST_TASKS}; give the law a lighter tail"
        ));
    }
    Ok(tasks as u32)
}
