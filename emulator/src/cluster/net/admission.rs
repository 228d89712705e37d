//! Who may come in: so many handshakes at once, shared fairly among sources, and so many connections of each name.
//!
//! Before the handshake nobody can be told from anybody else but by the address, which QUIC's retry has proved. So a
//! source has its share of the handshakes and no more. Where all are taken, whoever has fewer takes the oldest one
//! of whoever has most, if that one still has more then, or else one that has had its turn. Who is called off is told,
//! and calls again. After the handshake the certificate tells who it is, and connections are counted
//! by name: a host whose key is misused locks out nobody but itself. The controller's do not count among the hosts'.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::endpoint::Options;
use super::identity::CONTROLLER;
use crate::guard::guard;

/// How long a handshake keeps its place, however soon it fails: that bounds what failures cost. One that takes longer
/// gives way when others wait.
const TURN: Duration = Duration::from_secs(1);

/// The handshakes and connections of a socket. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Admission(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    handshakes: usize,
    per_source: usize,
    connections: usize,
    per_name: usize,
    /// Numbers handshakes.
    next: u64,
    /// Handshakes, the oldest first.
    knocking: Vec<Knocking>,
    /// Connections by name.
    inside: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Knocking {
    number: u64,
    source: IpAddr,
    since: Instant,
    /// Dropped to call it off.
    _hold: oneshot::Receiver<Infallible>,
}

/// A handshake's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Knock {
    admission: Admission,
    number: u64,
    since: Instant,
    hold: oneshot::Sender<Infallible>,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    admission: Admission,
    name: String,
}

impl Admission {
    pub(super) fn new(options: &Options) -> Self {
        let &Options { handshakes, per_source, connections, per_name, .. } = options;
        let (knocking, inside) = (Vec::new(), BTreeMap::new());
        let counts = Counts { handshakes, per_source, connections, per_name, next: 0, knocking, inside };
        Self(Arc::new(Mutex::new(counts)))
    }

    /// A place for a handshake with this address, if there is one.
    pub(super) fn knock(&self, address: IpAddr, now: Instant) -> Option<Knock> {
        let source = source(address);
        let mut counts = guard(&self.0);
        if !counts.make_room(source, now) {
            return None;
        }
        let (number, (hold, held)) = (counts.next, oneshot::channel());
        counts.next += 1;
        counts.knocking.push(Knocking { number, source, since: now, _hold: held });
        Some(Knock { admission: self.clone(), number, since: now, hold })
    }

    /// A place for a connection of this name, if there is one.
    pub(super) fn seat(&self, name: &str) -> Option<Seat> {
        let mut counts = guard(&self.0);
        let hosts = counts.inside.iter().filter(|(name, _)| *name != CONTROLLER).map(|(_, count)| count);
        let full = name != CONTROLLER && hosts.sum::<usize>() >= counts.connections;
        let count = counts.inside.get(name).map_or(0, |count| *count);
        if full || count >= counts.per_name {
            return None;
        }
        counts.inside.insert(name.to_owned(), count + 1);
        Some(Seat { admission: self.clone(), name: name.to_owned() })
    }
}

impl Counts {
    /// Whether one more handshake of a source has a place, if need be another's.
    fn make_room(&mut self, source: IpAddr, now: Instant) -> bool {
        let mine = self.of(source);
        let had_turn = |other: &Knocking| now.saturating_duration_since(other.since) >= TURN;
        let gives_way = if mine >= self.per_source {
            self.knocking.iter().position(|other| other.source == source && had_turn(other))
        } else if self.knocking.len() < self.handshakes {
            return true;
        } else {
            // With less between them they would take the place from each other, again and again.
            let most = self.knocking.iter().map(|other| self.of(other.source)).max();
            let greedy = most.filter(|most| *most > mine + 1);
            greedy
                .and_then(|most| self.knocking.iter().position(|other| self.of(other.source) == most))
                .or_else(|| self.knocking.iter().position(had_turn))
        };
        gives_way.map(|oldest| self.knocking.remove(oldest)).is_some()
    }

    fn of(&self, source: IpAddr) -> usize {
        self.knocking.iter().filter(|other| other.source == source).count()
    }
}

impl Knock {
    /// Waits until the place is wanted for another.
    pub(super) async fn called_off(&mut self) {
        self.hold.closed().await;
    }

    /// Keeps the place of a handshake that failed for the rest of its turn, if it still has one.
    pub(super) async fn linger(mut self) {
        // Late is when the turn is over.
        let _ = timeout_at(self.since + TURN, self.called_off()).await;
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        guard(&self.admission.0).knocking.retain(|other| other.number != self.number);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = guard(&self.admission.0);
        if let Some(count) = counts.inside.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.inside.remove(&self.name);
            }
        }
    }
}

