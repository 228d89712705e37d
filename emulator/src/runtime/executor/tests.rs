//! Tests with real threads. None of them depends on speed, which the benchmark `burn` measures.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::calibration::CalibrationOptions;
use super::*;
use crate::config::real::Kernel;

/// Enough for some calibration on any machine; its accuracy does not matter here.
const BRIEF: CalibrationOptions = CalibrationOptions {
    warm_up: Duration::from_millis(1),
    measure: Duration::from_millis(10),
    timeout: Duration::from_secs(600),
};
/// Longer than any test runs.
const FOREVER: Duration = Duration::from_secs(3600);
/// Limit on every wait, far above what a loaded machine needs: a wait that exceeds it is a bug.
const DEADLINE: Duration = Duration::from_secs(120);

fn burners(cpus: &[CpuId]) -> Burners {
    Burners::start_with(Kernel::Hash, cpus, BRIEF).unwrap()
}

fn one() -> Burners {
    burners(&free_cpus()[..1])
}

/// Waits until `check` returns something.
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
            found.push((name, cpus.unwrap_or("").trim().to_owned(), fields[41 - 3].to_owned()));
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
        // Rounded to rounds 20 times, and in each stretch.
        let (work, rounding) = (Duration::from_micros(20 * 150), Duration::from_micros(20));
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
    // It continues as another copy from exactly there.
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
fn threads_are_pinned_and_end() {
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
    // In the middle of copies and slots.
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

/// Sets slots and waits until the competitor has them.
fn degrade(burners: &Burners, slots: Vec<DegradedSlot>) {
    burners.degrade(0, slots);
    wait_for("the competitor takes its slots", || (!burners.shared(0).is_interrupted()).then_some(()));
}

/// The configured slowdowns in order; healthy time is read in parts.
fn asked(slots: &[SlotReading]) -> Vec<f64> {
    let mut asked: Vec<_> = slots.iter().map(|slot| slot.asked).collect();
    asked.dedup();
    asked
}

/// Readings come in order, with the configured slowdowns, and their work adds up.
#[test]
fn slots_are_read_back() {
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
    // A lost chunk counts as done, and each reading is rounded.
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
fn cpus_are_checked() {
    let start = |cpus: &[u16]| {
        let cpus: Vec<_> = cpus.iter().map(|&cpu| CpuId(cpu)).collect();
        Burners::start(Kernel::Hash, &cpus).unwrap_err().to_string()
    };
    let free = free_cpus()[0].0;
    assert!(start(&[free, free]).contains("each needs a CPU of its own"));
    assert!(start(&[1023]).contains("CPU 1023 is not among those that this process may use"));
}
