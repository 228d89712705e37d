//! Observations folded into results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`recorder`] | totals of a run: jobs, tasks, copies |
//! | [`staleness`] | staleness of the caches of schedulers |
//! | [`aggregator`] | the observations of several shards, merged and folded, and the end of a run |
//! | [`placements`] | when tasks were bound to nodes |

pub mod aggregator;
mod gauge;
pub mod placements;
pub mod recorder;
pub mod staleness;

pub use aggregator::{Aggregator, EndReason};
pub use recorder::{Books, Recorder, Recording};
