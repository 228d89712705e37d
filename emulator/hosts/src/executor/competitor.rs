//! The competitor thread of a core. It occupies the CPU by a control law during slots in which there is a copy, and
//! records the readings.
//!
//! In a slot of slowdown σ, a copy that has been running for time B should have B / σ of its work done. The *lead* is
//! the work done beyond that amount. The competitor occupies the CPU until the lead is −h, then leaves it until the
//! lead is h, so that the copy is neither early nor late on average. h is chosen so that both parts together take one
//! period. The last step of a slot, up to two periods long, brings the lead to zero at the slot's end. It ends with the
//! burner's part, because the end of an occupation is exact to the microsecond, and the end of a sleep is not.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::calibration::Calibration;
use super::cpu::{CpuId, thread_cpu_time};
use super::shared::{CoreCounters, CoreShared, DegradedSlot};

/// Longest healthy stretch, ns. A longer stretch is split into several readings.
const MAX_HEALTHY: u64 = 100_000_000;

/// The result of a competitor.
#[derive(Default, Debug)]
pub(super) struct Competed {
    pub(super) log: ReadingLog,
    pub(super) cpu_time: Duration,
}

pub(super) struct Competitor {
    shared: Arc<CoreShared>,
    calibration: Calibration,
    timeline: Timeline,
    log: ReadingLog,
    gain: Gain,
}

impl Competitor {
    /// Nice value of the competitor, which gives it about 37 times the weight of a burner, and a tenth of the weight of
    /// other threads.
    pub(super) const NICE: i32 = 10;

    pub(super) fn new(shared: Arc<CoreShared>, calibration: Calibration) -> Self {
        let timeline = Timeline::healthy(shared.now());
        Self { shared, calibration, timeline, log: ReadingLog::default(), gain: Gain::default() }
    }

    /// Competes until the core is stopped.
    pub(super) fn run(mut self) -> Competed {
        // The default slack is 50 µs, and remains if the system refuses.
        let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
        while !self.shared.is_stopped() {
            let now = self.shared.now();
            self.close_stretches(now);
            if let Some(slots) = self.shared.take_slots() {
                self.replace_slots(now, &slots);
            }
            self.compete(now);
        }
        let now = self.shared.now();
        self.close_stretches(now);
        let last = Stretch { until: now, ..self.timeline.current };
        self.log.close_last(last, self.shared.counters(now));
        Competed { log: self.log, cpu_time: thread_cpu_time() }
    }

    /// Closes the stretches that have ended.
    fn close_stretches(&mut self, now: u64) {
        let mut requested = true;
        while self.timeline.current.until <= now {
            let ended = self.timeline.current;
            // Counters were requested only for the first of several edges; at later edges they are interpolated.
            let end = if requested {
                self.shared.counters_at_edge(ended.until)
            } else {
                let share = (ended.until - ended.from) as f64 / (now - ended.from).max(1) as f64;
                self.log.interpolate(self.shared.counters(now), share)
            };
            self.log.close(ended, end, true);
            self.timeline.advance();
            self.shared.set_edge(self.timeline.current.until);
            requested = false;
        }
    }

    fn replace_slots(&mut self, now: u64, slots: &[DegradedSlot]) {
        let stretch = |slot: &DegradedSlot| Stretch {
            from: self.shared.ns(slot.from),
            until: self.shared.ns(slot.until),
            slowdown: slot.slowdown,
        };
        if let Some(cut) = self.timeline.replace_slots(now, slots.iter().map(stretch).collect()) {
            self.log.close(cut, self.shared.counters(now), false);
        }
        self.shared.set_edge(self.timeline.current.until);
    }

