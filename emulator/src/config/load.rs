//! The load that a workload offers, and the key `load`, which asks for one.

use serde::Serialize;
use volary_actors::base::{JobId, Law, Span, Time};
use volary_actors::catalog::Catalog;
use volary_engine::cores::Cores;
use volary_engine::scenario::Resolved;
use volary_engine::workload::{Mix, Service, Share, Slo, Synthetic, Workload, WorkloadSpec};
use volary_netem::Windows;

use super::document::Document;
use super::error::ConfigError;
use super::explain;
use crate::number::{self, plural};
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
    /// Work per second that the cores can do under interference, in reference cores; an upper bound with
    /// [`CapacityBasis::Healthy`].
    pub capacity: f64,
    /// Share of a healthy core's work that remains under interference; 1 with [`CapacityBasis::Healthy`].
    pub throughput: f64,
    pub basis: CapacityBasis,
    /// Number of cores, evenly spaced, whose interference is counted; `None` if all are, or by laws.
    pub sampled: Option<u32>,
}

/// The interference that a capacity takes into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityBasis {
    /// None, or that of the long run, which follows from the laws of the process.
    LongRun,
    /// That of each core from the start of the run to the last arrival, under the seed of the experiment: traces and
    /// scripts have no long run, nor has interference within a window or under laws without a closed form.
    UntilLastArrival,
    /// None, because one core has more than a million stretches of it: the load is a lower bound.
    Healthy,
}

impl Load {
    /// The load in words: `ρ = 0.830`, with what the capacity is where it is not that of the long run.
    pub fn says(&self) -> String {
        let offered = self.offered;
        match self.basis {
            CapacityBasis::LongRun => format!("ρ = {offered:.3}"),
            CapacityBasis::UntilLastArrival => {
                let cores = self.sampled.map_or_else(
                    || "cores".to_owned(),
                    |sampled| format!("a sample of {}", plural(u64::from(sampled), "core")),
                );
                let left = number::percent(self.throughput);
                format!(
                    "ρ = {offered:.3} (until the last arrival interference leaves {cores} {left} of their work)"
                )
            }
            CapacityBasis::Healthy => {
                format!("ρ ≥ {offered:.3} (of healthy cores; interference leaves less)")
            }
        }
    }
}

/// The work that arrives.
#[derive(Clone, Copy)]
struct Demand {
    /// Work per second, in reference cores.
    rate: f64,
    /// Time of the last arrival, s; by laws its mean.
    last_s: f64,
}

/// The offered load of a cell, if it is known: from the laws of a synthetic workload or a mix, otherwise from the jobs
/// drawn under `seed`.
pub fn load(world: &Resolved, seed: u64, traces: &Traces) -> Option<Load> {
    let by_laws = match (&world.workload, &world.service) {
        (WorkloadSpec::Synthetic(jobs), Service { demand: Some(demand), .. }) => {
            mean_cpu(world).map(|cpu| synthetic(jobs, demand, cpu))
        }
        (WorkloadSpec::Mix(mix), _) => mean_cpu(world).map(|cpu| mixed(mix, cpu)),
        _ => None,
    };
    let demand = by_laws.unwrap_or_else(|| drawn(world, seed, traces))?;
    let (throughput, basis, sampled) = throughput(world, seed, demand.last_s);
    let capacity = world.cluster.capacity(seed) * throughput;
    let offered = demand.rate / capacity;
    offered.is_finite().then_some(Load { offered, capacity, throughput, basis, sampled })
}

/// Share of a healthy core's work that remains under interference, and [`Load::sampled`].
fn throughput(world: &Resolved, seed: u64, last_s: f64) -> (f64, CapacityBasis, Option<u32>) {
    let Some(profile) = &world.interference else { return (1.0, CapacityBasis::LongRun, None) };
    if let Some(throughput) = profile.throughput() {
        return (throughput, CapacityBasis::LongRun, None);
    }
    let table = world.cluster.cores(seed);
    let all = table.cores();
    let cores = Cores::new(Some(profile), table, Windows::default(), seed);
    match cores.effect(Time::ZERO + Span::from_secs_f64(last_s)) {
        Some((effect, counted)) => {
            let sampled = (counted < all).then_some(counted);
            (effect.throughput, CapacityBasis::UntilLastArrival, sampled)
        }
        None => (1.0, CapacityBasis::Healthy, None),
    }
}

/// Mean CPU of a task, in cores: 1 where nodes are not shared; `None` if it depends on the work of the task.
pub(super) fn mean_cpu(world: &Resolved) -> Option<f64> {
    let Some(largest) = world.cluster.site().largest else { return Some(1.0) };
    world.service.usage.as_ref().map_or(Some(1.0), |usage| usage.mean_cpu(largest))
}

