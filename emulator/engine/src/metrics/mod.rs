//! Observations folded into results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`recorder`] | totals of a run: jobs, tasks, copies |
//! | [`staleness`] | staleness of the caches of schedulers |
//! | [`placements`] | when tasks were bound to nodes |

mod gauge;
pub mod placements;
pub mod recorder;
pub mod staleness;

pub use recorder::{Books, Recorder, Recording};
