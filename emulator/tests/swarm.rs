//! A seed draws everything: cluster, policy, load, delay, loss, duplication, reordering, crashes, partitions,
//! pauses, bursts. The faults heal; then every job must have finished exactly once and the books must close.
//!
//! `VOLARY_SWARM_SEEDS=2000 cargo test --test swarm` looks further; `VOLARY_SWARM_SEED=17` replays one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use std::fmt::Write as _;
use std::panic::catch_unwind;

use common::run;
use volary_actors::base::Rng;

/// Policies with the parameters worth varying; `#` stands for a small order.
const POLICIES: [&str; 14] = [
    "latin-square = { order = # }",
    "latin-square = { order = #, preemption = false }",
    "full-repetition = { order = # }",
    "full-repetition = { order = #, preempt = \"task\" }",
    "random = {}",
    "round-robin = {}",
    "central-queue = {}",
    "gang = { quantum = \"200ms\" }",
    "sparrow = {}",
    "sparrow = { cancellation = false, probe_ratio = 1.05 }",
    "sparrow = { form = \"pairs\", group = # }",
    "sparrow = { form = \"per-task\" }",
    "peacock = { interval = \"500ms\" }",
    "peacock = { form = \"threshold\" }",
];

struct Dice(Rng);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.below(100) < percent
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.0.below(from.len() as u32) as usize]
    }
}

/// The experiment of a seed.
fn experiment(seed: u64) -> String {
    let mut dice = Dice(Rng::new(seed, 0, 0));
    let nodes = 1 + dice.below(12);
    let order = (1 + dice.below(5)).min(nodes);
    let policy = dice.pick(&POLICIES).replace('#', &order.to_string());
    let central = policy.starts_with("gang") || policy.starts_with("central");
    let schedulers = if central { 1 } else { 1 + dice.below(3) };
    let cores = 1 + dice.below(3);
    let tasks = 1 + dice.below(9);
    let jobs = 20 + dice.below(60);
    let load = f64::from(1 + dice.below(9)) / 12.0;
    let gap = f64::from(tasks) / (load * f64::from(nodes * cores));
    let demand = dice.pick(&[
        "\"1s\"",
        "{ exponential = { mean = \"1s\" } }",
        "{ lognormal = { median = \"500ms\", sigma = 1.2 } }",
    ]);
    let (homogeneous, correlated) = (dice.chance(50), dice.chance(50));
    let mut text = format!(
        "title = \"swarm\"\nseed = {seed}\n[cluster]\nnodes = {nodes}\ncores = {cores}\nschedulers = {schedulers}\n\
         [workload.synthetic]\njobs = {jobs}\ntasks = {tasks}\ninterarrival = {{ exponential = {{ mean = \"{gap}s\" }} }}\n\
         [service]\ndemand = {demand}\nhomogeneous = {homogeneous}\ncorrelated = {correlated}\n[network]\n"
    );
    network(&mut dice, &mut text);
    if dice.chance(60) {
        faults(&mut dice, &mut text, nodes, schedulers, gap * f64::from(jobs));
    }
    if dice.chance(40) {
        let profile = dice.pick(&[
            "bernoulli = { slot = \"500ms\", probability = 0.2, slowdown = 4 }",
            "renewal = { gap = { exponential = { mean = \"5s\" } }, burst = { pareto = { scale = \"1s\", shape = 1.5 } }, slowdown = 10 }",
            "markov = { slot = \"100ms\", p_on = 0.05, p_off = 0.2, slowdown = { uniform = { low = 2, high = 6 } } }",
        ]);
        writeln!(text, "[interference]\n{profile}").unwrap();
    }
    writeln!(text, "[[policy]]\n{policy}").unwrap();
    text
}

fn network(dice: &mut Dice, text: &mut String) {
    let delay = dice.pick(&[
        "\"0s\"",
        "\"10ms\"",
        "{ gamma = { shape = 4, mean = \"20ms\" } }",
        "{ exponential = { mean = \"100ms\" } }",
    ]);
    writeln!(text, "one_way = {delay}").unwrap();
    if dice.chance(60) {
        let loss = dice.pick(&[
            "0.01",
            "0.2",
            "{ gilbert-elliott = { p = 0.05, r = 0.3, good_loss = 0.0, bad_loss = 0.8 } }",
        ]);
        writeln!(text, "loss = {loss}").unwrap();
    }
    if dice.chance(30) {
        text.push_str("duplicate = 0.1\n");
    }
    if dice.chance(30) && !delay.starts_with("\"0s") {
        text.push_str("reorder = 0.2\n");
    }
    if dice.chance(50) {
        text.push_str("peer_timeout = \"2s\"\n");
    }
}

fn faults(dice: &mut Dice, text: &mut String, nodes: u32, schedulers: u32, horizon: f64) {
    // At most one node never comes back, and never the last one.
    let mut funeral = nodes > 1 && dice.chance(25);
    for _ in 0..1 + dice.below(5) {
        let at = horizon * f64::from(dice.below(100)) / 100.0;
        let span = f64::from(1 + dice.below(200)) / 10.0;
        let node = format!("\"node:{}\"", dice.below(nodes));
        let scheduler = format!("\"scheduler:{}\"", dice.below(schedulers));
        let who = if dice.chance(70) { &node } else { &scheduler };
        text.push_str("[[network.fault]]\n");
        let one_way = dice.chance(30);
        match dice.below(4) {
            0 if std::mem::replace(&mut funeral, false) => {
                writeln!(text, "crash = {{ who = [{node}], at = \"{at}s\" }}")
            }
            0 => writeln!(text, "crash = {{ who = [{who}], at = \"{at}s\", for = \"{span}s\" }}"),
            1 => writeln!(text, "pause = {{ who = [{who}], at = \"{at}s\", for = \"{span}s\" }}"),
            2 => writeln!(
                text,
                "partition = {{ a = [\"schedulers\"], b = [{node}], at = \"{at}s\", for = \"{span}s\", one_way = {one_way} }}"
            ),
            _ => writeln!(
                text,
                "degrade = {{ a = [\"schedulers\"], b = [{node}], at = \"{at}s\", for = \"{span}s\", delay_factor = 5.0, loss = 0.3 }}"
            ),
        }
        .unwrap();
    }
}

fn check(seed: u64) {
    let text = experiment(seed);
    eprintln!("seed {seed}\n{text}");
    let measured = run(&text).remove(0);
    let summary = &measured.summary;
    let (jobs, tasks, copies) = (summary.jobs, summary.tasks, summary.copies);
    assert_eq!(jobs.submitted, jobs.finished + jobs.failed + jobs.unfinished, "{text}");
    assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost, "{text}");
    assert_eq!(
        jobs.unfinished + jobs.failed,
        0,
        "every fault heals, so every job can finish\n{text}{measured:#?}"
    );
    assert_eq!(tasks.submitted, tasks.finished, "{text}");
    let again = run(&text).remove(0);
    assert_eq!(
        summary.engine.order_hash, again.summary.engine.order_hash,
        "the same seed, another order\n{text}"
    );
    assert_eq!(measured.jobs.len() as u64, jobs.submitted);
}

#[test]
fn every_job_that_can_finish_finishes_exactly_once() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("VOLARY_SWARM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("VOLARY_SWARM_SEEDS").unwrap_or(2000),
    };
    let failed: Vec<u64> = seeds.filter(|&seed| catch_unwind(|| check(seed)).is_err()).collect();
    assert!(failed.is_empty(), "replay with VOLARY_SWARM_SEED=N; seeds that failed: {failed:?}");
}
