//! Numbers of datagrams: which came, came again, or did not come.

/// Datagrams further behind the newest than this are taken for repeated.
const WINDOW: u64 = 64;

/// What a sequence number turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// It is new.
    New,
    /// It came before, or so long ago that nobody knows.
    Again,
}

/// A sliding window over sequence numbers, as in IPsec (RFC 4303, section 3.4.3).
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    newest: u64,
    /// Bit `i`: whether `newest - i` came.
    recent: u64,
    came: u64,
}

impl Sequence {
    /// Takes note of a number.
    pub(super) fn see(&mut self, number: u64) -> Seen {
        if self.came == 0 || number > self.newest {
            let ahead = number - self.newest;
            self.recent = if ahead < WINDOW { self.recent << ahead | 1 } else { 1 };
            self.newest = number;
        } else {
            let behind = self.newest - number;
            if behind >= WINDOW || self.recent >> behind & 1 == 1 {
                return Seen::Again;
            }
            self.recent |= 1 << behind;
        }
        self.came += 1;
        Seen::New
    }

    /// How many numbers below the largest have not come so far.
    pub(super) fn missing(&self) -> u64 {
        // In this order, as the largest may be the last there is.
        if self.came == 0 { 0 } else { self.newest - (self.came - 1) }
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
        let seen = [0, 1, 4, 4, 2, 2, 3].map(|number| sequence.see(number));
        use Seen::{Again, New};
        assert_eq!(seen, [New, New, New, Again, New, Again, New]);
        assert_eq!(sequence.missing(), 0);
        assert_eq!(sequence.see(200), New);
        assert_eq!(sequence.missing(), 195);
        assert_eq!(sequence.see(100), Again, "too long ago to know");
        assert_eq!([u64::MAX, u64::MAX].map(|number| sequence.see(number)), [New, Again]);
    }

    proptest! {
        /// Beside a set that remembers everything: what is new here is new there, and what is within the window
        /// is judged alike.
        #[test]
        fn agrees_with_a_set(numbers in proptest::collection::vec(0_u64..300, 0..400)) {
            let (mut sequence, mut all, mut newest) = (Sequence::default(), BTreeSet::new(), 0);
            for number in numbers {
                newest = newest.max(number);
                let unknown = !all.contains(&number) && newest - number < WINDOW;
                prop_assert_eq!(sequence.see(number) == Seen::New, unknown);
                if unknown {
                    all.insert(number);
                }
            }
            let upto = all.last().map_or(0, |last| last + 1);
            prop_assert_eq!(sequence.missing(), upto - all.len() as u64);
        }
    }
}
