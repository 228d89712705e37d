//! Probability distributions, as experiment files write them.
//!
//! A distribution is a bare value (a constant) or a one-key table: `{ exponential = { mean = "1s" } }`. It is generic
//! over the type of its samples: [`Span`] for delays and work, `f64` for factors. Samples below zero are cut at zero,
//! so a `normal` of mean 1 s and deviation 1.41 s stays a length of time.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use rand_distr::Distribution;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use statrs::function::gamma::gamma;

use crate::base::rng::Draw;
use crate::base::time::Span;

/// A non-negative quantity that a distribution can yield.
pub trait Quantity: Copy + Default + PartialEq + fmt::Debug {
    /// Converts to a number in the base unit (seconds, or one).
    fn to_f64(self) -> f64;
    /// Converts from a number in the base unit; negative numbers become zero.
    fn from_f64(value: f64) -> Self;
    /// The reason why this value cannot be a parameter of a distribution, if there is one.
    fn refuse(self) -> Option<String>;
}

impl Quantity for Span {
    fn to_f64(self) -> f64 {
        self.as_secs_f64()
    }
    fn from_f64(value: f64) -> Self {
        Self::from_secs_f64(value)
    }
    fn refuse(self) -> Option<String> {
        None
    }
}

impl Quantity for f64 {
    fn to_f64(self) -> f64 {
        self
    }
    fn from_f64(value: f64) -> Self {
        value.max(0.0)
    }
    fn refuse(self) -> Option<String> {
        (!(self.is_finite() && self >= 0.0))
            .then(|| format!("{self} is not a finite number of at least zero"))
    }
}

/// A probability distribution over `T`. Parameters that are values of `T`, such as `mean` and `low`, carry its unit;
/// `shape`, `sigma`, `stages` and `weights` are plain numbers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", remote = "Self")]
#[schemars(rename = "Distribution of {T}", transform = or_bare_value)]
pub enum DistributionSpec<T> {
    /// Always the same value.
    Constant(T),
    /// Uniform between `low` and `high`.
    Uniform(Uniform<T>),
    /// Gaussian, cut at zero.
    Normal(Normal<T>),
    /// exp of a Gaussian with mean ln `median` and deviation `sigma`.
    Lognormal(Lognormal<T>),
    /// Exponential (memoryless) with the given `mean`.
    Exponential(Exponential<T>),
    /// Gamma of `shape` and `mean` (scale = mean / shape).
    Gamma(Gamma<T>),
    /// Sum of `stages` equal exponentials, `mean` in all.
    Erlang(Erlang<T>),
    /// Pareto: P(X > x) = (scale / x)^shape for x ≥ scale.
    Pareto(Scaled<T>),
    /// Weibull: P(X > x) = exp(−(x / scale)^shape).
    Weibull(Scaled<T>),
    /// A mixture of exponentials.
    Hyperexponential(Hyperexponential<T>),
    /// One of the listed values, each equally likely.
    Empirical(Empirical<T>),
}

/// Adds the schema of a bare value, which is that of a constant, to the schema of the table.
fn or_bare_value(schema: &mut Schema) {
    let table = std::mem::take(schema);
    let bare = table.pointer("/oneOf/0/properties/constant");
    *schema = json_schema!({
        "description": "a bare value, or a one-key table naming a probability distribution",
        "anyOf": [bare, table]
    });
}

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name<T> { $($(#[$fdoc])* pub $field: $ty),* }
    )*};
}