    /// One step: occupies the CPU if necessary, then sleeps.
    fn compete(&mut self, now: u64) {
        let Stretch { until, slowdown, .. } = self.timeline.current;
        if slowdown <= 1.0 || (!self.shared.is_busy() && self.shared.request_wake()) {
            return self.sleep(until);
        }
        let counters = self.shared.counters(now);
        self.gain.update(now, counters, self.calibration);
        let CoreCounters { busy, rounds } = self.log.since_start(counters);
        let step = next_step(SlotState {
            rest: (until - now) as f64,
            busy: busy as f64,
            done: self.calibration.ns(rounds),
            slowdown,
            gain: self.gain.mean,
        });
        let occupied = now + step.occupy as u64;
        while self.shared.now() < occupied && self.shared.is_busy() && !self.shared.is_interrupted() {
            std::hint::spin_loop();
        }
        if step.leave > 0.0 {
            let now = self.shared.now();
            self.gain.left = Some((now, self.shared.counters(now)));
            self.sleep(occupied + step.leave as u64);
        }
    }

    /// Sleeps until `until`, or until unparked.
    fn sleep(&self, until: u64) {
        std::thread::park_timeout(Duration::from_nanos(until.saturating_sub(self.shared.now())));
    }
}

/// Moving average of the burner's work per unit of time, while the competitor leaves the CPU to the burner.
#[derive(Debug)]
struct Gain {
    mean: f64,
    /// Time at which the CPU was last left to the burner, and the counters then.
    left: Option<(u64, CoreCounters)>,
}

impl Default for Gain {
    fn default() -> Self {
        Self { mean: 1.0, left: None }
    }
}

impl Gain {
    /// Weight of the latest value.
    const WEIGHT: f64 = 0.1;
    /// Smallest accepted value. Smaller values mean that another thread had the CPU, and are discarded.
    const MIN: f64 = 0.8;
    /// Shortest accepted time, ns. Shorter times consist of single chunks, and are discarded.
    const MIN_TIME: u64 = 200_000;

    /// Updates the mean when the competitor is awake again.
    fn update(&mut self, now: u64, counters: CoreCounters, calibration: Calibration) {
        let Some((then, before)) = self.left.take() else { return };
        let busy = counters.busy.saturating_sub(before.busy);
        // The time is accepted only if the core had a copy throughout.
        if busy > Self::MIN_TIME && busy + 1000 > now - then {
            let gain = calibration.ns(counters.rounds - before.rounds) / busy as f64;
            if gain > Self::MIN {
                self.mean += Self::WEIGHT * (gain - self.mean);
            }
        }
    }
}

/// The current stretch, and the coming slots.
#[derive(Debug)]
struct Timeline {
    current: Stretch,
    slots: VecDeque<Stretch>,
}

impl Timeline {
    const fn healthy(from: u64) -> Self {
        Self { current: Stretch { from, until: from + MAX_HEALTHY, slowdown: 1.0 }, slots: VecDeque::new() }
    }

    fn advance(&mut self) {
        self.current = self.stretch_from(self.current.until);
    }

    /// The stretch that begins at `from`: a slot, or a healthy stretch until the next slot and at most for
    /// [`MAX_HEALTHY`].
    fn stretch_from(&mut self, from: u64) -> Stretch {
        match self.slots.front() {
            Some(slot) if slot.from <= from => {
                let slot = *slot;
                self.slots.pop_front();
                Stretch { from, ..slot }
            }
            next => {
                let until = from + MAX_HEALTHY;
                Stretch { from, until: next.map_or(until, |slot| until.min(slot.from)), slowdown: 1.0 }
            }
        }
    }

    /// Replaces the coming slots. If that cuts the current stretch short, returns it.
    fn replace_slots(&mut self, now: u64, slots: VecDeque<Stretch>) -> Option<Stretch> {
        self.slots = slots;
        while self.slots.front().is_some_and(|slot| slot.until <= now) {
            self.slots.pop_front();
        }
        let next = self.stretch_from(now);
        if next.slowdown == self.current.slowdown {
            let most = if next.slowdown == 1.0 { self.current.from + MAX_HEALTHY } else { u64::MAX };
            self.current.until = next.until.min(most);
            return None;
        }
        let cut = Stretch { until: now, ..self.current };
        self.current = next;
        Some(cut)
    }
}

/// Length of a period, ns. It is much longer than the lateness of timers and a context switch, and much shorter than
/// the shortest slots.
pub(super) const PERIOD: f64 = 2e6;

