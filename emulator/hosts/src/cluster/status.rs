//! The state of the agents of a hosts file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, io};

use serde::Serialize;
use tokio::runtime::Builder;
use tokio::time::timeout;
use volary_experiment::control::LateSoFar;
use volary_experiment::number::{count, plural, seconds};

use super::error::HostsError;
use super::net::{Control, Host, Hosts, Identity, Role, Transport};
use super::protocol::{AgentStatus, FIRST_FRAME, Opening, RunStatus, STATUS_FRAME};
use super::timing::socket_options;

/// Maximum time within which an agent must answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of one host: its agent's answer, or the reason why there is none.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostStatus {
    pub name: String,
    /// The address that the host's agent should listen on.
    pub address: SocketAddr,
    /// The agent's version of volary.
    pub version: Option<String>,
    /// Activity of the agent.
    pub state: Option<String>,
    /// The run in progress.
    pub run: Option<RunStatus>,
    /// Time from the request to the answer, handshake included, s.
    pub answer_s: Option<f64>,
    /// The reason why there is no answer.
    pub error: Option<String>,
}

impl fmt::Display for HostStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.state.as_deref().or(self.error.as_deref()).unwrap_or("silent");
        write!(f, "{:<16} {:<22} {text}", self.name, self.address.to_string())?;
        if let Some(s) = self.answer_s {
            write!(f, " ({:.1} ms)", s * 1e3)?;
        }
        if let Some(version) = &self.version {
            write!(f, ", volary {version}")?;
        }
        self.run.as_ref().map_or(Ok(()), |run| write!(f, "\n    {}", described(run).join("\n    ")))
    }
}

impl HostStatus {
    /// The state on one line: name, and the run in progress or the state of the agent.
    pub fn line(&self) -> String {
        let text = self.state.as_deref().or(self.error.as_deref()).unwrap_or("silent");
        let text = self.run.as_ref().map_or_else(|| text.to_owned(), |run| described(run).join("; "));
        format!("{:<16} {text}", self.name)
    }
}

/// The run of a host in words: its progress, and its clock and deliveries in a timed run.
fn described(run: &RunStatus) -> Vec<String> {
    let RunStatus { experiment, policy, cell, seed, at_s, finished, jobs, late, clock_error_s } = run;
    let of = [policy.clone(), cell.clone(), format!("seed {seed}")];
    let of = of.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
    let late = late.map(|LateSoFar { p50_s, p99_s, max_s }| {
        let [median, most, max] = [p50_s, p99_s, max_s].map(seconds);
        format!("deliveries late by {median}, 1 % by {most}, at most {max}")
    });
    let clock = clock_error_s.map(|bound| format!("clock ± {}", seconds(bound)));
    let timing: Vec<_> = late.into_iter().chain(clock).collect();
    let (finished, jobs, at) = (count(*finished), plural(*jobs, "job"), seconds(*at_s));
    let progress = format!("{experiment}: {of}: {finished} of {jobs} at {at}");
    [progress].into_iter().chain((!timing.is_empty()).then(|| timing.join("; "))).collect()
}

/// Asks every agent of a hosts file for its state.
///
/// # Errors
/// When the hosts file or the controller's identity cannot be used. Errors of a host are in its [`HostStatus`].
pub fn status(hosts: &Path) -> Result<Vec<HostStatus>, HostsError> {
    let file = Hosts::load(hosts)?;
    let identity = Identity::load_for(Role::Controller, &file.controller(), SystemTime::now())?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
    runtime.block_on(async {
        let transport = Transport::connector(&identity, file.local(), &socket_options(ANSWER_TIMEOUT))?;
        let answers = answers(&Arc::new(transport), &file.hosts, ANSWER_TIMEOUT).await?;
        Ok(file.hosts.into_iter().zip(answers).map(|(host, answer)| host_status(host, answer)).collect())
    })
}

/// An agent's answer and its duration, s; or the reason why there is none.
pub(super) type Answer = Result<(AgentStatus, f64), String>;

/// The answers of all hosts. All hosts are asked at the same time, so that several silent hosts delay the result by
/// only one `patience`.
pub(super) async fn answers(
    transport: &Arc<Transport>,
    hosts: &[Host],
    patience: Duration,
) -> Result<Vec<Answer>, HostsError> {
    let ask = |host: &Host| tokio::spawn(answer(Arc::clone(transport), host.clone(), patience));
    let asked: Vec<_> = hosts.iter().map(ask).collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.map_err(|panic| HostsError::System(io::Error::other(panic)))?);
    }
    Ok(answers)
}

async fn answer(transport: Arc<Transport>, host: Host, patience: Duration) -> Answer {
    let began = Instant::now();
    // The last attempt to connect may end after `patience`.
    let answer = timeout(patience + ANSWER_TIMEOUT, ask(&transport, &host, patience)).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {} s", patience.as_secs())));
    answer.map(|status| (status, began.elapsed().as_secs_f64()))
}

fn host_status(host: Host, answer: Answer) -> HostStatus {
    let Host { name, address, .. } = host;
    match answer {
        Ok((AgentStatus { version, doing, run }, answer_s)) => HostStatus {
            name,
            address,
            version: Some(version),
            state: Some(doing),
            run,
            answer_s: Some(answer_s),
            error: None,
        },
        Err(error) => HostStatus {
            name,
            address,
            version: None,
            state: None,
            run: None,
            answer_s: None,
            error: Some(error),
        },
    }
}

async fn ask(transport: &Transport, host: &Host, patience: Duration) -> Result<AgentStatus, String> {
    let peer = transport.connect_within(&host.name, host.address, patience).await;
    let peer = peer.map_err(|error| error.why)?;
    let mut control = Control::<Opening, ()>::new(&peer.connection, peer.streams, FIRST_FRAME);
    control.send(&Opening::Status).await.map_err(|error| error.to_string())?;
    let mut control = control.retype::<(), AgentStatus>(STATUS_FRAME);
    control.receive().await.map(AgentStatus::sanitized).map_err(|error| error.to_string())
}
