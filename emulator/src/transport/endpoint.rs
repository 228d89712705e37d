//! Connections between processes that have certificates of the same run.
//!
//! Both sides prove their names (TLS 1.3, mutual). The first thing said on a connection is a [`Hello`]; the
//! stream it came on is the control stream afterwards. Whoever cannot say it in time, or is one too many, is
//! turned away before it costs more than a handshake.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, EndpointConfig, Incoming, RecvStream, SendStream, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Error;
use super::control::{ControlReceiver, ControlSender};
use super::hosts::CONTROLLER;
use super::identity::{Identity, describe};
use super::link::{LinkReceiver, LinkSender};
use crate::wire::PROTOCOL;

/// What is spoken, for TLS.
const ALPN: &[u8] = b"volary";
/// Socket buffers that are asked for, in bytes; the system may give less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Time for a handshake and a hello.
const HELLO: Duration = Duration::from_secs(5);
/// Largest hello, in bytes.
const HELLO_LIMIT: usize = 1024;
/// Handshakes at a time; those beyond are turned away.
const HANDSHAKES: usize = 64;
/// Connections at a time.
const CONNECTIONS: usize = 512;

/// What the dialling side wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// To run experiments; only the controller may.
    Controller,
    /// To send and receive parcels of a run.
    Host {
        /// Which run.
        run: u64,
    },
    /// To ask how it is.
    Visitor,
}

/// The first thing said on a connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Hello {
    protocol: u32,
    version: String,
    role: Role,
}

/// A socket with an identity.
#[derive(Clone, Debug)]
pub struct Endpoint {
    endpoint: quinn::Endpoint,
    came: Option<Arc<tokio::sync::Mutex<mpsc::Receiver<Connection>>>>,
    client: ClientConfig,
}

/// A connection to a peer with a name.
#[derive(Debug)]
pub struct Connection {
    connection: quinn::Connection,
    peer: String,
    role: Role,
    streams: std::sync::Mutex<Option<(SendStream, RecvStream)>>,
}

impl Endpoint {
    /// Listens on an address, and on nothing else. A peer that is silent for `lease` is gone.
    ///
    /// # Errors
    /// When the address cannot be had, or the identity not be used.
    pub fn listen(identity: &Identity, address: SocketAddr, lease: Duration) -> Result<Self, Error> {
        let mut endpoint = Self::bind(identity, address, lease, true)?;
        let (tell, came) = mpsc::channel(16);
        let listener = endpoint.endpoint.clone();
        tokio::spawn(async move { welcome(&listener, &tell).await });
        endpoint.came = Some(Arc::new(tokio::sync::Mutex::new(came)));
        Ok(endpoint)
    }

    /// Only dials.
    ///
    /// # Errors
    /// When there is no socket to be had, or the identity cannot be used.
    pub fn dial(identity: &Identity, lease: Duration) -> Result<Self, Error> {
        Self::bind(identity, (Ipv4Addr::UNSPECIFIED, 0).into(), lease, false)
    }

    fn bind(identity: &Identity, address: SocketAddr, lease: Duration, listens: bool) -> Result<Self, Error> {
        let transport = Arc::new(transport(lease));
        let refused = |why: String| Error::Protocol(format!("the identity cannot be used: {why}"));
        let client = client(identity, &transport).map_err(refused)?;
        let server = listens.then(|| server(identity, &transport)).transpose().map_err(refused)?;
        let listen = |source| Error::Listen { address, source };
        let socket = socket(address).map_err(listen)?;
        let endpoint =
            quinn::Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
                .map_err(listen)?;
        Ok(Self { endpoint, came: None, client })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next peer that has proved its name and said hello; `None` when closed.
    pub async fn accept(&self) -> Option<Connection> {
        self.came.as_ref()?.lock().await.recv().await
    }

    /// Connects to the host of that name.
    ///
    /// # Errors
    /// Names the host and what kept it from being reached.
    pub async fn connect(&self, address: SocketAddr, name: &str, role: Role) -> Result<Connection, Error> {
        let failed = |why: String| Error::Unreachable { name: name.to_owned(), address, why };
        let connecting = self.endpoint.connect_with(self.client.clone(), address, name);
        let connecting = connecting.map_err(|error| failed(error.to_string()))?;
        let reach = async {
            let connection = connecting.await.map_err(|error| explain(&error))?;
            let (send, recv) = connection.open_bi().await.map_err(|error| explain(&error))?;
            let mut sender = ControlSender::new(connection.clone(), send, HELLO_LIMIT);
            let hello = Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), role };
            sender.send(&hello).await.map_err(|error| error.to_string())?;
            Ok::<_, String>((connection, sender.into_stream(), recv))
        };
        let (connection, send, recv) = timeout(HELLO, reach)
            .await
            .map_err(|_| failed("no answer: is the agent running, and its port open?".to_owned()))?
            .map_err(failed)?;
        let streams = std::sync::Mutex::new(Some((send, recv)));
        Ok(Connection { connection, peer: name.to_owned(), role, streams })
    }

    /// Ends every connection and waits until the others know.
    pub async fn close(&self, why: &str) {
        self.endpoint.close(VarInt::from_u32(0), why.as_bytes());
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}

/// What an end of a connection means to people.
pub(super) fn explain(error: &quinn::ConnectionError) -> String {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => {
            String::from_utf8_lossy(&close.reason).into_owned()
        }
        quinn::ConnectionError::TimedOut => "it is silent".to_owned(),
        other => other.to_string(),
    }
}

