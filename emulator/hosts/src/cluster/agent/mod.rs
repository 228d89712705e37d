//! The daemon on each host.
//!
//! | module | what it holds |
//! |---|---|
//! | `daemon` | `Agent`: the listening socket and its thread, and the first message of each connection |
//! | `state` | state shared by all tasks of an agent or of a run; tasks that are aborted with their owner |
//! | `session` | the session of one controller: its plan, and its runs in turn |
//! | `run` | one host's part of a run: its shard, its messages and reports, and the links |
//! | `injections` | the injections that the current run carries out |
//! | `log` | log lines kept for the controller |

mod daemon;
mod injections;
mod log;
mod run;
mod session;
mod state;

pub use daemon::Agent;
pub use log::AgentLog;
pub use state::Settings;
