//! The thread that interferes: it occupies its CPU as [`steer`] says while a slot lasts and a copy is there, and keeps
//! the ledger.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use super::calibrate::Pace;
use super::cpu::thread_time;
use super::desk::{Desk, Sample};
use super::ledger::{Ledger, Stretch};
use super::{Slot, steer};

/// Some 37 times the weight of a burner, a tenth of anything else's: it wins against the one and loses to the other.
pub(super) const NICE: i32 = 10;

/// A healthy stretch lasts so long at most, ns, however long the core stays so: its pace is read in between.
const HEALTHY: u64 = 100_000_000;

/// What a competitor leaves.
#[derive(Default, Debug)]
pub(super) struct Account {
    pub(super) ledger: Ledger,
    pub(super) cpu_time: Duration,
}

pub(super) struct Competitor {
    desk: Arc<Desk>,
    pace: Pace,
    timeline: Timeline,
    ledger: Ledger,
    gain: Gain,
}

impl Competitor {
    pub(super) fn new(desk: Arc<Desk>, pace: Pace) -> Self {
        let timeline = Timeline::healthy(desk.now());
        Self { desk, pace, timeline, ledger: Ledger::default(), gain: Gain::default() }
    }

    /// Competes until it is told to stop.
    pub(super) fn run(mut self) -> Account {
        // Timers may be grouped by 50 µs otherwise; refused, they stay so.
        let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
        while !self.desk.is_stopped() {
            let now = self.desk.now();
            self.turn(now);
            if let Some(slots) = self.desk.new_plan() {
                self.replan(now, &slots);
            }
            self.compete(now);
        }
        let now = self.desk.now();
        self.turn(now);
        self.ledger.cut(Stretch { until: now, ..self.timeline.current }, self.desk.sample(now));
        Account { ledger: self.ledger, cpu_time: thread_time() }
    }

    /// Closes the stretches that are over.
    fn turn(&mut self, now: u64) {
        let mut seen = true;
        while self.timeline.current.until <= now {
            let over = self.timeline.current;
            // Only the first of several edges was awaited.
            let end = if seen {
                self.desk.at_edge(over.until)
            } else {
                let share = (over.until - over.from) as f64 / (now - over.from).max(1) as f64;
                self.ledger.between(self.desk.sample(now), share)
            };
            self.ledger.close(over, end);
            self.timeline.turn();
            self.desk.await_edge(self.timeline.current.until);
            seen = false;
        }
    }

    /// Goes on with other slots from `now` on.
    fn replan(&mut self, now: u64, slots: &[Slot]) {
        let stretch = |slot: &Slot| Stretch {
            from: self.desk.ns(slot.from),
            until: self.desk.ns(slot.until),
            slowdown: slot.slowdown,
        };
        if let Some(over) = self.timeline.replan(now, slots.iter().map(stretch).collect()) {
            self.ledger.cut(over, self.desk.sample(now));
        }
        self.desk.await_edge(self.timeline.current.until);
    }

    /// One step: occupies the CPU if it should, then sleeps.
    fn compete(&mut self, now: u64) {
        let Stretch { until, slowdown, .. } = self.timeline.current;
        if slowdown <= 1.0 || (!self.desk.is_busy() && self.desk.watch()) {
            return self.sleep(until);
        }
        let sample = self.desk.sample(now);
        self.gain.woke(now, sample, self.pace);
        let Sample { had, done } = self.ledger.since(sample);
        let step = steer::next(steer::State {
            rest: (until - now) as f64,
            had: had as f64,
            done: self.pace.ns(done),
            slowdown,
            gain: self.gain.mean,
        });
        let occupied = now + step.occupy as u64;
        while self.desk.now() < occupied && self.desk.is_busy() && !self.desk.has_news() {
            std::hint::spin_loop();
        }
        if step.leave > 0.0 {
            let now = self.desk.now();
            self.gain.left = Some((now, self.desk.sample(now)));
            self.sleep(occupied + step.leave as u64);
        }
    }

    /// Sleeps until then, or until there is news.
    fn sleep(&self, until: u64) {
        std::thread::park_timeout(Duration::from_nanos(until.saturating_sub(self.desk.now())));
    }
}

/// What a burner gets done in the time that it is left, lately.
#[derive(Debug)]
struct Gain {
    mean: f64,
    /// When it was last left alone, and how things stood then.
    left: Option<(u64, Sample)>,
}

impl Default for Gain {
    fn default() -> Self {
        Self { mean: 1.0, left: None }
    }
}

impl Gain {
    /// How much the latest counts.
    const WEIGHT: f64 = 0.1;
    /// Below, somebody else had the CPU, which tells nothing of the next time.
    const LEAST: f64 = 0.8;
    /// Shorter times tell of single chunks, ns.
    const BRIEF: u64 = 200_000;

    /// The competitor is awake again.
    fn woke(&mut self, now: u64, sample: Sample, pace: Pace) {
        let Some((then, before)) = self.left.take() else { return };
        let had = sample.had.saturating_sub(before.had);
        // Only if there was a copy all the time.
        if had > Self::BRIEF && had + 1000 > now - then {
            let gain = pace.ns(sample.done - before.done) / had as f64;
            if gain > Self::LEAST {
                self.mean += Self::WEIGHT * (gain - self.mean);
            }
        }
    }
}

