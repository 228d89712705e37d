//! Slices of an experiment: parts of its runs that are executed in directories of their own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::number::{count, plural};

/// `--slice I/N`: every N-th run of an experiment, beginning with run I, where the first run is 1. I may be a sum,
/// `J+1/N`, for array jobs that count from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SweepSlice {
    pub of: u32,
    /// Number of the slice, 1 ..= of.
    pub index: u32,
}

impl FromStr for SweepSlice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sum = |text: &str| -> Option<u32> {
            let (first, more) = text.split_once('+').unwrap_or((text, "0"));
            first.parse::<u32>().ok()?.checked_add(more.parse().ok()?)
        };
        let parts = text.split_once('/').and_then(|(i, n)| Some((sum(i)?, n.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Self { index, of }),
            Some((0, of)) if of > 0 => Err(format!(
                "slices are counted from 1, so there is no `{text}`; where an array job counts from 0, write 0+1/{of}"
            )),
            _ => Err(format!("`{text}` is not I/N with 1 <= I <= N, such as 1/4")),
        }
    }
}

/// The slices that a study has, and the number of runs of the whole experiment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slices {
    pub held: Vec<SweepSlice>,
    pub runs: u64,
}

impl SweepSlice {
    /// Whether run number `run` of the experiment, from 0, belongs to the slice.
    fn has(self, run: u64) -> bool {
        run % u64::from(self.of.max(1)) + 1 == u64::from(self.index)
    }
}

impl Slices {
    /// Number of runs of the experiment that belong to none of the slices.
    pub fn left_out(&self) -> u64 {
        (0..self.runs).filter(|&run| !self.held.iter().any(|slice| slice.has(run))).count() as u64
    }

    /// Adds the slices of another folder of the same experiment.
    pub(super) fn unite(mut self, other: Self) -> Self {
        self.held.extend(other.held);
        self.held.sort_unstable();
        self.held.dedup();
        self.runs = self.runs.max(other.runs);
        self
    }

    /// The missing slices, as a sentence.
    pub fn says(&self) -> String {
        let runs = format!("{} of {}", count(self.left_out()), plural(self.runs, "run"));
        let (what, is) = match self.held.as_slice() {
            [SweepSlice { index, of }] => {
                return format!("This is slice {index} of {of}: {runs} are in other slices.");
            }
            [first, rest @ ..] if rest.iter().all(|slice| slice.of == first.of) => {
                let there = |index: &u32| self.held.iter().any(|slice| slice.index == *index);
                let missing: Vec<u32> = (1..=first.of).filter(|index| !there(index)).collect();
                let is = if missing.len() == 1 { "Slice" } else { "Slices" };
                (format!("{is} {} of {}", in_words(&missing), first.of), missing.len() == 1)
            }
            _ => ("Other slices".to_owned(), false),
        };
        format!("{what} {} missing: {runs}.", if is { "is" } else { "are" })
    }
}

/// The slices that the study has, as `1-2 of 50`.
impl fmt::Display for Slices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, slices) in self.held.chunk_by(|a, b| a.of == b.of).enumerate() {
            let indices: Vec<u32> = slices.iter().map(|slice| slice.index).collect();
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{} of {}", in_words(&indices), slices[0].of)?;
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

    fn slices(held: &[(u32, u32)], runs: u64) -> Slices {
        Slices { held: held.iter().map(|&(index, of)| SweepSlice { of, index }).collect(), runs }
    }

    #[test]
    fn a_study_of_some_slices_names_the_missing_slices() {
        let one = slices(&[(1, 50)], 10_000);
        assert_eq!(
            one.says(),
            "This is slice 1 of 50: 9\u{202f}800 of 10\u{202f}000 runs are in other slices."
        );
        let two = one.unite(slices(&[(7, 50)], 10_000));
        assert_eq!(two.to_string(), "1, 7 of 50");
        assert_eq!(two.says(), "Slices 2-6, 8-50 of 50 are missing: 9\u{202f}600 of 10\u{202f}000 runs.");
        let most = slices(&[(1, 3), (2, 3)], 7);
        assert_eq!((most.left_out(), most.says().as_str()), (2, "Slice 3 of 3 is missing: 2 of 7 runs."));
        let all = most.unite(slices(&[(3, 3), (1, 3)], 7));
        assert_eq!((all.left_out(), all.held.len()), (0, 3));
        let mixed = slices(&[(1, 2)], 8).unite(slices(&[(2, 4)], 8));
        assert_eq!((mixed.left_out(), mixed.to_string().as_str()), (2, "1 of 2, 2 of 4"));
        assert!(mixed.unite(slices(&[(4, 4)], 8)).left_out() == 0);
    }
}
