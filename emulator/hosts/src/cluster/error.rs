//! Errors of runs on hosts and of injections.

use std::io;
use std::time::Duration;

use volary_experiment::config::ConfigError;

use super::net::endpoint::{BindError, ConnectError};
use super::net::identity::FileError;
use super::protocol::Refusal;

/// The reason why hosts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The experiment and its files cannot be bundled for the hosts.
    #[error(transparent)]
    Spec(#[from] ConfigError),
    #[error(
        "the experiment and its files have {mib} MiB, above the limit of {limit} MiB; use a part of the trace"
    )]
    Large {
        /// Size of the experiment, MiB.
        mib: usize,
        /// Maximum size of the experiment, MiB.
        limit: usize,
    },
    /// An operation of the operating system failed.
    #[error("{0}")]
    System(io::Error),
    #[error("the study was interrupted before the hosts were ready, so nothing was run")]
    Interrupted,
    #[error("--as-recorded: {0}")]
    Recorded(String),
    #[error("host {host}: {why}")]
    Host { host: String, why: String },
    #[error("host {host}: busy with a run of the controller at {controller}; {}", busy_remedy(*waited))]
    Busy {
        host: String,
        controller: String,
        /// Time that the run waited for the other run to end.
        waited: Duration,
    },
}

fn busy_remedy(waited: Duration) -> String {
    match waited {
        Duration::ZERO => "stop that run, or wait for it: --wait 1h. After a controller was killed, its hosts are free within seconds: \
             --wait 1min"
            .to_owned(),
        waited => format!("it did not end within --wait {waited:?}: stop it, or wait longer"),
    }
}

impl HostsError {
    /// The same error, with the time that a run waited for busy hosts.
    pub(super) fn after(mut self, patience: Duration) -> Self {
        if let Self::Busy { waited, .. } = &mut self {
            *waited = patience;
        }
        self
    }

    /// Whether the user's files are the cause, rather than the hosts.
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::File(_) | Self::Spec(_) | Self::Large { .. } | Self::Recorded(_))
    }
}

/// The reason why nothing was injected, or why an injection ended early.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The controller or the injector refused the request, or they could not communicate.
    #[error("{1}")]
    Refused(Refusal, String),
}

impl InjectError {
    /// Whether the user's input is the cause, rather than the hosts.
    pub const fn is_input(&self) -> bool {
        match self {
            Self::Refused(refusal, _) => matches!(refusal, Refusal::Invalid),
            Self::Hosts(error) => error.is_input(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_after_a_wait_does_not_suggest_the_same_wait() {
        let [host, controller] = ["h1", "10.0.0.1:1"].map(str::to_owned);
        let busy = HostsError::Busy { host, controller, waited: Duration::ZERO };
        assert!(busy.to_string().contains("wait for it: --wait 1h. After a controller was killed"));
        let still = busy.after(Duration::from_secs(2)).to_string();
        assert!(still.ends_with("it did not end within --wait 2s: stop it, or wait longer"), "{still}");
    }
}
