//! The socket: connects to hosts by name, accepts who is on the list, refuses everybody else.
//!
//! Both sides show certificates of the run's authority (TLS 1.3). Whoever connects first proves that its address
//! is its own (QUIC retry), so that strangers cost no memory; after that nobody has more than a share of the handshakes
//! and of the connections (see `admission`), each handshake has its time, and what is refused is counted.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quinn::{Connecting, Incoming, TokioRuntime, VarInt};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::admission::{Admission, Knock};
use super::connection::{Close, Connection, End, Peer, PeerInfo};
use super::hello::{Hello, HelloError};
use super::identity::{CONTROLLER, Identity, Subject};
use super::refusals::{Blotter, Refusal, Refusals};
use super::tls::{self, TlsError};
use crate::guard::guard;

/// Limits and times of a socket.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most connections of hosts at once; the controller's come on top.
    pub connections: usize,
    /// The most connections of one name at once.
    pub per_name: usize,
    /// The most handshakes at once.
    pub handshakes: usize,
    /// The most handshakes with one source at once: an IPv4 address, or a /64 of IPv6.
    pub per_source: usize,
    /// How long a handshake may take, and then the hellos.
    pub handshake_timeout: Duration,
    /// A peer that is not heard for this long is gone.
    pub idle: Duration,
    /// How often a quiet connection shows that it lives; well below `idle`.
    pub keep_alive: Duration,
    /// The most unread bytes a peer may have sent on one stream, and on all of them.
    pub window: u32,
    /// Bytes of datagrams that wait to be sent, or to be read.
    pub datagrams: usize,
    /// Bytes asked of the system for each of the socket's two buffers.
    pub socket_buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 1024,
            per_name: 8,
            handshakes: 64,
            per_source: 32,
            handshake_timeout: Duration::from_secs(5),
            idle: Duration::from_secs(10),
            keep_alive: Duration::from_secs(2),
            window: 4 << 20,
            datagrams: 1 << 20,
            socket_buffer: 4 << 20,
        }
    }
}

/// How long whoever finds a host full waits before it tries again.
const AGAIN: Duration = Duration::from_millis(50);
/// What it is told whose place another has.
const CROWDED: &str = "too many connect at once";

/// Sizes of a socket's buffers in bytes, as the system gave them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// For what arrives.
    pub receive: usize,
    /// For what leaves.
    pub send: usize,
}

/// Why no socket could be opened.
#[derive(Debug, Error)]
pub enum BindError {
    /// The system refused.
    #[error("cannot listen on {address}: {error}")]
    Socket {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The identity cannot be used.
    #[error("cannot use the identity of {name}: {error}")]
    Identity {
        /// Whose.
        name: String,
        /// Why.
        error: TlsError,
    },
}

/// Why a host cannot be talked to.
#[derive(Debug, Error)]
#[error("host {name} at {address}: {why}")]
pub struct ConnectError {
    /// Which host.
    pub name: String,
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub why: String,
}

/// A socket with an identity. Once it is dropped nobody new is accepted; connections go on.
#[derive(Debug)]
pub struct Transport {
    quic: quinn::Endpoint,
    gate: Arc<Gate>,
    buffers: Buffers,
    doorman: Option<AbortHandle>,
}

/// Peers that were accepted.
#[derive(Debug)]
pub struct Accepted(mpsc::Receiver<Peer>);

/// What every handshake needs.
#[derive(Debug)]
struct Gate {
    hello: Hello,
    options: Options,
    listed: Mutex<BTreeSet<String>>,
    refusals: Blotter,
    admission: Admission,
}

impl Transport {
    /// Listens on `address` only, and can connect from there. Only the controller is on the list at first. Needs
    /// a tokio runtime.
    pub fn listen(
        identity: &Identity,
        address: SocketAddr,
        options: &Options,
    ) -> Result<(Self, Accepted), BindError> {
        let server = tls::server(identity, options).map_err(|e| unusable(identity, e))?;
        let mut transport = Self::open(identity, address, options, Some(server))?;
        let (accepted, peers) = mpsc::channel(16);
        let doorman = tokio::spawn(doorman(transport.quic.clone(), Arc::clone(&transport.gate), accepted));
        transport.doorman = Some(doorman.abort_handle());
        Ok((transport, Accepted(peers)))
    }

    /// Connects from `address` (port 0: any) and accepts nobody. Needs a tokio runtime.
    pub fn connector(identity: &Identity, address: SocketAddr, options: &Options) -> Result<Self, BindError> {
        Self::open(identity, address, options, None)
    }

