//! Histories of small worlds: every order of deliveries, timers and completions, with a budget of faults.
//!
//! A world is explored breadth first up to a number of states, with a few random streams for each draw; small worlds
//! are explored completely. Jobs have no preferred nodes, nodes are not shared, and no actor pauses.
//!
//! From each state that a policy can reach, every job must finish once no further faults happen. It must finish exactly
//! once and with all its tasks, even if a node that others can replace stays down. No message may be unexpected without
//! a fault. No core may get two copies, no copy may begin twice or without end, and no machine may panic. A last job,
//! which arrives when all others have finished and needs all cores, meets the state that they left.
//!
//! Without a fault, further conditions hold. Nodes never get more copies than the policy allows (Kairos: N + Q). A
//! master of Pigeon gives copies to idle workers only. A cache of expected waits is empty when all jobs have ended and
//! all messages have arrived; if Murmuration loses no update with its sender, this holds after faults too.
//!
//! In groups that gossip, once faults end and a few seconds have passed, every live member has all updates from
//! before that time, and has declared another member dead if and only if that member is down.
//!
//! `VOLARY_STATES` sets the number of states of each world, and `VOLARY_POLICY` explores one policy only. A failure is
//! printed as a table of the shortest history, and as lines for `HISTORIES`, which repeat it.

#[path = "../common/mod.rs"]
mod common;
mod mutants;
mod search;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::{gossiping, policies};
use search::{Explored, Step, explore};
use volary_actors::base::ActorId;
use volary_actors::harness::{JOIN, PAIR, SINGLE};
use volary_actors::policies::PolicySpec;
use world::{Budget, Failure, Setting, Shape, World, keep_panics};

const NONE: Budget = Budget { losses: 0, duplicates: 0, crashes: 0, partitions: 0, one_way: 0, overtakes: 0 };

/// A world of one scheduler, two nodes of one core, and a job of two tasks, without faults.
const PLAIN: Shape = Shape {
    name: "",
    schedulers: 1,
    cores: &[1, 1],
    jobs: 1,
    tasks: 2,
    stages: SINGLE,
    deadlines: false,
    budget: NONE,
};

/// A world of three members that gossip, without faults.
const GROUP: Shape = Shape { cores: &[0, 0, 0], jobs: 0, tasks: 0, ..PLAIN };

