//! Emulated time read off a real clock.

use std::cell::Cell;
use std::time::{Duration, Instant};

use volary_actors::base::{Span, Time};

use super::ticks::Ticks;

/// Emulated time of one shard: real time since the common start, times `speed`. It never goes back.
#[derive(Debug)]
pub struct Clock {
    ticks: Ticks,
    /// The common start, as `ticks` reads then.
    start: Cell<i64>,
    /// Emulated seconds per real second.
    speed: f64,
    /// The latest time told.
    told: Cell<Time>,
}

impl Clock {
    /// A clock that shows zero when `ticks` reads `start_ns`.
    #[must_use]
    pub const fn new(ticks: Ticks, start_ns: i64, speed: f64) -> Self {
        Self { ticks, start: Cell::new(start_ns), speed, told: Cell::new(Time::ZERO) }
    }

    /// The emulated time that it is; zero before the start.
    #[must_use]
    pub fn now(&self) -> Time {
        let real = self.ticks.now() - self.start.get();
        let now = Time((real.max(0) as f64 * self.speed) as u64).max(self.told.get());
        self.told.set(now);
        now
    }

    /// How long to wait, in real time, until the clock shows `due`; zero if it does already.
    #[must_use]
    pub fn until(&self, due: Time) -> Duration {
        let real = due.0 as f64 / self.speed;
        let passed = (self.ticks.now() - self.start.get()) as f64;
        Duration::from_nanos((real - passed).max(0.0) as u64)
    }

    /// When it shows `at`, as far as is known now.
    #[must_use]
    pub fn instant(&self, at: Time) -> Instant {
        self.ticks.instant(self.start.get() + (at.0 as f64 / self.speed) as i64)
    }

    /// What it shows at an instant; zero before the start.
    #[must_use]
    pub fn at(&self, instant: Instant) -> Time {
        let real = self.ticks.at(instant) - self.start.get();
        Time((real.max(0) as f64 * self.speed) as u64)
    }

    /// Real time as emulated time.
    #[must_use]
    pub fn emulated(&self, real: Duration) -> Span {
        Span((real.as_nanos() as f64 * self.speed) as u64)
    }

    /// Moves the common start: what is known of it gets better while a run goes on. Time told is not taken back.
    pub fn set_start(&self, start_ns: i64) {
        self.start.set(start_ns);
    }

    /// Emulated seconds per real second.
    #[must_use]
    pub const fn speed(&self) -> f64 {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_times_are_two_ways_to_say_the_same() {
        for (ahead, drift) in [(0, 0.0), (5_000_000_000, 0.0), (0, 200.0), (-1_000_000, -300.0)] {
            let ticks = Ticks::wrong(ahead, drift);
            let clock = Clock::new(ticks, ticks.now() + 1_000_000, 0.5);
            let at = Time(3_000_000_000);
            let instant = clock.instant(at);
            let again = clock.at(instant);
            // A float has 53 bits for the nanoseconds.
            assert!(again.0.abs_diff(at.0) < 1_000, "{ahead} {drift}: {again}");
            let before = Instant::now();
            let wait = clock.until(at);
            // Up to the drift of six seconds.
            let slack = Duration::from_millis(3);
            assert!(wait <= instant - before + slack && wait + slack >= instant - Instant::now(), "{wait:?}");
        }
    }

    #[test]
    fn shows_zero_before_the_start_and_never_goes_back() {
        let clock = Clock::new(Ticks::new(), 3_600_000_000_000, 2.0);
        assert_eq!(clock.now(), Time::ZERO);
        // An hour to the start, and two emulated seconds take one.
        let wait = clock.until(Time::ZERO + Span::from_secs(2));
        assert!(wait > Duration::from_secs(3_590) && wait <= Duration::from_secs(3_601), "{wait:?}");
        clock.set_start(-1_000_000_000);
        let now = clock.now();
        assert!(now >= Time(2_000_000_000), "{now}");
        clock.set_start(1_000_000_000_000);
        assert_eq!(clock.now(), now, "time told is not taken back");
    }
}
