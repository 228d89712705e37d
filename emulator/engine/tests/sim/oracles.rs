//! Every policy compared with theory or its paper. Sampling errors set the tolerances.

use volary_engine::results::Measured;

use crate::common::{one_task, poisson, run, with};

/// Compares the mean of a metric with the expected value. A tolerance of zero means to the nanosecond.
fn check(what: &str, run: &Measured, metric: &str, expected: f64, tolerance: f64, source: &str) {
    let json = serde_json::to_value(&run.summary).unwrap();
    let value = json[metric]["mean"].as_f64().expect("a number");
    let allowed = if tolerance == 0.0 { 1e-9 } else { tolerance * expected };
    eprintln!("{what:60} {value:10.6} expected {expected:10.6} ± {allowed:.6} ({source})");
    assert!(
        (value - expected).abs() <= allowed,
        "{what}: {value} instead of {expected} ± {allowed} ({source})"
    );
}

/// Policy; nodes, jobs, tasks of a job, and seconds between jobs; demand where it is not exponential; the metric whose
/// mean is compared, the expected value, the relative tolerance; and the source.
const QUEUES: &str = r#"
random = {} | 10 200000 1 0.2 | | response_s 2.0 0.02 | M/M/1 at load 0.5
random = {} | 10 200000 1 0.2 | | wait_s 1.0 0.03 | M/M/1 at load 0.5
random = {} | 10 100000 1 0.2 | 1s | slowdown 1.5 0.02 | M/D/1: 1 + ρ / (2 (1 − ρ))
random = {} | 10 400000 1 0.14285714285714285 | | response_s 3.33333 0.03 | M/M/1 at load 0.7
central-queue = {} | 2 400000 1 0.625 | | response_s 2.77778 0.04 | M/M/2 at load 0.8, Erlang C
central-queue = {} | 10 400000 1 0.1111111111111111 | | response_s 1.66873 0.04 | M/M/10 at load 0.9, Erlang C
pigeon = { group = 10 } | 10 400000 1 0.1111111111111111 | | response_s 1.66873 0.04 | one group: M/M/10 at load 0.9, Erlang C
kubernetes = { retry = "tail", attempt = "1ms" } | 10 100000 1 0.2 | | response_s 1.0082 0.02 | M/M/10, and a millisecond
yaq-c = {} | 2 300000 1 0.625 | 1s | response_s 1.8976 0.04 | M/D/2: the least wait is where it is free first
kairos = { pass = "eager", queue = 1000000, quantum = "100ms", guard = "none" } | 1 150000 1 2.0 | | response_s 2.0 0.02 | M/M/1 at load 0.5, whatever the quantum
kairos = { pass = "eager", queue = 1000000, quantum = "1s", guard = "none" } | 1 300000 1 2.0 | | response_s 2.0 0.02 | the same
kairos = { pass = "eager", queue = 1000000, quantum = "10s" } | 1 300000 1 2.0 | | response_s 2.0 0.02 | the same
kairos = { pass = "eager", queue = 1000000, quantum = "500ms", attained = "work" } | 1 150000 1 2.0 | | response_s 2.0 0.02 | the same
murmuration = { order = "las", quantum = "500ms" } | 1 150000 1 2.0 | | response_s 2.0 0.02 | the same
hopper = {} | 1 150000 1 2.0 | | response_s 2.0 0.02 | M/M/1 at load 0.5: jobs of equal size in the order of arrival
round-robin = {} | 2 200000 2 2.0 | | response_s 2.875 0.02 | fork-join (12 − λ) / (8 (1 − λ)) at λ = 0.5
"#;

