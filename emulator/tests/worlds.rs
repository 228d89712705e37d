//! Policies of one experiment meet one world: the same arrivals, work, bursts and, link by link, delays.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use common::{parse, run};
use volary::workload::{Traces, Workload};
use volary_actors::base::{Class, Endpoint, JobId, Time};
use volary_netem::{Fabric, Faults, Verdict};

const SEED: u64 = 11;
const TWO: &str = r#"
    title = "one world"
    seed = 11
    [cluster]
    nodes = 6
    cores = 2
    [workload.synthetic]
    jobs = 80
    tasks = { uniform = { low = 1, high = 6 } }
    interarrival = { exponential = { mean = "600ms" } }
    [service]
    demand = { exponential = { mean = "1s" } }
    homogeneous = false
    correlated = false
    [network]
    one_way = { gamma = { shape = 4, mean = "20ms" } }
    loss = 0.1
    [interference]
    bernoulli = { slot = "500ms", probability = 0.3, slowdown = 4 }
    [[policy]]
    random = {}
    [[policy]]
    sparrow = {}
    [[policy]]
    latin-square = { order = 3 }
"#;

#[test]
fn arrivals_and_work_are_the_same_for_every_policy() {
    let measured = run(TWO);
    for other in &measured[1..] {
        assert_ne!(other.summary.engine.order_hash, measured[0].summary.engine.order_hash);
        let rows = measured[0].jobs.iter().zip(&other.jobs);
        for (a, b) in rows {
            assert_eq!((a.job, a.arrival, a.longest, a.tasks), (b.job, b.arrival, b.longest, b.tasks));
        }
        assert_eq!(measured[0].jobs.len(), other.jobs.len());
    }
}

/// Bursts of a core do not depend on what runs on it.
#[test]
fn bursts_are_the_same_for_every_policy() {
    let measured = run(TWO);
    assert!(measured[0].bursts.len() > 20, "{}", measured[0].bursts.len());
    let end = measured.iter().map(|m| m.summary.makespan_s).fold(f64::INFINITY, f64::min);
    // Runs end at different times; what ends before all of them do must agree.
    let early = |m: &volary::results::Measured| -> Vec<_> {
        m.bursts.iter().copied().filter(|burst| burst.2 < end).collect()
    };
    for other in &measured[1..] {
        assert_eq!(early(&measured[0]), early(other), "{}", other.summary.policy);
    }
}

/// A copy's work is the same whoever asks, whenever, in whatever order.
#[test]
fn work_does_not_depend_on_who_asked_before() {
    let experiment = parse(TWO);
    let world = &experiment.points[0].resolved;
    let build =
        || Workload::build(&world.workload, &world.service, SEED, 1, &Traces::new(Vec::new())).unwrap();
    let (forward, backward) = (build(), build());
    let copies: Vec<_> = (0..80)
        .map(JobId)
        .flat_map(|job| (0..forward.tasks(job)).map(move |task| job.task(task)))
        .flat_map(|task| (0..3).map(move |attempt| task.copy(attempt)))
        .collect();
    let asked: Vec<_> = copies.iter().map(|&copy| forward.work(copy)).collect();
    let mut again: Vec<_> = copies.iter().rev().map(|&copy| backward.work(copy)).collect();
    again.reverse();
    assert_eq!(asked, again);
    assert!(asked.windows(2).any(|pair| pair[0] != pair[1]));
}

/// The n-th message of a link meets the same fate, whatever other links carry and whenever it is sent.
#[test]
fn the_nth_message_of_a_link_meets_the_same_fate() {
    let experiment = parse(TWO);
    let world = &experiment.points[0].resolved;
    let fabric = || {
        let machines = world.cluster.machines(0, SEED);
        let endpoints = machines.layout.endpoints();
        Fabric::new(&world.network, machines.links, endpoints, 2, Faults::none(), SEED).unwrap()
    };
    let links: Vec<_> = (2..8).flat_map(|node| [(1, node), (node, 1)]).collect();
    let fates = |order: Vec<(usize, u64)>| {
        let mut fabric = fabric();
        let mut fates: Vec<Vec<Verdict>> = vec![Vec::new(); links.len()];
        for (i, (link, at)) in order.into_iter().enumerate() {
            let (src, dst) = links[link];
            let now = Time(at + i as u64);
            fates[link].push(fabric.route(now, Endpoint(src), Endpoint(dst), Class::Datagram, 64));
        }
        fates
    };
    let one_link_after_the_other = (0..links.len()).flat_map(|link| (0..50).map(move |_| (link, 0)));
    let all_at_once = (0..50).flat_map(|_| (0..links.len()).rev().map(|link| (link, 1_000_000_000)));
    assert_eq!(fates(one_link_after_the_other.collect()), fates(all_at_once.collect()));
}