parameters! {
    /// Bounds of a uniform distribution.
    Uniform {
        /// The smallest value.
        low: T,
        /// The largest value.
        high: T,
    }
    /// Parameters of a Gaussian.
    Normal {
        /// Mean before the cut at zero.
        mean: T,
        /// Standard deviation before the cut at zero.
        std: T,
    }
    /// Parameters of a log-normal distribution.
    Lognormal {
        /// Median: half the samples are below it.
        median: T,
        /// Standard deviation of the logarithm.
        sigma: f64,
    }
    /// Parameter of an exponential distribution.
    Exponential {
        /// Mean of the distribution.
        mean: T,
    }
    /// Parameters of a gamma distribution.
    Gamma {
        /// Shape; the variance is mean² / shape.
        shape: f64,
        /// Mean of the distribution.
        mean: T,
    }
    /// Parameters of an Erlang distribution.
    Erlang {
        /// Number of exponential stages.
        stages: u32,
        /// Mean of the sum of the stages.
        mean: T,
    }
    /// Scale and shape of a Pareto or Weibull distribution.
    Scaled {
        /// The smallest value (Pareto) or the 63 % point (Weibull).
        scale: T,
        /// Tail exponent (Pareto) or shape parameter (Weibull).
        shape: f64,
    }
    /// Parameters of a mixture of exponentials.
    Hyperexponential {
        /// Means of the components.
        means: Vec<T>,
        /// Weights of the components, in any positive unit.
        weights: Vec<f64>,
    }
}

/// Observed values, in the experiment file or in a file beside it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "T: Deserialize<'de>"))]
pub struct Empirical<T> {
    /// The values, each equally likely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<T>,
    /// A text file with one value a line, relative to the experiment file; loaded into `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

impl<T: Quantity> DistributionSpec<T> {
    /// Whether the values of an empirical distribution are still in a file: such a distribution can be neither sampled
    /// nor averaged.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Empirical(empirical) if empirical.values.is_empty())
    }

    /// One sample from the stream at an address.
    pub fn sample(&self, draw: &mut Draw) -> T {
        if let Self::Constant(value) = self {
            return *value;
        }
        T::from_f64(self.sample_f64(draw))
    }

    /// One sample in the base unit, before rounding.
    fn sample_f64(&self, draw: &mut Draw) -> f64 {
        let unit =
            |draw: &mut Draw| -> f64 { Distribution::<f64>::sample(&rand_distr::StandardUniform, draw) };
        let exp1 = |draw: &mut Draw| -> f64 { rand_distr::Exp1.sample(draw) };
        let gauss = |draw: &mut Draw| -> f64 { rand_distr::StandardNormal.sample(draw) };
        match self {
            Self::Constant(value) => value.to_f64(),
            Self::Uniform(p) => {
                let u = unit(draw);
                p.low.to_f64() + u * (p.high.to_f64() - p.low.to_f64())
            }
            Self::Normal(p) => (p.mean.to_f64() + p.std.to_f64() * gauss(draw)).max(0.0),
            Self::Lognormal(p) => p.median.to_f64() * (p.sigma * gauss(draw)).exp(),
            Self::Exponential(p) => p.mean.to_f64() * exp1(draw),
            Self::Gamma(p) => gamma_sample(p.shape, p.mean.to_f64(), draw),
            Self::Erlang(p) => gamma_sample(f64::from(p.stages), p.mean.to_f64(), draw),
            Self::Pareto(p) => p.scale.to_f64() * (exp1(draw) / p.shape).exp(),
            Self::Weibull(p) => p.scale.to_f64() * exp1(draw).powf(1.0 / p.shape),
            Self::Hyperexponential(p) => {
                let total: f64 = p.weights.iter().sum();
                let mut left: f64 = total * unit(draw);
                let mut chosen = p.means.len() - 1;
                for (i, weight) in p.weights.iter().enumerate() {
                    left -= weight;
                    if left < 0.0 {
                        chosen = i;
                        break;
                    }
                }
                p.means[chosen].to_f64() * exp1(draw)
            }
            Self::Empirical(p) => {
                let u = unit(draw);
                p.values[((u * p.values.len() as f64) as usize).min(p.values.len() - 1)].to_f64()
            }
        }
    }

    /// Whether every sample is the same.
    pub const fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

/// A gamma sample of the given shape and mean; `check` has refused all parameters that the constructor would refuse.
fn gamma_sample(shape: f64, mean: f64, draw: &mut Draw) -> f64 {
    gamma_generator(shape, mean).map_or(mean, |distribution| distribution.sample(draw))
}

fn gamma_generator(shape: f64, mean: f64) -> Option<rand_distr::Gamma<f64>> {
    rand_distr::Gamma::new(shape, mean / shape).ok()
}

/// A distribution that is sampled often: the root and divisions that gamma and Erlang need are computed once.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampler<T> {
    spec: DistributionSpec<T>,
    gamma: Option<rand_distr::Gamma<f64>>,
}

