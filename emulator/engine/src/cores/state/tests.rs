//! Copies on shared nodes.

use proptest::prelude::*;
use volary_netem::Windows;

use super::*;
use crate::cores::{CoreTable, Interference};

const SECOND: u64 = 1_000_000_000;

fn segment(cpu: u32, until_s: u64) -> Segment {
    Segment { cpu, memory: 0, until: if until_s == 0 { Span::MAX } else { Span::from_secs(until_s) } }
}

fn node(cpu: u32, pods: u32) -> Cores {
    Cores::new(None, CoreTable::equal(1, pods), Windows::default(), 1).with_shares(vec![cpu])
}

fn out(cores: &mut Cores, now: u64) -> Vec<Change> {
    let mut changes = Vec::new();
    cores.share_out(0, Time(now), &mut changes);
    changes
}

fn begin(cores: &mut Cores, core: u32, now: u64, work: Span, request: u32, segment: Segment) {
    cores.begin_shared(core, Time(now), (work, work), request, segment);
}

/// A segment of 15 s that would use 4 cores and is given 2 takes 30 s.
#[test]
fn throttling_stretches_a_segment() {
    let mut cores = node(2000, 2);
    begin(&mut cores, 0, 0, Span::from_secs(20), 1000, segment(4000, 15));
    let [change] = out(&mut cores, 0)[..] else { panic!() };
    assert_eq!(change.next, Some((Next::Segment, 30 * SECOND)));
    assert_eq!((change.demand, change.given), (4000, 2000));
    cores.use_as(0, Time(30 * SECOND), |_| segment(1000, 0));
    let [change] = out(&mut cores, 30 * SECOND)[..] else { panic!() };
    assert_eq!(change.next, Some((Next::Done, 35 * SECOND)), "the rest is not throttled");
    cores.finished(0, Time(35 * SECOND));
    let used = cores.shared_use(Time(35 * SECOND)).unwrap();
    let (time, throttled) = (u128::from(35 * SECOND), u128::from(30 * SECOND));
    assert_eq!((used.time, used.throttled, used.throttles), (time, throttled, 1));
    assert_eq!(used.used, u128::from(65_000 * SECOND), "15 s of 4 cores and 5 s of one");
    assert_eq!((used.useful, used.in_progress), (used.used, 0));
    assert_eq!(used.given, used.used, "nothing slows the CPU down");
}

/// A run that is cut counts the work of its open copies as neither useful nor wasted.
#[test]
fn work_of_open_copies_is_neither_useful_nor_wasted() {
    let mut cores = node(2000, 2);
    begin(&mut cores, 0, 0, Span::from_secs(60), 1000, segment(4000, 0));
    out(&mut cores, 0);
    let used = cores.shared_use(Time(30 * SECOND)).unwrap();
    assert_eq!((used.used, used.useful), (u128::from(60_000 * SECOND), 0));
    assert_eq!((used.in_progress, used.given), (used.used, used.used));
    assert_eq!(used.throttled, u128::from(30 * SECOND));
    begin(&mut cores, 1, 30 * SECOND, Span::from_secs(60), 1000, segment(4000, 0));
    out(&mut cores, 30 * SECOND);
    let used = cores.shared_use(Time(30 * SECOND)).unwrap();
    assert_eq!(used.in_progress, u128::from(60_000 * SECOND), "the same after its share has changed");
    cores.stop(0, Time(30 * SECOND));
    let used = cores.shared_use(Time(40 * SECOND)).unwrap();
    assert_eq!((used.used - used.in_progress, used.useful), (u128::from(60_000 * SECOND), 0), "lost");
}

/// A copy alone on a node runs as fast as on a core of its own, whatever its demand.
#[test]
fn a_copy_alone_on_a_node_runs_at_full_speed() {
    let mut cores = node(8000, 110);
    begin(&mut cores, 7, 5, Span(12_345_678), 1, segment(3000, 0));
    let [change] = out(&mut cores, 5)[..] else { panic!() };
    assert_eq!(change.next, Some((Next::Done, 12_345_683)));
    assert_eq!(out(&mut cores, 9), [], "nothing has changed");
    assert_eq!(cores.left(7, Time(1_000_005)), Span(11_345_678));
    assert_eq!(cores.stop(7, Time(2_000_005)), Span(10_345_678));
    assert!(!cores.is_busy(7));
    assert_eq!(cores.shared_use(Time(2_000_005)).unwrap().useful, 0);
}

