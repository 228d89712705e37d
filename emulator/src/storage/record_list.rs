//! The records of a study in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use volary_engine::results::Summary;

use super::perfetto::RUNS;
use super::run_record::RunRecord;
use super::study::cell_key;

/// Number of the first runs of an experiment that keep their timelines in memory: one more than the file of timelines
/// shows, so that it knows that it is cut.
pub(super) const TIMELINES: usize = RUNS + 1;

/// Policy and cell of a run.
pub(super) type PointKey = (String, String);

/// The policy and the cell of a run, as a key.
pub(super) fn point_key(Summary { policy, cell, .. }: &Summary) -> PointKey {
    (policy.clone(), cell_key(cell))
}

/// Records of which those keep their timelines that are drawn: the first in each policy and cell by their seeds, and
/// the first few. A timeline takes far more memory than the rest, and a wide sweep has many thousand runs.
#[derive(Debug, Default)]
pub(super) struct RecordList {
    records: Vec<RunRecord>,
    /// The first run of a policy in a cell so far.
    first: BTreeMap<PointKey, FirstRun>,
}

#[derive(Clone, Copy, Debug)]
struct FirstRun {
    seed: u64,
    /// Its index in the list.
    at: usize,
    /// Whether it keeps its timeline in any case.
    is_early: bool,
}

impl RecordList {
    /// Adds a record; `is_early` says whether it is one of the first few of the experiment.
    pub(super) fn push(&mut self, mut record: RunRecord, is_early: bool) {
        let run = FirstRun { seed: record.summary.seed, at: self.records.len(), is_early };
        match self.first.entry(point_key(&record.summary)) {
            Entry::Vacant(free) => {
                free.insert(run);
            }
            Entry::Occupied(mut known) if run.seed < known.get().seed => {
                let earlier = known.insert(run);
                if !earlier.is_early {
                    self.records[earlier.at].drop_timeline();
                }
            }
            Entry::Occupied(_) if is_early => {}
            Entry::Occupied(_) => record.drop_timeline(),
        }
        self.records.push(record);
    }

    /// All records, in the order in which they were added.
    pub(super) fn into_records(self) -> Vec<RunRecord> {
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
        let record = |policy, seed| RunRecord::new("r", &measured(policy, &[], seed, 1.0, 2));
        for (policy, seed, is_early) in [
            ("a", 1, true),
            ("a", 2, true),
            ("a", 3, false),
            ("b", 7, false),
            ("b", 9, false),
            ("b", 5, false),
        ] {
            list.push(record(policy, seed), is_early);
        }
        let has_one: Vec<bool> =
            list.into_records().iter().map(|record| !record.timeline.is_empty()).collect();
        assert_eq!(has_one, [true, true, false, false, false, true], "of b the run with the lowest seed");
    }
}
