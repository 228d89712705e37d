//! Parquet tables: jobs, executions, samples of caches and decisions, and stretches of real cores.
//!
//! Each run is written to its own part by the thread that ran it. At the end the rows of all runs go into one file
//! (`rows`), behind columns that say which run a row is of (`labels`).

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use ::parquet::data_type::{AsBytes, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::record::{Field, Row};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::{Type, TypePtr};
use flate2::Crc;
use volary_engine::results::{CopyEnd, CopyRow, CoreRow, DecisionRow, JobRow, Measured, StalenessRow};

use super::labels::{self, Labels, properties, write_values};
use super::lost_rows::LostRows;
use super::run_record::RunRecord;

/// A row of a table.
pub trait TableRow: Sized {
    /// The table.
    const KIND: TableKind;

    /// Writes the columns of all rows.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write<W: Write + Send>(rows: &[Self], group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()>;

    /// The checksum of rows, by which damage is found.
    fn sum(rows: &[Self]) -> u32;

    /// Reads a row by the names of its columns.
    ///
    /// # Errors
    /// A column is missing, or of another type.
    fn read(row: &Row) -> Result<Self>;
}

/// The checksums of the rows of a run in each table, by the table's name.
pub(super) fn row_sums(measured: &Measured) -> BTreeMap<String, u32> {
    TableKind::ALL.iter().map(|kind| (kind.name().to_owned(), kind.sum(measured))).collect()
}

/// Declares the tables, each with its file, its rows among the [measurements](Measured), and a line per column: the
/// field of the row, the type in the file, and the meaning. Times in rows are emulated seconds from the run's start.
macro_rules! tables {
    ($($(#[doc = $doc:literal])* $table:ident $name:literal, $rows:ident: $row:ident {
        $($column:literal: $kind:ident = $field:ident, $meaning:literal;)*
    })*) => {
        /// The kinds of rows, with a file each.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TableKind {
            $($(#[doc = $doc])* $table,)*
        }

        impl TableKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$table),*];

            /// Name of the file without suffix.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $name,)*
                }
            }

            /// What a row is.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$table => concat!($($doc),*),)*
                }
            }

            /// The columns after the labels, with their meanings.
            const fn meanings(self) -> &'static [(&'static str, &'static str)] {
                match self {
                    $(Self::$table => &[$(($column, $meaning)),*],)*
                }
            }

            /// The columns after the labels, in the notation of Parquet schemas.
            fn columns(self) -> String {
                match self {
                    $(Self::$table => [$(column_schema::<$kind, _, _>($column, |row: &$row| Clone::clone(&row.$field))),*].concat(),)*
                }
            }

            /// The checksum of the rows of a run.
            pub(super) fn sum(self, measured: &Measured) -> u32 {
                match self {
                    $(Self::$table => $row::sum(&measured.$rows),)*
                }
            }

            fn write_rows<W: Write + Send>(self, file: &mut SerializedFileWriter<W>, measured: &Measured) -> Result<()> {
                match self {
                    $(Self::$table => write_group(file, &measured.$rows),)*
                }
            }
        }

        $(impl TableRow for $row {
            const KIND: TableKind = TableKind::$table;

            fn write<W: Write + Send>(rows: &[Self], group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
                $(write_column::<$kind, _>(group, rows.iter().map(|row| Clone::clone(&row.$field)))?;)*
                Ok(())
            }

            fn sum(rows: &[Self]) -> u32 {
                let mut sum = RowSum::default();
                $(sum_column::<$kind, _>(&mut sum, rows.iter().map(|row| Clone::clone(&row.$field)));)*
                sum.finish()
            }

            fn read(row: &Row) -> Result<Self> {
                Ok(Self { $($field: read_column::<$kind, _>(row, $column)?,)* })
            }
        })*
    };
}

