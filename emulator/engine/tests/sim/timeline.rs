//! Messages and load on the timeline, compared with the counters of the run.

use std::collections::{BTreeMap, BTreeSet};

use volary_actors::base::Span;
use volary_engine::metrics::Recording;
use volary_engine::metrics::RunConfig;
use volary_engine::results::{CopyEnd, Measured, SlowRow};
use volary_engine::virtual_time::measure;

use crate::common::{poisson, with, world};

/// Runs an experiment of 10 nodes with this recording.
fn drawn(policy: &str, set: &[&str], recording: Recording) -> Measured {
    let text = with(&poisson(10, 60, 4, 0.8, policy), &[&["network.one_way=\"10ms\""], set].concat());
    measure("test", &world(&text), &RunConfig { until: None, recording }, &()).unwrap()
}

const WHOLE: Recording = Recording {
    copies: 0,
    one_in: Some(1),
    timeline_cores: u32::MAX,
    timeline: Span::from_secs(100_000),
    timeline_copies: u32::MAX,
    timeline_messages: u32::MAX,
    cache_interval: Span::ZERO,
    unqueued: None,
    slowdown_bound: Span::from_secs(10),
    cached_nodes: None,
    snapshots: false,
    window: None,
    gossip: None,
    quiet: Span::from_secs(24 * 3600),
};

/// Without losses every message that was sent is delivered once, after the delay of its link.
#[test]
fn every_message_is_on_the_timeline_once() {
    for policy in ["sparrow = {}", "random = {}", "latin-square = { order = 2 }", "pigeon = { group = 5 }"] {
        let run = drawn(policy, &[], WHOLE);
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for row in &run.messages {
            *kinds.entry(row.kind.clone()).or_default() += 1;
            let took = row.delivered - row.sent;
            assert!((took - 0.01).abs() < 1e-9, "{policy}: {row:?} took {took} s");
            assert!(row.from.starts_with("node ") || row.to.starts_with("node "), "{row:?}");
            assert!(row.job.is_some() || row.kind.starts_with("group."), "{row:?}");
        }
        // Messages between schedulers and masters touch no node, and messages under way at the end have not arrived.
        let sent = &run.summary.messages.by_kind;
        for (kind, delivered) in &kinds {
            assert!(delivered <= &sent[kind], "{policy}: {kind}");
        }
        if let Some(&reports) = kinds.get("launch.completed") {
            let (tasks, copies) = (run.summary.tasks.finished, run.summary.copies.finished);
            assert!((tasks..=copies).contains(&reports), "{policy}: {reports} of {copies}");
        }
        assert!(run.messages.is_sorted_by_key(|row| (row.delivered * 1e9) as u64), "{policy}");
        assert_eq!(run.messages_left_out, 0);
    }
}

#[test]
fn messages_without_room_on_the_timeline_are_counted() {
    let all = drawn("sparrow = {}", &[], WHOLE);
    let some = drawn("sparrow = {}", &[], Recording { timeline_messages: 100, ..WHOLE });
    assert_eq!(some.messages, all.messages[..100]);
    assert_eq!(some.messages_left_out, all.messages.len() as u64 - 100);
    // Three nodes of one core, for two seconds.
    let part = Recording { timeline_cores: 3, timeline: Span::from_secs(2), ..WHOLE };
    let few = drawn("sparrow = {}", &[], part);
    let nodes = ["node 0", "node 1", "node 2"];
    let expected: Vec<_> = all
        .messages
        .iter()
        .filter(|row| row.delivered < 2.0 && (nodes.contains(&&*row.from) || nodes.contains(&&*row.to)))
        .cloned()
        .collect();
    assert!(expected.len() > 10);
    assert_eq!(few.messages, expected);
    assert_eq!(few.timeline_nodes, [0, 1, 2]);
    assert_eq!((&some.summary, &few.summary), (&all.summary, &all.summary), "what is kept changes no result");
}

/// The samples are the state that follows from arrivals and executions.
#[test]
fn load_follows_from_arrivals_and_executions() {
    for policy in ["sparrow = {}", "latin-square = { order = 2 }", "central-queue = {}"] {
        let window = Span::from_secs(40);
        let run = drawn(policy, &["network.one_way=\"0s\""], Recording { timeline: window, ..WHOLE });
        assert!(run.load.len() > 20, "{policy}: {}", run.load.len());
        for row in &run.load {
            let before = |time: f64| time < row.time;
            let running = run.copies.iter().filter(|copy| before(copy.start) && copy.end >= row.time).count();
            let begun: BTreeSet<_> = run
                .copies
                .iter()
                .filter(|copy| before(copy.start))
                .map(|copy| (copy.job, copy.task))
                .collect();
            let arrived: u64 =
                run.jobs.iter().filter(|job| before(job.arrival)).map(|job| u64::from(job.tasks)).sum();
            assert_eq!(u64::from(row.busy), running as u64, "{policy} at {}", row.time);
            assert_eq!(row.waiting, arrived - begun.len() as u64, "{policy} at {}", row.time);
        }
    }
}

/// An execution without the time lost in its slow stretches is as long as the work of its copy.
#[test]
fn executions_without_their_slow_stretches_are_the_work_of_the_copies() {
    let run = drawn(
        "random = {}",
        &[
            "service.demand=\"3s\"",
            "interference.bernoulli={ slot = \"1s\", probability = 0.3, slowdown = 4 }",
        ],
        WHOLE,
    );
    let (mut slowed, mut copies) = (0, 0);
    for copy in run.copies.iter().filter(|copy| copy.end_kind == CopyEnd::First) {
        let within =
            |slow: &&SlowRow| slow.core == copy.core && copy.start <= slow.start && slow.end <= copy.end;
        let stretches: Vec<&SlowRow> = run.slow.iter().filter(within).collect();
        let lost: f64 =
            stretches.iter().map(|slow| (slow.end - slow.start) * (1.0 - 1.0 / slow.slowdown)).sum();
        assert!((copy.end - copy.start - lost - 3.0).abs() < 1e-6, "{copy:?} {stretches:?}");
        slowed += usize::from(!stretches.is_empty());
        copies += 1;
    }
    assert!(copies == 240 && slowed > 100, "{slowed} of {copies}");
}
