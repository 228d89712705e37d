//! Nanoseconds of this process's monotonic clock.

use std::time::{Duration, Instant};

/// A clock that counts from when it was made. It can be made to run wrong, to see what a wrong clock does.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    anchor: Instant,
    /// Added to every reading, ns.
    offset: i64,
    /// How much too fast it runs, in parts per million.
    drift_ppm: f64,
}

impl Ticks {
    /// A clock that counts from now.
    #[must_use]
    pub fn new() -> Self {
        Self::wrong(0, 0.0)
    }

    /// One that is ahead by `offset` nanoseconds and runs `drift_ppm` millionths too fast.
    #[must_use]
    pub fn wrong(offset: i64, drift_ppm: f64) -> Self {
        Self { anchor: Instant::now(), offset, drift_ppm }
    }

    /// The reading in nanoseconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        let elapsed = self.anchor.elapsed().as_nanos() as i64;
        self.read(elapsed)
    }

    /// What it reads so long after it was made, both in nanoseconds.
    fn read(&self, elapsed: i64) -> i64 {
        elapsed + self.offset + (elapsed as f64 * self.drift_ppm * 1e-6) as i64
    }

    /// The reading at an instant, which must not lie before it was made.
    #[must_use]
    pub fn at(&self, instant: Instant) -> i64 {
        self.read(instant.saturating_duration_since(self.anchor).as_nanos() as i64)
    }

    /// When it reads `reading`; if that was before it was made, then.
    #[must_use]
    pub fn instant(&self, reading: i64) -> Instant {
        let elapsed = (reading - self.offset) as f64 / (1.0 + self.drift_ppm * 1e-6);
        self.anchor + Duration::from_nanos(elapsed.max(0.0) as u64)
    }
}

impl Default for Ticks {
    fn default() -> Self {
        Self::new()
    }
}
