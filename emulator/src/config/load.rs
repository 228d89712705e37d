//! The load that a workload offers, and the key `load`, which asks for one.

use volary_actors::base::{JobId, Law, Span};
use volary_actors::catalog::Catalog;
use volary_engine::scenario::Resolved;
use volary_engine::workload::{Mix, Service, Share, Slo, Synthetic, Workload, WorkloadSpec};

use super::document::Document;
use super::error::ConfigError;
use super::explain;
use crate::workload::Traces;

/// Limit on the tasks of a trace or generator up to which their work is summed.
const MOST_TASKS: u64 = 20_000_000;

/// The load that a workload offers to a cluster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// ρ = λ · E\[tasks\] · E\[work\] / capacity: the share of the cores' time that one copy of each task needs. Where
    /// nodes are shared, work is CPU-time, and capacity the CPU of all nodes.
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
    let by_laws = match (&world.workload, &world.service) {
        (WorkloadSpec::Synthetic(jobs), Service { demand: Some(demand), .. }) => {
            mean_cpu(world).map(|cpu| synthetic(jobs, demand).map(|work| work * cpu))
        }
        (WorkloadSpec::Mix(mix), _) => mean_cpu(world).map(|cpu| mixed(mix).map(|work| work * cpu)),
        _ => None,
    };
    let demand = by_laws.unwrap_or_else(|| drawn(world, seed, traces));
    let offered = demand? / capacity;
    offered.is_finite().then_some(Load { offered, capacity, throughput })
}

/// Mean CPU of a task, in cores: 1 where nodes are not shared; `None` if it depends on the work of the task.
pub(super) fn mean_cpu(world: &Resolved) -> Option<f64> {
    let Some(largest) = world.cluster.site().largest else { return Some(1.0) };
    world.service.usage.as_ref().map_or(Some(1.0), |usage| usage.mean_cpu(largest))
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
    let jobs = Workload::build(&world.workload, &world.service, seed, world.cluster.site(), traces).ok()?;
    let last = jobs.job(JobId(jobs.jobs().checked_sub(1)?)).arrival;
    let first = jobs.job(JobId(0)).arrival;
    let span = last.since(first).as_secs_f64();
    (span > 0.0 && jobs.total_tasks() <= MOST_TASKS).then(|| jobs.total_work() / span)
}

/// Replaces the key `load` of the workload, if it has one, by the `speedup` at which that load is offered under `seed`,
/// and the load of its SLO jobs by the share of the work that this is.
///
/// # Errors
/// When a load is not positive, is stated beside another key that decides it, or cannot be computed.
pub(super) fn resolve_loads(
    document: &Document<'_>,
    world: &mut Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<(), ConfigError> {
    scale_arrivals(document, world, seed, traces)?;
    share_work(document, world, seed, traces)
}

fn scale_arrivals(
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
    let offered = known(document, world, seed, traces)?.ok_or_else(|| {
        refused("the load of these jobs on this cluster is not known, so arrivals cannot be scaled to it")
            .help("state the gaps by `interarrival`, or scale them by `speedup`")
    })?;
    *world.workload.pace().0 = asked / offered;
    Ok(())
}

/// The offered load, if it is known and positive.
///
/// # Errors
/// When the jobs cannot be drawn.
fn known(
    document: &Document<'_>,
    world: &Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<Option<f64>, ConfigError> {
    if let Some(load) = load(world, seed, traces) {
        return Ok(Some(load.offered).filter(|offered| *offered > 0.0));
    }
    // The reason may be that there are no such jobs.
    let built = Workload::build(&world.workload, &world.service, seed, world.cluster.site(), traces);
    built.map(|_| None).map_err(|error| explain::workload(document, &error))
}

/// Replaces `slo.load` by the share of the work that it is.
fn share_work(
    document: &Document<'_>,
    world: &mut Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<(), ConfigError> {
    let section = world.workload.section();
    // Stated beside another key, or not positive, it is refused where the jobs are drawn.
    let alone = |slo: &Slo| slo.load.filter(|load| *load > 0.0 && slo.share.is_none() && slo.work.is_none());
    let Some(asked) = world.workload.slo().and_then(alone) else { return Ok(()) };
    let refused = |why: String| {
        let key = format!("workload.{section}.slo.load");
        document.error_at(&["workload", section, "slo", "load"], format!("{key}: {why}"))
    };
    let offered = known(document, world, seed, traces)?.ok_or_else(|| {
        refused("the load of these jobs on this cluster is not known, so it has no part".to_owned())
            .help("write slo.share, the share of the jobs")
    })?;
    // A load that was scaled to what SLO jobs offer may differ from it by rounding.
    if asked > offered * (1.0 + 1e-9) {
        return Err(refused(format!("all jobs together offer {offered:.3}, and SLO jobs are some of them"))
            .help("lower it, or raise the load of the workload"));
    }
    if let Some(slo) = world.workload.slo_mut() {
        (slo.work, slo.load) = (Share::new((asked / offered).min(1.0)), None);
    }
    Ok(())
}
