//! The tables of a study: jobs, copies, samples of caches and decisions, and stretches of real cores.
//!
//! One description of each table determines its rows in the log of runs, and its files for other programs.

use std::sync::Arc;

use volary_engine::results::{CacheRow, CopyEnd, CopyRow, CoreRow, DecisionRow, JobRow, Measured, SlowRow};

use super::columns::{Kind, Values};

/// Number of rows that are stored together in the log of runs, and in a full row group of Parquet.
pub(super) const GROUP_ROWS: usize = 1 << 16;

/// A row of a table.
pub trait TableRow: Sized {
    /// The kind of the table.
    const KIND: TableKind;

    /// Columns of these rows.
    fn columns(rows: &[Self]) -> Vec<Values>;

    /// Rows of these columns; `None` if the columns are of another table.
    fn rows(columns: &[Values]) -> Option<Vec<Self>>;
}

/// Declares the tables, each with its file, its rows among the [measurements](Measured), and a line per column: the
/// type in the file, the field of the row, and the meaning. Times in rows are emulated seconds from the run's start.
macro_rules! tables {
    ($($(#[doc = $doc:literal])* $table:ident $name:literal, $rows:ident: $row:ident {
        $($column:literal: $kind:ident = $field:ident, $meaning:literal;)*
    })*) => {
        /// The kinds of rows; each kind has a file.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TableKind {
            $($(#[doc = $doc])* $table,)*
        }

        impl TableKind {
            /// All kinds of rows.
            pub const ALL: &[Self] = &[$(Self::$table),*];

            /// Name of the file without suffix.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $name,)*
                }
            }

            /// The meaning of a row.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$table => concat!($($doc),*),)*
                }
            }

            /// The columns after the labels, with their types and meanings.
            pub(super) const fn own_columns(self) -> &'static [OwnColumn] {
                match self {
                    $(Self::$table => &[$(($column, $kind, $meaning)),*],)*
                }
            }

            /// The rows of a run, in chunks of at most [`GROUP_ROWS`].
            pub(super) fn chunks(self, measured: &Measured) -> Vec<Vec<Values>> {
                match self {
                    $(Self::$table => measured.$rows.chunks(GROUP_ROWS).map($row::columns).collect(),)*
                }
            }
        }

        $(impl TableRow for $row {
            const KIND: TableKind = TableKind::$table;

            fn columns(rows: &[Self]) -> Vec<Values> {
                let mut columns: Vec<Values> = Self::KIND.types().map(|(kind, _)| kind.values()).collect();
                for row in rows {
                    let mut columns = columns.iter_mut();
                    $(if let Some(column) = columns.next() {
                        Clone::clone(&row.$field).store(column);
                    })*
                }
                columns
            }

            fn rows(columns: &[Values]) -> Option<Vec<Self>> {
                let count = columns.first()?.len();
                let row = |row: usize| {
                    let mut columns = columns.iter();
                    Some(Self { $($field: Stored::load(columns.next()?, row)?,)* })
                };
                (0..count).map(row).collect()
            }
        })*
    };
}

/// Name, type and meaning of a column.
pub(super) type OwnColumn = (&'static str, OwnType, &'static str);
/// The type of a column, and whether a number that is not finite is null.
type OwnType = (Kind, bool);

const INTEGER: OwnType = (Kind::Integer, false);
const NUMBER: OwnType = (Kind::Number, false);
const OPTIONAL: OwnType = (Kind::Number, true);
const TEXT: OwnType = (Kind::Text, false);