    fn open(
        identity: &Identity,
        address: SocketAddr,
        options: &Options,
        server: Option<quinn::ServerConfig>,
    ) -> Result<Self, BindError> {
        let refused = |error| BindError::Socket { address, error };
        let client = tls::client(identity, options).map_err(|e| unusable(identity, e))?;
        let (socket, buffers) = socket(address, options.socket_buffer).map_err(refused)?;
        let config = quinn::EndpointConfig::default();
        let mut quic =
            quinn::Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).map_err(refused)?;
        quic.set_default_client_config(client);
        let gate = Gate {
            hello: Hello::of(&identity.subject),
            options: options.clone(),
            listed: Mutex::new(BTreeSet::from([CONTROLLER.to_owned()])),
            refusals: Blotter::default(),
            admission: Admission::new(options),
        };
        Ok(Self { quic, gate: Arc::new(gate), buffers, doorman: None })
    }

    /// Connects to the host of that name, and to nobody else who may be at that address. One that is full, or calls
    /// the handshake off, is asked again while there is time.
    pub async fn connect(&self, name: &str, address: SocketAddr) -> Result<Peer, ConnectError> {
        let failed = |why: String| ConnectError { name: name.to_owned(), address, why };
        let patience = self.gate.options.handshake_timeout;
        let late = Instant::now() + patience;
        loop {
            let called = timeout_at(late, self.gate.call(&self.quic, name, address)).await.map_err(|_| {
                failed(format!("no answer within {patience:?}: does `volary agent` run there?"))
            })?;
            match called {
                Err(HelloError::End(End::Full | End::CalledOff)) if Instant::now() + AGAIN < late => {
                    sleep(AGAIN).await;
                }
                called => return called.map_err(|error| failed(error.to_string())),
            }
        }
    }

    /// Who may connect from now on, beside the controller; connections that are there stay.
    pub fn admit(&self, names: impl IntoIterator<Item = String>) {
        let mut listed: BTreeSet<_> = names.into_iter().collect();
        listed.insert(CONTROLLER.to_owned());
        *guard(&self.gate.listed) = listed;
    }

    /// What was refused so far.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        self.gate.refusals.read()
    }

    /// Sizes of the socket's buffers.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Where the socket is.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.quic.local_addr()
    }

    /// Ends all connections with these words, and waits until the peers were told.
    pub async fn close(&self, words: &str) {
        self.quic.close(VarInt::from_u32(Close::Done as u32), words.as_bytes());
        self.quic.wait_idle().await;
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(doorman) = &self.doorman {
            doorman.abort();
        }
    }
}

impl Accepted {
    /// The next peer; `None` once the socket is closed or dropped.
    pub async fn next(&mut self) -> Option<Peer> {
        self.0.recv().await
    }
}

/// Looks at everyone who knocks, without waiting for any.
async fn doorman(quic: quinn::Endpoint, gate: Arc<Gate>, accepted: mpsc::Sender<Peer>) {
    while let Some(incoming) = quic.accept().await {
        if !incoming.remote_address_validated() {
            // Fails only for who was told to retry already.
            let _ = incoming.retry();
            continue;
        }
        let address = incoming.remote_address();
        match gate.admission.knock(address.ip(), Instant::now()) {
            Some(knock) => drop(tokio::spawn(answer(Arc::clone(&gate), incoming, knock, accepted.clone()))),
            None => {
                gate.refusals.note(address, &Refusal::Full);
                incoming.refuse();
            }
        }
    }
}

/// Lets somebody in who has a place for a handshake, or not.
async fn answer(gate: Arc<Gate>, incoming: Incoming, mut knock: Knock, accepted: mpsc::Sender<Peer>) {
    let address = incoming.remote_address();
    let received = match incoming.accept() {
        Ok(connecting) => gate.receive(connecting, &mut knock).await,
        Err(error) => Err(Refusal::Handshake(error.into())),
    };
    match received {
        Ok(peer) => {
            drop(knock);
            // Nobody left to take it means that all is over.
            let _ = accepted.send(peer).await;
        }
        Err(refusal) => {
            gate.refusals.note(address, &refusal);
            knock.linger().await;
        }
    }
}

impl Gate {
    /// Takes somebody in who connects to us. Who is called off is told, and so knows to call again.
    async fn receive(&self, mut connecting: Connecting, knock: &mut Knock) -> Result<Peer, Refusal> {
        let shaken = tokio::select! {
            shaken = timeout(self.options.handshake_timeout, &mut connecting) => shaken,
            () = knock.called_off() => {
                // Whoever is called can always close so early.
                if let Ok((connection, _)) = connecting.into_0rtt() {
                    connection.close(VarInt::from_u32(Close::Full as u32), CROWDED.as_bytes());
                }
                return Err(Refusal::Full);
            }
        };
        let shaken = shaken.map_err(|_| Refusal::Handshake(End::Silent))?;
        let shaken = shaken.map_err(|error| Refusal::Handshake(error.into()))?;
        let connection = Connection::new(shaken, self.refusals.clone());
        tokio::select! {
            greeted = self.greet(connection.clone()) => greeted,
            () = knock.called_off() => {
                connection.close(Close::Full, CROWDED);
                Err(Refusal::Full)
            }
        }
    }

