//! Murmuration in a whole system: messages as its paper counts them, the contents of caches, and broadcasts as one
//! event.

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{CacheNote, Note};
use volary_engine::metrics::{Recorder, Recording};
use volary_engine::results::Measured;
use volary_engine::shard::{Observer, Parts, Placement, Shard};

use crate::common::{run, with, world};

/// Four schedulers and fifteen nodes that are busy five sixths of the time.
const WORLD: &str = r#"
seed = 11
[cluster]
nodes = 15
schedulers = 4
[workload.synthetic]
jobs = 300
tasks = 5
interarrival = { exponential = { mean = "500ms" } }
[service]
demand = { exponential = { mean = "1s" } }
[network]
one_way = "5ms"
"#;

/// Links of various delays.
const SPREAD_DELAY: &str = "network.one_way={exponential={mean=\"50ms\"}}";

/// The text of the world under Murmuration with these parameters, and with the values of `set`.
fn file(policy: &str, set: &[&str]) -> String {
    with(&format!("{WORLD}[[policy]]\nmurmuration = {{ {policy} }}\n"), set)
}

/// The values of a cluster and its jobs: schedulers, nodes, jobs, tasks of a job, and mean time between jobs.
fn load(schedulers: u32, nodes: u32, jobs: u32, tasks: u32, gap: &str) -> [String; 6] {
    [
        format!("cluster.schedulers={schedulers}"),
        format!("cluster.nodes={nodes}"),
        format!("workload.synthetic.jobs={jobs}"),
        format!("workload.synthetic.tasks={tasks}"),
        format!("workload.synthetic.interarrival.exponential.mean={gap}"),
        "network.one_way=500us".to_owned(),
    ]
}

/// The world with another load and links of 500 µs.
fn loaded(policy: &str, load: &[String; 6]) -> String {
    file(policy, &load.each_ref().map(String::as_str))
}

fn sent(measured: &Measured, kind: &str) -> u64 {
    measured.summary.messages.by_kind.get(kind).copied().unwrap_or(0)
}

/// A job causes f (2 S − 1) updates, or (1 + f) S − 1 in batches: 285 and 159 for f = 15 and S = 10.
#[test]
fn the_number_of_updates_equals_the_formula_of_the_paper() {
    for (policy, each, placed) in
        [("batch = false", 285, "gossip.placed"), ("batch = true", 159, "gossip.batch")]
    {
        let measured = run(&loaded(policy, &load(10, 40, 200, 15, "1s")));
        let updates = sent(&measured, placed) + sent(&measured, "gossip.ended");
        assert_eq!(updates, 200 * each, "{policy}");
        assert_eq!(sent(&measured, "gossip.ended"), 200 * 15 * 10);
        // All other messages are the tasks and their results; there are no repairs.
        assert_eq!(measured.summary.messages.total, 200 * (each + 2 * 15), "{policy}");
        assert_eq!(measured.summary.messages.recovery, 0);
    }
}

/// Little's law: updates in flight = rate of updates × time until they are applied. Two schedulers place 20 tasks a
/// second between them, so each receives 10 placements and 20 ends a second, each after 1.5005 s.
#[test]
fn updates_in_flight_obey_littles_law() {
    let policy = "batch = false, update_delay = \"1500ms\"";
    let measured = run(&loaded(policy, &load(2, 40, 10_000, 2, "100ms")));
    let staleness = measured.summary.sections.staleness.unwrap();
    let expected = 30.0 * 1.5005;
    assert!((staleness.in_flight.mean / expected - 1.0).abs() < 0.04, "{staleness:?}");
    assert!(
        staleness.age_of_synchronisation_s.max <= 1.5006 && staleness.age_of_synchronisation_s.max > 1.4,
        "{staleness:?}"
    );
    // Without `update_delay` no cache is wrong for longer than the network delay.
    let fresh = run(&loaded("", &load(2, 40, 2_000, 2, "100ms"))).summary.sections.staleness.unwrap();
    assert!(fresh.age_of_synchronisation_s.max <= 0.000_501, "{fresh:?}");
    assert!(fresh.regret_s.mean < staleness.regret_s.mean, "{fresh:?}, {staleness:?}");
    assert!(fresh.conflicts < 0.1 * staleness.conflicts, "{fresh:?}, {staleness:?}");
}

