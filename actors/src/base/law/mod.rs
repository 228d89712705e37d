//! Probability laws, as experiment files write them.

mod distribution;
mod form;
mod moments;

pub use self::distribution::{
    Empirical, Erlang, Exponential, Gamma, Hyperexponential, Law, Lognormal, Normal, Quantity, Scaled,
    Uniform,
};
