//! A gauge: mean, quantiles and maximum of weighted numbers.

use hdrhistogram::Histogram;

use crate::results::{DeliveryTimes, Spread};

/// Numbers counted in millionths. Quantiles keep three significant digits; mean and maximum are exact.
#[derive(Debug)]
pub(super) struct Gauge {
    histogram: Histogram<u64>,
    sum: f64,
    weight: f64,
    min: f64,
    max: f64,
}

impl Default for Gauge {
    fn default() -> Self {
        let histogram = Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are supported"));
        Self { histogram, sum: 0.0, weight: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Gauge {
    /// Adds a number with a weight. Negative numbers enter the quantiles as zero.
    pub(super) fn add(&mut self, value: f64, weight: u32) {
        let _ = self.histogram.record_n((value.max(0.0) * 1e6) as u64, u64::from(weight)); // grows as needed
        self.sum += value * f64::from(weight);
        self.weight += f64::from(weight);
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    /// The numbers to three significant digits, in ascending order, each with its weight.
    pub(super) fn counts(&self) -> Vec<(f64, u64)> {
        let recorded = self.histogram.iter_recorded();
        let value = |value: u64| (value as f64 * 1e-6).clamp(self.min, self.max);
        recorded.map(|step| (value(step.value_iterated_to()), step.count_at_value())).collect()
    }

    /// Sum of the weights.
    pub(super) const fn weight(&self) -> f64 {
        self.weight
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    pub(super) fn spread(&self) -> Spread {
        if self.weight == 0.0 {
            return Spread::UNMEASURED;
        }
        let at = |q| self.at(q);
        Spread { mean: self.mean(), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: self.max }
    }

    pub(super) fn delays(&self) -> DeliveryTimes {
        if self.weight == 0.0 {
            return DeliveryTimes::UNMEASURED;
        }
        let at = |q| self.at(q);
        let (mean, p50, p90, p95, p99) = (self.mean(), at(0.5), at(0.9), at(0.95), at(0.99));
        DeliveryTimes { mean, min: self.min, p50, p90, p95, p99, max: self.max }
    }

    fn at(&self, q: f64) -> f64 {
        (self.histogram.value_at_quantile(q) as f64 * 1e-6).min(self.max)
    }
}
