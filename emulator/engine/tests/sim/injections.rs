//! A profile that is injected into a run does what it would have done in the experiment.

use volary_actors::base::Time;
use volary_engine::cores::{CoreSet, Injection, Interference, Profile};
use volary_engine::metrics::{Books, Recorder, Recording};
use volary_engine::shard::{Placement, Shard};
use volary_engine::world::World;

const SEED: u64 = 7;

/// A small run of a policy; `interference` is the rest of its file.
fn file(policy: &str, interference: &str) -> String {
    let schedulers = if policy.starts_with("hedged") { 1 } else { 2 };
    format!(
        r#"
        title = "injections"
        seed = {SEED}
        [cluster]
        nodes = 6
        cores = 2
        schedulers = {schedulers}
        [workload.synthetic]
        jobs = 120
        tasks = 3
        interarrival = {{ exponential = {{ mean = "80ms" }} }}
        [service]
        demand = {{ exponential = {{ mean = "150ms" }} }}
        [network]
        one_way = "2ms"
        [[network.fault]]
        crash = {{ who = ["node:3"], at = "2500ms", for = "400ms" }}
        [[network.fault]]
        pause = {{ who = ["node:1"], at = "2200ms", for = "300ms" }}
        [[policy]]
        {policy}
        {interference}
        "#
    )
}

fn world(text: &str) -> World {
    crate::common::worlds(&crate::common::parse(text)).next().unwrap()
}

const BURSTS: &str =
    r#"markov = { slot = "40ms", p_on = 0.4, p_off = 0.3, slowdown = { uniform = { low = 2, high = 30 } } }"#;

fn profile() -> Profile {
    toml::from_str::<Interference>(BURSTS).unwrap().resolve().unwrap()
}

/// What is done to a run: when, and what.
type Deed = (Time, fn(&mut Shard<'_, Recorder<'_>>, Time));

/// Runs a world to its end, with what is done to it on the way.
fn run(world: &World, deeds: &[Deed]) -> Books {
    let books = world.recorder(Recording::default());
    let mut shard = Shard::new(world.parts(Placement::ALONE).unwrap(), books);
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

fn injection(from: Time, until: Time) -> Injection {
    Injection { profile: profile(), seed: SEED, cores: CoreSet::below(12), from, until }
}

const POLICIES: [&str; 5] =
    ["random = {}", "latin-square = { order = 2 }", "sparrow = {}", "hedged = {}", "murmuration = {}"];

#[test]
fn an_injection_is_as_good_as_the_same_profile_in_the_experiment() {
    for policy in POLICIES {
        let foreseen = format!("[interference]\nfrom = \"1s\"\nuntil = \"4s\"\n{BURSTS}");
        let foreseen = run(&world(&file(policy, &foreseen)), &[]);
        let (quiet, plain) = (world(&file(policy, "")), run(&world(&file(policy, "")), &[]));
        // Known from the beginning, announced ahead, and ended by surprise.
        let ways: [&[Deed]; 3] = [
            &[(at(0), |shard, now| {
                let _ = shard.inject(now, injection(at(1000), at(4000)));
            })],
            &[(at(950), |shard, now| {
                let _ = shard.inject(now, injection(at(1000), at(4000)));
            })],
            &[
                (at(1000), |shard, now| {
                    let _ = shard.inject(now, injection(at(0), Time::MAX));
                }),
                (at(4000), |shard, now| {
                    let _ = shard.lift(now, 0, &CoreSet::below(12));
                }),
            ],
        ];
        assert_ne!(plain.rows, foreseen.rows, "{policy}: it makes a difference");
        for (way, deeds) in ways.into_iter().enumerate() {
            let injected = run(&quiet, deeds);
            assert_eq!(injected.rows, foreseen.rows, "{policy}, way {way}");
            assert_eq!(injected.copies, foreseen.copies, "{policy}, way {way}");
        }
    }
}

/// An order that comes when its time is over does nothing, and says so.
#[test]
fn an_injection_that_comes_too_late_never_rules() {
    let (quiet, plain) = (world(&file("random = {}", "")), run(&world(&file("random = {}", "")), &[]));
    let late = run(
        &quiet,
        &[(at(2000), |shard, now| {
            assert_eq!(shard.inject(now, injection(at(1000), at(1500))), (0, now));
        })],
    );
    assert_eq!(late.rows, plain.rows);
}

/// A copy that is slowed down beyond the end of time is finished all the same when that is over.
#[test]
fn what_would_never_end_ends_when_the_injection_does() {
    fn stall(from: Time, until: Time) -> Injection {
        let text = r#"renewal = { gap = "0s", burst = "1000000h", slowdown = 1e12 }"#;
        let profile = toml::from_str::<Interference>(text).unwrap();
        let profile = profile.resolve().unwrap();
        Injection { profile, seed: SEED, cores: CoreSet::below(12), from, until }
    }
    for policy in POLICIES {
        let stalled = run(
            &world(&file(policy, "")),
            &[
                (at(1000), |shard, now| {
                    let _ = shard.inject(now, stall(now, Time::MAX));
                }),
                (at(60_000), |shard, now| {
                    let _ = shard.lift(now, 0, &CoreSet::below(12));
                }),
            ],
        );
        assert_eq!((stalled.jobs.finished, stalled.jobs.unfinished), (120, 0), "{policy}");
        let copies = stalled.copies;
        assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost, "{policy}");
        assert!(stalled.makespan > 60.0, "{policy}: {}", stalled.makespan);
    }
}

/// Nothing is changed about the past: one that comes late begins late, and says so.
#[test]
fn an_injection_that_comes_late_begins_late() {
    let world = world(&file("random = {}", ""));
    let late: &[Deed] = &[(at(2000), |shard, now| {
        assert_eq!(shard.inject(now, injection(at(1000), at(4000))).1, now);
        let drawn = shard.cores().bursts(0, Time::ZERO, at(4000)).next();
        assert!(drawn.is_some_and(|burst| burst.start >= now), "{drawn:?}");
    })];
    let in_time: &[Deed] = &[(at(2000), |shard, now| {
        let _ = shard.inject(now, injection(now, at(4000)));
    })];
    assert_eq!(run(&world, late).rows, run(&world, in_time).rows);
}
