//! 3Sigma and Prio, compared with the theory of one machine and with the capacity of many.

use std::cell::Cell;
use std::collections::BTreeMap;

use volary_actors::base::{JobId, Time};
use volary_actors::catalog::Catalog;
use volary_engine::metrics::Recording;
use volary_engine::metrics::RunConfig;
use volary_engine::results::{CopyEnd, Measured};
use volary_engine::virtual_time::measure;
use volary_engine::workload::NoTraces;
use volary_engine::world::World;

use crate::common::{parse, run, with};

/// Eight jobs of 9.9 s that arrive at once at one node, with deadlines of their own; a cycle and a slot are 1 s.
const BATCH: &str = r#"
seed = 1
[cluster]
nodes = 1
schedulers = 1
[workload.synthetic]
jobs = 9
tasks = 1
interarrival = "0s"
pretrain = 1
slo = { share = 1.0, slack = { uniform = { low = 0.5, high = 8.5 } } }
[service]
demand = "9.9s"
[network]
one_way = "1ms"
[[policy]]
label = "perfect"
3sigma = { cycle = "1s", slot = "1s", slots = 100, estimates = "perfect" }
[[policy]]
label = "learnt"
3sigma = { cycle = "1s", slot = "1s", slots = 100 }
"#;

/// The run of each policy under a seed, and the deadlines of the jobs.
fn runs(text: &str, seed: u64) -> (Vec<Measured>, Vec<Time>) {
    let experiment = parse(&with(text, &[&format!("seed={seed}")]));
    let world = |point| World::build(point, experiment.seed, &NoTraces).unwrap();
    let worlds: Vec<_> = experiment.points.iter().map(world).collect();
    let jobs = worlds[0].workload();
    let deadlines = (0..jobs.jobs()).filter_map(|job| jobs.job(JobId(job)).deadline).collect();
    let config = RunConfig { until: None, recording: Recording { one_in: Some(1), ..Recording::default() } };
    (worlds.iter().map(|world| measure("three_sigma", world, &config, &()).unwrap()).collect(), deadlines)
}

