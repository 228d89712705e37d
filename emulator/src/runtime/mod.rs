//! Runtimes, and the execution of whole experiments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`virtual_time`] | one run in virtual time |
//! | [`replay`] | a run's log of inputs, stepped again |
//! | [`run`](mod@run) | the execution of an experiment |
//! | [`error`] | errors of a whole run |
//! | [`pool`] | many runs on a few threads, with a progress bar |

pub mod error;
pub mod pool;
pub mod replay;
pub mod run;
pub mod virtual_time;
pub use error::StudyError;
pub use run::{Outcome, RunOptions, check, expected, run};
