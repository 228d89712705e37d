//! Tests of verdicts on healthy runs with one modification each.

use volary_actors::base::{Law, Span};
use volary_netem::{Cause, LinkClass, Loss, Probability};

use super::super::fixture::Run;
use super::*;
use volary_engine::results::Departure::*;
use volary_engine::results::{RealCore, RealWork, Samples, Slots};

/// The reasons why a run that was spoilt is degraded.
fn reasons(spoil: impl FnOnce(&mut Run)) -> Vec<Departure> {
    let mut run = Run::healthy();
    spoil(&mut run);
    let certificate = run.certificate();
    for reason in &certificate.reasons {
        assert!(reason.measured > reason.threshold, "{reason:?}");
        assert!(!reason.says.is_empty() && !reason.remedy.is_empty(), "{reason:?}");
    }
    assert_eq!(certificate.is_degraded(), !certificate.reasons.is_empty());
    certificate.reasons.iter().map(|reason| reason.what).collect()
}

#[test]
fn a_run_that_keeps_up_is_faithful() {
    let certificate = Run::healthy().certificate();
    assert_eq!(certificate.reasons, []);
    assert_eq!(certificate.verdict, Standing::Faithful);
    assert!((certificate.late_beyond_s - 1e-3).abs() < 1e-5, "{}", certificate.late_beyond_s);
    assert_eq!(certificate.lateness.deliveries.late_share, 0.0);
    assert!((certificate.core_s.excess() - 1e-4).abs() < 1e-5, "0.1 s of 1000 s: {:?}", certificate.core_s);
    assert_eq!(certificate.network.delay.ks, None, "the delays are constant");
}

#[test]
fn every_departure_is_found_by_itself() {
    let ms = Span::from_millis;
    let late = |run: &mut Run, count, by| (0..count).for_each(|_| run.deliver(ms(10), by));
    assert_eq!(reasons(|run| late(run, 60, ms(2))), [LateDeliveries]);
    assert_eq!(reasons(|run| late(run, 20, ms(9))), [], "nearly one in a hundred");
    assert_eq!(
        reasons(|run| late(run, 2000, Span(900_000))),
        [],
        "half nearly late: less than 5 % of the mean"
    );
    assert_eq!(reasons(|run| late(run, 40_000, Span(990_000))), [LongerDelays]);
    assert_eq!(reasons(|run| (0..60).for_each(|_| run.gauge.timers.add(ms(30)))), [LateTimers]);
    assert_eq!(reasons(|run| (0..60).for_each(|_| run.gauge.work.add(ms(30)))), [LateWork]);
    assert_eq!(reasons(|run| (0..2000).for_each(|_| run.gauge.work.add(ms(20)))), [SlowCores]);
    assert_eq!(reasons(|run| run.host.cpu_share = 0.95), [BusyHost]);
    assert_eq!(reasons(|run| run.host.machine_share = Some(0.95)), [BusyHost]);
    assert_eq!(reasons(|run| run.host.steal_share = Some(0.08)), [Steal]);
    assert_eq!(reasons(|run| run.host.clock.bound_s = 2e-3), [ClockBound]);
    assert_eq!(reasons(|run| (run.host.clock.bound_s, run.speed) = (4e-4, 4.0)), [ClockBound]);
}

#[test]
fn real_cores_must_be_as_slow_as_asked() {
    let with = |spoil: &dyn Fn(&mut RealWork)| {
        reasons(|run| {
            let mut work = RealWork::default();
            for k in 0..40 {
                let noise = f64::from(k % 5 - 2);
                work.slot(2.0, 0.01, 0.5 + 0.02 * noise);
                work.slot(4.0, 0.1, 0.25 + 0.01 * noise);
                work.copy(10.0, 10.0 + 0.1 * noise);
            }
            let healthy = Samples { count: 50, mean: 0.99, std: 0.02 };
            work.cores.push(RealCore { host: "h1".into(), healthy, ..RealCore::default() });
            spoil(&mut work);
            // Processors are busy, because they are to be.
            (run.cores, run.host.cpu_share) = (Some(work), 0.99);
        })
    };
    assert_eq!(with(&|_| {}), []);
    let paced = |slots: &mut Slots, pace: f64| (slots.pace.mean, slots.achieved) = (pace, 1.0 / pace);
    assert_eq!(with(&|work| paced(&mut work.slots[0], 0.45)), [Slowdown]);
    assert_eq!(with(&|work| paced(&mut work.slots[1], 0.28)), [Slowdown], "too fast");
    assert_eq!(with(&|work| work.slot(8.0, 0.01, 0.1)), [], "one alone says little");
    assert_eq!(with(&|work| work.slot(8.0, 0.01, 0.05)), [Slowdown], "but not nothing");
    assert_eq!(with(&|work| work.cores[0].healthy.mean = 0.92), [UnhealthyCore]);
    assert_eq!(with(&|work| work.cores[0].healthy = Samples { count: 3, mean: 0.92, std: 0.1 }), []);
    assert_eq!(with(&|work| work.achieved_s *= 1.04), [], "copies are known to 5 %");
    assert_eq!(with(&|work| work.achieved_s *= 1.06), [SlowCores]);
}

