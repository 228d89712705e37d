//! Links and control streams over QUIC on 127.0.0.1, with peers that are unauthenticated, faulty or slow.
//!
//! Every wait has a deadline; no assertion depends on speed.

use std::time::Duration;

use volary_actors::base::{ActorId, Class};
use volary_engine::parcel::Parcel;
use volary_experiment::codec::{self, CodecError};
use volary_hosts::cluster::net::link::{LinkEvent, SendError};
use volary_hosts::cluster::net::{Close, Control, End, Options, Role, Transport, engine};

use crate::net::{Net, Rig, anywhere, batch, frame, parcel, within};
use crate::raw_quic::{RawClient, RawPeer, hello, hello_of, silent_host};

const VERSION: u8 = codec::PROTOCOL as u8;

#[tokio::test]
async fn parcels_and_frames_arrive_in_both_directions() {
    let mut rig = Rig::new(Options::default()).await;
    assert_eq!((rig.at_server.name.as_str(), rig.at_server.role), ("h2", Role::Host));
    rig.exchange(5000).await;
    // Frames of two types, one of them large.
    let big = vec![7_u8; 3 << 20];
    let (sent, got) = tokio::join!(rig.client_control.send(&big), rig.server_control.receive());
    sent.unwrap();
    assert_eq!(got.unwrap(), big);
    rig.server_control.send(&"enough".to_owned()).await.unwrap();
    assert_eq!(within(rig.client_control.receive()).await.unwrap(), "enough");
    // The end arrives with its reason.
    rig.client.close("all done").await;
    assert_eq!(rig.end_at_server().await, End::Done);
    let rest = rig.server_link.send(&[parcel(0)], Class::Stream);
    assert_eq!(rest, Err(SendError::Ended(End::Done)));
}

#[tokio::test]
async fn datagrams_arrive_once_or_are_counted_as_missing() {
    let mut rig = Rig::new(Options::default()).await;
    let sent: Vec<_> = (0..1000).map(parcel).collect();
    rig.client_link.send(&sent, Class::Datagram).unwrap();
    let stats = rig.client_link.stats();
    assert_eq!(stats.datagram_sent + stats.datagram_dropped, 1000);
    // Datagrams may be lost, so a parcel on the stream marks the end.
    let last = parcel(1000);
    rig.client_link.send(&[last], Class::Stream).unwrap();
    let mut got = Vec::new();
    while !got.contains(&last) {
        match within(rig.server_inbox.recv()).await.unwrap().event {
            LinkEvent::Parcels(parcels) => got.extend(parcels),
            LinkEvent::Ended(end) => panic!("{end}"),
        }
    }
    got.retain(|parcel| *parcel != last);
    let came = got.len() as u64;
    got.sort_by_key(|parcel| parcel.count);
    got.dedup();
    assert!(got.len() as u64 == came && got.iter().all(|parcel| sent.contains(parcel)));
    let there = rig.server_link.stats();
    assert!(came > 0 && came + there.datagram_missing <= stats.datagram_sent, "{stats:?} {there:?}");
    assert_eq!(there.datagrams_repeated, 0);
}