/// Lets peers in, each on its own time.
async fn welcome(listener: &quinn::Endpoint, tell: &mpsc::Sender<Connection>) {
    let shaking = Arc::new(AtomicUsize::new(0));
    while let Some(incoming) = listener.accept().await {
        if listener.open_connections() > CONNECTIONS || shaking.load(Ordering::Relaxed) >= HANDSHAKES {
            incoming.refuse();
            continue;
        }
        if !incoming.remote_address_validated() {
            // Costs the caller a round trip and us nothing: forged addresses end here.
            let _ = incoming.retry();
            continue;
        }
        shaking.fetch_add(1, Ordering::Relaxed);
        let (shaking, tell) = (Arc::clone(&shaking), tell.clone());
        tokio::spawn(async move {
            let address = incoming.remote_address();
            let greeted = timeout(HELLO, greet(incoming)).await;
            shaking.fetch_sub(1, Ordering::Relaxed);
            match greeted {
                Ok(Ok(connection)) => {
                    let _ = tell.send(connection).await;
                }
                Ok(Err(why)) => tracing::warn!("turned {address} away: {why}"),
                Err(_) => tracing::warn!("turned {address} away: it did not say hello in time"),
            }
        });
    }
}

/// Finishes the handshake and hears the hello.
async fn greet(incoming: Incoming) -> Result<Connection, String> {
    let connection = incoming.await.map_err(|error| error.to_string())?;
    let refuse = |why: String| {
        connection.close(VarInt::from_u32(1), why.as_bytes());
        Err(why)
    };
    let peer = match peer_name(&connection) {
        Ok(peer) => peer,
        Err(why) => return refuse(why),
    };
    let (send, recv) = connection.accept_bi().await.map_err(|error| error.to_string())?;
    let mut receiver = ControlReceiver::<Hello>::new(connection.clone(), recv, HELLO_LIMIT);
    let hello = match receiver.recv().await {
        Ok(hello) => hello,
        Err(error) => return refuse(format!("{peer} said no hello: {error}")),
    };
    if hello.protocol != PROTOCOL || hello.version != env!("CARGO_PKG_VERSION") {
        let mine = format!("{} (protocol {PROTOCOL})", env!("CARGO_PKG_VERSION"));
        return refuse(format!(
            "version mismatch: this host has volary {mine}, {peer} has {} (protocol {}); install the same on both",
            hello.version, hello.protocol
        ));
    }
    if hello.role == Role::Controller && peer != CONTROLLER {
        return refuse(format!("{peer} is not the controller"));
    }
    let streams = std::sync::Mutex::new(Some((send, receiver.into_stream())));
    Ok(Connection { connection, peer, role: hello.role, streams })
}

fn peer_name(connection: &quinn::Connection) -> Result<String, String> {
    let identity = connection.peer_identity().ok_or("no certificate")?;
    let chain = identity.downcast::<Vec<CertificateDer<'static>>>().map_err(|_| "no certificate")?;
    Ok(describe(chain.first().ok_or("no certificate")?)?.0)
}

impl Connection {
    /// The name that the peer has proved.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// What the dialling side wants.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Where the peer is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// Ends the connection and says why.
    pub fn close(&self, why: &str) {
        self.connection.close(VarInt::from_u32(1), why.as_bytes());
    }

    /// Waits for the end and says what it was.
    pub async fn closed(&self) -> String {
        explain(&self.connection.closed().await)
    }

    /// The control stream, once.
    ///
    /// # Errors
    /// When it was taken already.
    pub fn control<S: Serialize, R: DeserializeOwned>(
        &self,
        limit: usize,
    ) -> Result<(ControlSender<S>, ControlReceiver<R>), Error> {
        let mut streams = self.streams.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (send, recv) =
            streams.take().ok_or_else(|| Error::Protocol("the control stream is taken".to_owned()))?;
        let connection = || self.connection.clone();
        Ok((ControlSender::new(connection(), send, limit), ControlReceiver::new(connection(), recv, limit)))
    }

    /// A link for parcels, once; its tasks run on the current thread.
    ///
    /// # Errors
    /// When the connection has ended, or the peer takes no datagrams.
    pub async fn link(&self) -> Result<(LinkSender, LinkReceiver), Error> {
        super::link::open(&self.connection).await
    }
}

fn transport(lease: Duration) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.max_idle_timeout(lease.try_into().ok());
    config.keep_alive_interval(Some(lease / 4));
    config.max_concurrent_bidi_streams(VarInt::from_u32(1));
    config.max_concurrent_uni_streams(VarInt::from_u32(1));
    config.stream_receive_window(VarInt::from_u32(4 << 20));
    config.receive_window(VarInt::from_u32(8 << 20));
    config.send_window(8 << 20);
    config.datagram_receive_buffer_size(Some(4 << 20));
    config.datagram_send_buffer_size(4 << 20);
    config
}

fn client(identity: &Identity, transport: &Arc<TransportConfig>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .with_root_certificates(Arc::clone(&identity.roots))
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(|error| error.to_string())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let quic = QuicClientConfig::try_from(tls).map_err(|error| error.to_string())?;
    let mut config = ClientConfig::new(Arc::new(quic));
    config.transport_config(Arc::clone(transport));
    Ok(config)
}

fn server(identity: &Identity, transport: &Arc<TransportConfig>) -> Result<ServerConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&identity.roots), Arc::clone(&provider))
            .build()
            .map_err(|error| error.to_string())?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(|error| error.to_string())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let quic = QuicServerConfig::try_from(tls).map_err(|error| error.to_string())?;
    let mut config = ServerConfig::with_crypto(Arc::new(quic));
    config.transport_config(Arc::clone(transport));
    config.max_incoming(256);
    config.migration(false);
    Ok(config)
}

/// A socket with large buffers: bursts of datagrams overrun the usual ones.
fn socket(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    // As much as the system allows.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