tables! {
    /// A job.
    Jobs "jobs", jobs: JobRow {
        "job": INTEGER = job, "number of the job";
        "arrival_s": NUMBER = arrival, "arrival at its client, s";
        "wait_s": OPTIONAL = wait, "time from its arrival to the start of its first task, s; null if none started";
        "response_s": OPTIONAL = response, "response time, s; null if it did not finish";
        "longest_s": NUMBER = longest, "work of its longest task on a healthy core, s; for a job with stages, the sum along its critical path";
        "alone_s": OPTIONAL = alone, "response time alone in the cluster, s; null if the workload does not state it";
        "tasks": INTEGER = tasks, "number of tasks, of all its stages";
        "class": TEXT = class, "label of its class; `short` if the workload has no classes";
    }

    /// A stretch of a copy of a task on a core, for a sample of the jobs: one in `sampled_one_in` (summary.jsonl).
    Tasks "tasks", copies: CopyRow {
        "job": INTEGER = job, "number of the job";
        "task": INTEGER = task, "number of the task in the job; tasks of earlier stages come first";
        "attempt": INTEGER = attempt, "number of the copy in the task";
        "core": INTEGER = core, "core, among all cores of the cluster";
        "start_s": NUMBER = start, "start of the stretch, s";
        "end_s": NUMBER = end, "end of the stretch, s";
        "end": TEXT = end_kind, "how it ended: first (of its task to finish), second, preempted, suspended, lost, in-progress";
    }

    /// A stretch in which a core was slow while it executed one of the copies in tasks.parquet; at most 65,536 per run.
    Slowdowns "slowdowns", slow: SlowRow {
        "core": INTEGER = core, "core, among all cores of the cluster";
        "start_s": NUMBER = start, "start of the stretch, s";
        "end_s": NUMBER = end, "end of the stretch, s";
        "slowdown": NUMBER = slowdown, "slowdown of the core: 2 means half of its healthy speed";
    }

    /// A sample of the cache of a receiver; means and maxima are over sources.
    Staleness "staleness", looks: CacheRow {
        "time_s": NUMBER = time, "time of the sample, s";
        "receiver": INTEGER = receiver, "number of the scheduler or node that keeps the cache";
        "age_of_synchronisation_s": NUMBER = age, "mean age of the oldest update that it lacks, s; 0 in sync";
        "age_of_synchronisation_max_s": NUMBER = age_max, "largest age of synchronisation, s";
        "out_of_sync": NUMBER = out_of_sync, "share of the sources about which it lacks an update";
        "version_age": NUMBER = versions, "mean number of updates that it lacks about a source";
        "age_of_information_s": OPTIONAL = information, "mean age of the newest snapshot that arrived, s; null without snapshots";
        "error_s": OPTIONAL = error, "mean absolute difference between cached and true work, s; null where it is not measured";
        "bias_s": OPTIONAL = bias, "mean of cached less true work, s; null where it is not measured";
        "error_max_s": OPTIONAL = error_max, "the largest error, s; null where it is not measured";
        "in_flight": INTEGER = in_flight, "number of updates about all sources that it lacks";
    }

    /// A sampled decision by a cache.
    Decisions "decisions", decisions: DecisionRow {
        "time_s": NUMBER = time, "time of the decision, s";
        "scheduler": INTEGER = scheduler, "number of the scheduler";
        "node": INTEGER = node, "number of the node that was chosen";
        "best_node": INTEGER = best, "number of the node where the task would have waited least";
        "age_of_synchronisation_s": NUMBER = age, "age of the oldest update about the node that the scheduler lacked, s; 0 in sync";
        "best_age_of_synchronisation_s": NUMBER = age_best, "the same for the best node, s";
        "age_of_information_s": OPTIONAL = information, "age of the newest snapshot of the node that arrived, s; null without snapshots";
        "best_age_of_information_s": OPTIONAL = information_best, "the same for the best node, s";
        "version_age": INTEGER = versions, "number of updates about the node that the scheduler lacked";
        "best_version_age": INTEGER = versions_best, "the same for the best node";
        "believed_wait_s": NUMBER = believed, "wait at the node according to the cache, s";
        "true_wait_s": NUMBER = wait, "true wait at the node, s";
        "regret_s": NUMBER = regret, "true wait at the node less that at the best node, s";
    }

    /// A stretch of a real core under one slowdown; only for runs whose copies burned real cores.
    Cores "cores", cores: CoreRow {
        "core": INTEGER = core, "core, among all cores of the cluster";
        "start_s": NUMBER = start, "start of the stretch, s";
        "end_s": NUMBER = end, "end of the stretch, s";
        "asked": NUMBER = asked, "requested slowdown";
        "had_s": NUMBER = had, "time with a copy, s";
        "done_s": NUMBER = done, "work done, s of a healthy core; the achieved slowdown is the sum of had_s divided by the sum of done_s";
    }
}

