//! The load that a workload offers, and the key `load`, which requests a load.

use serde::Serialize;
use volary_actors::base::{DistributionSpec, JobId, Span, Time};
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

/// Number of tasks of a trace or generator above which their work is not summed.
const MOST_TASKS: u64 = 20_000_000;

/// The load that a workload offers to a cluster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Offered load ρ = λ · E\[tasks\] · E\[work\] / capacity: the share of the cores' time that one copy of each task
    /// needs. On shared nodes, work is CPU-time, and capacity is the CPU of all nodes. Copies added by a policy are not
    /// included.
    pub offered: f64,
    /// Work per second that the cores can do under interference, in reference cores; an upper bound with
    /// [`CapacityBasis::Healthy`].
    pub capacity: f64,
    /// Share of a healthy core's work that remains under interference; 1 with [`CapacityBasis::Healthy`].
    pub throughput: f64,
    pub basis: CapacityBasis,
    /// Number of cores, evenly spaced, whose interference is counted; `None` if all cores are counted, or the
    /// interference has a long-run mean.
    pub sampled: Option<u32>,
}

/// The interference that a capacity takes into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityBasis {
    /// No interference, or interference with a long-run mean that follows from the distributions of the process.
    LongRun,
    /// Interference of each core from the start of the run to the last arrival, under the seed of the experiment. Used
    /// for traces, scripts, windows, and distributions without a closed form, which have no long-run mean.
    UntilLastArrival,
    /// No interference, because a core has more than a million stretches of interference; the load is a lower bound.
    Healthy,
}

impl Load {
    /// The load in words, `ρ = 0.830`, with the basis of the capacity unless it is [`CapacityBasis::LongRun`].
    pub fn says(&self) -> String {
        let offered = number::load(self.offered);
        match self.basis {
            CapacityBasis::LongRun => format!("ρ = {offered}"),
            CapacityBasis::UntilLastArrival => {
                let cores = self.sampled.map_or_else(
                    || "cores".to_owned(),
                    |sampled| format!("a sample of {}", plural(u64::from(sampled), "core")),
                );
                let left = number::percent(self.throughput);
                format!(
                    "ρ = {offered} (until the last arrival interference leaves {cores} {left} of their work)"
                )
            }
            CapacityBasis::Healthy => {
                format!("ρ ≥ {offered} (of healthy cores; interference leaves less)")
            }
        }
    }
}

/// The work that arrives.
#[derive(Clone, Copy)]
struct Demand {
    /// Work per second, in reference cores.
    rate: f64,
    /// Time of the last arrival, s; its mean if it follows from distributions.
    last_s: f64,
}

/// The offered load of a cell: from the distributions of a synthetic workload or a mix, or else from the jobs sampled
/// under `seed`. `None` if the load is unknown.
pub fn load(world: &Resolved, seed: u64, traces: &Traces) -> Option<Load> {
    let by_distributions = match (&world.workload, &world.service) {
        (WorkloadSpec::Synthetic(jobs), Service { demand: Some(demand), .. }) => {
            mean_cpu(world).map(|cpu| synthetic(jobs, demand, cpu))
        }
        (WorkloadSpec::Mix(mix), _) => mean_cpu(world).map(|cpu| mixed(mix, cpu)),
        _ => None,
    };
    let demand = by_distributions.unwrap_or_else(|| drawn(world, seed, traces))?;
    let (throughput, basis, sampled) = throughput(world, seed, demand.last_s);
    let capacity = world.cluster.capacity(seed) * throughput;
    let offered = demand.rate / capacity;
    offered.is_finite().then_some(Load { offered, capacity, throughput, basis, sampled })
}

/// Share of a healthy core's work that remains under interference, its basis, and the value of [`Load::sampled`].
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
fn synthetic(jobs: &Synthetic, demand: &DistributionSpec<Span>, cpu: f64) -> Option<Demand> {
    let gap = jobs.interarrival.mean() / jobs.speedup;
    arriving(jobs.jobs, gap, jobs.tasks.mean().max(1.0) * demand.mean() * cpu)
}

/// The work of a mix whose tasks use `cpu` cores in the mean.
fn mixed(mix: &Mix, cpu: f64) -> Option<Demand> {
    arriving(mix.jobs, mix.interarrival.mean() / mix.speedup, mix.mean_work() * cpu)
}

/// The demand of jobs of `work` each that arrive `gap` seconds apart; `None` for a single job, which has no rate.
fn arriving(jobs: u32, gap: f64, work: f64) -> Option<Demand> {
    (gap > 0.0 && jobs > 1).then(|| Demand { rate: work / gap, last_s: f64::from(jobs) * gap })
}

/// The work per second of the jobs that are sampled under `seed`. `None` if all jobs arrive at once, or have too many
/// tasks.
fn drawn(world: &Resolved, seed: u64, traces: &Traces) -> Option<Demand> {
    let jobs = Workload::build(&world.workload, &world.service, seed, world.cluster.site(), traces).ok()?;
    let last = jobs.job(JobId(jobs.jobs().checked_sub(1)?)).arrival;
    let first = jobs.job(JobId(0)).arrival;
    let span = last.since(first).as_secs_f64();
    let last_s = last.as_secs_f64();
    (span > 0.0 && jobs.total_tasks() <= MOST_TASKS)
        .then(|| Demand { rate: jobs.total_work() / span, last_s })
}

