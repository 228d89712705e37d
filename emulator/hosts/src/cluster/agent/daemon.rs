//! `Agent`: the daemon on each host.
//!
//! Network and shard share one thread, so that a message needs no switch of threads. An agent serves one controller
//! at a time, and a run ends when its controller disconnects.
//!
//! The first message of a connection identifies the peer as a controller or another host.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

use super::run::SEND_QUEUE;
use super::session::serve;
use super::state::{AgentState, Settings, catch_panic};
use crate::cluster::error::HostsError;
use crate::cluster::net::endpoint::Accepted;
use crate::cluster::net::{Close, Connection, Control, Identity, Peer, PeerInfo, Role, Transport};
use crate::cluster::protocol::{
    AgentMessage, AgentStatus, ControllerMessage, FIRST_FRAME, LinkPurpose, MESSAGE_FRAME, Opening,
    STATUS_FRAME,
};
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
    /// When the identity cannot be used, or the address cannot be listened on.
    pub fn new(settings: &Settings) -> Result<Self, HostsError> {
        let identity = Identity::load_for(Role::Host, &settings.identity, SystemTime::now())?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
        let guard = runtime.enter();
        let lease = Duration::from_nanos(settings.lease.0);
        let (transport, accepted) = Transport::listen(&identity, settings.listen, &socket_options(lease))?;
        drop(guard);
        Ok(Self { runtime, transport, accepted, name: identity.subject.name, settings: settings.clone() })
    }

    /// The name in the agent's certificate.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that the agent listens on.
    ///
    /// # Errors
    /// When the operating system does not know the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.transport.address()
    }

    /// Serves controllers until SIGTERM or Ctrl-C. With `once`, also ends after the first session, or if no controller
    /// connects in time.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    pub fn run(self) -> io::Result<()> {
        let (once, accepted) = (self.settings.once, self.accepted);
        let state = Rc::new(AgentState::new(self.transport, self.settings));
        let local = LocalSet::new();
        let result = self.runtime.block_on(local.run_until(async {
            let mut term = signal(SignalKind::terminate())?;
            tokio::select! {
                // In this order there is no warning if the only session ends together with the idle timeout.
                biased;
                () = accept(Rc::clone(&state), accepted) => {}
                _ = term.recv() => tracing::info!("the agent ends on a signal"),
                _ = tokio::signal::ctrl_c() => tracing::info!("the agent ends on a signal"),
                () = state.served_one(), if once => {}
                () = state.idle_too_long(), if once => tracing::warn!("the agent ends: no controller connected in time"),
            }
            state.transport.close("the agent ends").await;
            Ok(())
        }));
        drop(local);
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        result
    }
}

/// Maximum time within which a peer must send its first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time within which a peer must close the connection after the last message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves every peer that connects with a valid certificate.
async fn accept(state: Rc<AgentState>, mut accepted: Accepted) {
    while let Some(peer) = accepted.next().await {
        let state = Rc::clone(&state);
        spawn_local(async move {
            match peer.who.role {
                Role::Controller => serve_controller(state, peer).await,
                Role::Host => accept_link(&state, peer).await,
            }
        });
    }
}

/// Serves a peer with a controller's certificate.
async fn serve_controller(state: Rc<AgentState>, peer: Peer) {
    let Peer { who, connection, streams } = peer;
    let mut control = Control::<(), Opening>::new(&connection, streams, FIRST_FRAME);
    match first(&who, &connection, &mut control).await {
        None => {}
        Some(Opening::Status) => {
            let mut control = control.retype::<AgentStatus, ()>(STATUS_FRAME);
            let _ = control.send(&state.status()).await;
            closed(&connection).await;
        }
        Some(Opening::Claim) => claim(&state, &who, &connection, control.retype(MESSAGE_FRAME)).await,
    }
}

/// Serves a controller until it disconnects. If another controller is being served, answers `Busy` instead.
async fn claim(
    state: &Rc<AgentState>,
    who: &PeerInfo,
    connection: &Connection,
    mut control: Control<AgentMessage, ControllerMessage>,
) {
    let (messages, queue) = mpsc::channel(SEND_QUEUE);
    let _session = match state.open_session(who.address) {
        Ok(session) => session,
        Err(other) => {
            let _ = control.send(&AgentMessage::Busy { controller: other.to_string() }).await;
            return closed(connection).await;
        }
    };
    state.settings.log.begin();
    tracing::info!("{who} takes over");
    state.transport.subject().warn_of_end(SystemTime::now());
    match catch_panic(serve(state, control, messages, queue)).await {
        Ok(Ok(())) => tracing::info!("{who} is done"),
        Ok(Err(why)) => {
            tracing::warn!("{who}: {why}");
            connection.close(Close::Failed, &why);
        }
        Err(panic) => {
            tracing::error!("{who}: {panic}");
            connection.close(Close::Failed, &panic);
        }
    }
}

/// Accepts a link that another host opens for a run.
async fn accept_link(state: &AgentState, peer: Peer) {
    let Peer { who, connection, streams } = peer;
    let mut control = Control::<(), LinkPurpose>::new(&connection, streams, FIRST_FRAME);
    let Some(LinkPurpose { run }) = first(&who, &connection, &mut control).await else { return };
    if let Err(connection) = state.add_link(who.name.clone(), run, connection) {
        tracing::info!("{who} opened a link for a run that is over");
        connection.close(Close::Failed, "the run of this link is over on this host");
    }
}

/// The first message of a peer. A peer that does not send a message in time is disconnected.
async fn first<S: Serialize, R: DeserializeOwned>(
    who: &PeerInfo,
    connection: &Connection,
    control: &mut Control<S, R>,
) -> Option<R> {
    match timeout(FIRST_MESSAGE_TIMEOUT, control.receive()).await {
        Ok(Ok(first)) => return Some(first),
        Ok(Err(why)) => tracing::warn!("{who}: {why}"),
        Err(_) => {
            tracing::warn!("{who} sent no first message in time");
            let words = format!("no first message within {} s of the hello", FIRST_MESSAGE_TIMEOUT.as_secs());
            connection.close(Close::Late, &words);
        }
    }
    None
}

/// Waits until the peer has closed the connection, and closes it if that takes too long.
async fn closed(connection: &Connection) {
    if timeout(CLOSE_TIMEOUT, connection.ended()).await.is_err() {
        connection.close(Close::Done, "done");
    }
}
