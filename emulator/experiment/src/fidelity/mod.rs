//! Fidelity of a real run: its departures from the requested behaviour.
//!
//! | module | what it holds |
//! |---|---|
//! | [`gauge`] | lateness and delays, as shards measure them |
//! | [`measure`] | the construction of a certificate |
//! | [`judge`] | the thresholds, and the verdict |
//!
//! The certificate itself is part of the [results](volary_engine::results).

#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;
pub mod gauge;
pub mod judge;
pub mod measure;