impl<T: Quantity> Sampler<T> {
    /// Prepares the samples of a distribution, which are the same as [its own](DistributionSpec::sample).
    pub fn new(spec: DistributionSpec<T>) -> Self {
        let gamma = if let DistributionSpec::Gamma(p) = &spec {
            gamma_generator(p.shape, p.mean.to_f64())
        } else if let DistributionSpec::Erlang(p) = &spec {
            gamma_generator(f64::from(p.stages), p.mean.to_f64())
        } else {
            None
        };
        Self { spec, gamma }
    }

    /// The distribution.
    pub const fn spec(&self) -> &DistributionSpec<T> {
        &self.spec
    }

    /// One sample from the stream at an address.
    #[inline]
    pub fn sample(&self, draw: &mut Draw) -> T {
        match &self.gamma {
            Some(gamma) => T::from_f64(gamma.sample(draw)),
            None => self.spec.sample(draw),
        }
    }
}

// The written form of a distribution: a bare value, or a one-key table that names it.
//
// serde derives the table for [`DistributionSpec`]. With `remote = "Self"` it derives functions beside the traits,
// and the implementations of the traits here add the bare value and check the parameters.

impl<T: Serialize> Serialize for DistributionSpec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Constant(value) = self {
            return value.serialize(serializer);
        }
        Self::serialize(self, serializer)
    }
}

