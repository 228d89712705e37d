//! The handshakes that a listening socket has under way: a limited number of places, and their replacement.
//!
//! Anyone who can send a datagram can begin a handshake without ending it, so places are limited. A peer whose address
//! is not proved has one only while few are taken; otherwise it is asked to come again with a token that only the true
//! holder of the address receives (RFC 9000, section 8.1). When all places are taken, the peer with the most of them
//! loses its oldest handshake, so that a flood from one address displaces its own handshakes first.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use tokio::sync::oneshot;

use super::config::Options;

/// The decision about a handshake that begins.
#[derive(Debug)]
pub(super) enum Admission {
    /// It has a place until the receiver is dropped. A message or an error there takes the place back.
    Place(oneshot::Receiver<()>),
    /// The peer must prove its address first.
    Prove,
}

/// The handshakes under way, the oldest first.
#[derive(Debug)]
pub(super) struct Handshakes {
    most: usize,
    per_address: usize,
    unproved: usize,
    under_way: VecDeque<Handshake>,
}

#[derive(Debug)]
struct Handshake {
    source: IpAddr,
    /// Dropped to take the place back; closed once the handshake is over.
    place: oneshot::Sender<()>,
}

impl Handshakes {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            most: options.max_incoming.max(1),
            per_address: options.max_per_address.max(1),
            unproved: options.max_unproved,
            under_way: VecDeque::new(),
        }
    }

    /// Decides about a handshake that begins, from this address, which may be `proved`.
    pub(super) fn admit(&mut self, address: IpAddr, proved: bool) -> Admission {
        self.under_way.retain(|handshake| !handshake.place.is_closed());
        if !proved && self.under_way.len() >= self.unproved {
            return Admission::Prove;
        }
        let source = network(address);
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        self.under_way.iter().for_each(|handshake| *counts.entry(handshake.source).or_default() += 1);
        let most = if counts.get(&source).is_some_and(|&count| count >= self.per_address) {
            Some(source)
        } else if self.under_way.len() >= self.most {
            // Ties: the source with the oldest handshake, or some addresses would give way every time.
            let sources = self.under_way.iter().rev().map(|handshake| handshake.source);
            sources.max_by_key(|source| counts[source])
        } else {
            None
        };
        let oldest = self.under_way.iter().position(|handshake| Some(handshake.source) == most);
        oldest.and_then(|oldest| self.under_way.remove(oldest));
        let (place, receiver) = oneshot::channel();
        self.under_way.push_back(Handshake { source, place });
        Admission::Place(receiver)
    }
}

/// The addresses of one holder: of IPv6, the 64 bits that providers give to one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use oneshot::error::TryRecvError;

    use super::*;

    fn handshakes(max_incoming: usize, max_per_address: usize, max_unproved: usize) -> Handshakes {
        Handshakes::new(&Options { max_incoming, max_per_address, max_unproved, ..Options::default() })
    }

    /// A place of a peer with a proved address.
    fn place(handshakes: &mut Handshakes, address: &str) -> oneshot::Receiver<()> {
        match handshakes.admit(address.parse().unwrap(), true) {
            Admission::Place(place) => place,
            Admission::Prove => panic!("{address} is proved"),
        }
    }

    /// Whether each still has its place.
    fn kept<const N: usize>(places: [&mut oneshot::Receiver<()>; N]) -> [bool; N] {
        places.map(|place| place.try_recv() == Err(TryRecvError::Empty))
    }

    #[test]
    fn unproved_addresses_have_few_places() {
        let mut handshakes = handshakes(10, 10, 2);
        let admitted: Vec<_> = (1..=4)
            .map(|i| handshakes.admit(IpAddr::from([10, 0, 0, i]), false))
            .filter(|admission| matches!(admission, Admission::Place(_)))
            .collect();
        assert_eq!(admitted.len(), 2);
        // A peer with a proved address comes through, and what is over takes no place.
        let mut proved = place(&mut handshakes, "10.0.0.9");
        assert_eq!(kept([&mut proved]), [true]);
        drop((admitted, proved));
        assert!(matches!(handshakes.admit(IpAddr::from([10, 0, 0, 5]), false), Admission::Place(_)));
    }

    #[test]
    fn the_oldest_handshake_of_the_busiest_address_gives_way() {
        let mut handshakes = handshakes(4, 3, 0);
        let [mut a, mut b, mut c] = ["10.0.0.1", "10.0.0.2", "10.0.0.2"].map(|at| place(&mut handshakes, at));
        let mut d = place(&mut handshakes, "10.0.0.3");
        let mut e = place(&mut handshakes, "10.0.0.4");
        assert_eq!(kept([&mut a, &mut b, &mut c, &mut d, &mut e]), [true, false, true, true, true]);
        assert_eq!(handshakes.under_way.len(), 4);
    }

    #[test]
    fn an_address_competes_with_itself_beyond_its_share() {
        let mut handshakes = handshakes(100, 2, 0);
        // The addresses of one customer, and the two forms of one address.
        for (addresses, other) in [
            (["2001:db8::1", "2001:db8::2", "2001:db8::3"], "2001:db8:0:1::1"),
            (["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"], "10.0.0.2"),
        ] {
            let mut other = place(&mut handshakes, other);
            let [mut a, mut b, mut c] = addresses.map(|at| place(&mut handshakes, at));
            assert_eq!(kept([&mut other, &mut a, &mut b, &mut c]), [true, false, true, true]);
        }
    }
}
