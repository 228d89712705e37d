//! The reference kernels, and their calibrated speed on a CPU.
//!
//! Speed is measured in rounds per second of the thread's own CPU time, which does not pass while other threads have
//! the CPU: a busy machine makes calibration slower, but not wrong. The calibrated speed is a mean over the whole
//! calibration, because copies run at a mean speed too: a CPU's clock varies by a tenth within milliseconds, and on
//! shared machines also over minutes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use volary_experiment::config::file::Kernel;

use super::cpu::thread_cpu_time;

/// 64-bit words of a cache line: one round of the memory kernel.
const LINE: usize = 8;
/// Words of the memory kernel, more than a core's share of the last-level cache.
const STREAM: usize = (64 << 20) / size_of::<u64>();
/// Words of the cache kernel, which fit into a core's own caches.
const POOL: usize = (1 << 20) / size_of::<u64>();

/// A kernel and its memory, which the burner thread allocates so that it is near its CPU.
pub(super) enum KernelLoad {
    /// Integer hashing in registers, like the hashing of zeros in the Murmuration prototype. Four lanes keep the
    /// multiplier busy.
    Hash([u64; 4]),
    /// 64 MiB, read and written sequentially, and the index of the first word of the next cache line.
    Memory(Vec<u64>, usize),
    /// 1 MiB, read and written at random, and the last hash, which selects the next word.
    Cache(Vec<u64>, u64),
}

impl KernelLoad {
    pub(super) fn new(kernel: Kernel) -> Self {
        // Not zeros, for which the system would allocate no pages.
        let words = |count| (0..count as u64).map(mix).collect::<Vec<_>>();
        match kernel {
            // Copies without a kernel are timed and have no burners.
            Kernel::Hash | Kernel::None => Self::Hash([1, 2, 3, 4]),
            Kernel::Memory => Self::Memory(words(STREAM), 0),
            Kernel::Cache => Self::Cache(words(POOL), 1),
        }
    }

    /// Does `rounds` rounds. Never inlined: calibration and copies must run the same machine code.
    #[inline(never)]
    pub(super) fn burn(&mut self, rounds: u64) {
        match self {
            Self::Hash(lanes) => {
                let mut hashes = *lanes;
                for _ in 0..rounds {
                    hashes = hashes.map(mix);
                }
                *lanes = black_box(hashes);
            }
            Self::Memory(words, next) => {
                for _ in 0..rounds {
                    words[*next..*next + LINE].iter_mut().for_each(|word| *word = word.wrapping_add(1));
                    *next = (*next + LINE) % STREAM;
                }
                black_box(words);
            }
            Self::Cache(words, hash) => {
                for _ in 0..rounds {
                    let word = &mut words[(*hash % POOL as u64) as usize];
                    *hash = mix(*hash ^ *word);
                    *word = *hash;
                }
                black_box(words);
            }
        }
    }
}

/// The finaliser of MurmurHash3, with an increment so that zero is no fixed point.
const fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Least CPU time of one batch.
const BATCH: Duration = Duration::from_millis(1);

/// Durations of the parts of a calibration.
#[derive(Clone, Copy, Debug)]
pub(super) struct CalibrationOptions {
    /// CPU time before the measurement, in which clocks rise and caches fill.
    pub(super) warm_up: Duration,
    /// CPU time of the measurement.
    pub(super) measure: Duration,
    /// Limit on real time.
    pub(super) timeout: Duration,
}

impl CalibrationOptions {
    pub(super) const STANDARD: Self = Self {
        warm_up: Duration::from_millis(200),
        measure: Duration::from_millis(1800),
        timeout: Duration::from_secs(40),
    };
}

/// Maximum number of rounds of a copy, the work of days.
pub(super) const MAX_ROUNDS: u64 = (1 << 48) - 1;

/// The calibrated speed of a core, which converts between work and rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Calibration {
    rounds_per_ns: f64,
}

impl Calibration {
    /// A placeholder until the core is calibrated.
    pub(super) const UNKNOWN: Self = Self { rounds_per_ns: 1.0 };

    pub(super) const fn new(rounds_per_ns: f64) -> Self {
        Self { rounds_per_ns }
    }

    /// Rounds of `work`, between 1 and [`MAX_ROUNDS`]. The number is rounded down, so that remaining work never grows.
    pub(super) fn rounds(self, work: Duration) -> u64 {
        ((work.as_nanos() as f64 * self.rounds_per_ns) as u64).clamp(1, MAX_ROUNDS)
    }

    /// Work of `rounds`, rounded up, so that it is zero only for zero rounds.
    pub(super) fn work(self, rounds: u64) -> Duration {
        Duration::from_nanos(self.ns(rounds).ceil() as u64)
    }

    /// Rounds as nanoseconds of work.
    pub(super) fn ns(self, rounds: u64) -> f64 {
        rounds as f64 / self.rounds_per_ns
    }

