//! The QUIC endpoint of a machine: connects to hosts by name and accepts peers of the same authority.
//!
//! Both sides show certificates of the run's own authority (TLS 1.3) and exchange hellos. Each handshake runs in a
//! task of its own with a timeout.
//!
//! [`Options`] has the limits and timeouts of an endpoint, from which the TLS and QUIC configuration is made.
//!
//! A listening socket has a limited number of places for handshakes under way (`Handshakes`), because anyone who can
//! send a datagram can begin a handshake without ending it. A peer with an unvalidated address gets a place only while
//! few places are taken. Otherwise the peer must try again with a token that only the true holder of the address
//! receives (RFC 9000, section 8.1). When all places are taken, the peer with most places loses its oldest handshake,
//! so that a flood from one address displaces its own handshakes first.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connecting, IdleTimeout, Incoming, TokioRuntime, TransportConfig, VarInt};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::connection::{Close, Connection, End};
use super::framed::{Hello, HelloError, Streams};
use super::identity::{Identity, Role, Subject, provider};

/// The reason why no socket could be opened.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct BindError(String);

/// The reason why a host cannot be connected to.
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
    subject: Subject,
    accept_task: Option<AbortHandle>,
}

/// The receiving end of accepted peers.
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
        let server = server(identity, options).map_err(|e| unusable(identity, e))?;
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

    /// Makes connections from `address` (port 0: any) and accepts no peers. Needs a tokio runtime.
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
        let client = client(identity, options).map_err(|e| unusable(identity, e))?;
        let socket = socket(address, options.socket_buffer).map_err(refused)?;
        let endpoint = quinn::EndpointConfig::default();
        let mut quic =
            quinn::Endpoint::new(endpoint, server, socket, Arc::new(TokioRuntime)).map_err(refused)?;
        quic.set_default_client_config(client);
        let hello_exchange =
            HelloExchange { hello: Hello::of(&identity.subject), timeout: options.handshake_timeout };
        let (hello_exchange, subject) = (Arc::new(hello_exchange), identity.subject.clone());
        Ok(Self { quic, hello_exchange, subject, accept_task: None })
    }

    /// Connects to the host of that name; fails if another host is at that address. A host that refuses because it has
    /// too many handshakes is tried again within the handshake's timeout.
    pub async fn connect(&self, name: &str, address: SocketAddr) -> Result<Peer, ConnectError> {
        self.connect_within(name, address, self.hello_exchange.timeout).await
    }

    /// Connects like [`connect`](Self::connect), but retries for up to `patience` if the host has too many handshakes
    /// or does not answer. The last attempt may exceed `patience` by the handshake's timeout.
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

    /// The subject of this side's certificate.
    pub fn subject(&self) -> &Subject {
        &self.subject
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

/// Pause after the first failed attempt to connect; each later pause is twice as long as the pause before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Minimum interval between warnings that peers must prove their addresses.
const LOAD_WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Starts a task for each incoming handshake that is admitted. A peer that has not shown a certificate loses its place
/// after the handshake's timeout.
async fn accept(
    quic: quinn::Endpoint,
    hello_exchange: Arc<HelloExchange>,
    mut handshakes: Handshakes,
    accepted: mpsc::Sender<Peer>,
) {
    let mut warned: Option<Instant> = None;
    while let Some(incoming) = quic.accept().await {
        let address = incoming.remote_address();
        let Some(mut place) = handshakes.admit(address.ip(), incoming.remote_address_validated()) else {
            if warned.is_none_or(|at| at.elapsed() > LOAD_WARNING_INTERVAL) {
                tracing::warn!("many handshakes do not end: peers must prove their addresses from now on");
                warned = Some(Instant::now());
            }
            // Fails only for peers with validated addresses.
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
                    // The place is kept until the memory of the failed handshake is free; otherwise handshakes that
                    // fail at once could take unbounded memory.
                    let _ = timeout(DRAINING, place).await;
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

/// The peer after the exchange of hellos. If the exchange failed, closes the connection with the reason.
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

/// A bound UDP socket with large buffers: datagrams are not paced, so buffers of the default size would lose some.
fn socket(address: SocketAddr, bytes: usize) -> io::Result<std::net::UdpSocket> {
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
    let (receive, send) = (socket.recv_buffer_size()? / 2, socket.send_buffer_size()? / 2);
    if receive < bytes || send < bytes {
        tracing::info!(
            "UDP buffers of {receive} and {send} bytes instead of {bytes}: raise net.core.rmem_max and wmem_max"
        );
    }
    Ok(socket.into())
}

fn unusable(identity: &Identity, error: ConfigError) -> BindError {
    BindError(format!("cannot use the identity of {}: {error}", identity.subject.name))
}

/// Limits and timeouts of an endpoint.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of concurrent handshakes, the hellos included. Beyond it, the address with most handshakes loses
    /// its oldest handshake.
    pub max_incoming: usize,
    /// Maximum number of handshakes from one address, or from one /64 of IPv6 addresses.
    pub max_per_address: usize,
    /// With this many handshakes under way, further peers must validate their addresses first.
    pub max_unproved: usize,
    /// Timeout of the TLS handshake, and separately of the hellos.
    pub handshake_timeout: Duration,
    /// A connection on which nothing arrives for this long is lost.
    pub idle_timeout: Duration,
    /// Interval of keep-alive packets on a quiet connection; well below `idle_timeout`.
    pub keep_alive: Duration,
    /// Maximum number of unread bytes on one stream.
    pub window: u32,
    /// Maximum number of bytes of datagrams that wait to be sent, and of those that wait to be read.
    pub datagrams: usize,
    /// Bytes requested from the system for each of the socket's two buffers.
    pub socket_buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_incoming: 512,
            max_per_address: 128,
            max_unproved: 32,
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(2),
            window: 4 << 20,
            datagrams: 1 << 20,
            socket_buffer: 4 << 20,
        }
    }
}

/// The round trip that both sides assume until they have measured one: lost packets of a handshake are sent again after
/// three such round trips. A connection that ends before is kept for three times its retransmission timeout,
/// [`DRAINING`].
const INITIAL_ROUND_TRIP: Duration = Duration::from_millis(50);
/// Nine times [`INITIAL_ROUND_TRIP`]: the retransmission timeout is the round trip plus four times its deviation, which
/// is initially half the round trip (RFC 9002, section 6.2).
const DRAINING: Duration = Duration::from_millis(450);

/// The application protocol (ALPN) of both sides.
const ALPN: &[u8] = b"volary/1";

/// The reason why an identity or the options cannot be used for connections.
type ConfigError = Box<dyn std::error::Error + Send + Sync>;

/// The configuration of the accepting side.
fn server(identity: &Identity, options: &Options) -> Result<quinn::ServerConfig, ConfigError> {
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&identity.roots), provider()).build()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session would outlive its certificate.
    tls.send_tls13_tickets = 0;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config
        .transport_config(Arc::new(transport(options)?))
        .migration(false)
        .max_incoming(options.max_incoming);
    Ok(config)
}