/// Two equal copies take twice as long while both run. The second copy begins when the first has a second left.
#[test]
fn equal_copies_share_the_processor() {
    let mut cores = node(1000, 2);
    begin(&mut cores, 0, 0, Span::from_secs(3), 1000, segment(1000, 0));
    out(&mut cores, 0);
    begin(&mut cores, 1, 2 * SECOND, Span::from_secs(3), 1000, segment(1000, 0));
    let changes = out(&mut cores, 2 * SECOND);
    let next: Vec<_> = changes.iter().map(|change| (change.core, change.next.unwrap().1 / SECOND)).collect();
    assert_eq!(next, [(0, 4), (1, 8)]);
    cores.finished(0, Time(4 * SECOND));
    let [change] = out(&mut cores, 4 * SECOND)[..] else { panic!() };
    assert_eq!((change.core, change.next), (1, Some((Next::Done, 6 * SECOND))));
}

/// Speed and interference slow down the work that a share does, and leave the share unchanged.
#[test]
fn interference_slows_the_work_of_a_share_and_keeps_the_share() {
    let table: Interference =
        toml::from_str("bernoulli = { slot = \"1s\", probability = 1.0, slowdown = 2.0 }").unwrap();
    let profile = table.load(std::path::Path::new("."), |_| unreachable!()).unwrap();
    let table = CoreTable::equal(1, 2).with_speeds(vec![0.5; 2]);
    let mut cores = Cores::new(Some(&profile), table, Windows::default(), 1).with_shares(vec![1000]);
    for core in 0..2 {
        begin(&mut cores, core, 0, Span::from_secs(1), 1000, segment(1000, 0));
    }
    let changes = out(&mut cores, 0);
    assert!(changes.iter().all(|change| change.next == Some((Next::Done, 8 * SECOND))), "{changes:?}");
}

proptest! {
    /// Work is conserved. A copy has done all of its work, to the nanosecond, when it is due, however often shares
    /// change. The CPU-time of all copies equals the need of their work.
    #[test]
    fn a_due_copy_has_done_exactly_its_work(
        cpu in 500u32..4000,
        copies in prop::collection::vec((0u64..5_000, 1u64..4_000, 1u32..3000, 1u32..3000), 1..12),
    ) {
        let mut cores = node(cpu, copies.len() as u32);
        let mut begins: Vec<_> = copies.iter().enumerate().map(|(i, c)| (c.0 * 1_000_003, i as u32)).collect();
        begins.sort_unstable();
        let work = |core: u32| Span(copies[core as usize].1 * 1_000_007);
        let mut due: Vec<Option<u64>> = vec![None; copies.len()];
        let (mut ended, mut needed) = (0, 0u128);
        let mut begins = begins.into_iter().peekable();
        while ended < copies.len() {
            let end = (0..).zip(&due).filter_map(|(core, due)| Some(((*due)?, core))).min();
            let now = match (begins.peek().copied(), end) {
                (Some((at, core)), end) if end.is_none_or(|end| at < end.0) => {
                    begins.next();
                    let (_, _, request, demand) = copies[core as usize];
                    begin(&mut cores, core, at, work(core), request, segment(demand, 0));
                    at
                }
                (_, Some((at, core))) => {
                    prop_assert_eq!(cores.left(core, Time(at)), Span::ZERO);
                    prop_assert!(cores.left(core, Time(at - 1)) <= Span(2));
                    cores.finished(core, Time(at));
                    needed += u128::from(copies[core as usize].3) * u128::from(work(core).0);
                    due[core as usize] = None;
                    ended += 1;
                    at
                }
                (None, None) | (Some(_), None) => unreachable!(),
            };
            for change in out(&mut cores, now) {
                if let Some((_, at)) = change.next {
                    due[change.core as usize] = Some(at);
                }
            }
        }
        let used = cores.shared_use(Time::MAX).unwrap();
        prop_assert_eq!((used.used, used.useful), (needed, needed));
    }
}
