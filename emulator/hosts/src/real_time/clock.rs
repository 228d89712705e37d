//! The monotonic clock of a process, and emulated time derived from it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use volary_actors::base::{Span, Time};

/// A clock that counts nanoseconds from its creation. Tests give it an offset and a drift.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    anchor: Instant,
    offset_ns: i64,
    /// Parts per million by which the clock runs too fast.
    drift_ppm: f64,
}

impl MonotonicClock {
    /// A clock that counts from now.
    pub fn new() -> Self {
        Self::skewed(0, 0.0)
    }

    /// A clock that is ahead by `offset_ns` and runs `drift_ppm` too fast.
    pub fn skewed(offset_ns: i64, drift_ppm: f64) -> Self {
        Self { anchor: Instant::now(), offset_ns, drift_ppm }
    }

    /// The current reading in nanoseconds.
    pub fn now(&self) -> i64 {
        self.at(Instant::now())
    }

    /// The reading at `instant`; the first reading for an instant before the clock's creation.
    pub fn at(&self, instant: Instant) -> i64 {
        let elapsed = instant.saturating_duration_since(self.anchor).as_nanos() as i64;
        elapsed + self.offset_ns + (elapsed as f64 * self.drift_ppm * 1e-6) as i64
    }

    /// The instant of `reading`; the clock's creation for a reading before the first.
    pub fn instant(&self, reading: i64) -> Instant {
        let elapsed = (reading - self.offset_ns) as f64 / (1.0 + self.drift_ppm * 1e-6);
        self.anchor + Duration::from_nanos(elapsed.max(0.0) as u64)
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Emulated time of one shard: real time since the common start, times `speed`. It never goes back.
#[derive(Debug)]
pub struct Clock {
    monotonic: MonotonicClock,
    /// Reading of `monotonic` at the common start.
    start_ns: Cell<i64>,
    /// Emulated seconds per real second.
    speed: f64,
    /// The latest time returned by `now`.
    latest: Cell<Time>,
}

impl Clock {
    /// A clock that shows zero when `monotonic` reads `start_ns`.
    pub const fn new(monotonic: MonotonicClock, start_ns: i64, speed: f64) -> Self {
        Self { monotonic, start_ns: Cell::new(start_ns), speed, latest: Cell::new(Time::ZERO) }
    }

    /// The current emulated time; zero before the start.
    pub fn now(&self) -> Time {
        let now = self.emulated_since_start(self.monotonic.now()).max(self.latest.get());
        self.latest.set(now);
        now
    }

    /// Emulated time at `instant`; zero before the start.
    pub fn at(&self, instant: Instant) -> Time {
        self.emulated_since_start(self.monotonic.at(instant))
    }

    fn emulated_since_start(&self, reading: i64) -> Time {
        let real = (reading - self.start_ns.get()).max(0);
        Time((real as f64 * self.speed) as u64)
    }

    /// Real time until the clock shows `due`; zero after `due`.
    pub fn until(&self, due: Time) -> Duration {
        let real = due.0 as f64 / self.speed;
        let passed = (self.monotonic.now() - self.start_ns.get()) as f64;
        Duration::from_nanos((real - passed).max(0.0) as u64)
    }

    /// The instant at which the clock shows `at`, by the current estimate of the start.
    pub fn instant(&self, at: Time) -> Instant {
        self.monotonic.instant(self.start_ns.get() + (at.0 as f64 / self.speed) as i64)
    }

    /// Converts real time to emulated time.
    pub fn emulated(&self, real: Duration) -> Span {
        Span((real.as_nanos() as f64 * self.speed) as u64)
    }

    /// Corrects the common start, whose estimate improves during a run.
    pub fn set_start(&self, start_ns: i64) {
        self.start_ns.set(start_ns);
    }

    /// Emulated seconds per real second.
    pub const fn speed(&self) -> f64 {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_emulated_times_convert_both_ways() {
        for (ahead, drift) in [(0, 0.0), (5_000_000_000, 0.0), (0, 200.0), (-1_000_000, -300.0)] {
            let monotonic = MonotonicClock::skewed(ahead, drift);
            let clock = Clock::new(monotonic, monotonic.now() + 1_000_000, 0.5);
            let at = Time(3_000_000_000);
            let instant = clock.instant(at);
            let again = clock.at(instant);
            // A float has 53 bits for the nanoseconds.
            assert!(again.0.abs_diff(at.0) < 1_000, "{ahead} {drift}: {again}");
            let before = Instant::now();
            let wait = clock.until(at);
            // The slack covers the drift of six seconds.
            let slack = Duration::from_millis(3);
            assert!(wait <= instant - before + slack && wait + slack >= instant - Instant::now(), "{wait:?}");
        }
    }

    #[test]
    fn a_clock_shows_zero_before_the_start_and_never_goes_back() {
        let clock = Clock::new(MonotonicClock::new(), 3_600_000_000_000, 2.0);
        assert_eq!(clock.now(), Time::ZERO);
        // The start is an hour away, and two emulated seconds take one real second.
        let wait = clock.until(Time::ZERO + Span::from_secs(2));
        assert!(wait > Duration::from_secs(3_590) && wait <= Duration::from_secs(3_601), "{wait:?}");
        clock.set_start(-1_000_000_000);
        let now = clock.now();
        assert!(now >= Time(2_000_000_000), "{now}");
        clock.set_start(1_000_000_000_000);
        assert_eq!(clock.now(), now, "a correction does not turn the clock back");
    }
}
