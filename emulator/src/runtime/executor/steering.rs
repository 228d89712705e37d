//! The control law of the competitor, as pure arithmetic.
//!
//! In a slot of slowdown σ, a copy that has been there for B should have B / σ of its work done. The *lead* is the work
//! done beyond that. The competitor occupies the CPU until the lead is −h, then leaves it until the lead is h, so that
//! the copy is neither early nor late on average; h is such that both parts together take a period. The last step of a
//! slot, up to two periods long, brings the lead to zero at the slot's end. It ends with the burner's part, because
//! occupying the CPU ends to the microsecond, and sleeping ends when the system decides.
//!
//! All times in nanoseconds.

/// Length of a period: much longer than the lateness of timers and a context switch, much shorter than the shortest
/// slots.
const PERIOD: f64 = 2e6;

/// The state of a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlotState {
    /// Time left.
    pub rest: f64,
    /// Time with a copy so far.
    pub busy: f64,
    /// Work done so far.
    pub done: f64,
    /// The configured slowdown, above 1.
    pub slowdown: f64,
    /// Recent work done per time in which the CPU was left to the burner: below 1 if a context switch costs it time,
    /// such as cold caches. The loop corrects for that except at the end of the slot.
    pub gain: f64,
}

/// One step of the competitor: it occupies the CPU, then leaves it to the burner.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Time for which it occupies the CPU.
    pub occupy: f64,
    /// Time for which it leaves the CPU after that, before the next step.
    pub leave: f64,
}

/// The next step, assuming that the copy stays.
#[must_use]
pub fn next_step(state: SlotState) -> Step {
    let SlotState { rest, busy, done, slowdown, gain } = state;
    let part = 1.0 - 1.0 / slowdown;
    let swing = PERIOD * part / slowdown / 2.0;
    let lead = done - busy / slowdown;
    let occupy = ((lead + swing) * slowdown).max(0.0);
    let leave = (swing - (lead - occupy / slowdown)) / part;
    if occupy + leave + PERIOD < rest {
        return Step { occupy, leave };
    }
    // Time for the work due until the end; all of the rest if the copy is far behind.
    let due = (((busy + rest) / slowdown - done) / gain).clamp(0.0, rest);
    Step { occupy: rest - due, leave: due }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Simulates a core on which burner and competitor take turns, sleeps end late, and other threads steal CPU time.
    fn slot(length: f64, slowdown: f64, late: &[f64], stolen: &[f64], before: f64) -> (SlotState, f64, u32) {
        // Work done in a sleep that ended after the previous slot.
        let mut state = SlotState { rest: length - before, busy: before, done: before, slowdown, gain: 1.0 };
        let mut overshoot = 0.0;
        let (mut late, mut stolen) = (late.iter().cycle(), stolen.iter().cycle());
        for steps in 1.. {
            let step = next_step(state);
            assert!(step.occupy >= 0.0 && step.leave >= 0.0, "{state:?} gave {step:?}");
            assert!(step.occupy + step.leave > 0.0 && step.occupy + step.leave <= state.rest * 1.000_001);
            let sleeps = if step.leave > 0.0 { step.leave + late.next().unwrap() } else { 0.0 };
            let takes = (step.occupy + sleeps).min(state.rest);
            overshoot = (step.occupy + sleeps - state.rest).max(0.0);
            let runs = (takes - step.occupy).max(0.0);
            state.busy += takes;
            state.done += runs * (1.0 - stolen.next().unwrap());
            state.rest -= takes;
            if state.rest < 1.0 {
                return (state, overshoot, steps);
            }
        }
        (state, overshoot, 0)
    }

    proptest! {
        /// Each slot achieves its slowdown, for moderate lateness of sleeps and any state left by the slot before.
        #[test]
        fn each_slot_comes_out_right(
            ms in 10u32..200, slowdown in 1.05f64..8.0,
            late in prop::collection::vec(0.0f64..0.2e6, 1..20),
            stolen in prop::collection::vec(0.0f64..0.05, 1..20),
        ) {
            let length = f64::from(ms) * 1e6;
            let mut before = 0.0;
            for _ in 0..10 {
                let (end, overshoot, _) = slot(length, slowdown, &late, &stolen, before);
                let achieved = end.busy / end.done;
                // CPU time stolen in the last sleep of a slot is lost, and a period cannot correct more lateness
                // than the burner's part of it.
                let latest = late.iter().copied().fold(0.0, f64::max);
                let missed = (latest - PERIOD / slowdown / 2.0).max(0.0);
                let bound = 0.05 * 2.5 * PERIOD / length + missed * slowdown / length + 1e-6;
                prop_assert!((achieved / slowdown - 1.0).abs() < bound, "asked {slowdown}, got {achieved}");
                before = overshoot;
            }
        }

        /// Within a slot, the lead stays within half a swing.
        #[test]
        fn a_copy_is_neither_early_nor_late(slowdown in 1.05f64..8.0, at in 0.1f64..0.9) {
            let mut state = SlotState { rest: 1e8, busy: 0.0, done: 0.0, slowdown, gain: 1.0 };
            let swing = PERIOD * (1.0 - 1.0 / slowdown) / slowdown / 2.0;
            while state.busy < at * 1e8 {
                let step = next_step(state);
                state.busy += step.occupy;
                prop_assert!((state.done - state.busy / slowdown + swing).abs() < 1.0, "{state:?}");
                state.busy += step.leave;
                state.done += step.leave;
                state.rest -= step.occupy + step.leave;
                prop_assert!((state.done - state.busy / slowdown - swing).abs() < 1.0, "{state:?}");
            }
        }

        /// A burner far behind gets all of the CPU and one far ahead none; every step ends within the slot.
        #[test]
        fn extremes_are_met(rest in 1.0f64..1e8, busy in 0.0f64..1e8, share in 0.0f64..2.0, slowdown in 1.01f64..50.0) {
            let state = SlotState { rest, busy, done: busy * share, slowdown, gain: 1.0 };
            let step = next_step(state);
            prop_assert!(step.occupy >= 0.0 && step.leave >= 0.0);
            prop_assert!(step.occupy + step.leave <= rest * 1.000_001);
            let starved = next_step(SlotState { done: 0.0, busy: 1e9, ..state });
            prop_assert!(starved.occupy == 0.0 || slowdown > 9.0, "{starved:?}");
            let loose = next_step(SlotState { done: 1e9, busy: 1e9, rest: 1e6, ..state });
            prop_assert_eq!((loose.occupy, loose.leave), (1e6, 0.0));
        }
    }

    /// A known cost of context switches is corrected at the end of a slot as well.
    #[test]
    fn a_slow_start_is_made_up_for() {
        let (cost, length, slowdown) = (40e3, 1e7, 4.0);
        let end = |gain| {
            let mut state = SlotState { rest: length, busy: 0.0, done: 0.0, slowdown, gain };
            while state.rest > 1.0 {
                let step = next_step(state);
                state.busy += step.occupy + step.leave;
                state.rest -= step.occupy + step.leave;
                state.done += (step.leave - cost).max(0.0);
            }
            state.busy / state.done / slowdown - 1.0
        };
        let lasts = PERIOD / slowdown;
        assert!(
            end(1.0) > 0.015 && end(1.0 - cost / lasts).abs() < 0.015,
            "{} {}",
            end(1.0),
            end(1.0 - cost / lasts)
        );
    }

    #[test]
    fn a_step_takes_a_period() {
        let (_, _, steps) = slot(1e8, 2.0, &[0.0], &[0.0], 0.0);
        assert!((45..=55).contains(&steps), "{steps} steps in 50 periods");
    }
}
