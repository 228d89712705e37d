//! Runtimes, and the execution of whole experiments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`replay`] | the replay of a run's log of inputs |
//! | [`run`](mod@run) | the execution of an experiment, and its errors |
//! | [`pool`] | many runs on a few threads; one run in virtual time |

pub mod pool;
pub mod replay;
pub mod run;
pub use run::{Outcome, RunOptions, StudyError, check, expected, run};
