//! The QUIC endpoint of a machine: connects to hosts by name and accepts peers of the same authority.
//!
//! Both sides show certificates of the run's own authority (TLS 1.3) and exchange hellos. Each handshake runs in a
//! task of its own with a timeout.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{Connecting, Incoming, TokioRuntime, VarInt};
use rustls::pki_types::CertificateDer;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::config::{self, Options};
use super::connection::Connection;
use super::end::{Close, End};
use super::framed::Streams;
use super::handshakes::{Admission, Handshakes};
use super::hello::{Hello, HelloError};
use super::identity::{Identity, Role, Subject};

/// Sizes of a socket's buffers in bytes, as the system granted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    pub receive: usize,
    pub send: usize,
}

/// The reason for which no socket could be opened.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct BindError(String);

/// The reason for which a host cannot be connected to.
#[derive(Debug, Error)]
#[error("host {name} at {address}: {why}")]
pub struct ConnectError {
    pub name: String,
    pub address: SocketAddr,
    pub why: String,
}

/// A peer that proved its identity and sent a valid hello.
#[derive(Debug)]
pub struct Peer {
    pub who: PeerInfo,
    pub connection: Connection,
    /// The stream of the hellos, for a [`Control`](super::Control).
    pub streams: Streams,
}

/// Name and role of a peer, from its certificate, and its address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerInfo {
    /// `controller` for the controller.
    pub name: String,
    pub role: Role,
    pub address: SocketAddr,
}

/// A socket with an identity. Dropping it stops accepting; connections stay.
#[derive(Debug)]
pub struct Transport {
    quic: quinn::Endpoint,
    hello_exchange: Arc<HelloExchange>,
    buffers: Buffers,
    subject: Subject,
    accept_task: Option<AbortHandle>,
}

/// Peers that were accepted.
#[derive(Debug)]
pub struct Accepted(mpsc::Receiver<Peer>);

/// The exchange of hellos on a new connection.
#[derive(Debug)]
struct HelloExchange {
    hello: Hello,
    timeout: Duration,
}

impl Transport {
    /// Listens on `address`, and can connect from there. Needs a tokio runtime.
    pub fn listen(
        identity: &Identity,
        address: SocketAddr,
        options: &Options,
    ) -> Result<(Self, Accepted), BindError> {
        let server = config::server(identity, options).map_err(|e| unusable(identity, e))?;
        let mut transport = Self::open(identity, address, options, Some(server))?;
        let (accepted, peers) = mpsc::channel(16);
        let task = tokio::spawn(accept(
            transport.quic.clone(),
            Arc::clone(&transport.hello_exchange),
            Handshakes::new(options),
            accepted,
        ));
        transport.accept_task = Some(task.abort_handle());
        Ok((transport, Accepted(peers)))
    }

    /// Connects from `address` (port 0: any) and accepts no peers. Needs a tokio runtime.
    pub fn connector(identity: &Identity, address: SocketAddr, options: &Options) -> Result<Self, BindError> {
        Self::open(identity, address, options, None)
    }

    fn open(
        identity: &Identity,
        address: SocketAddr,
        options: &Options,
        server: Option<quinn::ServerConfig>,
    ) -> Result<Self, BindError> {
        let what = if server.is_some() { "listen on" } else { "open a socket on" };
        let refused = |error: io::Error| BindError(format!("cannot {what} {address}: {error}"));
        let client = config::client(identity, options).map_err(|e| unusable(identity, e))?;
        let (socket, buffers) = socket(address, options.socket_buffer).map_err(refused)?;
        let endpoint = quinn::EndpointConfig::default();
        let mut quic =
            quinn::Endpoint::new(endpoint, server, socket, Arc::new(TokioRuntime)).map_err(refused)?;
        quic.set_default_client_config(client);
        let hello_exchange =
            HelloExchange { hello: Hello::of(&identity.subject), timeout: options.handshake_timeout };
        let (hello_exchange, subject) = (Arc::new(hello_exchange), identity.subject.clone());
        Ok(Self { quic, hello_exchange, buffers, subject, accept_task: None })
    }

    /// Connects to the host of that name; fails if another one is at that address. A host that has too many handshakes
    /// is tried again until the handshake's timeout is over.
    pub async fn connect(&self, name: &str, address: SocketAddr) -> Result<Peer, ConnectError> {
        self.connect_within(name, address, self.hello_exchange.timeout).await
    }

    /// The same, but a host that has too many handshakes or does not answer is tried again for as long as `patience`.
    /// The last attempt may end later by the handshake's timeout.
    pub async fn connect_within(
        &self,
        name: &str,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<Peer, ConnectError> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        let attempts = async {
            loop {
                match self.hello_exchange.connect(&self.quic, name, address).await {
                    Err(HelloError::Late(_) | HelloError::End(End::Full | End::Dropped | End::Silent))
                        if began.elapsed() + pause < patience => {}
                    attempt => return attempt,
                }
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        };
        attempts.await.map_err(|error| {
            let why = if error == HelloError::End(End::Silent) {
                format!(
                    "no answer within {} s: does `volary agent` run there? If the host is lost, leave it out of the \
                     hosts file",
                    began.elapsed().as_secs()
                )
            } else {
                error.to_string()
            };
            ConnectError { name: name.to_owned(), address, why }
        })
    }

    /// The holder of its certificate.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Sizes of the socket's buffers.
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// The socket's address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.quic.local_addr()
    }

    /// Closes all connections with this reason, and waits until the peers have acknowledged it.
    pub async fn close(&self, reason: &str) {
        self.quic.close(VarInt::from_u32(Close::Done as u32), reason.as_bytes());
        self.quic.wait_idle().await;
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(task) = &self.accept_task {
            task.abort();
        }
    }
}