/// Whether the deadlines can be met. Jobs that arrive at once on one machine can meet them if and only if the earliest
/// deadline first does (Jackson 1955). A job starts at each multiple of ten seconds, one second late.
fn can_be_met(deadlines: &[Time]) -> bool {
    let mut sorted: Vec<f64> = deadlines.iter().map(|deadline| deadline.as_secs_f64()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.iter().enumerate().all(|(before, deadline)| 1.0 + 10.0 * before as f64 + 9.903 <= *deadline)
}

/// All deadlines that can be met together are met, if run times are known, or constant and learnt from a past job.
#[test]
fn all_feasible_deadlines_are_met_with_known_run_times() {
    let mut feasible = 0;
    for seed in 0..24 {
        let (runs, deadlines) = runs(BATCH, seed);
        assert_eq!(deadlines.len(), 8);
        for run in runs {
            let missed = run.summary.deadlines.unwrap().missed;
            assert_eq!(missed == 0, can_be_met(&deadlines), "{}, seed {seed}", run.summary.policy);
        }
        feasible += u32::from(can_be_met(&deadlines));
    }
    assert!((3..22).contains(&feasible), "{feasible} of 24 batches can be met");
}

/// Gangs of up to a third of the cluster, SLO and best effort, on nodes of four kinds.
const GANGS: &str = r#"
seed = 1
[cluster]
nodes = 24
schedulers = 1
[workload.synthetic]
jobs = 150
tasks = { uniform = { low = 1, high = 8 } }
load = 1.2
interarrival = { exponential = { mean = "1s" } }
gang = true
slo = { share = 0.5, slack = [0.2, 0.8], preference = { kinds = 4, of = 3, slowdown = 1.5 } }
[service]
demand = { exponential = { mean = "20s" } }
[network]
one_way = "1ms"
[[policy]]
3sigma = { cycle = "1s", slot = "5s" }
[[policy]]
prio = { cycle = "1s" }
"#;

/// All tasks of an attempt begin together on idle cores, within the delay of their launch. Preempted work is lost and
/// counted.
#[test]
fn gangs_start_together_on_idle_cores() {
    for run in runs(GANGS, 5).0 {
        let label = &run.summary.policy;
        let mut launches: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
        for copy in &run.copies {
            launches.entry((copy.job, copy.attempt)).or_default().push(copy.start);
        }
        // Ends of cycles are a second apart.
        let first = run.copies.iter().map(|copy| copy.start).fold(f64::INFINITY, f64::min);
        let apart = |start: f64| (start - first - (start - first).round()).abs();
        for ((job, _), starts) in &launches {
            assert!(
                starts.iter().all(|start| *start == starts[0]),
                "{label}: job {job} starts at {starts:?}"
            );
            assert!(apart(starts[0]) < 1e-6, "{label}: job {job} waits until {}", starts[0]);
        }
        let preempted: Vec<_> =
            run.copies.iter().filter(|copy| copy.end_kind == CopyEnd::Preempted).collect();
        let lost: f64 = preempted.iter().map(|copy| copy.end - copy.start).sum();
        assert_eq!(run.summary.copies.preempted, preempted.len() as u64, "{label}");
        assert!(lost > 0.0, "{label} preempts nothing");
        assert!((run.summary.copies.wasted_work_s - lost).abs() < 1e-6 * lost, "{label}: {lost} is lost");
        assert!(run.summary.sections.planning.unwrap().preempted > 0, "{label}");
    }
}

thread_local! {
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

/// A clock that advances by a microsecond with each reading, so that each plan takes a microsecond.
fn clock() -> u64 {
    TICKS.set(TICKS.get() + 1_000);
    TICKS.get()
}

#[test]
fn the_timing_of_plans_changes_no_other_result() {
    let text = format!("{BATCH}[[policy]]\nrandom = {{}}\n");
    let experiment = parse(&text);
    let config = RunConfig { until: None, recording: Recording::default() };
    let costs = experiment.points.iter().map(|point| {
        let world = || World::build(point, experiment.seed, &NoTraces).unwrap();
        let run = |world: World| measure("three_sigma", &world, &config, &()).unwrap().summary;
        let (plain, timed) = (run(world()), run(world().with_clock(clock)));
        assert_eq!(plain.engine.order_hash, timed.engine.order_hash);
        assert_eq!(plain.engine.planning_cpu_s.unwrap_or(0.0), 0.0);
        assert!(
            timed
                .sections
                .planning
                .is_none_or(|plans| plans.cycles as f64 * 1e-6 >= timed.engine.planning_cpu_s.unwrap())
        );
        timed.engine.planning_cpu_s
    });
    let costs: Vec<_> = costs.collect();
    assert!(costs[..2].iter().all(|cost| cost.unwrap() > 0.0), "{costs:?}");
    assert_eq!(costs[2], None, "it does not plan");
}

/// Interference makes all jobs outlive their estimates, so that each gives way to several that seem shorter.
#[test]
fn jobs_that_outlive_their_estimates_do_not_preempt_each_other_for_ever() {
    let text = "seed = 4124295048\ncluster = { schedulers = 1, nodes = 7, cores = 2 }\n[workload.synthetic]\njobs = \
                80\ntasks = 7\ninterarrival = \"0s\"\nslo = { share = 0.5, slack = { uniform = { low = 0, high = 9 } \
                }, preference = { kinds = 6, of = 2, slowdown = 2.43 } }\n[service]\nhomogeneous = 0.5\ncorrelated = \
                true\ndemand = { uniform = { low = \"882ms\", high = \"2647ms\" } }\n[interference]\nmarkov = { slot = \
                \"381.6ms\", p_on = 0.09, p_off = 0.619, slowdown = { uniform = { low = 2.46, high = 16.84 } } \
                }\nscope = \"rack\"\n[[policy]]\n3sigma = { cycle = \"200ms\", slot = \"500ms\", slots = 8, estimates = \
                \"point\", samples = 5, over = \"never\" }\n";
    let measured = run(text);
    assert_eq!(measured.summary.jobs.unfinished, 0);
    assert!(measured.summary.sections.planning.unwrap().preempted > 100);
}
