//! Parquet tables: jobs, executions, samples of caches and stretches of real cores, with one row group per cell,
//! policy and seed.
//!
//! Each cell is written to its own part by the thread that ran it. At the end the column chunks of the parts are
//! copied unchanged into one file, so nothing is decoded, and memory is independent of the number of rows.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::writer::ColumnCloseResult;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::ParquetMetaDataReader;
use ::parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::record::{Field, Row};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::TypePtr;
use volary_engine::results::{
    CopyEnd, CopyRow, CoreRow, DecisionRow, JobRow, Measured, StalenessRow, Summary,
};

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
/// field of the row and the type in the file. Times in rows are emulated seconds from the run's start.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $name:literal, $rows:ident: $row:ident {
        $($column:literal: $kind:ident = $field:ident,)*
    })*) => {
        /// The kinds of rows, with a file each.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TableKind {
            $($(#[$doc])* $table,)*
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

            /// The columns after the labels, in the notation of Parquet schemas.
            fn columns(self) -> String {
                match self {
                    $(Self::$table => [$(column_schema::<$kind, _, _>($column, |row: &$row| Clone::clone(&row.$field))),*].concat(),)*
                }
            }

            fn write_rows<W: Write + Send>(self, file: &mut SerializedFileWriter<W>, id: &str, measured: &Measured) -> Result<()> {
                match self {
                    $(Self::$table => write_group(file, id, &measured.summary, &measured.$rows),)*
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
    /// Every job.
    Jobs "jobs", jobs: JobRow {
        "job": Int64 = job,
        "arrival_s": Double = arrival,
        "response_s": OptionalDouble = response,
        "longest_s": Double = longest,
        "alone_s": OptionalDouble = alone,
        "tasks": Int64 = tasks,
        "class": Label = class,
    }

    /// Executions of sampled jobs.
    Tasks "tasks", copies: CopyRow {
        "job": Int64 = job,
        "task": Int64 = task,
        "attempt": Int64 = attempt,
        "core": Int64 = core,
        "start_s": Double = start,
        "end_s": Double = end,
        "end": Words = end_kind,
    }

    /// Samples of caches.
    Staleness "staleness", staleness: StalenessRow {
        "time_s": Double = time,
        "receiver": Int64 = receiver,
        "age_of_synchronisation_s": Double = age,
        "age_of_synchronisation_max_s": Double = age_max,
        "out_of_sync": Double = out_of_sync,
        "version_age": Double = versions,
        "age_of_information_s": OptionalDouble = information,
        "error_s": OptionalDouble = error,
        "bias_s": OptionalDouble = bias,
        "error_max_s": OptionalDouble = error_max,
        "in_flight": Int64 = in_flight,
    }

    /// Sampled decisions by caches.
    Decisions "decisions", decisions: DecisionRow {
        "time_s": Double = time,
        "scheduler": Int64 = scheduler,
        "node": Int64 = node,
        "best_node": Int64 = best,
        "age_of_synchronisation_s": Double = age,
        "best_age_of_synchronisation_s": Double = age_best,
        "age_of_information_s": OptionalDouble = information,
        "best_age_of_information_s": OptionalDouble = information_best,
        "version_age": Int64 = versions,
        "best_version_age": Int64 = versions_best,
        "believed_wait_s": Double = believed,
        "true_wait_s": Double = wait,
        "regret_s": Double = regret,
    }

    /// Stretches of real cores, if copies burned some.
    Cores "cores", cores: CoreRow {
        "core": Int64 = core,
        "start_s": Double = start,
        "end_s": Double = end,
        "asked": Double = asked,
        "had_s": Double = had,
        "done_s": Double = done,
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

/// Writes the next column; for an optional one, `defined` says for each row whether it has a value (1) or not (0).
fn write_values<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    defined: Option<&[i16]>,
) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, defined, None)?;
        column.close()?;
    }
    Ok(())
}

fn read_column<K: ColumnKind<V>, V>(row: &Row, name: &str) -> Result<V> {
    let field = row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field);
    field
        .map_or_else(K::absent, K::loaded)
        .ok_or_else(|| ParquetError::General(format!("no column `{name}` as this version writes it")))
}

impl TableKind {
    fn schema(self) -> Result<TypePtr> {
        let labels =
            ["cell", "policy", "seed"].map(|name| format!("required binary {name} (UTF8); ")).concat();
        parse_message_type(&format!("message {} {{ {labels}{} }}", self.name(), self.columns())).map(Arc::new)
    }

    /// Whether a cell has such rows or could have some; rows of cores exist only if copies burned real ones.
    pub fn concerns(self, measured: &Measured) -> bool {
        let fidelity = measured.summary.fidelity.as_ref();
        self != Self::Cores || fidelity.is_some_and(|certificate| certificate.cores.is_some())
    }

    /// Writes the rows of the cell `id`; a cell without rows gives a file without row groups.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write<W: Write + Send>(self, to: W, id: &str, measured: &Measured) -> Result<()> {
        let mut file = SerializedFileWriter::new(to, self.schema()?, properties())?;
        self.write_rows(&mut file, id, measured)?;
        file.close().map(drop)
    }

    /// Copies the row groups of parts, in their order, into one file.
    ///
    /// # Errors
    /// A part is damaged or of another schema, or `to` cannot be written.
    pub fn merge<W: Write + Send>(self, to: W, parts: &[PathBuf]) -> Result<()> {
        let mut file = SerializedFileWriter::new(to, self.schema()?, properties())?;
        for path in parts {
            let part = File::open(path).map_err(|error| named(path, error))?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&part)?;
            for group in metadata.row_groups() {
                let mut copy = file.next_row_group()?;
                for column in group.columns() {
                    let chunk = ColumnCloseResult {
                        bytes_written: column.compressed_size() as u64,
                        rows_written: group.num_rows() as u64,
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    copy.append_column(&part, chunk)?;
                }
                copy.close()?;
            }
        }
        file.close().map(drop)
    }
}

