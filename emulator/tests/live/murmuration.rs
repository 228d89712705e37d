//! Murmuration in a whole system: what its paper counts, what its caches know, and that a message to
//! everybody may be one event.

use volary::runtime::virtual_time::measure;
use volary::runtime::{Watch, local};
use volary_actors::base::{ActorId, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::Note;
use volary_engine::metrics::Recorder;
use volary_engine::results::Measured;
use volary_engine::shard::{Observer, Parts, Placement, Shard};

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
    crate::common::run(text).remove(0)
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
            if let Some(&(work, ..)) = self.books.metrics.0.pairs().get(at as usize) {
                assert_eq!(believed, work, "scheduler {index} at {now}");
                self.beliefs += 1;
            }
        }
        self.books.note(now, who, note);
        for (work, truth, pending) in self.books.metrics.0.pairs() {
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
        let experiment = crate::common::parse(&file);
        let world = crate::common::worlds(&experiment).next().unwrap();
        for shared in [true, false] {
            let books = world.recorder(experiment.run.recording());
            let audit = Audit { books, layout: world.layout(), checked: 0, beliefs: 0 };
            let parts = Parts { shared, ..world.parts(Placement::ALONE).unwrap() };
            let mut shard = Shard::new(parts, audit);
            shard.start();
            while shard.advance() {}
            let audit = shard.observer;
            assert!(audit.books.all_finished() && audit.checked > 20_000 && audit.beliefs > 250);
            let quiet = audit.books.metrics.0.pairs();
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
            let experiment = crate::common::parse(&file);
            let world = crate::common::worlds(&experiment).next().unwrap();
            let together = measure("together", &world, &experiment.run, &Watch::default()).unwrap();
            assert_eq!(together.summary.jobs.finished, 300);
            let parts = Parts { shared: false, ..world.parts(Placement::ALONE).unwrap() };
            let mut shard = Shard::new(parts, world.recorder(experiment.run.recording()));
            shard.start();
            while !shard.observer.all_finished() && shard.advance() {}
            let (now, events) = (shard.now(), shard.events());
            let (sent, stats) = (shard.traffic().clone(), shard.fabric().stats().clone());
            let books = shard.observer.close(now);
            let what = format!("{policy}, {schedulers} schedulers");
            assert_eq!(books.rows, together.jobs, "{what}");
            assert_eq!(books.policy.staleness, together.summary.staleness, "{what}");
            assert_eq!(books.policy.looks, together.staleness, "{what}");
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

/// What everybody believes, the truth, and the news between, once all has ended and `seconds` more have passed.
fn at_rest(file: &str, seconds: u64) -> Vec<(i64, i64, i64)> {
    let experiment = crate::common::parse(file);
    let world = crate::common::worlds(&experiment).next().unwrap();
    let mut shard =
        Shard::new(world.parts(Placement::ALONE).unwrap(), world.recorder(experiment.run.recording()));
    shard.start();
    while !shard.observer.all_finished() {
        assert!(shard.advance(), "{file}");
    }
    let end = shard.now() + Span::from_secs(seconds);
    while shard.now() < end && shard.advance() {}
    shard.observer.metrics.0.pairs()
}

/// One datagram in ten is lost, and what nodes report undoes no newer news: a few reports after the last end nobody
/// is wrong by a nanosecond. Without reports many are.
#[test]
fn reports_cure_lost_news_to_the_last_nanosecond() {
    for spread in ["spread = \"datagrams\"", "spread = \"epidemic\", batch = false, update_delay = \"200ms\""]
    {
        let file = |policy: &str| {
            text(4, 15, 300, 5, "500ms", "{ exponential = { mean = \"50ms\" } }", policy)
                .replace("[[policy]]", "loss = 0.1\n[[policy]]")
        };
        let drifted = at_rest(&file(spread), 60);
        let wrong = drifted.iter().filter(|(work, ..)| *work != 0).count();
        assert!(wrong > drifted.len() / 4, "{spread}: {wrong} of {}", drifted.len());
        let cured = at_rest(&file(&format!("{spread}, repair = \"3s\"")), 60);
        assert!(cured.iter().all(|&(work, truth, _)| (work, truth) == (0, 0)), "{spread}: {cured:?}");
    }
}

/// Fig. 16: a scheduler that starts late copies a cache while news goes on. With numbered news it ends up knowing
/// what the others know; naively it counts twice what came while the answer lay.
#[test]
fn who_joins_late_counts_nothing_twice() {
    let rest = |copy: &str| {
        let policy = format!("batch = false, copy = \"{copy}\", ask_timeout = \"4s\", answer_delay = \"3s\"");
        let late = "[[network.fault]]\ncrash = { who = [\"scheduler:3\"], at = \"0s\", for = \"10s\" }";
        let file = text(4, 15, 300, 5, "500ms", "\"5ms\"", &policy);
        at_rest(&file.replace("[[policy]]", &format!("{late}\n[[policy]]")), 60)
    };
    let (numbered, naive) = (rest("numbered"), rest("naive"));
    assert!(numbered.iter().all(|&(work, truth, _)| (work, truth) == (0, 0)), "{numbered:?}");
    let (others, late) = naive.split_at(3 * 15);
    assert!(others.iter().all(|&(work, ..)| work == 0), "{others:?}");
    assert!(late.iter().any(|&(work, ..)| work != 0), "{late:?}");
}

/// A stream brings everything, however late: of a job that is told in a thousand parts some are, and none counts as
/// lost for that.
#[test]
fn a_part_that_is_late_is_not_lost() {
    for policy in ["batch = false", ""] {
        let file =
            text(4, 40, 12, 1000, "20s", "\"5ms\"", policy).replace("[[policy]]", "loss = 0.01\n[[policy]]");
        let rest = at_rest(&file, 60);
        assert!(rest.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {rest:?}");
    }
}

/// Nodes that crash and are back before or after anybody noticed, nodes and schedulers that cannot reach each other,
/// streams that lose one transmission in fifty: once all that is over, nobody is wrong by a nanosecond.
#[test]
fn what_heals_leaves_no_error_behind() {
    let faults = [
        "crash = { who = [\"nodes:2-4\"], at = \"20s\", for = \"1500ms\" }",
        "crash = { who = [\"node:5\"], at = \"40s\", for = \"20s\" }",
        "partition = { a = [\"scheduler:1\"], b = [\"nodes:6-9\"], at = \"70s\", for = \"25s\" }",
        "partition = { a = [\"scheduler:0\"], b = [\"scheduler:2\", \"node:1\"], at = \"110s\", for = \"15s\" }",
    ];
    let faults: String = faults.iter().map(|fault| format!("[[network.fault]]\n{fault}\n")).collect();
    let policies = [
        "",
        "batch = false",
        "decision_per_job = \"20ms\", decision_per_task = \"40ms\"",
        "update_delay = \"300ms\", order = \"srjf\"",
    ];
    for policy in policies {
        let file = text(4, 15, 300, 5, "500ms", "{ exponential = { mean = \"50ms\" } }", policy)
            .replace("[[policy]]", &format!("loss = 0.02\n{faults}[[policy]]"));
        let rest = at_rest(&file, 60);
        assert!(rest.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {rest:?}");
    }
}

/// What a scheduler had not told when it crashed nobody hears, though nodes tell that it is gone: others believe too
/// little, until nodes report.
#[test]
fn news_dies_with_its_maker() {
    let rest = |repair: &str| {
        let policy = format!("batch = false, update_delay = \"2s\"{repair}");
        let who = "\"scheduler:1\", \"scheduler:2\", \"scheduler:3\"";
        let fault = format!("[[network.fault]]\ncrash = {{ who = [{who}], at = \"60s\", for = \"5s\" }}");
        let file = text(4, 15, 300, 5, "500ms", "\"5ms\"", &policy);
        at_rest(&file.replace("[[policy]]", &format!("{fault}\n[[policy]]")), 60)
    };
    let (lost, cured) = (rest(""), rest(", repair = \"3s\""));
    assert!(lost.iter().any(|&(work, truth, _)| work < truth), "{lost:?}");
    assert!(cured.iter().all(|&(work, truth, _)| (work, truth) == (0, 0)), "{cured:?}");
}

/// A node runs as many tasks at once as its CPU and memory hold, and nodes may differ.
#[test]
fn nodes_hold_what_fits_on_them() {
    let makespan = |cluster: &str, service: &str, tasks: u32| {
        let file = text(1, 1, 1, tasks, "1s", "\"0s\"", "")
            .replace("nodes = 1\n", &format!("{cluster}\n"))
            .replace("demand = { exponential = { mean = \"1s\" } }", &format!("demand = \"1s\"\n{service}"));
        run(&file).summary.makespan_s
    };
    let pods = "nodes = 1\ncores = 110\ncpu = 16\nmemory = \"64 GiB\"";
    assert_eq!(makespan(pods, "cpu = 0.1\nmemory = \"100 MiB\"", 220), 2.0, "110 pods");
    assert_eq!(makespan(pods, "cpu = 0.2\nmemory = \"100 MiB\"", 220), 3.0, "80 by CPU");
    assert_eq!(makespan(pods, "cpu = 0.1\nmemory = \"1 GiB\"", 220), 4.0, "64 by memory");
    let mixed = |order: [&str; 2]| {
        let kinds = order.map(|kind| format!("[[cluster.kind]]\n{kind}"));
        let cluster = "[cluster]\n        schedulers = 1\n        ".to_owned() + &kinds.join("\n");
        let file = text(1, 1, 1, 240, "1s", "\"0s\"", "")
            .replace("[cluster]\n        nodes = 1\n        schedulers = 1", &cluster)
            .replace("demand = { exponential = { mean = \"1s\" } }", "demand = \"1s\"\ncpu = 0.1");
        run(&file).summary.makespan_s
    };
    let (small, large) = ("nodes = 2\ncores = 110\ncpu = 1", "nodes = 1\ncores = 110\ncpu = 16");
    // 10, 10 and 110 at once: 18, 19 and 203 of the 240, each node two rounds.
    assert_eq!([mixed([small, large]), mixed([large, small])], [2.0; 2]);
}

/// Gossip in real time: the same jobs, and staleness as in virtual time within the lateness budget.
#[test]
fn caches_are_as_stale_in_real_time() {
    let _machine = crate::machine();
    let policy = "batch = false, update_delay = \"80ms\"";
    let file = text(3, 12, 150, 3, "15ms", "\"20ms\"", policy).replace("mean = \"1s\"", "mean = \"20ms\"")
        + "\n[run.record]\nstaleness = \"10ms\"";
    let experiment = crate::common::parse(&file);
    let world = crate::common::worlds(&experiment).next().unwrap();
    let virtually = measure("virtual", &world, &experiment.run, &Watch::default()).unwrap().summary;
    let really = local::measure("local", world, &experiment.run, 2, None, &Watch::default()).unwrap().summary;
    assert_eq!((virtually.jobs, virtually.tasks), (really.jobs, really.tasks));
    let (a, b) = (virtually.staleness.unwrap(), really.staleness.unwrap());
    let certificate = really.fidelity.unwrap();
    assert!((0.08..0.1001).contains(&a.age_s.max), "{a:?}");
    assert!(b.age_s.max > 0.08, "{b:?}");
    if !crate::common::within_budget("staleness in real time", &certificate) {
        return;
    }
    // An update passes a timer and two deliveries.
    let late = 3.0 * crate::common::LATENESS_BUDGET_S.1;
    assert!(b.age_s.max < 0.1001 + late, "{b:?}, {certificate:?}");
    for (here, there) in [(b.age_s, a.age_s), (b.in_flight, a.in_flight), (b.error_s, a.error_s)] {
        let ratio = here.mean / there.mean;
        assert!((0.6..1.5).contains(&ratio), "{here:?} against {there:?}, {certificate:?}");
    }
}
