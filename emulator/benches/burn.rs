//! The accuracy of degraded cores: achieved against configured slowdown, and the speed of an undisturbed core.
//!
//! `cargo bench --bench burn [-- hash | memory | cache]` takes ten seconds per kernel, and runs all three kernels
//! without arguments. A copy without end runs on each of two cores. One core is degraded by each σ in slots of each
//! length, with a second of consecutive slots each; the other core is left alone. `all` is the slowdown over all slots
//! of a kind, and `off` its deviation from the configured slowdown; the other columns are quantiles over single slots.

#![allow(clippy::print_stdout, missing_docs)]

use std::time::{Duration, Instant};

use volary_experiment::config::file::Kernel;
use volary_hosts::executor::{Burners, CoreReading, DegradedSlot, SlotReading, free_cpus};

/// Total time of the slots of one kind.
const EACH: Duration = Duration::from_secs(1);
/// Healthy time between two kinds.
const BETWEEN: Duration = Duration::from_millis(50);
/// Slowdowns and slot lengths, ms.
const SLOWDOWNS: [f64; 3] = [1.5, 2.0, 4.0];
const LENGTHS: [u64; 3] = [10, 50, 100];

/// The slots of all kinds one after the other, and their end.
fn slots(start: Instant) -> (Vec<DegradedSlot>, Instant) {
    let (mut slots, mut from) = (Vec::new(), start);
    for slowdown in SLOWDOWNS {
        for length in LENGTHS.map(Duration::from_millis) {
            let end = from + EACH;
            while from < end {
                slots.push(DegradedSlot { from, until: from + length, slowdown });
                from += length;
            }
            from += BETWEEN;
        }
    }
    (slots, from)
}

fn measure(kernel: Kernel) -> Vec<CoreReading> {
    let cpus: Vec<_> = free_cpus().into_iter().take(2).collect();
    let burners = Burners::start(kernel, &cpus).unwrap_or_else(|error| panic!("{error}"));
    (0..burners.cores()).for_each(|core| burners.run(core, 1, Duration::from_secs(3600)));
    let (slots, end) = slots(Instant::now() + Duration::from_millis(100));
    // Degrade the last core: if the machine has only one free CPU, it is also the first.
    burners.degrade(burners.cores() - 1, slots);
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    burners.end()
}

/// Prints one line of the table.
fn line(name: &str, asked: f64, length: &str, readings: &[SlotReading]) {
    let mut achieved: Vec<f64> = readings.iter().map(SlotReading::achieved).collect();
    achieved.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| achieved[((achieved.len() - 1) as f64 * share).round() as usize];
    let sum = |part: fn(&SlotReading) -> Duration| readings.iter().map(part).sum::<Duration>().as_secs_f64();
    let all = sum(|slot| slot.busy) / sum(|slot| slot.done);
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
    for kernel in Kernel::BURNING.into_iter().filter(|kernel| wanted(&kernel.to_string())) {
        table(&kernel.to_string(), &measure(kernel));
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
