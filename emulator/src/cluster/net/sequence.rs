//! Duplicate and loss detection for numbered datagrams.

use std::collections::VecDeque;

/// Datagrams in the window; older ones count as duplicates.
const WINDOW: usize = 64;

/// A sliding window over datagrams, as in IPsec (RFC 4303, section 3.4.3). A datagram carries the number of its first
/// parcel, so that losses are counted in parcels.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// First numbers of the latest datagrams, sorted.
    recent: VecDeque<u64>,
    /// One more than the largest number received.
    end: u64,
    /// Parcels received.
    received: u64,
}

impl Sequence {
    /// Records a datagram of `parcels` parcels that are numbered from `first`; false if it is a duplicate
    /// or older than the window.
    pub(super) fn is_new(&mut self, first: u64, parcels: u64) -> bool {
        let full = self.recent.len() == WINDOW;
        match self.recent.binary_search(&first) {
            Ok(_) => return false,
            Err(0) if full => return false,
            Err(at) => self.recent.insert(at, first),
        }
        if full {
            self.recent.pop_front();
        }
        self.received += parcels;
        self.end = self.end.max(first.saturating_add(parcels));
        true
    }

    /// Parcels before the latest that have not been received so far.
    pub(super) fn missing(&self) -> u64 {
        // Numbers of a faulty peer may overlap.
        self.end.saturating_sub(self.received)
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
        let new =
            [(0, 2), (2, 1), (8, 5), (8, 5), (3, 3), (3, 3)].map(|(at, count)| sequence.is_new(at, count));
        assert_eq!(new, [true, true, true, false, true, false]);
        assert_eq!(sequence.missing(), 2, "parcels 6 and 7");
        assert!(sequence.is_new(6, 2));
        assert_eq!(sequence.missing(), 0);
        assert_eq!([u64::MAX, u64::MAX].map(|number| sequence.is_new(number, 9)), [true, false]);
    }

    #[test]
    fn datagrams_before_the_window_are_duplicates() {
        let mut sequence = Sequence::default();
        (1..=WINDOW as u64).for_each(|i| assert!(sequence.is_new(10 * i, 10)));
        assert!(!sequence.is_new(0, 10));
        assert_eq!(sequence.missing(), 10);
    }

    proptest! {
        /// Agrees with an unbounded set on every datagram within the window. The n-th datagram holds n % 7 + 1 parcels.
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
                prop_assert_eq!(sequence.is_new(firsts[n], n as u64 % 7 + 1), unknown);
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
