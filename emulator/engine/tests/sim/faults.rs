//! Effects of each fault on [`one_task`], a run so small that most of its times are known to the nanosecond.

use volary_engine::results::{CopyCounts, Measured};

use crate::common::{one_task, poisson, run, with};

/// Runs [`one_task`] and closes its accounts.
fn one(nodes: u32, schedulers: u32, policy: &str, faults: &str) -> Measured {
    let measured = run(&one_task(nodes, schedulers, policy, faults));
    let (jobs, copies) = (measured.summary.jobs, measured.summary.copies);
    assert_eq!(jobs.submitted, 1);
    assert_eq!(jobs.submitted, jobs.finished + jobs.failed + jobs.unfinished, "{jobs:?}");
    assert_eq!(
        copies.started,
        copies.finished + copies.preempted + copies.lost + copies.in_progress,
        "{copies:?}"
    );
    measured
}

/// Runs [`one_task`], whose job must finish. Returns its response time in seconds, and its copies.
fn finishes(nodes: u32, schedulers: u32, policy: &str, faults: &str) -> (f64, CopyCounts) {
    let summary = one(nodes, schedulers, policy, faults).summary;
    assert_eq!((summary.jobs.finished, summary.tasks.finished), (1, 1), "{policy} {faults}\n{summary:#?}");
    (summary.times.response_s.max, summary.copies)
}

fn exactly(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-9, "{what}: {found} s instead of {expected} s");
}

fn fault(kind: &str, rest: &str) -> String {
    format!("[[network.fault]]\n{kind} = {{ {rest} }}")
}

/// Policies that bind a task when it arrives.
const EARLY: [&str; 3] = ["round-robin = {}", "random = {}", "central-queue = {}"];

/// Core of the node that gets the task in a run without faults.
fn usual(policy: &str) -> u32 {
    one(2, 1, policy, "").copies[0].core
}