/// Factor on the pace of arrivals, up or down, above which a mistake in the units of a trace is more likely than
/// intent.
const MOST_CHANGE: f64 = 4.0;

/// Replaces the key `load` of the workload by the `speedup` that offers this load under `seed`, and the key `slo.load`
/// by the corresponding share of the work. Returns a warning if the arrivals of a trace change much.
///
/// # Errors
/// When a load is not positive, is stated beside another key that decides it, or cannot be computed.
pub(super) fn resolve_loads(
    document: &Document<'_>,
    world: &mut Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<Option<String>, ConfigError> {
    let warning = scale_arrivals(document, world, seed, traces)?;
    share_work(document, world, seed, traces)?;
    Ok(warning)
}

fn scale_arrivals(
    document: &Document<'_>,
    world: &mut Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<Option<String>, ConfigError> {
    let section = world.workload.section();
    let Some((speedup, asked)) = world.workload.pace() else { return Ok(None) };
    let Some(asked) = asked.take() else { return Ok(None) };
    let refused = |why: &str| {
        document.error_at(&["workload", section, "load"], format!("workload.{section}.load: {why}"))
    };
    if !(asked.is_finite() && asked > 0.0) {
        return Err(refused(&format!("must be a positive number, not {asked}")).help("write for example 0.8"));
    }
    if *speedup != 1.0 {
        return Err(refused("`speedup` also sets how fast jobs arrive").help("keep one of the two"));
    }
    let offered = known(document, world, seed, traces)?.map_err(|why| {
        refused(&format!("{why}, so arrivals cannot be scaled to a load"))
            .help("state the gaps by `interarrival`, or scale them by `speedup`")
    })?;
    let pace = asked / offered;
    if let Some((speedup, _)) = world.workload.pace() {
        *speedup = pace;
    }
    let is_far = !(1.0 / MOST_CHANGE..=MOST_CHANGE).contains(&pace);
    Ok((is_far && matches!(world.workload, WorkloadSpec::Trace(_))).then(|| {
        let (times, how) = if pace > 1.0 { (pace, "faster") } else { (1.0 / pace, "slower") };
        format!(
            "workload.{section}.load = {asked} lets the jobs of the trace arrive {} times {how}, because the trace itself offers \
             ρ = {} to this cluster; check the units of its times and the number of cores",
            number::short(times),
            number::load(offered)
        )
    }))
}

/// The offered load; or the reason why the load is unknown or not positive.
///
/// # Errors
/// When the jobs cannot be built.
fn known(
    document: &Document<'_>,
    world: &Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<Result<f64, &'static str>, ConfigError> {
    if let Some(load) = load(world, seed, traces).filter(|load| load.offered > 0.0) {
        return Ok(match load.basis {
            CapacityBasis::LongRun => Ok(load.offered),
            // Arrivals at another rate would meet other interference.
            CapacityBasis::UntilLastArrival | CapacityBasis::Healthy => Err(
                "the load of these jobs depends on their arrival times, since interference is a trace, script or window",
            ),
        });
    }
    let built = Workload::build(&world.workload, &world.service, seed, world.cluster.site(), traces);
    // The load may be unknown because the jobs cannot be built.
    let jobs = built.map_err(|error| explain::workload(document, &error))?;
    let arrival = |job| jobs.job(JobId(job)).arrival;
    let last = jobs.jobs().saturating_sub(1);
    Ok(Err(match jobs.jobs() {
        0 | 1 => "the load of these jobs is not known: a single job has no rate of arrivals",
        _ if arrival(0) == arrival(last) => {
            "the load of these jobs is not known: all of them arrive at one instant, which no speed changes"
        }
        _ if jobs.total_work() == 0.0 => "the load of these jobs is zero: they have no work",
        _ => {
            "the load of these jobs is not known: a distribution has no mean, or there are too many tasks to sum"
        }
    }))
}

/// Replaces `slo.load` by the share of the work that corresponds to it.
fn share_work(
    document: &Document<'_>,
    world: &mut Resolved,
    seed: u64,
    traces: &Traces,
) -> Result<(), ConfigError> {
    let section = world.workload.section();
    // A load beside another key, or a load that is not positive, is refused later, when the jobs are built.
    let alone = |slo: &Slo| slo.load.filter(|load| *load > 0.0 && slo.share.is_none() && slo.work.is_none());
    let Some(asked) = world.workload.slo().and_then(alone) else { return Ok(()) };
    let refused = |why: String| {
        let key = format!("workload.{section}.slo.load");
        document.error_at(&["workload", section, "slo", "load"], format!("{key}: {why}"))
    };
    let offered = known(document, world, seed, traces)?.map_err(|why| {
        refused(format!("{why}, so the share is not known")).help("write slo.share, the share of the jobs")
    })?;
    // If the total load was scaled to the same value, rounding may leave it slightly smaller.
    if asked > offered * (1.0 + 1e-9) {
        return Err(refused(format!(
            "all jobs together offer {}, so SLO jobs cannot offer more",
            number::load(offered)
        ))
        .help("lower slo.load, or raise the load of the workload"));
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

    /// An experiment with two cores, and one job of a core-second per second for 99 s: ρ = 1/2 on healthy cores.
    const TEXT: &str = r#"title = "t"
cluster.nodes = 2
workload.synthetic = { jobs = 100, tasks = 1, interarrival = "1s" }
service.demand = "1s"
[[policy]]
random = {}
[interference]
"#;

    #[test]
    fn capacity_under_many_short_bursts_is_estimated_from_a_sample_of_cores() {
        let bursts = ("b.txt", "0 0 0.0001 2\n0 0.0001 0.0002 1");
        let text = format!("{TEXT}trace = {{ file = \"b.txt\", repeat = true }}\n");
        let experiment = Experiment::plan_beside(bursts, &text, &Overrides::default()).unwrap();
        let found = load(&experiment.points[0].resolved, 1, &experiment.traces()).unwrap();
        assert!(found.sampled == Some(1) && (found.throughput - 0.75).abs() < 1e-9, "{found:?}");
        assert!(found.says().contains("interference leaves a sample of 1 core "), "{}", found.says());
    }

    #[test]
    fn an_interference_trace_determines_the_capacity() {
        for (rows, keys, remains) in [
            ("0 0 100 2\n1 0 100 2", "", 0.5),
            ("0 0 100 2", "", 0.75), // the other core is healthy
            ("0 0 50 2", "", 0.875), // after 50 s, both cores are healthy
            ("0 0 10 2\n0 10 20 1", ", repeat = true", 0.875),
            ("0 1000 1050 2", ", offset = \"1000s\"", 0.875),
            ("9 0 100 2", "", 1.0), // no such core
        ] {
            let text = format!("{TEXT}trace = {{ file = \"b.txt\"{keys} }}\n");
            let planned = Experiment::plan_beside(("b.txt", rows), &text, &Overrides::default());
            let experiment = planned.unwrap();
            let found = load(&experiment.points[0].resolved, 1, &experiment.traces()).unwrap();
            assert!((found.throughput - remains).abs() < 1e-9, "{rows}: {found:?}");
            assert!((found.offered - 0.5 / remains).abs() < 1e-9, "{rows}: {found:?}");
            assert_eq!((found.basis, found.sampled), (CapacityBasis::UntilLastArrival, None));
            let plan = describe::text(&experiment, None);
            assert!(plan.contains(&format!("load          {}", found.says())), "{plan}");
            assert_eq!(describe::overload(&experiment).is_some(), remains <= 0.5, "{rows}");
        }
        let asked = Overrides { set: vec!["workload.synthetic.load=0.8".to_owned()], ..Overrides::default() };
        let text = format!("{TEXT}trace.file = \"b.txt\"\n");
        let error = Experiment::plan_beside(("b.txt", "0 0 100 2"), &text, &asked).unwrap_err().to_string();
        assert!(error.contains("workload.synthetic.load: the load of these jobs"), "{error}");
    }

    /// The warnings about an experiment on a trace, or the error.
    fn warnings(trace: &str, load: f64) -> Result<Vec<String>, String> {
        let text = TEXT.replace("workload.synthetic = { jobs = 100, tasks = 1, interarrival = \"1s\" }", "");
        let text = text.replace("service.demand = \"1s\"", "").replace("[interference]\n", "");
        let text = format!("{text}[workload.trace]\nfile = \"a.tr\"\nload = {load}\n");
        let planned = Experiment::plan_beside(("a.tr", trace), &text, &Overrides::default());
        planned.map(|experiment| experiment.warnings).map_err(|error| error.to_string())
    }

    /// A column in minutes that is read as seconds changes the load of a cluster sixtyfold.
    #[test]
    fn a_load_that_changes_the_pace_of_a_trace_much_gives_a_warning() {
        // A core-second every ten seconds on two cores: ρ = 0.0505.
        let trace: String = (0..100).map(|k| format!("{} 1 1 1\n", 10 * k)).collect();
        for (load, words) in [
            (0.8, Some("workload.trace.load = 0.8 lets the jobs of the trace arrive 15.8 times faster")),
            (0.01, Some("arrive 5.05 times slower, because the trace itself offers ρ = 0.0505")),
            (0.15, None),
            (0.02, None),
        ] {
            let found = warnings(&trace, load).unwrap();
            let has =
                found.iter().any(|warning| warning.contains(words.unwrap_or("lets the jobs of the trace")));
            assert_eq!(has, words.is_some(), "{load}: {found:?}");
        }
    }

    #[test]
    fn an_unreachable_load_is_refused_with_the_reason() {
        for (trace, why) in [
            ("5 1 1 1\n5 1 1 1\n", "all of them arrive at one instant"),
            ("5 1 1 1\n", "a single job has no rate"),
            ("5 1 0 0\n6 1 0 0\n", "they have no work"),
        ] {
            let error = warnings(trace, 0.5).unwrap_err();
            assert!(error.contains(why), "{trace}: {error}");
        }
    }
}