/// The configuration of the connecting side.
fn client(identity: &Identity, options: &Options) -> Result<quinn::ClientConfig, ConfigError> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(Arc::clone(&identity.roots))
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = Resumption::disabled();
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport(options)?));
    Ok(config)
}

fn transport(options: &Options) -> Result<TransportConfig, ConfigError> {
    let idle = IdleTimeout::try_from(options.idle_timeout)?;
    let both = VarInt::from_u64(3 * u64::from(options.window))?;
    let mut config = TransportConfig::default();
    config
        .initial_rtt(INITIAL_ROUND_TRIP)
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(options.keep_alive))
        // One stream for control, one for parcels.
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .stream_receive_window(VarInt::from_u32(options.window))
        // Larger than both streams' windows: unread parcels must not hold up the control stream.
        .receive_window(both)
        .send_window(both.into_inner())
        .datagram_receive_buffer_size(Some(options.datagrams))
        .datagram_send_buffer_size(options.datagrams);
    Ok(config)
}

/// The handshakes under way, the oldest first.
#[derive(Debug)]
struct Handshakes {
    most: usize,
    per_address: usize,
    unproved: usize,
    under_way: VecDeque<Handshake>,
}

#[derive(Debug)]
struct Handshake {
    source: IpAddr,
    /// Dropped to revoke the place; closed once the handshake is over.
    place: oneshot::Sender<()>,
}

