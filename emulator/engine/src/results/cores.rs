//! Rows of `cores.parquet`: the work of real cores, stretch by stretch.

use serde::{Deserialize, Serialize};

/// A stretch of time on a real core with a copy on it, a row of `cores.parquet`: a degraded slot, or a part of the
/// healthy time between two.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoreRow {
    /// Number of the core.
    pub core: u32,
    /// When it began, s.
    pub start: f64,
    /// When it ended, s.
    pub end: f64,
    /// The requested slowdown; 1 for a healthy core.
    pub asked: f64,
    /// Time with a copy on the core, s.
    pub had: f64,
    /// Time in which a healthy core would have done the same work, s.
    pub done: f64,
}

impl CoreRow {
    /// The slowdown achieved; infinite if nothing was done.
    pub fn achieved(&self) -> f64 {
        self.had / self.done
    }

    /// Whether the core was meant to be healthy.
    pub fn is_healthy(&self) -> bool {
        self.asked == 1.0
    }
}
