//! Tests of loss models, and of the retransmissions that losses cause.

use volary_actors::base::{Class, Endpoint, Span, Time};
use volary_netem::{Cause, Verdict};

use crate::{close, datagram, deliver, fabric, ms, stream};

const N: usize = 200_000;

#[test]
fn independent_losses_have_the_configured_rate() {
    let mut links = fabric("loss = 0.05");
    let lost: Vec<_> =
        (0..N).map(|_| datagram(&mut links, Time::ZERO) == Verdict::Drop(Cause::Loss)).collect();
    let share = lost.iter().filter(|&&lost| lost).count() as f64 / N as f64;
    assert!(close(share, 0.05, N as f64), "{share}");
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / N as f64;
    assert!(close(pairs, 0.0025, N as f64), "losses are independent: {pairs}");
    assert_eq!(links.stats().datagram.dropped[Cause::Loss as usize], (share * N as f64).round() as u64);
}

const BURSTS: &str = "loss = { gilbert-elliott = { p = 0.01, r = 0.2 } }";

#[test]
fn gilbert_elliott_losses_have_the_configured_rate_and_burst_length() {
    let mut links = fabric(BURSTS);
    let lost: Vec<_> =
        (0..N).map(|_| datagram(&mut links, Time::ZERO) == Verdict::Drop(Cause::Loss)).collect();
    let share = lost.iter().filter(|&&lost| lost).count() as f64 / N as f64;
    // Successive states are correlated by 1 − p − r. The mean of N states therefore has (2 − p − r)/(p + r) times the
    // variance of independent states.
    let effective = N as f64 * 0.21 / 1.79;
    assert!(close(share, 0.01 / 0.21, effective), "{share}");
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    let length = share * N as f64 / bursts;
    // Burst lengths are geometric with mean 1/r = 5 and variance (1 − r)/r² = 20.
    assert!((length - 5.0).abs() < 4.5 * (20.0 / bursts).sqrt(), "the mean burst length is {length}");
}

#[test]
fn both_gilbert_elliott_states_lose_with_their_configured_probability() {
    let mut links =
        fabric("loss = { gilbert-elliott = { p = 0.1, r = 0.3, good_loss = 0.02, bad_loss = 0.6 } }");
    let lost = (0..N).filter(|_| datagram(&mut links, Time::ZERO) == Verdict::Drop(Cause::Loss)).count();
    let share = lost as f64 / N as f64;
    assert!(close(share, 0.75 * 0.02 + 0.25 * 0.6, N as f64 * 0.4 / 1.6), "{share}");
}

/// Links that carry one message each lose the same share as one link that carries many, because chains start in their
/// stationary distribution.
#[test]
fn links_with_one_message_lose_the_same_share() {
    let links: u32 = 40_000;
    let network = crate::network(BURSTS);
    let mut fabric = volary_netem::Fabric::new(
        &network,
        volary_netem::Links::uniform(),
        links + 1,
        1,
        volary_netem::Faults::default(),
        3,
    )
    .unwrap();
    let lost = (1..=links)
        .filter(|&dst| {
            let verdict = fabric.route(Time::ZERO, Endpoint(0), Endpoint(dst), Class::Datagram, 9);
            verdict == Verdict::Drop(Cause::Loss)
        })
        .count();
    assert!(close(lost as f64 / f64::from(links), 0.01 / 0.21, f64::from(links)), "{lost}");
}

