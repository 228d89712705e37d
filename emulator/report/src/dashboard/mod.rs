//! The live page: a running experiment, or a study directory, in a browser of this machine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`snapshot`] | what the page shows at one moment, in one form for all runtimes |
//! | `source` | [`SnapshotSource`]: where snapshots come from |
//! | `state` | [`Dashboard`]: what runs report, from which snapshots are taken |
//! | `sampler` | one run while it goes on |
//! | `folder` | [`RunFolder`]: snapshots of a study directory |
//! | `record`, `disturbances` | views of ended runs, of faults and of injections |
//! | `sections`, `grid` | a snapshot as HTML |
//! | `page` | the page around the sections, its style and script |
//! | `streams` | the viewers of the page, and what each is sent |
//! | `request` | which requests are answered |
//! | `server` | [`Server`]: the socket, and HTTP by hyper |

mod disturbances;
mod folder;
mod grid;
mod page;
mod record;
mod request;
mod sampler;
mod sections;
mod server;
pub mod snapshot;
mod source;
mod state;
mod streams;

pub use folder::RunFolder;
pub use server::{LiveError, Server};
pub use source::SnapshotSource;
pub use state::Dashboard;