/// The worlds in which policies are explored: worlds with jobs for policies that run jobs, and groups for policies that
/// gossip.
const WORLDS: &[Shape] = &[
    Shape { name: "no fault, one scheduler", jobs: 2, ..PLAIN },
    Shape { name: "no fault, two schedulers", schedulers: 2, jobs: 2, tasks: 1, ..PLAIN },
    Shape { name: "no fault, two cores", cores: &[2, 1], tasks: 3, ..PLAIN },
    Shape {
        name: "no fault, messages overtaken",
        jobs: 2,
        tasks: 1,
        budget: Budget { overtakes: 3, ..NONE },
        ..PLAIN
    },
    Shape { name: "one loss", budget: Budget { losses: 1, overtakes: 1, ..NONE }, ..PLAIN },
    Shape { name: "one duplicate", budget: Budget { duplicates: 1, overtakes: 1, ..NONE }, ..PLAIN },
    Shape { name: "one crash", budget: Budget { crashes: 1, overtakes: 1, ..NONE }, ..PLAIN },
    Shape {
        name: "one crash, three nodes",
        cores: &[1, 1, 1],
        jobs: 2,
        tasks: 3,
        budget: Budget { crashes: 1, ..NONE },
        ..PLAIN
    },
    Shape {
        name: "one crash, two schedulers",
        schedulers: 2,
        jobs: 2,
        tasks: 1,
        budget: Budget { crashes: 1, ..NONE },
        ..PLAIN
    },
    Shape {
        name: "one crash, stages",
        jobs: 2,
        tasks: 1,
        stages: PAIR,
        budget: Budget { crashes: 1, overtakes: 1, ..NONE },
        ..PLAIN
    },
    Shape {
        name: "one crash, graph of stages",
        jobs: 4,
        tasks: 1,
        stages: JOIN,
        budget: Budget { crashes: 1, ..NONE },
        ..PLAIN
    },
    Shape {
        name: "one crash, deadlines",
        jobs: 2,
        deadlines: true,
        budget: Budget { crashes: 1, ..NONE },
        ..PLAIN
    },
    Shape { name: "one partition", budget: Budget { partitions: 1, overtakes: 1, ..NONE }, ..PLAIN },
    Shape {
        name: "one partition, two schedulers",
        schedulers: 2,
        jobs: 2,
        tasks: 1,
        budget: Budget { partitions: 1, ..NONE },
        ..PLAIN
    },
    Shape { name: "one cut in one direction", budget: Budget { one_way: 1, overtakes: 1, ..NONE }, ..PLAIN },
    Shape {
        name: "one crash, one partition",
        tasks: 1,
        budget: Budget { crashes: 1, partitions: 1, ..NONE },
        ..PLAIN
    },
    Shape {
        name: "one crash, one partition, one node",
        cores: &[1],
        tasks: 1,
        budget: Budget { crashes: 1, partitions: 1, ..NONE },
        ..PLAIN
    },
    Shape { name: "one crash, one loss", budget: Budget { crashes: 1, losses: 1, ..NONE }, ..PLAIN },
    Shape {
        name: "two crashes, one node",
        cores: &[1],
        jobs: 2,
        tasks: 1,
        budget: Budget { crashes: 2, ..NONE },
        ..PLAIN
    },
    Shape { name: "members, no fault", budget: Budget { overtakes: 2, ..NONE }, ..GROUP },
    Shape { name: "members, one loss", budget: Budget { losses: 1, overtakes: 1, ..NONE }, ..GROUP },
    Shape { name: "members, one duplicate", budget: Budget { duplicates: 1, overtakes: 1, ..NONE }, ..GROUP },
    Shape { name: "members, one crash", budget: Budget { crashes: 1, overtakes: 1, ..NONE }, ..GROUP },
    Shape { name: "members, one partition", budget: Budget { partitions: 1, overtakes: 1, ..NONE }, ..GROUP },
    Shape {
        name: "members, one cut in one direction",
        budget: Budget { one_way: 1, overtakes: 1, ..NONE },
        ..GROUP
    },
    Shape { name: "members, one crash, one loss", budget: Budget { crashes: 1, losses: 1, ..NONE }, ..GROUP },
];

/// Histories that failed once, in the explorer's format: the policy, the world, then the moves.
const HISTORIES: &str = include_str!("histories.txt");

/// The world with this name.
fn world(name: &str) -> &'static Shape {
    WORLDS.iter().find(|world| world.name == name).unwrap_or_else(|| panic!("no world is named {name}"))
}

/// The number of states of each world.
fn limit() -> usize {
    std::env::var("VOLARY_STATES").map_or(500, |text| text.parse().expect("VOLARY_STATES is a number"))
}

fn table(policy: &PolicySpec) -> String {
    serde_json::to_string(policy).expect("parameters are plain values")
}

/// A row of the table of results: policy, world, number of states, whether these are all states, seconds, and the
/// failure.
fn row(policy: &PolicySpec, world: &str, explored: &Explored, seconds: f64) -> String {
    let how = if explored.complete { "complete" } else { "cut" };
    let failure = explored.failure.as_ref().map_or(String::new(), |(failure, _)| format!("{failure:?}"));
    format!("| {} | {world} | {} | {how} | {seconds:.1} | {failure} |", policy.name(), explored.states)
}

/// Largest number of rows of a printed history.
const LONGEST_TABLE: usize = 300;

