//! The thresholds of fidelity, and the verdict on a run.
//!
//! | what | at most | because |
//! |---|---|---|
//! | jobs that were due and did not arrive, or stay open in a run that was not cut off | none | jobs are what a run measures |
//! | deliveries later than a tenth of the median delay | 1 % of them | a tenth is a notable change of a delay; one delivery in a hundred affects no quantile up to p99 |
//! | deliveries later than a hundredth of the median copy, where messages take no time | 1 % of them | response times then consist of run times of copies |
//! | mean delay above the configured mean | 5 % | the bar for response times |
//! | distance between the distributions of asked and achieved delays (not for constants) | 0.1 | the distance of an exponential delay that is late by a tenth of its mean |
//! | timers, and ends of copies, later than a twentieth of the median copy | 1 % of each | the bar for response times |
//! | core time of copies above their work | 1 % | queues in a loaded cluster multiply the excess by ten |
//! | core time of copies on real cores above their work, for copies that ended by themselves | 5 % | the bar for response times: timed work is more exact than executed work |
//! | slowdown of real cores away from the requested one: mean of the stretches of one slowdown and length | 5 % | the bar for response times |
//! | slowdown of a real core that should be healthy | 5 % | a healthy core is the reference for degraded ones |
//! | busy processors of a host, unless copies are to keep them busy | 90 % | above 90 % a burst of events finds no idle processor |
//! | processor time that the hypervisor kept | 5 % | the hypervisor takes milliseconds at once |
//! | datagrams lost by the real network | a tenth of the smallest configured loss of a link | none where no loss is configured, because policies then run without repairs |
//! | bound on a host's clock error | a tenth of the median delay | the error of a clock changes every delay between hosts |
//!
//! A share, or a mean of slowdowns, exceeds its threshold only if its whole 95 % interval does: a single late delivery
//! does not make a short run degraded. A deviation of a quarter in a single stretch of a core may be chance.

use volary_engine::results::{
    Certificate, Compared, Departure, HostVitals, RealWork, Reason, STILL, Samples, Standing,
};

use crate::number;
use crate::stats::{t_975, wilson};

/// Lateness, as a part of the median delay, above which a delivery is late.
pub const DELAY_PART: f64 = 0.1;
/// Lateness, as a part of the median copy, above which a delivery is late if messages take no time.
pub const ZERO_DELAY_PART: f64 = 0.01;
/// Lateness, as a part of the median copy, above which a timer or the end of a copy is late.
pub const TASK_PART: f64 = 0.05;
/// Limit on the share of late events.
const LATE_SHARE: f64 = 0.01;
/// Limit on the relative excess of the mean delay over the configured mean.
const MEAN_DELAY: f64 = 0.05;
/// Limit on the distance between the distributions of delays.
const DISTANCE: f64 = 0.1;
/// Limit on the relative excess of the core time of copies over their work.
const CORE_TIME: f64 = 0.01;
/// The same limit for copies that burn real cores.
const REAL_CORE_TIME: f64 = 0.05;
/// Limit on the relative deviation of real cores' slowdown from the requested one.
const SLOWDOWN: f64 = 0.05;
/// Random deviation of a single stretch of a core that is possible; the deviation of several follows from their spread.
const ALONE: f64 = 0.25;
/// Limit on the busy share of a host.
const BUSY: f64 = 0.9;
/// Limit on the stolen share of a host's processor time.
const STEAL: f64 = 0.05;
/// Limit on real loss, as a part of the configured loss.
const REAL_LOSS: f64 = 0.1;
/// Wall time below which shares of processor time are not judged, because they are counted in ticks of 10 ms.
const TICKS_S: f64 = 0.2;
/// The lowest speed that a remedy suggests in one step, as a part of the present speed.
const SLOWEST: f64 = 0.1;
/// The highest speed that a remedy suggests, as a part of the present speed.
const LEAST_STEP: f64 = 0.9;

/// The remedy if other processes use the CPUs of real cores.
const OTHERS: &str =
    "stop other programs on these CPUs, leave them some with run.real.spare, or emulate fewer cores";

/// The remedy for a departure.
enum Remedy {
    /// Run at this part of the present speed.
    Slower(f64),
    /// A fixed text.
    Words(&'static str),
}

/// Counts of the jobs of a run that should have arrived and ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct JobsMet {
    /// Jobs whose arrival was due.
    pub due: u64,
    /// Due jobs that did not arrive.
    pub missing: u64,
    /// Jobs that arrived and stay open, although no limit of time cut the run off and no node is lost for good.
    pub open: u64,
}