#[tokio::test]
async fn roles_and_names_must_match_the_certificates() {
    let net = Net::new();
    let (server, mut accepted) = net.listen("h1", &Options::default());
    let (controller, address) = (net.connector("controller"), server.address().unwrap());
    let (called, came) = tokio::join!(controller.connect("h1", address), accepted.next());
    let (called, came) = (called.unwrap(), came.unwrap());
    assert_eq!((came.who.name.as_str(), came.who.role), ("controller", Role::Controller));
    assert_eq!((called.who.name.as_str(), called.who.role), ("h1", Role::Host));
    // The address belongs to another host than expected.
    let error = within(controller.connect("h2", address)).await.unwrap_err().to_string();
    assert!(error.contains("host h2 at 127.0.0.1") && error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn the_error_for_a_missing_answer_names_the_remedy() {
    let net = Net::new();
    let options = Options { handshake_timeout: Duration::from_millis(200), ..Options::default() };
    let controller = Transport::connector(&net.identity("controller"), anywhere(), &options).unwrap();
    let error = within(controller.connect("h1", "127.0.0.1:9".parse().unwrap())).await.unwrap_err();
    assert!(error.to_string().contains("does `volary agent` run there?"), "{error}");
}

/// Incomplete handshakes come from the peers' own address; the oldest of them are dropped.
#[tokio::test]
async fn peers_connect_during_incomplete_handshakes_from_their_address() {
    let options = Options { max_incoming: 8, max_per_address: 6, max_unproved: 2, ..Options::default() };
    let options = Options { handshake_timeout: crate::net::PATIENT, ..options };
    let mut rig = Rig::new(options).await;
    let folder = rig.net.folder("h3");
    let client = RawClient::new(&folder, Some(&folder));
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(client.stays_silent(rig.address()).await);
    }
    let peer = rig.net.connector("controller");
    let address = rig.address();
    let (called, came) =
        within(async { tokio::join!(peer.connect("h1", address), rig.accepted.next()) }).await;
    assert_eq!((called.unwrap().who.name, came.unwrap().who.name), ("h1".into(), "controller".into()));
    assert_eq!(End::from(within(silent[0].closed()).await), End::Dropped);
    rig.exchange(100).await;
}

/// The handshake and the hello have separate timeouts.
#[tokio::test]
async fn a_host_without_a_hello_is_given_up() {
    let net = Net::new();
    let options = Options { handshake_timeout: Duration::from_secs(2), ..Options::default() };
    let controller = Transport::connector(&net.identity("controller"), anywhere(), &options).unwrap();
    let host = silent_host(&net.folder("h1"));
    let address = host.local_addr().unwrap();
    let accepting = tokio::spawn(async move { host.accept().await.unwrap().await.unwrap().closed().await });
    let error = within(controller.connect("h1", address)).await.unwrap_err().to_string();
    assert!(error.contains("no hello within 2s"), "{error}");
    let end = End::from(within(accepting).await.unwrap());
    assert!(end.to_string().contains("no hello within 2s"), "{end}");
}

/// A client without a valid certificate of this authority is refused in the handshake, with the reason.
#[tokio::test]
async fn unauthenticated_clients_are_refused() {
    let mut rig = Rig::new(Options::default()).await;
    let other = Net::new();
    let ours = rig.net.folder("h3");
    let theirs = other.folder("h3");
    let old = rig.net.expired("old");
    for (client, words) in [
        (RawClient::new(&ours, None), "this side showed no certificate"),
        (RawClient::new(&ours, Some(&theirs)), "cert.pem of this side's identity was issued by another"),
        (
            RawClient::new(&ours, Some(&old)),
            "cert.pem of this side's identity is not valid now by the other side's clock",
        ),
    ] {
        let end = client.refused(rig.address()).await;
        assert!(end.to_string().contains(words), "{end}");
        rig.exchange(100).await;
    }
    // A client that trusts another authority refuses the server.
    let stranger = other.connector("controller");
    let error = within(stranger.connect("h1", rig.address())).await.unwrap_err().to_string();
    assert!(error.contains("cert.pem of the other side's identity was issued by another"), "{error}");
    // A client that expects another host at the address.
    let misled = rig.net.connector("controller");
    let error = within(misled.connect("h2", rig.address())).await.unwrap_err().to_string();
    assert!(error.contains("another host is at this address"), "{error}");
}

/// A certified client whose hello is invalid or missing is refused, with the reason.
#[tokio::test]
async fn a_client_with_a_wrong_hello_is_refused() {
    let mut rig = Rig::new(Options { handshake_timeout: Duration::from_secs(3), ..Options::default() }).await;
    let folder = rig.net.folder("h3");
    let mut other_version = hello("h3");
    other_version[codec::PREFIX] = 99;
    // A build of the same version with one more kind of message.
    let build = format!("{}+00000000000000ff", env!("CARGO_PKG_VERSION"));
    let both = format!("runs volary {build} and h1 runs volary {}: install", engine());
    let speaks = format!("protocol 99, but this volary has {}: install the same version", codec::PROTOCOL);
    for (words, reason) in [
        (other_version, &*speaks),
        (hello_of("0.0.0-elsewhere", "h3"), "runs volary 0.0.0-elsewhere"),
        (hello_of(&build, "h3"), &both),
        (hello("h2"), "h3 claims to be h2"),
        (vec![255; 64], "more than the limit of 1024"),
        (frame(&[VERSION, 200, 3, 4]), "ends before its value does"),
        (Vec::new(), "no hello within"),
    ] {
        let client = RawClient::new(&folder, Some(&folder));
        let end = client.sends_hello(rig.address(), &words).await;
        assert!(end.to_string().contains(reason), "{reason}: {end}");
        rig.exchange(100).await;
    }
}

/// Invalid frames on the parcel stream end that link, with the reason on both sides, and end no other link.
#[tokio::test]
async fn invalid_frames_end_only_their_link() {
    let mut rig = Rig::new(Options::default()).await;
    let good = batch(0, &[parcel(1)]);
    let impossible = batch(0, &[Parcel { to: ActorId(u32::MAX), ..parcel(1) }]);
    let mut version = good.clone();
    version[codec::PREFIX] = 77;
    let cut = [&good[..], &good[..good.len() - 3]].concat();
    let oversize = [&u32::MAX.to_le_bytes()[..], &[0; 100]].concat();
    let protocol =
        |end: &End, want: fn(&CodecError) -> bool| matches!(end, End::Protocol(error) if want(error));
    // Version, sequence number, a parcel's header, and no valid message.
    let garbage = frame(&[&[VERSION][..], &[0; 8 + 29], &[255; 8]].concat());
    type Want = fn(&CodecError) -> bool;
    let cases: [(Vec<u8>, Want); 7] = [
        (garbage, |e| matches!(e, CodecError::Garbage(_))),
        (oversize, |e| matches!(e, CodecError::Oversize { limit: codec::PARCEL_FRAME, .. })),
        (cut, |e| *e == CodecError::Truncated),
        (version, |e| *e == CodecError::Version(77)),
        (impossible, |e| matches!(e, CodecError::Refused(_))),
        ([&good[..], &good[..]].concat(), |e| *e == CodecError::Sequence { found: 0, expected: 1 }),
        (batch(3, &[parcel(1)]), |e| *e == CodecError::Sequence { found: 3, expected: 0 }),
    ];
    for (bytes, want) in cases {
        let mut peer = RawPeer::join(&mut rig).await;
        peer.stream(&bytes).await;
        let end = peer.end_of_link().await;
        assert!(protocol(&end, want), "{end:?}");
        let reason = peer.close_reason().await;
        assert!(reason.contains(&end.to_string().replace("the peer sent ", "")), "{reason} / {end}");
        rig.exchange(100).await;
    }
    // The same in datagrams; a duplicate is valid, but is not delivered again.
    let mut peer = RawPeer::join(&mut rig).await;
    for sequence in [0, 0, 5] {
        peer.datagram(&batch(sequence, &[parcel(1)])[codec::PREFIX..]);
    }
    peer.datagram(&[&[VERSION][..], b" and then nothing sensible"].concat());
    let end = peer.end_of_link().await;
    assert!(protocol(&end, |e| matches!(e, CodecError::Garbage(_) | CodecError::Truncated)), "{end:?}");
    let stats = peer.link.stats();
    assert_eq!((stats.received, stats.datagrams_repeated), (2, 1), "{stats:?}");
    assert!(stats.datagram_missing >= 4, "{stats:?}");
    rig.exchange(100).await;
}

/// Losses are counted in parcels, because a datagram holds several parcels.
#[tokio::test]
async fn losses_are_counted_in_parcels() {
    let mut rig = Rig::new(Options::default()).await;
    let mut peer = RawPeer::join(&mut rig).await;
    // Of thirteen parcels, the parcels 3 to 10 are lost, and the parcels 0 to 2 arrive twice.
    for (first, parcels) in [(0, 3), (11, 2), (0, 3)] {
        let parcels: Vec<_> = (first..first + parcels).map(parcel).collect();
        peer.datagram(&batch(u64::from(first), &parcels)[codec::PREFIX..]);
    }
    peer.datagram(b"");
    peer.end_of_link().await;
    let stats = peer.link.stats();
    assert_eq!((stats.received, stats.datagram_missing, stats.datagrams_repeated), (5, 8, 1), "{stats:?}");
    rig.exchange(100).await;
}

/// Invalid frames on the control stream end that connection, with the reason on both sides, and end no other
/// connection.
#[tokio::test]
async fn invalid_control_frames_end_only_their_connection() {
    let mut rig = Rig::new(Options::default()).await;
    for (bytes, words) in [
        (frame(&[VERSION, 250]), "ends before its value does"),
        (frame(&[VERSION, 3, 1, 1, 1, 1]), "1 bytes after the end of its value"),
        (((8 << 20) + 1_u32).to_le_bytes().to_vec(), "8388609 bytes, more than the limit of 8388608"),
    ] {
        let mut peer = RawPeer::join(&mut rig).await;
        peer.control(&bytes).await;
        let mut control =
            Control::<String, Vec<u8>>::new(&peer.connection, peer.streams.take().unwrap(), 8 << 20);
        let end = within(control.receive()).await.unwrap_err();
        assert!(end.to_string().contains(words), "{end}");
        assert!(peer.close_reason().await.contains(words));
        rig.exchange(100).await;
    }
    // A frame over the limit is not sent, and the connection stays usable.
    let error = rig.client_control.send(&vec![0; 9 << 20]).await.unwrap_err();
    assert!(error.to_string().contains("cannot send this"), "{error}");
    rig.client_control.send(&vec![1]).await.unwrap();
    assert_eq!(within(rig.server_control.receive()).await.unwrap(), [1]);
}

/// A peer that does not read fills bounded buffers, and sending then fails. Control frames still arrive.
#[tokio::test]
async fn a_slow_reader_is_detected_and_loses_nothing() {
    let mut rig = Rig::new(Options { window: 256 << 10, ..Options::default() }).await;
    let (mut sent, mut waited) = (0, 0);
    let full = loop {
        let parcels: Vec<_> = (sent..sent + 1000).map(parcel).collect();
        match rig.client_link.send(&parcels, Class::Stream) {
            Ok(()) => sent += 1000,
            Err(SendError::Full { waiting }) => break waiting,
            Err(SendError::Ended(end)) => panic!("{end}"),
        }
        tokio::task::yield_now().await;
        waited = rig.client_link.waiting().max(waited);
    };
    let bound = crate::net::QUEUE + 1000 * 64;
    assert!((crate::net::QUEUE..bound).contains(&full) && waited < bound, "{full} {waited}");
    assert!(sent < 200_000, "{sent} parcels in flight");
    rig.client_control.send(&vec![42]).await.unwrap();
    assert_eq!(within(rig.server_control.receive()).await.unwrap(), [42]);
    // Once the peer reads, all parcels arrive, in order.
    let got = rig.drain(sent as usize).await;
    assert!(got.iter().enumerate().all(|(i, parcel)| parcel.count as usize == i));
    within(rig.client_link.room(0)).await.unwrap();
    rig.exchange(100).await;
}

/// A peer that stops without a close is lost after the idle timeout.
#[test]
fn a_silent_peer_is_lost_after_the_idle_timeout() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (here, there) = (runtime(), runtime());
    let net = Net::new();
    let options = Options {
        idle_timeout: Duration::from_secs(3),
        keep_alive: Duration::from_millis(500),
        ..Options::default()
    };
    let (server, mut accepted) = here.block_on(async { net.listen("h1", &options) });
    let address = server.address().unwrap();
    let identity = net.identity("h2");
    let peer = std::thread::scope(|scope| {
        scope.spawn(|| {
            there.block_on(async {
                let socket = Transport::connector(&identity, anywhere(), &options).unwrap();
                // Not dropped: dropping would close the connection.
                std::mem::forget(socket.connect("h1", address).await.unwrap());
                std::mem::forget(socket);
            });
        });
        here.block_on(within(accepted.next())).unwrap()
    });
    // The other side's runtime no longer runs.
    assert_eq!(here.block_on(within(peer.connection.ended())), End::Silent);
    drop(there);
}

