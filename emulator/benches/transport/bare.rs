//! Bare QUIC connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use quinn::{ClientConfig, Endpoint, RecvStream, SendStream, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use volary_actors::base::{ActorId, Time};
use volary_actors::message::Message;
use volary_engine::parcel::Parcel;
use volary_experiment::codec;

use super::{LATE, PACE, batch, runtime, stamp};

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn server() -> (Endpoint, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["h1".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
    (Endpoint::server(config, anywhere()).unwrap(), certificate)
}

async fn connect(address: SocketAddr, certificate: CertificateDer<'static>) -> (Endpoint, quinn::Connection) {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut endpoint = Endpoint::client(anywhere()).unwrap();
    endpoint.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots)).unwrap());
    let connection = endpoint.connect(address, "h1").unwrap().await.unwrap();
    (endpoint, connection)
}

/// A parcel as a program would declare it for the codec.
#[derive(Serialize, Deserialize)]
struct Plain {
    sent: Time,
    due: Time,
    from: ActorId,
    count: u32,
    to: ActorId,
    msg: Message,
    returned: bool,
}

impl From<&Parcel> for Plain {
    fn from(parcel: &Parcel) -> Self {
        let Parcel { sent, due, from, count, to, msg, returned } = *parcel;
        Self { sent, due, from, count, to, msg, returned }
    }
}

/// A connection with both ends in one thread.
pub(super) struct Pair {
    send: SendStream,
    receive: RecvStream,
    _keep: (Endpoint, Endpoint, quinn::Connection, quinn::Connection),
}

impl Pair {
    pub(super) async fn new() -> Self {
        let (server, certificate) = server();
        let address = server.local_addr().unwrap();
        let accept = async { server.accept().await.unwrap().await.unwrap() };
        let ((client, called), came) = tokio::join!(connect(address, certificate), accept);
        let mut send = called.open_uni().await.unwrap();
        send.write_all(&[0]).await.unwrap();
        let mut receive = came.accept_uni().await.unwrap();
        receive.read_exact(&mut [0]).await.unwrap();
        Self { send, receive, _keep: (server, client, called, came) }
    }

    /// A hand-written program: encodes each message of this many batches with the codec and reads them back.
    pub(super) async fn converse(&mut self, batches: usize) {
        let send = async {
            let (mut batch, mut bytes) = (batch(), Vec::new());
            for i in 0..batches {
                stamp(&mut batch, LATE + PACE * i as u64);
                bytes.clear();
                for parcel in &batch {
                    codec::append(&Plain::from(parcel), &mut bytes).unwrap();
                }
                self.send.write_all(&(bytes.len() as u32).to_le_bytes()).await.unwrap();
                self.send.write_all(&bytes).await.unwrap();
            }
        };
        let receive = async {
            let mut bytes = Vec::new();
            for _ in 0..batches {
                let mut length = [0; 4];
                self.receive.read_exact(&mut length).await.unwrap();
                bytes.resize(u32::from_le_bytes(length) as usize, 0);
                self.receive.read_exact(&mut bytes).await.unwrap();
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (plain, used) = codec::take::<Plain>(rest).unwrap();
                    std::hint::black_box(plain);
                    rest = &rest[used..];
                }
            }
        };
        tokio::join!(send, receive);
    }

    /// Writes the payload this many times and reads it.
    pub(super) async fn pump(&mut self, payload: &[u8], times: usize) {
        let send = async {
            for _ in 0..times {
                self.send.write_all(payload).await.unwrap();
            }
        };
        let receive = async {
            let mut buffer = vec![0; 64 << 10];
            let mut came = 0;
            while came < payload.len() * times {
                came += self.receive.read(&mut buffer).await.unwrap().unwrap();
            }
        };
        tokio::join!(send, receive);
    }
}

/// A thread that sends back everything that it receives.
pub(super) struct Echo {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
}

/// The calling end of an echo.
pub(super) struct Caller {
    send: SendStream,
    receive: RecvStream,
    payload: Vec<u8>,
    _keep: (Endpoint, quinn::Connection),
}

impl Echo {
    pub(super) fn spawn() -> Self {
        let (ready, at) = oneshot::channel();
        thread::spawn(move || {
            runtime().block_on(async {
                let (server, certificate) = server();
                ready.send((server.local_addr().unwrap(), certificate)).unwrap();
                let connection = server.accept().await.unwrap().await.unwrap();
                let (mut send, mut receive) = connection.accept_bi().await.unwrap();
                let mut buffer = vec![0; 64 << 10];
                while let Ok(Some(came)) = receive.read(&mut buffer).await {
                    send.write_all(&buffer[..came]).await.unwrap();
                }
            });
        });
        let (address, certificate) = at.blocking_recv().unwrap();
        Self { address, certificate }
    }

    pub(super) async fn connect(&self, bytes: usize) -> Caller {
        let (endpoint, connection) = connect(self.address, self.certificate.clone()).await;
        let (send, receive) = connection.open_bi().await.unwrap();
        Caller { send, receive, payload: vec![7; bytes], _keep: (endpoint, connection) }
    }
}

impl Caller {
    pub(super) async fn trip(&mut self) {
        self.send.write_all(&self.payload).await.unwrap();
        let mut back = vec![0; self.payload.len()];
        self.receive.read_exact(&mut back).await.unwrap();
    }
}