/// The work of jobs whose tasks use `cpu` cores in the mean.
fn synthetic(jobs: &Synthetic, demand: &Law<Span>, cpu: f64) -> Option<Demand> {
    let gap = jobs.interarrival.mean() / jobs.speedup;
    arriving(jobs.jobs, gap, jobs.tasks.mean().max(1.0) * demand.mean() * cpu)
}

/// The work of a mix whose tasks use `cpu` cores in the mean.
fn mixed(mix: &Mix, cpu: f64) -> Option<Demand> {
    arriving(mix.jobs, mix.interarrival.mean() / mix.speedup, mix.mean_work() * cpu)
}

/// Jobs of `work` each, `gap` seconds apart; a single job has no rate.
fn arriving(jobs: u32, gap: f64, work: f64) -> Option<Demand> {
    (gap > 0.0 && jobs > 1).then(|| Demand { rate: work / gap, last_s: f64::from(jobs) * gap })
}

/// The work of the jobs of a run; a single job has no rate.
fn drawn(world: &Resolved, seed: u64, traces: &Traces) -> Option<Demand> {
    let jobs = Workload::build(&world.workload, &world.service, seed, world.cluster.site(), traces).ok()?;
    let last = jobs.job(JobId(jobs.jobs().checked_sub(1)?)).arrival;
    let first = jobs.job(JobId(0)).arrival;
    let span = last.since(first).as_secs_f64();
    let last_s = last.as_secs_f64();
    (span > 0.0 && jobs.total_tasks() <= MOST_TASKS)
        .then(|| Demand { rate: jobs.total_work() / span, last_s })
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
        refused("the load of these jobs is not known, or depends on when they arrive, as under traces, scripts and windows of interference; so arrivals cannot be scaled to it")
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
    if let Some(load) = load(world, seed, traces).filter(|load| load.offered > 0.0) {
        // Arrivals at another rate would meet other interference, unless it has a long run.
        let is_fixed = load.basis == CapacityBasis::LongRun;
        return Ok(Some(load.offered).filter(|_| is_fixed));
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
        refused("the load of these jobs is not known, or depends on when they arrive, as under traces, scripts and windows of interference; so it has no part".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Experiment, Overrides, describe};

    /// Two cores, and 99 s of arrivals of a core-second each: ρ = 1/2 of healthy cores.
    const TEXT: &str = r#"title = "t"
cluster.nodes = 2
workload.synthetic = { jobs = 100, tasks = 1, interarrival = "1s" }
service.demand = "1s"
[[policy]]
random = {}
[interference]
"#;

    #[test]
    fn capacity_under_many_short_bursts_is_that_of_a_sample_of_cores() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.toml");
        std::fs::write(dir.path().join("b.txt"), "0 0 0.0001 2\n0 0.0001 0.0002 1").unwrap();
        std::fs::write(&file, format!("{TEXT}trace = {{ file = \"b.txt\", repeat = true }}\n")).unwrap();
        let experiment = Experiment::load(&file, &Overrides::default()).unwrap();
        let found = load(&experiment.points[0].resolved, 1, &experiment.traces()).unwrap();
        assert!(found.sampled == Some(1) && (found.throughput - 0.75).abs() < 1e-9, "{found:?}");
        assert!(found.says().contains("interference leaves a sample of 1 core "), "{}", found.says());
    }

    #[test]
    fn capacity_follows_from_the_samples_of_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.toml");
        for (rows, keys, remains) in [
            ("0 0 100 2\n1 0 100 2", "", 0.5),
            ("0 0 100 2", "", 0.75), // the other core is healthy
            ("0 0 50 2", "", 0.875), // so are both afterwards
            ("0 0 10 2\n0 10 20 1", ", repeat = true", 0.875),
            ("0 1000 1050 2", ", offset = \"1000s\"", 0.875),
            ("9 0 100 2", "", 1.0), // no such core
        ] {
            std::fs::write(dir.path().join("b.txt"), rows).unwrap();
            let text = format!("{TEXT}trace = {{ file = \"b.txt\"{keys} }}\n");
            std::fs::write(&file, text).unwrap();
            let experiment = Experiment::load(&file, &Overrides::default()).unwrap();
            let found = load(&experiment.points[0].resolved, 1, &experiment.traces()).unwrap();
            assert!((found.throughput - remains).abs() < 1e-9, "{rows}: {found:?}");
            assert!((found.offered - 0.5 / remains).abs() < 1e-9, "{rows}: {found:?}");
            assert_eq!((found.basis, found.sampled), (CapacityBasis::UntilLastArrival, None));
            let plan = describe::text(&experiment, None);
            assert!(plan.contains(&format!("load          {}", found.says())), "{plan}");
            assert_eq!(describe::overload(&experiment).is_some(), remains <= 0.5, "{rows}");
        }
        let asked = Overrides { set: vec!["workload.synthetic.load=0.8".to_owned()], ..Overrides::default() };
        let error = Experiment::load(&file, &asked).unwrap_err().to_string();
        assert!(error.contains("workload.synthetic.load: the load of these jobs"), "{error}");
    }
}
