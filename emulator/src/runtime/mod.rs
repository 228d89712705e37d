//! Runtimes, and the execution of whole experiments.
//!
//! | module | what it holds |
//! |---|---|
//! | [`world`] | one point under one seed: what shards are built from |
//! | [`virtual_time`] | one run in virtual time |
//! | [`local`] | one run in real time, in one process |
//! | [`real`] | what runs in real time share |
//! | [`closing`] | closed books and counts become a result |
//! | [`replay`] | a run's log of inputs, stepped again |
//! | [`run`](mod@run) | the execution of an experiment |
//! | [`error`] | errors of a run and of a unit |
//! | [`watch`] | stop flag and progress bar |
//! | [`pool`] | many runs on a few threads, with a progress bar |
//! | [`cost`] | CPU time and memory of a run |

pub mod closing;
pub mod cost;
pub mod error;
pub mod local;
pub mod pool;
pub mod real;
pub mod replay;
pub mod run;
pub mod virtual_time;
pub mod watch;
pub mod world;

pub use error::{RunError, UnitError};
pub use run::{Outcome, RunOptions, check, run};
pub use watch::Watch;
