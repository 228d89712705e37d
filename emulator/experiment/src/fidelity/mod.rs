//! Fidelity of a real run: its departures from the requested behaviour.
//!
//! | module | what it holds |
//! |---|---|
//! | [`measure`] | the construction of a certificate; lateness and delays, as shards measure them |
//! | [`judge`] | the thresholds, and the verdict |
//!
//! The certificate itself is part of the [results](volary_engine::results).

#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;
pub mod judge;
pub mod measure;