/// The two- and three-server systems of the latin-square paper's section V, and their relatives.
const SMALL: &str = r#"
latin-square = { order = 2 } | 2 200000 2 10.0 | | response_s 1.083333 0.01 | Pollaczek–Khinchine, λ = 0.1
latin-square = { order = 2 } | 2 300000 2 2.0 | | response_s 1.75 0.01 | Pollaczek–Khinchine, λ = 0.5
latin-square = { order = 3 } | 3 300000 3 2.0 | | response_s 1.666667 0.01 | Gamma(n,n): 1 + λ (1 + 1/n) / (2 (1 − λ))
full-repetition = { order = 2, preempt = "task" } | 2 300000 2 2.0 | | response_s 1.75 0.01 | each task is a min of two: Gamma(2,2)
full-repetition = { order = 2 } | 2 100000 2 1000.0 | | response_s 1.25 0.01 | min of two Gamma(2,1): ∫ e^(−2t) (1 + t)² dt
gang = { quantum = "20ms" } | 2 60000 2 3.333333333 | | response_s 2.727273 0.03 | the paper's formula, corrected: 1.5 / (1 − 1.5 λ), λ = 0.3
sparrow = { form = "per-task" } | 500 200000 1 0.004 | | response_s 1.2657 0.02 | power of two choices, mean field: Σ ρ^(2^i − 2)
"#;

/// Systems whose tasks never wait for each other.
const COPIES: &str = r#"
dolly = { straggler = 0.2, budget = 1.0, load = 1.0 } | 10 100000 1 100.0 | | response_s 0.5 0.02 | min of two; ln 0.05 / ln 0.2 = 1.9
hedged = { quantile = 0.5 } | 10 100000 1 100.0 | | response_s 0.75 0.02 | half end before ln 2, the rest in half the time
"#;

fn check_all(oracles: &str) {
    for oracle in oracles.trim().lines() {
        let [policy, load, demand, expected, source] = columns(oracle, " |");
        let [nodes, jobs, tasks, gap] = columns(load, " ");
        let number = |text: &str| text.parse().unwrap();
        let text = poisson(number(nodes), number(jobs), number(tasks), gap.parse().unwrap(), policy);
        let set = format!("service.demand={demand}");
        let run = run(&if demand.is_empty() { text } else { with(&text, &[&set]) });
        let [metric, expected, tolerance] = columns(expected, " ");
        check(policy, &run, metric, expected.parse().unwrap(), tolerance.parse().unwrap(), source);
    }
}

fn columns<'a, const N: usize>(row: &'a str, by: &str) -> [&'a str; N] {
    let columns: Vec<_> = row.split(by).map(str::trim).collect();
    columns.try_into().unwrap_or_else(|_| panic!("not {N} columns: {row}"))
}

#[test]
fn mean_times_of_queues_equal_closed_forms() {
    check_all(QUEUES);
}

#[test]
fn mean_times_of_small_systems_equal_closed_forms() {
    check_all(SMALL);
    check_all(COPIES);
}

/// Service models of the latin-square paper (Table IV) for tasks that never wait for each other.
#[test]
fn response_times_at_light_load_equal_closed_forms() {
    let harmonic: f64 = (1..=100).map(|i| 1.0 / f64::from(i)).sum();
    let source = "100 tasks at light load";
    for (policy, correlated, homogeneous, expected, tolerance) in [
        ("round-robin = {}", true, true, 1.0, 0.06),
        ("round-robin = {}", true, false, harmonic, 0.02),
        ("sparrow = {}", false, true, harmonic, 0.02),
        ("latin-square = {}", false, true, max_of_gammas(50), 0.02),
    ] {
        let run = light(correlated, homogeneous, policy);
        check(policy, &run, "response_s", expected, tolerance, source);
    }
}

/// Runs jobs of 100 tasks that never wait for other jobs, without a network.
fn light(correlated: bool, homogeneous: bool, policy: &str) -> Measured {
    let (correlated, homogeneous) =
        (format!("service.correlated={correlated}"), format!("service.homogeneous={homogeneous}"));
    run(&with(&poisson(2000, 2000, 100, 1000.0, policy), &[&correlated, &homogeneous]))
}

