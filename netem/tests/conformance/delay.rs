//! Tests of delay distributions, their correlation, duplicates and reordering.

use volary_actors::base::{Address, DistributionSpec, Purpose, Span, Time};
use volary_netem::{Fabric, Verdict};

use crate::{close, datagram, delay, deliver, fabric, ms, stream};

const N: usize = 20_000;

const DISTRIBUTIONS: [&str; 10] = [
    "{ uniform = { low = '1ms', high = '3ms' } }",
    "{ normal = { mean = '10ms', std = '2ms' } }",
    "{ lognormal = { median = '50us', sigma = 0.5 } }",
    "{ exponential = { mean = '7ms' } }",
    "{ gamma = { shape = 100.0, mean = '10ms' } }",
    "{ erlang = { stages = 3, mean = '2ms' } }",
    "{ pareto = { scale = '1ms', shape = 2.5 } }",
    "{ weibull = { scale = '1ms', shape = 1.5 } }",
    "{ hyperexponential = { means = ['1ms', '20ms'], weights = [3.0, 1.0] } }",
    "{ empirical = { values = ['6ms', '1ms', '2ms'] } }",
];

/// Two-sample Kolmogorov-Smirnov distance, with ties counted once.
fn distance(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let share = |all: &[f64], x: f64| all.partition_point(|y| *y <= x + 2e-9) as f64 / all.len() as f64;
    a.iter().chain(b.iter()).map(|&x| (share(a, x) - share(b, x)).abs()).fold(0.0, f64::max)
}

/// Samples of a distribution that are independent of the network's.
fn reference(distribution: &DistributionSpec<Span>) -> Vec<f64> {
    let base = Address::new(99, Purpose::Tool);
    (0..N as u64).map(|k| distribution.sample(&mut base.at(k).draw()).as_secs_f64()).collect()
}

#[test]
fn delays_follow_the_configured_distribution() {
    for text in DISTRIBUTIONS {
        let asked = crate::network(&format!("one_way = {text}")).one_way;
        let mut links = fabric(&format!("one_way = {text}"));
        let mut measured: Vec<_> = (0..N).filter_map(|_| delay(stream(&mut links, Time::ZERO))).collect();
        assert_eq!(measured.len(), N);
        let gap = distance(&mut measured, &mut reference(&asked));
        // The bound is the 0.1 % point.
        assert!(gap < 1.95 * (2.0 / N as f64).sqrt(), "{text}: distance {gap}");
    }
}

fn correlation(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    x.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n / variance
}

/// Correlation is measured on a normal distribution, where scores and delays are the same up to scale. All
/// distributions are checked to stay the same. This check uses every 20th delay, because it needs independent samples.
#[test]
fn delays_have_the_configured_correlation_and_keep_their_distribution() {
    for asked in [0.0, 0.3, 0.8] {
        let mut links = fabric(&format!(
            "one_way = {{ normal = {{ mean = '10ms', std = '1ms' }} }}\ncorrelation = {asked}"
        ));
        let delays: Vec<_> = (0..N).filter_map(|_| delay(datagram(&mut links, Time::ZERO))).collect();
        let measured = correlation(&delays);
        assert!((measured - asked).abs() < 4.5 / (N as f64).sqrt(), "asked {asked}, measured {measured}");
    }
    for text in DISTRIBUTIONS {
        let asked = crate::network(&format!("one_way = {text}")).one_way;
        let mut links = fabric(&format!("one_way = {text}\ncorrelation = 0.7"));
        let all = (0..20 * N).filter_map(|_| delay(datagram(&mut links, Time::ZERO)));
        let mut measured: Vec<_> = all.step_by(20).collect();
        let gap = distance(&mut measured, &mut reference(&asked));
        assert!(gap < 1.95 * (2.0 / N as f64).sqrt(), "{text}: distance {gap}");
    }
}

#[test]
fn full_correlation_gives_a_link_one_delay() {
    let mut links = fabric("one_way = { exponential = { mean = '5ms' } }\ncorrelation = 1");
    let first = datagram(&mut links, Time::ZERO);
    assert!((0..100).all(|_| datagram(&mut links, Time::ZERO) == first));
    let other = links.route(Time::ZERO, crate::B, crate::A, volary_actors::base::Class::Datagram, 100);
    assert_ne!(other, first, "different links have different delays");
}

