//! Murmuration in a whole system: what its paper counts, what its caches know, and that a message to
//! everybody may be one event.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use volary::record::fold::Recorder;
use volary::results::Measured;
use volary::runtime::Watch;
use volary::runtime::virtual_time::measure;
use volary::shard::{Observer, Parts, Placement, Shard};
use volary_actors::base::{ActorId, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::Note;

fn text(
    schedulers: u32,
    nodes: u32,
    jobs: u32,
    tasks: u32,
    gap: &str,
    one_way: &str,
    policy: &str,
) -> String {
    format!(
        r#"
        title = "murmuration"
        seed = 11
        [cluster]
        nodes = {nodes}
        schedulers = {schedulers}
        [workload.synthetic]
        jobs = {jobs}
        tasks = {tasks}
        interarrival = {{ exponential = {{ mean = "{gap}" }} }}
        [service]
        demand = {{ exponential = {{ mean = "1s" }} }}
        [network]
        one_way = {one_way}
        [[policy]]
        murmuration = {{ {policy} }}
        "#
    )
}

fn run(text: &str) -> Measured {
    common::run(text).remove(0)
}

fn sent(measured: &Measured, kind: &str) -> u64 {
    measured.summary.messages.by_kind.get(kind).copied().unwrap_or(0)
}

/// O-M1: f (2 S − 1) updates for each job, or (1 + f) S − 1 in batches: 285 and 159 for f = 15 and S = 10.
#[test]
fn updates_are_as_many_as_the_paper_counts() {
    for (policy, each, placed) in
        [("batch = false", 285, "gossip.placed"), ("batch = true", 159, "gossip.batch")]
    {
        let measured = run(&text(10, 40, 200, 15, "1s", "\"500us\"", policy));
        let updates = sent(&measured, placed) + sent(&measured, "gossip.ended");
        assert_eq!(updates, 200 * each, "{policy}");
        assert_eq!(sent(&measured, "gossip.ended"), 200 * 15 * 10);
        // Nothing else is sent but the tasks and their results; nothing is repaired.
        assert_eq!(measured.summary.messages.total, 200 * (each + 2 * 15), "{policy}");
        assert_eq!(measured.summary.messages.recovery, 0);
    }
}

/// O-M4, Little: news not taken in = rate of news × time until it is. Two schedulers place 20 tasks a second
/// between them, so each hears of 10 placements and of 20 ends a second, each after 1.5005 s.
#[test]
fn news_in_flight_obeys_little() {
    let policy = "batch = false, update_delay = \"1500ms\"";
    let measured = run(&text(2, 40, 10_000, 2, "100ms", "\"500us\"", policy));
    let staleness = measured.summary.staleness.unwrap();
    let expected = 30.0 * 1.5005;
    assert!((staleness.in_flight.mean / expected - 1.0).abs() < 0.04, "{staleness:?}");
    assert!(staleness.age_s.max <= 1.5006 && staleness.age_s.max > 1.4, "{staleness:?}");
    // Without a delay nobody is ever wrong for longer than the network takes.
    let fresh = run(&text(2, 40, 2_000, 2, "100ms", "\"500us\"", "")).summary.staleness.unwrap();
    assert!(fresh.age_s.max <= 0.000_501, "{fresh:?}");
    assert!(fresh.regret_s.mean < 0.01 * staleness.regret_s.mean, "{fresh:?}, {staleness:?}");
}

/// Keeps the books and checks after every note that nothing but news explains what a cache says.
struct Audit<'a> {
    books: Recorder<'a>,
    layout: &'a Layout,
    checked: u64,
    beliefs: u64,
}

impl Observer for Audit<'_> {
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if let Note::Placed { node, believed, .. } = note
            && let Role::Scheduler(index) = self.layout.role(who)
        {
            // Every scheduler is watched here: what it says of itself is what its notes add up to.
            let at = index * self.layout.nodes() + node;
            if let Some(&(work, ..)) = self.books.caches.pairs().get(at as usize) {
                assert_eq!(believed, work, "scheduler {index} at {now}");
                self.beliefs += 1;
            }
        }
        self.books.note(now, who, note);
        for (work, truth, pending) in self.books.caches.pairs() {
            assert_eq!(work + pending, truth, "after {note:?} of {who} at {now}");
            self.checked += 1;
        }
    }

    fn crashed(&mut self, _: Time, _: u32) {
        unreachable!("nobody crashes here")
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.books.watches(scheduler)
    }
}

