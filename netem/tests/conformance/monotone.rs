//! Property that a harsher link never makes a message arrive earlier.
//!
//! The n-th message of a link meets the same draws whatever the settings are, so two runs with the same messages and
//! the same seed can be compared message by message. The harsher run has one setting that is worse: longer delays, more
//! loss, duplicates or reordering, a smaller rate, or a longer or stronger fault.
//!
//! - A **datagram** that arrives in the harsher run arrives in the milder run as well, and not later. This holds for
//!   the original: its duplicate has its own delay, and can come first where delays are random.
//! - A **stream message** obeys the same rule, except that each retransmission draws a new delay, which a degradation
//!   that has ended no longer multiplies. The message can then be earlier by the difference of the two delays. Without
//!   degradation it is never earlier if delays are constant or fully correlated.
//!
//! Two settings are not compared: `p` and `r` of bursts of loss, which only determine when bursts begin and end; and
//! crashes, because a longer delay can carry a message past a crash.

use proptest::prelude::*;

use volary_actors::base::{Class, Endpoint, Span, Time};
use volary_netem::Verdict;

use crate::{ms, seeded};

/// All settings of a link except for crashes.
#[derive(Clone, Debug)]
struct Settings {
    distribution: usize,
    /// Factor on all delays.
    delay: u64,
    correlation: f64,
    bursts: bool,
    loss: f64,
    duplicate: f64,
    reorder: f64,
    reorder_by: Option<u64>,
    /// Rate in bit/s.
    rate: Option<u64>,
    buffer: Option<&'static str>,
    partition: u64,
    pause: u64,
    /// Factor on delays and further loss while the link is degraded.
    degraded: Option<(f64, f64)>,
}

/// Delay distributions, with the milliseconds of the shortest and the longest delay. Numbers in braces are multiplied.
const DISTRIBUTIONS: [(&str, (u64, Option<u64>)); 6] = [
    ("'{10}ms'", (10, Some(10))),
    ("{ uniform = { low = '{5}ms', high = '{25}ms' } }", (5, Some(25))),
    ("{ empirical = { values = ['{6}ms', '{1}ms', '{30}ms'] } }", (1, Some(30))),
    ("{ exponential = { mean = '{10}ms' } }", (0, None)),
    ("{ gamma = { shape = 4.0, mean = '{10}ms' } }", (0, None)),
    ("{ pareto = { scale = '{4}ms', shape = 2.5 } }", (4, None)),
];

impl Settings {
    fn text(&self) -> String {
        let scaled = |distribution: &str| {
            (0..40).fold(distribution.to_owned(), |distribution, n| {
                distribution.replace(&format!("{{{n}}}"), &(n * self.delay).to_string())
            })
        };
        let loss = match self.bursts {
            false => format!("{}", self.loss),
            true => format!(
                "{{ gilbert-elliott = {{ p = 0.2, r = 0.3, good_loss = {}, bad_loss = {} }} }}",
                self.loss / 4.0,
                self.loss
            ),
        };
        let correlation = if self.distribution == 0 { 0.0 } else { self.correlation };
        let mut text = format!(
            "one_way = {}\ncorrelation = {correlation}\nloss = {loss}\nduplicate = {}\nreorder = {}\nrto = '80ms'\n\
             peer_timeout = '3s'\n",
            scaled(DISTRIBUTIONS[self.distribution].0),
            self.duplicate,
            self.reorder
        );
        let mut set = |line: Option<String>| text.extend(line.map(|line| line + "\n"));
        set(self.reorder_by.filter(|_| self.reorder > 0.0).map(|by| format!("reorder_by = '{by}ms'")));
        set(self.rate.map(|rate| format!("rate = '{rate} bit/s'")));
        set(self.buffer.filter(|_| self.rate.is_some()).map(|buffer| format!("buffer = '{buffer}'")));
        set(Some(format!(
            "[[fault]]\npartition = {{ a = ['node:5'], at = '500ms', for = '{}ms' }}\n\
             [[fault]]\npause = {{ who = ['node:5'], at = '900ms', for = '{}ms' }}",
            self.partition, self.pause
        )));
        set(self.degraded.map(|(factor, loss)| {
            format!(
                "[[fault]]\ndegrade = {{ a = ['node:5'], at = '1200ms', for = '300ms', delay_factor = {factor}, \
                 loss = {loss} }}"
            )
        }));
        text
    }

    /// Time by which a message of the class may arrive earlier in the harsher of two runs; `self` has the milder
    /// settings. `None` if there is no limit.
    fn margin(&self, class: Class, harsher: &Self) -> Option<Span> {
        if class == Class::Datagram {
            let sending = self.rate.filter(|_| self.buffer.is_some()).map_or(0.0, |rate| 800.0 / rate as f64);
            return Some(Span::from_secs_f64(sending));
        }
        let (shortest, longest) = DISTRIBUTIONS[self.distribution].1;
        if self.correlation == 1.0 && self.degraded.is_none() {
            return Some(Span::ZERO);
        }
        let longest = (longest? * self.delay) as f64 * self.degraded.map_or(1.0, |(factor, _)| factor);
        Some(Span::from_secs_f64(1e-3 * (longest - (shortest * harsher.delay) as f64).max(0.0)))
    }
}

