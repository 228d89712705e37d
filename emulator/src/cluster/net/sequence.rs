//! Numbers of parcels in datagrams: which came, came again, or did not come.

use std::collections::VecDeque;

/// Datagrams older than this many later ones are taken for repeated.
const WINDOW: usize = 64;

/// What a datagram turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// It is new.
    New,
    /// It came before, or so long ago that nobody knows.
    Again,
}

/// A sliding window over datagrams, as in IPsec (RFC 4303, section 3.4.3). A datagram bears the number of its first
/// parcel, so that what is missing is counted in parcels.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// First numbers of the latest datagrams, in order.
    recent: VecDeque<u64>,
    /// The number after the largest that came.
    end: u64,
    /// Parcels that came.
    came: u64,
}

impl Sequence {
    /// Takes note of a datagram: the number of its first parcel, and how many it holds.
    pub(super) fn see(&mut self, first: u64, parcels: u64) -> Seen {
        let full = self.recent.len() == WINDOW;
        match self.recent.binary_search(&first) {
            Ok(_) => return Seen::Again,
            Err(0) if full => return Seen::Again,
            Err(at) => self.recent.insert(at, first),
        }
        if full {
            self.recent.pop_front();
        }
        self.came += parcels;
        self.end = self.end.max(first.saturating_add(parcels));
        Seen::New
    }

    /// How many parcels before the latest have not come so far.
    pub(super) fn missing(&self) -> u64 {
        // A liar's numbers overlap.
        self.end.saturating_sub(self.came)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_what_is_lost_repeated_and_late() {
        let mut sequence = Sequence::default();
        use Seen::{Again, New};
        let seen =
            [(0, 2), (2, 1), (8, 5), (8, 5), (3, 3), (3, 3)].map(|(at, count)| sequence.see(at, count));
        assert_eq!(seen, [New, New, New, Again, New, Again]);
        assert_eq!(sequence.missing(), 2, "parcels 6 and 7");
        assert_eq!(sequence.see(6, 2), New);
        assert_eq!(sequence.missing(), 0);
        assert_eq!([u64::MAX, u64::MAX].map(|number| sequence.see(number, 9)), [New, Again]);
    }

    #[test]
    fn what_is_too_old_to_know_came_before() {
        let mut sequence = Sequence::default();
        (1..=WINDOW as u64).for_each(|i| assert_eq!(sequence.see(10 * i, 10), Seen::New));
        assert_eq!(sequence.see(0, 10), Seen::Again);
        assert_eq!(sequence.missing(), 10);
    }

    proptest! {
        /// Beside a set that remembers everything: what is new here is new there, and what is within the window
        /// is judged alike. The n-th datagram holds n % 7 + 1 parcels.
        #[test]
        fn agrees_with_a_set(datagrams in proptest::collection::vec(0_usize..300, 0..400)) {
            let firsts: Vec<u64> = (0..=300).scan(0, |sum, n| {
                let first = *sum;
                *sum += n % 7 + 1;
                Some(first)
            }).collect();
            let (mut sequence, mut all) = (Sequence::default(), BTreeSet::new());
            for n in datagrams {
                let oldest = all.iter().rev().nth(WINDOW - 1);
                let unknown = !all.contains(&n) && oldest.is_none_or(|oldest| n > *oldest);
                prop_assert_eq!(sequence.see(firsts[n], n as u64 % 7 + 1) == Seen::New, unknown);
                if unknown {
                    all.insert(n);
                }
            }
            let upto = all.last().map_or(0, |last| firsts[last + 1]);
            let came: u64 = all.iter().map(|&n| n as u64 % 7 + 1).sum();
            prop_assert_eq!(sequence.missing(), upto - came);
        }
    }
}
