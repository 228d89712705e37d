//! TLS and QUIC parameters: both sides authenticated, nothing resumed, everything bounded.

use std::sync::Arc;

use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{IdleTimeout, TransportConfig, VarInt};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use thiserror::Error;

use super::endpoint::Options;
use super::identity::{Identity, provider};

/// The application protocol that both sides must speak.
const ALPN: &[u8] = b"volary/1";

/// Why an identity cannot be used for connections.
#[derive(Debug, Error)]
pub enum TlsError {
    /// Key and certificate do not fit, or are of a kind nobody here knows.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The authority's certificate is of no use.
    #[error(transparent)]
    Authority(#[from] VerifierBuilderError),
    /// QUIC needs a cipher that is not there.
    #[error(transparent)]
    Cipher(#[from] NoInitialCipherSuite),
    /// A limit is out of range.
    #[error("{0}")]
    Range(String),
}

/// How others are accepted.
pub(super) fn server(identity: &Identity, options: &Options) -> Result<quinn::ServerConfig, TlsError> {
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
        .transport_config(transport(options)?)
        .migration(false)
        // What came at once and was not looked at yet; most of it will be told to retry.
        .max_incoming(16 * options.handshakes)
        .incoming_buffer_size(16 << 10)
        .incoming_buffer_size_total(1 << 20);
    Ok(config)
}

/// How we connect to others.
pub(super) fn client(identity: &Identity, options: &Options) -> Result<quinn::ClientConfig, TlsError> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(Arc::clone(&identity.roots))
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = Resumption::disabled();
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(options)?);
    Ok(config)
}

/// The certificate the peer showed.
pub(super) fn leaf(connection: &quinn::Connection) -> Option<CertificateDer<'static>> {
    let shown = connection.peer_identity()?;
    shown.downcast::<Vec<CertificateDer<'static>>>().ok()?.first().cloned()
}

fn transport(options: &Options) -> Result<Arc<TransportConfig>, TlsError> {
    let idle = IdleTimeout::try_from(options.idle).map_err(|error| TlsError::Range(error.to_string()))?;
    let both = VarInt::from_u64(3 * u64::from(options.window)).map_err(|e| TlsError::Range(e.to_string()))?;
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(options.keep_alive))
        // One stream for control, one for parcels.
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .stream_receive_window(VarInt::from_u32(options.window))
        // Unread parcels must not hold up the control stream.
        .receive_window(both)
        .send_window(both.into_inner())
        .datagram_receive_buffer_size(Some(options.datagrams))
        .datagram_send_buffer_size(options.datagrams);
    Ok(Arc::new(config))
}