impl Accepted {
    /// The next peer; `None` once the socket is closed or dropped.
    pub async fn next(&mut self) -> Option<Peer> {
        self.0.recv().await
    }
}

/// Pauses between attempts to connect: each is twice the one before it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Minimum interval of log lines that say that peers must prove their addresses.
const LOAD_WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Starts a task for each incoming handshake that is admitted. A peer that has not shown a certificate has its place
/// for no longer than the handshake's timeout.
async fn accept(
    quic: quinn::Endpoint,
    hello_exchange: Arc<HelloExchange>,
    mut handshakes: Handshakes,
    accepted: mpsc::Sender<Peer>,
) {
    let mut warned: Option<Instant> = None;
    while let Some(incoming) = quic.accept().await {
        let address = incoming.remote_address();
        let Admission::Place(mut place) = handshakes.admit(address.ip(), incoming.remote_address_validated())
        else {
            if warned.is_none_or(|at| at.elapsed() > LOAD_WARNING_INTERVAL) {
                tracing::warn!("many handshakes do not end: peers must prove their addresses from now on");
                warned = Some(Instant::now());
            }
            // Fails for peers with proved addresses only.
            let _ = incoming.retry();
            continue;
        };
        let (hello_exchange, accepted) = (Arc::clone(&hello_exchange), accepted.clone());
        tokio::spawn(async move {
            let peer = tokio::select! {
                peer = hello_exchange.accept(incoming) => peer,
                _ = &mut place => return tracing::debug!("gave up the handshake of {address} for another"),
            };
            match peer {
                Ok(peer) => {
                    drop(place);
                    // The receiver is gone once the transport is no longer used.
                    drop(accepted.send(peer).await);
                }
                Err(error) => {
                    tracing::debug!("refused {address}: {error}");
                    // Its memory is not free yet. Otherwise handshakes that fail at once could take any amount.
                    let _ = timeout(config::DRAINING, place).await;
                }
            }
        });
    }
}

impl HelloExchange {
    /// Accepts a connection: handshake, then the peer's hello and ours.
    async fn accept(&self, incoming: Incoming) -> Result<Peer, HelloError> {
        let connection = self.handshake(incoming.accept().map_err(End::from)?).await?;
        let subject = subject(&connection)?;
        let hellos = async {
            let (send, receive) = connection.quic.accept_bi().await.map_err(End::from)?;
            let (theirs, mut streams) = Hello::receive(send, receive).await?;
            theirs.check(&self.hello, &subject)?;
            self.hello.send(&mut streams.send).await?;
            Ok(streams)
        };
        let streams = self.in_time(hellos).await;
        peer(connection, subject, streams)
    }

    /// Makes a connection: handshake, then our hello and the peer's.
    async fn connect(
        &self,
        quic: &quinn::Endpoint,
        name: &str,
        address: SocketAddr,
    ) -> Result<Peer, HelloError> {
        let broken = |error: quinn::ConnectError| End::Broken(error.to_string());
        let connection = self.handshake(quic.connect(address, name).map_err(broken)?).await?;
        let subject = subject(&connection)?;
        let hellos = async {
            let (mut send, receive) = connection.quic.open_bi().await.map_err(End::from)?;
            self.hello.send(&mut send).await?;
            let (theirs, streams) = Hello::receive(send, receive).await?;
            theirs.check(&self.hello, &subject)?;
            Ok(streams)
        };
        let streams = self.in_time(hellos).await;
        peer(connection, subject, streams)
    }

    async fn handshake(&self, connecting: Connecting) -> Result<Connection, End> {
        let quic = timeout(self.timeout, connecting).await.map_err(|_| End::Silent)??;
        Ok(Connection { quic })
    }

    async fn in_time(
        &self,
        hellos: impl Future<Output = Result<Streams, HelloError>>,
    ) -> Result<Streams, HelloError> {
        timeout(self.timeout, hellos).await.unwrap_or(Err(HelloError::Late(self.timeout)))
    }
}

/// The peer after the hellos. If they failed, closes the connection with the reason.
fn peer(
    connection: Connection,
    subject: Subject,
    streams: Result<Streams, HelloError>,
) -> Result<Peer, HelloError> {
    let streams = streams.inspect_err(|error| {
        if !matches!(error, HelloError::End(End::Peer(_) | End::Dropped | End::Silent | End::Here)) {
            connection.close(Close::Hello, &error.to_string());
        }
    })?;
    let address = connection.quic.remote_address();
    Ok(Peer { who: PeerInfo { name: subject.name, role: subject.role, address }, connection, streams })
}

impl fmt::Display for PeerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.address)
    }
}

/// The subject of the peer's certificate, which the handshake verified.
fn subject(connection: &Connection) -> Result<Subject, End> {
    let shown = connection.quic.peer_identity();
    let chain = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    let leaf = chain.as_ref().and_then(|chain| chain.first());
    leaf.ok_or_else(|| "the peer showed no certificate".to_owned()).and_then(Subject::of).map_err(|why| {
        connection.close(Close::Certificate, &why);
        End::Broken(why)
    })
}

/// A bound UDP socket with large buffers: the default ones lose a share of unpaced datagrams.
fn socket(address: SocketAddr, bytes: usize) -> io::Result<(std::net::UdpSocket, Buffers)> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // The system may grant less; the granted sizes are reported.
    socket.set_recv_buffer_size(bytes)?;
    socket.set_send_buffer_size(bytes)?;
    socket.bind(&address.into())?;
    // Linux doubles the size for its own overhead.
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

fn unusable(identity: &Identity, error: config::Error) -> BindError {
    BindError(format!("cannot use the identity of {}: {error}", identity.subject.name))
}
