//! What an experiment promises whatever the policy: the same world for all, the same order for the same seed,
//! exact effects of faults.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use common::{parse, poisson, run};
use volary::results::Summary;
use volary::workload::{Traces, Workload};
use volary_actors::base::{Class, Endpoint, JobId, Time};
use volary_actors::catalog::Catalog;
use volary_netem::Fabric;

/// Every policy in one file, under interference and a lossy network.
fn everyone() -> String {
    let text = poisson(20, 60, 5, 0.8, "random = {}").replace("correlated = false", "correlated = 0.5");
    format!(
        "{text}\n[[policy]]\nlatin-square = {{ order = 3 }}\n[[policy]]\nsparrow = {{}}\n[[policy]]\nround-robin = {{}}\n\
         [[policy]]\npeacock = {{}}\n[[policy]]\ngang = {{}}\n[[policy]]\ncentral-queue = {{}}\n\
         [network]\none_way = {{ gamma = {{ shape = 4, mean = \"10ms\" }} }}\nloss = 0.05\n\
         [interference]\nmarkov = {{ slot = \"100ms\", p_on = 0.05, p_off = 0.2, slowdown = {{ uniform = {{ low = 2, high = 6 }} }} }}\n"
    )
}

/// What two policies of one experiment meet, draw by draw: arrivals, homes, sizes, the work of every copy,
/// bursts on every core, delay and fate of the n-th message of each link.
#[test]
fn policies_of_an_experiment_meet_the_same_world() {
    let experiment = parse(&everyone());
    let traces = Traces::new(Vec::new());
    let mut worlds = Vec::new();
    for point in &experiment.points {
        let r = &point.resolved;
        let seed = experiment.seed;
        let workload = Workload::build(&r.workload, &r.service, seed, r.cluster.schedulers, &traces).unwrap();
        let machines = r.cluster.machines(0, seed);
        let jobs: Vec<_> = (0..workload.jobs()).map(|j| workload.job(JobId(j))).collect();
        let copies: Vec<_> = (0..workload.jobs())
            .flat_map(|j| (0..5).flat_map(move |t| (0..3).map(move |a| JobId(j).task(t).copy(a))))
            .map(|copy| workload.work(copy))
            .collect();
        let pauses = volary::cores::Pauses::default();
        let cores = volary::cores::Cores::new(r.interference.as_ref(), machines.cores, pauses, seed);
        let end = Time(60_000_000_000);
        let bursts: Vec<_> = (0..20)
            .flat_map(|core| cores.bursts(core, Time::ZERO, end).collect::<Vec<_>>())
            .map(|burst| (burst.start, burst.end, burst.slowdown.to_bits()))
            .collect();
        let faults = volary_netem::Faults::none();
        let mut fabric =
            Fabric::new(&r.network, machines.links, machines.layout.endpoints(), 2, faults, seed).unwrap();
        let messages: Vec<_> = (0..2000)
            .map(|n| fabric.route(Time(n), Endpoint(1), Endpoint(2 + n as u32 % 20), Class::Stream, 60))
            .collect();
        assert!(!bursts.is_empty());
        worlds.push((jobs, copies, bursts, messages));
    }
    assert_eq!(worlds.len(), 7);
    assert!(worlds.windows(2).all(|pair| pair[0] == pair[1]));
}

fn hashes(measured: &[volary::results::Measured]) -> Vec<String> {
    measured.iter().map(|m| m.summary.engine.order_hash.clone()).collect()
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    let text = everyone();
    let first = hashes(&run(&text));
    assert_eq!(first, hashes(&run(&text)));
    let other = hashes(&run(&text.replace("seed = 3", "seed = 4")));
    assert!(first.iter().zip(&other).all(|(a, b)| a != b));
}

/// One job of one task of 1 s that starts at once on links of 10 ms, under one fault.
fn faulty(policy: &str, nodes: u32, schedulers: u32, fault: &str) -> Summary {
    let text = format!(
        r#"
        title = "fault"
        [cluster]
        nodes = {nodes}
        schedulers = {schedulers}
        [workload.synthetic]
        jobs = 1
        tasks = 1
        interarrival = "1s"
        [service]
        demand = "1s"
        [network]
        one_way = "10ms"
        peer_timeout = "5s"
        [[network.fault]]
        {fault}
        [[policy]]
        {policy}
        "#
    );
    run(&text).remove(0).summary
}

