//! The samples of a distribution at given normal scores, for correlated delays.
//!
//! A correlated sequence is made of normal scores z; the sample is F⁻¹(Φ(z)), which has exactly the distribution F. The
//! function is tabulated once, so a sample costs only an interpolation.

use statrs::distribution::{ContinuousCDF, Gamma};
use statrs::function::erf::{erfc, erfc_inv};

use volary_actors::base::{DistributionSpec, Span};

/// Scores beyond ± this are cut: two samples in 10⁹.
const REACH: f64 = 6.0;
/// Entries per unit of score. Linear interpolation is then off by less than 10⁻⁴ of the standard deviation.
const DENSITY: f64 = 64.0;

/// F⁻¹ ∘ Φ of a distribution, in seconds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Quantiles {
    /// Values at evenly spaced scores from −REACH on.
    Smooth(Vec<f64>),
    /// Equally likely values in ascending order.
    Steps(Vec<f64>),
}

impl Quantiles {
    /// The quantiles of a distribution that is not constant.
    pub(crate) fn new(distribution: &DistributionSpec<Span>) -> Self {
        if let DistributionSpec::Empirical(empirical) = distribution {
            let mut values: Vec<_> = empirical.values.iter().map(|v| v.as_secs_f64()).collect();
            values.sort_by(f64::total_cmp);
            return Self::Steps(values);
        }
        let entries = (2.0 * REACH * DENSITY) as usize + 1;
        Self::Smooth((0..entries).map(|i| quantile(distribution, i as f64 / DENSITY - REACH)).collect())
    }

    /// The sample of a score.
    pub(crate) fn at(&self, score: f64) -> f64 {
        match self {
            Self::Steps(values) => {
                let index = (below(score) * values.len() as f64) as usize;
                values[index.min(values.len() - 1)]
            }
            Self::Smooth(table) => {
                let x = (score.clamp(-REACH, REACH) + REACH) * DENSITY;
                let i = (x as usize).min(table.len() - 2);
                table[i] + (x - i as f64) * (table[i + 1] - table[i])
            }
        }
    }
}