    /// Rounds in `ns` nanoseconds of work.
    pub(super) fn rounds_in(self, ns: f64) -> u64 {
        (ns * self.rounds_per_ns) as u64
    }

    pub(super) const fn rounds_per_s(self) -> f64 {
        self.rounds_per_ns * 1e9
    }
}

/// Calibrates the CPU of the calling thread.
///
/// # Errors
/// The CPU time obtained until the timeout, if it was not enough.
pub(super) fn calibrate(load: &mut KernelLoad, options: CalibrationOptions) -> Result<Calibration, Duration> {
    let (began, first) = (Instant::now(), thread_cpu_time());
    let mut batch = 64;
    // Rounds of the measurement, and the CPU time before them.
    let (mut rounds, mut from) = (0, first);
    loop {
        let before = thread_cpu_time();
        load.burn(batch);
        let now = thread_cpu_time();
        if now.saturating_sub(first) < options.warm_up {
            from = now;
        } else {
            rounds += batch;
        }
        if now.saturating_sub(before) < BATCH {
            batch *= 2;
        }
        let took = now.saturating_sub(from);
        if rounds > 0 && took >= options.measure {
            return Ok(Calibration::new(rounds as f64 / took.as_nanos() as f64));
        }
        if began.elapsed() > options.timeout {
            return Err(now.saturating_sub(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(load: &KernelLoad) -> (u64, usize) {
        let fold = |words: &[u64]| words.iter().fold(0, |sum, &word| mix(sum ^ word));
        match load {
            KernelLoad::Hash(lanes) => (fold(lanes), 0),
            KernelLoad::Memory(words, next) => (fold(words), *next),
            KernelLoad::Cache(words, hash) => (fold(words) ^ hash, 0),
        }
    }

    /// The state after some rounds does not depend on how they are divided into calls.
    #[test]
    fn the_result_of_rounds_does_not_depend_on_their_division_into_calls() {
        for kernel in Kernel::BURNING {
            let (mut whole, mut cut) = (KernelLoad::new(kernel), KernelLoad::new(kernel));
            let fresh = state(&whole);
            whole.burn(100_000);
            for part in [1, 49_999, 0, 50_000] {
                cut.burn(part);
            }
            assert!(state(&whole) == state(&cut) && state(&whole) != fresh, "{kernel:?}");
            cut.burn(1);
            assert!(state(&whole) != state(&cut), "{kernel:?}");
        }
    }

    #[test]
    fn the_memory_kernel_wraps_around() {
        let mut load = KernelLoad::new(Kernel::Memory);
        load.burn((STREAM / LINE) as u64 + 3);
        assert_eq!(state(&load).1, 3 * LINE);
    }

    /// A calibration counts exactly the rounds within its measurement.
    #[test]
    fn brief_and_long_calibrations_find_the_same_speed() {
        let pace = |warm_up, measure| {
            let [warm_up, measure] = [warm_up, measure].map(Duration::from_millis);
            let options = CalibrationOptions { warm_up, measure, timeout: Duration::from_secs(600) };
            calibrate(&mut KernelLoad::new(Kernel::Hash), options).unwrap().rounds_per_s()
        };
        // The CPU's clock may change in between, but not by the factor of two of rounds counted twice.
        let apart: Vec<f64> = (0..9).map(|_| pace(0, 1) / pace(5, 20)).collect();
        let near = apart.iter().filter(|apart| (0.6..1.6).contains(*apart)).count();
        assert!(near >= 5, "{apart:?}");
    }

    #[test]
    fn conversions_between_work_and_rounds_agree() {
        let pace = Calibration::new(0.37);
        for ns in [1, 999, 1_000_000, 3_600_000_000_000] {
            let work = Duration::from_nanos(ns);
            let back = pace.work(pace.rounds(work));
            assert!(back <= work.max(Duration::from_nanos(3)), "{work:?} became {back:?}");
            assert!(work.saturating_sub(back) <= Duration::from_nanos(3), "{work:?} became {back:?}");
        }
        assert_eq!(pace.rounds(Duration::ZERO), 1, "a copy without work is a copy");
        assert_eq!(pace.rounds(Duration::MAX), MAX_ROUNDS);
    }

    #[test]
    fn calibration_finds_a_speed_and_refuses_a_busy_cpu() {
        let brief = CalibrationOptions {
            warm_up: Duration::from_millis(1),
            measure: Duration::from_millis(5),
            timeout: Duration::from_secs(600),
        };
        for kernel in Kernel::BURNING {
            let pace = calibrate(&mut KernelLoad::new(kernel), brief).unwrap();
            // Every CPU is within this range.
            assert!(pace.rounds_per_s() > 1e5 && pace.rounds_per_s() < 1e11, "{kernel:?}: {pace:?}");
        }
        let hasty = CalibrationOptions { timeout: Duration::ZERO, ..brief };
        assert!(calibrate(&mut KernelLoad::new(Kernel::Hash), hasty).unwrap_err() < brief.measure);
    }
}
