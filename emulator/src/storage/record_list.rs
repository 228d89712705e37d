//! The records of a study in memory.

use std::collections::BTreeMap;

use volary_engine::results::Summary;

use super::cell::CellRecord;
use super::perfetto::RUNS;

/// Number of runs whose timelines are kept in memory, in the order in which they are added; with one more than the file
/// of timelines shows, so that it knows that it is cut.
const TIMELINES: usize = RUNS + 1;

/// Policy and cell of a run.
pub(super) type PointKey = (String, String);

/// The policy and the cell of a run, as a key.
pub(super) fn point_key(Summary { policy, cell, .. }: &Summary) -> PointKey {
    (policy.clone(), serde_json::to_string(cell).unwrap_or_default())
}

/// Records of which those keep their timelines that are drawn: the first in each policy and cell by their seeds, and
/// the first few. A timeline takes far more memory than the rest, and a wide sweep has many thousand runs.
#[derive(Debug, Default)]
pub(super) struct RecordList {
    records: Vec<CellRecord>,
    /// Seed and index of the first run of a policy in a cell so far.
    first: BTreeMap<PointKey, (u64, usize)>,
}

impl RecordList {
    pub(super) fn push(&mut self, record: CellRecord) {
        let (seed, index) = (record.summary.seed, self.records.len());
        let earlier = self.first.entry(point_key(&record.summary)).or_insert((seed, index));
        let dropped = match *earlier {
            (_, of_same) if of_same == index => None,
            (first, at) if seed < first => {
                *earlier = (seed, index);
                Some(at)
            }
            _ => Some(index),
        };
        self.records.push(record);
        if let Some(at) = dropped.filter(|at| *at >= TIMELINES) {
            self.records[at].drop_timeline();
        }
    }

    /// All records, in the order in which they were added.
    pub(super) fn into_records(self) -> Vec<CellRecord> {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;

    #[test]
    fn drawn_runs_keep_their_timelines() {
        let mut list = RecordList::default();
        let record = |policy, seed| CellRecord::new("r", &measured(policy, &[], seed, 1.0, 2));
        (0..TIMELINES as u64).for_each(|seed| list.push(record("a", seed)));
        for (policy, seed) in [("a", TIMELINES as u64), ("b", 7), ("b", 9), ("b", 5)] {
            list.push(record(policy, seed));
        }
        let has_one: Vec<bool> =
            list.into_records().iter().map(|record| !record.timeline.is_empty()).collect();
        assert!(has_one[..TIMELINES].iter().all(|has| *has));
        assert_eq!(has_one[TIMELINES..], [false, false, false, true], "of b the run with the lowest seed");
    }
}
