//! `Agent`: the daemon on each host.
//!
//! Network and shard share one thread, so that a message needs no switch of threads. An agent serves one controller
//! at a time, and a run ends with the connection of its controller.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use super::accept::accept;
use super::state::{AgentState, Settings};
use crate::cluster::error::HostsError;
use crate::cluster::net::endpoint::Accepted;
use crate::cluster::net::{Identity, Transport};
use crate::cluster::timing::socket_options;

/// A listening agent.
#[derive(Debug)]
pub struct Agent {
    runtime: Runtime,
    transport: Transport,
    accepted: Accepted,
    name: String,
    settings: Settings,
}

impl Agent {
    /// Binds the socket.
    ///
    /// # Errors
    /// An identity that cannot be used, an address that cannot be listened on.
    pub fn new(settings: &Settings) -> Result<Self, HostsError> {
        let identity = Identity::load_host(&settings.identity, SystemTime::now())?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
        let guard = runtime.enter();
        let lease = Duration::from_nanos(settings.lease.0);
        let (transport, accepted) = Transport::listen(&identity, settings.listen, &socket_options(lease))?;
        drop(guard);
        Ok(Self { runtime, transport, accepted, name: identity.subject.name, settings: settings.clone() })
    }

    /// The name in its certificate.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The operating system does not know.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.transport.address()
    }

    /// Serves controllers until SIGTERM or Ctrl-C, with `once` until the first one is gone.
    ///
    /// # Errors
    /// Signals cannot be waited for.
    pub fn run(self) -> io::Result<()> {
        let (once, accepted) = (self.settings.once, self.accepted);
        let state = Rc::new(AgentState::new(self.transport, self.settings));
        let local = LocalSet::new();
        let result = self.runtime.block_on(local.run_until(async {
            let mut term = signal(SignalKind::terminate())?;
            tokio::select! {
                // A session that ends at the idle timeout counts as served.
                biased;
                () = accept(Rc::clone(&state), accepted) => {}
                _ = term.recv() => tracing::info!("told to end"),
                _ = tokio::signal::ctrl_c() => tracing::info!("told to end"),
                () = state.served_one(), if once => {}
                () = state.idle_too_long(), if once => tracing::warn!("no controller came"),
            }
            state.transport.close("the agent ends").await;
            Ok(())
        }));
        drop(local);
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        result
    }
}
