//! How agents are.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::protocol::{AgentMessage, AgentStatus, ControllerMessage, STATUS_FRAME};
use super::{HostsError, socket_options};
use crate::cluster::net::{Control, Host, Hosts, Identity, Transport};

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How one agent is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct State {
    /// The host.
    pub name: String,
    /// Where its agent should listen.
    pub address: SocketAddr,
    /// What it says of itself.
    pub state: Option<String>,
    /// How long it took to answer, s, with the handshake.
    pub answer_s: Option<f64>,
    /// Why it does not answer.
    pub error: Option<String>,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.state.as_deref().or(self.error.as_deref()).unwrap_or("silent");
        write!(f, "{:<16} {:<22} {text}", self.name, self.address.to_string())?;
        self.answer_s.map_or(Ok(()), |s| write!(f, " ({:.1} ms)", s * 1e3))
    }
}

/// Asks every agent of a hosts file how it is.
///
/// # Errors
/// When the hosts file or the controller's identity cannot be used; what is wrong with a host is in its state.
pub fn status(hosts: &Path) -> Result<Vec<State>, HostsError> {
    let file = Hosts::load(hosts)?;
    let identity = Identity::load(&file.controller(), SystemTime::now())?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
    runtime.block_on(async {
        let transport =
            Transport::connector(&identity, (Ipv4Addr::UNSPECIFIED, 0).into(), &socket_options(PATIENCE))?;
        let transport = Arc::new(transport);
        // All at once: those that are silent are waited for together.
        let ask = |host| tokio::spawn(state(Arc::clone(&transport), host));
        let asked: Vec<_> = file.hosts.into_iter().map(ask).collect();
        let mut states = Vec::new();
        for state in asked {
            states.push(state.await.map_err(|bug| HostsError::System(io::Error::other(bug)))?);
        }
        Ok(states)
    })
}

async fn state(transport: Arc<Transport>, host: Host) -> State {
    let began = Instant::now();
    let asked = timeout(PATIENCE, ask(&transport, &host)).await;
    let asked = asked.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())));
    let answer_s = asked.is_ok().then(|| began.elapsed().as_secs_f64());
    let Host { name, address, .. } = host;
    match asked {
        Ok(AgentStatus { doing }) => State { name, address, state: Some(doing), answer_s, error: None },
        Err(error) => State { name, address, state: None, answer_s, error: Some(error) },
    }
}

async fn ask(transport: &Transport, host: &Host) -> Result<AgentStatus, String> {
    let peer = transport.connect(&host.name, host.address).await.map_err(|error| error.why)?;
    let mut control =
        Control::<ControllerMessage, AgentMessage>::new(&peer.connection, peer.streams, STATUS_FRAME);
    control.send(&ControllerMessage::Status).await.map_err(|error| error.to_string())?;
    match control.receive().await {
        Ok(AgentMessage::State(state)) => Ok(*state),
        Ok(_) => Err("it answers something else".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