tables! {
    /// A job.
    Jobs "jobs", jobs: JobRow {
        "job": Int64 = job, "number of the job";
        "arrival_s": Double = arrival, "arrival at its client, s";
        "response_s": OptionalDouble = response, "response time, s; null if it did not finish";
        "longest_s": Double = longest, "work of its longest task on a healthy core, s; of a job with stages the sum of that of each";
        "alone_s": OptionalDouble = alone, "response time alone in the cluster, s; null if the workload does not state it";
        "tasks": Int64 = tasks, "number of tasks, of all its stages";
        "class": Label = class, "label of its class; `short` if the workload has no classes";
    }

    /// A stretch of a copy of a task on a core; of a sample of the jobs, one in `sampled_one_in` of summary.jsonl.
    Tasks "tasks", copies: CopyRow {
        "job": Int64 = job, "number of the job";
        "task": Int64 = task, "number of the task in the job; those of later stages follow those of earlier ones";
        "attempt": Int64 = attempt, "number of the copy in the task";
        "core": Int64 = core, "core, among all cores of the cluster";
        "start_s": Double = start, "start of the stretch, s";
        "end_s": Double = end, "end of the stretch, s";
        "end": Words = end_kind, "how it ended: first (of its task to finish), second, preempted, suspended, lost, in-progress";
    }

    /// A sample of what a receiver knows; means and maxima are over sources.
    Staleness "staleness", staleness: StalenessRow {
        "time_s": Double = time, "when the sample was taken, s";
        "receiver": Int64 = receiver, "number of the scheduler or node that knows";
        "age_of_synchronisation_s": Double = age, "mean age of the oldest update that it lacks, s; 0 in sync";
        "age_of_synchronisation_max_s": Double = age_max, "the largest, s";
        "out_of_sync": Double = out_of_sync, "share of the sources about which it lacks an update";
        "version_age": Double = versions, "mean number of updates that it lacks about a source";
        "age_of_information_s": OptionalDouble = information, "mean time since the newest snapshot that arrived was made, s; null without snapshots";
        "error_s": OptionalDouble = error, "mean absolute difference between known and true work, s; null where it is not measured";
        "bias_s": OptionalDouble = bias, "mean of known less true work, s; null where it is not measured";
        "error_max_s": OptionalDouble = error_max, "the largest error, s; null where it is not measured";
        "in_flight": Int64 = in_flight, "number of updates about all sources that it lacks";
    }

    /// A sampled decision by a cache.
    Decisions "decisions", decisions: DecisionRow {
        "time_s": Double = time, "when it was taken, s";
        "scheduler": Int64 = scheduler, "number of the scheduler";
        "node": Int64 = node, "number of the node that was chosen";
        "best_node": Int64 = best, "number of the node where the task would have waited least";
        "age_of_synchronisation_s": Double = age, "age of the oldest update about the node that the scheduler lacked, s; 0 in sync";
        "best_age_of_synchronisation_s": Double = age_best, "the same of the best node, s";
        "age_of_information_s": OptionalDouble = information, "time since the newest snapshot of the node that arrived was made, s; null without snapshots";
        "best_age_of_information_s": OptionalDouble = information_best, "the same of the best node, s";
        "version_age": Int64 = versions, "number of updates about the node that the scheduler lacked";
        "best_version_age": Int64 = versions_best, "the same of the best node";
        "believed_wait_s": Double = believed, "wait at the node by the cache, s";
        "true_wait_s": Double = wait, "true wait at the node, s";
        "regret_s": Double = regret, "true wait at the node less that at the best node, s";
    }

    /// A stretch of a real core under one slowdown, if copies burned some.
    Cores "cores", cores: CoreRow {
        "core": Int64 = core, "core, among all cores of the cluster";
        "start_s": Double = start, "start of the stretch, s";
        "end_s": Double = end, "end of the stretch, s";
        "asked": Double = asked, "slowdown that was asked for";
        "had_s": Double = had, "time with a copy, s";
        "done_s": Double = done, "work done, s of a healthy core; the slowdown achieved is the sum of had_s over that of done_s";
    }
}

