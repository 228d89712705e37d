//! Tests of rates and buffers.

use volary_actors::base::{Class, Time};
use volary_netem::{Cause, Verdict};

use crate::{A, B, C, at, datagram, delay, deliver, fabric, ms, stream};

/// A slow link: 100 bytes take 1 ms at 800 kbit/s.
const SLOW: &str = "one_way = '10ms'\nrate = '800 kbit/s'\n";

#[test]
fn messages_of_a_link_are_sent_one_after_the_other() {
    let mut links = fabric(SLOW);
    assert_eq!(datagram(&mut links, at(0)), deliver(ms(11), 0));
    assert_eq!(stream(&mut links, at(0)), deliver(ms(12), 0), "classes share the link");
    assert_eq!(
        links.route(at(0), B, A, Class::Datagram, 100),
        deliver(ms(11), 0),
        "each direction has a link of its own"
    );
    assert_eq!(datagram(&mut links, at(1)), deliver(ms(12), 0));
    assert_eq!(datagram(&mut links, at(50)), deliver(ms(11), 0), "an idle link adds no wait");
    assert_eq!(
        links.route(at(50), A, B, Class::Datagram, 1000),
        deliver(ms(21), 0),
        "1 ms of waiting for the other message, 10 ms of sending, 10 ms of delay"
    );
}

#[test]
fn messages_of_an_endpoint_leave_its_uplink_one_after_the_other() {
    let mut links = fabric(&format!("{SLOW}uplink = '1600 kbit/s'"));
    let mut sent = |from, to, bytes| links.route(at(0), from, to, Class::Datagram, bytes);
    assert_eq!(sent(A, B, 200), deliver(ms(13), 0), "1 ms at the uplink, and 2 ms at the link");
    assert_eq!(sent(A, C, 400), deliver(ms(17), 0), "3 ms at the uplink, and 4 ms at another link");
    assert_eq!(sent(B, A, 200), deliver(ms(13), 0), "each endpoint has its own");
    assert_eq!(sent(A, B, 200), deliver(ms(16), 0), "4 ms at the uplink; the link is free again");
    assert_eq!(links.route(at(50), A, B, Class::Datagram, 200), deliver(ms(13), 0));
    assert_eq!(links.common_delay(), None);
}

/// Sending takes five seconds at the uplink. Only the receiver's incarnation at the time of sending can get the
/// message.
#[test]
fn a_crash_while_a_message_waits_for_its_uplink_loses_it() {
    for (crashed, class, verdict) in [
        ("node:5", Class::Datagram, Verdict::Drop(Cause::Crash)),
        ("node:5", Class::Stream, Verdict::Unreachable { after: ms(5010), cause: Cause::Crash }),
        ("scheduler:0", Class::Datagram, Verdict::Drop(Cause::Crash)),
    ] {
        let crash = format!("fault = [{{ crash = {{ who = ['{crashed}'], at = '2s', for = '1s' }} }}]\n");
        let mut links = fabric(&format!("one_way = '10ms'\nuplink = '8 kbit/s'\n{crash}"));
        assert_eq!(links.route(at(0), A, B, class, 5000), verdict, "{crashed}, {class:?}");
    }
}

#[test]
fn a_busy_link_has_the_throughput_of_its_rate() {
    let mut links = fabric(SLOW);
    // 2,000 messages a second are offered, and 1,000 fit.
    let last =
        (0..4000u64).filter_map(|k| delay(datagram(&mut links, Time(k * 500_000))).map(|d| (k, d))).last();
    let (k, after) = last.expect("without a buffer limit no message is lost");
    let arrival = k as f64 * 0.0005 + after;
    assert!((4000.0 / (arrival - 0.010) - 1000.0).abs() < 1.0, "{arrival}");
    let queueing: u64 = (1..=4000).map(|k| k * 1_000_000 - (k - 1) * 500_000).sum();
    assert_eq!(links.stats().datagram.queueing_ns, queueing);
}

#[test]
fn a_duplicate_waits_in_the_queue_of_its_link() {
    let mut links = fabric(&format!("{SLOW}duplicate = 1"));
    let twice = |original, copy| Verdict::Twice { after: ms(original), again: ms(copy) };
    assert_eq!(datagram(&mut links, at(0)), twice(11, 12));
    assert_eq!(datagram(&mut links, at(0)), twice(13, 14), "the second follows both copies of the first");
    assert_eq!(stream(&mut links, at(0)), deliver(ms(15), 0), "streams are not duplicated, and wait as well");
    let mut links = fabric(&format!("{SLOW}duplicate = 1\nloss = 1"));
    assert_eq!(datagram(&mut links, at(0)), Verdict::Drop(Cause::Loss));
    assert_eq!(links.stats().datagram.duplicated, 0, "a datagram is lost with its duplicate");
}

#[test]
fn a_full_buffer_can_drop_only_the_duplicate() {
    let mut links = fabric(&format!("{SLOW}duplicate = 1\nbuffer = '2ms'"));
    let fates: Vec<_> = (0..3).map(|_| datagram(&mut links, at(0))).collect();
    let twice = Verdict::Twice { after: ms(11), again: ms(12) };
    assert_eq!(fates, [twice, deliver(ms(13), 0), Verdict::Drop(Cause::Congestion)]);
    let accounts = &links.stats().datagram;
    assert_eq!(
        (accounts.delivered, accounts.duplicated, accounts.dropped[Cause::Congestion as usize]),
        (2, 1, 1)
    );
}

#[test]
fn a_full_buffer_drops_datagrams() {
    for buffer in ["5ms", "500 B"] {
        let mut links = fabric(&format!("{SLOW}buffer = '{buffer}'"));
        let fates: Vec<_> = (0..9).map(|_| datagram(&mut links, at(0))).collect();
        let carried: Vec<_> = (0..6).map(|k| deliver(ms(11 + k), 0)).collect();
        assert_eq!(fates[..6], carried, "one message is sent and five wait");
        assert!(fates[6..].iter().all(|fate| *fate == Verdict::Drop(Cause::Congestion)), "{fates:?}");
        assert_eq!(datagram(&mut links, at(2)), deliver(ms(15), 0), "two messages have left the buffer");
        assert_eq!(links.stats().datagram.dropped[Cause::Congestion as usize], 3);
    }
}

#[test]
fn a_full_buffer_delays_stream_messages() {
    let mut links = fabric(&format!("{SLOW}buffer = '5ms'\nrto = '20ms'"));
    (0..6).for_each(|_| assert!(delay(stream(&mut links, at(0))).is_some()));
    assert_eq!(
        stream(&mut links, at(0)),
        deliver(ms(20 + 1 + 10), 1),
        "the message is repeated when the link is idle again"
    );
    assert_eq!(links.stats().stream.lost[Cause::Congestion as usize], 1);
    // Under overload, messages that do not fit are repeated, never faster than the rate, and all arrive.
    let mut links = fabric(&format!("{SLOW}buffer = '5ms'\nrto = '20ms'\npeer_timeout = '100ms'"));
    let arrivals: Vec<_> = (0..2000u64)
        .map(|k| {
            k as f64 * 5e-4
                + delay(stream(&mut links, Time(k * 500_000)))
                    .expect("congestion does not make the peer unreachable")
        })
        .collect();
    for end in [0.5, 1.0, 1.5] {
        let by_then = arrivals.iter().filter(|&&arrival| arrival <= end + 0.010).count() as f64;
        assert!(by_then <= 1000.0 * end + 6.0, "{by_then} messages in {end} s at 1,000/s");
    }
}
