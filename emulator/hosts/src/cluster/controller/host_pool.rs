//! The connected hosts of a run, and the control connection to each of them.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use volary_actors::base::{Span, Time};
use volary_engine::results::Cell;
use volary_experiment::codec::{self, CodecError, LARGEST_FRAME};
use volary_experiment::config::Bundle;
use volary_experiment::control::StudyControl;
use volary_experiment::storage::manifest::HostLoss;

use super::archive::Archive;
use crate::cluster::error::HostsError;
use crate::cluster::net::endpoint::ConnectError;
use crate::cluster::net::framed::{ControlReceiver, ControlSender};
use crate::cluster::net::{Connection, Control, End, Host, Hosts, Identity, Options, Role, Transport};
use crate::cluster::protocol::{
    AgentMessage, ControllerMessage, FIRST_FRAME, InjectRequest, MESSAGE_FRAME, Opening,
};
use crate::cluster::status::{Answer, answers};
use crate::cluster::timing::{CLAIM_PATIENCE, LONGEST_LEASE, SHORTEST_LEASE};
use crate::real_time::clock::MonotonicClock;

/// Maximum time within which hosts must plan an experiment or build a run.
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);
/// Interval at which busy hosts are asked again.
const BUSY_RETRY: Duration = Duration::from_secs(1);
/// Interval at which hosts are sent the emulated time that the slowest host has reached.
pub(super) const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);
/// Number of events of all hosts that may wait.
const EVENT_QUEUE: usize = 256;

type Opened = JoinHandle<Result<HostConnection, ConnectError>>;

/// The hosts that a controller has claimed.
#[derive(Debug)]
pub(super) struct HostPool {
    transport: Arc<Transport>,
    pub(super) members: Vec<Host>,
    pub(super) hosts: Vec<HostConnection>,
    /// Events, each with the slot of its connection.
    events: mpsc::Receiver<(usize, HostEvent)>,
    pub(super) ticks: MonotonicClock,
    /// Logs and inputs of the hosts.
    pub(super) archive: Archive,
    /// Number of the latest run, unique among all runs of all controllers.
    pub(super) run: u64,
    /// Id of the latest run.
    pub(super) run_id: String,
    /// Injections that are repeated in each later run.
    pub(super) repeated: Vec<RepeatedInjection>,
    /// The finished runs: cell and name of each.
    pub(super) over: Vec<(Cell, String)>,
}

/// An injection into an earlier run that is repeated in each later run.
#[derive(Clone, Debug)]
pub(super) struct RepeatedInjection {
    pub(super) request: InjectRequest,
    pub(super) from: Time,
    pub(super) until: Time,
}

/// The emulated time of a run on the controller's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunClock {
    pub(super) ticks: MonotonicClock,
    /// The common start on the controller's clock, ns.
    pub(super) start: i64,
    /// Emulated seconds per real second.
    pub(super) speed: f64,
}

impl RunClock {
    /// The emulated time when `wait` of real time has passed from now on.
    pub(super) fn after(&self, wait: Duration) -> Time {
        let real = (self.ticks.now() - self.start).max(0) as f64;
        Time((real * self.speed) as u64) + Span::from_secs_f64(wait.as_secs_f64() * self.speed)
    }
}

impl HostPool {
    /// Claims the hosts of a file and has them plan an experiment. If one fails, all others are released at once. Waits
    /// up to `patience` for busy hosts. No host is claimed before all are free, because an agent with `--once` ends
    /// with its session, even without a run.
    pub(super) async fn open(
        file: &Hosts,
        bundle: Bundle,
        patience: Duration,
        control: &StudyControl,
    ) -> Result<Self, HostsError> {
        let (opening, until) = (opening(bundle)?, Instant::now() + patience);
        let mut answered = false;
        loop {
            if !patience.is_zero() {
                let free = wait_until_free(file, until, &mut answered, control).await;
                free.map_err(|error| error.after(patience))?;
            }
            match Self::claim(file, opening.clone(), control).await {
                // Another controller has claimed some of the hosts in the meantime.
                Err(HostsError::Busy { .. }) if Instant::now() < until => pause(until, control).await?,
                other => return other.map_err(|error| error.after(patience)),
            }
        }
    }

