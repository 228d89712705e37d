//! Mean, deviation and bounds of distributions.

use statrs::function::gamma::gamma;

use super::{DistributionSpec, Quantity};

impl<T: Quantity> DistributionSpec<T> {
    /// Least and greatest value that the distribution states outright, in the base unit; `None` where it has a tail
    /// instead, however thin.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        match self {
            Self::Constant(value) => (Some(value.to_f64()), Some(value.to_f64())),
            Self::Uniform(p) => (Some(p.low.to_f64()), Some(p.high.to_f64())),
            Self::Pareto(p) => (Some(p.scale.to_f64()), None),
            Self::Empirical(p) => {
                let values = || p.values.iter().map(|value| value.to_f64());
                (values().reduce(f64::min), values().reduce(f64::max))
            }
            Self::Normal(_)
            | Self::Lognormal(_)
            | Self::Exponential(_)
            | Self::Gamma(_)
            | Self::Erlang(_)
            | Self::Weibull(_)
            | Self::Hyperexponential(_) => (None, None),
        }
    }

    /// The mean in the base unit; infinite for a Pareto distribution of shape ≤ 1. For `normal` it is the mean after
    /// the cut at zero.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(value) => value.to_f64(),
            Self::Uniform(p) => f64::midpoint(p.low.to_f64(), p.high.to_f64()),
            Self::Normal(p) => cut_normal_mean(p.mean.to_f64(), p.std.to_f64()),
            Self::Lognormal(p) => p.median.to_f64() * (p.sigma * p.sigma / 2.0).exp(),
            Self::Exponential(p) => p.mean.to_f64(),
            Self::Gamma(p) => p.mean.to_f64(),
            Self::Erlang(p) => p.mean.to_f64(),
            Self::Pareto(p) if p.shape <= 1.0 => f64::INFINITY,
            Self::Pareto(p) => p.scale.to_f64() * p.shape / (p.shape - 1.0),
            Self::Weibull(p) => p.scale.to_f64() * gamma(1.0 + 1.0 / p.shape),
            Self::Hyperexponential(p) => {
                let total: f64 = p.weights.iter().sum();
                p.means.iter().zip(&p.weights).map(|(mean, weight)| mean.to_f64() * weight / total).sum()
            }
            Self::Empirical(p) => p.values.iter().map(|v| v.to_f64()).sum::<f64>() / p.values.len() as f64,
        }
    }

    /// The standard deviation in the base unit; infinite where the distribution has none. For `normal` it is that of
    /// the uncut distribution.
    pub fn std(&self) -> f64 {
        let mean = self.mean();
        match self {
            Self::Constant(_) => 0.0,
            Self::Uniform(p) => (p.high.to_f64() - p.low.to_f64()) / 12f64.sqrt(),
            Self::Normal(p) => p.std.to_f64(),
            Self::Lognormal(p) => mean * ((p.sigma * p.sigma).exp() - 1.0).sqrt(),
            Self::Exponential(_) => mean,
            Self::Gamma(p) => mean / p.shape.sqrt(),
            Self::Erlang(p) => mean / f64::from(p.stages).sqrt(),
            Self::Pareto(p) if p.shape <= 2.0 => f64::INFINITY,
            Self::Pareto(p) => mean / (p.shape * (p.shape - 2.0)).sqrt(),
            Self::Weibull(p) => (p.scale.to_f64().powi(2) * gamma(1.0 + 2.0 / p.shape) - mean * mean).sqrt(),
            Self::Hyperexponential(p) => {
                let total: f64 = p.weights.iter().sum();
                let second: f64 =
                    p.means.iter().zip(&p.weights).map(|(m, w)| 2.0 * m.to_f64().powi(2) * w / total).sum();
                (second - mean * mean).sqrt()
            }
            Self::Empirical(p) => {
                let n = p.values.len() as f64;
                (p.values.iter().map(|v| (v.to_f64() - mean).powi(2)).sum::<f64>() / n).sqrt()
            }
        }
    }
}

/// E[max(0, X)] for X ~ N(mean, std²).
fn cut_normal_mean(mean: f64, std: f64) -> f64 {
    if std == 0.0 {
        return mean;
    }
    let z = mean / std;
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let below = 0.5 * statrs::function::erf::erfc(-z / std::f64::consts::SQRT_2);
    mean * below + std * density
}
