//! How a competitor slows a core down, as pure arithmetic.
//!
//! In a slot of slowdown σ, a copy that has been there for B should have got B / σ of its work done. The *lead* is
//! what it has got done beyond that. The competitor lets it swing: it takes the CPU until the lead is −h, then leaves
//! it until the lead is h, so that a copy is neither early nor late on average, with h such that both together take
//! a period. The last period of a slot, which is up to two long, is such that the copy is where it should be at
//! the slot's end. It ends with the burner's part: occupying the CPU ends to the microsecond, sleeping when the
//! system says.
//!
//! All times in nanoseconds.

/// A period: long beside the lateness of timers and the cost of switching, short beside the shortest slots.
const PERIOD: f64 = 2e6;

/// A slot as it stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct State {
    /// What is left of it.
    pub rest: f64,
    /// For how long there has been a copy in it, so far.
    pub had: f64,
    /// Work that was done in it, so far.
    pub done: f64,
    /// The slowdown asked for, above 1.
    pub slowdown: f64,
    /// Work done per time in which the CPU is left alone, lately: below 1 if to be switched to costs the burner
    /// something, such as cold caches. In between the loop makes up for it, at the end there is no time to.
    pub gain: f64,
}

/// What a competitor does next: it occupies the CPU, then leaves it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// How long it occupies the CPU.
    pub occupy: f64,
    /// How long it leaves it alone after that, before it looks again.
    pub leave: f64,
}

/// The next step, for a copy that stays.
#[must_use]
pub fn next(state: State) -> Step {
    let State { rest, had, done, slowdown, gain } = state;
    let part = 1.0 - 1.0 / slowdown;
    let swing = PERIOD * part / slowdown / 2.0;
    let lead = done - had / slowdown;
    let occupy = ((lead + swing) * slowdown).max(0.0);
    let leave = (swing - (lead - occupy / slowdown)) / part;
    if occupy + leave + PERIOD < rest {
        return Step { occupy, leave };
    }
    // How long it takes to get done what is due until the end; all of the rest if it is far behind.
    let due = (((had + rest) / slowdown - done) / gain).clamp(0.0, rest);
    Step { occupy: rest - due, leave: due }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A core on which burner and competitor take turns. Sleeping ends late, and now and then somebody else has
    /// the CPU.
    fn slot(length: f64, slowdown: f64, late: &[f64], stolen: &[f64], before: f64) -> (State, f64, u32) {
        // What was done in a sleep that ended after the slot before.
        let mut state = State { rest: length - before, had: before, done: before, slowdown, gain: 1.0 };
        let mut overshoot = 0.0;
        let (mut late, mut stolen) = (late.iter().cycle(), stolen.iter().cycle());
        for steps in 1.. {
            let step = next(state);
            assert!(step.occupy >= 0.0 && step.leave >= 0.0, "{state:?} gave {step:?}");
            assert!(step.occupy + step.leave > 0.0 && step.occupy + step.leave <= state.rest * 1.000_001);
            let sleeps = if step.leave > 0.0 { step.leave + late.next().unwrap() } else { 0.0 };
            let takes = (step.occupy + sleeps).min(state.rest);
            overshoot = (step.occupy + sleeps - state.rest).max(0.0);
            let runs = (takes - step.occupy).max(0.0);
            state.had += takes;
            state.done += runs * (1.0 - stolen.next().unwrap());
            state.rest -= takes;
            if state.rest < 1.0 {
                return (state, overshoot, steps);
            }
        }
        (state, overshoot, 0)
    }

    proptest! {
        /// However late sleeps end, within reason, each slot comes out right, and what the last one left does
        /// not matter.
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
                let achieved = end.had / end.done;
                // The last sleep of a slot loses what is stolen in it, and a period cannot make up for more
                // lateness than it lets the copy have.
                let latest = late.iter().copied().fold(0.0, f64::max);
                let missed = (latest - PERIOD / slowdown / 2.0).max(0.0);
                let bound = 0.05 * 2.5 * PERIOD / length + missed * slowdown / length + 1e-6;
                prop_assert!((achieved / slowdown - 1.0).abs() < bound, "asked {slowdown}, got {achieved}");
                before = overshoot;
            }
        }

        /// Where a copy stands within a slot is where it should, to half a swing and what lateness adds.
        #[test]
        fn a_copy_is_neither_early_nor_late(slowdown in 1.05f64..8.0, at in 0.1f64..0.9) {
            let mut state = State { rest: 1e8, had: 0.0, done: 0.0, slowdown, gain: 1.0 };
            let swing = PERIOD * (1.0 - 1.0 / slowdown) / slowdown / 2.0;
            while state.had < at * 1e8 {
                let step = next(state);
                state.had += step.occupy;
                prop_assert!((state.done - state.had / slowdown + swing).abs() < 1.0, "{state:?}");
                state.had += step.leave;
                state.done += step.leave;
                state.rest -= step.occupy + step.leave;
                prop_assert!((state.done - state.had / slowdown - swing).abs() < 1.0, "{state:?}");
            }
        }

        /// A burner that gets nothing, or that cannot be stopped, is given all or nothing; no step is without end.
        #[test]
        fn extremes_are_met(rest in 1.0f64..1e8, had in 0.0f64..1e8, share in 0.0f64..2.0, slowdown in 1.01f64..50.0) {
            let state = State { rest, had, done: had * share, slowdown, gain: 1.0 };
            let step = next(state);
            prop_assert!(step.occupy >= 0.0 && step.leave >= 0.0);
            prop_assert!(step.occupy + step.leave <= rest * 1.000_001);
            let starved = next(State { done: 0.0, had: 1e9, ..state });
            prop_assert!(starved.occupy == 0.0 || slowdown > 9.0, "{starved:?}");
            let loose = next(State { done: 1e9, had: 1e9, rest: 1e6, ..state });
            prop_assert_eq!((loose.occupy, loose.leave), (1e6, 0.0));
        }
    }

    /// What it costs to be switched to is made up for at the end as well, once it is known.
    #[test]
    fn a_slow_start_is_made_up_for() {
        let (cost, length, slowdown) = (40e3, 1e7, 4.0);
        let end = |gain| {
            let mut state = State { rest: length, had: 0.0, done: 0.0, slowdown, gain };
            while state.rest > 1.0 {
                let step = next(state);
                state.had += step.occupy + step.leave;
                state.rest -= step.occupy + step.leave;
                state.done += (step.leave - cost).max(0.0);
            }
            state.had / state.done / slowdown - 1.0
        };
        let lasts = PERIOD / slowdown;
        assert!(
            end(1.0) > 0.015 && end(1.0 - cost / lasts).abs() < 0.015,
            "{} {}",
            end(1.0),
            end(1.0 - cost / lasts)
        );
    }

    /// Slots of a few periods take a few steps.
    #[test]
    fn steps_are_periods() {
        let (_, _, steps) = slot(1e8, 2.0, &[0.0], &[0.0], 0.0);
        assert!((45..=55).contains(&steps), "{steps} steps in 50 periods");
    }
}
