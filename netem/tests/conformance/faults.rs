//! Tests of faults, in particular of faults that begin while a message is in flight.

use volary_actors::base::{Class, Endpoint, Span};
use volary_netem::{Cause, Fabric, Verdict};

use crate::{A, B, at, close, datagram, deliver, fabric, ms, stream};

/// A network with 10 ms one way, a first timeout of 50 ms, a peer timeout of 1 s, and a fault of node 5, which is
/// endpoint 7.
fn with(fault: &str) -> Fabric {
    fabric(&format!("one_way = '10ms'\nrto = '50ms'\npeer_timeout = '1s'\n[[fault]]\n{fault}"))
}

const LOST: Verdict = Verdict::Drop(Cause::Partition);

fn unreachable(after: Span, cause: Cause) -> Verdict {
    Verdict::Unreachable { after, cause }
}

#[test]
fn partitions_stop_both_directions_and_no_other_link() {
    let mut links = with("partition = { a = ['node:5'], at = '1s', for = '200ms' }");
    let back = |links: &mut Fabric, t| links.route(t, B, A, Class::Datagram, 100);
    assert_eq!(datagram(&mut links, at(989)), deliver(ms(10), 0), "just before the partition");
    assert_eq!(datagram(&mut links, at(995)), LOST, "the message is in flight when the partition begins");
    assert_eq!(datagram(&mut links, at(1100)), LOST);
    assert_eq!(back(&mut links, at(1100)), LOST);
    assert_eq!(links.route(at(1100), A, Endpoint(3), Class::Datagram, 100), deliver(ms(10), 0));
    assert_eq!(datagram(&mut links, at(1199)), LOST);
    assert_eq!(datagram(&mut links, at(1200)), deliver(ms(10), 0), "the partition heals by itself");
    assert_eq!(links.faults().heals_at(), at(1200));
}

#[test]
fn one_way_partitions_stop_only_their_direction() {
    let mut links =
        with("partition = { a = ['schedulers'], b = ['node:5'], at = '1s', for = '1s', one_way = true }");
    assert_eq!(datagram(&mut links, at(1500)), LOST);
    assert_eq!(links.route(at(1500), B, A, Class::Datagram, 100), deliver(ms(10), 0));
    assert_eq!(
        links.route(at(1500), Endpoint(2), B, Class::Datagram, 100),
        deliver(ms(10), 0),
        "the fault does not affect two other nodes"
    );
}

#[test]
fn streams_survive_short_partitions_and_report_long_ones() {
    let mut links = with("partition = { a = ['node:5'], at = '1s', for = '200ms' }");
    // Attempts are at 0, 50, 150 and 350 ms; the partition ends after 200 ms.
    assert_eq!(stream(&mut links, at(1000)), deliver(ms(350 + 10), 3));
    assert_eq!(stream(&mut links, at(995)), deliver(ms(350 + 10), 3), "the first attempt was in flight");
    assert_eq!(stream(&mut links, at(1160)), deliver(ms(50 + 10), 1));
    assert_eq!(links.stats().stream.lost[Cause::Partition as usize], 7);
    let mut links = with("partition = { a = ['node:5'], at = '1s', for = '1h' }");
    assert_eq!(stream(&mut links, at(1000)), unreachable(ms(1000), Cause::Partition));
    assert_eq!(links.stats().stream.unreachable[Cause::Partition as usize], 1);
}

#[test]
fn crashes_lose_messages_in_flight() {
    let mut links = with("crash = { who = ['node:5'], at = '1s', for = '300ms' }");
    assert_eq!(datagram(&mut links, at(980)), deliver(ms(10), 0));
    assert_eq!(
        datagram(&mut links, at(990)),
        Verdict::Drop(Cause::Crash),
        "the message arrives at the moment of the crash"
    );
    assert_eq!(datagram(&mut links, at(1200)), Verdict::Drop(Cause::Crash));
    assert_eq!(datagram(&mut links, at(1295)), deliver(ms(10), 0), "the message arrives after the restart");
    // The message was sent to the old incarnation. Its sender is notified when the new one is back.
    assert_eq!(stream(&mut links, at(995)), unreachable(ms(305), Cause::Crash));
    // The message was sent while the node was down, with attempts at 1000, 1050, 1150 and 1350 ms. The new incarnation
    // does not know the stream.
    assert_eq!(stream(&mut links, at(1000)), unreachable(ms(360), Cause::Crash));
    assert!(!links.faults().alive(B, at(1299)) && links.faults().alive(B, at(1300)));
}