/// The state of a slot, as the control law sees it. All times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SlotState {
    /// Time left in the slot.
    pub(super) rest: f64,
    /// Time with a copy so far.
    pub(super) busy: f64,
    /// Work done so far.
    pub(super) done: f64,
    /// The configured slowdown, above 1.
    pub(super) slowdown: f64,
    /// Recent work done per time in which the CPU was left to the burner: below 1 if context switches cost time, for
    /// example through cold caches. The loop corrects for that except at the end of the slot.
    pub(super) gain: f64,
}

/// One step of the competitor: it occupies the CPU, then leaves it to the burner.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Step {
    /// Time for which the competitor occupies the CPU.
    pub(super) occupy: f64,
    /// Time for which the competitor then leaves the CPU to the burner, before the next step.
    pub(super) leave: f64,
}

/// The next step, assuming that the copy stays.
pub(super) fn next_step(state: SlotState) -> Step {
    let SlotState { rest, busy, done, slowdown, gain } = state;
    let part = 1.0 - 1.0 / slowdown;
    let swing = PERIOD * part / slowdown / 2.0;
    let lead = done - busy / slowdown;
    let occupy = ((lead + swing) * slowdown).max(0.0);
    let leave = (swing - (lead - occupy / slowdown)) / part;
    if occupy + leave + PERIOD < rest {
        return Step { occupy, leave };
    }
    // The burner's time for the work due until the end of the slot; the whole rest of the slot if the copy is far
    // behind.
    let due = (((busy + rest) / slowdown - done) / gain).clamp(0.0, rest);
    Step { occupy: rest - due, leave: due }
}

/// Measurements of one core.
#[derive(Clone, PartialEq, Debug)]
pub struct CoreReading {
    pub cpu: CpuId,
    /// Calibrated speed of the core: rounds of the kernel per second of the thread's CPU time. Comparable between cores
    /// that run the same kernel.
    pub rounds_per_s: f64,
    /// CPU time of the competitor.
    pub competed: Duration,
    /// Slots and healthy stretches in which there was a copy, in order of time.
    pub slots: Vec<SlotReading>,
}

/// A slot, or a healthy stretch between slots, as measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlotReading {
    pub from: Instant,
    pub until: Instant,
    /// The configured slowdown, 1 in a healthy stretch.
    pub asked: f64,
    /// Whether the slot or stretch ended as planned. The competitor brings a copy to its due progress only in the last
    /// moments of a slot, so a slot that was cut short says nothing about accuracy.
    pub whole: bool,
    /// Time with a copy: the work that a healthy core would have done.
    pub busy: Duration,
    /// The work that was done.
    pub done: Duration,
}

impl SlotReading {
    /// The achieved slowdown; infinite if nothing was done.
    pub fn achieved(&self) -> f64 {
        self.busy.as_secs_f64() / self.done.as_secs_f64()
    }
}

/// A time of constant slowdown; start and end are in ns since the origin.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stretch {
    from: u64,
    until: u64,
    /// The slowdown, 1 if the core is healthy.
    slowdown: f64,
}

/// Readings of past stretches, and the counters at the start of the current stretch.
#[derive(Default, Debug)]
pub(super) struct ReadingLog {
    /// Each stretch, whether it ended as planned, and its counters.
    rows: Vec<(Stretch, bool, CoreCounters)>,
    start: CoreCounters,
}

impl ReadingLog {
    /// Ends a stretch with the counters `end`, and records it if it had a copy. `whole` if it ended as planned.
    fn close(&mut self, stretch: Stretch, end: CoreCounters, whole: bool) {
        let counted = self.since_start(end);
        // Without a copy, rounds of a chunk that ended late belong to the next stretch.
        if counted.busy > 0 {
            if stretch.until > stretch.from {
                self.rows.push((stretch, whole, counted));
            }
            // Counters never decrease, but a difference across an edge that was read late can look negative.
            self.start.busy += counted.busy;
            self.start.rounds += counted.rounds;
        }
    }

    /// Ends the last stretch, which was cut short. Rounds of a chunk that ended late belong to the last reading if no
    /// copy was there afterwards.
    fn close_last(&mut self, stretch: Stretch, end: CoreCounters) {
        self.close(stretch, end, false);
        let late = self.since_start(end).rounds;
        if let Some((_, _, counted)) = self.rows.last_mut() {
            counted.rounds += late;
        }
    }

