//! Tests with real threads, and of the control law. No test depends on speed, which the benchmark `burn` measures.

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use proptest::prelude::*;
use volary_experiment::config::file::Kernel;

use super::calibration::CalibrationOptions;
use super::competitor::{PERIOD, SlotState, next_step};
use super::*;

/// Options that suffice for a calibration on any machine; its accuracy does not matter here.
const BRIEF: CalibrationOptions = CalibrationOptions {
    warm_up: Duration::from_millis(1),
    measure: Duration::from_millis(10),
    timeout: Duration::from_secs(600),
};
/// A time longer than any test runs.
const FOREVER: Duration = Duration::from_secs(3600);
/// Limit on every wait, far above the needs of a loaded machine: a wait that exceeds it is a bug.
const DEADLINE: Duration = Duration::from_secs(120);

fn burners(cpus: &[CpuId]) -> Burners {
    Burners::start_with(Kernel::Hash, cpus, BRIEF).unwrap()
}

fn one() -> Burners {
    burners(&free_cpus()[..1])
}

/// Waits until `check` returns `Some`.
fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Waits until a copy has finished; returns its ticket.
fn finished(burners: &Burners, core: usize) -> u64 {
    wait_for("a copy finishes", || burners.take_finished(core)).0
}

/// The threads of this process with these names: name, CPUs and scheduling policy.
fn threads(names: &[String]) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for folder in fs::read_dir("/proc/self/task").unwrap().flatten() {
        // A thread may end in between.
        let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap_or_default();
        let name = read("comm").trim().to_owned();
        if names.contains(&name) {
            let status = read("status");
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            // The policy is field 41; field 2, the name, is in brackets.
            let stat = read("stat");
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
            if let (Some(cpus), Some(policy)) = (cpus, fields.get(41 - 3)) {
                found.push((name, cpus.trim().to_owned(), (*policy).to_owned()));
            }
        }
    }
    found
}

#[test]
fn copies_finish_under_their_tickets() {
    let cpus = free_cpus();
    let burners = burners(&cpus);
    for round in 1..=20 {
        let ticket = |core: usize| round * 100 + core as u64;
        (0..cpus.len()).for_each(|core| burners.run(core, ticket(core), Duration::from_micros(150)));
        for core in 0..cpus.len() {
            assert_eq!(finished(&burners, core), ticket(core));
        }
    }
    assert!((0..cpus.len()).all(|core| burners.take_finished(core).is_none()), "each is reported once");
    for (reading, cpu) in burners.end().iter().zip(cpus) {
        assert_eq!(reading.cpu, cpu);
        // Work is rounded to whole rounds 20 times, and in each stretch.
        let (work, rounding) =
            (Duration::from_micros(20 * 150), Duration::from_micros(20 + reading.slots.len() as u64));
        let done: Duration = reading.slots.iter().map(|slot| slot.done).sum();
        assert!(
            reading.slots.iter().all(|slot| slot.asked == 1.0 && slot.busy > Duration::ZERO),
            "{reading:?}"
        );
        assert!(done + rounding > work && done <= work + rounding, "{reading:?}");
    }
}

#[test]
fn a_halted_copy_keeps_the_work_that_is_left() {
    let burners = one();
    let work = Duration::from_secs(1000);
    burners.run(0, 7, work);
    wait_for("the copy makes progress", || {
        (burners.left(0) <= work - Duration::from_micros(100)).then_some(())
    });
    let left = burners.halt(0);
    assert!(left < work && left > Duration::from_secs(1), "{left:?}");
    assert_eq!((burners.left(0), burners.halt(0)), (Duration::ZERO, Duration::ZERO));
    // The work continues as another copy from exactly that point.
    burners.run(0, 8, left);
    let again = burners.halt(0);
    assert!(again <= left, "{left:?} became {again:?}");
    // The burner may still be in a chunk of the old copy.
    for ticket in 1..=100 {
        burners.run(0, ticket, FOREVER);
        assert!(burners.halt(0) > Duration::ZERO);
    }
    burners.run(0, 101, Duration::from_micros(1));
    assert_eq!(finished(&burners, 0), 101, "and none of the others");
    let [reading] = &burners.end()[..] else { panic!() };
    let done: Duration = reading.slots.iter().map(|slot| slot.done).sum();
    assert!(done >= work - left, "{reading:?}");
}

