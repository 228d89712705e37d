//! Measurements of every setting of the network: the configured value against the behaviour of `route`.

mod classes;
mod delay;
mod faults;
mod limits;
mod losses;
mod monotone;
mod properties;

use volary_actors::base::{Class, Endpoint, Span, Time};
use volary_netem::{Fabric, Faults, Groups, Links, Network, Verdict};

pub(crate) const A: Endpoint = Endpoint(0);
pub(crate) const B: Endpoint = Endpoint(7);
pub(crate) const C: Endpoint = Endpoint(8);

pub(crate) fn network(text: &str) -> Network {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A network of ten endpoints: schedulers 0 and 1, and nodes 0 to 7 from endpoint 2 on.
pub(crate) fn fabric(text: &str) -> Fabric {
    seeded(text, 1)
}

pub(crate) fn seeded(text: &str, seed: u64) -> Fabric {
    let network = network(text);
    let mut groups = Groups::new(10);
    groups.number("scheduler", Endpoint(0), 2);
    groups.number("node", Endpoint(2), 8);
    let faults = Faults::resolve(&network.fault, &groups, 10).unwrap_or_else(|error| panic!("{error}"));
    Fabric::new(&network, Links::uniform(), 10, 2, faults, seed).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

pub(crate) fn at(milliseconds: u64) -> Time {
    Time::ZERO + ms(milliseconds)
}

pub(crate) fn datagram(fabric: &mut Fabric, now: Time) -> Verdict {
    fabric.route(now, A, B, Class::Datagram, 100)
}

pub(crate) fn stream(fabric: &mut Fabric, now: Time) -> Verdict {
    fabric.route(now, A, B, Class::Stream, 100)
}

/// The delay of a verdict that delivers, in seconds.
pub(crate) fn delay(verdict: Verdict) -> Option<f64> {
    match verdict {
        Verdict::Deliver { after, .. } | Verdict::Twice { after, .. } => Some(after.as_secs_f64()),
        Verdict::Drop(_) | Verdict::Unreachable { .. } => None,
    }
}

pub(crate) fn deliver(after: Span, retransmissions: u32) -> Verdict {
    Verdict::Deliver { after, retransmissions }
}

/// Whether a share measured over `n` trials is within 4.5 standard errors of the configured one.
pub(crate) fn close(measured: f64, asked: f64, n: f64) -> bool {
    (measured - asked).abs() <= 4.5 * (asked * (1.0 - asked) / n).sqrt()
}