/// A type of columns, for values of type `V`.
trait ColumnKind<V> {
    /// The type in the file.
    type Stored: DataType;
    /// Repetition and type in the notation of Parquet schemas, around the column's name.
    const SCHEMA: (&'static str, &'static str);

    /// The value in the file; `None` for null.
    fn stored(value: V) -> Option<<Self::Stored as DataType>::T>;

    /// The value in memory; `None` if the field is of another type.
    fn loaded(field: &Field) -> Option<V>;

    /// The value where the table was written by a version without this column; `None` if that is an error.
    fn absent() -> Option<V> {
        None
    }
}

struct Int64;
struct Double;
/// Seconds that are null in the file if they are NaN.
struct OptionalDouble;
/// A label of the experiment.
struct Label;
/// One of a fixed set of words.
struct Words;

impl<V: Copy + TryInto<i64> + TryFrom<i64>> ColumnKind<V> for Int64 {
    type Stored = Int64Type;
    const SCHEMA: (&'static str, &'static str) = ("required int64", "");

    fn stored(value: V) -> Option<i64> {
        Some(value.try_into().unwrap_or(i64::MAX))
    }

    fn loaded(field: &Field) -> Option<V> {
        if let Field::Long(value) = field { V::try_from(*value).ok() } else { None }
    }
}

impl ColumnKind<f64> for Double {
    type Stored = DoubleType;
    const SCHEMA: (&'static str, &'static str) = ("required double", "");

    fn stored(value: f64) -> Option<f64> {
        Some(value)
    }

    fn loaded(field: &Field) -> Option<f64> {
        if let Field::Double(value) = field { Some(*value) } else { None }
    }
}

impl ColumnKind<f64> for OptionalDouble {
    type Stored = DoubleType;
    const SCHEMA: (&'static str, &'static str) = ("optional double", "");

    fn stored(value: f64) -> Option<f64> {
        value.is_finite().then_some(value)
    }

    fn loaded(field: &Field) -> Option<f64> {
        if *field == Field::Null { Some(f64::NAN) } else { Double::loaded(field) }
    }
}

impl ColumnKind<Option<f64>> for OptionalDouble {
    type Stored = DoubleType;
    const SCHEMA: (&'static str, &'static str) = <Self as ColumnKind<f64>>::SCHEMA;

    fn stored(value: Option<f64>) -> Option<f64> {
        value
    }

    fn absent() -> Option<Option<f64>> {
        Some(None)
    }

    fn loaded(field: &Field) -> Option<Option<f64>> {
        if *field == Field::Null { Some(None) } else { Double::loaded(field).map(Some) }
    }
}

/// A value that is written as one of a fixed set of words.
trait Word: Copy + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;
}

impl Word for CopyEnd {
    const ALL: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        end_name(self)
    }
}

impl ColumnKind<Arc<str>> for Label {
    type Stored = ByteArrayType;
    const SCHEMA: (&'static str, &'static str) = ("required binary", " (UTF8)");

    fn stored(value: Arc<str>) -> Option<ByteArray> {
        Some(ByteArray::from(&*value))
    }

    fn loaded(field: &Field) -> Option<Arc<str>> {
        if let Field::Str(text) = field { Some(text.as_str().into()) } else { None }
    }
}

impl<V: Word> ColumnKind<V> for Words {
    type Stored = ByteArrayType;
    const SCHEMA: (&'static str, &'static str) = ("required binary", " (UTF8)");

    fn stored(value: V) -> Option<ByteArray> {
        Some(ByteArray::from(value.word()))
    }

    fn loaded(field: &Field) -> Option<V> {
        let Field::Str(text) = field else { return None };
        V::ALL.iter().copied().find(|value| value.word() == text)
    }
}

