//! Threads that really burn. Nothing here depends on how fast they are: the benchmark measures that.

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Enough to find a pace on any machine; how good it is does not matter here.
const BRIEF: Calibration = Calibration {
    warm_up: Duration::from_millis(1),
    measure: Duration::from_millis(10),
    patience: Duration::from_secs(600),
};
/// More than any test will wait for.
const LONG: Duration = Duration::from_secs(3600);

fn burners(cpus: &[CpuId]) -> (Burners, Receiver<(usize, u64)>) {
    let (tell, told) = channel();
    let setup = Setup { kernel: Kernel::Hash, cpus: cpus.to_vec() };
    let finished = Box::new(move |core, ticket| tell.send((core, ticket)).unwrap_or_default());
    (Burners::calibrated(&setup, BRIEF, finished).unwrap(), told)
}

fn one() -> (Burners, Receiver<(usize, u64)>) {
    burners(&free_cpus()[..1])
}

/// The threads of this process by these names: their CPUs and policies as the system has them.
fn threads(names: &[String]) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for folder in fs::read_dir("/proc/self/task").unwrap().flatten() {
        // A thread may end in between.
        let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap_or_default();
        let name = read("comm").trim().to_owned();
        if names.contains(&name) {
            let status = read("status");
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            // Nice and policy are the 19th and 41st; the second, the name, is in brackets.
            let stat = read("stat");
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
            found.push((name, cpus.unwrap_or("").trim().to_owned(), fields[41 - 3].to_owned()));
        }
    }
    found.sort();
    found
}

#[test]
fn copies_finish_under_their_tickets() {
    let cpus = free_cpus();
    let (burners, told) = burners(&cpus);
    for round in 0..20 {
        (0..cpus.len())
            .for_each(|core| burners.run(core, round * 100 + core as u64, Duration::from_micros(150)));
        let mut seen: Vec<_> = cpus.iter().map(|_| told.recv().unwrap()).collect();
        seen.sort_unstable();
        let due: Vec<_> = (0..cpus.len()).map(|core| (core, round * 100 + core as u64)).collect();
        assert_eq!(seen, due);
    }
    let readings = burners.end();
    assert!(told.try_recv().is_err(), "each is told once");
    for (reading, cpu) in readings.iter().zip(cpus) {
        assert_eq!(reading.cpu, cpu);
        // All of the work, and no more; rounded to rounds, 20 times, and in each stretch.
        let (work, rounding) = (Duration::from_micros(20 * 150), Duration::from_micros(20));
        let done: Duration = reading.slots.iter().map(|slot| slot.done).sum();
        assert!(
            reading.slots.iter().all(|slot| slot.asked == 1.0 && slot.had > Duration::ZERO),
            "{reading:?}"
        );
        assert!(done + rounding > work && done <= work + rounding, "{reading:?}");
    }
}

#[test]
fn a_halted_copy_keeps_what_is_left() {
    let (burners, told) = one();
    let work = Duration::from_secs(1000);
    burners.run(0, 7, work);
    while burners.left(0) > work - Duration::from_micros(100) {
        thread::yield_now();
    }
    let left = burners.halt(0);
    assert!(left < work && left > Duration::from_secs(1), "{left:?}");
    assert_eq!((burners.left(0), burners.halt(0)), (Duration::ZERO, Duration::ZERO));
    // It goes on as another copy, from exactly there.
    burners.run(0, 8, left);
    let again = burners.halt(0);
    assert!(again <= left, "{left:?} became {again:?}");
    // Without waiting for the thread, which may still be at the old chunk.
    (0..100).for_each(|ticket| {
        burners.run(0, ticket, LONG);
        assert!(burners.halt(0) > Duration::ZERO);
    });
    burners.run(0, 100, Duration::from_micros(1));
    assert_eq!(told.recv().unwrap(), (0, 100), "and none of the others");
    let [reading] = &burners.end()[..] else { panic!() };
    let done: Duration = reading.slots.iter().map(|slot| slot.done).sum();
    assert!(done >= work - left, "{reading:?}");
}

/// Finished or halted, never both and never neither, wherever the halt meets the copy.
#[test]
fn halts_and_finishes_do_not_cross() {
    let (burners, told) = one();
    let (mut finished, mut halted) = (Vec::new(), Vec::new());
    for ticket in 0..500 {
        burners.run(0, ticket, Duration::from_micros(40));
        (0..ticket * 100).for_each(|_| std::hint::spin_loop());
        let ended = if burners.halt(0) > Duration::ZERO { &mut halted } else { &mut finished };
        ended.push(ticket);
    }
    burners.run(0, 500, Duration::from_micros(40));
    while burners.left(0) > Duration::ZERO {
        thread::sleep(Duration::from_micros(100));
    }
    finished.push(500);
    drop(burners);
    assert_eq!(told.iter().map(|(_, ticket)| ticket).collect::<Vec<_>>(), finished);
    assert_eq!(finished.len() + halted.len(), 501);
}

