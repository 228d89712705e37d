//! Properties that hold for all settings of a network.

use proptest::prelude::*;

use volary_actors::base::{Class, Endpoint, Time};
use volary_netem::{Fabric, Verdict};

use crate::{fabric, seeded};

const EVERYTHING: &str = "
    one_way = { gamma = { shape = 4.0, mean = '10ms' } }
    correlation = 0.5
    loss = { gilbert-elliott = { p = 0.1, r = 0.3, bad_loss = 0.8 } }
    duplicate = 0.1
    reorder = 0.1
    [[fault]]
    partition = { a = ['nodes:0-3'], at = '2s', for = '1s' }
    [[fault]]
    crash = { who = ['node:6'], at = '4s', for = '1s' }
    [[fault]]
    pause = { who = ['node:1'], at = '3s', for = '100ms' }
    [[fault]]
    degrade = { a = ['schedulers'], at = '1s', for = '5s', delay_factor = 2.0, loss = 0.1 }
";

/// A message, given by its time of sending (ms), sender, receiver, and whether it is a stream message.
type Sent = (u64, u32, u32, bool);

fn traffic() -> impl Strategy<Value = Vec<Sent>> {
    let one = (0u64..6000, 0u32..10, 0u32..10, any::<bool>()).prop_filter("to another", |m| m.1 != m.2);
    prop::collection::vec(one, 1..200).prop_map(|mut all| {
        all.sort_unstable();
        all
    })
}

fn send(links: &mut Fabric, &(at, src, dst, stream): &Sent) -> Verdict {
    let class = if stream { Class::Stream } else { Class::Datagram };
    links.route(crate::at(at), Endpoint(src), Endpoint(dst), class, 100)
}

proptest! {
    #[test]
    fn the_same_seed_gives_the_same_fates(messages in traffic(), seed in any::<u64>()) {
        let run = || {
            let mut links = seeded(EVERYTHING, seed);
            let fates: Vec<_> = messages.iter().map(|m| send(&mut links, m)).collect();
            (fates, links.stats().clone())
        };
        prop_assert_eq!(run(), run());
    }

    /// The n-th message of a link meets the same fate whatever other links carry.
    #[test]
    fn the_fate_of_a_message_does_not_depend_on_other_links(messages in traffic(), src in 0u32..10, dst in 0u32..10) {
        prop_assume!(src != dst);
        let ours = |m: &&Sent| m.1 == src && m.2 == dst;
        let mut busy = fabric(EVERYTHING);
        let among = messages.iter().map(|m| (m, send(&mut busy, m))).filter(|(m, _)| ours(m)).map(|(_, fate)| fate);
        let among: Vec<_> = among.collect();
        let mut alone = fabric(EVERYTHING);
        let alone: Vec<_> = messages.iter().filter(ours).map(|m| send(&mut alone, m)).collect();
        prop_assert_eq!(among, alone);
    }

    /// The counts satisfy sent = delivered + dropped + unreachable.
    #[test]
    fn sent_messages_are_delivered_dropped_or_unreachable(messages in traffic(), seed in any::<u64>()) {
        let mut links = seeded(EVERYTHING, seed);
        messages.iter().for_each(|m| { send(&mut links, m); });
        for class in [Class::Datagram, Class::Stream] {
            let accounts = links.stats().of(class);
            let sent = messages.iter().filter(|m| m.3 == (class == Class::Stream)).count() as u64;
            prop_assert_eq!(accounts.sent, sent);
            let away: u64 = accounts.dropped.iter().chain(&accounts.unreachable).sum();
            prop_assert_eq!(accounts.sent, accounts.delivered + away);
        }
    }

    /// Without a rate, a link carries any number of messages at once. Doubling its delay delays each message, and
    /// delays the last arrival by no more.
    #[test]
    fn a_longer_delay_does_not_lower_the_throughput(latency in 1u64..500, messages in 1u64..2000) {
        let mut links = fabric(&format!("one_way = '{latency}ms'"));
        let last = (0..messages).map(|k| {
            let now = Time(k * 1000);
            let fate = links.route(now, crate::A, crate::B, Class::Stream, 1500);
            let Verdict::Deliver { after, .. } = fate else { panic!("{fate:?}") };
            now + after
        }).max();
        prop_assert_eq!(last, Some(Time((messages - 1) * 1000) + crate::ms(latency)));
    }

    /// A stream message that is repeated or undeliverable is decided within the peer timeout.
    #[test]
    fn notices_to_senders_take_at_most_the_peer_timeout(messages in traffic(), seed in any::<u64>()) {
        let mut links = seeded(EVERYTHING, seed);
        for message in &messages {
            match send(&mut links, message) {
                Verdict::Unreachable { after, .. } => prop_assert!(message.3 && after <= crate::ms(10_000)),
                Verdict::Deliver { after, retransmissions } if retransmissions > 0 => {
                    prop_assert!(message.3 && after <= crate::ms(10_000 + 100), "a pause may add 100 ms");
                }
                Verdict::Deliver { .. } => {}
                Verdict::Twice { .. } => prop_assert!(!message.3),
                Verdict::Drop(_) => prop_assert!(!message.3 || message.1 == 8),
            }
        }
    }
}

#[test]
fn an_ideal_network_delivers_at_once_and_keeps_no_state() {
    let mut links = fabric("");
    for dst in 1..10 {
        assert_eq!(
            links.route(Time(5), crate::A, Endpoint(dst), Class::Datagram, 9),
            crate::deliver(crate::ms(0), 0)
        );
    }
    let counted = format!("{:?}", fabric("loss = 0.1")).contains("Counts");
    assert!(counted && format!("{links:?}").contains("states: None"));
}
