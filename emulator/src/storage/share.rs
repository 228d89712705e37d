//! The shares of an experiment in a run directory that holds a part of its runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number::{count, plural};

/// Every `of`-th run of an experiment, beginning with the `index`-th; counted from one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SweepShare {
    pub of: u32,
    pub index: u32,
}

/// The shares that are there, and the number of runs of the whole experiment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shares {
    pub held: Vec<SweepShare>,
    pub runs: u64,
}

impl SweepShare {
    /// Whether run number `run` of the experiment, from 0, belongs to it.
    fn has(self, run: u64) -> bool {
        run % u64::from(self.of.max(1)) + 1 == u64::from(self.index)
    }
}

impl Shares {
    /// Number of runs of the experiment that are in none of the shares.
    pub fn left_out(&self) -> u64 {
        (0..self.runs).filter(|&run| !self.held.iter().any(|share| share.has(run))).count() as u64
    }

    /// Adds those of another folder of the same experiment.
    pub(super) fn unite(mut self, other: Self) -> Self {
        self.held.extend(other.held);
        self.held.sort_unstable();
        self.held.dedup();
        self.runs = self.runs.max(other.runs);
        self
    }

    /// What is missing, as a sentence.
    pub fn says(&self) -> String {
        let runs = format!("{} of {}", count(self.left_out()), plural(self.runs, "run"));
        let (what, is) = match self.held.as_slice() {
            [SweepShare { index, of }] => {
                return format!("This is share {index} of {of}: {runs} are in other shares.");
            }
            [first, rest @ ..] if rest.iter().all(|share| share.of == first.of) => {
                let there = |index: &u32| self.held.iter().any(|share| share.index == *index);
                let missing: Vec<u32> = (1..=first.of).filter(|index| !there(index)).collect();
                let is = if missing.len() == 1 { "Share" } else { "Shares" };
                (format!("{is} {} of {}", in_words(&missing), first.of), missing.len() == 1)
            }
            _ => ("Shares beside these".to_owned(), false),
        };
        format!("{what} {} missing: {runs}.", if is { "is" } else { "are" })
    }
}

/// The shares that are there, as `1-2 of 50`.
impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, shares) in self.held.chunk_by(|a, b| a.of == b.of).enumerate() {
            let indices: Vec<u32> = shares.iter().map(|share| share.index).collect();
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{} of {}", in_words(&indices), shares[0].of)?;
        }
        Ok(())
    }
}

/// Ascending numbers as `1, 3-5`.
fn in_words(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(held: &[(u32, u32)], runs: u64) -> Shares {
        Shares { held: held.iter().map(|&(index, of)| SweepShare { of, index }).collect(), runs }
    }

    #[test]
    fn missing_shards_are_named() {
        let one = shares(&[(1, 50)], 10_000);
        assert_eq!(
            one.says(),
            "This is share 1 of 50: 9\u{202f}800 of 10\u{202f}000 runs are in other shares."
        );
        let two = one.unite(shares(&[(7, 50)], 10_000));
        assert_eq!(two.to_string(), "1, 7 of 50");
        assert_eq!(two.says(), "Shares 2-6, 8-50 of 50 are missing: 9\u{202f}600 of 10\u{202f}000 runs.");
        let most = shares(&[(1, 3), (2, 3)], 7);
        assert_eq!((most.left_out(), most.says().as_str()), (2, "Share 3 of 3 is missing: 2 of 7 runs."));
        let all = most.unite(shares(&[(3, 3), (1, 3)], 7));
        assert_eq!((all.left_out(), all.held.len()), (0, 3));
        let mixed = shares(&[(1, 2)], 8).unite(shares(&[(2, 4)], 8));
        assert_eq!((mixed.left_out(), mixed.to_string().as_str()), (2, "1 of 2, 2 of 4"));
        assert!(mixed.unite(shares(&[(4, 4)], 8)).left_out() == 0);
    }
}