/// Finds the departures and sets the verdict. `least_loss` is the smallest nonzero configured loss of a link.
pub(super) fn judge(certificate: &mut Certificate, jobs: &JobsMet, least_loss: f64) {
    let mut judge = Judge { speed: certificate.speed, reasons: Vec::new() };
    judge.jobs(jobs);
    judge.lateness(certificate);
    judge.delays(certificate);
    judge.core_time(certificate);
    if let Some(real) = &certificate.cores {
        judge.slowdowns(real);
        judge.healthy_cores(real);
    }
    for host in &certificate.hosts {
        let first = judge.reasons.len();
        judge.processors(host, certificate.cores.is_some());
        judge.real_loss(host, REAL_LOSS * least_loss);
        judge.clock(host, certificate.late_beyond_s);
        for reason in &mut judge.reasons[first..] {
            reason.says = format!("{}: {}", host.name, reason.says);
            reason.host = Some(host.name.clone());
        }
    }
    certificate.reasons = judge.reasons;
    certificate.verdict =
        if certificate.reasons.is_empty() { Standing::Faithful } else { Standing::Degraded };
}

/// The departures found so far.
struct Judge {
    /// Emulated seconds per real second.
    speed: f64,
    reasons: Vec<Reason>,
}

impl Judge {
    /// Adds a departure of this kind, with the measured number and its threshold.
    fn add(&mut self, what: Departure, (measured, threshold): (f64, f64), says: String, remedy: Remedy) {
        let (speed, remedy) = match remedy {
            Remedy::Words(words) => (None, words.to_owned()),
            Remedy::Slower(part) => {
                let speed = two_digits(self.speed * part.clamp(SLOWEST, LEAST_STEP));
                (Some(speed), format!("--set run.speed={speed} or less, or hosts on more machines"))
            }
        };
        self.reasons.push(Reason { what, host: None, measured, threshold, says, remedy, speed });
    }

    fn jobs(&mut self, jobs: &JobsMet) {
        let JobsMet { due, missing, open } = *jobs;
        for (count, what) in [(missing, "never arrived"), (open, "did not end")] {
            if count > 0 {
                let says = format!("{} of {} {what}", number::count(count), number::plural(due, "job"));
                let remedy = Remedy::Words("look for the reason in the logs of the hosts, and run again");
                self.add(Departure::MissingJobs, (count as f64 / due.max(1) as f64, 0.0), says, remedy);
            }
        }
    }

    fn lateness(&mut self, certificate: &Certificate) {
        let (late, of_copy) = (&certificate.lateness, TASK_PART * certificate.median_copy_s);
        for (what, name, late, beyond) in [
            (Departure::LateDeliveries, "deliveries", late.deliveries, certificate.late_beyond_s),
            (Departure::LateTimers, "timers", late.timers, of_copy),
            (Departure::LateWork, "ends of copies", late.work, of_copy),
        ] {
            if beyond > 0.0 && wilson(late.late_share, late.count).0 > LATE_SHARE {
                let [most, p99] = [beyond, late.p99_s].map(number::seconds);
                let share = number::percent(late.late_share);
                let says = format!("{share} of {name} are more than {most} late (99th percentile {p99})");
                self.add(what, (late.late_share, LATE_SHARE), says, Remedy::Slower(beyond / late.p99_s));
            }
        }
    }

    fn delays(&mut self, certificate: &Certificate) {
        let delay = &certificate.network.delay;
        let means = Compared { asked: delay.asked.mean_s, achieved: delay.achieved.mean_s };
        let excess = means.excess();
        if excess > MEAN_DELAY {
            let [asked, achieved] = [means.asked, means.achieved].map(number::seconds);
            let says = format!("the mean delay is {achieved} instead of the requested {asked}");
            let remedy = Remedy::Slower(MEAN_DELAY / excess);
            self.add(Departure::LongerDelays, (excess, MEAN_DELAY), says, remedy);
        }
        if let Some(ks) = delay.ks.filter(|&ks| ks > DISTANCE) {
            let says = format!(
                "the distribution of delays is at a distance of {} from the requested one (KS)",
                number::short(ks)
            );
            self.add(Departure::DistortedDelays, (ks, DISTANCE), says, Remedy::Slower(DISTANCE / ks));
        }
    }

