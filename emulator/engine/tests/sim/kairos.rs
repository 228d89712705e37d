//! Kairos and its rivals: exact schedules of small worlds, processor sharing, and invariants of every instant.

use std::collections::BTreeMap;

use volary_engine::results::{CopyEnd, CopyRow, Measured};

use crate::common::{poisson, run, run_all, with};

/// Runs two jobs on one core, each of one task of 5 s. They arrive at 1 and 2 s.
fn two_jobs(policy: &str, preemption: &str) -> Measured {
    run(&format!(
        r#"
        seed = 1
        [cluster]
        nodes = 1
        [workload.synthetic]
        jobs = 2
        tasks = 1
        interarrival = "1s"
        [service]
        demand = "5s"
        preemption = "{preemption}"
        [[policy]]
        {policy}
        "#
    ))
}

fn responses(measured: &Measured) -> Vec<f64> {
    measured.jobs.iter().map(|job| job.response).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-8
}

/// The core swaps at 4, 6 and 8 s; the first job ends at 10 s, in the instant its quantum ends, the second at 11.
#[test]
fn two_jobs_swap_the_core_after_each_quantum() {
    let measured = two_jobs(r#"kairos = { pass = "eager", quantum = "2s" }"#, "0s");
    let long = |row: &&CopyRow| row.end > row.start;
    let stretches: Vec<_> =
        measured.copies.iter().filter(long).map(|row| (row.job, row.start, row.end)).collect();
    let expected =
        [(0, 1.0, 2.0), (1, 2.0, 4.0), (0, 4.0, 6.0), (1, 6.0, 8.0), (0, 8.0, 10.0), (1, 10.0, 11.0)];
    assert_eq!(stretches, expected);
    assert_eq!(responses(&measured), [9.0, 9.0]);
    let copies = measured.summary.copies;
    assert_eq!((copies.started, copies.finished, copies.suspensions), (2, 2, 4));
    assert!(near(copies.suspended_s, 8.0) && copies.wasted_work_s == 0.0, "{copies:?}");
}

/// It takes a quarter of a second to put a suspended copy away. That time is busy time, and no work is lost.
#[test]
fn suspensions_cost_busy_time_and_lose_no_work() {
    let measured = two_jobs(r#"kairos = { pass = "eager", quantum = "2s" }"#, "250ms");
    let copies = measured.summary.copies;
    assert_eq!((copies.suspensions, copies.finished), (5, 2));
    assert!(near(copies.busy_s, 10.0 + 5.0 * 0.25), "{copies:?}");
    let responses = responses(&measured);
    assert!(near(responses[0], 11.25) && near(responses[1], 9.75), "{responses:?}");
}

/// The mean response of M/G/1 under least attained service (the foreground-background queue) with rate `rate`, where
/// `tail` is 1 − F: ∫ f(x) T(x) dx with T(x) = (x + λ ∫₀ˣ t (1 − F) dt / (1 − ρₓ)) / (1 − ρₓ), ρₓ = λ ∫₀ˣ (1 − F) dt.
fn foreground_background(rate: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let step = 1e-3;
    let (mut load, mut moment, mut mean) = (0.0, 0.0, 0.0);
    for i in 0..200_000 {
        let (from, to) = (f64::from(i) * step, f64::from(i + 1) * step);
        let (middle, here) = (f64::midpoint(from, to), tail(f64::midpoint(from, to)));
        load += rate * here * step;
        moment += rate * middle * here * step;
        mean += (tail(from) - tail(to)) * (to + moment / (1.0 - load)) / (1.0 - load);
    }
    mean
}

/// Eight jobs in nine take 0.5 s on average and the others 5 s: the mean is 1 s and the load 0.5. With a short quantum
/// the mean response is that of the foreground-background queue, below the 2 s of processor sharing.
#[test]
fn short_quanta_give_the_response_of_the_foreground_background_queue() {
    let tail = |x: f64| (8.0 * (-x / 0.5).exp() + (-x / 5.0).exp()) / 9.0;
    let expected = foreground_background(0.5, tail);
    assert!((foreground_background(0.5, |x| (-x).exp()) - 2.0).abs() < 5e-3, "M/M/1, whatever the order");
    let text = poisson(
        1,
        150_000,
        1,
        2.0,
        r#"kairos = { pass = "eager", queue = 1000000, quantum = "50ms", guard = "none" }"#,
    );
    let demand = r#"service.demand={ hyperexponential = { means = ["500ms", "5s"], weights = [8, 1] } }"#;
    let mean = run(&with(&text, &[demand])).summary.times.response_s.mean;
    eprintln!("{mean} s, foreground-background {expected} s, processor sharing 2 s");
    assert!((mean - expected).abs() < 0.03 * expected, "{mean} s instead of {expected} s");
    assert!(mean < 1.9, "{mean} s");
}

/// Without places for suspended copies Kairos has one queue for all cores: jobs take as long as under `central-queue`.
#[test]
fn kairos_without_node_queues_equals_the_central_queue() {
    let text =
        poisson(5, 2000, 4, 0.9, "central-queue = {}\n[[policy]]\nkairos = { pass = \"eager\", queue = 0 }");
    let text =
        with(&text, &["cluster.cores=2", "network.one_way=5ms", "workload.synthetic.interarrival=500ms"]);
    let [central, kairos] = &run_all(&text)[..] else { panic!("two policies") };
    assert_eq!(responses(central), responses(kairos));
    assert_eq!(kairos.summary.copies.suspensions, 0);
}

/// Copies by node, or tasks that have not begun, as steps up and down in time.
struct Steps(BTreeMap<(u64, i32), i64>);

impl Steps {
    /// Adds an interval. At one instant ends are counted before beginnings.
    fn interval(&mut self, from: f64, to: f64) {
        for (at, step) in [(from, 1), (to, -1)] {
            *self.0.entry(((at * 1e9).round() as u64, step)).or_default() += i64::from(step);
        }
    }

    fn most(&self) -> i64 {
        let sums = self.0.values().scan(0, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        sums.max().unwrap_or_default()
    }
}

/// First start and last end of every copy, with its core.
fn lives(rows: &[CopyRow]) -> BTreeMap<(u32, u32), (f64, f64, u32)> {
    let mut lives = BTreeMap::new();
    for row in rows {
        let life = lives.entry((row.job, row.task)).or_insert((row.start, row.end, row.core));
        (life.0, life.1) = (life.0.min(row.start), life.1.max(row.end));
    }
    lives
}

/// Three nodes of two cores take five copies each (Q = 3), without delays. No core is idle while a task that has not
/// begun waits, and no node exceeds its limit.
#[test]
fn the_centre_keeps_cores_busy_and_nodes_within_their_limit() {
    let policy = r#"kairos = { pass = "eager", queue = 3, quantum = "300ms", guard = "none" }"#;
    let text = with(&poisson(3, 2000, 4, 0.75, policy), &["cluster.cores=2"]);
    let measured = run(&text);
    let (mut waiting, mut nodes) = (Steps(BTreeMap::new()), BTreeMap::new());
    for ((job, _), (start, end, core)) in lives(&measured.copies) {
        waiting.interval(measured.jobs[job as usize].arrival, start);
        nodes.entry(core / 2).or_insert_with(|| Steps(BTreeMap::new())).interval(start, end);
    }
    assert_eq!(nodes.values().map(Steps::most).collect::<Vec<_>>(), [5, 5, 5]);
    assert!(waiting.most() > 10, "there must be something to wait for");
    let mut idle = waiting;
    // While a task waits, all six cores must be busy.
    let mut busy = Steps(BTreeMap::new());
    measured.copies.iter().for_each(|row| busy.interval(row.start, row.end));
    let mut times: Vec<u64> = idle.0.keys().chain(busy.0.keys()).map(|(at, _)| *at).collect();
    times.dedup();
    times.sort_unstable();
    times.dedup();
    let take = |steps: &mut Steps, until: u64| -> i64 {
        let later = steps.0.split_off(&(until + 1, i32::MIN));
        std::mem::replace(&mut steps.0, later).values().sum()
    };
    let (mut tasks, mut cores) = (0, 0);
    for at in times {
        tasks += take(&mut idle, at);
        cores += take(&mut busy, at);
        assert!(tasks == 0 || cores == 6, "{tasks} tasks wait at {at} ns, {cores} cores are busy");
    }
}

/// Runs jobs of four tasks under a load that suspends some tasks a dozen times.
fn preempted(preemption: &str) -> Measured {
    let policy = r#"kairos = { pass = "eager", queue = 6, quantum = "200ms" }"#;
    let demand = r#"service.demand={ hyperexponential = { means = ["500ms", "5s"], weights = [8, 1] } }"#;
    let rest =
        ["service.homogeneous=true", "service.correlated=true", &format!("service.preemption={preemption}")];
    run(&with(&poisson(3, 1000, 4, 1.5, policy), &[&[demand][..], &rest].concat()))
}

/// The stretches of a copy sum up to its work, which is the same for all tasks of a job.
#[test]
fn suspensions_conserve_work() {
    let measured = preempted("0s");
    let mut served: BTreeMap<(u32, u32), (f64, u32)> = BTreeMap::new();
    for row in &measured.copies {
        let (work, stretches) = served.entry((row.job, row.task)).or_default();
        *work += row.end - row.start;
        *stretches += 1;
    }
    assert_eq!(served.len(), 4000);
    for ((job, task), (work, stretches)) in &served {
        let expected = measured.jobs[*job as usize].longest;
        assert!(
            (work - expected).abs() < 1e-6,
            "task {task} of {job}: {work} s of {expected} s in {stretches}"
        );
    }
    assert!(served.values().any(|(_, stretches)| *stretches > 12));
    assert_eq!(measured.summary.copies.wasted_work_s, 0.0);
}

/// Cores are busy for the work of all copies and 20 ms for each suspension, the time to put a copy away. A suspension
/// costs less if the next copy is suspended before the 20 ms are over.
#[test]
fn each_suspension_costs_its_time_once() {
    let measured = preempted("20ms");
    let copies = measured.summary.copies;
    let work: f64 = measured.jobs.iter().map(|job| 4.0 * job.longest).sum();
    let price = (copies.busy_s - work) / f64::from(copies.suspensions as u32);
    assert!(copies.suspensions > 1000 && price > 0.018 && price < 0.02 + 1e-6, "{price} s, {copies:?}");
}

/// A core stays idle for at most one heartbeat while a task waits.
#[test]
fn a_core_is_idle_for_a_heartbeat_at_most() {
    let text = with(&poisson(4, 1000, 6, 1.3, "yarn-fifo = {}"), &["cluster.cores=2"]);
    let measured = run(&text);
    let mut rows = measured.copies.clone();
    rows.sort_by(|a, b| a.core.cmp(&b.core).then(a.start.total_cmp(&b.start)));
    let mut longest: f64 = 0.0;
    for pair in rows.windows(2).filter(|pair| pair[0].core == pair[1].core) {
        let arrival = measured.jobs[pair[1].job as usize].arrival;
        longest = longest.max(pair[1].start - pair[0].end.max(arrival));
    }
    assert!(longest > 0.9 && longest <= 1.0 + 1e-9, "{longest} s");
    assert_eq!(measured.summary.copies.suspensions, 0);
}

/// Long jobs fill the cluster. For short jobs Big-C suspends some tasks of long jobs without loss of work, or kills
/// them.
#[test]
fn big_c_makes_room_for_short_jobs() {
    let policies = r#"
        yarn-fifo = {}
        [[policy]]
        big-c = {}
        [[policy]]
        label = "kill"
        big-c = { kill = true }
    "#;
    let text = with(
        &poisson(10, 400, 8, 16.0, policies),
        &[
            r#"service.demand={ hyperexponential = { means = ["4s", "100s"], weights = [9, 1] } }"#,
            "service.correlated=true",
            "workload.synthetic.cutoff=30s",
        ],
    );
    let [fifo, suspend, kill] = &run_all(&text)[..] else { panic!("three policies") };
    let short = |run: &Measured| run.summary.classes["short"].times.response_s.p90;
    eprintln!("{} {} {}", short(fifo), short(suspend), short(kill));
    assert!(short(suspend) < 0.8 * short(fifo), "{} against {} s", short(suspend), short(fifo));
    let (suspended, killed) = (suspend.summary.copies, kill.summary.copies);
    assert!(suspended.suspensions > 0 && suspended.suspended_s > 0.0 && suspended.wasted_work_s == 0.0);
    assert!(killed.suspensions == 0 && killed.preempted > 0 && killed.wasted_work_s > 0.0);
    assert!(suspend.copies.iter().any(|row| row.end_kind == CopyEnd::Suspended));
}

/// Bursts of eight tasks meet three nodes of two cores and are dealt out every second. A new task starts when it is
/// dealt, so the first starts on a node within a second belong to one round.
#[test]
fn a_node_is_dealt_one_task_in_a_round() {
    let most = |pass: &str| {
        let policy =
            format!(r#"kairos = {{ pass = "{pass}", quantum = "300ms", queue = 6, guard = "none" }}"#);
        let measured = run(&with(&poisson(3, 400, 8, 2.0, &policy), &["cluster.cores=2"]));
        let mut dealt: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        for (start, _, core) in lives(&measured.copies).into_values() {
            *dealt.entry((core / 2, (start + 1e-6) as u64)).or_default() += 1;
        }
        dealt.into_values().max()
    };
    assert_eq!(most("one"), Some(1));
    assert!(most("levels") > Some(2));
}
