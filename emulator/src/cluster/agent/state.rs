//! PeerInfo comes to an agent, and who is served.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::injectable::InjectableCell;
use super::log::RunLog;
use super::relay::serve;
use super::session::session;
use super::tasks::catch_panic;
use crate::cluster::net::Close;
use crate::cluster::net::endpoint::Accepted;
use crate::cluster::net::{Connection, Control, Peer, PeerInfo, Role, Transport};
use crate::cluster::protocol::{
    AgentMessage, AgentStatus, ControllerMessage, FIRST_FRAME, LinkPurpose, MESSAGE_FRAME, Member,
};
use crate::runtime::executor::CpuId;
use crate::runtime::live::clock::MonotonicClock;

/// How long an agent that serves one controller waits for it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long whoever said hello may take for its first word.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// How long whoever was told all there is to say may take to hang up.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What the tasks of an agent share.
pub(crate) struct AgentState {
    pub(crate) transport: Transport,
    pub(crate) ticks: MonotonicClock,
    pub(crate) log: RunLog,
    /// Events of a unit that may wait at most.
    pub(crate) events: usize,
    /// CPUs that copies may burn.
    pub(crate) cpus: Vec<CpuId>,
    /// PeerInfo is being served.
    guest: Cell<Option<SocketAddr>>,
    /// The unit that links may be for, or any later one.
    run: Cell<u64>,
    /// The latest link that each other host has opened, until the unit that it is for takes it.
    early: RefCell<BTreeMap<String, (u64, Connection)>>,
    came: Notify,
    /// The unit that is being run.
    injectable: RefCell<Option<Rc<InjectableCell>>>,
    /// How many controllers have been served.
    served: Cell<u32>,
    left: Notify,
}

impl AgentState {
    pub(crate) fn new(
        transport: Transport,
        ticks: MonotonicClock,
        log: RunLog,
        events: usize,
        cpus: Vec<CpuId>,
    ) -> Self {
        Self {
            transport,
            ticks,
            log,
            events,
            cpus,
            guest: Cell::default(),
            run: Cell::default(),
            early: RefCell::default(),
            came: Notify::new(),
            injectable: RefCell::default(),
            served: Cell::default(),
            left: Notify::new(),
        }
    }

    /// Waits until a controller has come and gone.
    pub(crate) async fn served_one(&self) {
        while self.served.get() == 0 {
            self.left.notified().await;
        }
    }

    /// Waits until nobody can be expected to come any more.
    pub(crate) async fn idle_too_long(&self) {
        tokio::time::sleep(IDLE_TIMEOUT).await;
        while self.guest.get().is_some() {
            self.left.notified().await;
        }
    }

    /// Takes whoever comes with a valid identity.
    pub(crate) async fn listen(self: &Rc<Self>, mut accepted: Accepted) {
        while let Some(peer) = accepted.next().await {
            let state = Rc::clone(self);
            spawn_local(async move {
                match peer.who.role {
                    Role::Controller => state.attend(peer).await,
                    Role::Host => state.link(peer).await,
                }
            });
        }
    }

    /// A controller came: to ask how we are, to take over, or to disturb the run of another.
    async fn attend(self: Rc<Self>, peer: Peer) {
        let Peer { who, connection, streams } = peer;
        // Whoever has not claimed this host has little to say.
        let mut control =
            Control::<AgentMessage, ControllerMessage>::new(&connection, streams, MESSAGE_FRAME)
                .receive_limit(FIRST_FRAME);
        let Some(first) = first(&who, &connection, &mut control).await else { return };
        let refusal = match first {
            ControllerMessage::Status => {
                let guest = self.guest.get();
                let doing = guest.map_or_else(|| "idle".to_owned(), |other| format!("runs for {other}"));
                let state = AgentStatus { doing };
                let _ = control.send(&AgentMessage::State(Box::new(state))).await;
                return hung_up(&connection).await;
            }
            ControllerMessage::Inject => {
                tracing::info!("{who} comes to inject interference");
                let end = serve(&self, control.retype(MESSAGE_FRAME)).await;
                return tracing::info!(
                    "{who} is gone: {}",
                    end.map_or_else(|end| end.to_string(), |()| String::new())
                );
            }
            ControllerMessage::Claim => match self.enter(who.address) {
                Ok(_guest) => {
                    self.log.begin();
                    tracing::info!("{who} takes over");
                    match catch_panic(session(&self, control)).await {
                        Ok(Ok(())) => return tracing::info!("{who} is done"),
                        Ok(Err(why)) => {
                            tracing::warn!("{who}: {why}");
                            return connection.close(Close::Failed, &why);
                        }
                        Err(bug) => {
                            tracing::error!("{who}: {bug}");
                            return connection.close(Close::Failed, &bug);
                        }
                    }
                }
                Err(other) => format!("busy with a run of the controller at {other}"),
            },
            ControllerMessage::Load(_)
            | ControllerMessage::Prepare(_)
            | ControllerMessage::Start { .. }
            | ControllerMessage::Pong { .. }
            | ControllerMessage::Progress { .. }
            | ControllerMessage::Stop => "this host was not claimed".to_owned(),
        };
        let _ = control.send(&AgentMessage::Refused { run: 0, why: refusal }).await;
        hung_up(&connection).await;
    }