/// A history as a table of time, actor, input and effects, and as lines for `HISTORIES`.
fn shown(setting: &Setting, world: &str, path: &[Step]) -> String {
    let (mut out, mut rows) = (String::new(), 0);
    let mut lines = format!("{}\n{world}\n", table(&setting.policy));
    let mut at = World::new(setting).expect("this world started before");
    at.history = Some(Vec::new());
    for &(step, stream) in path {
        lines += &format!("{stream} {}\n", at.describe(step));
        let failed = at.make(step, stream).is_err();
        for row in at.history.iter_mut().flat_map(std::mem::take).take(LONGEST_TABLE.saturating_sub(rows)) {
            rows += 1;
            let name =
                if row.actor == ActorId(u32::MAX) { "fault".to_owned() } else { setting.name(row.actor) };
            out += &format!("{:>9.4} s {name:<14} {}\n", row.at.as_secs_f64(), row.input);
            row.effects.iter().for_each(|effect| out += &format!("{:>28} {effect}\n", ""));
        }
        if failed {
            break;
        }
    }
    out + "\n" + &lines
}

#[test]
fn every_job_finishes_and_every_update_spreads_from_every_state_under_every_policy() {
    keep_panics();
    let only = std::env::var("VOLARY_POLICY").ok();
    let policies: Vec<_> = policies(2)
        .into_iter()
        .chain(gossiping())
        .filter(|policy| only.as_ref().is_none_or(|name| name == policy.name()))
        .collect();
    assert!(!policies.is_empty(), "no policy is named {only:?}");
    let cases: Vec<_> =
        policies.iter().flat_map(|policy| WORLDS.iter().map(move |world| (policy, world))).collect();
    for policy in &policies {
        assert!(
            WORLDS.iter().any(|world| Setting::new(policy, world).is_some()),
            "no world suits {policy:?}"
        );
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(0));
    let work = || {
        while let Some((policy, world)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(setting) = Setting::new(policy, world) else { continue };
            #[expect(clippy::disallowed_methods, reason = "the table states the time of each search")]
            let clock = Instant::now();
            let explored = explore(&setting, limit());
            eprintln!("{}", row(policy, world.name, &explored, clock.elapsed().as_secs_f64()));
            if let Some((failure, path)) = explored.failure {
                eprintln!("{policy:?}, {}: {failure:?}\n{}", world.name, shown(&setting, world.name, &path));
                *failures.lock().unwrap() += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    assert_eq!(failures.into_inner().unwrap(), 0, "some worlds fail");
}

/// The explorer finds defects: Sparrow without its repairs loses a job in a crash.
#[test]
fn a_policy_without_repairs_is_caught_with_a_short_history() {
    keep_panics();
    let policy = toml::from_str("sparrow = { form = \"per-task\" }").unwrap();
    let world = world("one crash");
    let unrepaired = Setting { repairs: false, ..Setting::new(&policy, world).unwrap() };
    let (failure, path) = explore(&unrepaired, 10_000).failure.unwrap();
    assert!(matches!(failure, Failure::Stuck(_)), "{failure:?}");
    assert!(path.len() < 16, "{path:?}");
    let lines = shown(&unrepaired, world.name, &path);
    assert!(lines.contains("crash node:"), "{lines}");
    // With the policy's repairs the same history ends well.
    let repaired = Setting::new(&policy, world).unwrap();
    let printed = lines.split("\n\n").last().unwrap();
    let mut moves = printed.lines().skip(2).collect::<Vec<_>>();
    let broken = World::repeat(&unrepaired, &moves);
    assert!([true, false].iter().any(|down| broken.kind_move(*down).is_none()), "{printed}");
    moves.retain(|line| !line.contains("last job"));
    search::finish(&World::repeat(&repaired, &moves), &mut Default::default()).unwrap();
    assert!(explore(&repaired, 10_000).failure.is_none());
}

#[test]
fn recorded_histories_that_once_failed_no_longer_fail() {
    keep_panics();
    for history in HISTORIES.split("\n\n").map(str::trim).filter(|history| !history.is_empty()) {
        let mut lines = history.lines().filter(|line| !line.starts_with('#'));
        let (Some(policy), Some(name)) = (lines.next(), lines.next()) else { continue };
        let setting = Setting::new(&serde_json::from_str(policy).unwrap(), world(name)).unwrap();
        let state = World::repeat(&setting, &lines.collect::<Vec<_>>());
        search::finish(&state, &mut Default::default()).unwrap();
    }
}