    /// Claims the hosts of a file, without a second attempt, and has them load the content of `opening`.
    async fn claim(file: &Hosts, opening: Bytes, control: &StudyControl) -> Result<Self, HostsError> {
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        let mut pool = Self::new(file, events)?;
        // Connections that are still being opened are kept until the open ones have been closed.
        let mut opened = pool.connect(&opening, &sender);
        drop((sender, opening));
        match pool.collect(&mut opened, control).await {
            Ok(()) => Ok(pool),
            Err(error) => {
                pool.close("the run does not begin").await;
                Err(error)
            }
        }
    }

    fn new(file: &Hosts, events: mpsc::Receiver<(usize, HostEvent)>) -> Result<Self, HostsError> {
        Ok(Self {
            transport: Arc::new(connector(file)?),
            members: file.hosts.clone(),
            hosts: Vec::new(),
            events,
            ticks: MonotonicClock::new(),
            archive: Archive::default(),
            run: run_number(),
            run_id: String::new(),
            repeated: Vec::new(),
            over: Vec::new(),
        })
    }

    /// Connects to all hosts at once.
    fn connect(&self, opening: &Bytes, events: &EventSender) -> Vec<Opened> {
        let connect = |(i, member): (usize, &Host)| {
            self.archive.add(&member.name);
            let (member, transport, archive) =
                (member.clone(), Arc::clone(&self.transport), self.archive.clone());
            let events = events.clone();
            tokio::spawn(HostConnection::open(
                i,
                member,
                transport,
                self.ticks,
                archive,
                events,
                opening.clone(),
            ))
        };
        self.members.iter().enumerate().map(connect).collect()
    }

    /// Waits for the connections in the order of the file, so that the first of several errors is reported.
    async fn collect(&mut self, opened: &mut [Opened], control: &StudyControl) -> Result<(), HostsError> {
        for opened in opened {
            let host = tokio::select! {
                host = opened => host,
                () = stopped(control) => return Err(HostsError::Interrupted),
            };
            self.hosts.push(host.map_err(|error| HostsError::System(io::Error::other(error)))??);
        }
        let planned = |message: &AgentMessage| matches!(message, AgentMessage::Loaded);
        self.wait_all(0, "plan the experiment", planned, control).await
    }

    /// Waits until every host has sent a message that `done` accepts; `what` names the awaited work in errors.
    pub(super) async fn wait_all(
        &mut self,
        run: u64,
        what: &str,
        done: impl Fn(&AgentMessage) -> bool,
        control: &StudyControl,
    ) -> Result<(), HostsError> {
        let mut missing = vec![true; self.hosts.len()];
        let late = Instant::now() + BUILD_TIMEOUT;
        while let Some(slowest) = missing.iter().position(|missing| *missing) {
            if control.stopped() {
                return Err(HostsError::Interrupted);
            }
            if Instant::now() > late {
                return self
                    .failed(slowest, format!("it took longer than {} s to {what}", BUILD_TIMEOUT.as_secs()));
            }
            match timeout(PROGRESS_INTERVAL, self.next_event()).await {
                Err(_) => {}
                Ok(None) => return self.failed(slowest, "the connection ended".to_owned()),
                Ok(Some((i, HostEvent::Message(message)))) if done(&message) => missing[i] = false,
                Ok(Some((i, HostEvent::Message(AgentMessage::Refused { run: of, why }))))
                    if of == run || of == 0 =>
                {
                    return self.failed(i, why);
                }
                Ok(Some((i, HostEvent::Message(AgentMessage::Busy { controller })))) => {
                    return Err(HostsError::Busy {
                        host: self.members[i].name.clone(),
                        controller,
                        waited: Duration::ZERO,
                    });
                }
                Ok(Some((i, HostEvent::Gone(why)))) => {
                    let error = self.failed(i, format!("the connection ended: {why}"));
                    self.lose(i, &why, false);
                    return error;
                }
                // The message belongs to a run that was cancelled.
                Ok(Some((_, HostEvent::Message(_)))) => {}
            }
        }
        Ok(())
    }

