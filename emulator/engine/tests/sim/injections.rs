//! Profiles that are injected into a run, compared with the same profile in the experiment.

use volary_actors::base::CoreSet;
use volary_actors::base::Time;
use volary_engine::cores::{Injection, Interference};
use volary_engine::metrics::{Accounts, Recorder, Recording};
use volary_engine::shard::{Placement, Shard};
use volary_engine::world::World;

use crate::common::{FAULTY, with, world};

const BURSTS: &str =
    "markov = { slot = \"40ms\", p_on = 0.4, p_off = 0.3, slowdown = { uniform = { low = 2, high = 30 } } }";
/// A burst in which a copy would not finish before the end of emulated time.
const STALL: &str = "renewal = { gap = \"0s\", burst = \"1000000h\", slowdown = 1e12 }";

const POLICIES: [&str; 5] =
    ["random = {}", "latin-square = { order = 2 }", "sparrow = {}", "hedged = {}", "murmuration = {}"];

/// The world of a policy with one scheduler, and with the further values of `set`.
fn faulty(policy: &str, set: &[&str]) -> World {
    let faults = "network.fault=[{crash={who=[\"node:3\"], at=\"2500ms\", for=\"400ms\"}}, \
                  {pause={who=[\"node:1\"], at=\"2200ms\", for=\"300ms\"}}]";
    let set = [&["cluster.schedulers=1", "workload.synthetic.jobs=120", faults], set].concat();
    world(&with(&format!("{FAULTY}[[policy]]\n{policy}\n"), &set))
}

/// An action on a run, with its time.
type Deed<'a> = (Time, &'a dyn Fn(&mut Shard<'_, Recorder<'_>>, Time));

/// Runs a world to its end, with these actions.
fn run(world: &World, deeds: &[Deed<'_>]) -> Accounts {
    let recorder = world.recorder(Recording::default());
    let mut shard = Shard::new(world.parts(Placement::ALONE, true).unwrap(), recorder);
    shard.expect_injections();
    shard.start();
    for &(at, deed) in deeds {
        while shard.next().is_some_and(|due| due < at) {
            shard.advance();
        }
        deed(&mut shard, at);
    }
    while !shard.observer.all_finished() && shard.advance() {}
    let now = shard.now();
    shard.observer.close(now)
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn every_core() -> CoreSet {
    CoreSet::below(24)
}

/// Injects a profile into every core; returns the injection's number and its start.
fn inject(
    shard: &mut Shard<'_, Recorder<'_>>,
    now: Time,
    profile: &str,
    [from, until]: [Time; 2],
) -> (usize, Time) {
    let profile = toml::from_str::<Interference>(profile).unwrap().resolve().unwrap();
    shard.inject(now, Injection { profile, seed: 7, cores: every_core(), from, until })
}

fn lift(shard: &mut Shard<'_, Recorder<'_>>, now: Time) {
    let _ = shard.lift(now, 0, &every_core());
}

/// Injects bursts for a time.
fn bursts(during: [Time; 2]) -> impl Fn(&mut Shard<'_, Recorder<'_>>, Time) {
    move |shard, now| {
        let _ = inject(shard, now, BURSTS, during);
    }
}

#[test]
fn an_injection_equals_the_same_profile_in_the_experiment() {
    for policy in POLICIES {
        let foreseen = format!("interference={{ from = \"1s\", until = \"4s\", {BURSTS} }}");
        let foreseen = run(&faulty(policy, &[&foreseen]), &[]);
        let quiet = faulty(policy, &[]);
        assert_ne!(run(&quiet, &[]).rows, foreseen.rows, "{policy}: it makes a difference");
        // The injection is known from the beginning, announced ahead, or ended without notice.
        let (bounded, open) = (bursts([at(1000), at(4000)]), bursts([at(0), Time::MAX]));
        let ways: [&[Deed<'_>]; 3] =
            [&[(at(0), &bounded)], &[(at(950), &bounded)], &[(at(1000), &open), (at(4000), &lift)]];
        for (way, deeds) in ways.into_iter().enumerate() {
            let injected = run(&quiet, deeds);
            assert_eq!(injected.rows, foreseen.rows, "{policy}, way {way}");
            assert_eq!(injected.copies, foreseen.copies, "{policy}, way {way}");
        }
    }
}

/// Injections do not change the past. A late injection begins when it arrives, or never if its time is over.
#[test]
fn a_late_injection_begins_late_or_never() {
    let quiet = faulty("random = {}", &[]);
    let over = run(
        &quiet,
        &[(at(2000), &|shard, now| {
            assert_eq!(inject(shard, now, BURSTS, [at(1000), at(1500)]), (0, now));
        })],
    );
    assert_eq!(over.rows, run(&quiet, &[]).rows);
    let late = run(
        &quiet,
        &[(at(2000), &|shard, now| {
            assert_eq!(inject(shard, now, BURSTS, [at(1000), at(4000)]).1, now);
            let drawn = shard.cores().bursts(0, Time::ZERO, at(4000)).next();
            assert!(drawn.is_some_and(|burst| burst.start >= now), "{drawn:?}");
        })],
    );
    assert_eq!(late.rows, run(&quiet, &[(at(2000), &bursts([at(2000), at(4000)]))]).rows);
}

/// A copy that is slowed down beyond the end of time still finishes once the injection is over.
#[test]
fn a_stalled_copy_ends_after_the_injection() {
    let stall = |shard: &mut Shard<'_, Recorder<'_>>, now| {
        let _ = inject(shard, now, STALL, [now, Time::MAX]);
    };
    for policy in POLICIES {
        let stalled = run(&faulty(policy, &[]), &[(at(1000), &stall), (at(60_000), &lift)]);
        assert_eq!((stalled.jobs.finished, stalled.jobs.unfinished), (120, 0), "{policy}");
        let copies = stalled.copies;
        assert_eq!(
            copies.started,
            copies.finished + copies.preempted + copies.lost + copies.in_progress,
            "{policy}"
        );
        assert!(stalled.makespan > 60.0, "{policy}: {}", stalled.makespan);
    }
}
