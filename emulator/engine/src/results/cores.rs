//! Rows of `cores.parquet`: the work of real cores by interval.

use serde::{Deserialize, Serialize};

/// An interval of a real core with a copy on it: a degraded slot, or part of the healthy time between two slots. A row
/// of `cores.parquet`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoreRow {
    /// Number of the core.
    pub core: u32,
    /// Start of the interval, s.
    pub start: f64,
    /// End of the interval, s.
    pub end: f64,
    /// The requested slowdown; 1 for a healthy core.
    pub asked: f64,
    /// Time with a copy on the core, s.
    pub had: f64,
    /// Time in which a healthy core would have done the same work, s.
    pub done: f64,
}

impl CoreRow {
    /// The slowdown achieved; infinite if no work was done.
    pub fn achieved(&self) -> f64 {
        self.had / self.done
    }

    /// Whether the core was meant to be healthy.
    pub fn is_healthy(&self) -> bool {
        self.asked == 1.0
    }
}
