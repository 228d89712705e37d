//! Distributions in results: means, spreads and percentiles, `null` in JSON where nothing was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// A number that could not be measured (such as a mean without values) is NaN here and `null` in JSON. This is no doc
// comment, because schemas would contain it.
#[derive(JsonSchema)]
#[schemars(transparent)]
pub(super) struct NanIsNull(Option<f64>);

impl NanIsNull {
    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
        Ok(Self(Option::deserialize(input)?).0.unwrap_or(f64::NAN))
    }

    pub(super) fn serialize<S: serde::Serializer>(number: &f64, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_f64(*number)
    }
}

/// Defines structs of numbers. A number that could not be measured is NaN here and `null` in JSON, because zero would
/// be the best of all response times.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $(
                $(#[$about])*
                #[serde(with = "NanIsNull")]
                pub $field: f64,
            )*
        }

        impl $name {
            /// No measurements: every number is NaN.
            pub const UNMEASURED: Self = Self { $($field: f64::NAN,)* };
        }
    )*};
}

numbers! {
    /// Mean, spread and exact percentiles.
    Distribution {
        /// Mean of the values.
        mean,
        /// Standard deviation of the population.
        std,
        /// 1st percentile.
        p1,
        /// 10th percentile.
        p10,
        /// 25th percentile.
        p25,
        /// Median of the values.
        p50,
        /// 90th percentile.
        p90,
        /// 95th percentile.
        p95,
        /// 99th percentile.
        p99,
        /// 99.9th percentile.
        p999,
        /// Maximum of the values.
        max,
    }

    /// Mean and three percentiles.
    Brief {
        /// Mean of the values.
        mean,
        /// Median of the values.
        p50,
        /// 90th percentile.
        p90,
        /// 99th percentile.
        p99,
    }

    /// Mean, bounds, and four percentiles of three significant digits.
    DeliveryTimes {
        /// Mean of the values.
        mean,
        /// Minimum of the values.
        min,
        /// Median of the values.
        p50,
        /// 90th percentile.
        p90,
        /// 95th percentile.
        p95,
        /// 99th percentile.
        p99,
        /// Maximum of the values.
        max,
    }

    /// Mean, three percentiles of three significant digits, and maximum.
    Spread {
        /// Mean of the values.
        mean,
        /// Median of the values.
        p50,
        /// 90th percentile.
        p90,
        /// 99th percentile.
        p99,
        /// Maximum of the values.
        max,
    }
}

impl Distribution {
    /// Summary of numbers in any order; [`UNMEASURED`](Self::UNMEASURED) if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = ascending(values);
        let Some(&max) = sorted.last() else { return Self::UNMEASURED };
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let std = (sorted.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let at = |q| percentile(&sorted, q);
        Self {
            mean,
            std,
            p1: at(0.01),
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max,
        }
    }
}

impl Brief {
    /// Summary of numbers in any order, with exact percentiles; [`UNMEASURED`](Self::UNMEASURED) if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = ascending(values);
        if sorted.is_empty() {
            return Self::UNMEASURED;
        }
        let at = |q| percentile(&sorted, q);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}

fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The `q`-quantile (0 to 1) of ascending numbers: linear interpolation between order statistics, 0 if there
/// are none.
pub fn percentile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}
