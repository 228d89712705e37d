//! The daemon on each host.
//!
//! One thread does it all: the network and the shard take turns, so that a message costs no change of threads.
//! An agent serves one controller at a time. What a controller started ends with it.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use volary_actors::base::Span;

use super::log::RunLog;
use super::protocol::{AgentState, Order, Purpose, Word};
use super::session::session;
use super::{HostsError, timing};
use crate::runtime::real::ticks::Ticks;
use crate::transport::endpoint::Accepted;
use crate::transport::{Connection, Control, Identity, Peer, Role, Transport};
use crate::wire::LARGEST_FRAME;

/// Links that wait for their run at most.
const EARLY: usize = 256;

/// How long an agent that serves one controller waits for it.
const FORSAKEN: Duration = Duration::from_secs(60);

/// How an agent is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The folder of its identity.
    pub identity: PathBuf,
    /// How long a peer may be silent.
    pub lease: Span,
    /// Whether to end after one controller.
    pub once: bool,
    /// Its clock.
    pub ticks: Ticks,
    /// What it logs of a run.
    pub log: RunLog,
}

/// An agent that listens.
#[derive(Debug)]
pub struct Agent {
    runtime: Runtime,
    transport: Transport,
    accepted: Accepted,
    name: String,
    once: bool,
    ticks: Ticks,
    log: RunLog,
}

/// What the tasks of an agent share.
pub(super) struct House {
    pub(super) transport: Transport,
    pub(super) ticks: Ticks,
    pub(super) log: RunLog,
    /// Who is being served.
    guest: RefCell<Option<SocketAddr>>,
    /// Links that other hosts have opened, until the unit they are for takes them.
    early: RefCell<Vec<(u64, String, Connection)>>,
    came: Notify,
    /// How many controllers have been served.
    served: Cell<u32>,
    left: Notify,
}

impl Agent {
    /// Begins to listen.
    ///
    /// # Errors
    /// An identity that cannot be used, an address that cannot be listened on.
    pub fn new(settings: &Settings) -> Result<Self, HostsError> {
        let identity = Identity::load(&settings.identity, SystemTime::now())?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
        let guard = runtime.enter();
        let lease = Duration::from_nanos(settings.lease.0);
        let (transport, accepted) = Transport::listen(&identity, settings.listen, &timing(lease))?;
        drop(guard);
        let name = identity.subject.name;
        let Settings { once, ticks, ref log, .. } = *settings;
        Ok(Self { runtime, transport, accepted, name, once, ticks, log: log.clone() })
    }

    /// The name that its certificate proves.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.transport.address()
    }

    /// Serves controllers until SIGTERM or Ctrl-C, or until the first has gone if it is to serve one only.
    ///
    /// # Errors
    /// When the system does not let it wait for signals.
    pub fn run(self) -> io::Result<()> {
        let house = Rc::new(House {
            transport: self.transport,
            ticks: self.ticks,
            log: self.log,
            guest: RefCell::default(),
            early: RefCell::default(),
            came: Notify::new(),
            served: Cell::new(0),
            left: Notify::new(),
        });
        let local = LocalSet::new();
        let (once, accepted) = (self.once, self.accepted);
        let result = self.runtime.block_on(local.run_until(async {
            let mut term = signal(SignalKind::terminate())?;
            tokio::select! {
                () = house.listen(accepted) => {}
                _ = term.recv() => tracing::info!("told to end"),
                _ = tokio::signal::ctrl_c() => tracing::info!("told to end"),
                () = house.served_one(), if once => {}
                () = house.forsaken(), if once => tracing::warn!("no controller came"),
            }
            house.transport.close("the agent ends").await;
            Ok(())
        }));
        drop(local);
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        result
    }
}

impl House {
    async fn served_one(&self) {
        while self.served.get() == 0 {
            self.left.notified().await;
        }
    }

    /// Waits until nobody can be expected to come any more.
    async fn forsaken(&self) {
        tokio::time::sleep(FORSAKEN).await;
        while self.guest.borrow().is_some() {
            self.left.notified().await;
        }
    }

