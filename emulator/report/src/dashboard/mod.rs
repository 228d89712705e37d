//! The live page: a running experiment, or a study directory, in a browser of this machine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`snapshot`] | what the page shows at one moment, in one form for all runtimes, with ended runs, faults and injections |
//! | `state` | [`Dashboard`]: what runs report, from which snapshots are taken |
//! | `sampler` | one run while it goes on |
//! | `folder` | [`RunFolder`]: snapshots of a study directory |
//! | `sections` | the page, and a snapshot as its sections |
//! | `streams` | the viewers of the page, and what each is sent |
//! | `server` | [`Server`]: the socket, and HTTP by hyper; [`SnapshotSource`]: where snapshots come from; which requests are answered |

mod folder;
mod sampler;
mod sections;
mod server;
pub mod snapshot;
mod state;
mod streams;

pub use folder::RunFolder;
pub use server::{LiveError, Server, SnapshotSource};
pub use state::Dashboard;
