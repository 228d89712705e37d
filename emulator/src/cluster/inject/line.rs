//! The injector's line to an agent.

use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use volary_actors::base::{Span, Time};

use super::injector::InjectError;
use super::words::{Reply, Request, Running, Scene};
use crate::cluster::HostsError;
use crate::cluster::net::{Control, End, Host, Transport};
use crate::cluster::protocol::{AgentMessage, ControllerMessage, FIRST_FRAME, MESSAGE_FRAME};

/// How long agents may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a run may take from one cell to the next: it may be planning, building or calibrating.
const BETWEEN: Duration = Duration::from_secs(60);
/// Between two looks at whether a cell has begun.
const LOOK: Duration = Duration::from_millis(100);

/// The line to an agent.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) host: String,
    pub(crate) control: Control<Request, Reply>,
    pub(crate) round_trip: Duration,
}

impl Line {
    pub(crate) async fn open(transport: &Transport, host: &Host) -> Result<Self, InjectError> {
        let peer = transport.connect(&host.name, host.address).await.map_err(HostsError::from)?;
        let mut control =
            Control::<ControllerMessage, AgentMessage>::new(&peer.connection, peer.streams, FIRST_FRAME);
        let failed = |error: End| InjectError::Host { host: host.name.clone(), why: error.to_string() };
        control.send(&ControllerMessage::Inject).await.map_err(failed)?;
        let round_trip = peer.connection.round_trip();
        Ok(Self { host: host.name.clone(), control: control.retype(MESSAGE_FRAME), round_trip })
    }

    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Reply, InjectError> {
        let sent = timeout(PATIENCE, self.control.send(request)).await;
        sent.map_err(|_| self.silent())?.map_err(|end| self.failed(end.to_string()))?;
        self.hear().await
    }

    /// Waits until it has begun what it was ordered to; says from when it does.
    pub(crate) async fn begun(&mut self) -> Result<Time, InjectError> {
        match self.hear().await? {
            Reply::Begun { from } => Ok(from),
            Reply::Over { why, .. } => Err(self.failed(why)),
            Reply::Scene(_) | Reply::Aimed(_) | Reply::Refused { .. } => Err(self.odd()),
        }
    }

    /// The next answer; a refusal is an error.
    async fn hear(&mut self) -> Result<Reply, InjectError> {
        let reply = timeout(PATIENCE, self.control.receive()).await;
        match reply.map_err(|_| self.silent())?.map_err(|end| self.failed(end.to_string()))? {
            Reply::Refused { wrong: true, why } => Err(InjectError::Wrong(why)),
            Reply::Refused { wrong: false, why } => Err(self.failed(why)),
            reply @ (Reply::Scene(_) | Reply::Aimed(_) | Reply::Begun { .. } | Reply::Over { .. }) => {
                Ok(reply)
            }
        }
    }

    fn failed(&self, why: String) -> InjectError {
        InjectError::Host { host: self.host.clone(), why }
    }

    fn silent(&self) -> InjectError {
        self.failed(format!("no answer within {} s", PATIENCE.as_secs()))
    }

    pub(crate) fn odd(&self) -> InjectError {
        self.failed("it answers something else".to_owned())
    }
}

/// The cell that all hosts run, and the latest time that one of them shows.
pub(crate) async fn scene(lines: &mut [Line]) -> Result<Running, InjectError> {
    let late = Instant::now() + BETWEEN;
    loop {
        let asked = Instant::now();
        let (mut found, mut idle): (Vec<Running>, usize) = (Vec::new(), 0);
        for line in lines.iter_mut() {
            match line.ask(&Request::Scene).await? {
                Reply::Scene(Scene::Runs(running)) => found.push(*running),
                Reply::Scene(Scene::Between) => {}
                Reply::Scene(Scene::Idle) => idle += 1,
                Reply::Aimed(_) | Reply::Begun { .. } | Reply::Over { .. } | Reply::Refused { .. } => {
                    return Err(line.odd());
                }
            }
        }
        if idle == lines.len() {
            let help =
                "start one with `volary run … --runtime hosts --hosts FILE`, and inject while it goes on";
            return Err(InjectError::Nobody(format!("the hosts run nothing: {help}")));
        }
        let together = found.len() == lines.len() && found.windows(2).all(|pair| pair[0].run == pair[1].run);
        if let Some(mut running) =
            found.iter().max_by_key(|running| running.now).cloned().filter(|_| together)
        {
            // Some were asked a little earlier than others.
            running.now += Span::from_secs_f64(asked.elapsed().as_secs_f64() * running.speed);
            return Ok(running);
        }
        if Instant::now() > late {
            let why = format!("the hosts have not begun one cell together for {} s", BETWEEN.as_secs());
            return Err(InjectError::Nobody(why));
        }
        sleep(LOOK).await;
    }
}