#[test]
fn threads_are_where_they_should_be_and_go() {
    let cpus = free_cpus();
    let names: Vec<_> = cpus.iter().flat_map(|cpu| [format!("burn-{cpu}"), format!("rival-{cpu}")]).collect();
    // Other tests use the same CPUs, so others' threads may be among them.
    let (burners, told) = burners(&cpus);
    let at_least = |found: &[(String, String, String)]| {
        for cpu in &cpus {
            // SCHED_IDLE is 5, SCHED_OTHER 0.
            for (name, policy) in [(format!("burn-{cpu}"), "5"), (format!("rival-{cpu}"), "0")] {
                let due = (name, cpu.to_string(), policy.to_owned());
                assert!(found.contains(&due), "{due:?} is not among {found:?}");
            }
        }
    };
    at_least(&threads(&names));
    // In the middle of copies and slots.
    let now = Instant::now();
    for core in 0..cpus.len() {
        burners.run(core, 0, LONG);
        burners.degrade(core, vec![Slot { from: now, until: now + LONG, slowdown: 2.0 }]);
    }
    let desks: Vec<_> = burners.cores.iter().map(|core| Arc::downgrade(&core.desk)).collect();
    drop(burners);
    assert!(told.recv().is_err(), "no copy finished, and nobody is left to say so");
    assert!(desks.iter().all(|desk| desk.upgrade().is_none()), "no thread holds its desk");
}

#[test]
fn an_idle_core_can_be_ended_and_dropped() {
    let (burners, _) = one();
    let now = Instant::now();
    burners.degrade(0, vec![Slot { from: now, until: now + LONG, slowdown: 4.0 }]);
    let [reading] = &burners.end()[..] else { panic!() };
    assert!(reading.slots.is_empty() && reading.rounds_per_s > 0.0, "{reading:?}");
    drop(one());
}

/// Hands slots over and waits until the competitor has them.
fn degrade(burners: &Burners, slots: Vec<Slot>) {
    burners.degrade(0, slots);
    while burners.cores[0].desk.has_news() {
        thread::sleep(Duration::from_micros(100));
    }
}

/// What slots and the time between them were to be: healthy time is read in parts.
fn asked(slots: &[SlotReading]) -> Vec<f64> {
    let mut asked: Vec<_> = slots.iter().map(|slot| slot.asked).collect();
    asked.dedup();
    asked
}

/// Slots are read back in order, with what was asked, and what was done in them is what was done.
#[test]
fn slots_are_read_back() {
    let (burners, told) = one();
    burners.run(0, 1, LONG);
    let ms = Duration::from_millis;
    // A machine that is too busy to take the slots in time gets another chance.
    let start = loop {
        let start = Instant::now() + ms(20);
        let slot =
            |from, until, slowdown| Slot { from: start + ms(from), until: start + ms(until), slowdown };
        degrade(
            &burners,
            vec![slot(0, 20, 2.0), slot(20, 40, 4.0), slot(60, 80, 1.5), slot(90_000, 99_000, 3.0)],
        );
        if Instant::now() < start {
            break start;
        }
    };
    thread::sleep((start + ms(90)).saturating_duration_since(Instant::now()));
    let left = burners.halt(0);
    burners.run(0, 2, Duration::from_micros(1));
    assert_eq!(told.recv().unwrap(), (0, 2));
    let [reading] = &burners.end()[..] else { panic!() };
    let slots = &reading.slots;
    let first = slots.iter().rposition(|slot| slot.asked == 2.0).unwrap();
    assert_eq!(asked(&slots[first - 1..]), [1.0, 2.0, 4.0, 1.0, 1.5, 1.0], "{reading:?}");
    assert!(slots[first..first + 4].iter().all(|slot| slot.until - slot.from == ms(20)), "{reading:?}");
    assert!(slots.is_sorted_by(|a, b| a.until <= b.from), "{reading:?}");
    assert!(slots.iter().all(|slot| slot.had <= slot.until - slot.from), "{reading:?}");
    let done: Duration = slots.iter().map(|slot| slot.done).sum();
    // What was lost of a chunk was done as well, and each line is rounded.
    let all = LONG - left;
    assert!(done + ms(1) >= all && done < all + ms(1), "{done:?} of {all:?}");
    assert!(reading.competed > Duration::ZERO, "somebody took the CPU: {reading:?}");
}

#[test]
fn a_slot_goes_on_when_it_is_planned_again() {
    let (burners, _told) = one();
    let now = Instant::now();
    let slots = |slowdown| vec![Slot { from: now, until: now + LONG, slowdown }];
    burners.run(0, 1, LONG);
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
        let cpus = cpus.iter().map(|&cpu| CpuId(cpu)).collect();
        let setup = Setup { kernel: Kernel::Hash, cpus };
        Burners::start(setup, Box::new(|_, _| ())).unwrap_err().to_string()
    };
    let free = free_cpus()[0].0;
    assert!(start(&[free, free]).contains("each needs a CPU of its own"));
    assert!(start(&[1023]).contains("CPU 1023 is not among those that this process may use"));
}

/// Whoever is told of a copy may fail: it is not swallowed, and nothing hangs.
#[test]
#[should_panic(expected = "told")]
fn a_panic_is_passed_on() {
    let setup = Setup { kernel: Kernel::Hash, cpus: free_cpus()[..1].to_vec() };
    // Without a trace: at the lowest priority that takes long.
    let told: Finished = Box::new(|_, _| std::panic::resume_unwind(Box::new("told")));
    let burners = Burners::calibrated(&setup, BRIEF, told).unwrap();
    burners.run(0, 0, Duration::from_micros(1));
    while !burners.cores[0].burner.as_ref().unwrap().is_finished() {
        thread::yield_now();
    }
    let _ = burners.end();
}
