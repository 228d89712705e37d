//! What each fault does to a run small enough to know the answer, to the nanosecond where there is one.
//!
//! One job arrives at 1 s with one task of exactly 1 s of work, over links of 10 ms: launched at 1.00, started
//! at 1.01, finished at 2.01, reported at 2.02.

mod common;

use common::run;
use volary::results::Measured;

fn one(nodes: u32, schedulers: u32, policy: &str, fault: &str) -> Measured {
    let text = format!(
        r#"
        title = "fault"
        seed = 5
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
        {fault}
        [[policy]]
        {policy}
        "#
    );
    let measured = run(&text).remove(0);
    let summary = &measured.summary;
    let (jobs, copies) = (summary.jobs, summary.copies);
    assert_eq!(
        (jobs.submitted, jobs.finished, jobs.failed, jobs.unfinished),
        (1, 1, 0, 0),
        "{policy} {fault}\n{summary:#?}"
    );
    assert_eq!(summary.tasks.finished, 1);
    assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost, "{copies:?}");
    measured
}

fn response(measured: &Measured) -> f64 {
    measured.summary.response_s.max
}

fn exactly(measured: &Measured, expected: f64, what: &str) {
    let found = response(measured);
    assert!((found - expected).abs() < 1e-9, "{what}: {found} s instead of {expected} s");
}

fn fault(kind: &str, rest: &str) -> String {
    format!("[[network.fault]]\n{kind} = {{ {rest} }}")
}

#[test]
fn a_pause_shifts_the_finish_by_its_length() {
    for policy in ["round-robin = {}", "random = {}", "central-queue = {}"] {
        let paused = one(1, 1, policy, &fault("pause", r#"who = ["node:0"], at = "1.5s", for = "3s""#));
        exactly(&paused, 1.02 + 3.0, policy);
        assert_eq!(paused.summary.copies.started, 1);
    }
}

/// The restart is the news of the crash: the only node takes the task again at once.
#[test]
fn a_node_back_before_the_peer_timeout_runs_the_task_again() {
    let crash = fault("crash", r#"who = ["node:0"], at = "1.5s", for = "1s""#);
    for policy in ["round-robin = {}", "random = {}", "central-queue = {}"] {
        let measured = one(1, 1, policy, &crash);
        exactly(&measured, 2.5 + 1.02 - 1.0, policy);
        let copies = measured.summary.copies;
        assert_eq!((copies.started, copies.finished, copies.lost), (2, 1, 1), "{policy}");
    }
}

#[test]
fn a_node_gone_for_longer_is_replaced_at_the_peer_timeout() {
    // Which node gets the task follows from the seed; ask a run without faults.
    for policy in ["round-robin = {}", "random = {}", "central-queue = {}"] {
        let victim = one(2, 1, policy, "").copies[0].core;
        let crash = fault("crash", &format!(r#"who = ["node:{victim}"], at = "1.5s", for = "60s""#));
        let measured = one(2, 1, policy, &crash);
        exactly(&measured, 1.5 + 5.0 + 1.02 - 1.0, policy);
        assert_eq!(measured.summary.copies.lost, 1);
        assert_ne!(measured.copies.iter().find(|copy| copy.end > 3.0).map(|copy| copy.core), Some(victim));
    }
}

#[test]
fn a_scheduler_crash_loses_no_job() {
    for (schedulers, policy) in [
        (1, "round-robin = {}"),
        (1, "sparrow = {}"),
        (1, "gang = {}"),
        (3, "random = {}"),
        (3, "sparrow = {}"),
    ] {
        // All schedulers fall in turn, so the one that holds the job is among them.
        let crashes: Vec<_> = (0..schedulers)
            .map(|i| {
                let at = 1.5 + f64::from(i) * 0.1;
                fault("crash", &format!(r#"who = ["scheduler:{i}"], at = "{at}s", for = "2s""#))
            })
            .collect();
        let measured = one(2, schedulers, policy, &crashes.join("\n"));
        assert!(response(&measured) > 1.0, "{policy}");
    }
}

#[test]
fn a_launch_into_a_partition_goes_elsewhere_at_the_peer_timeout() {
    let victim = one(2, 1, "round-robin = {}", "").copies[0].core;
    let cut = fault("partition", &format!(r#"a = ["node:{victim}"], at = "0.5s", for = "60s""#));
    let measured = one(2, 1, "round-robin = {}", &cut);
    exactly(&measured, 5.0 + 1.02, "undeliverable at 6 s, then launched on the other node");
    assert_eq!(measured.summary.copies.started, 1);
}

/// The result cannot get out in time. Whoever runs the task again, it counts once.
#[test]
fn a_result_behind_a_partition_counts_once() {
    for policy in ["round-robin = {}", "sparrow = {}", "latin-square = { order = 2 }", "peacock = {}"] {
        let victim = one(2, 1, policy, "").copies[0].core;
        let cut = fault("partition", &format!(r#"a = ["node:{victim}"], at = "1.5s", for = "20s""#));
        let measured = one(2, 1, policy, &cut);
        assert_eq!(measured.jobs.len(), 1);
        assert!(response(&measured) < 60.0, "{policy}: {} s", response(&measured));
    }
}
