//! Histograms of lateness and delay that each shard measures.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use volary_actors::base::Span;

/// The serialized form of a histogram of spans: counts by value in nanoseconds of emulated time, to three digits.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Buckets(Vec<(u64, u64)>);

/// A distribution of spans of any number; quantiles are exact to three digits.
#[derive(Clone, Debug)]
pub struct SpanHistogram(Histogram<u64>);

impl Default for SpanHistogram {
    fn default() -> Self {
        Self(Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are supported")))
    }
}

impl SpanHistogram {
    /// Counts one span.
    #[inline]
    pub fn add(&mut self, span: Span) {
        // The histogram grows as needed; u64 nanoseconds hold any span.
        let _ = self.0.record(span.0);
    }

    /// Adds the measurements of another shard.
    pub fn merge(&mut self, buckets: &Buckets) {
        for &(value, count) in &buckets.0 {
            let _ = self.0.record_n(value, count);
        }
    }

    /// The counts, for serialization.
    pub fn buckets(&self) -> Buckets {
        Buckets(self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect())
    }

    /// Number of spans counted.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether no span was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean in emulated seconds; zero if empty.
    pub fn mean_s(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.mean() * 1e-9 }
    }

    /// A quantile in emulated seconds; zero if empty.
    pub fn quantile_s(&self, q: f64) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.value_at_quantile(q) as f64 * 1e-9 }
    }

    /// The maximum in emulated seconds; zero if empty.
    pub fn max_s(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.max() as f64 * 1e-9 }
    }

    /// The share of spans longer than `span`.
    pub fn share_above(&self, span: Span) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let up_to = self.0.count_between(0, span.0);
        1.0 - up_to as f64 / self.len() as f64
    }

    /// The share of the most frequent value, to three digits; zero if empty.
    pub fn most_frequent(&self) -> f64 {
        let most = self.0.iter_recorded().map(|value| value.count_at_value()).max().unwrap_or(0);
        most as f64 / self.len().max(1) as f64
    }

    /// The Kolmogorov-Smirnov distance: the largest difference between the distribution functions of this and another
    /// distribution. Zero if one is empty.
    pub fn distance(&self, other: &Self) -> f64 {
        if self.is_empty() || other.is_empty() {
            return 0.0;
        }
        let steps = |spread: &Self, sign: f64| {
            let weight = sign / spread.len() as f64;
            let step = |v: hdrhistogram::iterators::IterationValue<u64>| {
                (v.value_iterated_to(), weight * v.count_at_value() as f64)
            };
            spread.0.iter_recorded().map(step).collect::<Vec<_>>()
        };
        let mut all = steps(self, 1.0);
        all.extend(steps(other, -1.0));
        all.sort_unstable_by_key(|&(value, _)| value);
        let (mut apart, mut most) = (0.0f64, 0.0f64);
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            apart += same.iter().map(|(_, step)| step).sum::<f64>();
            most = most.max(apart.abs());
        }
        most
    }
}

macro_rules! gauge {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The deviations of one shard, or of all together.
        #[derive(Clone, Default, Debug)]
        pub struct LatenessHistograms {
            $($(#[$doc])* pub $field: SpanHistogram,)*
        }

        /// A [`LatenessHistograms`] as it travels.
        #[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
        pub struct Reading {
            $($field: Buckets,)*
        }

        impl Reading {
            /// The counts of all histograms.
            pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
                [$(&self.$field,)*].into_iter().flat_map(|buckets| buckets.0.iter().map(|(_, count)| *count))
            }
        }

        impl LatenessHistograms {
            /// The measurements, for serialization.
            pub fn reading(&self) -> Reading {
                Reading { $($field: self.$field.buckets(),)* }
            }

            /// Adds the measurements of another shard.
            pub fn merge(&mut self, reading: &Reading) {
                $(self.$field.merge(&reading.$field);)*
            }
        }
    };
}

gauge! {
    /// Lateness of messages when their actors process them.
    deliveries,
    /// Lateness of timers.
    timers,
    /// Lateness of the notice that a copy has ended.
    work,
    /// Lateness of messages from other shards that arrived after they were due.
    arrivals,
    /// Configured delays of messages.
    asked,
    /// Achieved delays of messages.
    achieved,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn travels_and_adds_up() {
        let mut one = LatenessHistograms::default();
        (1..=1000).for_each(|us| one.deliveries.add(Span(us * 1000)));
        let mut sum = LatenessHistograms::default();
        sum.merge(&one.reading());
        sum.merge(&one.reading());
        assert_eq!(sum.deliveries.len(), 2000);
        assert!((sum.deliveries.quantile_s(0.5) - 500e-6).abs() < 2e-6);
        assert!((sum.deliveries.share_above(Span(900_000)) - 0.1).abs() < 0.002);
        assert!(sum.timers.is_empty() && sum.timers.max_s() == 0.0);
    }

    #[test]
    fn the_distance_is_that_of_kolmogorov_and_smirnov() {
        let (mut a, mut b) = (SpanHistogram::default(), SpanHistogram::default());
        (0..1000).for_each(|k| a.add(Span(k * 1000)));
        (0..1000).for_each(|k| b.add(Span((k + 250) * 1000)));
        assert!((a.distance(&b) - 0.25).abs() < 0.003, "{}", a.distance(&b));
        assert!(a.distance(&a) < 1e-9 && a.distance(&SpanHistogram::default()) == 0.0);
    }
}
