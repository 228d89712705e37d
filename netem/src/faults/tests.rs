//! Tests of schedules of faults and of windows of time.

use super::{CrashSpec, PauseSpec, *};
use crate::faults::target::Groups;
use crate::units::Probability;

fn s(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

fn t(seconds: u64) -> Time {
    Time::ZERO + s(seconds)
}

fn who(text: &str) -> Vec<Target> {
    vec![text.parse().unwrap()]
}

fn groups() -> Groups {
    let mut groups = Groups::new(6);
    groups.number("scheduler", Endpoint(0), 2);
    groups.number("node", Endpoint(2), 4);
    groups
}

fn resolve(specs: &[FaultSpec]) -> Result<Faults, Error> {
    Faults::resolve(specs, &groups(), 6)
}

#[test]
fn overlapping_outages_count_as_one_outage() {
    let crash = |w, at, lasting: Option<u64>| {
        FaultSpec::Crash(CrashSpec { who: who(w), at: s(at), lasting: lasting.map(s) })
    };
    let specs = [
        crash("node:1", 20, None),
        crash("node:0", 5, Some(5)),
        crash("node:0", 8, Some(7)),
        crash("node:0", 1, Some(1)),
    ];
    let faults = resolve(&specs).unwrap();
    let crash =
        |who, at, restart: Option<u64>| Crash { who: Endpoint(who), at: t(at), restart: restart.map(t) };
    assert_eq!(faults.crashes(), [crash(2, 1, Some(2)), crash(2, 5, Some(15)), crash(3, 20, None)]);
    assert_eq!(faults.heals_at(), t(20), "a permanent crash changes nothing after its beginning");
    let down: Vec<_> = (0..25).filter(|&i| !faults.alive(Endpoint(2), t(i))).collect();
    assert_eq!(down, [1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    assert!(!faults.alive(Endpoint(3), Time::MAX.min(t(1_000_000))));
    assert!(faults.alive(Endpoint(4), t(7)));
}

#[test]
fn paused_endpoints_resume_at_the_end_of_their_window() {
    let pause =
        |at, lasting| FaultSpec::Pause(PauseSpec { who: who("nodes:0-1"), at: s(at), lasting: s(lasting) });
    let faults = resolve(&[pause(3, 2), pause(5, 1), pause(9, 1)]).unwrap();
    assert_eq!(faults.pauses(Endpoint(3)), [(t(3), t(6)), (t(9), t(10))]);
    assert_eq!(faults.resumes(Endpoint(3), t(4)), t(6));
    assert_eq!(faults.resumes(Endpoint(3), t(6)), t(6));
    assert_eq!(faults.resumes(Endpoint(4), t(4)), t(4), "nodes 2 and 3 are not paused");
    assert_eq!(faults.heals_at(), t(10));
}

fn partition(a: &str, b: Option<&str>, one_way: bool) -> FaultSpec {
    FaultSpec::Partition(PartitionSpec { a: who(a), b: b.map(who), at: s(10), lasting: s(5), one_way })
}

#[test]
fn partitions_have_a_direction_and_a_duration() {
    let faults = resolve(&[partition("schedulers", Some("node:0"), true)]).unwrap();
    let (scheduler, node, other) = (Endpoint(1), Endpoint(2), Endpoint(3));
    assert!(faults.cut(scheduler, node, t(10), t(10)));
    assert!(faults.cut(scheduler, node, t(9), t(10)), "messages in flight are lost");
    assert!(!faults.cut(scheduler, node, t(8), t(9)) && !faults.cut(scheduler, node, t(15), t(15)));
    assert!(!faults.cut(node, scheduler, t(12), t(12)), "the partition is one-way");
    assert!(!faults.cut(scheduler, other, t(12), t(12)));
    let faults = resolve(&[partition("node:0", None, false)]).unwrap();
    assert!(faults.cut(node, other, t(12), t(12)) && faults.cut(other, node, t(12), t(12)));
    assert!(!faults.cut(scheduler, other, t(12), t(12)), "other endpoints are not affected");
}

fn slow(delay_factor: f64, loss: f64) -> DegradeSpec {
    DegradeSpec {
        a: who("node:0"),
        b: None,
        at: s(1),
        lasting: s(4),
        delay_factor,
        loss: Probability::new(loss).unwrap(),
        one_way: true,
    }
}

#[test]
fn a_one_way_degradation_does_not_affect_the_other_direction() {
    let faults = resolve(&[FaultSpec::Degrade(slow(3.0, 0.0))]).unwrap();
    let (node, other) = (Endpoint(2), Endpoint(4));
    assert_eq!(faults.degraded(node, other, t(1)).unwrap().factor, 3.0);
    assert_eq!(faults.degraded(other, node, t(1)), None);
}

#[test]
fn overlapping_degradations_combine_their_factors_and_losses() {
    let degrade = |factor, loss| FaultSpec::Degrade(DegradeSpec { one_way: false, ..slow(factor, loss) });
    let faults = resolve(&[degrade(3.0, 0.5), degrade(2.0, 0.5)]).unwrap();
    let both = faults.degraded(Endpoint(4), Endpoint(2), t(1)).unwrap();
    assert_eq!((both.factor, both.loss), (6.0, 0.75));
    assert_eq!(faults.degraded(Endpoint(4), Endpoint(2), t(5)), None);
    assert_eq!(faults.degraded(Endpoint(4), Endpoint(3), t(1)), None);
    let error = resolve(&[degrade(1.0, 0.0)]).unwrap_err().to_string();
    assert!(error.starts_with("network.fault[0].degrade: no change is given"), "{error}");
}

/// A run of a policy without masters skips faults that affect only masters.
#[test]
fn faults_at_absent_kinds_are_skipped() {
    let mut groups = groups();
    groups.number_some("master", Endpoint(0), 0);
    let crash = |at: &[&str]| {
        let who = at.iter().flat_map(|at| who(at)).collect();
        FaultSpec::Crash(CrashSpec { who, at: s(50), lasting: None })
    };
    let specs = [
        crash(&["master:7"]),
        crash(&["masters", "node:1"]),
        partition("masters", None, false),
        partition("nodes", Some("masters"), false),
        partition("node:0", Some("node:1"), false),
    ];
    let faults = Faults::resolve(&specs, &groups, 6).unwrap();
    assert_eq!(faults.skipped(), [0, 2, 3]);
    assert_eq!((faults.crashes().len(), faults.cuts.len()), (1, 1));
    let none = Faults::resolve(&specs[..1], &groups, 6).unwrap();
    assert!(none.is_empty() && none.heals_at() == Time::ZERO, "skipped faults leave no trace");
}

#[test]
fn invalid_faults_are_refused_with_their_key() {
    for (spec, says) in [
        (
            partition("node:9", None, false),
            "network.fault[0].partition.a: `node:9` names nothing here; there are 4",
        ),
        (
            partition("nodes", Some("node:1"), false),
            "network.fault[0].partition.b: an endpoint is on both sides",
        ),
        (partition("all", None, false), "network.fault[0].partition.a: no endpoint is left"),
    ] {
        let error = resolve(&[spec]).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn overlapping_windows_are_joined_and_lookups_find_them() {
    let all = [(2, 50, 60), (1, 30, 40), (1, 10, 20), (1, 15, 30), (1, 80, 90)];
    let windows = Windows::new(all.map(|(unit, from, until)| (unit, Time(from), Time(until))), 3);
    assert_eq!(windows.after(1, Time(0)), [(Time(10), Time(40)), (Time(80), Time(90))]);
    assert_eq!(windows.after(1, Time(40)), [(Time(80), Time(90))]);
    assert!(windows.after(1, Time(90)).is_empty() && windows.of(0).is_empty());
    for (unit, at, holds) in [(1, 9, false), (1, 10, true), (1, 39, true), (1, 40, false), (2, 55, true)] {
        assert_eq!(windows.at(unit, Time(at)).is_some(), holds, "unit {unit} at {at}");
    }
}
