//! Parquet tables: jobs, executions, samples of caches and stretches of real cores, with one row group per run.
//!
//! Each run is written to its own part by the thread that ran it. At the end the column chunks of the parts are
//! copied unchanged into one file, behind columns that say which run a row is of (`Labels`), so nothing is decoded,
//! and memory is independent of the number of rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::column::writer::ColumnCloseResult;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::record::{Field, Row};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::{Type, TypePtr};
use volary_engine::results::{CopyEnd, CopyRow, CoreRow, DecisionRow, JobRow, Measured, StalenessRow};

use super::cell::CellRecord;
use super::labels::{self, Labels, properties, write_values};

/// A row of a table.
pub trait TableRow: Sized {
    /// The table.
    const KIND: TableKind;

    /// Writes the columns of all rows.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write<W: Write + Send>(rows: &[Self], group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()>;

    /// Reads a row by the names of its columns.
    ///
    /// # Errors
    /// A column is missing, or of another type.
    fn read(row: &Row) -> Result<Self>;
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
        "class": Label = class, "label of its class";
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

fn read_column<K: ColumnKind<V>, V>(row: &Row, name: &str) -> Result<V> {
    let field = row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field);
    field.map_or_else(K::absent, K::loaded).ok_or_else(|| missing(name))
}

impl TableKind {
    fn schema(self, labels: &Labels) -> Result<TypePtr> {
        let own = parse_message_type(&format!("message {} {{ {} }}", self.name(), self.columns()))?;
        let fields = labels.fields()?.into_iter().chain(own.get_fields().iter().cloned());
        Type::group_type_builder(self.name()).with_fields(fields.collect()).build().map(Arc::new)
    }

    /// The columns that every such table has, with their meanings; columns of swept values follow the first three.
    pub fn all_meanings(self) -> Vec<(&'static str, &'static str)> {
        [&labels::RUN, self.meanings()].concat()
    }

    /// Whether a cell has a file of such rows: always of jobs and tasks, of cores if copies burned real ones, and of
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

    /// Writes the rows of a run without labels; a run without rows gives a file without row groups.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write<W: Write + Send>(self, to: W, measured: &Measured) -> Result<()> {
        let own = parse_message_type(&format!("message {} {{ {} }}", self.name(), self.columns()))?;
        let mut file = SerializedFileWriter::new(to, Arc::new(own), properties(None))?;
        self.write_rows(&mut file, measured)?;
        file.close().map(drop)
    }

    /// Copies the row groups of parts, in their order, into one file, behind the labels of their runs. The parts of
    /// earlier versions have labels of their own, which are left out.
    ///
    /// # Errors
    /// A part is damaged or lacks a column, or `to` cannot be written.
    pub fn merge<W: Write + Send>(
        self,
        to: W,
        labels: &Labels,
        parts: &[(&CellRecord, PathBuf)],
    ) -> Result<()> {
        let fixed = self.all_meanings().into_iter().map(|(name, meaning)| (name, meaning.to_owned()));
        let meanings: BTreeMap<&str, String> = labels.meanings().chain(fixed).collect();
        let meanings = serde_json::to_string(&meanings).unwrap_or_default();
        let notes = [("volary.row", self.about().trim().to_owned()), ("volary.columns", meanings)];
        let mut file = SerializedFileWriter::new(to, self.schema(labels)?, properties(Some(&notes)))?;
        for (record, path) in parts {
            let part = File::open(path).map_err(|error| named(path, error))?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&part)?;
            for rows in metadata.row_groups() {
                let mut group = file.next_row_group()?;
                labels.write(&mut group, &record.id, &record.summary, rows.num_rows() as usize)?;
                for (name, _) in self.meanings() {
                    copy_column(&mut group, &part, rows, name)?;
                }
                group.close()?;
            }
        }
        file.close().map(drop)
    }
}

