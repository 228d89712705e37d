//! Observations folded into results.
//!
//! | module | what it holds |
//! |---|---|
//! | [`recorder`] | the books of a run: jobs, tasks, copies |
//! | [`staleness`] | how stale the caches of schedulers are |
//! | [`placements`] | when tasks got their nodes |

mod gauge;
pub mod placements;
pub mod recorder;
pub mod staleness;

pub use recorder::{Books, Recorder, Recording};
