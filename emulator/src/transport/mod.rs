//! Hosts that talk: identities, QUIC connections, links for parcels, control streams, clocks.
//!
//! Nothing here knows schedulers or experiments; it moves frames and parcels between processes that have
//! certificates of the same run.
//!
//! | module | what it holds |
//! |---|---|
//! | [`identity`] | the run's authority, one identity a host |
//! | [`hosts`] | the hosts file |
//! | [`endpoint`] | connections between hosts that know each other |
//! | [`link`] | parcels from host to host |
//! | [`control`] | typed frames on a stream |
//! | [`clock`] | the offset of another host's clock |

pub mod clock;
pub mod control;
pub mod endpoint;
pub mod hosts;
pub mod identity;
pub mod link;

use std::io;
use std::path::PathBuf;

use crate::wire::WireError;

/// What can go wrong between hosts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is there and cannot be used; says what to do.
    #[error("{path}: {why}")]
    Content {
        /// Which.
        path: PathBuf,
        /// Why, and the remedy.
        why: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A host cannot be reached.
    #[error("cannot reach {name} at {address}: {why}")]
    Unreachable {
        /// The host.
        name: String,
        /// Where it should be.
        address: std::net::SocketAddr,
        /// Why.
        why: String,
    },
    /// The other side does not do what was agreed.
    #[error("{0}")]
    Protocol(String),
    /// The connection is gone.
    #[error("the connection ended: {0}")]
    Ended(String),
    /// What came is no frame.
    #[error(transparent)]
    Wire(#[from] WireError),
}