fn write_group<R: TableRow, W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    id: &str,
    summary: &Summary,
    rows: &[R],
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut group = file.next_row_group()?;
    // The first columns of every table, which are equal for all rows of a cell.
    for label in [id, &summary.policy, &summary.seed.to_string()] {
        let label = ByteArray::from(label);
        write_values::<ByteArrayType>(&mut group, &vec![label; rows.len()], None)?;
    }
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

/// Snappy compression; the writer uses a dictionary for each column until it does not pay.
fn properties() -> WriterPropertiesPtr {
    let by = format!("volary {}", env!("CARGO_PKG_VERSION"));
    Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(by).build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;

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
            let mut cell = measured(policy, &[], i as u64, 1.0, count);
            if let Some(job) = cell.jobs.get_mut(3) {
                job.response = f64::NAN;
            }
            let path = folder.path().join(format!("{i}.parquet"));
            TableKind::Jobs.write(File::create(&path).unwrap(), &format!("cell{i}"), &cell).unwrap();
            parts.push((path, cell));
        }
        let merged = folder.path().join("jobs.parquet");
        let paths: Vec<PathBuf> = parts.iter().map(|part| part.0.clone()).collect();
        TableKind::Jobs.merge(File::create(&merged).unwrap(), &paths).unwrap();

        let all = rows(&merged);
        assert_eq!(all.len(), 100);
        assert_eq!(all[..40], rows(&paths[0]), "a merged part is the part");
        let (row, job) = (&all[41], &parts[2].1.jobs[1]);
        assert_eq!(*field(row, "policy"), Field::Str("b".into()));
        assert_eq!(*field(row, "cell"), Field::Str("cell2".into()));
        assert_eq!(*field(row, "seed"), Field::Str("2".into()));
        assert_eq!(*field(row, "job"), Field::Long(1));
        assert_eq!(*field(row, "response_s"), Field::Double(job.response));
        assert_eq!(*field(row, "longest_s"), Field::Double(job.longest));
        assert_eq!(*field(&all[3], "response_s"), Field::Null, "an unfinished job has no response time");
        assert_eq!(*field(&all[40], "class"), Field::Str("long".into()));
        let reader = SerializedFileReader::new(File::open(&merged).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2, "one for each cell with rows");
        let labels = reader.metadata().row_group(0).column(1);
        assert!(labels.dictionary_page_offset().is_some() && labels.compression() == Compression::SNAPPY);
    }

    #[test]
    fn a_damaged_part_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.parquet");
        std::fs::write(&path, b"PAR1 not really").unwrap();
        let merged = File::create(folder.path().join("all.parquet")).unwrap();
        assert!(TableKind::Jobs.merge(merged, &[path]).is_err());
        let merged = File::create(folder.path().join("all.parquet")).unwrap();
        let error = TableKind::Jobs.merge(merged, &[folder.path().join("gone.parquet")]).unwrap_err();
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
            kind.write(File::create(path(*kind)).unwrap(), "x", &cell).unwrap();
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
