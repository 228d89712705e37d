//! Who may come in: so many handshakes at once, shared fairly among sources, and so many connections of each name.
//!
//! Before the handshake nobody can be told from anybody else but by the address, which QUIC's retry has proved. So a
//! source has its share of the handshakes and no more; where all are taken, whoever has fewest takes the oldest
//! one of whoever has most. After the handshake the certificate tells who it is, and connections are counted
//! by name: a host whose key is misused locks out nobody but itself. The controller's do not count among the hosts'.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::endpoint::Options;
use super::identity::CONTROLLER;
use super::lock;

/// How long a handshake keeps its place, however soon it fails: that bounds what failures cost. One that takes longer
/// gives way when others of its source wait.
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
    _hold: oneshot::Sender<Infallible>,
}

/// A handshake's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Knock {
    admission: Admission,
    number: u64,
    since: Instant,
    hold: oneshot::Receiver<Infallible>,
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
        let mut counts = lock(&self.0);
        if !counts.make_room(source, now) {
            return None;
        }
        let (number, (sender, hold)) = (counts.next, oneshot::channel());
        counts.next += 1;
        counts.knocking.push(Knocking { number, source, since: now, _hold: sender });
        Some(Knock { admission: self.clone(), number, since: now, hold })
    }

    /// A place for a connection of this name, if there is one.
    pub(super) fn seat(&self, name: &str) -> Option<Seat> {
        let mut counts = lock(&self.0);
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
        let most = if mine >= self.per_source {
            Some(source)
        } else if self.knocking.len() >= self.handshakes {
            self.knocking.iter().map(|other| other.source).max_by_key(|other| self.of(*other))
        } else {
            return true;
        };
        let Some(oldest) = self.knocking.iter().position(|other| Some(other.source) == most) else {
            return false;
        };
        let Knocking { source: most, since, .. } = self.knocking[oldest];
        let gives_way = self.of(most) > mine || now.saturating_duration_since(since) >= TURN;
        if gives_way {
            self.knocking.remove(oldest);
        }
        gives_way
    }

    fn of(&self, source: IpAddr) -> usize {
        self.knocking.iter().filter(|other| other.source == source).count()
    }
}

impl Knock {
    /// Waits until the place is wanted for another.
    pub(super) async fn called_off(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.hold).await;
    }

    /// Keeps the place of a handshake that failed for the rest of its turn.
    pub(super) async fn linger(self) {
        sleep_until(self.since + TURN).await;
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        lock(&self.admission.0).knocking.retain(|other| other.number != self.number);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = lock(&self.admission.0);
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

    fn is_called_off(knock: &mut Knock) -> bool {
        knock.hold.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn a_source_has_its_share_and_who_had_his_turn_gives_way() {
        let (admission, start) = (admission(8, 2), Instant::now());
        let mut first = admission.knock(at(1), start).unwrap();
        let second = admission.knock(at(1), start).unwrap();
        assert!(admission.knock(at(1), start).is_none(), "more than its share");
        let other = admission.knock(at(2), start);
        assert!(other.is_some(), "which is nobody else's matter");
        drop(second);
        let third = admission.knock(at(1), start + TURN / 2).unwrap();
        assert!(!is_called_off(&mut first));
        let fourth = admission.knock(at(1), start + TURN).unwrap();
        assert!(is_called_off(&mut first), "it has had its turn");
        assert!(admission.knock(at(1), start + TURN).is_none());
        drop((first, third, fourth));
        assert_eq!(lock(&admission.0).knocking.len(), 1, "a place is given back once");
    }

    #[test]
    fn where_all_is_full_the_modest_goes_before_the_greedy() {
        let (admission, start) = (admission(6, 4), Instant::now());
        let mut greedy: Vec<_> = (0..4).map(|_| admission.knock(at(1), start).unwrap()).collect();
        let mut also: Vec<_> = (0..2).map(|_| admission.knock(at(2), start).unwrap()).collect();
        let _modest = admission.knock(at(3), start).unwrap();
        let called_off = |knocks: &mut [Knock]| knocks.iter_mut().map(is_called_off).collect::<Vec<_>>();
        assert_eq!(called_off(&mut greedy), [true, false, false, false], "the oldest of the greediest");
        let _also = admission.knock(at(2), start).unwrap();
        assert_eq!(called_off(&mut greedy), [true, true, false, false]);
        assert_eq!(called_off(&mut also), [false; 2]);
        assert!(admission.knock(at(2), start).is_none(), "it is the greediest now");
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
        assert!(lock(&admission.0).inside.is_empty(), "nobody is left");
    }
}
