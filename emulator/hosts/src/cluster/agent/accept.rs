//! The accept loop of an agent, and the first message of each connection.

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::io::SEND_QUEUE;
use super::relay::relay;
use super::session::serve;
use super::state::AgentState;
use super::tasks::catch_panic;
use crate::cluster::net::Close;
use crate::cluster::net::endpoint::Accepted;
use crate::cluster::net::{Connection, Control, Peer, PeerInfo, Role};
use crate::cluster::protocol::{
    AgentMessage, AgentStatus, ControllerMessage, FIRST_FRAME, LinkPurpose, MESSAGE_FRAME, Opening,
    STATUS_FRAME,
};

/// Maximum time of a peer for its first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time of a peer for closing the connection after the last message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves every peer that connects with a valid certificate.
pub(super) async fn accept(state: Rc<AgentState>, mut accepted: Accepted) {
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
        Some(Opening::Inject) => {
            tracing::info!("{who} injects interference");
            let end = relay(&state, control.retype(MESSAGE_FRAME)).await;
            tracing::info!("{who} is gone: {end}");
            closed(&connection).await;
        }
        Some(Opening::Claim) => claim(&state, &who, &connection, control.retype(MESSAGE_FRAME)).await,
    }
}

/// Serves a controller until it is gone, unless another one is served.
async fn claim(
    state: &Rc<AgentState>,
    who: &PeerInfo,
    connection: &Connection,
    mut control: Control<AgentMessage, ControllerMessage>,
) {
    let (messages, queue) = mpsc::channel(SEND_QUEUE);
    let _session = match state.open_session(who.address, messages.clone()) {
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

/// Takes the link that another host opens for a run.
async fn accept_link(state: &AgentState, peer: Peer) {
    let Peer { who, connection, streams } = peer;
    let mut control = Control::<(), LinkPurpose>::new(&connection, streams, FIRST_FRAME);
    let Some(LinkPurpose { run }) = first(&who, &connection, &mut control).await else { return };
    if let Err(connection) = state.add_link(who.name.clone(), run, connection) {
        tracing::info!("{who} opened a link for a run that is over");
        connection.close(Close::Failed, "that run is over here");
    }
}

/// The first message of a peer. A peer that sends none in time is disconnected.
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
