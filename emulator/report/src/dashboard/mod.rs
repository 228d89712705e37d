//! The live page: a running experiment, or a study directory, in a browser of this machine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`snapshot`] | the content of the page at one moment, in one form for all runtimes; [`SnapshotSource`], a source of snapshots |
//! | `state` | [`Dashboard`]: the reports of runs and samples of runs in progress, from which snapshots are made |
//! | `folder` | [`RunFolder`]: snapshots of a study directory |
//! | `prometheus` | a snapshot as metrics for Prometheus |
//! | `sections` | the page, and a snapshot as its sections |
//! | `streams` | the viewers of the page, and their events |
//! | `server` | [`Server`]: the socket, HTTP by hyper and its routes |

mod folder;
mod prometheus;
mod sections;
mod server;
pub mod snapshot;
mod state;
mod streams;

pub use folder::RunFolder;
pub use server::{LiveError, Server};
pub use snapshot::SnapshotSource;
pub use state::Dashboard;
