//! Errors of runs on hosts.

use std::io;

use crate::cluster::net;
use crate::cluster::net::endpoint::{BindError, ConnectError};
use crate::cluster::net::identity::IdentityError;
use crate::config::ConfigError;

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
    Spec(#[from] ConfigError),
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