/// The stretch that lasts, and the slots to come.
#[derive(Debug)]
struct Timeline {
    current: Stretch,
    slots: VecDeque<Stretch>,
}

impl Timeline {
    const fn healthy(from: u64) -> Self {
        Self { current: Stretch { from, until: from + HEALTHY, slowdown: 1.0 }, slots: VecDeque::new() }
    }

    /// Goes on to the next stretch.
    fn turn(&mut self) {
        self.current = self.from(self.current.until);
    }

    /// The stretch that begins at `from`: a slot, or healthy until the next one or for some time.
    fn from(&mut self, from: u64) -> Stretch {
        match self.slots.front() {
            Some(slot) if slot.from <= from => {
                let slot = *slot;
                self.slots.pop_front();
                Stretch { from, ..slot }
            }
            next => {
                let until = from + HEALTHY;
                Stretch { from, until: next.map_or(until, |slot| until.min(slot.from)), slowdown: 1.0 }
            }
        }
    }

    /// Takes other slots from `now` on. Returns the stretch that this ended, if it did.
    fn replan(&mut self, now: u64, slots: VecDeque<Stretch>) -> Option<Stretch> {
        self.slots = slots;
        while self.slots.front().is_some_and(|slot| slot.until <= now) {
            self.slots.pop_front();
        }
        let next = self.from(now);
        if next.slowdown == self.current.slowdown {
            let most = if next.slowdown == 1.0 { self.current.from + HEALTHY } else { u64::MAX };
            self.current.until = next.until.min(most);
            return None;
        }
        let over = Stretch { until: now, ..self.current };
        self.current = next;
        Some(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(from: u64, until: u64, slowdown: f64) -> Stretch {
        Stretch { from, until, slowdown }
    }

    /// The stretch that lasts, turn by turn.
    fn stretches(timeline: &mut Timeline, turns: usize) -> Vec<(u64, u64, f64)> {
        let turn = |_| {
            let Stretch { from, until, slowdown } = timeline.current;
            timeline.turn();
            (from, until, slowdown)
        };
        (0..turns).map(turn).collect()
    }

    #[test]
    fn slots_and_healthy_stretches_take_turns_without_a_gap() {
        let mut timeline = Timeline::healthy(5);
        let slots = [slot(20, 30, 2.0), slot(30, 40, 4.0), slot(50, 60, 4.0)];
        assert_eq!(timeline.replan(10, slots.into()), None, "still healthy");
        assert_eq!(
            stretches(&mut timeline, 7),
            [
                (5, 20, 1.0),
                (20, 30, 2.0),
                (30, 40, 4.0),
                (40, 50, 1.0),
                (50, 60, 4.0),
                (60, 60 + HEALTHY, 1.0),
                (60 + HEALTHY, 60 + 2 * HEALTHY, 1.0)
            ]
        );
    }

    #[test]
    fn a_new_plan_cuts_only_what_it_changes() {
        let mut timeline = Timeline::healthy(0);
        // What is over is left out, and what lasts is joined.
        let over = timeline.replan(25, [slot(0, 10, 3.0), slot(20, 30, 2.0), slot(30, 40, 2.0)].into());
        assert_eq!((over, timeline.current), (Some(slot(0, 25, 1.0)), slot(25, 30, 2.0)));
        // The same again, with a clock that was adjusted: it goes on.
        assert_eq!(timeline.replan(27, [slot(21, 31, 2.0), slot(31, 41, 2.0)].into()), None);
        assert_eq!(timeline.current, slot(25, 31, 2.0));
        // A healthy one lasts no longer for it.
        let mut healthy = Timeline::healthy(0);
        assert_eq!(healthy.replan(HEALTHY - 1, VecDeque::new()), None);
        assert_eq!(healthy.current, slot(0, HEALTHY, 1.0));
        // Another slowdown, and none.
        assert_eq!(timeline.replan(28, [slot(21, 41, 4.0)].into()), Some(slot(25, 28, 2.0)));
        assert_eq!(timeline.replan(35, VecDeque::new()), Some(slot(28, 35, 4.0)));
        assert_eq!(stretches(&mut timeline, 1), [(35, 35 + HEALTHY, 1.0)]);
    }

    #[test]
    fn only_what_a_copy_got_all_the_time_tells_of_the_gain() {
        let pace = Pace::new(1.0);
        let mut gain = Gain::default();
        let mut left_alone = |had: u64, done: u64| {
            gain.left = Some((0, Sample { had: 50, done: 70 }));
            gain.woke(1_000_000, Sample { had: 50 + had, done: 70 + done }, pace);
            gain.mean
        };
        assert_eq!(left_alone(900_000, 500_000), 1.0, "the copy came or went");
        assert_eq!(left_alone(1_000_000, 100_000), 1.0, "somebody else had the CPU");
        assert!((left_alone(1_000_000, 900_000) - 0.99).abs() < 1e-9);
        let settled = (0..200).map(|_| left_alone(1_000_000, 900_000)).last();
        assert!(settled.is_some_and(|mean| (mean - 0.9).abs() < 1e-6), "{settled:?}");
    }
}
