//! Benchmark of the time per routed message: `cargo bench -p volary-netem`.
//!
//! One coordinator exchanges messages with each of 10,000 nodes, round after round, so link state is larger than the
//! nearest caches, as in a run.

use std::hint::black_box;
use std::time::Instant;

use volary_actors::base::{Class, Endpoint, Time};
use volary_netem::{Fabric, Faults, Groups, Links, Network};

const ENDPOINTS: u32 = 10_002;
const ROUNDS: u32 = 100;

const CASES: [(&str, &str); 9] = [
    ("ideal", ""),
    ("constant delay", "one_way = '500us'"),
    ("exponential delay", "one_way = { exponential = { mean = '10ms' } }"),
    ("gamma(100) delay", "one_way = { gamma = { shape = 100.0, mean = '10ms' } }"),
    ("constant delay, loss", "one_way = '500us'\nloss = 0.01"),
    (
        "gamma(100), Gilbert-Elliott",
        "one_way = { gamma = { shape = 100.0, mean = '10ms' } }\nloss = { gilbert-elliott = { p = 0.01, r = 0.2 } }",
    ),
    ("gamma(100), correlated", "one_way = { gamma = { shape = 100.0, mean = '10ms' } }\ncorrelation = 0.5"),
    ("constant delay, rate", "one_way = '500us'\nrate = '10 Gbit/s'"),
    (
        "constant delay, a partition",
        "one_way = '500us'\n[[fault]]\npartition = { a = ['node:3'], at = '1h', for = '1s' }",
    ),
];

#[allow(clippy::disallowed_methods, reason = "a bench measures real time")]
fn main() {
    // `cargo test --all-targets` also runs this binary, to check that it works.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { ROUNDS } else { 1 };
    for (name, text) in CASES {
        let network: Network = toml::from_str(text).expect("cases parse");
        let mut groups = Groups::new(ENDPOINTS);
        groups.number("node", Endpoint(2), ENDPOINTS - 2);
        let faults = Faults::resolve(&network.fault, &groups, ENDPOINTS).expect("cases resolve");
        let mut fabric =
            Fabric::new(&network, Links::uniform(), ENDPOINTS, 2, faults, 1).expect("cases are valid");
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            for round in 0..rounds {
                let now = Time(u64::from(round) * 1_000_000);
                for node in 2..ENDPOINTS {
                    black_box(fabric.route(now, Endpoint(0), Endpoint(node), Class::Datagram, 89));
                    black_box(fabric.route(now, Endpoint(node), Endpoint(0), Class::Stream, 89));
                }
            }
            let messages = f64::from(rounds) * f64::from(2 * (ENDPOINTS - 2));
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / messages);
        }
        eprintln!("{name:32} {best:6.1} ns per message");
    }
}