/// A copy is either finished or halted, independent of the time of the halt.
#[test]
fn a_copy_is_either_finished_or_halted() {
    let burners = one();
    let mut halted = 0;
    for ticket in 1..=500 {
        burners.run(0, ticket, Duration::from_micros(40));
        (0..ticket * 100).for_each(|_| std::hint::spin_loop());
        if burners.halt(0) > Duration::ZERO {
            halted += 1;
            assert_eq!(burners.take_finished(0), None);
        } else {
            assert_eq!(finished(&burners, 0), ticket);
        }
    }
    burners.run(0, 501, Duration::from_micros(40));
    assert_eq!(finished(&burners, 0), 501, "after {halted} were halted");
}

#[test]
fn threads_are_pinned_to_their_cpus_and_end() {
    let cpus = free_cpus();
    let names: Vec<_> = cpus.iter().flat_map(|cpu| [format!("burn-{cpu}"), format!("rival-{cpu}")]).collect();
    let burners = burners(&cpus);
    // Threads of other tests may be among them.
    let found = threads(&names);
    for cpu in &cpus {
        // SCHED_IDLE is 5, SCHED_OTHER 0.
        for (name, policy) in [(format!("burn-{cpu}"), "5"), (format!("rival-{cpu}"), "0")] {
            let expected = (name, cpu.to_string(), policy.to_owned());
            assert!(found.contains(&expected), "{expected:?} is not among {found:?}");
        }
    }
    // The burners end during copies and slots.
    let now = Instant::now();
    for core in 0..cpus.len() {
        burners.run(core, 1, FOREVER);
        burners.degrade(core, vec![DegradedSlot { from: now, until: now + FOREVER, slowdown: 2.0 }]);
    }
    let shared: Vec<_> = (0..cpus.len()).map(|core| Arc::downgrade(burners.shared(core))).collect();
    drop(burners);
    assert!(shared.iter().all(|shared| shared.upgrade().is_none()), "no thread is left");
}

#[test]
fn an_idle_core_can_be_ended_and_dropped() {
    let burners = one();
    let now = Instant::now();
    burners.degrade(0, vec![DegradedSlot { from: now, until: now + FOREVER, slowdown: 4.0 }]);
    let [reading] = &burners.end()[..] else { panic!() };
    assert!(reading.slots.is_empty() && reading.rounds_per_s > 0.0, "{reading:?}");
    drop(one());
}

/// Sets slots and waits until the competitor has taken them.
fn degrade(burners: &Burners, slots: Vec<DegradedSlot>) {
    burners.degrade(0, slots);
    wait_for("the competitor takes its slots", || (!burners.shared(0).is_interrupted()).then_some(()));
}

/// The configured slowdowns in order; a long healthy time is several readings.
fn asked(slots: &[SlotReading]) -> Vec<f64> {
    let mut asked: Vec<_> = slots.iter().map(|slot| slot.asked).collect();
    asked.dedup();
    asked
}