/// O-M4: e = −Σ(+x not taken in) + Σ(−x not taken in), exactly, at every event, whatever the delays; and 0 when
/// all is quiet.
#[test]
fn nothing_but_news_separates_caches_from_the_truth() {
    for (one_way, policy) in [
        ("\"500us\"", "update_delay = \"2s\""),
        ("{ exponential = { mean = \"300ms\" } }", "batch = false"),
        ("\"1ms\"", "decision_per_job = \"50ms\", decision_per_task = \"5ms\", order = \"srjf\""),
    ] {
        let file = text(3, 7, 60, 5, "800ms", one_way, policy);
        let experiment = common::parse(&file);
        let world = common::worlds(&experiment).next().unwrap();
        for shared in [true, false] {
            let books = world.recorder(&experiment.run);
            let audit = Audit { books, layout: world.layout(), checked: 0, beliefs: 0 };
            let parts = Parts { shared, ..world.parts(Placement::ALONE).unwrap() };
            let mut shard = Shard::new(parts, audit);
            shard.start();
            while shard.advance() {}
            let audit = shard.observer;
            assert!(audit.books.all_finished() && audit.checked > 20_000 && audit.beliefs > 250);
            let quiet = audit.books.caches.pairs();
            assert!(quiet.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {quiet:?}");
        }
    }
}

/// One scheduler knows everything at once: it never regrets, and ends are all it can be behind with.
#[test]
fn a_scheduler_alone_is_never_wrong_for_long() {
    let alone = run(&text(1, 20, 2_000, 2, "150ms", "\"0s\"", "")).summary.staleness.unwrap();
    assert_eq!((alone.regret_s.max, alone.decision_error_s.max), (0.0, 0.0), "{alone:?}");
    assert_eq!(alone.schedulers, 1);
}

/// A message to everybody as one event, read when it matters, gives what a message to each gives: same jobs at
/// the same times, same traffic, same staleness. More schedulers than are watched, so that most read late.
#[test]
fn one_event_for_all_is_as_good_as_one_for_each() {
    let policies = [
        "",
        "batch = false",
        "update_delay = \"700ms\"",
        "order = \"srjf\", decision_per_job = \"30ms\", decision_per_task = \"1ms\"",
        "wait = \"clock\", update_delay = \"50ms\", batch = false",
        "spread = \"datagrams\", repair = \"2s\"",
    ];
    for (i, policy) in policies.into_iter().enumerate() {
        for schedulers in [2, 17, 50] {
            let file = text(schedulers, 23, 300, 4, "210ms", "\"500us\"", policy)
                .replace("seed = 11", &format!("seed = {}", 100 + i));
            let experiment = common::parse(&file);
            let world = common::worlds(&experiment).next().unwrap();
            let together = measure("together", &world, &experiment.run, &Watch::default()).unwrap();
            assert_eq!(together.summary.jobs.finished, 300);
            let parts = Parts { shared: false, ..world.parts(Placement::ALONE).unwrap() };
            let mut shard = Shard::new(parts, world.recorder(&experiment.run));
            shard.start();
            while !shard.observer.all_finished() && shard.advance() {}
            let (now, events) = (shard.now(), shard.events());
            let (sent, stats) = (shard.traffic().clone(), shard.fabric().stats().clone());
            let books = shard.observer.close(now);
            let what = format!("{policy}, {schedulers} schedulers");
            assert_eq!(books.rows, together.jobs, "{what}");
            assert_eq!(books.staleness, together.summary.staleness, "{what}");
            assert_eq!(books.looks, together.staleness, "{what}");
            assert_eq!(books.copies, together.summary.copies, "{what}");
            let total: u64 = sent.by_kind.iter().sum::<u64>() - sent.recovery;
            assert_eq!(total, together.summary.messages.total, "{what}");
            assert!(stats.datagram.sent + stats.stream.sent >= total, "{what}");
            assert!(schedulers == 2 || events > 2 * together.summary.engine.events, "{what}: {events}");
        }
    }
}

#[test]
fn policies_without_caches_have_no_staleness() {
    let file = text(2, 10, 100, 2, "1s", "\"0s\"", "").replace("murmuration = {  }", "sparrow = {}");
    let measured = run(&file);
    assert!(measured.summary.staleness.is_none() && measured.staleness.is_empty());
}