    /// Looks at who it is, and exchanges hellos.
    async fn greet(&self, connection: Connection) -> Result<Peer, Refusal> {
        let patience = self.options.handshake_timeout;
        let subject = subject(&connection).map_err(Refusal::Handshake)?;
        if !guard(&self.listed).contains(&subject.name) {
            connection.close(Close::Unlisted, &format!("{} is not on this run's list", subject.name));
            return Err(Refusal::Unlisted(subject.name));
        }
        let Some(seat) = self.admission.seat(&subject.name) else {
            connection.close(Close::Full, &format!("{} has too many connections", subject.name));
            return Err(Refusal::Full);
        };
        let connection = connection.seated(seat);
        let talk = async {
            let (send, receive) = connection.quic.accept_bi().await.map_err(End::from)?;
            let (theirs, mut streams) = Hello::hear(send, receive).await?;
            // Answered in any case, so that either side can say what does not fit.
            self.hello.say(&mut streams.send).await?;
            theirs.check(&self.hello, &subject)?;
            Ok(streams)
        };
        let talked = timeout(patience, talk).await.unwrap_or(Err(HelloError::Late(patience)));
        let streams = talked.map_err(|error| told(&connection, error))?;
        Ok(peer(connection, subject, streams))
    }

    /// Connects to somebody.
    async fn call(
        &self,
        quic: &quinn::Endpoint,
        name: &str,
        address: SocketAddr,
    ) -> Result<Peer, HelloError> {
        let broken = |error: quinn::ConnectError| End::Broken(error.to_string());
        let connection = quic.connect(address, name).map_err(broken)?.await.map_err(End::from)?;
        let connection = Connection::new(connection, self.refusals.clone());
        let subject = subject(&connection)?;
        let talk = async {
            let (mut send, receive) = connection.quic.open_bi().await.map_err(End::from)?;
            self.hello.say(&mut send).await?;
            let (theirs, streams) = Hello::hear(send, receive).await?;
            theirs.check(&self.hello, &subject)?;
            Ok(streams)
        };
        let streams = talk.await.map_err(|error| told(&connection, error))?;
        Ok(peer(connection, subject, streams))
    }
}

/// Ends a connection whose hello failed; the peer reads why.
fn told(connection: &Connection, error: HelloError) -> HelloError {
    if !matches!(error, HelloError::End(End::Peer(_) | End::Silent | End::Here)) {
        connection.close(Close::Hello, &error.to_string());
    }
    error
}

fn peer(connection: Connection, subject: Subject, streams: super::connection::Streams) -> Peer {
    let address = connection.quic.remote_address();
    Peer { who: PeerInfo { name: subject.name, role: subject.role, address }, connection, streams }
}

/// Whom the peer's certificate names; it was verified in the handshake.
fn subject(connection: &Connection) -> Result<Subject, End> {
    tls::leaf(&connection.quic)
        .ok_or_else(|| "the peer showed no certificate".to_owned())
        .and_then(|leaf| Subject::of(&leaf))
        .map_err(|why| {
            connection.close(Close::Unlisted, &why);
            End::Broken(why)
        })
}

/// A bound UDP socket with large buffers: the default ones lose a share of unpaced datagrams.
fn socket(address: SocketAddr, bytes: usize) -> io::Result<(std::net::UdpSocket, Buffers)> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // The system gives what it allows; what that is gets reported.
    socket.set_recv_buffer_size(bytes)?;
    socket.set_send_buffer_size(bytes)?;
    socket.bind(&address.into())?;
    // Linux counts its own overhead, as much again.
    let buffers = Buffers { receive: socket.recv_buffer_size()? / 2, send: socket.send_buffer_size()? / 2 };
    if buffers.receive < bytes || buffers.send < bytes {
        tracing::info!(
            "UDP buffers of {} and {} bytes instead of {bytes}: raise net.core.rmem_max and wmem_max",
            buffers.receive,
            buffers.send
        );
    }
    Ok((socket.into(), buffers))
}

fn unusable(identity: &Identity, error: TlsError) -> BindError {
    BindError::Identity { name: identity.subject.name.clone(), error }
}
