//! The load that a workload offers, and the key `load`, which asks for one.

use volary_actors::base::{JobId, Law, Span};
use volary_actors::catalog::Catalog;
use volary_engine::scenario::Resolved;
use volary_engine::workload::{Mix, Service, Synthetic, Workload, WorkloadSpec};

use super::document::Document;
use super::error::ConfigError;
use crate::workload::Traces;

/// Limit on the tasks of a trace or generator up to which their work is summed.
const MOST_TASKS: u64 = 20_000_000;

/// The load that a workload offers to a cluster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// ρ = λ · E\[tasks\] · E\[work\] / capacity: the share of the cores' time that one copy of each task needs.
    /// Copies added by a policy are not included.
    pub offered: f64,
    /// Work per second that the cores can do under interference, in reference cores.
    pub capacity: f64,
    /// Share of a healthy core's work that remains under interference.
    pub throughput: f64,
}

/// The offered load of a cell, if it is known: from the laws of a synthetic workload or a mix, otherwise from the jobs
/// drawn under `seed`.
pub fn load(world: &Resolved, seed: u64, traces: &Traces) -> Option<Load> {
    let throughput = world.interference.as_ref().map_or(Some(1.0), |profile| profile.throughput())?;
    let capacity = world.cluster.capacity(seed) * throughput;
    let demand = match (&world.workload, &world.service) {
        (WorkloadSpec::Synthetic(jobs), Service { demand: Some(demand), .. }) => synthetic(jobs, demand),
        (WorkloadSpec::Mix(mix), _) => mixed(mix),
        _ => drawn(world, seed, traces),
    };
    let offered = demand? / capacity;
    offered.is_finite().then_some(Load { offered, capacity, throughput })
}

/// Work that arrives per second.
fn synthetic(jobs: &Synthetic, demand: &Law<Span>) -> Option<f64> {
    let gap = jobs.interarrival.mean();
    // A single job has no rate.
    (gap > 0.0 && jobs.jobs > 1).then(|| jobs.tasks.mean().max(1.0) * demand.mean() / gap * jobs.speedup)
}

/// Work that arrives per second; a single job has no rate.
fn mixed(mix: &Mix) -> Option<f64> {
    let gap = mix.interarrival.mean();
    (gap > 0.0 && mix.jobs > 1).then(|| mix.mean_work() / gap * mix.speedup)
}

/// Work that arrives per second, from the jobs of a run; a single job has no rate.
fn drawn(world: &Resolved, seed: u64, traces: &Traces) -> Option<f64> {
    let schedulers = world.cluster.schedulers;
    let jobs = Workload::build(&world.workload, &world.service, seed, schedulers, traces).ok()?;
    let last = jobs.job(JobId(jobs.jobs().checked_sub(1)?)).arrival;
    let first = jobs.job(JobId(0)).arrival;
    let span = last.since(first).as_secs_f64();
    (span > 0.0 && jobs.total_tasks() <= MOST_TASKS).then(|| jobs.total_work() / span)
}

/// Replaces the key `load` of the workload, if it has one, by the `speedup` at which that load is offered under `seed`.
///
/// # Errors
/// When the load is not positive, is stated beside `speedup`, or cannot be computed.
pub(super) fn scale_arrivals(
    document: &Document<'_>,
    world: &mut Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<(), ConfigError> {
    let section = world.workload.section();
    let (speedup, asked) = world.workload.pace();
    let Some(asked) = asked.take() else { return Ok(()) };
    let refused = |why: &str| {
        document.error_at(&["workload", section, "load"], format!("workload.{section}.load: {why}"))
    };
    if !(asked.is_finite() && asked > 0.0) {
        return Err(refused(&format!("must be a positive number, not {asked}")).help("write for example 0.8"));
    }
    if *speedup != 1.0 {
        return Err(refused("`speedup` states how fast jobs arrive as well").help("keep one of the two"));
    }
    let Some(Load { offered, .. }) = load(world, seed, traces).filter(|load| load.offered > 0.0) else {
        let why = "the load of these jobs on this cluster is not known, so arrivals cannot be scaled to it";
        return Err(refused(why).help("state the gaps by `interarrival`, or scale them by `speedup`"));
    };
    *world.workload.pace().0 = asked / offered;
    Ok(())
}
