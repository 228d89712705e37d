//! Histories of small worlds: every order of deliveries, timers and completions, with a budget of faults.
//!
//! A world is explored breadth first up to a number of states, with a few random streams for each draw; small ones are
//! explored completely. Jobs have no stages, deadlines or preferred nodes, nodes are not shared, and nothing pauses.
//!
//! From each state that a policy can reach, every job must finish once no further faults happen. It must finish exactly
//! once and with all its tasks, even while a node stays down that others can replace. No message may be unexpected
//! without a fault. No core may get two copies, no copy may begin twice or without end, and no machine may panic. A
//! last job, which arrives when all others have finished and needs all cores, meets the state that they left.
//!
//! Without a fault, nodes never get more copies than they may have, where the policy limits them (Kairos: N + Q), and a
//! cache of expected waits is empty when all jobs have ended and all messages have arrived.
//!
//! `VOLARY_STATES` sets the number of states of each world, and `VOLARY_POLICY` explores one policy only. A failure is
//! printed as a table of the shortest history, and as lines for `HISTORIES`, which repeat it.

#[path = "../common/mod.rs"]
mod common;
mod search;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::policies;
use search::{Explored, Step, explore};
use volary_actors::base::ActorId;
use volary_actors::policies::PolicySpec;
use world::{Budget, Failure, Setting, World, keep_panics};

const NONE: Budget = Budget { losses: 0, duplicates: 0, crashes: 0, partitions: 0, overtakes: 0 };

/// A kind of world: its name, schedulers, cores of each node, jobs, tasks of each job, faults.
type Shape = (&'static str, u32, &'static [u32], u32, u32, Budget);

/// The worlds in which every policy is explored.
const WORLDS: &[Shape] = &[
    ("no fault, one scheduler", 1, &[1, 1], 2, 2, NONE),
    ("no fault, two schedulers", 2, &[1, 1], 2, 1, NONE),
    ("no fault, two cores", 1, &[2, 1], 1, 3, NONE),
    ("no fault, messages overtaken", 1, &[1, 1], 2, 1, Budget { overtakes: 3, ..NONE }),
    ("one loss", 1, &[1, 1], 1, 2, Budget { losses: 1, overtakes: 1, ..NONE }),
    ("one duplicate", 1, &[1, 1], 1, 2, Budget { duplicates: 1, overtakes: 1, ..NONE }),
    ("one crash", 1, &[1, 1], 1, 2, Budget { crashes: 1, overtakes: 1, ..NONE }),
    ("one crash, three nodes", 1, &[1, 1, 1], 2, 3, Budget { crashes: 1, ..NONE }),
    ("one crash, two schedulers", 2, &[1, 1], 2, 1, Budget { crashes: 1, ..NONE }),
    ("one partition", 1, &[1, 1], 1, 2, Budget { partitions: 1, overtakes: 1, ..NONE }),
    ("one crash, one partition", 1, &[1, 1], 1, 1, Budget { crashes: 1, partitions: 1, ..NONE }),
    ("one crash, one partition, one node", 1, &[1], 1, 1, Budget { crashes: 1, partitions: 1, ..NONE }),
    ("one crash, one loss", 1, &[1, 1], 1, 2, Budget { crashes: 1, losses: 1, ..NONE }),
    ("two crashes, one node", 1, &[1], 2, 1, Budget { crashes: 2, ..NONE }),
];

/// Histories that failed once, in the explorer's format: the policy, the world, then the moves.
const HISTORIES: &str = include_str!("histories.txt");

fn setting(policy: &PolicySpec, world: &Shape) -> Option<Setting> {
    let (_, schedulers, cores, jobs, tasks, budget) = world;
    Setting::new(policy, *schedulers, cores, *jobs, *tasks, *budget)
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
fn every_job_finishes_from_every_state_under_every_policy() {
    keep_panics();
    let only = std::env::var("VOLARY_POLICY").ok();
    let policies: Vec<_> = policies(2)
        .into_iter()
        .filter(|policy| only.as_ref().is_none_or(|name| name == policy.name()))
        .collect();
    assert!(!policies.is_empty(), "no policy is named {only:?}");
    let cases: Vec<_> =
        policies.iter().flat_map(|policy| WORLDS.iter().map(move |world| (policy, world))).collect();
    for policy in &policies {
        assert!(
            WORLDS.iter().any(|world| setting(policy, world).is_some()),
            "no world has a place for {policy:?}"
        );
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(0));
    let work = || {
        while let Some((policy, world)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(setting) = setting(policy, world) else { continue };
            #[expect(clippy::disallowed_methods, reason = "the table states the time of each search")]
            let clock = Instant::now();
            let explored = explore(&setting, limit());
            eprintln!("{}", row(policy, world.0, &explored, clock.elapsed().as_secs_f64()));
            if let Some((failure, path)) = explored.failure {
                eprintln!("{policy:?}, {}: {failure:?}\n{}", world.0, shown(&setting, world.0, &path));
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
    let world = WORLDS.iter().find(|world| world.0 == "one crash").unwrap();
    let unrepaired = Setting { repairs: false, ..setting(&policy, world).unwrap() };
    let (failure, path) = explore(&unrepaired, 10_000).failure.unwrap();
    assert!(matches!(failure, Failure::Stuck(_)), "{failure:?}");
    assert!(path.len() < 16, "{path:?}");
    let lines = shown(&unrepaired, world.0, &path);
    assert!(lines.contains("crash node:"), "{lines}");
    // With the policy's repairs the same history ends well.
    let repaired = setting(&policy, world).unwrap();
    let printed = lines.split("\n\n").last().unwrap();
    let mut moves = printed.lines().skip(2).collect::<Vec<_>>();
    let broken = World::repeat(&unrepaired, &moves);
    assert!([true, false].iter().any(|down| broken.kind_move(*down).is_none()), "{printed}");
    moves.retain(|line| !line.contains("last job"));
    search::finish(&World::repeat(&repaired, &moves), &mut Default::default()).unwrap();
    assert!(explore(&repaired, 10_000).failure.is_none());
}

#[test]
fn histories_that_failed_once_end_well() {
    keep_panics();
    for history in HISTORIES.split("\n\n").map(str::trim).filter(|history| !history.is_empty()) {
        let mut lines = history.lines().filter(|line| !line.starts_with('#'));
        let (Some(policy), Some(name)) = (lines.next(), lines.next()) else { continue };
        let world =
            WORLDS.iter().find(|world| world.0 == name).unwrap_or_else(|| panic!("no world is named {name}"));
        let setting = setting(&serde_json::from_str(policy).unwrap(), world).unwrap();
        let state = World::repeat(&setting, &lines.collect::<Vec<_>>());
        search::finish(&state, &mut Default::default()).unwrap();
    }
}