impl Handshakes {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            most: options.max_incoming.max(1),
            per_address: options.max_per_address.max(1),
            unproved: options.max_unproved,
            under_way: VecDeque::new(),
        }
    }

    /// The place of a new handshake from this address, which is validated if `proved`; `None` if the peer must validate
    /// its address first. The place lasts until the receiver is dropped; a message or error on the receiver revokes it.
    fn admit(&mut self, address: IpAddr, proved: bool) -> Option<oneshot::Receiver<()>> {
        self.under_way.retain(|handshake| !handshake.place.is_closed());
        if !proved && self.under_way.len() >= self.unproved {
            return None;
        }
        let source = network(address);
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        self.under_way.iter().for_each(|handshake| *counts.entry(handshake.source).or_default() += 1);
        let most = if counts.get(&source).is_some_and(|&count| count >= self.per_address) {
            Some(source)
        } else if self.under_way.len() >= self.most {
            // Of sources with equally many handshakes, the source with the oldest handshake is chosen; otherwise the
            // same address would always lose.
            let sources = self.under_way.iter().rev().map(|handshake| handshake.source);
            sources.max_by_key(|source| counts[source])
        } else {
            None
        };
        let oldest = self.under_way.iter().position(|handshake| Some(handshake.source) == most);
        oldest.and_then(|oldest| self.under_way.remove(oldest));
        let (place, receiver) = oneshot::channel();
        self.under_way.push_back(Handshake { source, place });
        Some(receiver)
    }
}

/// The range of addresses of one holder: for IPv6, the 64 bits that providers give to one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use oneshot::error::TryRecvError;

    use super::*;

    fn handshakes(max_incoming: usize, max_per_address: usize, max_unproved: usize) -> Handshakes {
        Handshakes::new(&Options { max_incoming, max_per_address, max_unproved, ..Options::default() })
    }

    /// A place of a peer with a validated address.
    fn place(handshakes: &mut Handshakes, address: &str) -> oneshot::Receiver<()> {
        handshakes.admit(address.parse().unwrap(), true).expect("the address is validated")
    }

    /// Whether each handshake still has its place.
    fn kept<const N: usize>(places: [&mut oneshot::Receiver<()>; N]) -> [bool; N] {
        places.map(|place| place.try_recv() == Err(TryRecvError::Empty))
    }

    #[test]
    fn unvalidated_addresses_get_few_handshakes() {
        let mut handshakes = handshakes(10, 10, 2);
        let admitted: Vec<_> =
            (1..=4).filter_map(|i| handshakes.admit(IpAddr::from([10, 0, 0, i]), false)).collect();
        assert_eq!(admitted.len(), 2);
        // A peer with a validated address gets a place, and handshakes that have ended free their places.
        let mut proved = place(&mut handshakes, "10.0.0.9");
        assert_eq!(kept([&mut proved]), [true]);
        drop((admitted, proved));
        assert!(handshakes.admit(IpAddr::from([10, 0, 0, 5]), false).is_some());
    }

    #[test]
    fn the_oldest_handshake_of_the_busiest_address_loses_its_place() {
        let mut handshakes = handshakes(4, 3, 0);
        let [mut a, mut b, mut c] = ["10.0.0.1", "10.0.0.2", "10.0.0.2"].map(|at| place(&mut handshakes, at));
        let mut d = place(&mut handshakes, "10.0.0.3");
        let mut e = place(&mut handshakes, "10.0.0.4");
        assert_eq!(kept([&mut a, &mut b, &mut c, &mut d, &mut e]), [true, false, true, true, true]);
        assert_eq!(handshakes.under_way.len(), 4);
    }

    #[test]
    fn an_address_at_its_limit_displaces_its_own_oldest_handshake() {
        let mut handshakes = handshakes(100, 2, 0);
        // Addresses of one IPv6 network, and both forms of an IPv4 address, are one source.
        for (addresses, other) in [
            (["2001:db8::1", "2001:db8::2", "2001:db8::3"], "2001:db8:0:1::1"),
            (["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"], "10.0.0.2"),
        ] {
            let mut other = place(&mut handshakes, other);
            let [mut a, mut b, mut c] = addresses.map(|at| place(&mut handshakes, at));
            assert_eq!(kept([&mut other, &mut a, &mut b, &mut c]), [true, false, true, true]);
        }
    }
}
