//! The daemon on each host.
//!
//! One thread does it all: the network and the shard take turns, so that a message costs no change of threads.
//! An agent serves one controller at a time. What a controller started ends with it.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use volary_actors::base::Span;

use super::HostsError;
use super::session::session;
use crate::runtime::real::ticks::Ticks;
use crate::transport::endpoint::{Connection, Endpoint, Role};
use crate::transport::identity::Identity;

/// Links that wait for their run at most.
const EARLY: usize = 256;

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
}

/// An agent that listens.
#[derive(Debug)]
pub struct Agent {
    runtime: Runtime,
    endpoint: Endpoint,
    name: String,
    once: bool,
    ticks: Ticks,
}

/// What the tasks of an agent share.
pub(super) struct House {
    pub(super) endpoint: Endpoint,
    pub(super) ticks: Ticks,
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
        let identity = Identity::load(&settings.identity)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
        let guard = runtime.enter();
        let lease = Duration::from_nanos(settings.lease.0);
        let endpoint = Endpoint::listen(&identity, settings.listen, lease)?;
        drop(guard);
        let name = identity.name().to_owned();
        Ok(Self { runtime, endpoint, name, once: settings.once, ticks: settings.ticks })
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
        self.endpoint.address()
    }

    /// Serves controllers until SIGTERM or Ctrl-C, or until the first has gone if it is to serve one only.
    ///
    /// # Errors
    /// When the system does not let it wait for signals.
    pub fn run(self) -> io::Result<()> {
        let house = Rc::new(House {
            endpoint: self.endpoint,
            ticks: self.ticks,
            guest: RefCell::default(),
            early: RefCell::default(),
            came: Notify::new(),
            served: Cell::new(0),
            left: Notify::new(),
        });
        let local = LocalSet::new();
        let once = self.once;
        let result = self.runtime.block_on(local.run_until(async {
            let mut term = signal(SignalKind::terminate())?;
            tokio::select! {
                () = house.listen() => {}
                _ = term.recv() => tracing::info!("told to end"),
                _ = tokio::signal::ctrl_c() => tracing::info!("told to end"),
                () = house.served_one(), if once => {}
            }
            house.endpoint.close("the agent ends").await;
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

    /// Takes whoever comes with a valid identity.
    async fn listen(self: &Rc<Self>) {
        while let Some(connection) = self.endpoint.accept().await {
            let house = Rc::clone(self);
            spawn_local(async move { house.receive(connection).await });
        }
    }

    async fn receive(self: Rc<Self>, connection: Connection) {
        let (peer, address) = (connection.peer().to_owned(), connection.address());
        match connection.role() {
            Role::Controller => match self.enter(address) {
                Ok(guest) => {
                    tracing::info!("{peer} at {address} takes over");
                    match session(&self, &connection).await {
                        Ok(()) => tracing::info!("{peer} at {address} is done"),
                        Err(why) => tracing::warn!("{peer} at {address}: {why}"),
                    }
                    drop(guest);
                }
                Err(other) => connection.close(&format!("busy with a run of the controller at {other}")),
            },
            Role::Host { run } => {
                let mut early = self.early.borrow_mut();
                if early.len() < EARLY {
                    early.push((run, peer, connection));
                    self.came.notify_waiters();
                } else {
                    connection.close("too many links wait for runs that nobody started");
                }
            }
            Role::Visitor => {
                let state =
                    self.guest.borrow().map_or("idle".to_owned(), |guest| format!("runs for {guest}"));
                connection.close(&state);
            }
        }
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
        self.0.early.borrow_mut().clear();
        self.0.served.set(self.0.served.get() + 1);
        self.0.left.notify_waiters();
    }
}