    /// The counters since the start of the current stretch.
    const fn since_start(&self, now: CoreCounters) -> CoreCounters {
        CoreCounters {
            busy: now.busy.saturating_sub(self.start.busy),
            rounds: now.rounds.saturating_sub(self.start.rounds),
        }
    }

    /// The counters at `share` of the time between the start of the current stretch and `now`, by interpolation: for
    /// edges at which the competitor was not awake.
    fn interpolate(&self, now: CoreCounters, share: f64) -> CoreCounters {
        let part = |from: u64, to: u64| from + (to.saturating_sub(from) as f64 * share) as u64;
        CoreCounters { busy: part(self.start.busy, now.busy), rounds: part(self.start.rounds, now.rounds) }
    }

    pub(super) fn readings(&self, origin: Instant, calibration: Calibration) -> Vec<SlotReading> {
        let reading = |&(stretch, whole, counted): &(Stretch, bool, CoreCounters)| SlotReading {
            from: origin + Duration::from_nanos(stretch.from),
            until: origin + Duration::from_nanos(stretch.until),
            asked: stretch.slowdown,
            whole,
            busy: Duration::from_nanos(counted.busy),
            done: calibration.work(counted.rounds),
        };
        self.rows.iter().map(reading).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(from: u64, until: u64, slowdown: f64) -> Stretch {
        Stretch { from, until, slowdown }
    }

    /// The next stretches, in order.
    fn stretches(timeline: &mut Timeline, count: usize) -> Vec<(u64, u64, f64)> {
        let next = |_| {
            let Stretch { from, until, slowdown } = timeline.current;
            timeline.advance();
            (from, until, slowdown)
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn slots_and_healthy_stretches_alternate_without_a_gap() {
        let mut timeline = Timeline::healthy(5);
        let slots = [slot(20, 30, 2.0), slot(30, 40, 4.0), slot(50, 60, 4.0)];
        assert_eq!(timeline.replace_slots(10, slots.into()), None, "still healthy");
        assert_eq!(
            stretches(&mut timeline, 7),
            [
                (5, 20, 1.0),
                (20, 30, 2.0),
                (30, 40, 4.0),
                (40, 50, 1.0),
                (50, 60, 4.0),
                (60, 60 + MAX_HEALTHY, 1.0),
                (60 + MAX_HEALTHY, 60 + 2 * MAX_HEALTHY, 1.0)
            ]
        );
    }

    #[test]
    fn new_slots_cut_only_stretches_that_change() {
        let mut timeline = Timeline::healthy(0);
        // Past slots are left out, and the current one starts now.
        let cut = timeline.replace_slots(25, [slot(0, 10, 3.0), slot(20, 30, 2.0), slot(30, 40, 2.0)].into());
        assert_eq!((cut, timeline.current), (Some(slot(0, 25, 1.0)), slot(25, 30, 2.0)));
        // The same slots after a clock correction: the current one continues.
        assert_eq!(timeline.replace_slots(27, [slot(21, 31, 2.0), slot(31, 41, 2.0)].into()), None);
        assert_eq!(timeline.current, slot(25, 31, 2.0));
        // A healthy stretch is not extended.
        let mut healthy = Timeline::healthy(0);
        assert_eq!(healthy.replace_slots(MAX_HEALTHY - 1, VecDeque::new()), None);
        assert_eq!(healthy.current, slot(0, MAX_HEALTHY, 1.0));
        // A different slowdown, and none.
        assert_eq!(timeline.replace_slots(28, [slot(21, 41, 4.0)].into()), Some(slot(25, 28, 2.0)));
        assert_eq!(timeline.replace_slots(35, VecDeque::new()), Some(slot(28, 35, 4.0)));
        assert_eq!(stretches(&mut timeline, 1), [(35, 35 + MAX_HEALTHY, 1.0)]);
    }

    #[test]
    fn the_gain_ignores_times_without_a_copy_or_cpu() {
        let calibration = Calibration::new(1.0);
        let mut gain = Gain::default();
        let mut gain_after = |busy: u64, rounds: u64| {
            gain.left = Some((0, CoreCounters { busy: 50, rounds: 70 }));
            gain.update(1_000_000, CoreCounters { busy: 50 + busy, rounds: 70 + rounds }, calibration);
            gain.mean
        };
        assert_eq!(gain_after(900_000, 500_000), 1.0, "the copy was not there all the time");
        assert_eq!(gain_after(1_000_000, 100_000), 1.0, "another thread had the CPU");
        assert!((gain_after(1_000_000, 900_000) - 0.99).abs() < 1e-9);
        let settled = (0..200).map(|_| gain_after(1_000_000, 900_000)).last();
        assert!(settled.is_some_and(|mean| (mean - 0.9).abs() < 1e-6), "{settled:?}");
    }

    fn counters(busy: u64, rounds: u64) -> CoreCounters {
        CoreCounters { busy, rounds }
    }

    #[test]
    fn each_stretch_with_a_copy_has_its_own_reading() {
        let mut log = ReadingLog::default();
        log.close(slot(0, 10, 1.0), counters(8, 16), true);
        log.close(slot(10, 20, 2.0), counters(18, 26), true);
        log.close(slot(20, 30, 4.0), counters(18, 26), true);
        // An edge that was read late: the time with a copy is not negative.
        log.close(slot(30, 40, 4.0), counters(17, 26), true);
        log.close(slot(40, 50, 2.0), counters(28, 26), true);
        let origin = Instant::now();
        let read = log.readings(origin, Calibration::new(2.0));
        let brief =
            |r: &SlotReading| ((r.from - origin).as_nanos(), r.asked, r.busy.as_nanos(), r.done.as_nanos());
        let read: Vec<_> = read.iter().map(|r| (brief(r), r.achieved())).collect();
        assert_eq!(
            read,
            [((0, 1.0, 8, 8), 1.0), ((10, 2.0, 10, 5), 2.0), ((40, 2.0, 10, 0), f64::INFINITY)],
            "no reading without a copy"
        );
    }

    #[test]
    fn rounds_counted_without_a_copy_belong_to_the_next_slot() {
        let mut log = ReadingLog::default();
        log.close(slot(0, 10, 1.0), counters(0, 5), true);
        log.close(slot(10, 20, 1.0), counters(10, 10), true);
        let [reading] = log.readings(Instant::now(), Calibration::new(1.0))[..] else { panic!() };
        assert_eq!((reading.busy.as_nanos(), reading.done.as_nanos()), (10, 10));
    }

    #[test]
    fn rounds_counted_after_the_last_copy_belong_to_its_slot() {
        let mut log = ReadingLog::default();
        // The only chunk ended after the edge, and the copy was halted before it.
        log.close(slot(0, 10, 1.0), counters(10, 0), true);
        log.close_last(slot(10, 15, 1.0), counters(10, 4));
        let [reading] = log.readings(Instant::now(), Calibration::new(1.0))[..] else { panic!() };
        assert_eq!((reading.busy.as_nanos(), reading.done.as_nanos()), (10, 4));
    }

    #[test]
    fn slots_that_are_cut_short_are_marked() {
        let mut log = ReadingLog::default();
        log.close(slot(0, 10, 1.0), counters(10, 10), false);
        log.close(slot(10, 15, 2.0), counters(15, 10), false);
        log.close(slot(15, 31, 2.0), counters(31, 18), true);
        let read = log.readings(Instant::now(), Calibration::new(1.0));
        let read: Vec<_> = read.iter().map(|r| (r.achieved(), r.whole)).collect();
        assert_eq!(read, [(1.0, false), (f64::INFINITY, false), (2.0, true)]);
    }

    #[test]
    fn counters_at_missed_edges_are_interpolated() {
        let mut log = ReadingLog::default();
        log.close(slot(0, 10, 1.0), counters(10, 100), true);
        let now = counters(30, 200);
        assert_eq!(log.interpolate(now, 0.5), counters(20, 150));
        assert_eq!(log.interpolate(now, 1.0), now);
    }
}