/// E[max of n Gamma(2,2)], by the trapezoid rule on 1 − F(t)ⁿ.
fn max_of_gammas(n: i32) -> f64 {
    let step = 1e-4;
    let tail = |t: f64| 1.0 - (1.0 - (-2.0 * t).exp() * (1.0 + 2.0 * t)).powi(n);
    (0..200_000).map(|i| step * f64::midpoint(tail(f64::from(i) * step), tail(f64::from(i + 1) * step))).sum()
}

/// One-way delays that a task waits for from its job's arrival to the report of its end, on an idle cluster.
pub(crate) const HOPS: &[(&str, u32, &str)] = &[
    ("random = {}", 2, "launch, completed"),
    ("round-robin = {}", 2, "launch, completed"),
    ("central-queue = {}", 2, "launch, completed"),
    ("latin-square = { order = 2 }", 2, "row, completed"),
    ("full-repetition = { order = 2 }", 2, "row, completed"),
    ("gang = {}", 2, "switch, completed"),
    ("sparrow = {}", 4, "reserve, claim, grant, completed"),
    ("sparrow = { form = \"pairs\" }", 4, "reserve, claim, grant, completed"),
    ("sparrow = { form = \"per-task\" }", 4, "sample, length, launch, completed"),
    ("peacock = { form = \"threshold\" }", 4, "visit, claim, grant, completed"),
    ("peacock = {}", 4, "visit, claim, grant, completed"),
    ("murmuration = {}", 2, "row, completed"),
    ("murmuration = { order = \"las\" }", 2, "row, completed"),
    ("hawk = {}", 4, "reserve, claim, grant, completed"),
    ("eagle = {}", 4, "probe, claim, grant, completed"),
    ("pigeon = {}", 3, "tasks, run, completed"),
    ("kubernetes = { attempt = \"0s\" }", 2, "row, completed"),
    ("yaq-d = {}", 2, "row, completed"),
    ("yaq-c = {}", 2, "row, completed"),
    ("kairos = { pass = \"eager\" }", 2, "task, completed"),
    ("las-sparrow = {}", 4, "reserve, claim, grant, completed"),
    ("3sigma = { cycle = \"10ms\" }", 3, "end of the cycle, row, completed"),
    ("prio = { cycle = \"10ms\" }", 3, "end of the cycle, row, completed"),
    ("distsched = { cycle = \"10ms\" }", 3, "end of the cycle, row, completed"),
    ("naive = {}", 2, "row, completed"),
    ("late = {}", 2, "row, completed"),
    ("hadoop2 = {}", 2, "row, completed"),
    ("mantri = {}", 2, "row, completed"),
    ("dolly = {}", 2, "row, completed"),
    ("hedged = {}", 2, "row, completed"),
    ("hopper = {}", 4, "reserve, offer, grant, completed"),
];

/// Without queueing and random draws the response time is exactly hops × 10 ms + 1 s.
#[test]
fn a_lone_task_takes_its_work_and_its_hops() {
    for (policy, hops, source) in HOPS {
        let run = run(&one_task(8, 1, policy, ""));
        check(policy, &run, "response_s", 1.0 + 0.01 * f64::from(*hops), 0.0, source);
    }
    let thirty = with(&one_task(10, 1, "murmuration = {}", ""), &["workload.synthetic.tasks=30"]);
    let source = "three of thirty tasks on every node, as the least work is chosen each time";
    check("murmuration", &run(&thirty), "response_s", 3.02, 0.0, source);
}

/// The job arrives when the first of eight nodes sends a heartbeat. Each node sends one heartbeat a second.
#[test]
fn a_lone_task_waits_for_a_heartbeat() {
    for policy in ["yarn-fifo = {}", "big-c = {}"] {
        check(
            policy,
            &run(&one_task(8, 1, policy, "")),
            "response_s",
            1.03,
            0.0,
            "heartbeat, task, completed",
        );
    }
}

