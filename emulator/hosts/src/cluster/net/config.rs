//! Limits and timeouts of an endpoint, and the TLS and QUIC configuration made from them.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{IdleTimeout, TransportConfig, VarInt};
use rustls::client::Resumption;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;

use super::identity::{Identity, provider};

/// Limits and timeouts of an endpoint.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of concurrent handshakes, the hellos included. Beyond it, the address with most of them loses its
    /// oldest one.
    pub max_incoming: usize,
    /// Maximum number of these from one address, or from one /64 of IPv6 addresses.
    pub max_per_address: usize,
    /// Handshakes under way from which on peers must prove their addresses.
    pub max_unproved: usize,
    /// Timeout of the TLS handshake, and again of the hellos.
    pub handshake_timeout: Duration,
    /// A connection on which nothing arrives for this long is lost.
    pub idle_timeout: Duration,
    /// Interval of keep-alive packets on a quiet connection; well below `idle_timeout`.
    pub keep_alive: Duration,
    /// Unread bytes that a peer may have sent on one stream.
    pub window: u32,
    /// Bytes of datagrams that may wait to be sent, and to be read.
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

/// The round trip that both sides assume until they have measured one: packets of a handshake that are lost are sent
/// again after three of it. A connection that ends before is kept for three times its timeout of retransmission,
/// [`DRAINING`].
const INITIAL_ROUND_TRIP: Duration = Duration::from_millis(50);
/// Nine times that round trip: the timeout is the round trip and four times its deviation, which is half of it at first
/// (RFC 9002, section 6.2).
pub(super) const DRAINING: Duration = Duration::from_millis(450);

/// The application protocol (ALPN) of both sides.
const ALPN: &[u8] = b"volary/1";

/// The reason for which an identity or the options cannot be used for connections.
pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

/// The configuration of the accepting side.
pub(super) fn server(identity: &Identity, options: &Options) -> Result<quinn::ServerConfig, Error> {
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
pub(super) fn client(identity: &Identity, options: &Options) -> Result<quinn::ClientConfig, Error> {
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

fn transport(options: &Options) -> Result<TransportConfig, Error> {
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