    fn failed(&self, host: usize, why: String) -> Result<(), HostsError> {
        Err(HostsError::Host { host: self.members[host].name.clone(), why })
    }

    /// Sends a message to every host that is not lost.
    pub(super) async fn broadcast(&self, message: &ControllerMessage) {
        for host in self.hosts.iter().filter(|host| host.lost.is_none()) {
            host.send(message.clone()).await;
        }
    }

    /// Records the loss of a host, which is final.
    pub(super) fn lose(&mut self, host: usize, why: &str, expected: bool) {
        let lost = HostLoss { run: self.run_id.clone(), why: why.to_owned(), expected };
        self.hosts[host].lost.get_or_insert(lost);
    }

    /// The next event, with the index of its host; `None` if no connection is left. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> Option<(usize, HostEvent)> {
        loop {
            let (slot, event) = self.events.recv().await?;
            // Messages under way from a host that was removed are dropped.
            if let Some(host) = self.hosts.iter().position(|host| host.slot == slot) {
                return Some((host, event));
            }
        }
    }

    /// Removes the lost hosts, so that the next run is placed on the other hosts, and returns the names of the lost
    /// hosts. If no host would remain, no host is removed.
    pub(super) fn remove_lost_hosts(&mut self) -> Vec<String> {
        let kept: Vec<bool> = self.hosts.iter().map(|host| host.lost.is_none()).collect();
        if !kept.contains(&true) {
            return Vec::new();
        }
        let removed = |(member, kept): (&Host, &bool)| (!kept).then(|| member.name.clone());
        let names = self.members.iter().zip(&kept).filter_map(removed).collect();
        let mut of_member = kept.iter();
        self.members.retain(|_| of_member.next().is_some_and(|kept| *kept));
        self.hosts.retain(|host| host.lost.is_none());
        names
    }

    /// The slots of the connections, by shard.
    pub(super) fn slots(&self) -> Vec<usize> {
        self.hosts.iter().map(|host| host.slot).collect()
    }

    /// Hosts that were lost in a run, by shard.
    pub(super) fn lost_in(&self, run: &str) -> impl Iterator<Item = (usize, &HostLoss)> {
        let lost = self.hosts.iter().enumerate().filter_map(|(i, host)| Some((i, host.lost.as_ref()?)));
        lost.filter(move |(_, lost)| lost.run == run)
    }

    /// The longest round trip to a host that is not lost.
    pub(super) fn round_trip(&self) -> Duration {
        let alive = self.hosts.iter().filter(|host| host.lost.is_none());
        alive.map(HostConnection::round_trip).max().unwrap_or_default()
    }

    /// The index of a host.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    /// Closes all connections with a reason that the hosts log.
    pub(super) async fn close(&self, reason: &str) {
        self.transport.close(reason).await;
    }
}

/// The first two frames of a connection, encoded once for all hosts: they claim a host and have it load the experiment.
fn opening(bundle: Bundle) -> Result<Bytes, HostsError> {
    let system = |error: CodecError| HostsError::System(io::Error::other(error));
    let mut frames = Vec::new();
    codec::encode(&Opening::Claim, FIRST_FRAME, &mut frames).map_err(system)?;
    let load = ControllerMessage::Load(Box::new(bundle));
    match codec::encode(&load, LARGEST_FRAME, &mut frames) {
        Ok(()) => Ok(frames.into()),
        Err(CodecError::Oversize { bytes, limit }) => {
            Err(HostsError::Large { mib: bytes.div_ceil(1 << 20), limit: limit >> 20 })
        }
        Err(error) => Err(system(error)),
    }
}

/// A run number that no other controller uses, from the time and the process id.
fn run_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64) << 16 ^ u64::from(std::process::id()) << 8
}

