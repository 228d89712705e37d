//! The competitor thread of a core: occupies the CPU as [`steering`](super::steering) says while a slot lasts and there
//! is a copy, and records the readings.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use super::calibration::Calibration;
use super::cpu::thread_cpu_time;
use super::readings::{ReadingLog, Stretch};
use super::shared::{CoreCounters, CoreShared, DegradedSlot};
use super::steering::{SlotState, next_step};

/// Longest healthy stretch, ns: a longer one is read in parts.
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
    /// Gives it about 37 times the weight of a burner and a tenth of that of other threads.
    pub(super) const NICE: i32 = 10;

    pub(super) fn new(shared: Arc<CoreShared>, calibration: Calibration) -> Self {
        let timeline = Timeline::healthy(shared.now());
        Self { shared, calibration, timeline, log: ReadingLog::default(), gain: Gain::default() }
    }

    /// Competes until the core is stopped.
    pub(super) fn run(mut self) -> Competed {
        // The default slack is 50 µs. If the system refuses, it stays.
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
        self.log.close(last, self.shared.counters(now), false);
        Competed { log: self.log, cpu_time: thread_cpu_time() }
    }

    /// Closes the stretches that have ended.
    fn close_stretches(&mut self, now: u64) {
        let mut requested = true;
        while self.timeline.current.until <= now {
            let ended = self.timeline.current;
            // Only the first of several edges was requested.
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

/// A moving average of the work that a burner does per time in which the CPU is left to it.
#[derive(Debug)]
struct Gain {
    mean: f64,
    /// When the CPU was last left, and the counters then.
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
    /// Values below are discarded: another thread had the CPU.
    const MIN: f64 = 0.8;
    /// Shorter times are discarded, because they consist of single chunks, ns.
    const MIN_TIME: u64 = 200_000;

    /// Updates the mean when the competitor is awake again.
    fn update(&mut self, now: u64, counters: CoreCounters, calibration: Calibration) {
        let Some((then, before)) = self.left.take() else { return };
        let busy = counters.busy.saturating_sub(before.busy);
        // Only if there was a copy all the time.
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

    /// The stretch that begins at `from`: a slot, or healthy until the next one and at most for [`MAX_HEALTHY`].
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

    /// Replaces the coming slots. Returns the current stretch if that cut it short.
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
}