    /// Another host of a run called.
    async fn link(&self, peer: Peer) {
        let Peer { who, connection, streams } = peer;
        let mut control = Control::<(), LinkPurpose>::new(&connection, streams, FIRST_FRAME);
        let Some(LinkPurpose { run }) = first(&who, &connection, &mut control).await else { return };
        if self.guest.get().is_none() || run < self.run.get() {
            tracing::info!("{who} called for a run that is over");
            return connection.close(Close::Failed, "that run is over here");
        }
        // A host that calls again has given up what it called for before.
        self.early.borrow_mut().insert(who.name, (run, connection));
        self.came.notify_waiters();
    }

    /// Units before `run` are over: nobody takes links for them any more.
    pub(crate) fn begin(&self, run: u64) {
        self.run.set(run);
        self.early.borrow_mut().retain(|_, (of, _)| *of >= run);
    }

    /// Whether a controller is served.
    pub(crate) fn is_taken(&self) -> bool {
        self.guest.get().is_some()
    }

    /// The unit that is being run, for injectors.
    pub(crate) fn injectable(&self) -> Option<Rc<InjectableCell>> {
        self.injectable.borrow().clone()
    }

    /// Shows a unit to injectors, until the guard is dropped.
    pub(crate) fn show(self: &Rc<Self>, injectable: InjectableCell) -> Shown {
        let injectable = Rc::new(injectable);
        *self.injectable.borrow_mut() = Some(Rc::clone(&injectable));
        Shown { state: Rc::clone(self), injectable }
    }

    /// Takes the only seat, until the guard is dropped.
    fn enter(self: &Rc<Self>, address: SocketAddr) -> Result<SessionGuard, SocketAddr> {
        match self.guest.get() {
            Some(other) => Err(other),
            None => {
                self.guest.set(Some(address));
                Ok(SessionGuard(Rc::clone(self)))
            }
        }
    }

    /// Opens a link to another host for a run.
    pub(crate) async fn link_to(&self, run: u64, member: &Member) -> Result<Connection, String> {
        let peer = self.transport.connect(&member.name, member.address).await;
        let peer = peer.map_err(|error| error.to_string())?;
        let mut control = Control::<LinkPurpose, ()>::new(&peer.connection, peer.streams, FIRST_FRAME);
        control.send(&LinkPurpose { run }).await.map_err(|error| error.to_string())?;
        Ok(peer.connection)
    }

    /// The link that `peer` has opened for a run.
    pub(crate) async fn link_from(&self, run: u64, peer: &str) -> Connection {
        loop {
            let came = self.came.notified();
            let found = {
                let mut early = self.early.borrow_mut();
                let there = early.get(peer).is_some_and(|(of, _)| *of == run);
                if there { early.remove(peer) } else { None }
            };
            if let Some((_, connection)) = found {
                return connection;
            }
            came.await;
        }
    }
}

/// The first that somebody says. PeerInfo says nothing is sent away.
async fn first<S: Serialize, R: DeserializeOwned>(
    who: &PeerInfo,
    connection: &Connection,
    control: &mut Control<S, R>,
) -> Option<R> {
    match timeout(FIRST_WORD, control.receive()).await {
        Ok(Ok(first)) => return Some(first),
        Ok(Err(why)) => tracing::warn!("{who}: {why}"),
        Err(_) => {
            tracing::warn!("{who} said hello and nothing more");
            let words = format!("no word within {} s of the hello", FIRST_WORD.as_secs());
            connection.close(Close::Late, &words);
        }
    }
    None
}

/// Waits until whoever heard the last word has gone; if that takes too long, ends it.
async fn hung_up(connection: &Connection) {
    if timeout(CLOSE_TIMEOUT, connection.ended()).await.is_err() {
        connection.close(Close::Done, "all was said");
    }
}

/// A unit that injectors see. However it ends, they hear of it.
pub(crate) struct Shown {
    state: Rc<AgentState>,
    pub(crate) injectable: Rc<InjectableCell>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.injectable.context.settle();
        *self.state.injectable.borrow_mut() = None;
    }
}

/// The seat of the one controller that is served. However its session ends, the seat is free for the next.
struct SessionGuard(Rc<AgentState>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let state = &self.0;
        state.guest.set(None);
        state.begin(0);
        state.early.borrow_mut().clear();
        state.log.end();
        state.served.set(state.served.get() + 1);
        state.left.notify_waiters();
    }
}
