//! Real time on many machines: a controller, an agent on each host, QUIC between them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`controller`] | the controller: hosts taken, units run, results collected |
//! | `party` | the hosts as the controller has them |
//! | `line` | the controller's line to one host |
//! | `ran` | a unit on the hosts, as the controller sees it |
//! | `held` | which host holds what |
//! | `losses` | who lost whose datagrams |
//! | `archive` | what hosts send to be kept: logs and inputs |
//! | [`agent`] | the daemon on each host |
//! | [`log`] | what an agent logs during a run, for the controller's archive |
//! | `house` | who comes to an agent, and who is served |
//! | `session` | what an agent does for a controller |
//! | `part` | a host's part in a unit |
//! | `crew` | tasks that end with whoever spawned them |
//! | `desk` | what the tasks of an agent share |
//! | [`protocol`] | what controller and agents say to each other |
//! | `caught` | panics that end a unit and not the agent |
//! | [`inject`] | interference injected into a run by somebody else |
//! | `sense` | whether what other hosts say can be |
//! | `spawn` | agents on this machine, to try it in one command |
//! | [`status`](fn@status) | how agents are |

pub mod agent;
mod archive;
mod caught;
pub mod controller;
mod crew;
mod desk;
mod held;
mod house;
pub mod inject;
mod line;
pub mod log;
mod losses;
mod part;
mod party;
pub mod protocol;
mod ran;
mod sense;
mod session;
mod spawn;
mod status;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub(super) use held::nothing_held;
pub use status::{State, status};

use crate::cluster::net::endpoint::{BindError, ConnectError};
use crate::cluster::net::identity::IdentityError;
use crate::cluster::net::{self, Options};
use crate::spec::SpecError;

/// The machines of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fleet {
    /// Those of a hosts file, each with an agent that listens.
    Hosts(PathBuf),
    /// So many agents on this machine, started for the run and ended with it.
    Spawn(u16),
}

/// Why hosts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The hosts file.
    #[error(transparent)]
    File(#[from] net::hosts_file::HostsFileError),
    /// An identity.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The experiment cannot be packed.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The experiment is larger than what hosts take.
    #[error(
        "the experiment and its files have {mib} MiB, and hosts take {limit} at most; use a part of the trace"
    )]
    Large {
        /// What it takes, MiB.
        mib: usize,
        /// The most, MiB.
        limit: usize,
    },
    /// The system refuses something.
    #[error("{0}")]
    System(io::Error),
    /// Somebody wants it to stop before it has begun.
    #[error("interrupted before the hosts were ready, so nothing was run")]
    Interrupted,
    /// A host does not do what it should.
    #[error("host {host}: {why}")]
    Host {
        /// Its name.
        host: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

impl HostsError {
    /// Whether the files that the user gave are to blame, and not the hosts.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::File(_) | Self::Identity(_) | Self::Spec(_) | Self::Large { .. })
    }
}

/// The shortest time of silence after which an agent may give a peer up.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// The longest. The controller waits as long as the agent's own lease says, and never longer than this.
pub const LONGEST_LEASE: Duration = Duration::from_secs(600);

/// Limits of a socket whose peers may be silent for so long.
fn timing(silence: Duration) -> Options {
    Options { idle: silence, keep_alive: silence / 5, ..Options::default() }
}

/// A time that depends on the path: at least so long, or so many round trips.
fn allowing((least, trips): (Duration, u32), round_trip: Duration) -> Duration {
    least.max(round_trip * trips)
}