/// Who can be told apart by address: of IPv6, whoever has a /64 has all of it.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        IpAddr::V4(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(handshakes: usize, per_source: usize) -> Admission {
        Admission::new(&Options { handshakes, per_source, connections: 5, per_name: 2, ..Options::default() })
    }

    fn at(host: u8) -> IpAddr {
        [10, 0, 0, host].into()
    }

    fn is_called_off(knock: &Knock) -> bool {
        knock.hold.is_closed()
    }

    #[test]
    fn a_source_has_its_share_and_who_had_his_turn_gives_way() {
        let (admission, start) = (admission(8, 2), Instant::now());
        let first = admission.knock(at(1), start).unwrap();
        let second = admission.knock(at(1), start).unwrap();
        assert!(admission.knock(at(1), start).is_none(), "more than its share");
        let other = admission.knock(at(2), start);
        assert!(other.is_some(), "which is nobody else's matter");
        drop(second);
        let third = admission.knock(at(1), start + TURN / 2).unwrap();
        assert!(!is_called_off(&first));
        let fourth = admission.knock(at(1), start + TURN).unwrap();
        assert!(is_called_off(&first), "it has had its turn");
        assert!(admission.knock(at(1), start + TURN).is_none());
        drop((first, third, fourth));
        assert_eq!(guard(&admission.0).knocking.len(), 1, "a place is given back once");
    }

    fn called_off(knocks: &[Knock]) -> Vec<bool> {
        knocks.iter().map(is_called_off).collect()
    }

    #[test]
    fn where_all_is_full_the_modest_goes_before_the_greedy() {
        let (admission, start) = (admission(6, 4), Instant::now());
        let knocks = |host: u8, count: usize| -> Vec<_> {
            (0..count).map(|_| admission.knock(at(host), start).unwrap()).collect()
        };
        let (greedy, also) = (knocks(1, 4), knocks(2, 2));
        let mut modest = knocks(3, 1);
        assert_eq!(called_off(&greedy), [true, false, false, false], "the oldest of the greediest");
        assert!(admission.knock(at(2), start).is_none(), "it would be as greedy then");
        modest.extend(knocks(3, 1));
        assert_eq!(called_off(&greedy), [true, true, false, false]);
        // All have two.
        assert!([1, 2, 3].iter().all(|host| admission.knock(at(*host), start).is_none()));
        let _new = knocks(4, 1);
        assert_eq!(called_off(&greedy), [true, true, true, false], "the oldest of those that have most");
        assert_eq!([called_off(&also), called_off(&modest)], [[false; 2]; 2]);
        assert!(admission.knock(at(4), start).is_none(), "nobody would still have more");
    }

    /// A run of more hosts than places, all of which link up at once.
    #[test]
    fn many_sources_do_not_throw_each_other_out() {
        let (admission, start) = (admission(64, 32), Instant::now());
        let first: Vec<_> = (0..64).map(|host| admission.knock(at(host), start).unwrap()).collect();
        let early = start + TURN / 2;
        assert!((64..200).all(|host| admission.knock(at(host), early).is_none()));
        assert_eq!(called_off(&first), [false; 64]);
        // Those that stall give way in their order.
        let next: Vec<_> = (64..74).map(|host| admission.knock(at(host), start + TURN).unwrap()).collect();
        assert_eq!(called_off(&first), [[true; 10].as_slice(), &[false; 54]].concat());
        assert_eq!(called_off(&next), [false; 10]);
    }

    #[tokio::test]
    async fn who_is_called_off_has_no_place_to_keep() {
        let (admission, start) = (admission(1, 1), Instant::now());
        let mut first = admission.knock(at(1), start).unwrap();
        let _second = admission.knock(at(2), start + TURN).unwrap();
        first.called_off().await;
        first.since += Duration::from_secs(3600);
        let lingered = tokio::time::timeout(Duration::from_secs(60), first.linger()).await;
        assert!(lingered.is_ok(), "it waits for nothing");
    }

    #[test]
    fn a_crowd_behind_one_prefix_is_one_source() {
        let v6 = |text: &str| source(text.parse().unwrap());
        assert_eq!(v6("2001:db8:1:2:3::1"), v6("2001:db8:1:2:4::9"));
        assert_ne!(v6("2001:db8:1:2::1"), v6("2001:db8:1:3::1"));
        assert_eq!(v6("::ffff:10.0.0.1"), at(1));
    }

    #[test]
    fn a_name_has_its_share_and_the_controller_is_not_among_the_hosts() {
        let admission = admission(1, 1);
        let seats: Vec<_> = ["h1", "h1", "h2", "h2", "h3"].map(|name| admission.seat(name).unwrap()).into();
        assert!(admission.seat("h1").is_none(), "more than its share");
        assert!(admission.seat("h4").is_none(), "all seats of hosts are taken");
        let controllers = [CONTROLLER; 2].map(|name| admission.seat(name).unwrap());
        assert!(admission.seat(CONTROLLER).is_none());
        drop(seats);
        assert!(admission.seat("h4").is_some());
        drop(controllers);
        assert!(guard(&admission.0).inside.is_empty(), "nobody is left");
    }
}
