//! QUIC peers without volary: unauthenticated clients, peers that send arbitrary bytes, and a host that is silent.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::mpsc;
use volary_experiment::codec;
use volary_hosts::cluster::net::framed::Streams;
use volary_hosts::cluster::net::{Arrival, Connection, End, Link, Role};

use crate::net::{Rig, anywhere, end, link, within};

/// The hello of a host of this name, as a frame.
pub fn hello(name: &str) -> Vec<u8> {
    hello_of(&volary_hosts::cluster::net::engine(), name)
}

/// The hello of a host that runs another build.
pub fn hello_of(engine: &str, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(&(engine, Role::Host, name), 1000, &mut bytes).unwrap();
    bytes
}

/// A server with the identity in `folder` that completes handshakes and sends nothing.
pub fn silent_host(folder: &Path) -> quinn::Endpoint {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = vec![b"volary/1".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    quinn::Endpoint::server(quinn::ServerConfig::with_crypto(Arc::new(crypto)), anywhere()).unwrap()
}

/// A QUIC client that is not volary.
pub struct RawClient {
    endpoint: quinn::Endpoint,
}

impl RawClient {
    /// A client that trusts the authority in one folder, and shows the certificate in a second folder, if given.
    pub fn new(trust: &Path, shows: Option<&Path>) -> Self {
        let read = |path: PathBuf| fs::read(path).unwrap();
        let certificate = |path| CertificateDer::from_pem_slice(&read(path)).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate(trust.join("ca.pem"))).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let mut tls = match shows {
            None => tls.with_no_client_auth(),
            Some(folder) => {
                let key = PrivateKeyDer::from_pem_slice(&read(folder.join("key.pem"))).unwrap();
                tls.with_client_auth_cert(vec![certificate(folder.join("cert.pem"))], key).unwrap()
            }
        };
        tls.alpn_protocols = vec![b"volary/1".to_vec()];
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        let mut transport = quinn::TransportConfig::default();
        transport.max_idle_timeout(Some(Duration::from_secs(5).try_into().unwrap()));
        config.transport_config(Arc::new(transport));
        let mut endpoint = quinn::Endpoint::client(anywhere()).unwrap();
        endpoint.set_default_client_config(config);
        Self { endpoint }
    }

    /// The first packets of handshakes, which differ in their connection ids; answers to them are ignored.
    pub async fn initials(&self, count: usize) -> Vec<Vec<u8>> {
        let socket = tokio::net::UdpSocket::bind(anywhere()).await.unwrap();
        let address = socket.local_addr().unwrap();
        let (mut packets, mut bytes) = (BTreeMap::new(), vec![0; 2048]);
        while packets.len() < count {
            let more = packets.len() + 100;
            // Dropped connections send one more packet, whose id is already in the map.
            let _connecting: Vec<_> =
                (0..100).map(|_| self.endpoint.connect(address, "h1").unwrap()).collect();
            while packets.len() < more {
                let length = within(socket.recv(&mut bytes)).await.unwrap();
                // A long header of type 0. The id follows its length.
                if bytes[0] & 0xf0 == 0xc0 {
                    let id = bytes[6..6 + usize::from(bytes[5])].to_vec();
                    packets.entry(id).or_insert_with(|| bytes[..length].to_vec());
                }
            }
        }
        packets.into_values().collect()
    }

    /// Connects and stays silent: with a certificate the handshake completes, and no hello follows.
    pub async fn stays_silent(&self, address: SocketAddr) -> quinn::Connection {
        within(self.endpoint.connect(address, "h1").unwrap()).await.unwrap()
    }

    /// Connects and waits until the server closes the connection.
    pub async fn refused(&self, address: SocketAddr) -> End {
        match within(self.endpoint.connect(address, "h1").unwrap()).await {
            Ok(connection) => within(connection.closed()).await.into(),
            Err(error) => error.into(),
        }
    }

    /// Connects, sends `bytes` as its hello and waits until the server closes the connection.
    pub async fn sends_hello(&self, address: SocketAddr, bytes: &[u8]) -> End {
        let connection = within(self.endpoint.connect(address, "h1").unwrap()).await.unwrap();
        let (mut send, _receive) = connection.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        if !bytes.is_empty() {
            let _ = send.finish();
        }
        within(connection.closed()).await.into()
    }
}

/// An accepted raw client, and the server's side of its connection.
pub struct RawPeer {
    raw: quinn::Connection,
    send: quinn::SendStream,
    _receive: quinn::RecvStream,
    inbox: mpsc::Receiver<Arrival>,
    pub link: Link,
    pub connection: Connection,
    pub streams: Option<Streams>,
}

impl RawPeer {
    /// Connects as h3 with a valid hello.
    pub async fn join(rig: &mut Rig) -> Self {
        let folder = rig.net.folder("h3");
        let client = RawClient::new(&folder, Some(&folder));
        let raw = within(client.endpoint.connect(rig.address(), "h1").unwrap()).await.unwrap();
        let (mut send, receive) = raw.open_bi().await.unwrap();
        send.write_all(&hello("h3")).await.unwrap();
        let peer = within(rig.accepted.next()).await.unwrap();
        assert_eq!(peer.who.name, "h3");
        let (link, inbox) = link(&peer.connection);
        Self {
            raw,
            send,
            _receive: receive,
            inbox,
            link,
            connection: peer.connection,
            streams: Some(peer.streams),
        }
    }

    /// Sends these bytes as parcels, and ends the stream.
    pub async fn stream(&self, bytes: &[u8]) {
        let mut stream = self.raw.open_uni().await.unwrap();
        // The server may close the connection before the end.
        let _ = stream.write_all(bytes).await;
        let _ = stream.finish();
    }

    /// Sends these bytes as control frames, and ends the stream.
    pub async fn control(&mut self, bytes: &[u8]) {
        let _ = self.send.write_all(bytes).await;
        let _ = self.send.finish();
    }

    pub fn datagram(&self, bytes: &[u8]) {
        self.raw.send_datagram(bytes.to_vec().into()).unwrap();
    }

    /// The reason for the end of the link, on the server.
    pub async fn end_of_link(&mut self) -> End {
        end(&mut self.inbox).await
    }

    /// The reason in the server's close.
    pub async fn close_reason(&self) -> String {
        let end = End::from(within(self.raw.closed()).await);
        let End::Peer(reason) = end else { panic!("{end}") };
        reason
    }
}