/// Records the run and checks after every note that updates in flight explain every error of a cache.
struct Audit<'a> {
    recorder: Recorder<'a>,
    layout: &'a Layout,
    checked: u64,
    beliefs: u64,
}

impl Observer for Audit<'_> {
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if let Note::Cache(CacheNote::Placed { node, believed, .. }) = note
            && let Role::Scheduler(index) = self.layout.role(who)
        {
            // Every scheduler is watched here: the work that it reports is the sum of its notes.
            let at = index * self.layout.nodes() + node;
            if let Some(&(work, ..)) = self.recorder.metrics.0.pairs().get(at as usize) {
                assert_eq!(believed, work, "scheduler {index} at {now}");
                self.beliefs += 1;
            }
        }
        self.recorder.note(now, who, note);
        for (work, truth, pending) in self.recorder.metrics.0.pairs() {
            assert_eq!(work + pending, truth, "after {note:?} of {who} at {now}");
            self.checked += 1;
        }
    }

    fn crashed(&mut self, _: Time, _: u32) {
        unreachable!("no crash is configured")
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.recorder.watches(scheduler)
    }

    fn reads_by(&self) -> Time {
        self.recorder.reads_by()
    }
}

/// The error of a cache is e = −Σ(+x not applied) + Σ(−x not applied), exactly, at every event and for all
/// delays. It is 0 when no update is in flight.
#[test]
fn updates_in_flight_explain_every_error_of_a_cache() {
    for (one_way, policy) in [
        ("500us", "update_delay = \"2s\""),
        ("{exponential={mean=\"300ms\"}}", "batch = false"),
        ("1ms", "decision_per_job = \"50ms\", decision_per_task = \"5ms\", order = \"srjf\""),
    ] {
        let text =
            with(&loaded(policy, &load(3, 7, 60, 5, "800ms")), &[&format!("network.one_way={one_way}")]);
        let world = world(&text);
        for shared in [true, false] {
            let recorder = world.recorder(Recording::default());
            let audit = Audit { recorder, layout: world.layout(), checked: 0, beliefs: 0 };
            let parts = Parts { shared, ..world.parts(Placement::ALONE, true).unwrap() };
            let mut shard = Shard::new(parts, audit);
            shard.start();
            while shard.advance() {}
            shard.read_broadcasts();
            let audit = shard.observer;
            assert!(audit.recorder.all_finished() && audit.checked > 20_000 && audit.beliefs > 250);
            let quiet = audit.recorder.metrics.0.pairs();
            assert!(quiet.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {quiet:?}");
        }
    }
}

/// A single scheduler knows all placements at once, and lacks only ends of tasks. It counts tasks of 1 s without the
/// progress of running tasks, so its regret is below one task.
#[test]
fn a_single_scheduler_has_no_conflicts_and_regrets_less_than_a_task() {
    let text = with(
        &loaded("", &load(1, 20, 2_000, 2, "110ms")),
        &["network.one_way=0s", "service={demand=\"1s\"}"],
    );
    let measured = run(&text);
    let alone = measured.summary.sections.staleness.unwrap();
    assert_eq!((alone.conflicts, alone.decision_error_s.max), (0.0, 0.0), "{alone:?}");
    assert!(alone.regret_s.max > 0.1 && alone.regret_s.max < 1.0, "{alone:?}");
    assert!((2048..=4000).contains(&measured.decisions.len()), "{}", measured.decisions.len());
    for row in &measured.decisions {
        assert!(row.regret >= 0.0 && row.regret <= row.wait && row.wait <= row.believed + 1e-9, "{row:?}");
        assert_eq!(row.best == row.node, row.regret == 0.0, "{row:?}");
    }
    assert_eq!(alone.receivers, 1);
}

/// A broadcast handled as one event gives the results of one message per receiver: equal jobs, times, traffic and
/// staleness. There are more schedulers than are watched, so most schedulers read late.
#[test]
fn a_broadcast_as_one_event_equals_one_message_per_receiver() {
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
            let text = loaded(policy, &load(schedulers, 23, 300, 4, "210ms"));
            let text = with(&text, &[&format!("seed={}", 100 + i)]);
            let (world, together) = (world(&text), run(&text));
            assert_eq!(together.summary.jobs.finished, 300);
            let parts = Parts { shared: false, ..world.parts(Placement::ALONE, true).unwrap() };
            let mut shard = Shard::new(parts, world.recorder(Recording::default()));
            shard.start();
            while !shard.observer.all_finished() && shard.advance() {}
            let (now, events) = (shard.now(), shard.events());
            let (sent, stats) = (shard.traffic().clone(), shard.fabric().stats().clone());
            let accounts = shard.observer.close(now);
            let what = format!("{policy}, {schedulers} schedulers");
            assert_eq!(accounts.rows, together.jobs, "{what}");
            // Compared as text, because the age of a cache that was never out of sync is NaN.
            let text = |stale: &dyn std::fmt::Debug| format!("{stale:?}");
            assert_eq!(
                text(&accounts.policy.sections.staleness),
                text(&together.summary.sections.staleness),
                "{what}"
            );
            assert_eq!(text(&accounts.policy.looks), text(&together.looks), "{what}");
            assert_eq!(accounts.copies, together.summary.copies, "{what}");
            let total: u64 = sent.by_kind.iter().sum::<u64>() - sent.recovery;
            assert_eq!(total, together.summary.messages.total, "{what}");
            assert!(stats.datagram.sent + stats.stream.sent >= total, "{what}");
            assert!(schedulers == 2 || events > 2 * together.summary.engine.events, "{what}: {events}");
        }
    }
}