    /// Takes whoever comes with a valid identity.
    async fn listen(self: &Rc<Self>, mut accepted: Accepted) {
        while let Some(peer) = accepted.next().await {
            let house = Rc::clone(self);
            spawn_local(async move {
                match peer.who.role {
                    Role::Controller => house.attend(peer).await,
                    Role::Host => house.link(peer).await,
                }
            });
        }
    }

    /// A controller came: to ask how we are, or to take over.
    async fn attend(self: Rc<Self>, peer: Peer) {
        let who = peer.who;
        let mut control = Control::<Word, Order>::new(&peer.connection, peer.streams, LARGEST_FRAME);
        let first = match control.receive().await {
            Ok(first) => first,
            Err(why) => return tracing::warn!("{who}: {why}"),
        };
        let refusal = match first {
            Order::Status => {
                let doing =
                    self.guest.borrow().map_or("idle".to_owned(), |other| format!("runs for {other}"));
                let state = AgentState { doing, turned_away: self.transport.refusals().into() };
                let _ = control.send(&Word::State(Box::new(state))).await;
                // It hangs up when it has heard.
                peer.connection.ended().await;
                return;
            }
            Order::Load { bundle, hosts } => match self.enter(who.address) {
                Ok(guest) => {
                    self.log.begin();
                    tracing::info!("{who} takes over");
                    // Before we say that we have loaded: nobody calls us earlier.
                    self.transport.admit(hosts);
                    match session(&self, control, *bundle).await {
                        Ok(()) => tracing::info!("{who} is done"),
                        Err(why) => tracing::warn!("{who}: {why}"),
                    }
                    return self.serve_next(guest);
                }
                Err(other) => format!("busy with a run of the controller at {other}"),
            },
            Order::Prepare(_)
            | Order::Start { .. }
            | Order::Pong { .. }
            | Order::Progress { .. }
            | Order::Stop => "no experiment was loaded".to_owned(),
        };
        let _ = control.send(&Word::Refused { run: 0, why: refusal }).await;
        peer.connection.ended().await;
    }

    /// Another host of a run called.
    async fn link(&self, peer: Peer) {
        let mut control = Control::<(), Purpose>::new(&peer.connection, peer.streams, 64);
        match control.receive().await {
            Ok(Purpose { run }) => {
                let mut early = self.early.borrow_mut();
                if early.len() < EARLY {
                    early.push((run, peer.who.name, peer.connection));
                    self.came.notify_waiters();
                }
            }
            Err(why) => tracing::warn!("{}: {why}", peer.who),
        }
    }

    /// Frees the seat.
    fn serve_next(&self, guest: Guest) {
        drop(guest);
        self.early.borrow_mut().clear();
        self.log.end();
        self.transport.admit([]);
        self.served.set(self.served.get() + 1);
        self.left.notify_waiters();
    }

    /// Takes the only seat, until the guard is dropped.
    fn enter(self: &Rc<Self>, address: SocketAddr) -> Result<Guest, SocketAddr> {
        let mut guest = self.guest.borrow_mut();
        match *guest {
            Some(other) => Err(other),
            None => {
                *guest = Some(address);
                Ok(Guest(Rc::clone(self)))
            }
        }
    }

    /// The link that `peer` has opened for a run.
    pub(super) async fn link_from(&self, run: u64, peer: &str) -> Connection {
        loop {
            let came = self.came.notified();
            let found = {
                let mut early = self.early.borrow_mut();
                let at = early.iter().position(|(r, name, _)| *r == run && name == peer);
                at.map(|at| early.swap_remove(at).2)
            };
            if let Some(connection) = found {
                return connection;
            }
            came.await;
        }
    }
}

/// The seat of the one controller that is served.
struct Guest(Rc<House>);

impl Drop for Guest {
    fn drop(&mut self) {
        *self.0.guest.borrow_mut() = None;
    }
}
