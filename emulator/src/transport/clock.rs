//! The offset of another host's clock.
//!
//! A question sent at `sent`, answered when the other clock read `remote`, back at `received`: the other clock
//! was asked somewhere between, so it differs from the middle by half the round trip at most. The sample with
//! the shortest round trip of the recent ones says most; what clocks can drift apart since then widens its
//! bound.

use std::collections::VecDeque;

/// Samples that are remembered.
const WINDOW: usize = 64;
/// How much faster one clock can run than another, in parts per million, if nothing else is known.
const DRIFT_PPM: f64 = 250.0;

/// One question and its answer; all in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Own clock when the question left.
    pub sent: i64,
    /// The other clock in between.
    pub remote: i64,
    /// Own clock when the answer came.
    pub received: i64,
}

/// What is known of another clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// How far the other clock is ahead of the own one, ns.
    pub offset_ns: i64,
    /// The offset is not wrong by more, ns.
    pub bound_ns: i64,
    /// How much faster the other clock runs, in parts per million; zero until known.
    pub drift_ppm: f64,
}

/// Follows another clock.
#[derive(Clone, Default, Debug)]
pub struct OffsetEstimator {
    recent: VecDeque<Sample>,
    /// The best sample of the beginning, which drift is measured from.
    first: Option<Sample>,
}

impl Sample {
    fn round_trip(&self) -> i64 {
        self.received - self.sent
    }

    fn offset(&self) -> i64 {
        self.remote - self.sent - self.round_trip() / 2
    }

    /// Half-width of what the sample says about the offset at `now`.
    fn bound(&self, now: i64) -> i64 {
        let age = (now - self.received).max(0) as f64;
        // Half the round trip, rounded up, and what the clocks can have drifted apart since it began.
        self.round_trip() / 2 + 1 + ((age + self.round_trip() as f64) * DRIFT_PPM * 1e-6) as i64
    }
}

impl OffsetEstimator {
    /// Knows nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in an answer. One that came before its question is none.
    pub fn add(&mut self, sample: Sample) {
        if sample.received < sample.sent {
            return;
        }
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(sample);
        let better = self.first.is_none_or(|first| sample.round_trip() < first.round_trip());
        if better && self.recent.len() < WINDOW {
            self.first = Some(sample);
        }
    }

    /// What is known when the own clock reads `now`; `None` before the first answer.
    #[must_use]
    pub fn estimate(&self, now: i64) -> Option<Estimate> {
        let best = self.recent.iter().min_by_key(|sample| sample.bound(now))?;
        let drift_ppm = self.first.map_or(0.0, |first| {
            let apart = (best.received - first.received) as f64;
            // Only over a time in which drift shows beside the error of the two samples.
            let error = (best.round_trip() + first.round_trip()) as f64;
            if apart > 1e4 * error { (best.offset() - first.offset()) as f64 / apart * 1e6 } else { 0.0 }
        });
        Some(Estimate { offset_ns: best.offset(), bound_ns: best.bound(now), drift_ppm })
    }
}