prop_compose! {
    fn settings()(
        (distribution, delay, correlation) in (0..DISTRIBUTIONS.len(), 1u64..4, prop::sample::select(vec![0.0, 0.5, 1.0])),
        (bursts, loss, duplicate, reorder) in (any::<bool>(), 0.0..0.6, 0.0..0.8, 0.0..0.5),
        reorder_by in prop::option::of(1u64..50),
        rate in prop::option::of(5_000u64..400_000),
        buffer in prop::sample::select(vec![None, Some("20ms"), Some("700 B")]),
        (partition, pause) in (1u64..300, 1u64..300),
        degraded in prop::option::of((1.5..4.0, 0.0..0.5)),
    ) -> Settings {
        Settings {
            distribution, delay, correlation, bursts, loss, duplicate, reorder, reorder_by, rate,
            buffer: buffer.filter(|_| rate.is_some()), partition, pause, degraded,
        }
    }
}

type Change = fn(&mut Settings);

/// Changes that make a link harsher, by name.
const HARSHER: [(&str, Change); 10] = [
    ("longer delays", |s| s.delay += 1),
    ("more loss", |s| s.loss += 0.3),
    ("more duplicates", |s| s.duplicate = 1.0),
    ("more reordering", |s| s.reorder += 0.4),
    ("longer reordering", |s| s.reorder_by = s.reorder_by.map(|by| by * 3)),
    ("a smaller rate", |s| s.rate = Some(s.rate.map_or(100_000, |rate| rate / 3))),
    ("a longer partition", |s| s.partition += 150),
    ("a longer pause", |s| s.pause += 200),
    ("a stronger degradation", |s| s.degraded = s.degraded.map(|(factor, loss)| (factor + 1.0, loss))),
    ("a lossier degradation", |s| s.degraded = s.degraded.map(|(factor, loss)| (factor, loss + 0.4))),
];

/// Time at which the original of each message arrives.
fn arrivals(settings: &Settings, seed: u64, sent: &[(u64, Class)]) -> Vec<Option<Time>> {
    let mut links = seeded(&settings.text(), seed);
    let one = |&(us, class): &(u64, Class)| {
        let now = Time(us * 1000);
        match links.route(now, crate::A, Endpoint(7), class, 100) {
            Verdict::Deliver { after, .. } | Verdict::Twice { after, .. } => Some(now + after),
            Verdict::Drop(_) | Verdict::Unreachable { .. } => None,
        }
    };
    sent.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_harsher_link_lets_no_message_arrive_earlier(
        milder in settings(),
        worse in 0..HARSHER.len(),
        seed in any::<u64>(),
        streams in any::<bool>(),
        mut sent in prop::collection::vec((0u64..2_000_000, any::<bool>()), 1..150),
    ) {
        sent.sort_unstable();
        // Where a buffer drops stream messages, their repetitions come much later and leave room for others.
        let streams = streams && milder.buffer.is_none();
        let class = |stream| if stream && streams { Class::Stream } else { Class::Datagram };
        let sent: Vec<_> = sent.into_iter().map(|(at, stream)| (at, class(stream))).collect();
        let (what, change) = HARSHER[worse];
        let mut harsher = milder.clone();
        change(&mut harsher);
        let pairs = arrivals(&milder, seed, &sent).into_iter().zip(arrivals(&harsher, seed, &sent));
        for (&(us, class), (early, late)) in sent.iter().zip(pairs) {
            let Some(margin) = milder.margin(class, &harsher) else { continue };
            match (early, late) {
                (Some(early), Some(late)) => prop_assert!(
                    late + margin >= early,
                    "{what}: {class:?} of {us} us arrives at {late:?}, not at {early:?}; {milder:?}"
                ),
                // A message that a full buffer dropped can arrive if others were dropped before it.
                (None, Some(_)) => prop_assert!(
                    milder.buffer.is_some(),
                    "{what}: {class:?} of {us} us is lost only in the milder run; {milder:?}"
                ),
                (_, None) => {}
            }
        }
    }

    /// At a link with a rate and constant delays, a duplicate follows its original by the time for sending it.
    #[test]
    fn a_duplicate_comes_after_its_original(
        rate in 1_000u64..1_000_000, latency in 0u64..50, sent in prop::collection::vec(0u64..1000, 1..50),
    ) {
        let mut sent = sent;
        sent.sort_unstable();
        let mut links = seeded(&format!("one_way = '{latency}ms'\nrate = '{rate} bit/s'\nduplicate = 1"), 1);
        for at in sent {
            let fate = links.route(Time::ZERO + ms(at), crate::A, crate::B, Class::Datagram, 100);
            let Verdict::Twice { after, again } = fate else { panic!("{fate:?}") };
            let sending = (800.0 / rate as f64 * 1e9) as u64;
            prop_assert!((again.0 - after.0).abs_diff(sending) <= 1, "after {after}, again {again}");
        }
    }
}