/// Asks hosts for their state until all are free. Fails if a host is not free at `until`, or does not answer before all
/// hosts have `answered` once; later, a host that does not answer is asked again.
async fn wait_until_free(
    file: &Hosts,
    until: Instant,
    answered: &mut bool,
    control: &StudyControl,
) -> Result<(), HostsError> {
    let transport = Arc::new(connector(file)?);
    let mut said = String::new();
    loop {
        let answers = tokio::select! {
            answers = answers(&transport, &file.hosts, CLAIM_PATIENCE) => answers?,
            () = stopped(control) => return Err(HostsError::Interrupted),
        };
        let (missing, reason) = match first_busy(&file.hosts, &answers) {
            Ok(None) => {
                *answered = true;
                break;
            }
            Ok(Some((host, controller))) => {
                *answered = true;
                let busy = format!("host {host} is busy with a run of the controller at {controller}");
                (
                    HostsError::Busy { host, controller, waited: Duration::ZERO },
                    busy + "; waiting for its end",
                )
            }
            Err(error) => {
                let silent = format!("{error}; asking again");
                (error, silent)
            }
        };
        if !*answered || Instant::now() >= until {
            return Err(missing);
        }
        // Logged again if the reason is another host or another controller.
        if reason != said {
            tracing::warn!("{reason}");
            said = reason;
        }
        pause(until, control).await?;
    }
    transport.close("all hosts are free").await;
    Ok(())
}

/// Waits before busy hosts are asked again, no longer than `until`. The wait depends on the process, so that two
/// controllers that claimed hosts at the same time do not collide again.
async fn pause(until: Instant, control: &StudyControl) -> Result<(), HostsError> {
    let own = Duration::from_millis(u64::from(std::process::id() % 1_000));
    tokio::select! {
        () = sleep((BUSY_RETRY + own).min(until.saturating_duration_since(Instant::now()))) => Ok(()),
        () = stopped(control) => Err(HostsError::Interrupted),
    }
}

/// The first busy host, and the address of the controller that it serves.
fn first_busy(hosts: &[Host], answers: &[Answer]) -> Result<Option<(String, String)>, HostsError> {
    let mut busy = None;
    for (host, answer) in hosts.iter().zip(answers) {
        let (name, address) = (host.name.clone(), host.address);
        let (status, _) =
            answer.as_ref().map_err(|why| ConnectError { name: name.clone(), address, why: why.clone() })?;
        busy = busy.or_else(|| Some((name, status.controller()?.to_owned())));
    }
    Ok(busy)
}

/// A transport with the identity of a hosts file's controller. It opens connections and accepts no connections.
fn connector(file: &Hosts) -> Result<Transport, HostsError> {
    let identity = Identity::load_for(Role::Controller, &file.controller(), SystemTime::now())?;
    // QUIC applies the shorter of the two peers' idle timeouts. With the longest one here, the host's lease decides.
    let timing =
        Options { idle_timeout: LONGEST_LEASE, keep_alive: SHORTEST_LEASE / 5, ..Options::default() };
    Ok(Transport::connector(&identity, file.local(), &timing)?)
}

async fn stopped(control: &StudyControl) {
    while !control.stopped() {
        sleep(PROGRESS_INTERVAL).await;
    }
}

/// Number of messages to one host that may wait.
const SEND_QUEUE: usize = 64;

/// The connection to a host that this controller has claimed.
#[derive(Debug)]
pub(super) struct HostConnection {
    messages: mpsc::Sender<ControllerMessage>,
    connection: Connection,
    tasks: [JoinHandle<()>; 2],
    /// The number of the connection in the run, which identifies its events, logs and inputs. It equals the index of
    /// the host until a host is lost.
    slot: usize,
    /// The loss of the host, if it was lost.
    pub(super) lost: Option<HostLoss>,
}

/// An event of one host's connection.
#[derive(Debug)]
pub(super) enum HostEvent {
    Message(AgentMessage),
    Gone(String),
}

/// The sending end of the events of all hosts, each with the slot of its host.
pub(super) type EventSender = mpsc::Sender<(usize, HostEvent)>;

