//! Nanoseconds of this process's monotonic clock.

use std::time::Instant;

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
        elapsed + self.offset + (elapsed as f64 * self.drift_ppm * 1e-6) as i64
    }
}

impl Default for Ticks {
    fn default() -> Self {
        Self::new()
    }
}
