//! The controller of a run on hosts.
//!
//! | module | what it holds |
//! |---|---|
//! | `handle` | `Controller`, the blocking interface for a runtime |
//! | `host_pool` | the connected hosts, and the control connection to each |
//! | `run` | the execution of one run: reports merged, losses, end |
//! | `injections` | the injections into the current run |
//! | `losses` | datagram losses per sender and path |
//! | `silence` | how long a connected host has reported nothing |
//! | `archive` | logs and inputs of the hosts, on disk |
//! | `spawn` | agents started on this machine for one run |

mod archive;
mod handle;
mod host_pool;
mod injections;
mod losses;
mod run;
mod silence;
mod spawn;

pub use handle::Controller;
pub use spawn::remove_identities;
