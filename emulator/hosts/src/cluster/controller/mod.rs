//! The controller of a run on hosts.
//!
//! | module | what it holds |
//! |---|---|
//! | `handle` | `Controller`, the blocking interface for a runtime; lost datagrams; agents started on this machine |
//! | `host_pool` | the connected hosts, and the control connection to each |
//! | `run` | the execution of one run: reports merged, losses, hosts that report nothing, end |
//! | `injections` | the injections into the current run |
//! | `injectors` | the socket on which injectors connect |
//! | `archive` | logs and inputs of the hosts, on disk |

mod archive;
mod handle;
mod host_pool;
mod injections;
mod injectors;
mod run;

pub use handle::{Controller, remove_identities};
