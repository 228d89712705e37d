//! Machines that talk over QUIC, and strangers, liars and the slow among them: the good link goes on.
//!
//! All over 127.0.0.1. Times are guards only: nothing here passes or fails by being quick.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::hostile::{Guest, Hostile, hello};
use common::net::{Net, Rig, batch, frame, parcel, relay, relay_at, within};
use tokio::sync::Notify;
use volary::cluster::net::connection::Close;
use volary::cluster::net::link::{LinkEvent, SendError};
use volary::cluster::net::{Control, End, Options, Role, Transport};
use volary::codec::{self, CodecError};
use volary_actors::base::Class;

const VERSION: u8 = codec::PROTOCOL as u8;

#[tokio::test]
async fn parcels_and_frames_cross() {
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
    // The end, and why.
    rig.client.close("all done").await;
    assert_eq!(rig.end_at_server().await, End::Done);
    let rest = rig.server_link.send(&[parcel(0)], Class::Stream);
    assert_eq!(rest, Err(SendError::Ended(End::Done)));
}

#[tokio::test]
async fn datagrams_arrive_once_each_or_are_counted() {
    let mut rig = Rig::new(Options::default()).await;
    let sent: Vec<_> = (0..1000).map(parcel).collect();
    rig.client_link.send(&sent, Class::Datagram).unwrap();
    let stats = rig.client_link.stats();
    assert_eq!(stats.datagram_sent + stats.datagram_dropped, 1000);
    // What got lost on the way may be lost: a parcel on the stream says that all were sent.
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
async fn the_controller_is_told_apart_and_always_admitted() {
    let net = Net::new();
    let (server, mut accepted) = net.listen("h1", &Options::default());
    let (controller, address) = (net.connector("controller"), server.address().unwrap());
    let (called, came) = tokio::join!(controller.connect("h1", address), accepted.next());
    let (called, came) = (called.unwrap(), came.unwrap());
    assert_eq!((came.who.name.as_str(), came.who.role), ("controller", Role::Controller));
    assert_eq!((called.who.name.as_str(), called.who.role), ("h1", Role::Host));
    // Somebody else than expected is at that address.
    let error = within(controller.connect("h2", address)).await.unwrap_err().to_string();
    assert!(error.contains("host h2 at 127.0.0.1") && error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_said() {
    let net = Net::new();
    let options = Options { handshake_timeout: Duration::from_millis(200), ..Options::default() };
    let controller =
        Transport::connector(&net.identity("controller"), "127.0.0.1:0".parse().unwrap(), &options);
    let error = within(controller.unwrap().connect("h1", "127.0.0.1:9".parse().unwrap())).await.unwrap_err();
    assert!(error.to_string().contains("does `volary agent` run there?"), "{error}");
}

/// Strangers are refused in the handshake or right after it; each is counted and told why.
#[tokio::test]
async fn strangers_are_refused() {
    let mut rig = Rig::new(Options::default()).await;
    let other = Net::new();
    let ours = rig.net.folder("h3");
    let theirs = other.folder("h3");
    let old = rig.net.expired("old");
    for (hostile, words) in [
        (Hostile::new(&ours, None), "showed no certificate"),
        (Hostile::new(&ours, Some(&theirs)), "not of the other's run"),
        (Hostile::new(&ours, Some(&old)), "a certificate expired"),
        (Hostile::new(&ours, Some(&ours)), "h3 is not on this run's list"),
    ] {
        let before = rig.server.refusals();
        let end = hostile.refused(rig.address()).await;
        assert!(end.to_string().contains(words), "{end}");
        rig.refused_since(&before, |now| now.handshake + now.unlisted).await;
        rig.exchange(100).await;
    }
    let refusals = rig.server.refusals();
    assert_eq!((refusals.handshake, refusals.unlisted, refusals.hello), (3, 1, 0), "{refusals:?}");
    // One that trusts another authority does not talk to us either.
    let stranger = other.connector("controller");
    let error = within(stranger.connect("h1", rig.address())).await.unwrap_err().to_string();
    assert!(error.contains("not of the other's run"), "{error}");
}

/// Listed and certified, but the first words are wrong, or none.
#[tokio::test]
async fn a_wrong_hello_is_refused() {
    let mut rig = Rig::new(Options { handshake_timeout: Duration::from_secs(3), ..Options::default() }).await;
    rig.server.admit(["h2".to_owned(), "h3".to_owned()]);
    let folder = rig.net.folder("h3");
    let mut other_version = hello("h3");
    other_version[codec::PREFIX] = 99;
    let mut other_engine = Vec::new();
    codec::encode(&("0.0.0-elsewhere", Role::Host, "h3"), 1000, &mut other_engine).unwrap();
    // The same version with a message more.
    let other_build = format!("{}+00000000000000ff", env!("CARGO_PKG_VERSION"));
    let mut other_messages = Vec::new();
    codec::encode(&(&other_build, Role::Host, "h3"), 1000, &mut other_messages).unwrap();
    let both =
        format!("runs volary {other_build} and this is volary {}: install", volary::cluster::net::engine());
    let speaks = format!("protocol 99, but this volary speaks {}: install the same version", codec::PROTOCOL);
    for (words, reason) in [
        (other_version, &*speaks),
        (other_engine, "runs volary 0.0.0-elsewhere"),
        (other_messages, &both),
        (hello("h2"), "h3 says it is h2"),
        (vec![255; 64], "where 1024 are the most"),
        (frame(&[VERSION, 200, 3, 4]), "ends early"),
        (Vec::new(), ""), // says nothing at all
    ] {
        let before = rig.server.refusals();
        let hostile = Hostile::new(&folder, Some(&folder));
        let end = hostile.says(rig.address(), &words).await;
        assert!(end.to_string().contains(reason), "{reason}: {end}");
        rig.refused_since(&before, |now| now.hello).await;
        rig.exchange(100).await;
    }
}

/// A peer that said hello and then sends this on its parcel stream ends its own link, with the reason on both sides.
#[tokio::test]
async fn broken_frames_end_their_link_only() {
    let mut rig = Rig::new(Options::default()).await;
    rig.server.admit(["h2".to_owned(), "h3".to_owned()]);
    let good = batch(0, &[parcel(1)]);
    let impossible = {
        let mut parcel = parcel(1);
        parcel.to.0 = u32::MAX;
        batch(0, &[parcel])
    };
    let mut version = good.clone();
    version[codec::PREFIX] = 77;
    let cut = [&good[..], &good[..good.len() - 3]].concat();
    let oversize = [&u32::MAX.to_le_bytes()[..], &[0; 100]].concat();
    let protocol =
        |end: &End, want: fn(&CodecError) -> bool| matches!(end, End::Protocol(error) if want(error));
    type Want = fn(&CodecError) -> bool;
    for (bytes, want) in [
        // A version, a number, a stamp, and no message that there is.
        (
            frame(&[&[VERSION][..], &[0; 8 + 29], &[255; 8]].concat()),
            (|e| matches!(e, CodecError::Garbage(_))) as Want,
        ),
        (oversize, |e| matches!(e, CodecError::Oversize { limit: codec::PARCEL_FRAME, .. })),
        (cut, |e| *e == CodecError::Truncated),
        (version, |e| *e == CodecError::Version(77)),
        (impossible, |e| matches!(e, CodecError::Refused(_))),
        ([&good[..], &good[..]].concat(), |e| *e == CodecError::Sequence { found: 0, expected: 1 }),
        (batch(3, &[parcel(1)]), |e| *e == CodecError::Sequence { found: 3, expected: 0 }),
    ] {
        let mut hostile = Guest::joins(&mut rig).await;
        hostile.stream(&bytes).await;
        let end = hostile.end_of_link().await;
        assert!(protocol(&end, want), "{end:?}");
        let told = hostile.told().await;
        assert!(told.contains(&end.to_string().replace("the peer", "you")), "{told} / {end}");
        rig.exchange(100).await;
    }
    // The same in datagrams; a repeated one is no fault, but is not delivered again.
    let mut hostile = Guest::joins(&mut rig).await;
    for sequence in [0, 0, 5] {
        hostile.datagram(&batch(sequence, &[parcel(1)])[codec::PREFIX..]);
    }
    hostile.datagram(&[&[VERSION][..], b" and then nothing sensible"].concat());
    assert!(protocol(&hostile.end_of_link().await, |e| matches!(
        e,
        CodecError::Garbage(_) | CodecError::Truncated
    )));
    let stats = hostile.link.stats();
    assert_eq!((stats.received, stats.datagrams_repeated), (2, 1), "{stats:?}");
    assert!(stats.datagram_missing >= 4, "{stats:?}");
    rig.exchange(100).await;
}

/// A datagram holds several parcels, and each that is lost counts.
#[tokio::test]
async fn losses_are_counted_in_parcels() {
    let mut rig = Rig::new(Options::default()).await;
    rig.server.admit(["h2".to_owned(), "h3".to_owned()]);
    let mut guest = Guest::joins(&mut rig).await;
    // Of thirteen parcels the last but two got lost, and the first three again.
    for (first, parcels) in [(0, 3), (11, 2), (0, 3)] {
        let parcels: Vec<_> = (first..first + parcels).map(parcel).collect();
        guest.datagram(&batch(u64::from(first), &parcels)[codec::PREFIX..]);
    }
    guest.datagram(b"");
    guest.end_of_link().await;
    let stats = guest.link.stats();
    assert_eq!((stats.received, stats.datagram_missing, stats.datagrams_repeated), (5, 8, 1), "{stats:?}");
    rig.exchange(100).await;
}

/// The control stream is judged as the parcels are.
#[tokio::test]
async fn broken_control_frames_end_their_connection_only() {
    let mut rig = Rig::new(Options::default()).await;
    rig.server.admit(["h2".to_owned(), "h3".to_owned()]);
    for (bytes, words) in [
        (frame(&[VERSION, 250]), "ends early"),
        (frame(&[VERSION, 3, 1, 1, 1, 1]), "1 bytes after the end"),
        (((8 << 20) + 1_u32).to_le_bytes().to_vec(), "8388609 bytes where 8388608 are the most"),
    ] {
        let mut hostile = Guest::joins(&mut rig).await;
        hostile.control(&bytes).await;
        let mut control =
            Control::<String, Vec<u8>>::new(&hostile.connection, hostile.streams.take().unwrap(), 8 << 20);
        let end = within(control.receive()).await.unwrap_err();
        assert!(end.to_string().contains(words), "{end}");
        assert!(hostile.told().await.contains(words));
        rig.exchange(100).await;
    }
    // What this side may not send leaves the connection as it was.
    let error = rig.client_control.send(&vec![0; 9 << 20]).await.unwrap_err();
    assert!(error.to_string().contains("cannot send this"), "{error}");
    rig.client_control.send(&vec![1]).await.unwrap();
    assert_eq!(within(rig.server_control.receive()).await.unwrap(), [1]);
}

/// A peer that does not read fills bounded buffers, and the sender sees it; control still comes through.
#[tokio::test]
async fn a_slow_reader_is_seen_and_nothing_is_lost() {
    let mut rig = Rig::new(Options { window: 256 << 10, ..Options::default() }).await;
    let (mut sent, mut waited) = (0, 0);
    let full = loop {
        let parcels: Vec<_> = (sent..sent + 1000).map(parcel).collect();
        match rig.client_link.send(&parcels, Class::Stream) {
            Ok(()) => sent += 1000,
            Err(SendError::Full { waiting }) => break waiting,
            Err(SendError::Ended(end)) => panic!("{end}"),
        }
        // Let the network take what it will.
        tokio::task::yield_now().await;
        waited = rig.client_link.waiting().max(waited);
    };
    let bound = common::net::QUEUE + 1000 * 64;
    assert!((common::net::QUEUE..bound).contains(&full) && waited < bound, "{full} {waited}");
    assert!(sent < 200_000, "{sent} parcels in flight");
    rig.client_control.send(&vec![42]).await.unwrap();
    assert_eq!(within(rig.server_control.receive()).await.unwrap(), [42]);
    // Once it reads, all of it comes, in order.
    let got = rig.drain(sent as usize).await;
    assert!(got.iter().enumerate().all(|(i, parcel)| parcel.count as usize == i));
    within(rig.client_link.room(0)).await.unwrap();
    rig.exchange(100).await;
}

/// Ten thousand knock at once from one address, without a certificate or with one: few get in, the good link goes
/// on, and the controller is let in from elsewhere meanwhile.
#[tokio::test]
async fn a_crowd_at_the_door_does_not_disturb() {
    let options =
        Options { connections: 24, per_name: 3, handshakes: 8, per_source: 4, ..Options::default() };
    let mut rig = Rig::new(options).await;
    rig.server.admit(["h2".to_owned(), "h3".to_owned()]);
    let folder = rig.net.folder("h3");
    let (stranger, member) = (Hostile::new(&folder, None), Hostile::new(&folder, Some(&folder)));
    let address = rig.address();
    let crowd = tokio::spawn(async move {
        let mut inside = Vec::new();
        for _ in 0..10 {
            let knock = |i| if i % 8 == 0 { member.knock(address) } else { stranger.knock(address) };
            let knocks: tokio::task::JoinSet<_> = (0..1000).map(knock).collect();
            inside.extend(knocks.join_all().await.into_iter().flatten());
        }
        inside
    });
    let elsewhere = rig.net.connector_at("controller", [127, 0, 0, 2]);
    let mut members = Vec::new();
    while !crowd.is_finished() {
        rig.exchange(500).await;
        let _here = elsewhere.connect("h1", address).await.expect("the controller gets in");
        loop {
            let peer = within(rig.accepted.next()).await.unwrap();
            if peer.who.role == Role::Controller {
                break;
            }
            members.push(peer);
        }
    }
    assert!((1..=3).contains(&members.len()), "{} of one name", members.len());
    drop(crowd.await.unwrap());
    rig.exchange(500).await;
    let refusals = rig.server.refusals();
    assert!(refusals.full > 0 && refusals.handshake > 0, "{refusals:?}");
    assert!(refusals.recent.len() <= 16);
}

/// Handshakes that are begun and left alone hold places: nobody else's, and not for long.
#[tokio::test]
async fn half_open_handshakes_keep_nobody_out() {
    let handshake_timeout = Duration::from_secs(600);
    let mut rig =
        Rig::new(Options { handshakes: 8, per_source: 4, handshake_timeout, ..Options::default() }).await;
    let folder = rig.net.folder("h3");
    let mut knocks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        // It learns how to prove its address, and hears nothing more.
        let deaf =
            relay(rig.address(), |to_client, before| (!to_client || before == 0).then_some(Duration::ZERO));
        knocks.spawn(Hostile::new(&folder, None).knock(deaf.await));
    }
    rig.refused_since(&rig.server.refusals(), |now| now.full).await;
    let elsewhere = rig.net.connector_at("controller", [127, 0, 0, 2]);
    within(elsewhere.connect("h1", rig.address())).await.expect("their source is full, and no other");
    let beside = rig.net.connector("controller");
    within(beside.connect("h1", rig.address())).await.expect("they have had their turn");
    rig.exchange(100).await;
}

/// Who is slow gives way when all places are taken, is told, and calls again.
#[tokio::test]
async fn who_is_called_off_calls_again() {
    let handshake_timeout = Duration::from_secs(600);
    let mut rig =
        Rig::new(Options { handshakes: 1, per_source: 1, handshake_timeout, ..Options::default() }).await;
    rig.server.admit(["h2".to_owned(), "h3".to_owned()]);
    let (answered, heard) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    // It learns how to prove its address, and for a while nothing more.
    let slow = relay(rig.address(), {
        let (answered, heard) = (Arc::clone(&answered), Arc::clone(&heard));
        move |to_client, before| {
            if to_client && before > 0 {
                answered.notify_one();
            }
            (!to_client || before == 0 || heard.load(Ordering::Relaxed)).then_some(Duration::ZERO)
        }
    });
    let (slow, caller) = (slow.await, rig.net.connector("controller"));
    let calling = tokio::spawn(async move { caller.connect("h1", slow).await });
    within(answered.notified()).await;
    // The only place is taken, and nobody's turn is over before the second.
    let elsewhere = rig.net.connector_at("controller", [127, 0, 0, 2]);
    within(elsewhere.connect("h1", rig.address())).await.expect("the slow one gives way");
    assert!(!calling.is_finished());
    heard.store(true, Ordering::Relaxed);
    within(calling).await.unwrap().expect("it calls again");
    // The same for one that is certified and says nothing.
    let folder = rig.net.folder("h3");
    let (mute, address) = (Hostile::new(&folder, Some(&folder)), rig.address());
    let refused = tokio::spawn(async move { mute.refused(address).await });
    within(rig.accepted.next()).await.unwrap();
    within(rig.accepted.next()).await.unwrap();
    while !refused.is_finished() {
        let both = async { tokio::join!(elsewhere.connect("h1", address), rig.accepted.next()) };
        within(both).await.0.expect("the mute one gives way");
    }
    assert_eq!(refused.await.unwrap(), End::Full);
    rig.exchange(100).await;
}

/// More hosts than there are places link up at once, while some stall: all get in.
#[tokio::test]
async fn a_crowd_of_sources_gets_in() {
    let handshake_timeout = Duration::from_secs(600);
    let options =
        Options { handshakes: 4, per_source: 2, per_name: 32, handshake_timeout, ..Options::default() };
    let mut rig = Rig::new(options).await;
    let address = rig.address();
    let folder = rig.net.folder("h3");
    let mut stalled = tokio::task::JoinSet::new();
    for host in 10..16 {
        let deaf = relay_at([127, 0, 0, host], address, |to_client, before| {
            (!to_client || before == 0).then_some(Duration::ZERO)
        });
        stalled.spawn(Hostile::new(&folder, None).knock(deaf.await));
    }
    rig.refused_since(&rig.server.refusals(), |now| now.full).await;
    let crowd: Vec<_> = (20..32).map(|host| rig.net.connector_at("controller", [127, 0, 0, host])).collect();
    let mut calls = tokio::task::JoinSet::new();
    for one in crowd {
        calls.spawn(async move { one.connect("h1", address).await.map(|peer| (one, peer)) });
    }
    let mut inside = Vec::new();
    while let Some(called) = within(calls.join_next()).await {
        inside.push(called.unwrap().expect("all get in"));
        within(rig.accepted.next()).await.unwrap();
    }
    assert_eq!(inside.len(), 12);
    rig.exchange(100).await;
}

/// A machine that stops is noticed by its silence.
#[test]
fn a_silent_peer_is_noticed() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (here, there) = (runtime(), runtime());
    let net = Net::new();
    let options = Options {
        idle: Duration::from_secs(3),
        keep_alive: Duration::from_millis(500),
        ..Options::default()
    };
    let (server, mut accepted) = here.block_on(async { net.listen("h1", &options) });
    server.admit(["h2".to_owned()]);
    let address = server.address().unwrap();
    let identity = net.identity("h2");
    let peer = std::thread::scope(|scope| {
        scope.spawn(|| {
            there.block_on(async {
                let socket =
                    Transport::connector(&identity, "127.0.0.1:0".parse().unwrap(), &options).unwrap();
                // Forgotten, not dropped: dropping would say goodbye.
                std::mem::forget(socket.connect("h1", address).await.unwrap());
                std::mem::forget(socket);
            });
        });
        here.block_on(within(accepted.next())).unwrap()
    });
    // From here on nobody runs the other side.
    assert_eq!(here.block_on(within(peer.connection.ended())), End::Silent);
    drop(there);
}

/// Closing with a reason is read on the other side.
#[tokio::test]
async fn a_reason_is_read_by_the_peer() {
    let mut rig = Rig::new(Options::default()).await;
    rig.client_connection.close(Close::Failed, "the disk is full");
    assert_eq!(rig.end_at_server().await, End::Peer("the disk is full".to_owned()));
    assert_eq!(within(rig.client_connection.ended()).await, End::Here);
    assert_eq!(within(rig.client_link.room(0)).await, Err(End::Here));
}

/// A link that is dropped leaves the connection as it is.
#[tokio::test]
async fn dropping_a_link_is_not_the_end() {
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