/// Φ(z).
fn below(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// The standard normal score with `u` of the probability below it; `u` in [0, 1).
pub(crate) fn normal_score(u: f64) -> f64 {
    // Half a step inwards, so that 0 has a finite score; the upper half by symmetry, so that none reaches 1.
    const HALF_STEP: f64 = 0.5 / (1u64 << 53) as f64;
    let tail = if u < 0.5 { u + HALF_STEP } else { 1.0 - u - HALF_STEP };
    let score = std::f64::consts::SQRT_2 * erfc_inv(2.0 * tail);
    if u < 0.5 { -score } else { score }
}

/// The value of a distribution at a score, in seconds. Tails above use 1 − Φ(z) = Φ(−z), which loses no digits.
pub(crate) fn quantile(distribution: &DistributionSpec<Span>, z: f64) -> f64 {
    let above = below(-z);
    let gamma = |shape: f64, mean: f64| {
        Gamma::new(shape, shape / mean).map_or(mean, |distribution| distribution.inverse_cdf(below(z)))
    };
    match distribution {
        DistributionSpec::Constant(value) => value.as_secs_f64(),
        DistributionSpec::Uniform(p) => {
            let (low, high) = (p.low.as_secs_f64(), p.high.as_secs_f64());
            low + below(z) * (high - low)
        }
        DistributionSpec::Normal(p) => (p.mean.as_secs_f64() + z * p.std.as_secs_f64()).max(0.0),
        DistributionSpec::Lognormal(p) => p.median.as_secs_f64() * (p.sigma * z).exp(),
        DistributionSpec::Exponential(p) => -p.mean.as_secs_f64() * above.ln(),
        DistributionSpec::Gamma(p) => gamma(p.shape, p.mean.as_secs_f64()),
        DistributionSpec::Erlang(p) => gamma(f64::from(p.stages), p.mean.as_secs_f64()),
        DistributionSpec::Pareto(p) => p.scale.as_secs_f64() * above.powf(-1.0 / p.shape),
        DistributionSpec::Weibull(p) => p.scale.as_secs_f64() * (-above.ln()).powf(1.0 / p.shape),
        DistributionSpec::Hyperexponential(p) => {
            let means: Vec<_> = p.means.iter().map(|m| m.as_secs_f64()).collect();
            mixture_quantile(&means, &p.weights, above)
        }
        DistributionSpec::Empirical(p) => {
            let index = (below(z) * p.values.len() as f64) as usize;
            p.values.get(index).map_or(0.0, |v| v.as_secs_f64())
        }
    }
}

/// The point above which a mixture of exponentials has the weight `above`; by bisection, because its tail has no
/// closed inverse.
fn mixture_quantile(means: &[f64], weights: &[f64], above: f64) -> f64 {
    let total: f64 = weights.iter().sum();
    let tail = |x: f64| -> f64 {
        means.iter().zip(weights).map(|(&m, w)| if m > 0.0 { w / total * (-x / m).exp() } else { 0.0 }).sum()
    };
    let largest = means.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, -largest * above.ln());
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if tail(middle) > above { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use volary_actors::base::distribution::{self, Scaled};
    use volary_actors::base::{Address, Purpose};

    use super::*;

    fn distributions() -> Vec<DistributionSpec<Span>> {
        let ms = Span::from_millis;
        vec![
            DistributionSpec::Uniform(distribution::Uniform { low: ms(1), high: ms(3) }),
            DistributionSpec::Normal(distribution::Normal { mean: ms(10), std: ms(2) }),
            DistributionSpec::Lognormal(distribution::Lognormal { median: ms(5), sigma: 0.5 }),
            DistributionSpec::Exponential(distribution::Exponential { mean: ms(7) }),
            DistributionSpec::Gamma(distribution::Gamma { shape: 100.0, mean: ms(10) }),
            DistributionSpec::Erlang(distribution::Erlang { stages: 3, mean: ms(2) }),
            DistributionSpec::Pareto(Scaled { scale: ms(1), shape: 4.5 }),
            DistributionSpec::Weibull(Scaled { scale: ms(1), shape: 1.5 }),
            DistributionSpec::Hyperexponential(distribution::Hyperexponential {
                means: vec![ms(1), ms(20)],
                weights: vec![3.0, 1.0],
            }),
            DistributionSpec::Empirical(distribution::Empirical {
                values: vec![ms(6), ms(1), ms(2)],
                file: None,
            }),
        ]
    }

    /// Independent scores must give the same samples, in distribution, as the distribution itself.
    #[test]
    fn quantiles_have_the_distribution() {
        const N: u64 = 20_000;
        for distribution in distributions() {
            let quantiles = Quantiles::new(&distribution);
            let base = Address::new(5, Purpose::Tool);
            let mut ours: Vec<_> = (0..N).map(|k| quantiles.at(normal_score(base.at(k).unit()))).collect();
            let mut theirs: Vec<_> =
                (N..2 * N).map(|k| distribution.sample(&mut base.at(k).draw()).as_secs_f64()).collect();
            ours.sort_by(f64::total_cmp);
            theirs.sort_by(f64::total_cmp);
            let mut distance = 0f64;
            for (i, x) in ours.iter().enumerate() {
                let below = theirs.partition_point(|y| y <= &(x + 1e-9));
                let mine = ours.partition_point(|y| y <= &(x + 1e-9));
                distance = distance.max((mine as f64 - below as f64).abs() / N as f64);
                assert!(i < ours.len());
            }
            // Two-sample Kolmogorov-Smirnov, 0.1 % point: 1.95 √(2/N).
            assert!(distance < 1.95 * (2.0 / N as f64).sqrt(), "{distribution:?}: distance {distance}");
        }
    }

    #[test]
    fn scores_are_normal() {
        for (u, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.001, -3.090_232_306)] {
            assert!((normal_score(u) - z).abs() < 1e-6, "{u}");
        }
        assert!(normal_score(0.0).is_finite() && normal_score(1.0 - f64::EPSILON / 2.0).is_finite());
    }
}
