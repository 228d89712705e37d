//! What a degraded core achieves beside what was asked, and beside a core that nobody disturbs.
//!
//! `cargo bench --bench burn [-- hash | memory | cache]`, ten seconds each; without a word the three kernels. A copy without
//! end runs on each of two cores. One of them is degraded by each σ in slots of each length, a second of slots one
//! after the other; the other is left alone. `all` is the slowdown over all slots of a kind, from which `off` tells
//! how far it is from the one asked for; the rest is of single slots.

#![allow(clippy::print_stdout, missing_docs)]

use std::time::{Duration, Instant};

use volary::burn::{Burners, CoreReading, Kernel, Setup, Slot, SlotReading, free_cpus};

/// Slots of one kind last so long in all.
const EACH: Duration = Duration::from_secs(1);
/// Healthy time between two kinds.
const BETWEEN: Duration = Duration::from_millis(50);
/// Slowdowns and slot lengths, ms.
const SLOWDOWNS: [f64; 3] = [1.5, 2.0, 4.0];
const LENGTHS: [u64; 3] = [10, 50, 100];

/// Slots of each kind in turn, and when they are over.
fn slots(start: Instant) -> (Vec<Slot>, Instant) {
    let (mut slots, mut from) = (Vec::new(), start);
    for slowdown in SLOWDOWNS {
        for length in LENGTHS.map(Duration::from_millis) {
            let end = from + EACH;
            while from < end {
                slots.push(Slot { from, until: from + length, slowdown });
                from += length;
            }
            from += BETWEEN;
        }
    }
    (slots, from)
}

fn measure(kernel: Kernel) -> Vec<CoreReading> {
    let cpus: Vec<_> = free_cpus().into_iter().take(2).collect();
    let setup = Setup { kernel, cpus };
    let burners = Burners::start(setup, Box::new(|_, _| ())).unwrap_or_else(|error| panic!("{error}"));
    (0..burners.cores()).for_each(|core| burners.run(core, 0, Duration::from_secs(3600)));
    let (slots, end) = slots(Instant::now() + Duration::from_millis(100));
    // The last, so that there may be one CPU only.
    burners.degrade(burners.cores() - 1, slots);
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    burners.end()
}

/// One line: asked, slot length, slots; what they achieved together and each by itself, and how far off that is.
fn line(name: &str, asked: f64, length: &str, readings: &[SlotReading]) {
    let mut achieved: Vec<f64> = readings.iter().map(SlotReading::achieved).collect();
    achieved.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| achieved[((achieved.len() - 1) as f64 * share).round() as usize];
    let sum = |part: fn(&SlotReading) -> Duration| readings.iter().map(part).sum::<Duration>().as_secs_f64();
    let all = sum(|slot| slot.had) / sum(|slot| slot.done);
    let off = 100.0 * (all / asked - 1.0);
    println!(
        "{name:<7} {asked:>5} {length:>7} {:>5} {all:>7.3} {off:>+6.1} % {:>7.3} {:>7.3} {:>7.3} {:>7.3} {:>7.3}",
        achieved.len(),
        at(0.0),
        at(0.05),
        at(0.5),
        at(0.95),
        at(1.0),
    );
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|a| a == name);
    println!("        asked    slot slots     all      off     min      p5     p50     p95     max");
    for kernel in Kernel::ALL.into_iter().filter(|kernel| wanted(kernel.name())) {
        table(kernel.name(), &measure(kernel));
    }
}

fn table(name: &str, readings: &[CoreReading]) {
    if let [undisturbed, _] = readings {
        line(name, 1.0, "beside", &undisturbed.slots);
    }
    let all = readings.last().map_or(&[][..], |degraded| &degraded.slots);
    let of = |slowdown: f64, fits: &dyn Fn(Duration) -> bool| -> Vec<SlotReading> {
        all.iter().filter(|s| s.asked == slowdown && fits(s.until - s.from)).copied().collect()
    };
    line(name, 1.0, "between", &of(1.0, &|length| length >= BETWEEN / 2));
    for slowdown in SLOWDOWNS {
        for ms in LENGTHS {
            line(name, slowdown, &format!("{ms} ms"), &of(slowdown, &|l| l == Duration::from_millis(ms)));
        }
    }
    let paces: Vec<_> = readings.iter().map(|r| format!("CPU {}: {:.4e}", r.cpu, r.rounds_per_s)).collect();
    println!("        rounds per second: {}", paces.join(", "));
}
