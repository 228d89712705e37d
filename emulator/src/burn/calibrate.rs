//! How fast a core does its kernel: rounds per second of the thread's own CPU time.
//!
//! CPU time does not pass while others have the CPU, so a busy machine makes calibration slower and not wrong; what
//! disturbs batches (interrupts, a hypervisor that takes the CPU unseen, others on the same physical core) makes them
//! slower and never faster, so the upper quartile counts. Copies come and go, and a CPU that was idle is some percent
//! slower for a while than one that never is, so there are pauses: all cores pause at once, by the common clock, and
//! each is measured while all are at work.

use std::time::{Duration, Instant};

use super::cpu::thread_time;
use super::kernel::Load;

/// CPU time of one batch.
const BATCH: Duration = Duration::from_millis(1);

/// All cores work for so long, and then pause for the rest of a period: about as copies come and go on a core with half
/// a load.
const STINT: Duration = Duration::from_millis(30);
const PERIOD: Duration = Duration::from_millis(50);

/// How long to calibrate, and how long to wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calibration {
    /// CPU time before anything counts: clocks rise, caches fill.
    pub(super) warm_up: Duration,
    /// CPU time that counts.
    pub(super) measure: Duration,
    /// Real time for both, at most.
    pub(super) patience: Duration,
}

impl Calibration {
    pub(super) const STANDARD: Self = Self {
        warm_up: Duration::from_millis(200),
        measure: Duration::from_millis(800),
        patience: Duration::from_secs(20),
    };
}

/// Rounds and the time that a core needs for them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Pace {
    rounds_per_ns: f64,
}

impl Pace {
    /// Before calibration.
    pub(super) const UNKNOWN: Self = Self { rounds_per_ns: 1.0 };

    pub(super) const fn new(rounds_per_ns: f64) -> Self {
        Self { rounds_per_ns }
    }

    /// Work as rounds, at least one and at most what a desk can hold. Rounded down: what is left of work is never
    /// more than it was.
    pub(super) fn rounds(self, work: Duration) -> u64 {
        ((work.as_nanos() as f64 * self.rounds_per_ns) as u64).clamp(1, super::desk::MOST)
    }

    /// Rounds as work, rounded up: none only if there are none.
    pub(super) fn work(self, rounds: u64) -> Duration {
        Duration::from_nanos(self.ns(rounds).ceil() as u64)
    }

    /// Rounds as nanoseconds of work.
    pub(super) fn ns(self, rounds: u64) -> f64 {
        rounds as f64 / self.rounds_per_ns
    }

    /// The rounds of so many nanoseconds of work.
    pub(super) fn rounds_in(self, ns: f64) -> u64 {
        (ns * self.rounds_per_ns) as u64
    }

    pub(super) const fn rounds_per_s(self) -> f64 {
        self.rounds_per_ns * 1e9
    }
}

/// Measures the calling thread's CPU, in step with others since `origin`.
///
/// # Errors
/// The CPU time that it had until patience ended.
pub(super) fn calibrate(load: &mut Load, asked: Calibration, origin: Instant) -> Result<Pace, Duration> {
    let (began, had) = (Instant::now(), thread_time());
    let mut rounds = 64;
    let mut paces = Vec::new();
    loop {
        let phase = Duration::from_nanos((origin.elapsed().as_nanos() % PERIOD.as_nanos()) as u64);
        if phase > STINT {
            std::thread::sleep(PERIOD - phase);
        }
        let before = thread_time();
        load.burn(rounds);
        let after = thread_time();
        let took = after.saturating_sub(before);
        let had = after.saturating_sub(had);
        if took < BATCH / 2 {
            rounds *= 2;
        } else if had > asked.warm_up {
            paces.push(rounds as f64 / took.as_nanos() as f64);
        }
        if had > asked.warm_up + asked.measure && !paces.is_empty() {
            return Ok(Pace::new(upper_quartile(&mut paces)));
        }
        if began.elapsed() > asked.patience {
            return Err(had);
        }
    }
}

fn upper_quartile(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[3 * values.len() / 4]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burn::Kernel;

    /// Rounds and work are two sides of one thing.
    #[test]
    fn work_and_rounds_agree() {
        let pace = Pace::new(0.37);
        for ns in [1, 999, 1_000_000, 3_600_000_000_000] {
            let work = Duration::from_nanos(ns);
            let back = pace.work(pace.rounds(work));
            assert!(back <= work.max(Duration::from_nanos(3)), "{work:?} became {back:?}");
            assert!(work.saturating_sub(back) <= Duration::from_nanos(3), "{work:?} became {back:?}");
        }
        assert_eq!(pace.rounds(Duration::ZERO), 1, "a copy without work is a copy");
        assert_eq!(pace.rounds(Duration::MAX), super::super::desk::MOST);
    }

    #[test]
    fn a_pace_is_found_and_a_hog_is_named() {
        let brief = Calibration {
            warm_up: Duration::from_millis(1),
            measure: Duration::from_millis(5),
            patience: Duration::from_secs(600),
        };
        for kernel in Kernel::ALL {
            let pace = calibrate(&mut Load::new(kernel), brief, Instant::now()).unwrap();
            // Between a round in 10 µs and a hundred in a nanosecond: anything a CPU could be.
            assert!(pace.rounds_per_s() > 1e5 && pace.rounds_per_s() < 1e11, "{kernel:?}: {pace:?}");
        }
        let hasty = Calibration { patience: Duration::ZERO, ..brief };
        assert!(calibrate(&mut Load::new(Kernel::Hash), hasty, Instant::now()).unwrap_err() < brief.measure);
    }
}
