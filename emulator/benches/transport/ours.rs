//! Links of volary, with both ends.

use std::hint::black_box;
use std::net::SocketAddr;
use std::thread;
use std::time::SystemTime;

use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use volary_actors::base::Class;
use volary_engine::parcel::Parcel;
use volary_engine::queue::{Key, Queue};
use volary_hosts::cluster::net::endpoint::Accepted;
use volary_hosts::cluster::net::issue::{IssueRequest, issue};
use volary_hosts::cluster::net::link::LinkEvent;
use volary_hosts::cluster::net::{Arrival, Control, Host, Identity, Link, Options, Peer, Transport};

use super::{BATCH, LATE, PACE, batch, runtime, stamp};

/// Bytes that may wait on a link.
const QUEUE: usize = 1 << 20;

fn identities() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let hosts = vec![Host::new("h1".to_owned(), ([127, 0, 0, 1], 4433).into())];
    issue(folder.path(), &IssueRequest { hosts, days: 1, keep_ca: false, now: SystemTime::now() }).unwrap();
    folder
}

fn identity(folder: &TempDir, name: &str) -> Identity {
    Identity::load(&folder.path().join(name), SystemTime::now()).unwrap()
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn listen(folder: &TempDir) -> (Transport, Accepted) {
    Transport::listen(&identity(folder, "h1"), anywhere(), &Options::default()).unwrap()
}

async fn connect(folder: &TempDir, address: SocketAddr) -> (Transport, Peer) {
    let socket =
        Transport::connector(&identity(folder, "controller"), anywhere(), &Options::default()).unwrap();
    let peer = socket.connect("h1", address).await.unwrap();
    (socket, peer)
}

/// One end of a connection, with everything that keeps it open.
pub(super) struct End {
    link: Link,
    inbox: mpsc::Receiver<Arrival>,
    _control: Control<(), ()>,
}

impl End {
    fn new(peer: Peer) -> Self {
        let (inbox, outlet) = mpsc::channel(16);
        let link = Link::start(&peer.connection, QUEUE, 0, |parcel| parcel.to.0 < 1_000_000, inbox);
        Self { link, inbox: outlet, _control: Control::new(&peer.connection, peer.streams, 1 << 20) }
    }

    async fn receive(&mut self) -> Vec<Parcel> {
        match self.inbox.recv().await.unwrap().event {
            LinkEvent::Parcels(parcels) => parcels,
            LinkEvent::Ended(end) => panic!("{end}"),
        }
    }
}

/// A connection with both ends in one thread.
pub(super) struct Pair {
    from: End,
    to: End,
    _sockets: [Transport; 2],
}

impl Pair {
    pub(super) async fn new() -> Self {
        let folder = identities();
        let (server, mut accepted) = listen(&folder);
        let address = server.address().unwrap();
        let ((client, called), came) = tokio::join!(connect(&folder, address), accepted.next());
        Self { from: End::new(called), to: End::new(came.unwrap()), _sockets: [server, client] }
    }

    /// Sends this many batches and receives them; with `hold`, keeps each message until it is due on the sender's
    /// clock.
    pub(super) async fn pump(&mut self, batches: usize, hold: bool) {
        let send = async {
            let mut batch = batch();
            for i in 0..batches {
                stamp(&mut batch, LATE + PACE * i as u64);
                self.from.link.room(QUEUE / 16).await.unwrap();
                self.from.link.send(&batch, Class::Stream).unwrap();
            }
        };
        let receive = async {
            let (mut came, mut queue) = (0, Queue::new());
            while came < batches * BATCH {
                let parcels = self.to.receive().await;
                came += parcels.len();
                let Some(now) = parcels.last().map(|last| last.sent).filter(|_| hold) else { continue };
                for Parcel { due, from, count, to, msg, .. } in parcels {
                    queue.push(Key { due, source: from, count }, (to, msg));
                }
                while queue.due().is_some_and(|due| due <= now) {
                    black_box(queue.pop());
                }
            }
        };
        tokio::join!(send, receive);
    }
}

/// A thread that sends back everything that it receives.
pub(super) struct Echo {
    folder: TempDir,
    address: SocketAddr,
}

/// The calling end of an echo.
pub(super) struct Caller {
    end: End,
    _socket: Transport,
}

impl Echo {
    pub(super) fn spawn() -> Self {
        let folder = identities();
        let (ready, address) = oneshot::channel();
        let here = identity(&folder, "h1");
        thread::spawn(move || {
            runtime().block_on(async {
                let (server, mut accepted) =
                    Transport::listen(&here, anywhere(), &Options::default()).unwrap();
                ready.send(server.address().unwrap()).unwrap();
                let mut end = End::new(accepted.next().await.unwrap());
                while let Some(Arrival { event: LinkEvent::Parcels(parcels), .. }) = end.inbox.recv().await {
                    end.link.send(&parcels, Class::Stream).unwrap();
                }
            });
        });
        Self { folder, address: address.blocking_recv().unwrap() }
    }

    pub(super) async fn connect(&self) -> Caller {
        let (socket, peer) = connect(&self.folder, self.address).await;
        Caller { end: End::new(peer), _socket: socket }
    }
}

impl Caller {
    pub(super) async fn trip(&mut self) {
        self.end.link.send(&batch()[..1], Class::Stream).unwrap();
        assert_eq!(self.end.receive().await.len(), 1);
    }
}