/// The word for how an execution ended, in files and pictures.
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

fn column_schema<K: ColumnKind<V>, V, R>(name: &str, _field: fn(&R) -> V) -> String {
    let (kind, annotation) = K::SCHEMA;
    format!("{kind} {name}{annotation}; ")
}

fn write_column<K: ColumnKind<V>, V>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = V>,
) -> Result<()> {
    let values: Vec<Option<_>> = values.map(K::stored).collect();
    let defined: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<_> = values.into_iter().flatten().collect();
    write_values::<K::Stored>(group, &values, Some(&defined))
}

fn sum_column<K: ColumnKind<V>, V>(sum: &mut RowSum, values: impl Iterator<Item = V>) {
    values.for_each(|value| sum.add(K::stored(value).as_ref()));
}

/// A checksum of rows, column by column: it does not depend on the file that they are in.
#[derive(Debug, Default)]
pub(super) struct RowSum {
    crc: Crc,
    /// Values that are not in the checksum yet: a checksum of many bytes at once takes less time.
    waiting: Vec<u8>,
}

/// Number of bytes that a checksum takes at once.
const AT_ONCE: usize = 1 << 12;

impl RowSum {
    /// Adds the next value of a column as it is in the file; `None` for null.
    pub(super) fn add<T: AsBytes>(&mut self, value: Option<&T>) {
        self.waiting.push(u8::from(value.is_some()));
        self.waiting.extend(value.map_or(&[][..], AsBytes::as_bytes));
        if self.waiting.len() >= AT_ONCE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.crc.update(&self.waiting);
        self.waiting.clear();
    }

    pub(super) fn finish(mut self) -> u32 {
        self.flush();
        self.crc.sum()
    }
}

fn read_column<K: ColumnKind<V>, V>(row: &Row, name: &str) -> Result<V> {
    let field = row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field);
    field.map_or_else(K::absent, K::loaded).ok_or_else(|| missing(name))
}

impl TableKind {
    fn schema(self, labels: Option<&Labels>) -> Result<TypePtr> {
        let own = parse_message_type(&format!("message {} {{ {} }}", self.name(), self.columns()))?;
        let labels = labels.map(Labels::fields).transpose()?.unwrap_or_default();
        let fields = labels.into_iter().chain(own.get_fields().iter().cloned());
        Type::group_type_builder(self.name()).with_fields(fields.collect()).build().map(Arc::new)
    }

    /// The columns that every such table has, with their meanings; columns of swept values follow the first three.
    pub fn all_meanings(self) -> Vec<(&'static str, &'static str)> {
        [&labels::RUN, self.meanings()].concat()
    }

    /// Whether a run has a file of such rows: always of jobs and tasks, of cores if copies burned real ones, and of
    /// samples if there are some.
    pub fn concerns(self, measured: &Measured) -> bool {
        match self {
            Self::Jobs | Self::Tasks => true,
            Self::Staleness => !measured.staleness.is_empty(),
            Self::Decisions => !measured.decisions.is_empty(),
            Self::Cores => {
                let fidelity = measured.summary.fidelity.as_ref();
                fidelity.is_some_and(|certificate| certificate.cores.is_some())
            }
        }
    }

    /// Whether a run can have such rows.
    pub(super) fn may_have(self, run: &RunRecord) -> bool {
        match self {
            Self::Jobs | Self::Tasks => true,
            Self::Staleness | Self::Decisions | Self::Cores => self.may_lack(run).is_err(),
        }
    }

    /// Refuses a run without such rows that must have some.
    pub(super) fn may_lack(self, run: &RunRecord) -> Result<()> {
        let must = match self {
            Self::Jobs => run.summary.jobs.submitted > 0,
            Self::Tasks => run.sampled_one_in == 1 && run.summary.tasks.finished > 0,
            Self::Staleness => !run.staleness.is_empty(),
            Self::Cores => {
                run.summary.fidelity.as_ref().is_some_and(|certificate| certificate.cores.is_some())
            }
            Self::Decisions => run.summary.staleness.as_ref().is_some_and(|s| s.regret_s.mean.is_finite()),
        };
        if must {
            return Err(LostRows { table: self.name(), run: run.id.clone() }.in_table());
        }
        Ok(())
    }

