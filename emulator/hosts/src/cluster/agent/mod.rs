//! The daemon on each host.
//!
//! | module | what it holds |
//! |---|---|
//! | `daemon` | `Agent`: the listening socket and its thread |
//! | `accept` | the accept loop, and the first message of each connection |
//! | `state` | state shared by all tasks of an agent, and its single session |
//! | `session` | the session of one controller: plan, then run after run |
//! | `run` | one host's part of a run: its shard, and the links |
//! | `context`, `io` | state shared by the tasks of a run; what its shard sends and reports |
//! | `tasks` | tasks that are aborted with their owner, and caught panics |
//! | `injections` | the injections that the current run carries out |
//! | `relay` | the relay between an injector and the controller |
//! | `log` | log lines kept for the controller |

mod accept;
mod context;
mod daemon;
mod injections;
mod io;
mod log;
mod relay;
mod run;
mod session;
mod state;
mod tasks;

pub use daemon::Agent;
pub use log::AgentLog;
pub use state::Settings;
