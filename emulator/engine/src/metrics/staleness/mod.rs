//! How stale the caches of schedulers are.

mod tracker;

pub use tracker::Tracker;