impl Drop for HostConnection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl HostConnection {
    /// Connects to a host in slot `i`, sends it the encoded `opening`, and begins to receive.
    pub(super) async fn open(
        i: usize,
        member: Host,
        transport: Arc<Transport>,
        ticks: MonotonicClock,
        archive: Archive,
        events: EventSender,
        opening: Bytes,
    ) -> Result<Self, ConnectError> {
        let peer = transport.connect_within(&member.name, member.address, CLAIM_PATIENCE).await?;
        let control =
            Control::<ControllerMessage, AgentMessage>::new(&peer.connection, peer.streams, LARGEST_FRAME);
        let Control { outgoing, incoming } = control.receive_limit(MESSAGE_FRAME);
        let (messages, queue) = mpsc::channel(SEND_QUEUE);
        let (pongs, send_events) = (messages.clone(), events.clone());
        let send = tokio::spawn(async move {
            if let Err(error) = send_all(outgoing, opening, queue).await {
                let _ = send_events.send((i, HostEvent::Gone(error.to_string()))).await;
            }
        });
        let receive = tokio::spawn(receive_all(i, incoming, pongs, ticks, archive, events));
        Ok(Self { messages, connection: peer.connection, tasks: [send, receive], slot: i, lost: None })
    }

    /// Queues a message; waits while the queue is full. Errors are left to the receiving task, which sees the end of
    /// the connection.
    pub(super) async fn send(&self, message: ControllerMessage) {
        let _ = self.messages.send(message).await;
    }

    /// Queues a message that a later message supersedes, unless the queue is half full.
    pub(super) fn send_if_idle(&self, message: ControllerMessage) {
        offer(&self.messages, message);
    }

    /// Number of UDP datagrams received from the host.
    pub(super) fn received(&self) -> u64 {
        self.connection.received()
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.connection.round_trip()
    }
}

/// Queues a message that may be dropped: at most half of the queue is used, and the other half is for orders, so that a
/// host that does not read can be stopped without a wait.
fn offer(queue: &mpsc::Sender<ControllerMessage>, message: ControllerMessage) {
    if queue.capacity() > SEND_QUEUE / 2 {
        let _ = queue.try_send(message);
    }
}

async fn send_all(
    mut outgoing: ControlSender<ControllerMessage>,
    opening: Bytes,
    mut queue: mpsc::Receiver<ControllerMessage>,
) -> Result<(), End> {
    outgoing.pass(opening).await?;
    while let Some(message) = queue.recv().await {
        outgoing.send(&message).await?;
    }
    Ok(())
}

/// Forwards the messages of a host. Pings are answered here, without the delay of a queue, and logs and inputs go to
/// the archive.
async fn receive_all(
    i: usize,
    mut incoming: ControlReceiver<AgentMessage>,
    pongs: mpsc::Sender<ControllerMessage>,
    ticks: MonotonicClock,
    archive: Archive,
    events: EventSender,
) {
    loop {
        let event = match incoming.receive().await {
            Ok(AgentMessage::Ping { sent }) => {
                // A pong that waits in a full queue would be too late to be of use.
                offer(&pongs, ControllerMessage::Pong { sent, here: ticks.now() });
                continue;
            }
            Ok(AgentMessage::Log(text)) => {
                archive.log(i, &text);
                continue;
            }
            Ok(AgentMessage::Inputs(frame)) => {
                archive.inputs(i, frame);
                continue;
            }
            Ok(message) => HostEvent::Message(message.sanitized()),
            Err(error) => {
                let _ = events.send((i, HostEvent::Gone(error.to_string()))).await;
                return;
            }
        };
        if events.send((i, event)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use volary_experiment::codec::{PREFIX, decode};
    use volary_experiment::config::Overrides;
    use volary_experiment::files::Pack;

    use super::*;

    #[test]
    fn an_experiment_beyond_the_frame_limit_is_an_error() {
        let opening = |trace: usize| {
            let files = Pack { folders: Vec::new(), files: [("t.tr".into(), vec![7; trace])].into() };
            opening(Bundle { experiment: "e.toml".into(), overrides: Overrides::default(), files })
        };
        let frames = opening(1000).unwrap();
        let mut claim = Vec::new();
        codec::encode(&Opening::Claim, FIRST_FRAME, &mut claim).unwrap();
        let load = decode::<ControllerMessage>(&frames[claim.len() + PREFIX..]).unwrap();
        assert!(matches!(load, ControllerMessage::Load(bundle) if bundle.files.files.len() == 1));
        let refused = opening(LARGEST_FRAME).unwrap_err();
        assert!(matches!(refused, HostsError::Large { mib: 65, limit: 64 }), "{refused}");
    }
}
