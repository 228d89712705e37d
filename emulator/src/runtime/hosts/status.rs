//! How agents are.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::HostsError;
use crate::transport::endpoint::{Endpoint, Role};
use crate::transport::hosts::HostsFile;
use crate::transport::identity::Identity;

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
    let file = HostsFile::read(hosts)?;
    let identity = Identity::load(&file.controller())?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
    runtime.block_on(async {
        let endpoint = Endpoint::dial(&identity, PATIENCE)?;
        let mut states = Vec::new();
        for host in &file.hosts {
            let began = Instant::now();
            let asked = timeout(PATIENCE, async {
                let connection = endpoint.connect(host.address, &host.name, Role::Visitor).await?;
                Ok::<_, crate::transport::Error>(connection.closed().await)
            });
            let (state, error) = match asked.await {
                Ok(Ok(state)) => (Some(state), None),
                Ok(Err(error)) => (None, Some(error.to_string())),
                Err(_) => (None, Some(format!("no answer within {} s", PATIENCE.as_secs()))),
            };
            let answer_s = state.is_some().then(|| began.elapsed().as_secs_f64());
            states.push(State { name: host.name.clone(), address: host.address, state, answer_s, error });
        }
        Ok(states)
    })
}
