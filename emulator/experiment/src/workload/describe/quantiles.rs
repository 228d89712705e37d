//! Exact quantiles of weighted samples.

use serde::Serialize;

/// Moments and quantiles of a sample, by linear interpolation between order statistics.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Quantiles {
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    pub min: f64,
    /// The 10th percentile of the sample.
    pub p10: f64,
    /// The 25th percentile of the sample.
    pub p25: f64,
    pub p50: f64,
    /// The 75th percentile of the sample.
    pub p75: f64,
    /// The 80th percentile of the sample.
    pub p80: f64,
    /// The 90th percentile of the sample.
    pub p90: f64,
    /// The 99th percentile of the sample.
    pub p99: f64,
    pub max: f64,
}

impl Quantiles {
    /// Quantiles of equally weighted values, which must not be NaN; all zero without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        Self::weighted(values.into_iter().map(|value| (value, 1)))
    }

    /// Quantiles of values with counts.
    pub fn weighted(values: impl IntoIterator<Item = (f64, u32)>) -> Self {
        let mut sorted: Vec<(f64, u64)> =
            values.into_iter().filter(|&(_, n)| n > 0).map(|(value, n)| (value, u64::from(n))).collect();
        if sorted.is_empty() {
            return Self::default();
        }
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = sorted.iter().map(|&(_, n)| n as f64).sum();
        let mean = sorted.iter().map(|&(x, n)| x * n as f64).sum::<f64>() / total;
        let variance = sorted.iter().map(|&(x, n)| (x - mean).powi(2) * n as f64).sum::<f64>() / total;
        // From here on, the count of a value is the number of values up to this value.
        let mut count = 0;
        for (_, n) in &mut sorted {
            count += *n;
            *n = count;
        }
        let at =
            |rank: u64| sorted[sorted.partition_point(|&(_, upto)| upto <= rank).min(sorted.len() - 1)].0;
        let quantile = |p: f64| {
            let place = (count - 1) as f64 * p;
            let (below, above) = (at(place.floor() as u64), at(place.ceil() as u64));
            below + (above - below) * place.fract()
        };
        Self {
            mean,
            std: variance.sqrt(),
            min: quantile(0.0),
            p10: quantile(0.1),
            p25: quantile(0.25),
            p50: quantile(0.5),
            p75: quantile(0.75),
            p80: quantile(0.8),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: quantile(1.0),
        }
    }

    /// Standard deviation over mean; zero if the mean is zero.
    pub fn cov(&self) -> f64 {
        if self.mean > 0.0 { self.std / self.mean } else { 0.0 }
    }
}

/// Share of the items that satisfy `so`; zero without items.
pub(super) fn share<T>(items: impl Iterator<Item = T>, so: impl Fn(&T) -> bool) -> f64 {
    let (mut all, mut those) = (0u64, 0u64);
    for item in items {
        all += 1;
        those += u64::from(so(&item));
    }
    if all == 0 { 0.0 } else { those as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let q = Quantiles::of([4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((q.min, q.p10, q.p50, q.p75, q.max), (1.0, 1.4, 3.0, 4.0, 5.0));
        assert_eq!((q.mean, q.std), (3.0, 2f64.sqrt()));
        assert!((q.cov() - 2f64.sqrt() / 3.0).abs() < 1e-12);
        assert_eq!(Quantiles::of([]), Quantiles::default());
        assert_eq!(Quantiles::of([7.0]).p99, 7.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_value_with_weight_n_counts_as_n_values(values in prop::collection::vec((0u32..50, 0u32..5), 1..30)) {
            let weighted = Quantiles::weighted(values.iter().map(|&(x, n)| (f64::from(x), n)));
            let expanded = values.iter().flat_map(|&(x, n)| (0..n).map(move |_| f64::from(x)));
            let plain = Quantiles::of(expanded);
            for (a, b) in [
                (weighted.mean, plain.mean), (weighted.std, plain.std), (weighted.p10, plain.p10),
                (weighted.p50, plain.p50), (weighted.p99, plain.p99), (weighted.max, plain.max),
            ] {
                prop_assert!((a - b).abs() < 1e-9, "{a} {b}");
            }
        }
    }
}