    fn core_time(&mut self, certificate: &Certificate) {
        let excess = certificate.core_s.excess();
        let (most, remedy) = match certificate.cores {
            None => (CORE_TIME, Remedy::Slower(CORE_TIME / excess)),
            // A lower speed does not help: other processes would take the same share of the CPU.
            Some(_) => (REAL_CORE_TIME, Remedy::Words(OTHERS)),
        };
        if excess > most {
            let says = format!("copies occupy their cores {} longer than requested", number::percent(excess));
            self.add(Departure::SlowCores, (excess, most), says, remedy);
        }
    }

    fn slowdowns(&mut self, real: &RealWork) {
        // At a lower speed slots last longer, which does not help cores that other processes use.
        let starved = real.cores.iter().any(|core| is_off(&core.healthy, 1.0) && core.healthy.mean < 1.0);
        for slots in real.slots.iter().filter(|slots| is_off(&slots.pace, slots.asked)) {
            let (asked, length) = (number::short(slots.asked), number::seconds(slots.length_s));
            let achieved = match slots.achieved {
                achieved if achieved >= STILL => "stood still".to_owned(),
                achieved => format!("were {} times as slow", number::short(achieved)),
            };
            let says = format!(
                "cores requested to be {asked} times as slow for {length} {achieved}, in the mean of {}",
                number::plural(slots.pace.count, "slot")
            );
            let remedy = if starved { Remedy::Words(OTHERS) } else { Remedy::Slower(0.5) };
            self.add(Departure::Slowdown, (slots.off().abs(), SLOWDOWN), says, remedy);
        }
    }

    fn healthy_cores(&mut self, real: &RealWork) {
        for core in real.cores.iter().filter(|core| is_off(&core.healthy, 1.0)) {
            let did = number::percent(core.healthy.mean);
            let says = format!(
                "{}: core {} on CPU {} did {did} of a healthy core's work, although it should have been healthy",
                core.host, core.core, core.cpu
            );
            let remedy = Remedy::Words(if core.healthy.mean > 1.0 {
                "something slowed it down during its calibration: run again with nothing else on these CPUs, or with the \
                 hash kernel, whose pace does not depend on what the other cores do"
            } else {
                OTHERS
            });
            let off = (core.healthy.mean - 1.0).abs();
            self.add(Departure::UnhealthyCore, (off, SLOWDOWN), says, remedy);
            if let Some(reason) = self.reasons.last_mut() {
                reason.host = Some(core.host.clone());
            }
        }
    }

    /// Judges the load of a host's processors, unless copies are to keep them busy, and the time stolen from them.
    fn processors(&mut self, host: &HostVitals, is_burning: bool) {
        if host.wall_s < TICKS_S {
            return;
        }
        let busy = host.busy();
        if !is_burning && busy > BUSY {
            let [all, own] = [busy, host.cpu_share].map(number::percent);
            let says = format!("processors are {all} busy, {own} with this run");
            let mostly = host.cpu_share > 0.5 * busy;
            let remedy =
                if mostly { Remedy::Slower(0.5) } else { Remedy::Words("stop other programs there") };
            self.add(Departure::BusyHost, (busy, BUSY), says, remedy);
        }
        if let Some(steal) = host.steal_share.filter(|&steal| steal > STEAL) {
            let says = format!("the hypervisor took {} of its processor time", number::percent(steal));
            let remedy = Remedy::Words("run on dedicated processors, or at a lower speed");
            self.add(Departure::Steal, (steal, STEAL), says, remedy);
        }
    }

    fn real_loss(&mut self, host: &HostVitals, most: f64) {
        let lost = host.datagrams_lost as f64 / host.datagrams_sent.max(1) as f64;
        let surely = if most > 0.0 { wilson(lost, host.datagrams_sent).0 } else { lost };
        if surely > most {
            let (count, share) = (number::count(host.datagrams_lost), number::percent(lost));
            let to: Vec<_> = host.lost_to.iter().map(|path| path.to.as_str()).collect();
            let to = if to.is_empty() { String::new() } else { format!(", to {}", to.join(", ")) };
            let says = format!("the real network lost {count} of its messages, {share}{to}");
            let remedy = Remedy::Words("use a lower speed, hosts on more machines, or larger socket buffers");
            self.add(Departure::LostDatagrams, (lost, most), says, remedy);
        }
    }