/// A value of a row that is stored in a column.
trait Stored: Sized {
    fn store(self, column: &mut Values);
    /// Reads a value of a row; `None` if the column is of another type.
    fn load(column: &Values, row: usize) -> Option<Self>;
}

macro_rules! stored_integers {
    ($($integer:ty),*) => {
        $(impl Stored for $integer {
            fn store(self, column: &mut Values) {
                if let Values::Integers(integers) = column {
                    integers.push(self.try_into().unwrap_or(i64::MAX));
                }
            }

            fn load(column: &Values, row: usize) -> Option<Self> {
                if let Values::Integers(integers) = column { (*integers.get(row)?).try_into().ok() } else { None }
            }
        })*
    };
}

stored_integers!(u32, u64);

impl Stored for f64 {
    fn store(self, column: &mut Values) {
        if let Values::Numbers(numbers) = column {
            numbers.push(self);
        }
    }

    fn load(column: &Values, row: usize) -> Option<Self> {
        if let Values::Numbers(numbers) = column { numbers.get(row).copied() } else { None }
    }
}

impl Stored for Option<f64> {
    fn store(self, column: &mut Values) {
        self.unwrap_or(f64::NAN).store(column);
    }

    fn load(column: &Values, row: usize) -> Option<Self> {
        f64::load(column, row).map(|number| Some(number).filter(|number| !number.is_nan()))
    }
}

impl Stored for Arc<str> {
    fn store(self, column: &mut Values) {
        if let Values::Texts(texts) = column {
            texts.push(&self);
        }
    }

    fn load(column: &Values, row: usize) -> Option<Self> {
        if let Values::Texts(texts) = column { texts.get(row).map(Self::from) } else { None }
    }
}

impl Stored for CopyEnd {
    fn store(self, column: &mut Values) {
        if let Values::Texts(texts) = column {
            texts.push(end_name(self));
        }
    }

    fn load(column: &Values, row: usize) -> Option<Self> {
        let Values::Texts(texts) = column else { return None };
        let text = texts.get(row)?;
        Self::ALL.into_iter().find(|end| end_name(*end) == text)
    }
}

/// The word for the end of a copy, in files and pictures.
pub const fn end_name(end: CopyEnd) -> &'static str {
    match end {
        CopyEnd::First => "first",
        CopyEnd::Second => "second",
        CopyEnd::Preempted => "preempted",
        CopyEnd::Suspended => "suspended",
        CopyEnd::Lost => "lost",
        CopyEnd::InProgress => "in-progress",
    }
}

impl TableKind {
    /// The types of the columns after the labels, and whether they may have nulls.
    pub(super) fn types(self) -> impl Iterator<Item = OwnType> {
        self.own_columns().iter().map(|(_, of, _)| *of)
    }

    /// The columns of a table of this kind with their meanings. Columns of swept values come after the first three.
    pub fn all_meanings(self) -> Vec<(&'static str, &'static str)> {
        let own = self.own_columns().iter().map(|&(name, _, meaning)| (name, meaning));
        RUN.into_iter().chain(own).collect()
    }
}

/// The columns that identify a run, with their meanings.
pub(super) const RUN: [(&str, &str); 3] = [
    ("run", "id of the run, as in manifest.json and summary.jsonl"),
    ("policy", "label of the policy"),
    ("seed", "seed of the run"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;

    /// The rows after a round trip through columns.
    fn again<R: TableRow>(rows: &[R]) -> Vec<R> {
        R::rows(&R::columns(rows)).unwrap()
    }

    #[test]
    fn rows_round_trip_through_columns() {
        let mut run = measured("a", &[], 1, 1.0, 50);
        run.jobs[8].alone = Some(2.5);
        run.copies[0].attempt = u32::MAX;
        run.decisions = vec![DecisionRow { versions: 7, regret: 0.5, ..DecisionRow::default() }];
        assert_eq!(again(&run.jobs), run.jobs);
        assert_eq!(again(&run.copies), run.copies);
        assert_eq!(again(&run.looks), run.looks);
        assert_eq!(again(&run.decisions), run.decisions);
        assert_eq!(again(&run.cores), run.cores);
        run.jobs[7].response = f64::NAN;
        assert!(again(&run.jobs)[7].response.is_nan());
        assert!(JobRow::rows(&CopyRow::columns(&run.copies)).is_none());
    }
}