#[test]
fn a_pause_shifts_the_finish_by_its_length() {
    for policy in EARLY {
        let pause = |at: &str| fault("pause", &format!(r#"who = ["node:0"], at = "{at}", for = "3s""#));
        let (time, copies) = finishes(1, 1, policy, &pause("1.5s"));
        exactly(time, 1.02 + 3.0, policy);
        assert_eq!(copies.started, 1);
        exactly(finishes(1, 1, policy, &pause("2.01s")).0, 1.02, "it has ended as the pause begins");
    }
}

#[test]
fn a_fault_after_the_end_of_the_run_is_noted() {
    let crash = fault("crash", r#"who = ["node:0"], at = "1h""#);
    let notes = one(2, 1, "random = {}", &crash).notes;
    assert_eq!(notes, ["network.fault[0], at 3600s, did not begin: the run had ended"]);
}

/// Under policies without masters the run is unchanged, event by event, and notes say why. Masters of `pigeon` crash.
#[test]
fn a_fault_at_masters_does_not_concern_other_policies() {
    let crash = fault("crash", r#"who = ["master:0"], at = "0.5s", for = "3s""#);
    let cut = fault("partition", r#"a = ["masters"], b = ["nodes"], at = "0.5s", for = "3s""#);
    for policy in ["random = {}", "central-queue = {}"] {
        let (alone, spared) = (one(2, 1, policy, ""), one(2, 1, policy, &format!("{crash}\n{cut}")));
        assert_eq!(alone.summary.engine.order_hash, spared.summary.engine.order_hash, "{policy}");
        let says = "network.fault[0], a crash of master:0, did not concern this policy";
        assert!(spared.notes[0].starts_with(says) && spared.notes.len() == 2, "{:?}", spared.notes);
    }
    let (struck, _) = finishes(2, 1, "pigeon = {}", &crash);
    assert!(struck > 3.5 - 1.0, "no master takes the task before 3.5 s, and it ended after {struck} s");
}

#[test]
fn a_paused_scheduler_places_no_task() {
    let pause = fault("pause", r#"who = ["scheduler:0"], at = "0.5s", for = "20s""#);
    exactly(finishes(2, 1, "random = {}", &pause).0, 20.5 - 1.0 + 1.02, "it goes on at 20.5 s");
}

/// The restart reveals the crash: the only node gets the task again at once.
#[test]
fn a_node_back_before_the_peer_timeout_runs_the_task_again() {
    let crash = fault("crash", r#"who = ["node:0"], at = "1.5s", for = "1s""#);
    for policy in EARLY {
        let (time, copies) = finishes(1, 1, policy, &crash);
        exactly(time, 2.5 + 1.02 - 1.0, policy);
        assert_eq!((copies.started, copies.finished, copies.lost), (2, 1, 1), "{policy}");
        exactly(copies.wasted_work_s, 0.49, "what the node did before");
    }
}

#[test]
fn a_lost_node_is_replaced_at_the_peer_timeout() {
    for policy in EARLY {
        let victim = usual(policy);
        for lasting in ["", r#", for = "60s""#] {
            let crash = fault("crash", &format!(r#"who = ["node:{victim}"], at = "1.5s"{lasting}"#));
            let (time, copies) = finishes(2, 1, policy, &crash);
            exactly(time, 1.5 + 5.0 + 1.02 - 1.0, policy);
            assert_eq!((copies.started, copies.lost), (2, 1));
        }
    }
}

#[test]
fn jobs_that_cannot_finish_are_counted() {
    let never = one(1, 1, "random = {}", &fault("crash", r#"who = ["node:0"], at = "1.5s""#)).summary;
    assert_eq!((never.jobs.finished, never.jobs.unfinished), (0, 1));
    assert_eq!((never.copies.started, never.copies.lost), (1, 1));
}

#[test]
fn a_scheduler_crash_loses_no_job() {
    let policies = [
        "random = {}",
        "round-robin = {}",
        "latin-square = { order = 2 }",
        "sparrow = {}",
        "peacock = {}",
        "murmuration = {}",
    ];
    let many = policies.map(|policy| (3, policy));
    for (schedulers, policy) in
        policies.map(|policy| (1, policy)).into_iter().chain(many).chain([(1, "gang = {}")])
    {
        // All schedulers crash in turn, so the one that holds the job is among them.
        let crash = |i: u32| {
            let at = 1.5 + f64::from(i) * 0.1;
            fault("crash", &format!(r#"who = ["scheduler:{i}"], at = "{at}s", for = "2s""#))
        };
        let crashes: Vec<_> = (0..schedulers).map(crash).collect();
        let (time, copies) = finishes(4, schedulers, policy, &crashes.join("\n"));
        assert!(time > 2.5, "{policy}: it starts again when a scheduler is back, not after {time} s");
        assert_eq!(copies.lost, 0, "{policy}");
    }
}

#[test]
fn a_launch_into_a_partition_goes_elsewhere_at_the_peer_timeout() {
    let victim = usual("round-robin = {}");
    let cut = fault("partition", &format!(r#"a = ["node:{victim}"], at = "0.5s", for = "60s""#));
    let (time, copies) = finishes(2, 1, "round-robin = {}", &cut);
    exactly(time, 5.0 + 1.02, "undeliverable at 6 s, then launched on the other node");
    assert_eq!(copies.started, 1);
}

/// Retransmissions go on until the partition heals.
#[test]
fn a_result_behind_a_short_partition_is_late() {
    let cut = fault("partition", r#"a = ["node:0"], at = "1.5s", for = "1s""#);
    let (time, copies) = finishes(1, 1, "random = {}", &cut);
    assert!(time > 1.5 && time < 3.0, "{time}");
    assert_eq!((copies.started, copies.finished), (1, 1), "nothing runs twice");
}

/// The result cannot get out in time, so the task is run again; it counts once.
#[test]
fn a_result_behind_a_long_partition_counts_once() {
    for policy in [
        "round-robin = {}",
        "sparrow = {}",
        "latin-square = { order = 2 }",
        "peacock = {}",
        "murmuration = {}",
    ] {
        let victim = usual(policy);
        let cut = fault("partition", &format!(r#"a = ["node:{victim}"], at = "1.5s", for = "20s""#));
        let (time, _) = finishes(2, 1, policy, &cut);
        assert!(time < 60.0, "{policy}: {time} s");
    }
}

/// Causes of former failures: a drop from before a crash deleted work that was submitted again, a restarted scheduler
/// was not notified of the actors that were down, and a ring of survivors lost its probes.
#[test]
fn seeds_of_former_failures_finish_every_job() {
    let crash = "network.fault=[{crash={who=[\"scheduler:0\"], at=\"1.9s\", for=\"500ms\"}}]";
    let text = with(&poisson(1, 1, 2, 1.0, "full-repetition = { order = 1 }"), &["service.demand=1s", crash]);
    assert_eq!(run(&text).summary.jobs.finished, 1);

    for policy in ["peacock = {}", "peacock = { form = \"threshold\" }", "sparrow = {}", "gang = {}"] {
        let crashes = "network.fault=[{crash={who=[\"node:1\"], at=\"10s\"}}, \
                       {crash={who=[\"scheduler:0\"], at=\"9s\", for=\"5s\"}}]";
        let network = ["network.one_way=10ms", "network.peer_timeout=2s", crashes];
        let summary = run(&with(&poisson(2, 40, 3, 2.0, policy), &network)).summary;
        assert_eq!(summary.jobs.finished, 40, "{policy}");
    }
}
