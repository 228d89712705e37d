//! A set of cores, or of other numbered things, written as `0-5,8`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A set of cores, stored as ranges: a million adjacent cores take two numbers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CoreSet {
    /// First and last core of each range; ranges ascend and are not adjacent.
    runs: Vec<(u32, u32)>,
}

impl CoreSet {
    /// All cores below `count`.
    pub fn below(count: u32) -> Self {
        Self { runs: count.checked_sub(1).map(|last| (0, last)).into_iter().collect() }
    }

    /// Whether the set contains a core.
    pub fn contains(&self, core: u32) -> bool {
        let run = self.runs.partition_point(|&(_, last)| last < core);
        self.runs.get(run).is_some_and(|&(first, _)| first <= core)
    }

    /// Number of cores.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|&(first, last)| u64::from(last - first) + 1).sum()
    }

    /// The highest core.
    pub fn last(&self) -> Option<u32> {
        self.runs.last().map(|&(_, last)| last)
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// All cores in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|&(first, last)| first..=last)
    }

    /// The cores in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::of(self.runs.iter().chain(&other.runs).copied().collect())
    }

    /// The cores in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let common = |&(first, last): &(u32, u32)| {
            let from = other.runs.partition_point(move |run| run.1 < first);
            let overlaps = other.runs[from..].iter().take_while(move |run| run.0 <= last);
            overlaps.map(move |run| (run.0.max(first), run.1.min(last)))
        };
        Self { runs: self.runs.iter().flat_map(common).collect() }
    }

    fn of(mut runs: Vec<(u32, u32)>) -> Self {
        runs.sort_unstable();
        runs.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1.saturating_add(1);
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
        Self { runs }
    }
}

impl FromIterator<u32> for CoreSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cores: I) -> Self {
        Self::of(cores.into_iter().map(|core| (core, core)).collect())
    }
}

impl FromStr for CoreSet {
    type Err = String;

    /// Parses lists such as `3` and `0-5,8`; the empty string is the empty set.
    fn from_str(text: &str) -> Result<Self, String> {
        let run = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |digits: &str| {
                let digits = digits.trim();
                digits
                    .parse::<u32>()
                    .map_err(|_| format!("`{digits}` is not the number of a core; write for example 0-5,8"))
            };
            match (number(first)?, number(last)?) {
                (first, last) if first > last => {
                    Err(format!("{first}-{last} runs backwards; write {last}-{first}"))
                }
                run => Ok(run),
            }
        };
        let parts = text.split(',').filter(|_| !text.trim().is_empty());
        Ok(Self::of(parts.map(run).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.runs.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for CoreSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CoreSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn core_sets_round_trip_through_text_and_errors_name_the_mistake() {
        for (text, printed) in
            [("0-5,8", "0-5,8"), ("8, 1-3,4", "1-4,8"), ("", ""), ("7", "7"), ("2-4,3-9", "2-9")]
        {
            assert_eq!(text.parse::<CoreSet>().unwrap().to_string(), printed, "{text}");
        }
        for (text, words) in
            [("5-3", "write 3-5"), ("x", "`x`"), ("1,,2", "``"), ("-1", "``"), ("1-99999999999", "9999")]
        {
            let error = text.parse::<CoreSet>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!(
            (CoreSet::below(0).to_string(), CoreSet::below(9).to_string()),
            (String::new(), "0-8".to_owned())
        );
    }

    proptest! {
        #[test]
        fn unions_and_intersections_equal_those_of_plain_sets(a in prop::collection::btree_set(0u32..60, 0..30), b in prop::collection::btree_set(0u32..60, 0..30)) {
            let set = |cores: &BTreeSet<u32>| cores.iter().rev().copied().collect::<CoreSet>();
            let (left, right) = (set(&a), set(&b));
            prop_assert!(left.iter().eq(a.iter().copied()));
            prop_assert_eq!((left.count(), left.last()), (a.len() as u64, a.last().copied()));
            prop_assert!((0..61).all(|core| left.contains(core) == a.contains(&core)));
            prop_assert_eq!(left.union(&right), set(&a.union(&b).copied().collect()));
            prop_assert_eq!(left.intersection(&right), set(&a.intersection(&b).copied().collect()));
        }
    }
}
