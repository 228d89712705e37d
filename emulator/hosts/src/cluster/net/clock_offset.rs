//! The offset of another machine's clock, estimated from round trips.
//!
//! The remote clock is read at some moment between request and response. Assuming the middle makes the offset wrong by
//! at most half a round trip, even if the two ways are unequal (Cristian, 1989). The estimate uses the best sample of a
//! window, and adds the possible drift since that sample to the bound of the error. This module reads no clock.

use std::collections::VecDeque;

/// One round trip: readings of the local and of the remote clock, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Local clock at the request's departure.
    pub sent: u64,
    /// Remote clock between the request's arrival and the response's departure.
    pub remote: u64,
    /// Local clock at the response's arrival.
    pub received: u64,
}

/// An estimate of the remote clock's offset at some moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Offset {
    /// Remote clock minus local clock, nanoseconds.
    pub offset: i64,
    /// Maximum error of `offset`, nanoseconds.
    pub bound: u64,
}

/// Rate at which the remote clock gains on the local clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Drift {
    /// Parts per million; positive where the remote clock is faster.
    pub ppm: f64,
    /// Maximum error of `ppm` as an estimate of the mean drift over the window.
    pub bound: f64,
}

/// Estimates the offset of one remote clock.
#[derive(Clone, Debug)]
pub struct OffsetEstimator {
    window: VecDeque<RoundTrip>,
    size: usize,
    drift_ppm: f64,
}

impl OffsetEstimator {
    /// Keeps the last `size` samples (at least 2) and assumes that the clocks drift apart by at most `drift_ppm` parts
    /// per million: 2 × 500 if NTP may slew both, about 200 otherwise.
    pub fn new(size: usize, drift_ppm: f64) -> Self {
        let size = size.max(2);
        Self { window: VecDeque::with_capacity(size), size, drift_ppm: drift_ppm.max(0.0) }
    }

    /// Adds a sample; false for an invalid sample, whose response precedes its request or the previous response.
    pub fn add(&mut self, sample: RoundTrip) -> bool {
        let previous = self.window.back().map_or(0, |last| last.received);
        if sample.received < sample.sent || sample.received < previous {
            return false;
        }
        if self.window.len() == self.size {
            self.window.pop_front();
        }
        self.window.push_back(sample);
        true
    }

    /// The offset at local time `now`, from the sample with the smallest bound; `None` before the first sample.
    pub fn at(&self, now: u64) -> Option<Offset> {
        let best = self.window.iter().min_by_key(|sample| self.bound(sample, now))?;
        Some(Offset { offset: best.middle(), bound: self.bound(best, now) })
    }

    /// The drift between the best samples of the window's older and newer half; `None` if a half has no sample, or if
    /// the two samples are too close in time.
    pub fn drift(&self) -> Option<Drift> {
        let half = self.window.len() / 2;
        let best =
            |samples: &mut dyn Iterator<Item = &RoundTrip>| samples.min_by_key(|s| s.round_trip()).copied();
        let old = best(&mut self.window.iter().take(half))?;
        let new = best(&mut self.window.iter().skip(half))?;
        // Either clock may have been read anywhere within its round trip.
        let apart = new.local() as f64 - old.local() as f64;
        let doubt = (old.round_trip() as f64 + new.round_trip() as f64) / 2.0 + 2.0; // 2: whole nanoseconds
        if apart <= doubt {
            return None;
        }
        let ppm = (new.middle() as f64 - old.middle() as f64) / apart * 1e6;
        Some(Drift { ppm, bound: doubt / (apart - doubt) * (1e6 + ppm.abs()) })
    }

    /// The largest error of a sample's middle as an estimate of the offset at `now`, rounded up.
    fn bound(&self, sample: &RoundTrip, now: u64) -> u64 {
        // The clock may have been read as early as the departure or, for an earlier `now`, as late as the arrival.
        let age = now.saturating_sub(sample.sent).max(sample.received.saturating_sub(now));
        let drifted = (age as f64 * self.drift_ppm * 1e-6).ceil() as u64;
        (sample.round_trip().div_ceil(2) + 1).saturating_add(drifted)
    }
}

impl RoundTrip {
    fn round_trip(&self) -> u64 {
        self.received - self.sent
    }

    /// Local clock in the middle of the round trip.
    fn local(&self) -> u64 {
        self.sent + self.round_trip() / 2
    }

