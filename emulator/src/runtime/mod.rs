//! Runtimes, and the execution of whole experiments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`virtual_time`] | one run in virtual time |
//! | [`local`] | one run in real time, in one process |
//! | [`live`] | the event loop, clocks and mailboxes of real time |
//! | [`executor`] | copies on real cores, and real interference |
//! | [`replay`] | a run's log of inputs, stepped again |
//! | [`run`](mod@run) | the execution of an experiment |
//! | [`error`] | errors of a run and of a unit |
//! | [`watch`] | stop flag and progress bar |
//! | [`pool`] | many runs on a few threads, with a progress bar |
//! | [`cost`] | CPU time and memory of a run |

pub mod cost;
pub mod error;
pub mod executor;
pub mod live;
pub mod local;
pub mod pool;
pub mod replay;
pub mod run;
pub mod virtual_time;
pub mod watch;
pub use error::{RunError, UnitError};
pub use run::{Outcome, RunOptions, check, run};
pub use watch::Watch;