/// Copies the column `name` of a row group.
fn copy_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    part: &File,
    rows: &RowGroupMetaData,
    name: &str,
) -> Result<()> {
    let column = rows.columns().iter().find(|column| column.column_path().string() == name);
    let column = column.ok_or_else(|| missing(name))?;
    let chunk = ColumnCloseResult {
        bytes_written: column.compressed_size() as u64,
        rows_written: rows.num_rows() as u64,
        metadata: column.clone(),
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(part, chunk)
}

fn missing(name: &str) -> ParquetError {
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

/// The rows of a file, in its order.
///
/// # Errors
/// When the file cannot be read, or has rows of another kind.
pub fn read<R: TableRow>(path: &Path) -> Result<Vec<R>> {
    let file = File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
    let reader = SerializedFileReader::new(file)?;
    reader.get_row_iter(None)?.map(|row| R::read(&row?)).collect()
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Study;
    use crate::storage::fixture::{manifest, measured};
    use ::parquet::basic::Compression;
    use serde_json::json;

    fn rows(path: &Path) -> Vec<Row> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect()
    }

    fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
        row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field).unwrap()
    }

    #[test]
    fn parts_read_back_and_merge() {
        let folder = tempfile::tempdir().unwrap();
        let mut parts = Vec::new();
        for (i, (policy, count)) in [("a", 40), ("nothing", 0), ("b", 60)].into_iter().enumerate() {
            let swept =
                [("network.loss", json!(0.5 * i as f64)), ("service.demand", json!({"exponential": i}))];
            let mut cell = measured(policy, &swept, u64::MAX - i as u64, 1.0, count);
            if let Some(job) = cell.jobs.get_mut(3) {
                job.response = f64::NAN;
            }
            let path = folder.path().join(format!("{i}.parquet"));
            TableKind::Jobs.write(File::create(&path).unwrap(), &cell).unwrap();
            parts.push((path, CellRecord::new(&format!("run{i}"), &cell), cell));
        }
        let merged = folder.path().join("jobs.parquet");
        let paths: Vec<_> = parts.iter().map(|(path, record, _)| (record, path.clone())).collect();
        let records = parts.iter().map(|part| part.1.clone()).collect();
        let study = Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new());
        let labels = Labels::of(&study);
        TableKind::Jobs.merge(File::create(&merged).unwrap(), &labels, &paths).unwrap();

        let all = rows(&merged);
        assert_eq!(all.len(), 100);
        assert_eq!(read::<JobRow>(&merged).unwrap()[44..], parts[2].2.jobs[4..], "a merged part is the part");
        let (row, job) = (&all[41], &parts[2].2.jobs[1]);
        assert_eq!(*field(row, "policy"), Field::Str("b".into()));
        assert_eq!(*field(row, "run"), Field::Str("run2".into()));
        assert_eq!(*field(row, "seed"), Field::ULong(u64::MAX - 2));
        assert_eq!(*field(row, "network.loss"), Field::Double(1.0));
        assert_eq!(*field(row, "service.demand"), Field::Str(r#"{"exponential":2}"#.into()));
        assert_eq!(*field(row, "job"), Field::Long(1));
        assert_eq!(*field(row, "response_s"), Field::Double(job.response));
        assert_eq!(*field(row, "longest_s"), Field::Double(job.longest));
        assert_eq!(*field(&all[3], "response_s"), Field::Null, "an unfinished job has no response time");
        assert_eq!(*field(&all[40], "class"), Field::Str("long".into()));
        let reader = SerializedFileReader::new(File::open(&merged).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2, "one for each cell with rows");
        let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let meanings =
            notes.iter().find(|note| note.key == "volary.columns").unwrap().value.as_ref().unwrap();
        let meanings: BTreeMap<String, String> = serde_json::from_str(meanings).unwrap();
        assert!(all[0].get_column_iter().all(|(name, _)| meanings.contains_key(name)), "{meanings:?}");
        let labels = reader.metadata().row_group(0).column(1);
        assert!(labels.dictionary_page_offset().is_some() && labels.compression() == Compression::SNAPPY);
    }

    #[test]
    fn a_damaged_part_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.parquet");
        std::fs::write(&path, b"PAR1 not really").unwrap();
        let merged = File::create(folder.path().join("all.parquet")).unwrap();
        let (record, labels) = (CellRecord::new("x", &measured("a", &[], 1, 1.0, 1)), Labels::default());
        assert!(TableKind::Jobs.merge(merged, &labels, &[(&record, path)]).is_err());
        let merged = File::create(folder.path().join("all.parquet")).unwrap();
        let error = TableKind::Jobs
            .merge(merged, &labels, &[(&record, folder.path().join("gone.parquet"))])
            .unwrap_err();
        assert!(error.to_string().contains("gone.parquet"), "{error}");
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut cell = measured("a", &[], 1, 1.0, 50);
        cell.jobs[7].response = f64::NAN;
        cell.jobs[8].alone = Some(2.5);
        cell.copies[0].attempt = u32::MAX;
        let path = |kind: TableKind| folder.path().join(kind.name());
        for kind in TableKind::ALL {
            kind.write(File::create(path(*kind)).unwrap(), &cell).unwrap();
        }
        let mut jobs: Vec<JobRow> = read(&path(TableKind::Jobs)).unwrap();
        assert!(jobs[7].response.is_nan());
        jobs[7].response = 1.0;
        cell.jobs[7].response = 1.0;
        assert_eq!(jobs, cell.jobs);
        assert_eq!(read::<CopyRow>(&path(TableKind::Tasks)).unwrap(), cell.copies);
        let end = end_name(cell.copies[0].end_kind);
        assert_eq!(*field(&rows(&path(TableKind::Tasks))[0], "end"), Field::Str(end.into()));
        assert_eq!(read::<StalenessRow>(&path(TableKind::Staleness)).unwrap(), cell.staleness);
        assert_eq!(read::<CoreRow>(&path(TableKind::Cores)).unwrap(), cell.cores);
        let error = read::<CopyRow>(&path(TableKind::Jobs)).unwrap_err();
        assert!(error.to_string().contains("`task`"), "{error}");
        assert!(read::<JobRow>(&folder.path().join("gone")).is_err());
    }
}
