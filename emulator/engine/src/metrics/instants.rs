//! Instants of observation: one instant, uniformly distributed, in each of equal intervals.
//!
//! Equally spaced observations can fall in step with periodic arrivals; random instants see every phase equally often.

use volary_actors::base::{Address, Purpose, Span, Time};

use crate::results::CacheRow;

/// Maximum number of observations of a receiver that are kept.
const MOST_SAMPLES: usize = 1024;

/// The instants at which caches are observed. In a long run the length of the intervals is doubled repeatedly.
#[derive(Debug)]
pub(super) struct Instants {
    address: Address,
    first: Time,
    every: Span,
    /// Length of an interval, in multiples of `every`.
    stride: u32,
    /// Number of the current interval.
    interval: u64,
    next: Time,
}

impl Instants {
    /// The instants of a run with this seed, in intervals of length `every` from `first` on.
    pub(super) fn new(seed: u64, first: Time, every: Span) -> Self {
        let address = Address::new(seed, Purpose::Sample);
        let mut instants = Self { address, first, every, stride: 1, interval: 0, next: first };
        instants.draw();
        instants
    }

    /// Moves to the next interval.
    pub(super) fn advance(&mut self) {
        self.interval += 1;
        self.draw();
    }

    /// Whether the current interval is the second of a pair, so that intervals can be doubled after it.
    pub(super) const fn completes_pair(&self) -> bool {
        self.interval % 2 == 1
    }

    /// Joins the intervals in pairs. The returned function selects the instants to keep: a random instant of each pair.
    pub(super) fn double(&mut self) -> impl Fn(Time) -> bool {
        let (first, before, address) = (self.first, self.apart(), self.address);
        self.stride = self.stride.saturating_mul(2);
        self.interval /= 2;
        let stride = u64::from(self.stride);
        move |at| {
            let interval = at.since(first).0 / before;
            let second = address.at(stride).at(interval / 2).at(1).unit() < 0.5;
            (interval % 2 == 1) == second
        }
    }

    /// Length of an interval, ns.
    fn apart(&self) -> u64 {
        self.every.0.saturating_mul(u64::from(self.stride)).max(1)
    }

    fn draw(&mut self) {
        let apart = self.apart();
        let unit = self.address.at(u64::from(self.stride)).at(self.interval).unit();
        let start = self.first + Span(self.interval.saturating_mul(apart));
        self.next = start + Span(apart).scale(unit);
    }
}

/// The observations of a run, and the time of the next observation.
#[derive(Debug)]
pub(super) struct CacheSamples {
    instants: Instants,
    pub(super) rows: Vec<CacheRow>,
}

impl CacheSamples {
    /// Creates the observations at these instants.
    pub(super) const fn new(instants: Instants) -> Self {
        Self { instants, rows: Vec::new() }
    }

    /// The time of the next observation, if it is due at `now`.
    #[inline]
    pub(super) fn due(&self, now: Time) -> Option<Time> {
        (self.instants.next <= now).then_some(self.instants.next)
    }

    /// The time of the next observation.
    #[inline]
    pub(super) const fn next(&self) -> Time {
        self.instants.next
    }

    /// The weight of an observation: the length of its interval, in multiples of the configured one.
    pub(super) const fn weight(&self) -> u32 {
        self.instants.stride
    }

    /// Length of an interval, s.
    pub(super) fn every_s(&self) -> f64 {
        self.instants.apart() as f64 * 1e-9
    }

    /// Moves to the next interval; thins out the observations if there are too many for this number of receivers.
    pub(super) fn advance(&mut self, receivers: usize) {
        if self.instants.completes_pair() && self.rows.len() >= MOST_SAMPLES * receivers.max(1) {
            let stays = self.instants.double();
            self.rows.retain(|row| stays(Time::ZERO + Span::from_secs_f64(row.time)));
        }
        self.instants.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of 1 s meet all phases of a period of 250 ms equally often, also after they are doubled.
    #[test]
    fn observations_meet_every_phase_equally_often() {
        let mut instants = Instants::new(7, Time(3_000_000_000), Span::from_secs(1));
        for stride in [1u32, 2, 4] {
            let mut phases = [0u32; 10];
            for _ in 0..20_000 {
                let phase = instants.next.0 % 250_000_000;
                phases[(phase / 25_000_000) as usize] += 1;
                instants.advance();
            }
            assert_eq!(instants.stride, stride);
            assert!(phases.iter().all(|&n| n.abs_diff(2000) < 200), "{phases:?}");
            if !instants.completes_pair() {
                instants.advance();
            }
            let _ = instants.double();
            instants.advance();
        }
    }

    /// One of the two instants of a pair stays, and both are equally likely to stay.
    #[test]
    fn doubling_keeps_a_random_instant_of_each_pair() {
        let mut instants = Instants::new(1, Time::ZERO, Span::from_secs(1));
        let mut seen = Vec::new();
        for _ in 0..2000 {
            seen.push(instants.next);
            instants.advance();
        }
        instants.advance();
        let stays = instants.double();
        let stays: Vec<[bool; 2]> = seen.chunks(2).map(|pair| [stays(pair[0]), stays(pair[1])]).collect();
        assert!(stays.iter().all(|pair| pair[0] != pair[1]));
        let firsts = stays.iter().filter(|pair| pair[0]).count();
        assert!(firsts.abs_diff(500) < 60, "{firsts}");
    }
}