#[test]
fn policies_without_caches_have_no_staleness() {
    let measured = run(&file("", &["policy=[{sparrow={}}]"]));
    assert!(measured.summary.sections.staleness.is_none() && measured.looks.is_empty());
}

/// The work in each cache, the truth and the updates in flight, `seconds` after the last job has finished.
fn at_rest(text: &str, seconds: u64) -> Vec<(i64, i64, i64)> {
    let world = world(text);
    let mut shard =
        Shard::new(world.parts(Placement::ALONE, true).unwrap(), world.recorder(Recording::default()));
    shard.start();
    while !shard.observer.all_finished() {
        assert!(shard.advance(), "{text}");
    }
    let end = shard.now() + Span::from_secs(seconds);
    while shard.now() < end && shard.advance() {}
    shard.observer.metrics.0.pairs()
}

/// One datagram in ten is lost, and reports of nodes overwrite no newer update. A few reports after the last end every
/// cache is exact to the nanosecond. Without reports many caches are wrong.
#[test]
fn reports_repair_lost_updates_exactly() {
    for spread in [
        "spread = \"datagrams\"",
        "spread = \"epidemic\", fan_out = 2, batch = false, update_delay = \"200ms\"",
    ] {
        let lossy = [SPREAD_DELAY, "network.loss=0.1"];
        let drifted = at_rest(&file(spread, &lossy), 60);
        let wrong = drifted.iter().filter(|(work, ..)| *work != 0).count();
        assert!(wrong > drifted.len() / 4, "{spread}: {wrong} of {}", drifted.len());
        let cured = at_rest(&file(&format!("{spread}, repair = \"3s\""), &lossy), 60);
        assert!(cured.iter().all(|&(work, truth, _)| (work, truth) == (0, 0)), "{spread}: {cured:?}");
    }
}

/// Fig. 16: a scheduler that starts late copies a cache while updates arrive. With numbered updates its cache ends
/// equal to the other caches. With naive copying, updates that arrive before the delayed answer count twice.
#[test]
fn a_late_scheduler_counts_no_update_twice() {
    let rest = |copy: &str| {
        let policy = format!("batch = false, copy = \"{copy}\", ask_timeout = \"4s\", answer_delay = \"3s\"");
        let late = "network.fault=[{crash={who=[\"scheduler:3\"], at=\"0s\", for=\"10s\"}}]";
        at_rest(&file(&policy, &[late]), 60)
    };
    let (numbered, naive) = (rest("numbered"), rest("naive"));
    assert!(numbered.iter().all(|&(work, truth, _)| (work, truth) == (0, 0)), "{numbered:?}");
    let (others, late) = naive.split_at(3 * 15);
    assert!(others.iter().all(|&(work, ..)| work == 0), "{others:?}");
    assert!(late.iter().any(|&(work, ..)| work != 0), "{late:?}");
}

