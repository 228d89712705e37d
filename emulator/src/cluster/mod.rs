//! Runs in real time on many machines: a controller, an agent on each host, QUIC between them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`controller`] | the host pool, the cells run on it, their logs and results |
//! | [`agent`] | the daemon on each host, and its half of a cell |
//! | [`protocol`] | the messages between controller and agents |
//! | [`inject`] | interference injected into a run by a third party |
//! | [`net`] | QUIC endpoints, identities, links between hosts |
//! | `placement` | the assignment of actors to hosts |
//! | `check` | checks of what other hosts send |
//! | [`status`](mod@status) | the state of agents |
//! | [`error`] | errors of runs on hosts |
//! | [`timing`] | limits of silence and timeouts |

pub mod agent;
mod check;
pub mod controller;
pub mod error;
pub mod inject;
pub mod net;
mod placement;
pub mod protocol;
pub mod status;
pub mod timing;

pub use controller::Fleet;
pub use error::HostsError;
pub(crate) use placement::nothing_held;
pub use status::{State, status};
pub use timing::{LONGEST_LEASE, SHORTEST_LEASE};
pub(crate) use timing::{allowing, socket_options};