    /// Remote clock minus local clock, in the middle of the round trip.
    fn middle(&self) -> i64 {
        self.remote.wrapping_sub(self.local()).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn there_is_no_estimate_before_the_first_sample() {
        let mut clock = OffsetEstimator::new(8, 200.0);
        assert_eq!((clock.at(5), clock.drift()), (None, None));
        assert!(clock.add(RoundTrip { sent: 1000, remote: 51_100, received: 1200 }));
        assert_eq!(clock.at(1200), Some(Offset { offset: 50_000, bound: 102 }));
        assert_eq!(clock.drift(), None);
    }

    #[test]
    fn samples_with_inconsistent_times_are_refused() {
        let mut clock = OffsetEstimator::new(8, 200.0);
        assert!(!clock.add(RoundTrip { sent: 10, remote: 0, received: 9 }));
        assert!(clock.add(RoundTrip { sent: 10, remote: 0, received: 20 }));
        assert!(!clock.add(RoundTrip { sent: 5, remote: 0, received: 19 }));
    }

    #[test]
    fn one_slow_answer_does_not_change_the_estimate() {
        let mut clock = OffsetEstimator::new(8, 100.0);
        for i in 0..4 {
            clock.add(RoundTrip { sent: i * S, remote: 7 * S + i * S + 50_000, received: i * S + 100_000 });
        }
        let before = clock.at(4 * S).unwrap();
        // The response takes half a second.
        clock.add(RoundTrip { sent: 4 * S, remote: 11 * S + 50_000, received: 4 * S + S / 2 });
        let after = clock.at(4 * S + S / 2).unwrap();
        assert_eq!((before.offset, after.offset), ((7 * S).cast_signed(), (7 * S).cast_signed()));
        assert!(after.bound < 300_000, "{after:?}");
    }

    #[test]
    fn the_offset_of_a_clock_that_is_behind_is_negative() {
        let mut clock = OffsetEstimator::new(2, 0.0);
        clock.add(RoundTrip { sent: 5 * S, remote: 10, received: 5 * S + 20 });
        assert_eq!(clock.at(5 * S).unwrap().offset, -(5 * S).cast_signed());
    }

    /// A round trip of `there + back` to a clock that starts at `offset`, gains `ppm` and is read after `there`.
    fn trip(offset: i64, ppm: f64, sent: u64, there: u64, back: u64) -> RoundTrip {
        let read = sent + there;
        RoundTrip { sent, remote: read.wrapping_add_signed(truth(offset, ppm, read)), received: read + back }
    }

    fn truth(offset: i64, ppm: f64, local: u64) -> i64 {
        offset + (local as f64 * ppm * 1e-6).round() as i64
    }

    proptest! {
        /// The true offset and drift are within their bounds at every moment, with ways of unequal length, outliers of
        /// up to a second and drifting clocks.
        #[test]
        fn the_true_offset_is_always_within_the_bound(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            ppm in -200.0..200.0_f64,
            size in 2_usize..20,
            trips in proptest::collection::vec(
                (0_u64..S, prop_oneof![4 => 0_u64..200_000, 1 => 0_u64..S], prop_oneof![4 => 0_u64..200_000, 1 => 0_u64..S]),
                1..60,
            ),
            later in 0_u64..10 * S,
        ) {
            let mut clock = OffsetEstimator::new(size, 200.0);
            let mut now = 2_000 * S;
            for (pause, there, back) in trips {
                let sample = trip(offset, ppm, now + pause, there, back);
                now = sample.received;
                prop_assert!(clock.add(sample));
                for at in [now, now + later] {
                    let found = clock.at(at).unwrap();
                    let error = found.offset.abs_diff(truth(offset, ppm, at));
                    prop_assert!(error <= found.bound, "off by {error} at {at}: {found:?}");
                }
                if let Some(found) = clock.drift() {
                    prop_assert!((found.ppm - ppm).abs() <= found.bound, "{found:?}, truth {ppm}");
                }
            }
        }

        /// With steady short trips the bound is close to half of a trip.
        #[test]
        fn the_bound_is_tight_on_a_quiet_path(there in 1_000_u64..50_000, back in 1_000_u64..50_000) {
            let mut clock = OffsetEstimator::new(16, 100.0);
            let mut now = S;
            for _ in 0..32 {
                clock.add(trip(77, 50.0, now, there, back));
                now += S / 10;
            }
            let found = clock.at(now).unwrap();
            prop_assert!(found.bound <= u64::midpoint(there, back) + 10_100, "{found:?}");
        }
    }
}