/// Streams deliver every update, however late. Some of the thousand parts of a job's batch are late, and no part counts
/// as lost.
#[test]
fn late_parts_of_a_batch_do_not_count_as_lost() {
    for policy in ["batch = false", ""] {
        let text = loaded(policy, &load(4, 40, 12, 1000, "20s"));
        let rest = at_rest(&with(&text, &["network.one_way=5ms", "network.loss=0.01"]), 60);
        assert!(rest.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {rest:?}");
    }
}

/// Nodes crash and return before or after the detection, nodes and schedulers are partitioned, and streams lose one
/// transmission in fifty. After the faults every cache is exact to the nanosecond.
#[test]
fn healed_faults_leave_no_error_in_caches() {
    let faults = [
        "crash = { who = [\"nodes:2-4\"], at = \"20s\", for = \"1500ms\" }",
        "crash = { who = [\"node:5\"], at = \"40s\", for = \"20s\" }",
        "partition = { a = [\"scheduler:1\"], b = [\"nodes:6-9\"], at = \"70s\", for = \"25s\" }",
        "partition = { a = [\"scheduler:0\"], b = [\"scheduler:2\", \"node:1\"], at = \"110s\", for = \"15s\" }",
    ];
    let faults = format!("network.fault=[{}]", faults.map(|fault| format!("{{{fault}}}")).join(", "));
    let policies = [
        "",
        "batch = false",
        "decision_per_job = \"20ms\", decision_per_task = \"40ms\"",
        "update_delay = \"300ms\", order = \"srjf\"",
    ];
    for policy in policies {
        let rest = at_rest(&file(policy, &[SPREAD_DELAY, "network.loss=0.02", &faults]), 60);
        assert!(rest.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {rest:?}");
    }
}

/// Updates that a scheduler had not sent when it crashed are lost, while nodes still report the ends of its tasks: the
/// other schedulers expect too little work until nodes report.
#[test]
fn unsent_updates_are_lost_with_their_scheduler() {
    let rest = |repair: &str| {
        let policy = format!("batch = false, update_delay = \"2s\"{repair}");
        let who = "\"scheduler:1\", \"scheduler:2\", \"scheduler:3\"";
        let crash = format!("network.fault=[{{crash={{who=[{who}], at=\"60s\", for=\"5s\"}}}}]");
        at_rest(&file(&policy, &[&crash]), 60)
    };
    let (lost, cured) = (rest(""), rest(", repair = \"3s\""));
    assert!(lost.iter().any(|&(work, truth, _)| work < truth), "{lost:?}");
    assert!(cured.iter().all(|&(work, truth, _)| (work, truth) == (0, 0)), "{cured:?}");
}

/// A node runs as many tasks at once as its CPU and memory hold, and nodes may differ.
#[test]
fn nodes_run_as_many_tasks_as_fit() {
    let makespan = |cluster: &str, service: &str, tasks: u32| {
        let (cluster, service) =
            (format!("cluster={{{cluster}}}"), format!("service={{demand=\"1s\", {service}}}"));
        let text = loaded("", &load(1, 1, 1, tasks, "1s"));
        run(&with(&text, &[&cluster, &service, "network.one_way=0s"])).summary.makespan_s
    };
    let pods = "nodes=1, cores=110, cpu=16, memory=\"64 GiB\"";
    assert_eq!(makespan(pods, "cpu=0.1, memory=\"100 MiB\"", 220), 2.0, "110 pods");
    assert_eq!(makespan(pods, "cpu=0.2, memory=\"100 MiB\"", 220), 3.0, "80 by CPU");
    assert_eq!(makespan(pods, "cpu=0.1, memory=\"1 GiB\"", 220), 4.0, "64 by memory");
    let (small, large) = ("{nodes=2, cores=110, cpu=1}", "{nodes=1, cores=110, cpu=16}");
    let mixed = |kinds: [&str; 2]| makespan(&format!("kind=[{}]", kinds.join(", ")), "cpu=0.1", 240);
    // The nodes hold 10, 10 and 110 tasks at once and get 18, 19 and 203 of the 240 tasks: two rounds each.
    assert_eq!([mixed([small, large]), mixed([large, small])], [2.0; 2]);
}
