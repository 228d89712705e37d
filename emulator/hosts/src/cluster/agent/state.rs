//! The settings of an agent, and the state that all its tasks share.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};
use volary_actors::base::Span;

use super::context::RunContext;
use super::log::AgentLog;
use crate::cluster::net::{Connection, Transport, engine};
use crate::cluster::protocol::{AgentMessage, AgentStatus, InjectReply};
use crate::executor::CpuId;
use crate::real_time::clock::MonotonicClock;

/// Time that an agent with `--once` waits for its controller, or for the next request for its state. A controller that
/// waits for another host asks.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Replies that may wait for an injector: there are two.
const REPLY_QUEUE: usize = 4;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The folder of its identity.
    pub identity: PathBuf,
    /// Silence after which a peer is given up.
    pub lease: Span,
    /// Whether to end after one controller.
    pub once: bool,
    /// Maximum number of waiting events of a run; a run that exceeds it ends.
    pub events: usize,
    /// CPUs that copies may burn.
    pub cpus: Vec<CpuId>,
    /// Its clock.
    pub ticks: MonotonicClock,
    /// The store of log lines for the controller.
    pub log: AgentLog,
}

/// State shared by all tasks of an agent.
pub(super) struct AgentState {
    pub(super) transport: Transport,
    pub(super) settings: Settings,
    session: RefCell<Option<Session>>,
    /// The latest run of the session.
    current: RefCell<Option<Rc<RunContext>>>,
    /// The smallest run number that links are accepted for.
    run: Cell<u64>,
    /// The latest link that each other host has opened, until the run that it is for takes it.
    links: RefCell<BTreeMap<String, (u64, Connection)>>,
    link_added: Notify,
    /// Time of the last request for its state, or of its start.
    asked: Cell<Instant>,
    /// Sessions so far.
    served: Cell<u32>,
    session_ended: Notify,
}

/// The session of the one controller that is served.
struct Session {
    controller: SocketAddr,
    messages: mpsc::Sender<AgentMessage>,
    /// The injectors that are relayed, by number.
    injectors: BTreeMap<u64, mpsc::Sender<InjectReply>>,
    next_injector: u64,
}

impl AgentState {
    pub(super) fn new(transport: Transport, settings: Settings) -> Self {
        Self {
            transport,
            settings,
            session: RefCell::default(),
            current: RefCell::default(),
            run: Cell::default(),
            links: RefCell::default(),
            link_added: Notify::new(),
            asked: Cell::new(Instant::now()),
            served: Cell::default(),
            session_ended: Notify::new(),
        }
    }

    /// Waits until a session has ended.
    pub(super) async fn served_one(&self) {
        while self.served.get() == 0 {
            self.session_ended.notified().await;
        }
    }

    /// Waits until no session is open and no status has been requested for [`IDLE_TIMEOUT`].
    pub(super) async fn idle_too_long(&self) {
        loop {
            let until = self.asked.get() + IDLE_TIMEOUT;
            if until > Instant::now() {
                sleep_until(until).await;
            } else if self.controller().is_some() {
                self.session_ended.notified().await;
            } else {
                return;
            }
        }
    }

    /// The answer to a request for its state.
    pub(super) fn status(&self) -> AgentStatus {
        self.asked.set(Instant::now());
        let run = self.current.borrow().as_ref().and_then(|run| run.status());
        AgentStatus::new(engine(), self.controller(), run)
    }

    /// A run of the session begins.
    pub(super) fn enter(&self, run: &Rc<RunContext>) {
        *self.current.borrow_mut() = Some(Rc::clone(run));
    }

    /// The address of the controller that is served.
    pub(super) fn controller(&self) -> Option<SocketAddr> {
        self.session.borrow().as_ref().map(|session| session.controller)
    }

    /// Opens the only session, until the guard is dropped; fails with the address of the controller that has it.
    pub(super) fn open_session(
        self: &Rc<Self>,
        controller: SocketAddr,
        messages: mpsc::Sender<AgentMessage>,
    ) -> Result<SessionGuard, SocketAddr> {
        if let Some(other) = self.controller() {
            return Err(other);
        }
        let session = Session { controller, messages, injectors: BTreeMap::new(), next_injector: 0 };
        *self.session.borrow_mut() = Some(session);
        Ok(SessionGuard(Rc::clone(self)))
    }

    /// Adds an injector to the session, if there is one: its number, its replies, and the way to the controller.
    pub(super) fn add_injector(
        &self,
    ) -> Option<(u64, mpsc::Receiver<InjectReply>, mpsc::Sender<AgentMessage>)> {
        let mut session = self.session.borrow_mut();
        let session = session.as_mut()?;
        let number = session.next_injector;
        session.next_injector += 1;
        let (sender, replies) = mpsc::channel(REPLY_QUEUE);
        session.injectors.insert(number, sender);
        Some((number, replies, session.messages.clone()))
    }

    pub(super) fn remove_injector(&self, number: u64) {
        if let Some(session) = self.session.borrow_mut().as_mut() {
            session.injectors.remove(&number);
        }
    }

    /// Passes a reply to an injector, unless it has disconnected.
    pub(super) fn reply_to_injector(&self, number: u64, reply: InjectReply) {
        let session = self.session.borrow();
        if let Some(injector) = session.as_ref().and_then(|session| session.injectors.get(&number)) {
            // The queue has room for all replies of a connection.
            let _ = injector.try_send(reply);
        }
    }

    /// Drops links for runs before `run`, and refuses them from now on.
    pub(super) fn expect_run(&self, run: u64) {
        self.run.set(run);
        self.links.borrow_mut().retain(|_, (of, _)| *of >= run);
    }

    /// Keeps a link that another host has opened; a newer one replaces it. Fails if the run is over.
    pub(super) fn add_link(&self, peer: String, run: u64, connection: Connection) -> Result<(), Connection> {
        if self.session.borrow().is_none() || run < self.run.get() {
            return Err(connection);
        }
        self.links.borrow_mut().insert(peer, (run, connection));
        self.link_added.notify_waiters();
        Ok(())
    }

    /// Waits for the link that `peer` opens for a run.
    pub(super) async fn link_from(&self, run: u64, peer: &str) -> Connection {
        loop {
            let added = self.link_added.notified();
            let found = {
                let mut links = self.links.borrow_mut();
                let there = links.get(peer).is_some_and(|(of, _)| *of == run);
                if there { links.remove(peer) } else { None }
            };
            if let Some((_, connection)) = found {
                return connection;
            }
            added.await;
        }
    }
}

/// The session of an agent. When it is dropped, the next controller can be served.
pub(super) struct SessionGuard(Rc<AgentState>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let state = &self.0;
        *state.session.borrow_mut() = None;
        *state.current.borrow_mut() = None;
        state.run.set(0);
        state.links.borrow_mut().clear();
        state.settings.log.end();
        state.served.set(state.served.get() + 1);
        state.session_ended.notify_waiters();
    }
}
