//! Probability distributions, as experiment files write them.

mod form;
mod moments;
mod spec;

pub use self::spec::{
    DistributionSpec, Empirical, Erlang, Exponential, Gamma, Hyperexponential, Lognormal, Normal, Quantity,
    Scaled, Uniform,
};
