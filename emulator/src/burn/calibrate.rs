//! How fast a core does its kernel: rounds per second of the thread's own CPU time.
//!
//! CPU time does not pass while others have the CPU, so a busy machine makes calibration slower and not wrong. Within
//! it the mean counts, since copies meet the mean: a CPU's clock rises and falls by a tenth within milliseconds, on
//! machines that share it with others also within minutes, and the pace of its better moments is one that copies
//! do not keep. All cores are at work meanwhile, as they are ever after: where nothing rations their time, they are
//! [kept awake](super::burner).

use std::time::{Duration, Instant};

use super::cpu::thread_time;
use super::kernel::Load;

/// CPU time of one batch, at least.
const BATCH: Duration = Duration::from_millis(1);

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
        measure: Duration::from_millis(1800),
        patience: Duration::from_secs(40),
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

/// Measures the calling thread's CPU.
///
/// # Errors
/// The CPU time that it had until patience ended.
pub(super) fn calibrate(load: &mut Load, asked: Calibration) -> Result<Pace, Duration> {
    let (began, first) = (Instant::now(), thread_time());
    let mut batch = 64;
    // Rounds that count, and the CPU time before them.
    let (mut rounds, mut from) = (0, first);
    loop {
        let before = thread_time();
        load.burn(batch);
        let now = thread_time();
        if now.saturating_sub(first) < asked.warm_up {
            from = now;
        } else {
            rounds += batch;
        }
        if now.saturating_sub(before) < BATCH {
            batch *= 2;
        }
        let took = now.saturating_sub(from);
        if rounds > 0 && took >= asked.measure {
            return Ok(Pace::new(rounds as f64 / took.as_nanos() as f64));
        }
        if began.elapsed() > asked.patience {
            return Err(now.saturating_sub(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burn::Kernel;

    /// Every round counts, and only those in the time that counts.
    #[test]
    fn brief_and_long_calibrations_agree() {
        let pace = |warm_up, measure| {
            let [warm_up, measure] = [warm_up, measure].map(Duration::from_millis);
            let asked = Calibration { warm_up, measure, patience: Duration::from_secs(600) };
            calibrate(&mut Load::new(Kernel::Hash), asked).unwrap().rounds_per_s()
        };
        // A CPU's clock may change in between, but what is counted twice shows.
        let apart: Vec<f64> = (0..9).map(|_| pace(0, 1) / pace(5, 20)).collect();
        let near = apart.iter().filter(|apart| (0.6..1.6).contains(*apart)).count();
        assert!(near >= 5, "{apart:?}");
    }

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
            let pace = calibrate(&mut Load::new(kernel), brief).unwrap();
            // Between a round in 10 µs and a hundred in a nanosecond: anything a CPU could be.
            assert!(pace.rounds_per_s() > 1e5 && pace.rounds_per_s() < 1e11, "{kernel:?}: {pace:?}");
        }
        let hasty = Calibration { patience: Duration::ZERO, ..brief };
        assert!(calibrate(&mut Load::new(Kernel::Hash), hasty).unwrap_err() < brief.measure);
    }
}