/// The delays of a duplicate and of a repetition are correlated with the delay of the message's first transmission.
#[test]
fn further_transmissions_of_a_message_are_correlated_with_it() {
    let distribution = "one_way = { normal = { mean = '10ms', std = '1ms' } }";
    let pairs = |settings: &str, send: fn(&mut Fabric) -> Option<(f64, f64)>| {
        let mut links = fabric(&format!("{distribution}\n{settings}"));
        let pairs: Vec<_> = (0..N).filter_map(|_| send(&mut links)).collect();
        let n = pairs.len() as f64;
        let (x, y): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let centred = |v: &[f64]| v.iter().map(|x| x - v.iter().sum::<f64>() / n).collect::<Vec<_>>();
        let (x, y) = (centred(&x), centred(&y));
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt()
    };
    for asked in [0.0, 0.6, 1.0] {
        let duplicates = pairs(&format!("duplicate = 1\ncorrelation = {asked}"), |links| {
            let Verdict::Twice { after, again } = datagram(links, Time::ZERO) else { return None };
            Some((after.as_secs_f64(), again.as_secs_f64()))
        });
        assert!((duplicates - asked).abs() < 4.5 / (N as f64).sqrt(), "asked {asked}, measured {duplicates}");
        // Pairs of a repetition's delay and the delay of the message after it.
        let repeated = pairs(&format!("loss = 0.5\nrto = '1s'\ncorrelation = {asked}"), |links| {
            let Verdict::Deliver { after, retransmissions: 1 } = stream(links, Time::ZERO) else {
                return None;
            };
            let Verdict::Deliver { after: next, retransmissions: 0 } = stream(links, Time::ZERO) else {
                return None;
            };
            Some((after.as_secs_f64() - 1.0, next.as_secs_f64()))
        });
        // Both delays follow the first transmission of the first message.
        let between = asked * asked;
        assert!((repeated - between).abs() < 0.07, "asked {between}, measured {repeated}");
    }
}

#[test]
fn duplicates_have_the_configured_frequency_and_their_own_delay() {
    let mut links = fabric("one_way = { exponential = { mean = '5ms' } }\nduplicate = 0.1");
    let mut second = Vec::new();
    for _ in 0..20 * N {
        if let Verdict::Twice { after, again } = datagram(&mut links, Time::ZERO) {
            assert_ne!(after, again);
            second.push(again.as_secs_f64());
        }
    }
    assert!(close(second.len() as f64 / (20 * N) as f64, 0.1, (20 * N) as f64), "{}", second.len());
    assert_eq!(links.stats().datagram.duplicated, second.len() as u64);
    let mut asked = reference(&crate::network("one_way = { exponential = { mean = '5ms' } }").one_way);
    let limit = 1.95 * (1.0 / second.len() as f64 + 1.0 / N as f64).sqrt();
    assert!(distance(&mut second, &mut asked) < limit);
    assert!((0..1000).all(|_| matches!(stream(&mut links, Time::ZERO), Verdict::Deliver { .. })));
}

#[test]
fn reordering_holds_back_the_configured_share() {
    let mut links = fabric("one_way = '5ms'\nreorder = 0.2\nreorder_by = '3ms'");
    let held = (0..N).filter(|_| datagram(&mut links, Time::ZERO) == deliver(ms(8), 0)).count();
    let straight = (0..N).filter(|_| datagram(&mut links, Time::ZERO) == deliver(ms(5), 0)).count();
    assert!(close(held as f64 / N as f64, 0.2, N as f64), "{held}");
    assert!(close(straight as f64 / N as f64, 0.8, N as f64), "{straight}");
    assert!((0..1000).all(|_| stream(&mut links, Time::ZERO) == deliver(ms(5), 0)));
    let mut links = fabric("one_way = '5ms'\nreorder = 1");
    assert_eq!(datagram(&mut links, Time::ZERO), deliver(ms(10), 0), "the default is another delay");
}