/// With loss p of each attempt, k retransmissions have probability (1 − p) pᵏ, and each k has its own delay.
#[test]
fn lost_stream_messages_arrive_later_by_their_timeouts() {
    let mut links = fabric("one_way = '10ms'\nloss = 0.3\nrto = '50ms'\npeer_timeout = '1h'");
    let mut by_attempts = [0u32; 20];
    for _ in 0..N {
        let Verdict::Deliver { after, retransmissions } = stream(&mut links, Time::ZERO) else {
            panic!("a stream message is not lost")
        };
        // The timeouts are 50 + 100 + 200 + …
        assert_eq!(after, ms(10 + 50 * ((1 << retransmissions) - 1)));
        by_attempts[retransmissions as usize] += 1;
    }
    for (k, &count) in by_attempts.iter().enumerate().take(6) {
        let asked = 0.7 * 0.3f64.powi(k as i32);
        assert!(close(f64::from(count) / N as f64, asked, N as f64), "{k} retransmissions: {count}");
    }
    let accounts = &links.stats().stream;
    assert_eq!(accounts.delivered, N as u64);
    assert_eq!(accounts.retransmissions, accounts.lost[Cause::Loss as usize]);
}

#[test]
fn the_default_timeout_follows_from_the_round_trip() {
    let mut links = fabric("one_way = '10ms'\nloss = 0.5");
    let fates: Vec<_> = (0..100).map(|_| stream(&mut links, Time::ZERO)).collect();
    // The timeout is 20 ms round trip + 1 ms granularity + 25 ms acknowledgement delay; one way takes 10 ms.
    assert!(fates.contains(&deliver(ms(46 + 10), 1)), "{fates:?}");
    assert!(fates.contains(&deliver(ms(46 + 92 + 10), 2)), "{fates:?}");
}

#[test]
fn a_link_that_loses_everything_makes_its_peer_unreachable() {
    let mut links = fabric("one_way = '10ms'\nloss = 1\npeer_timeout = '3s'");
    let verdict = Verdict::Unreachable { after: Span::from_secs(3), cause: Cause::Loss };
    assert_eq!(stream(&mut links, Time::ZERO), verdict);
    assert_eq!(datagram(&mut links, Time::ZERO), Verdict::Drop(Cause::Loss));
    assert_eq!(links.stats().stream.unreachable[Cause::Loss as usize], 1);
}

/// The first repetition begins in the state in which the message was lost, so a burst costs several repetitions.
#[test]
fn a_burst_of_losses_costs_several_repetitions() {
    let retransmitted = |text: &str| {
        let mut links = fabric(&format!("{text}\nrto = '1ms'\npeer_timeout = '1h'"));
        let mut counts = (0.0, 0.0);
        for _ in 0..N {
            if let Verdict::Deliver { retransmissions, .. } = stream(&mut links, Time::ZERO)
                && retransmissions > 0
            {
                counts.0 += 1.0;
                counts.1 += f64::from(retransmissions);
            }
        }
        counts.1 / counts.0
    };
    // In the bad state with r = 0.2 a message needs 5 repetitions on average; with independent losses it needs 1/(1 −
    // p).
    let bursts = retransmitted(BURSTS);
    assert!((bursts - 5.0).abs() < 0.4, "{bursts}");
    let independent = retransmitted("loss = 0.0476");
    assert!((independent - 1.05).abs() < 0.02, "{independent}");
    assert!((crate::network(BURSTS).loss.mean() - 0.01 / 0.21).abs() < 1e-12);
}

/// A stream loses the share that walks of the chain lose; with independent losses this is the probability itself.
#[test]
fn streams_lose_the_share_that_the_loss_model_states() {
    for text in [
        "loss = 0.15",
        BURSTS,
        "loss = { gilbert-elliott = { p = 0.05, r = 0.25, bad_loss = 0.9 } }",
        "loss = { gilbert-elliott = { p = 0.1, r = 0.3, good_loss = 0.02, bad_loss = 0.6 } }",
    ] {
        let mut links = fabric(&format!("{text}\nrto = '1ms'\npeer_timeout = '1h'"));
        for _ in 0..N {
            stream(&mut links, Time::ZERO);
        }
        let accounts = &links.stats().stream;
        let lost = accounts.lost[Cause::Loss as usize] as f64;
        let (share, asked) = (lost / (N as f64 + lost), crate::network(text).loss.of(Class::Stream));
        // Successive messages meet the same state, so the number of independent trials is about a tenth.
        assert!(close(share, asked, N as f64 / 10.0), "{text}: {share} instead of {asked}");
    }
}
