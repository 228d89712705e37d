//! Measurements of slots: how long there was a copy, and how much of it was done.

use std::time::{Duration, Instant};

use super::calibration::Calibration;
use super::cpu::CpuId;
use super::shared::CoreCounters;

/// Measurements of one core.
#[derive(Clone, PartialEq, Debug)]
pub struct CoreReading {
    pub cpu: CpuId,
    /// Its calibrated speed: rounds of the kernel per second of its own CPU time. Comparable between cores that run
    /// the same kernel.
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
    /// Whether it ended as planned. The competitor brings a copy to its due progress in the last moments of a slot: a
    /// slot that was cut short says nothing about accuracy.
    pub whole: bool,
    /// Time with a copy: the work that a healthy core would have done.
    pub busy: Duration,
    /// The work that was done.
    pub done: Duration,
}

impl SlotReading {
    /// The achieved slowdown; infinite if nothing was done.
    #[must_use]
    pub fn achieved(&self) -> f64 {
        self.busy.as_secs_f64() / self.done.as_secs_f64()
    }
}

/// A time of constant slowdown, in ns since the origin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) until: u64,
    /// 1 if healthy.
    pub(super) slowdown: f64,
}

#[derive(Clone, Copy, Debug)]
struct StretchReading {
    stretch: Stretch,
    whole: bool,
    counted: CoreCounters,
}

/// Readings of past stretches, and the counters at the start of the current one.
#[derive(Clone, Default, Debug)]
pub(super) struct ReadingLog {
    rows: Vec<StretchReading>,
    start: CoreCounters,
}

impl ReadingLog {
    /// Ends a stretch with the counters `end`; it is recorded if there was a copy in it. `whole`: it was not cut short.
    pub(super) fn close(&mut self, stretch: Stretch, end: CoreCounters, whole: bool) {
        let counted = self.since_start(end);
        // Without a copy, rounds of a chunk that ended late count for the next stretch.
        if counted.busy > 0 {
            if stretch.until > stretch.from {
                self.rows.push(StretchReading { stretch, whole, counted });
            }
            // Counters never go back, although an edge that was read late can look so.
            self.start.busy += counted.busy;
            self.start.rounds += counted.rounds;
        }
    }

    /// The counters since the start of the current stretch.
    pub(super) const fn since_start(&self, now: CoreCounters) -> CoreCounters {
        CoreCounters {
            busy: now.busy.saturating_sub(self.start.busy),
            rounds: now.rounds.saturating_sub(self.start.rounds),
        }
    }

    /// The counters at `share` of the time between the start of the current stretch and `now`, by interpolation: for
    /// edges at which the competitor was not awake.
    pub(super) fn interpolate(&self, now: CoreCounters, share: f64) -> CoreCounters {
        let part = |from: u64, to: u64| from + (to.saturating_sub(from) as f64 * share) as u64;
        CoreCounters { busy: part(self.start.busy, now.busy), rounds: part(self.start.rounds, now.rounds) }
    }

    pub(super) fn readings(&self, origin: Instant, calibration: Calibration) -> Vec<SlotReading> {
        let reading = |row: &StretchReading| SlotReading {
            from: origin + Duration::from_nanos(row.stretch.from),
            until: origin + Duration::from_nanos(row.stretch.until),
            asked: row.stretch.slowdown,
            whole: row.whole,
            busy: Duration::from_nanos(row.counted.busy),
            done: calibration.work(row.counted.rounds),
        };
        self.rows.iter().map(reading).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(from: u64, until: u64, slowdown: f64) -> Stretch {
        Stretch { from, until, slowdown }
    }

    fn counters(busy: u64, rounds: u64) -> CoreCounters {
        CoreCounters { busy, rounds }
    }

    #[test]
    fn stretches_are_read_one_by_one() {
        let mut log = ReadingLog::default();
        log.close(stretch(0, 10, 1.0), counters(8, 16), true);
        log.close(stretch(10, 20, 2.0), counters(18, 26), true);
        log.close(stretch(20, 30, 4.0), counters(18, 26), true);
        // An edge that was read late: the time with a copy is not negative.
        log.close(stretch(30, 40, 4.0), counters(17, 26), true);
        log.close(stretch(40, 50, 2.0), counters(28, 26), true);
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
    fn rounds_counted_without_a_copy_belong_to_the_next_stretch() {
        let mut log = ReadingLog::default();
        log.close(stretch(0, 10, 1.0), counters(0, 5), true);
        log.close(stretch(10, 20, 1.0), counters(10, 10), true);
        let [reading] = log.readings(Instant::now(), Calibration::new(1.0))[..] else { panic!() };
        assert_eq!((reading.busy.as_nanos(), reading.done.as_nanos()), (10, 10));
    }

    #[test]
    fn slots_that_are_cut_short_are_marked() {
        let mut log = ReadingLog::default();
        log.close(stretch(0, 10, 1.0), counters(10, 10), false);
        log.close(stretch(10, 15, 2.0), counters(15, 10), false);
        log.close(stretch(15, 31, 2.0), counters(31, 18), true);
        let read = log.readings(Instant::now(), Calibration::new(1.0));
        let read: Vec<_> = read.iter().map(|r| (r.achieved(), r.whole)).collect();
        assert_eq!(read, [(1.0, false), (f64::INFINITY, false), (2.0, true)]);
    }

    #[test]
    fn counters_at_missed_edges_are_interpolated() {
        let mut log = ReadingLog::default();
        log.close(stretch(0, 10, 1.0), counters(10, 100), true);
        let now = counters(30, 200);
        assert_eq!(log.interpolate(now, 0.5), counters(20, 150));
        assert_eq!(log.interpolate(now, 1.0), now);
    }
}