impl<'de, T: Quantity + Deserialize<'de>> Deserialize<'de> for DistributionSpec<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Quantity + Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = DistributionSpec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a distribution such as { exponential = { mean = … } }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DistributionSpec<T>, E> {
                T::deserialize(de::value::StrDeserializer::new(text)).map(DistributionSpec::Constant)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<DistributionSpec<T>, E> {
                T::deserialize(de::value::F64Deserializer::new(value)).map(DistributionSpec::Constant)
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<DistributionSpec<T>, E> {
                T::deserialize(de::value::I64Deserializer::new(value)).map(DistributionSpec::Constant)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<DistributionSpec<T>, E> {
                T::deserialize(de::value::U64Deserializer::new(value)).map(DistributionSpec::Constant)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<DistributionSpec<T>, A::Error> {
                // This calls the derived function of the one-key table, not the trait's function.
                DistributionSpec::<T>::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        let distribution = deserializer.deserialize_any(Visitor(PhantomData))?;
        distribution.check().map_err(de::Error::custom)?;
        Ok(distribution)
    }
}

impl<T: Quantity> DistributionSpec<T> {
    /// Checks the parameters; the error reads "key: reason".
    fn check(&self) -> Result<(), String> {
        let positive = |name: &str, x: f64| {
            if x.is_finite() && x > 0.0 {
                Ok(())
            } else {
                Err(format!("{name} must be a positive number, not {x}"))
            }
        };
        let refuse = |name: &str, values: &[T]| {
            values.iter().find_map(|v| v.refuse()).map_or(Ok(()), |why| Err(format!("{name}: {why}")))
        };
        match self {
            Self::Constant(value) => value.refuse().map_or(Ok(()), Err),
            Self::Uniform(p) => {
                refuse("uniform", &[p.low, p.high])?;
                if p.low.to_f64() > p.high.to_f64() {
                    return Err("low must not exceed high".into());
                }
                Ok(())
            }
            Self::Normal(p) => refuse("normal", &[p.mean, p.std]),
            Self::Lognormal(p) => refuse("median", &[p.median]).and_then(|()| positive("sigma", p.sigma)),
            Self::Exponential(p) => refuse("mean", &[p.mean]),
            Self::Gamma(p) => refuse("mean", &[p.mean]).and_then(|()| positive("shape", p.shape)),
            Self::Erlang(p) => {
                refuse("mean", &[p.mean]).and_then(|()| positive("stages", f64::from(p.stages)))
            }
            Self::Pareto(p) | Self::Weibull(p) => {
                refuse("scale", &[p.scale]).and_then(|()| positive("shape", p.shape))
            }
            Self::Hyperexponential(p) => {
                refuse("means", &p.means)?;
                if p.means.is_empty() || p.means.len() != p.weights.len() {
                    return Err("means and weights must be lists of equal, positive length".into());
                }
                p.weights.iter().try_for_each(|&w| positive("weights", w))
            }
            Self::Empirical(p) => {
                refuse("values", &p.values)?;
                if p.values.is_empty() == p.file.is_none() {
                    return Err("empirical needs either `values` or `file`".into());
                }
                Ok(())
            }
        }
    }
}

// Mean, deviation and bounds of distributions.

impl<T: Quantity> DistributionSpec<T> {
    /// Least and greatest value of the distribution, in the base unit; `None` on an unbounded side.
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

    /// The standard deviation in the base unit; infinite where the distribution has none. For `normal` it is the
    /// deviation before the cut at zero.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Address, Purpose};

    fn secs(x: f64) -> Span {
        Span::from_secs_f64(x)
    }

    fn distributions() -> Vec<DistributionSpec<Span>> {
        vec![
            DistributionSpec::Constant(secs(2.0)),
            DistributionSpec::Uniform(Uniform { low: secs(1.0), high: secs(3.0) }),
            DistributionSpec::Normal(Normal { mean: secs(2.0), std: secs(0.3) }),
            DistributionSpec::Lognormal(Lognormal { median: secs(1.0), sigma: 0.5 }),
            DistributionSpec::Exponential(Exponential { mean: secs(0.7) }),
            DistributionSpec::Gamma(Gamma { shape: 100.0, mean: secs(0.01) }),
            DistributionSpec::Erlang(Erlang { stages: 3, mean: secs(2.0) }),
            DistributionSpec::Pareto(Scaled { scale: secs(1.0), shape: 4.5 }),
            DistributionSpec::Weibull(Scaled { scale: secs(1.0), shape: 1.5 }),
            DistributionSpec::Hyperexponential(Hyperexponential {
                means: vec![secs(0.1), secs(2.0)],
                weights: vec![3.0, 1.0],
            }),
            DistributionSpec::Empirical(Empirical {
                values: vec![secs(1.0), secs(2.0), secs(6.0)],
                file: None,
            }),
        ]
    }

    #[test]
    fn sample_moments_match_the_stated_moments() {
        for distribution in distributions() {
            let n = 200_000u64;
            let base = Address::new(11, Purpose::Tool);
            let (mut sum, mut squares) = (0.0, 0.0);
            for k in 0..n {
                let x = distribution.sample(&mut base.at(k).draw()).as_secs_f64();
                sum += x;
                squares += x * x;
            }
            let mean = sum / n as f64;
            let std = (squares / n as f64 - mean * mean).max(0.0).sqrt();
            let tolerance = 5.0 * distribution.std() / (n as f64).sqrt() + 1e-9;
            assert!(
                (mean - distribution.mean()).abs() < tolerance,
                "{distribution:?}: mean {mean}, stated {}",
                distribution.mean()
            );
            assert!(
                (std - distribution.std()).abs() <= 0.05 * distribution.std() + 1e-6,
                "{distribution:?}: std {std}, stated {}",
                distribution.std()
            );
        }
    }

    #[test]
    fn serde_round_trips_distributions_and_refuses_invalid_ones() {
        for distribution in distributions() {
            let text = serde_json::to_string(&distribution).unwrap();
            assert_eq!(
                serde_json::from_str::<DistributionSpec<Span>>(&text).unwrap(),
                distribution,
                "{text}"
            );
        }
        for bad in [
            r#"{"exponential":{"mean":1}}"#,
            r#"{"exponential":{"men":"1s"}}"#,
            r#"{"expo":{"mean":"1s"}}"#,
            r#"{"gamma":{"shape":-1,"mean":"1s"}}"#,
            r#"{"uniform":{"low":"3s","high":"1s"}}"#,
            r#"{"empirical":{}}"#,
            r#""10""#,
            "3",
        ] {
            assert!(serde_json::from_str::<DistributionSpec<Span>>(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<DistributionSpec<f64>>("-1.0").is_err());
        assert_eq!(
            serde_json::from_str::<DistributionSpec<f64>>("2").unwrap(),
            DistributionSpec::Constant(2.0)
        );
    }
}
