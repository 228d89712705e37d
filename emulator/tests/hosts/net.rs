//! Transports, links and identities for tests over QUIC on 127.0.0.1.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use volary_actors::base::CoreSet;
use volary_actors::base::{ActorId, Class, JobId, Time};
use volary_actors::message::Job;
use volary_engine::parcel::Parcel;
use volary_experiment::codec;
use volary_hosts::cluster::net::endpoint::Accepted;
use volary_hosts::cluster::net::issue::{IssueRequest, issue};
use volary_hosts::cluster::net::link::LinkEvent;
use volary_hosts::cluster::net::{
    Arrival, Connection, Control, End, Host, Identity, Link, Options, PeerInfo, Transport,
};
use volary_hosts::cluster::protocol::{InjectRequest, InjectorMessage};

/// The deadline of every wait, far longer than any wait takes.
pub const PATIENT: Duration = Duration::from_secs(120);
/// Limit of a link's send queue in the rig, bytes.
pub const QUEUE: usize = 256 << 10;
/// Parcels for actors from this number on are rejected.
const ACTORS: u32 = 1_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// Waits with a deadline.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENT, what).await.expect("it hangs")
}

/// The parcel with this number.
pub fn parcel(count: u32) -> Parcel {
    Parcel {
        sent: Time(1_000_000_000 + u64::from(count)),
        due: Time(1_010_000_000 + u64::from(count)),
        from: ActorId(count % 1000),
        count,
        to: ActorId(count % 777),
        msg: Job::Submit { job: JobId(count), round: 0 }.into(),
        returned: false,
    }
}

/// Any bytes as a frame.
pub fn frame(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
}

/// A frame of parcels.
pub fn batch(sequence: u64, parcels: &[Parcel]) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert_eq!(codec::encode_batch_frame(sequence, parcels, &mut bytes), parcels.len());
    bytes
}

/// Fifty jobs on four nodes, without policies.
pub const EXPERIMENT: &str = r#"title = "hosts"
seed = 5
[cluster]
nodes = 4
[workload.synthetic]
jobs = 50
tasks = 2
interarrival = "100ms"
[service]
demand = "50ms"
"#;

/// A request to slow cores down to half their speed without a pause.
pub fn request(targets: &[&str], dry_run: bool) -> InjectorMessage {
    InjectorMessage::Request(Box::new(InjectRequest {
        profile: HALF.to_owned(),
        seed: Some(3),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        cores: CoreSet::default(),
        hosts: Vec::new(),
        lasting: None,
        dry_run,
        all_policies: false,
    }))
}

/// A profile that slows cores down to half their speed without a pause.
pub const HALF: &str = "bernoulli = { slot = \"1s\", probability = 1.0, slowdown = 2.0 }";

/// Identities of hosts h1, h2 and h3 and a controller, forty days old and valid for sixty more days.
pub struct Net {
    folder: tempfile::TempDir,
    founded: SystemTime,
}

impl Net {
    pub fn new() -> Self {
        let net = Self { folder: tempfile::tempdir().unwrap(), founded: SystemTime::now() - 40 * DAY };
        net.issue(&["h1", "h2", "h3"], 100);
        net
    }

    /// Makes identities like [`new`](Self::new), with [`EXPERIMENT`] and `more` as `e.toml`.
    pub fn with(more: &str) -> Self {
        let net = Self::new();
        fs::write(net.folder("e.toml"), format!("{EXPERIMENT}{more}")).unwrap();
        net
    }

    fn issue(&self, names: &[&str], days: u32) {
        let port = names[0].bytes().map(u16::from).sum::<u16>() * 10;
        let hosts = names
            .iter()
            .zip(port..)
            .map(|(name, port)| Host::new((*name).to_owned(), ([127, 0, 0, 1], port).into()));
        let request = IssueRequest { hosts: hosts.collect(), days, keep_ca: true, now: self.founded };
        issue(self.folder.path(), &request).unwrap();
    }