    fn clock(&mut self, host: &HostVitals, most: f64) {
        let bound = host.clock.bound_s * self.speed;
        if most > 0.0 && bound > most {
            let says = format!("the error of its clock is up to {}", number::seconds(bound));
            self.add(Departure::ClockBound, (bound, most), says, Remedy::Slower(most / bound));
        }
    }
}

/// Whether the slowdown of cores that should be `asked` times as slow differs significantly from this.
fn is_off(pace: &Samples, asked: f64) -> bool {
    let half = match pace.count {
        0 => f64::INFINITY,
        1 => ALONE / asked,
        n => t_975(n as usize - 1) * pace.std / (n as f64).sqrt(),
    };
    (pace.mean * asked - 1.0).abs() - half * asked > SLOWDOWN
}

/// A positive number rounded down to two significant digits.
fn two_digits(value: f64) -> f64 {
    let decimals = (1.0 - value.log10().floor()).max(0.0);
    let scale = 10f64.powf(decimals);
    (value * scale + 1e-9).floor() / scale
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{DistributionSpec, Span};
    use volary_netem::{Cause, LinkClass, Loss, Probability};

    use super::super::fixture::Run;
    use super::*;
    use volary_engine::results::Departure::*;
    use volary_engine::results::{RealCore, RealWork, Samples, Slots};

    /// The departures found in a run after `spoil` has modified it.
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
        assert!(
            (certificate.core_s.excess() - 1e-4).abs() < 1e-5,
            "0.1 s of 1000 s: {:?}",
            certificate.core_s
        );
        assert_eq!(certificate.network.delay.ks, None, "the delays are constant");
    }

    #[test]
    fn each_departure_of_a_run_is_detected_separately() {
        let ms = Span::from_millis;
        let late = |run: &mut Run, count, by| (0..count).for_each(|_| run.deliver(ms(10), by));
        assert_eq!(reasons(|run| late(run, 60, ms(2))), [LateDeliveries]);
        assert_eq!(reasons(|run| late(run, 20, ms(9))), [], "1 % of deliveries may be late");
        assert_eq!(
            reasons(|run| late(run, 2000, Span(900_000))),
            [],
            "half of the deliveries are 9 % late, less than 5 % of the mean"
        );
        assert_eq!(reasons(|run| late(run, 40_000, Span(990_000))), [LongerDelays]);
        assert_eq!(reasons(|run| (0..60).for_each(|_| run.gauge.timers.add(ms(30)))), [LateTimers]);
        assert_eq!(reasons(|run| (0..60).for_each(|_| run.gauge.work.add(ms(30)))), [LateWork]);
        assert_eq!(reasons(|run| (0..2000).for_each(|_| run.gauge.work.add(ms(20)))), [SlowCores]);
        assert_eq!(reasons(|run| run.jobs.missing = 1), [MissingJobs]);
        assert_eq!(reasons(|run| run.jobs.open = 1), [MissingJobs]);
        assert_eq!(reasons(|run| run.host.cpu_share = 0.95), [BusyHost]);
        assert_eq!(reasons(|run| run.host.machine_share = Some(0.95)), [BusyHost]);
        assert_eq!(reasons(|run| run.host.steal_share = Some(0.08)), [Steal]);
        assert_eq!(reasons(|run| run.host.clock.bound_s = 2e-3), [ClockBound]);
        assert_eq!(reasons(|run| (run.host.clock.bound_s, run.speed) = (4e-4, 4.0)), [ClockBound]);
    }

    #[test]
    fn real_cores_must_reach_the_requested_slowdown() {
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
                // Copies on real cores keep the processors busy.
                (run.cores, run.host.cpu_share) = (Some(work), 0.99);
            })
        };
        assert_eq!(with(&|_| {}), []);
        let paced = |slots: &mut Slots, pace: f64| (slots.pace.mean, slots.achieved) = (pace, 1.0 / pace);
        assert_eq!(with(&|work| paced(&mut work.slots[0], 0.45)), [Slowdown]);
        assert_eq!(with(&|work| paced(&mut work.slots[1], 0.28)), [Slowdown], "too fast");
        assert_eq!(with(&|work| work.slot(8.0, 0.01, 0.1)), [], "a single stretch may deviate");
        assert_eq!(with(&|work| work.slot(8.0, 0.01, 0.05)), [Slowdown], "half is too much");
        assert_eq!(with(&|work| work.cores[0].healthy.mean = 0.92), [UnhealthyCore]);
        assert_eq!(with(&|work| work.cores[0].healthy = Samples { count: 3, mean: 0.92, std: 0.1 }), []);
        assert_eq!(with(&|work| work.achieved_s *= 1.04), [], "a deviation of 4 % is within the threshold");
        assert_eq!(with(&|work| work.achieved_s *= 1.06), [SlowCores]);
    }

    #[test]
    fn real_loss_is_compared_with_the_requested_loss() {
        let lost = |run: &mut Run, lost| (run.host.datagrams_sent, run.host.datagrams_lost) = (100_000, lost);
        assert_eq!(reasons(|run| lost(run, 0)), []);
        assert_eq!(reasons(|run| lost(run, 1)), [LostDatagrams], "no loss is configured");
        let lossy = |run: &mut Run, really| {
            run.network.loss = Loss::Bernoulli(Probability::new(0.01).unwrap_or(Probability::ZERO));
            (run.stats.datagram.sent, run.stats.datagram.delivered) = (100_000, 99_000);
            run.stats.datagram.lost[Cause::Loss as usize] = 1000;
            lost(run, really);
        };
        assert_eq!(reasons(|run| lossy(run, 90)), []);
        assert_eq!(reasons(|run| lossy(run, 200)), [LostDatagrams]);
        // Not all links have the configured loss: links within a machine lose nothing, and some links lose less than
        // others.
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
    fn the_distribution_of_delays_must_match_the_request() {
        // Delays from 10 µs to 100 ms, spread equally over the decades: the median is 1 ms, and 0.1 ms is late.
        let decades = |k: u32| Span((1e4 * 10f64.powf(f64::from(k) / 500.0)) as u64);
        // Delays of two kinds of links.
        let two = |k: u32| Span(if k.is_multiple_of(2) { 1_000_000 } else { 40_000_000 });
        let with = |distribution: &dyn Fn(u32) -> Span, late: Span| {
            reasons(|run| {
                run.gauge = Default::default();
                (0..2000).for_each(|k| run.deliver(distribution(k), late));
            })
        };
        assert_eq!(with(&decades, Span(1_000)), []);
        assert_eq!(
            with(&decades, Span(90_000)),
            [DistortedDelays],
            "a quarter of the delays has become twice as long"
        );
        assert_eq!(with(&two, Span(90_000)), [], "the distance of a stepped distribution is not judged");
    }

    #[test]
    fn without_network_delays_lateness_is_judged_against_copies() {
        let instant = |late: Span| {
            reasons(|run| {
                run.gauge = Default::default();
                run.network.one_way = DistributionSpec::Constant(Span::ZERO);
                (0..2000).for_each(|_| run.deliver(Span::ZERO, late));
            })
        };
        assert_eq!(instant(Span::from_millis(4)), [], "copies take 500 ms");
        assert_eq!(instant(Span::from_millis(6)), [LateDeliveries]);
        let nothing = reasons(|run| {
            (run.gauge, run.copy_s, run.busy_s) = (Default::default(), 0.0, 0.0);
            (0..100).for_each(|_| run.deliver(Span::ZERO, Span::from_millis(1)));
        });
        assert_eq!(nothing, [], "without copies and delays, lateness has no reference");
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
        assert_eq!(one_late, [], "one late delivery of thirty may be chance");
        let busy = reasons(|run| {
            short(run);
            run.host.machine_share = Some(1.0);
        });
        assert_eq!(busy, [], "ten ticks of a processor are too few to judge");
        assert_eq!(reasons(|run| run.gauge = Default::default()), [], "a run without messages is not judged");
    }

    #[test]
    fn remedies_name_a_speed_that_can_work() {
        let certificate = crate::fidelity::fixture::degraded();
        let remedies = certificate.remedies();
        assert_eq!(remedies.len(), 1, "only the lowest speed is suggested: {remedies:?}");
        let speeds = || certificate.reasons.iter().filter_map(|reason| reason.speed);
        let least = speeds().fold(f64::INFINITY, f64::min);
        assert!(speeds().count() > 1 && (0.1..1.0).contains(&least), "{:?}", certificate.reasons);
        assert_eq!(remedies[0], format!("--set run.speed={least} or less, or hosts on more machines"));
        for (value, rounded) in [(0.456, 0.45), (0.1, 0.1), (12.9, 12.0), (345.0, 345.0), (0.0123, 0.012)] {
            assert_eq!(two_digits(value), rounded);
        }
    }
}