#[test]
fn a_restart_during_a_flight_does_not_deliver_the_message() {
    let mut links = with("crash = { who = ['node:5'], at = '1s', for = '2ms' }");
    assert_eq!(datagram(&mut links, at(995)), Verdict::Drop(Cause::Crash), "sent to the old incarnation");
    assert_eq!(stream(&mut links, at(995)), unreachable(ms(10), Cause::Crash), "reset on arrival");
}

#[test]
fn a_permanent_crash_is_reported_after_the_peer_timeout() {
    let mut links = with("crash = { who = ['node:5'], at = '1s' }");
    assert_eq!(stream(&mut links, at(995)), unreachable(ms(1000), Cause::Crash));
    assert_eq!(stream(&mut links, at(5000)), unreachable(ms(1000), Cause::Crash));
    let crash = links.faults().crashes()[0];
    assert_eq!((crash.who, crash.at, crash.restart), (B, at(1000), None));
}

#[test]
fn a_crashed_sender_does_not_repeat_stream_messages() {
    let mut links = fabric(
        "one_way = '10ms'\nrto = '50ms'\n[[fault]]\npartition = { a = ['node:5'], at = '0s', for = '40ms' }\n\
         [[fault]]\ncrash = { who = ['scheduler:0'], at = '30ms', for = '1s' }",
    );
    assert_eq!(stream(&mut links, at(0)), Verdict::Drop(Cause::Crash));
    assert_eq!(links.stats().stream.dropped[Cause::Crash as usize], 1);
}

#[test]
fn a_pause_holds_deliveries_until_its_end() {
    let mut links = with("pause = { who = ['node:5'], at = '1s', for = '500ms' }");
    assert_eq!(datagram(&mut links, at(985)), deliver(ms(10), 0));
    assert_eq!(datagram(&mut links, at(995)), deliver(ms(505), 0));
    assert_eq!(stream(&mut links, at(1200)), deliver(ms(300), 0));
    assert_eq!(stream(&mut links, at(1495)), deliver(ms(10), 0));
    assert_eq!((links.stats().stream.held, links.stats().datagram.held), (1, 1));
    assert_eq!(links.stats().stream.paused_ns, ms(290).0);
    assert_eq!(links.faults().pauses(B), [(at(1000), at(1500))]);
}

#[test]
fn a_crash_during_a_pause_loses_held_deliveries() {
    let mut links = fabric(
        "one_way = '10ms'\n[[fault]]\npause = { who = ['node:5'], at = '1s', for = '500ms' }\n\
         [[fault]]\ncrash = { who = ['node:5'], at = '1200ms', for = '100ms' }",
    );
    assert_eq!(datagram(&mut links, at(1100)), Verdict::Drop(Cause::Crash));
    assert_eq!(datagram(&mut links, at(1300)), deliver(ms(200), 0));
}

#[test]
fn degraded_links_have_the_configured_factor_and_loss() {
    let mut links =
        with("degrade = { a = ['node:5'], at = '1s', for = '1s', delay_factor = 3.0, loss = 0.2 }");
    assert_eq!(datagram(&mut links, at(999)), deliver(ms(10), 0));
    const N: usize = 50_000;
    let fates: Vec<_> = (0..N).map(|_| datagram(&mut links, at(1500))).collect();
    let lost = fates.iter().filter(|fate| **fate == Verdict::Drop(Cause::Degradation)).count();
    assert!(close(lost as f64 / N as f64, 0.2, N as f64), "{lost}");
    assert!(fates.iter().all(|fate| matches!(fate, Verdict::Drop(_)) || *fate == deliver(ms(30), 0)));
    let repeated = (0..N).filter(|_| stream(&mut links, at(1500)) != deliver(ms(30), 0)).count();
    assert!(close(repeated as f64 / N as f64, 0.2, N as f64), "{repeated}");
    assert_eq!(
        links.route(at(1500), A, Endpoint(3), Class::Datagram, 9),
        deliver(ms(10), 0),
        "other links are not degraded"
    );
    assert_eq!(datagram(&mut links, at(2000)), deliver(ms(10), 0));
}
