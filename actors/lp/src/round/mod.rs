//! Rounding of a relaxed solution to a plan.

mod draft;
mod preference;
mod search;

pub use search::round;
