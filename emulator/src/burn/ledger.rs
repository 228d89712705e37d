//! What came of each slot: how long there was a copy, and how much of it was done.

use std::time::{Duration, Instant};

use super::calibrate::Pace;
use super::cpu::CpuId;
use super::desk::Sample;

/// What one core has done.
#[derive(Clone, PartialEq, Debug)]
pub struct CoreReading {
    /// Its CPU.
    pub cpu: CpuId,
    /// Its calibrated pace: rounds of the kernel per second of its own CPU time. Comparable between cores that run
    /// the same kernel.
    pub rounds_per_s: f64,
    /// CPU time of the competitor.
    pub competed: Duration,
    /// Slots and healthy stretches in which there was a copy, in order of time.
    pub slots: Vec<SlotReading>,
}

/// A slot, or a healthy stretch between slots, as it was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlotReading {
    /// Its start.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
    /// The slowdown asked for, 1 in a healthy stretch.
    pub asked: f64,
    /// Whether it ended when it was to. How far a copy should be is settled in the last moments of a slot: one that is
    /// cut short says nothing of how well it was kept.
    pub whole: bool,
    /// How long there was a copy in it: the work that a healthy core would have done.
    pub had: Duration,
    /// The work that was done in it.
    pub done: Duration,
}

impl SlotReading {
    /// The slowdown achieved; infinite if nothing was done.
    #[must_use]
    pub fn achieved(&self) -> f64 {
        self.had.as_secs_f64() / self.done.as_secs_f64()
    }
}

/// The stretch that lasts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Stretch {
    /// ns since the origin.
    pub(super) from: u64,
    /// ns since the origin.
    pub(super) until: u64,
    /// 1 if healthy.
    pub(super) slowdown: f64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    stretch: Stretch,
    whole: bool,
    had: u64,
    done: u64,
}

/// Readings of the stretches that are over, and how things stood when the current one began.
#[derive(Clone, Default, Debug)]
pub(super) struct Ledger {
    rows: Vec<Row>,
    start: Sample,
}

impl Ledger {
    /// A stretch is over, and things stand as in `end`: its line is written if there was a copy in it.
    pub(super) fn close(&mut self, stretch: Stretch, end: Sample) {
        self.write(stretch, end, true);
    }

    /// The same, before its time.
    pub(super) fn cut(&mut self, stretch: Stretch, end: Sample) {
        self.write(stretch, end, false);
    }

    fn write(&mut self, stretch: Stretch, end: Sample, whole: bool) {
        let Sample { had, done } = self.since(end);
        if had > 0 && stretch.until > stretch.from {
            self.rows.push(Row { stretch, whole, had, done });
        }
        // Nothing goes back: an edge seen late can seem to.
        self.start = Sample { had: self.start.had + had, done: self.start.done + done };
    }

    /// What has happened in the current stretch.
    pub(super) const fn since(&self, now: Sample) -> Sample {
        Sample { had: now.had.saturating_sub(self.start.had), done: now.done.saturating_sub(self.start.done) }
    }

    /// How things stood at a time with a share of the copies' time between the start of the current stretch and
    /// `now`: for edges that nobody was awake for.
    pub(super) fn between(&self, now: Sample, share: f64) -> Sample {
        let part = |from: u64, to: u64| from + (to.saturating_sub(from) as f64 * share) as u64;
        Sample { had: part(self.start.had, now.had), done: part(self.start.done, now.done) }
    }

    pub(super) fn readings(&self, origin: Instant, pace: Pace) -> Vec<SlotReading> {
        let reading = |row: &Row| SlotReading {
            from: origin + Duration::from_nanos(row.stretch.from),
            until: origin + Duration::from_nanos(row.stretch.until),
            asked: row.stretch.slowdown,
            whole: row.whole,
            had: Duration::from_nanos(row.had),
            done: pace.work(row.done),
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

    #[test]
    fn stretches_are_read_one_by_one() {
        let mut ledger = Ledger::default();
        ledger.close(stretch(0, 10, 1.0), Sample { had: 8, done: 16 });
        ledger.close(stretch(10, 20, 2.0), Sample { had: 18, done: 26 });
        ledger.close(stretch(20, 30, 4.0), Sample { had: 18, done: 26 });
        // An edge that was seen late: not a copy for less than no time.
        ledger.close(stretch(30, 40, 4.0), Sample { had: 17, done: 26 });
        ledger.close(stretch(40, 50, 2.0), Sample { had: 28, done: 26 });
        let origin = Instant::now();
        let read = ledger.readings(origin, Pace::new(2.0));
        let brief =
            |r: &SlotReading| ((r.from - origin).as_nanos(), r.asked, r.had.as_nanos(), r.done.as_nanos());
        let read: Vec<_> = read.iter().map(|r| (brief(r), r.achieved())).collect();
        assert_eq!(
            read,
            [((0, 1.0, 8, 8), 1.0), ((10, 2.0, 10, 5), 2.0), ((40, 2.0, 10, 0), f64::INFINITY)],
            "no line without a copy"
        );
    }

    #[test]
    fn slots_that_are_cut_are_marked() {
        let mut ledger = Ledger::default();
        ledger.cut(stretch(0, 10, 1.0), Sample { had: 10, done: 10 });
        ledger.cut(stretch(10, 15, 2.0), Sample { had: 15, done: 10 });
        ledger.close(stretch(15, 31, 2.0), Sample { had: 31, done: 18 });
        let read: Vec<_> =
            ledger.readings(Instant::now(), Pace::new(1.0)).iter().map(|r| (r.achieved(), r.whole)).collect();
        assert_eq!(read, [(1.0, false), (f64::INFINITY, false), (2.0, true)]);
    }

    #[test]
    fn edges_that_nobody_saw_share_what_was_done() {
        let mut ledger = Ledger::default();
        ledger.close(stretch(0, 10, 1.0), Sample { had: 10, done: 100 });
        let now = Sample { had: 30, done: 200 };
        assert_eq!(ledger.between(now, 0.5), Sample { had: 20, done: 150 });
        assert_eq!(ledger.between(now, 1.0), now);
    }
}