    /// The folder of an identity of the same authority that has expired.
    pub fn expired(&self, name: &str) -> PathBuf {
        self.issue(&[name], 1);
        self.folder(name)
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn identity(&self, name: &str) -> Identity {
        Identity::load(&self.folder(name), SystemTime::now()).unwrap()
    }

    pub fn listen(&self, name: &str, options: &Options) -> (Transport, Accepted) {
        Transport::listen(&self.identity(name), anywhere(), options).unwrap()
    }

    pub fn connector(&self, name: &str) -> Transport {
        let options = Options { handshake_timeout: PATIENT, ..Options::default() };
        Transport::connector(&self.identity(name), anywhere(), &options).unwrap()
    }
}

/// Relays datagrams between a client and a server, each with this delay.
pub async fn relay(server: SocketAddr, delay: Duration) -> SocketAddr {
    let socket = Arc::new(UdpSocket::bind(anywhere()).await.unwrap());
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, mut bytes) = (server, vec![0; 1 << 16]);
        while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
            let to = if from == server { client } else { server };
            if from != server {
                client = from;
            }
            let (socket, datagram) = (Arc::clone(&socket), bytes[..length].to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                // A datagram that cannot be sent is lost.
                let _ = socket.send_to(&datagram, to).await;
            });
        }
    });
    address
}

pub(super) fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A connection from h2 to h1, which listens, with a link and a control stream.
pub struct Rig {
    pub net: Net,
    pub server: Transport,
    pub accepted: Accepted,
    pub at_server: PeerInfo,
    pub server_link: Link,
    pub server_inbox: mpsc::Receiver<Arrival>,
    pub server_control: Control<String, Vec<u8>>,
    pub client: Transport,
    pub client_connection: Connection,
    pub client_link: Link,
    pub client_inbox: mpsc::Receiver<Arrival>,
    pub client_control: Control<Vec<u8>, String>,
}

impl Rig {
    pub async fn new(options: Options) -> Self {
        let net = Net::new();
        let (server, mut accepted) = net.listen("h1", &options);
        let client = net.connector("h2");
        let address = server.address().unwrap();
        let (called, came) =
            within(async { tokio::join!(client.connect("h1", address), accepted.next()) }).await;
        let (called, came) = (called.unwrap(), came.unwrap());
        let (server_link, server_inbox) = link(&came.connection);
        let (client_link, client_inbox) = link(&called.connection);
        Self {
            net,
            server,
            accepted,
            at_server: came.who,
            server_link,
            server_inbox,
            server_control: Control::new(&came.connection, came.streams, 8 << 20),
            client,
            client_control: Control::new(&called.connection, called.streams, 8 << 20),
            client_connection: called.connection,
            client_link,
            client_inbox,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address().unwrap()
    }

    /// Sends parcels in both directions and checks that all arrive in order.
    pub async fn exchange(&mut self, count: u32) {
        let parcels: Vec<_> = (0..count).map(parcel).collect();
        for part in parcels.chunks(64) {
            within(self.client_link.room(QUEUE / 2)).await.unwrap();
            self.client_link.send(part, Class::Stream).unwrap();
            within(self.server_link.room(QUEUE / 2)).await.unwrap();
            self.server_link.send(part, Class::Stream).unwrap();
        }
        let there = drain(&mut self.server_inbox, parcels.len());
        let back = drain(&mut self.client_inbox, parcels.len());
        let (there, back) = tokio::join!(there, back);
        assert!(there == parcels && back == parcels);
    }

    pub async fn drain(&mut self, count: usize) -> Vec<Parcel> {
        drain(&mut self.server_inbox, count).await
    }

    pub async fn end_at_server(&mut self) -> End {
        end(&mut self.server_inbox).await
    }
}

pub(super) fn link(connection: &Connection) -> (Link, mpsc::Receiver<Arrival>) {
    let (inbox, outlet) = mpsc::channel(4);
    (Link::start(connection, QUEUE, 0, |parcel| parcel.to.0 < ACTORS, inbox), outlet)
}

async fn drain(inbox: &mut mpsc::Receiver<Arrival>, count: usize) -> Vec<Parcel> {
    let mut got = Vec::new();
    while got.len() < count {
        match within(inbox.recv()).await.unwrap().event {
            LinkEvent::Parcels(parcels) => got.extend(parcels),
            LinkEvent::Ended(end) => panic!("the link ended: {end}"),
        }
    }
    got
}

/// The reason for the end of a link.
pub(super) async fn end(inbox: &mut mpsc::Receiver<Arrival>) -> End {
    loop {
        if let LinkEvent::Ended(end) = within(inbox.recv()).await.unwrap().event {
            return end;
        }
    }
}
