//! The written form of a distribution: a bare value, or a one-key table that names it.
//!
//! The table is what serde derives for [`DistributionSpec`]; with `remote = "Self"` it becomes functions beside the
//! traits, and the trait implementations here add the bare value and check the parameters.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{DistributionSpec, Quantity};

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
                // Not this trait's: the one-key table that is derived beside the enum.
                DistributionSpec::<T>::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        let distribution = deserializer.deserialize_any(Visitor(PhantomData))?;
        distribution.check().map_err(de::Error::custom)?;
        Ok(distribution)
    }
}

impl<T: Quantity> DistributionSpec<T> {
    /// What is wrong with the parameters, as "key: reason".
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
