//! Staleness of the caches of schedulers.

mod tracker;

pub use tracker::Tracker;