/// The job arrives at 1 s, its copy runs from 1.01 s to 2.01 s, the client hears of it at 2.02 s.
#[test]
fn faults_cost_exactly_what_they_should() {
    let response = |policy: &str, nodes, fault: &str| {
        let summary = faulty(policy, nodes, 1, fault);
        assert_eq!(summary.jobs.finished, 1, "{policy} {fault}");
        (summary.response_s.mean, summary.copies)
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;

    let (time, _) = response("random = {}", 1, r#"pause = { who = ["node:0"], at = "1.5s", for = "3s" }"#);
    assert!(near(time, 4.02), "a pause shifts the end by its length: {time}");
    let (time, _) = response("random = {}", 1, r#"pause = { who = ["node:0"], at = "2.01s", for = "3s" }"#);
    assert!(near(time, 1.02), "a copy that ends as the pause begins has ended: {time}");

    // Down for 2 s, less than the peer timeout: its restart at 3.5 s tells the scheduler, which launches anew.
    let (time, copies) =
        response("random = {}", 1, r#"crash = { who = ["node:0"], at = "1.5s", for = "2s" }"#);
    assert!(near(time, 2.5 + 1.02), "{time}");
    assert_eq!((copies.started, copies.finished, copies.lost), (2, 1, 1));
    assert!(near(copies.wasted_work_s, 0.49), "{copies:?}");

    // Down for longer: the peer timeout tells, and another node takes over.
    let down = r#"crash = { who = ["node:0"], at = "1.5s" }"#;
    let (time, copies) = response("round-robin = {}", 2, down);
    assert!(near(time, 0.5 + 5.0 + 1.02), "{time}");
    assert_eq!((copies.started, copies.lost), (2, 1));

    // A partition delays the result until it heals: retransmissions go on.
    let cut = r#"partition = { a = ["node:0"], at = "1.5s", for = "1s" }"#;
    let (time, copies) = response("random = {}", 1, cut);
    assert!(time > 1.5 && time < 3.0, "{time}");
    assert_eq!((copies.started, copies.finished), (1, 1), "nothing runs twice");

    // A partition from before the launch until after the peer timeout: another node takes over.
    let long = r#"partition = { a = ["node:0"], at = "0.5s", for = "60s" }"#;
    let (time, copies) = response("round-robin = {}", 2, long);
    assert!(near(time, 5.0 + 1.02), "{time}");
    assert_eq!((copies.started, copies.finished), (1, 1));
}

#[test]
fn jobs_survive_their_scheduler() {
    let crash = r#"crash = { who = ["scheduler:0"], at = "1.5s", for = "2s" }"#;
    for policy in ["random = {}", "latin-square = { order = 2 }", "sparrow = {}", "peacock = {}"] {
        let alone = faulty(policy, 4, 1, crash);
        assert_eq!((alone.jobs.finished, alone.copies.lost), (1, 0), "{policy}");
        assert!(alone.response_s.mean > 2.5, "{policy}: it starts again when the scheduler is back");
        let many = faulty(policy, 4, 3, crash);
        assert_eq!(many.jobs.finished, 1, "{policy}");
    }
}

/// What went wrong once: a drop of an earlier life must not swallow what was submitted again, a paused
/// scheduler must not work, a restarted one must learn who is down, a ring of survivors must keep its probes.
#[test]
fn named_seeds() {
    let pause = faulty("random = {}", 2, 1, r#"pause = { who = ["scheduler:0"], at = "0.5s", for = "20s" }"#);
    assert!(
        (pause.wait_s.mean - 19.51).abs() < 0.02,
        "it places nothing before it goes on: {:?}",
        pause.wait_s
    );

    let text = poisson(1, 1, 2, 1.0, "full-repetition = { order = 1 }")
        .replace("{ exponential = { mean = \"1s\" } }\n        homogeneous", "\"1s\"\n        homogeneous")
        + "\n[network]\n[[network.fault]]\ncrash = { who = [\"scheduler:0\"], at = \"1.9s\", for = \"500ms\" }\n";
    assert_eq!(run(&text).remove(0).summary.jobs.finished, 1);

    for policy in ["peacock = {}", "peacock = { form = \"threshold\" }", "sparrow = {}", "gang = {}"] {
        let text = poisson(2, 40, 3, 2.0, policy)
            + "\n[network]\none_way = \"10ms\"\npeer_timeout = \"2s\"\n[[network.fault]]\ncrash = { who = [\"node:1\"], at = \"10s\" }\n\
               [[network.fault]]\ncrash = { who = [\"scheduler:0\"], at = \"9s\", for = \"5s\" }\n";
        let summary = run(&text).remove(0).summary;
        assert_eq!(summary.jobs.finished, 40, "{policy}");
    }
}

#[test]
fn what_cannot_finish_is_counted() {
    let never = faulty("random = {}", 1, 1, r#"crash = { who = ["node:0"], at = "1.5s" }"#);
    assert_eq!((never.jobs.submitted, never.jobs.finished, never.jobs.unfinished), (1, 0, 1));
    assert_eq!((never.copies.started, never.copies.lost), (1, 1));
}