/// Readings come in order, with the configured slowdowns, and the sum of their work is the work of the copies.
#[test]
fn readings_of_slots_are_in_order_and_sum_to_the_work() {
    let burners = one();
    burners.run(0, 1, FOREVER);
    let ms = Duration::from_millis;
    // Tries again if the machine is too busy to take the slots in time.
    let start = wait_for("slots are taken before they begin", || {
        let start = Instant::now() + ms(20);
        let slot = |from, until, slowdown| DegradedSlot {
            from: start + ms(from),
            until: start + ms(until),
            slowdown,
        };
        let later = slot(90_000, 99_000, 3.0);
        degrade(&burners, vec![slot(0, 20, 2.0), slot(20, 40, 4.0), slot(60, 80, 1.5), later]);
        (Instant::now() < start).then_some(start)
    });
    thread::sleep((start + ms(90)).saturating_duration_since(Instant::now()));
    let left = burners.halt(0);
    burners.run(0, 2, Duration::from_micros(1));
    assert_eq!(finished(&burners, 0), 2);
    let [reading] = &burners.end()[..] else { panic!() };
    let slots = &reading.slots;
    let first = slots.iter().rposition(|slot| slot.asked == 2.0).unwrap();
    assert_eq!(asked(&slots[first - 1..]), [1.0, 2.0, 4.0, 1.0, 1.5, 1.0], "{reading:?}");
    assert!(slots[first..first + 4].iter().all(|slot| slot.until - slot.from == ms(20)), "{reading:?}");
    assert!(slots.is_sorted_by(|a, b| a.until <= b.from), "{reading:?}");
    assert!(slots.iter().all(|slot| slot.busy <= slot.until - slot.from), "{reading:?}");
    let done: Duration = slots.iter().map(|slot| slot.done).sum();
    // A lost chunk is included in the work done, and each reading is rounded.
    let all = FOREVER - left;
    assert!(done + ms(1) >= all && done < all + ms(1), "{done:?} of {all:?}");
    assert!(reading.competed > Duration::ZERO, "the competitor took the CPU: {reading:?}");
}

#[test]
fn a_slot_continues_when_it_is_set_again() {
    let burners = one();
    let now = Instant::now();
    let slots = |slowdown| vec![DegradedSlot { from: now, until: now + FOREVER, slowdown }];
    burners.run(0, 1, FOREVER);
    for slowdown in [2.0, 2.0, 2.0, 3.0] {
        degrade(&burners, slots(slowdown));
        thread::sleep(Duration::from_millis(10));
    }
    degrade(&burners, Vec::new());
    let [reading] = &burners.end()[..] else { panic!() };
    assert_eq!(asked(&reading.slots), [1.0, 2.0, 3.0, 1.0], "{reading:?}");
}

#[test]
fn cpus_that_are_not_free_or_given_twice_are_refused() {
    let start = |cpus: &[u16]| {
        let cpus: Vec<_> = cpus.iter().map(|&cpu| CpuId(cpu)).collect();
        Burners::start(Kernel::Hash, &cpus).unwrap_err().to_string()
    };
    let free = free_cpus()[0].0;
    assert!(start(&[free, free]).contains("each needs a CPU of its own"));
    assert!(start(&[1023]).contains("CPU 1023 is not among those that this process may use"));
}

// The control law of the competitor.

/// Simulates a core on which burner and competitor take turns, sleeps end late, and other threads steal CPU time.
fn steered(length: f64, slowdown: f64, late: &[f64], stolen: &[f64], before: f64) -> (SlotState, f64, u32) {
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
    /// Each slot achieves its slowdown, for moderate lateness of sleeps and any final state of the previous slot.
    #[test]
    fn each_slot_achieves_its_slowdown(
        ms in 10u32..200, slowdown in 1.05f64..8.0,
        late in prop::collection::vec(0.0f64..0.2e6, 1..20),
        stolen in prop::collection::vec(0.0f64..0.05, 1..20),
    ) {
        let length = f64::from(ms) * 1e6;
        let mut before = 0.0;
        for _ in 0..10 {
            let (end, overshoot, _) = steered(length, slowdown, &late, &stolen, before);
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

    /// Within a slot, the lead stays between −h and h.
    #[test]
    fn the_lead_of_a_copy_stays_between_its_bounds(slowdown in 1.05f64..8.0, at in 0.1f64..0.9) {
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

    /// A burner far behind gets all of the CPU, and a burner far ahead gets none. Every step ends within the slot.
    #[test]
    fn a_burner_far_behind_gets_all_of_the_cpu(rest in 1.0f64..1e8, busy in 0.0f64..1e8, share in 0.0f64..2.0, slowdown in 1.01f64..50.0) {
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

/// With gain 1 the cost is not corrected.
#[test]
fn the_cost_of_context_switches_is_corrected_at_the_end_of_a_slot() {
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
fn the_competitor_is_steered_once_per_period() {
    let (_, _, steps) = steered(1e8, 2.0, &[0.0], &[0.0], 0.0);
    assert!((45..=55).contains(&steps), "{steps} steps in 50 periods");
}