#[test]
fn real_loss_is_measured_against_the_loss_that_was_asked() {
    let lost = |run: &mut Run, lost| (run.host.datagrams_sent, run.host.datagrams_lost) = (100_000, lost);
    assert_eq!(reasons(|run| lost(run, 0)), []);
    assert_eq!(reasons(|run| lost(run, 1)), [LostDatagrams], "policies do without repairs");
    let lossy = |run: &mut Run, really| {
        run.network.loss = Loss::Bernoulli(Probability::new(0.01).unwrap_or(Probability::ZERO));
        (run.stats.datagram.sent, run.stats.datagram.delivered) = (100_000, 99_000);
        run.stats.datagram.lost[Cause::Loss as usize] = 1000;
        lost(run, really);
    };
    assert_eq!(reasons(|run| lossy(run, 90)), []);
    assert_eq!(reasons(|run| lossy(run, 200)), [LostDatagrams]);
    // Links within a machine lose nothing, and others less than most: no loss is asked of all, but of some.
    let mixed = |run: &mut Run, really| {
        lossy(run, really);
        let [link] = &run.classes[..] else { panic!("one class of links") };
        let local = LinkClass { local: true, ..link.clone() };
        let better = Loss::Bernoulli(Probability::new(0.004).unwrap_or(Probability::ZERO));
        let better = LinkClass { loss: Some(better), ..link.clone() };
        run.classes = vec![local, link.clone(), better];
    };
    assert_eq!(reasons(|run| mixed(run, 1)), []);
    assert_eq!(reasons(|run| mixed(run, 35)), []);
    assert_eq!(reasons(|run| mixed(run, 90)), [LostDatagrams]);
    let mut run = Run::healthy();
    lossy(&mut run, 90);
    let loss = run.certificate().network.datagram.loss;
    assert_eq!((loss.asked, loss.achieved, loss.trials), (Some(0.01), Some(0.0109), 100_000));
}

#[test]
fn the_law_of_delays_must_be_the_one_asked() {
    // From 10 µs to 100 ms, with equal decades: the median is 1 ms, and 0.1 ms is late.
    let decades = |k: u32| Span((1e4 * 10f64.powf(f64::from(k) / 500.0)) as u64);
    // On two kinds of links.
    let two = |k: u32| Span(if k.is_multiple_of(2) { 1_000_000 } else { 40_000_000 });
    let with = |law: &dyn Fn(u32) -> Span, late: Span| {
        reasons(|run| {
            run.gauge = Default::default();
            (0..2000).for_each(|k| run.deliver(law(k), late));
        })
    };
    assert_eq!(with(&decades, Span(1_000)), []);
    assert_eq!(
        with(&decades, Span(90_000)),
        [DistortedDelays],
        "a quarter of the delays has become twice as long"
    );
    assert_eq!(with(&two, Span(90_000)), [], "steps of a law say nothing about its distance");
}

#[test]
fn networks_without_delay_are_measured_against_copies() {
    let instant = |late: Span| {
        reasons(|run| {
            run.gauge = Default::default();
            run.network.one_way = Law::Constant(Span::ZERO);
            (0..2000).for_each(|_| run.deliver(Span::ZERO, late));
        })
    };
    assert_eq!(instant(Span::from_millis(4)), [], "copies take 500 ms");
    assert_eq!(instant(Span::from_millis(6)), [LateDeliveries]);
    let nothing = reasons(|run| {
        (run.gauge, run.copy_s, run.busy_s) = (Default::default(), 0.0, 0.0);
        (0..100).for_each(|_| run.deliver(Span::ZERO, Span::from_millis(1)));
    });
    assert_eq!(nothing, [], "nothing to be late against");
}

#[test]
fn short_runs_raise_no_false_alarm() {
    let short = |run: &mut Run| {
        run.gauge = Default::default();
        (0..30).for_each(|_| run.deliver(Span::from_millis(10), Span(50_000)));
        run.host.wall_s = 0.1;
    };
    let one_late = reasons(|run| {
        short(run);
        run.deliver(Span::from_millis(10), Span::from_millis(2));
    });
    assert_eq!(one_late, [], "one of thirty says little");
    let busy = reasons(|run| {
        short(run);
        run.host.machine_share = Some(1.0);
    });
    assert_eq!(busy, [], "ten ticks of a processor say little");
    assert_eq!(reasons(|run| run.gauge = Default::default()), [], "nothing was sent");
}

#[test]
fn remedies_name_a_speed_that_can_work() {
    let certificate = crate::fidelity::fixture::degraded();
    let remedies = certificate.remedies();
    assert_eq!(remedies.len(), 1, "one speed, the lowest: {remedies:?}");
    let speeds = || certificate.reasons.iter().filter_map(|reason| reason.speed);
    let least = speeds().fold(f64::INFINITY, f64::min);
    assert!(speeds().count() > 1 && (0.1..1.0).contains(&least), "{:?}", certificate.reasons);
    assert_eq!(remedies[0], format!("--set run.speed={least} or less, or more hosts"));
    for (value, rounded) in [(0.456, 0.45), (0.1, 0.1), (12.9, 12.0), (345.0, 345.0), (0.0123, 0.012)] {
        assert_eq!(two_digits(value), rounded);
    }
}