/// The job arrives after a second: in the middle of a cycle of two seconds, or early in a cycle of fifteen seconds.
#[test]
fn a_lone_task_waits_for_the_end_of_a_cycle() {
    for (policy, expected) in [("3sigma = {}", 2.02), ("prio = {}", 2.02), ("distsched = {}", 15.02)] {
        let run = run(&one_task(1, 1, policy, ""));
        check(policy, &run, "response_s", expected, 0.0, "end of the cycle, row, completed");
    }
}

/// Four equal tasks of 100 s run on four of five cores, one on a core of a tenth of the speed. The backup of this
/// straggler takes 100 s, and a message takes 10 ms.
#[test]
fn each_policy_backs_up_a_straggler_at_the_expected_time() {
    let slow = [
        "workload.synthetic.tasks=4",
        "service.demand=100s",
        "interference.scripted={slot=\"1h\", rows=[[1]], slowdown=10}",
    ];
    for (policy, expected, source) in [
        ("central-queue = {}", 1000.02, "not at all"),
        ("naive = {}", 160.02, "after 60 s: 0.06 done, the mean is 0.465"),
        (
            "naive = { scale = 0.1 }",
            130.02,
            "after 30 s: then it is known to be a fifth of its work behind the mean",
        ),
        ("late = {}", 202.02, "when the others have ended: a node that has done nothing yet counts as slow"),
        ("late = { slow_node = 0.0 }", 160.02, "after 60 s: a tenth of the others' rate"),
        ("hopper = { slow_node = 0.0 }", 163.04, "at the look after 60 s; reserve, offer, grant, completed"),
        (
            "hopper = { slow_node = 0.0, beta = 2.0 }",
            163.06,
            "the job has its size of four, so that it refuses the fifth core, which is then offered again",
        ),
        ("hadoop2 = {}", 201.02, "at the look after the others have ended, at 100.02 s"),
        ("mantri = {}", 210.02, "at the look after the others have ended, one every 10 s"),
    ] {
        check(policy, &run(&with(&one_task(5, 1, policy, ""), &slow)), "response_s", expected, 0.0, source);
    }
}

/// The redundancy of the latin square (v = 2) adds no work under uncorrelated exponential service and under correlated
/// homogeneous service. It adds half as much again under correlated heterogeneous service.
#[test]
fn latin_square_redundancy_inflates_only_correlated_heterogeneous_work() {
    for (correlated, homogeneous, factor) in [(false, true, 1.0), (true, true, 1.0), (true, false, 1.5)] {
        let busy = |policy: &str| {
            let summary = light(correlated, homogeneous, policy).summary;
            summary.utilization * summary.makespan_s * 2000.0
        };
        let ratio = busy("latin-square = { order = 2 }") / busy("random = {}");
        assert!((ratio - factor).abs() < 0.03, "correlated {correlated}, homogeneous {homogeneous}: {ratio}");
    }
}

/// Little's law for the snapshots of Yaq-d. Two schedulers place a task a second between them, messages take D = 1 s,
/// and heartbeats come every H = 0.1 s, also from idle nodes, because datagrams could be lost. A scheduler lacks the
/// end of a task for D + H / 2. It lacks a placement of the other scheduler for D more, while the task is on its way.
/// It lacks its own placement for 2 D, from the heartbeat that replaces it to the heartbeat that contains it.
#[test]
fn heartbeats_do_not_contain_tasks_under_way() {
    let measured = run(
        "seed = 1\n[cluster]\nschedulers = 2\nnodes = 4\n[workload.synthetic]\njobs = 30000\ntasks = 1\n\
         interarrival = { exponential = { mean = \"1s\" } }\n[service]\ndemand = \"1s\"\n[network]\none_way = \"1s\"\n\
         loss = 1e-12\n[[policy]]\nyaq-d = { heartbeat = \"100ms\" }\n",
    );
    let in_flight = measured.summary.sections.staleness.unwrap().in_flight.mean;
    let expected = 1.05 + 2.05 / 2.0 + 2.0 / 2.0;
    assert!((in_flight / expected - 1.0).abs() < 0.04, "{in_flight} updates, not {expected}");
}