    /// The columns behind the labels.
    pub(super) fn own_columns(self) -> impl Iterator<Item = &'static str> {
        self.meanings().iter().map(|(name, _)| *name)
    }

    /// Begins a file: a table with `labels`, and with the meanings of its columns, or a part without both.
    pub(super) fn create<W: Write + Send>(
        self,
        to: W,
        labels: Option<&Labels>,
    ) -> Result<SerializedFileWriter<W>> {
        let schema = self.schema(labels)?;
        let Some(labels) = labels else { return SerializedFileWriter::new(to, schema, properties(None)) };
        let fixed = self.all_meanings().into_iter().map(|(name, meaning)| (name, meaning.to_owned()));
        let meanings: BTreeMap<&str, String> = labels.meanings().chain(fixed).collect();
        let meanings = serde_json::to_string(&meanings).unwrap_or_default();
        let notes = [("volary.row", self.about().trim().to_owned()), ("volary.columns", meanings)];
        SerializedFileWriter::new(to, schema, properties(Some(&notes)))
    }

    /// Writes the rows of a run without labels; a run without rows gives a file without row groups.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write<W: Write + Send>(self, to: W, measured: &Measured) -> Result<()> {
        let mut file = self.create(to, None)?;
        self.write_rows(&mut file, measured)?;
        file.close().map(drop)
    }
}

pub(super) fn missing(name: &str) -> ParquetError {
    ParquetError::General(format!("no column `{name}` as this version writes it"))
}

fn write_group<R: TableRow, W: Write + Send>(file: &mut SerializedFileWriter<W>, rows: &[R]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut group = file.next_row_group()?;
    R::write(rows, &mut group)?;
    group.close().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;
    use crate::storage::load_rows;
    use crate::storage::paths::{CELLS, part_path};
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use std::fs::{self, File};

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut cell = measured("a", &[], 1, 1.0, 50);
        cell.jobs[7].response = f64::NAN;
        cell.jobs[8].alone = Some(2.5);
        cell.copies[0].attempt = u32::MAX;
        let path = |kind: TableKind| part_path(folder.path(), "id", kind);
        fs::create_dir(folder.path().join(CELLS)).unwrap();
        for kind in TableKind::ALL {
            kind.write(File::create(path(*kind)).unwrap(), &cell).unwrap();
        }
        let root = folder.path();
        let mut jobs: Vec<JobRow> = load_rows(root, "id").unwrap();
        assert!(jobs[7].response.is_nan());
        jobs[7].response = 1.0;
        cell.jobs[7].response = 1.0;
        assert_eq!(jobs, cell.jobs);
        assert_eq!(load_rows::<CopyRow>(root, "id").unwrap(), cell.copies);
        let end = end_name(cell.copies[0].end_kind);
        let reader = SerializedFileReader::new(File::open(path(TableKind::Tasks)).unwrap()).unwrap();
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        let (_, field) = row.get_column_iter().find(|(name, _)| *name == "end").unwrap();
        assert_eq!(*field, Field::Str(end.into()));
        assert_eq!(load_rows::<StalenessRow>(root, "id").unwrap(), cell.staleness);
        assert_eq!(load_rows::<CoreRow>(root, "id").unwrap(), cell.cores);
        fs::rename(path(TableKind::Jobs), path(TableKind::Tasks)).unwrap();
        let error = load_rows::<CopyRow>(root, "id").unwrap_err();
        assert!(error.to_string().contains("`task`"), "{error}");
        assert!(load_rows::<JobRow>(root, "id").is_err());
    }
}
