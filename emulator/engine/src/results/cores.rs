//! What real cores did, stretch by stretch.

use serde::{Deserialize, Serialize};

/// A stretch of time on a real core on which there was a copy, a row of `cores.parquet`: a degraded slot, or a part of
/// the healthy time between two.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoreRow {
    /// Which core of the cluster.
    pub core: u32,
    /// When it began, s.
    pub start: f64,
    /// When it was over, s.
    pub end: f64,
    /// The slowdown asked for; 1 if the core was to be healthy.
    pub asked: f64,
    /// How long there was a copy in it, s.
    pub had: f64,
    /// How long a healthy core would have taken for what was done in it, s.
    pub done: f64,
}

impl CoreRow {
    /// The slowdown achieved; infinite if nothing was done.
    #[must_use]
    pub fn achieved(&self) -> f64 {
        self.had / self.done
    }

    /// Whether the core was to be healthy.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.asked == 1.0
    }
}
