//! The progress of a copy.

use serde::{Deserialize, Serialize};

use super::Span;

/// The share of its work that a copy has done, in billionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Score(pub u32);

impl Score {
    /// The score of a copy that has done nothing.
    pub const NONE: Self = Self(0);
    /// The score of a finished copy.
    pub const ALL: Self = Self(1_000_000_000);

    /// The progress of a copy that needs `work` and has `left` of it to do; rounded down, so that only a finished copy
    /// has all.
    #[inline]
    pub fn of(work: Span, left: Span) -> Self {
        let done = u128::from(work.saturating_sub(left).0) * u128::from(Self::ALL.0);
        done.checked_div(u128::from(work.0)).map_or(Self::ALL, |share| Self(share as u32))
    }

    /// Converts to a share between 0 and 1.
    #[inline]
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ALL.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_copies_have_a_full_score() {
        let of = |work, left| Score::of(Span(work), Span(left)).0;
        assert_eq!([of(8, 8), of(8, 2), of(8, 0), of(3, 2)], [0, 750_000_000, 1_000_000_000, 333_333_333]);
        assert_eq!(Score::of(Span::MAX, Span(1)), Score(999_999_999));
        assert_eq!(
            [of(0, 0), of(5, 9)],
            [1_000_000_000, 0],
            "zero work is complete; too much left gives zero"
        );
        assert!((Score(250_000_000).share() - 0.25).abs() < 1e-15);
    }
}