/// The reason of a close arrives at the peer.
#[tokio::test]
async fn the_reason_of_a_close_arrives_at_the_peer() {
    let mut rig = Rig::new(Options::default()).await;
    rig.client_connection.close(Close::Failed, "the disk is full");
    assert_eq!(rig.end_at_server().await, End::Peer("the disk is full".to_owned()));
    assert_eq!(within(rig.client_connection.ended()).await, End::Here);
    assert_eq!(within(rig.client_link.room(0)).await, Err(End::Here));
}

/// Dropping a link does not end its connection.
#[tokio::test]
async fn dropping_a_link_keeps_its_connection() {
    let rig = Rig::new(Options::default()).await;
    let Rig { client_link, mut client_control, mut server_control, mut server_inbox, .. } = rig;
    client_link.send(&[parcel(1)], Class::Stream).unwrap();
    assert!(
        matches!(within(server_inbox.recv()).await.unwrap().event, LinkEvent::Parcels(one) if one == [parcel(1)])
    );
    drop(client_link);
    assert!(matches!(within(server_inbox.recv()).await.unwrap().event, LinkEvent::Ended(End::Stream)));
    client_control.send(&vec![1]).await.unwrap();
    assert_eq!(within(server_control.receive()).await.unwrap(), [1]);
}
