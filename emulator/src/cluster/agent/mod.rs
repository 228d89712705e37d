//! The daemon on each host.
//!
//! | module | what it holds |
//! |---|---|
//! | `daemon` | `Agent`: the listening socket and its thread |
//! | `accept` | the accept loop, and the single controller session |
//! | `state` | state shared by the tasks of an agent |
//! | `session` | the session of one controller: plan, then cell after cell |
//! | `cell` | this host's half of a cell: its shard and its links |
//! | `context` | state shared by the tasks of a cell |
//! | `tasks` | tasks that are aborted with their owner, and caught panics |
//! | `injectable` | a running cell that takes injections |
//! | `relay` | the service of injectors |
//! | `log` | log lines kept for the controller |

mod cell;
mod context;
mod daemon;
pub(crate) mod injectable;
mod log;
mod relay;
mod session;
mod state;
mod tasks;

pub use daemon::{Agent, Settings};
pub use log::RunLog;
