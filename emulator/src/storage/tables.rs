//! TableKind as Parquet: jobs, executions, looks at caches and stretches of real cores, one row group per cell, policy and
//! seed.
//!
//! Each cell is written to a part of its own, by whichever thread ran it. At the end the parts' column chunks are
//! copied as they are into one file: nothing is decoded, and memory does not grow with the number of rows.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::writer::ColumnCloseResult;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::ParquetMetaDataReader;
use ::parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;

use crate::results::{CopyEnd, Measured, Summary};

/// What the rows of a cell have in common: the first columns of every file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Labels {
    /// Id of the cell.
    pub cell: String,
    /// Label of the policy.
    pub policy: String,
    /// Seed of the replication.
    pub seed: u64,
}

impl Labels {
    /// Of the cell `id` with this summary.
    #[must_use]
    pub fn new(id: &str, summary: &Summary) -> Self {
        Self { cell: id.to_owned(), policy: summary.policy.clone(), seed: summary.seed }
    }
}

/// The kinds of rows, each a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// Every job.
    Jobs,
    /// Executions of sampled jobs.
    Tasks,
    /// Looks at caches.
    Staleness,
    /// Stretches of real cores, where copies burnt some.
    Cores,
}

impl TableKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Jobs, Self::Tasks, Self::Staleness, Self::Cores];

    /// Name of the file without suffix.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Tasks => "tasks",
            Self::Staleness => "staleness",
            Self::Cores => "cores",
        }
    }

    /// The columns. Times are emulated seconds from the run's start.
    const fn schema(self) -> &'static str {
        match self {
            Self::Jobs => {
                "message jobs {
                    required binary cell (UTF8); required binary policy (UTF8); required binary seed (UTF8);
                    required int64 job; required double arrival_s; optional double response_s;
                    required double longest_s; required int64 tasks; required binary class (UTF8);
                }"
            }
            Self::Tasks => {
                "message tasks {
                    required binary cell (UTF8); required binary policy (UTF8); required binary seed (UTF8);
                    required int64 job; required int64 task; required int32 attempt; required int64 core;
                    required double start_s; required double end_s; required binary end (UTF8);
                }"
            }
            Self::Staleness => {
                "message staleness {
                    required binary cell (UTF8); required binary policy (UTF8); required binary seed (UTF8);
                    required double time_s; required int64 scheduler;
                    required double age_s; required double age_max_s;
                    required double error_s; required double bias_s; required double error_max_s;
                    required int64 in_flight;
                }"
            }
            Self::Cores => {
                "message cores {
                    required binary cell (UTF8); required binary policy (UTF8); required binary seed (UTF8);
                    required int64 core; required double start_s; required double end_s;
                    required double asked; required double had_s; required double done_s;
                }"
            }
        }
    }

    /// Whether a cell has such rows, or could have had some: of cores only where copies burnt real ones.
    #[must_use]
    pub fn concerns(self, measured: &Measured) -> bool {
        let fidelity = measured.summary.fidelity.as_ref();
        self != Self::Cores || fidelity.is_some_and(|certificate| certificate.cores.is_some())
    }

    /// Writes the rows of one cell; a cell without rows gives a file without row groups.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write<W: Write + Send>(self, to: W, labels: &Labels, measured: &Measured) -> Result<()> {
        let mut file =
            SerializedFileWriter::new(to, Arc::new(parse_message_type(self.schema())?), properties())?;
        let rows = match self {
            Self::Jobs => measured.jobs.len(),
            Self::Tasks => measured.copies.len(),
            Self::Staleness => measured.staleness.len(),
            Self::Cores => measured.cores.len(),
        };
        if rows > 0 {
            let mut group = file.next_row_group()?;
            for label in [labels.cell.clone(), labels.policy.clone(), labels.seed.to_string()] {
                let label = ByteArray::from(label.into_bytes());
                column::<ByteArrayType>(&mut group, &vec![label; rows], None)?;
            }
            match self {
                Self::Jobs => write_jobs(&mut group, measured)?,
                Self::Tasks => write_tasks(&mut group, measured)?,
                Self::Staleness => write_staleness(&mut group, measured)?,
                Self::Cores => write_cores(&mut group, measured)?,
            }
            group.close()?;
        }
        file.close()?;
        Ok(())
    }

    /// Copies the row groups of parts, in their order, into one file.
    ///
    /// # Errors
    /// A part is damaged or of another schema, or `to` cannot be written.
    pub fn merge<W: Write + Send>(self, to: W, parts: &[PathBuf]) -> Result<()> {
        let schema = Arc::new(parse_message_type(self.schema())?);
        let mut file = SerializedFileWriter::new(to, schema, properties())?;
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
        file.close()?;
        Ok(())
    }
}

fn named(path: &std::path::Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn write_jobs<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    measured: &Measured,
) -> Result<()> {
    let jobs = &measured.jobs;
    let response: Vec<f64> = jobs.iter().map(|row| row.response).filter(|s| s.is_finite()).collect();
    let finished: Vec<i16> = jobs.iter().map(|row| i16::from(row.response.is_finite())).collect();
    let class = jobs.iter().map(|row| if row.class == 0 { "short" } else { "long" });
    column::<Int64Type>(group, &collect(jobs, |row| i64::from(row.job)), None)?;
    column::<DoubleType>(group, &collect(jobs, |row| row.arrival), None)?;
    column::<DoubleType>(group, &response, Some(&finished))?;
    column::<DoubleType>(group, &collect(jobs, |row| row.longest), None)?;
    column::<Int64Type>(group, &collect(jobs, |row| i64::from(row.tasks)), None)?;
    column::<ByteArrayType>(group, &class.map(ByteArray::from).collect::<Vec<_>>(), None)
}

fn write_tasks<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    measured: &Measured,
) -> Result<()> {
    let copies = &measured.copies;
    column::<Int64Type>(group, &collect(copies, |row| i64::from(row.job)), None)?;
    column::<Int64Type>(group, &collect(copies, |row| i64::from(row.task)), None)?;
    column::<Int32Type>(group, &collect(copies, |row| i32::try_from(row.attempt).unwrap_or(i32::MAX)), None)?;
    column::<Int64Type>(group, &collect(copies, |row| i64::from(row.core)), None)?;
    column::<DoubleType>(group, &collect(copies, |row| row.start), None)?;
    column::<DoubleType>(group, &collect(copies, |row| row.end), None)?;
    column::<ByteArrayType>(group, &collect(copies, |row| ByteArray::from(end_name(row.end_kind))), None)
}

fn write_staleness<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    measured: &Measured,
) -> Result<()> {
    let looks = &measured.staleness;
    column::<DoubleType>(group, &collect(looks, |row| row.time), None)?;
    column::<Int64Type>(group, &collect(looks, |row| i64::from(row.scheduler)), None)?;
    column::<DoubleType>(group, &collect(looks, |row| row.age), None)?;
    column::<DoubleType>(group, &collect(looks, |row| row.age_max), None)?;
    column::<DoubleType>(group, &collect(looks, |row| row.error), None)?;
    column::<DoubleType>(group, &collect(looks, |row| row.bias), None)?;
    column::<DoubleType>(group, &collect(looks, |row| row.error_max), None)?;
    column::<Int64Type>(group, &collect(looks, |row| row.in_flight.cast_signed()), None)
}

fn write_cores<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    measured: &Measured,
) -> Result<()> {
    let cores = &measured.cores;
    column::<Int64Type>(group, &collect(cores, |row| i64::from(row.core)), None)?;
    column::<DoubleType>(group, &collect(cores, |row| row.start), None)?;
    column::<DoubleType>(group, &collect(cores, |row| row.end), None)?;
    column::<DoubleType>(group, &collect(cores, |row| row.asked), None)?;
    column::<DoubleType>(group, &collect(cores, |row| row.had), None)?;
    column::<DoubleType>(group, &collect(cores, |row| row.done), None)
}

fn collect<Row, T>(rows: &[Row], value: impl Fn(&Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// The word for how an execution ended, in files and pictures.
#[must_use]
pub const fn end_name(end: CopyEnd) -> &'static str {
    match end {
        CopyEnd::First => "first",
        CopyEnd::Second => "second",
        CopyEnd::Preempted => "preempted",
        CopyEnd::Suspended => "suspended",
        CopyEnd::Lost => "lost",
    }
}

/// Writes the next column; `defined` says for each row of an optional one whether it has a value (1) or not (0).
fn column<T: DataType>(
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

/// Snappy, dictionaries for what repeats (the writer falls back by itself where they do not pay).
fn properties() -> WriterPropertiesPtr {
    let by = format!("volary {}", env!("CARGO_PKG_VERSION"));
    Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(by).build())
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::{Field, Row};

    use super::*;
    use crate::record::fixture::measured;

    fn rows(path: &std::path::Path) -> Vec<Row> {
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
            let labels = Labels::new(&format!("cell{i}"), &cell.summary);
            let path = folder.path().join(format!("{i}.parquet"));
            TableKind::Jobs.write(File::create(&path).unwrap(), &labels, &cell).unwrap();
            parts.push((path, cell));
        }
        let merged = folder.path().join("jobs.parquet");
        let paths: Vec<PathBuf> = parts.iter().map(|part| part.0.clone()).collect();
        TableKind::Jobs.merge(File::create(&merged).unwrap(), &paths).unwrap();

        let all = rows(&merged);
        assert_eq!(all.len(), 100);
        assert_eq!(all[..40], rows(&paths[0]), "a merged part is the part");
        let (row, job) = (&all[41], parts[2].1.jobs[1]);
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
    fn executions_keep_how_they_ended() {
        let folder = tempfile::tempdir().unwrap();
        let cell = measured("a", &[], 1, 1.0, 10);
        let path = folder.path().join("tasks.parquet");
        TableKind::Tasks
            .write(File::create(&path).unwrap(), &Labels::new("x", &cell.summary), &cell)
            .unwrap();
        let rows = rows(&path);
        assert_eq!(rows.len(), cell.copies.len());
        for (row, copy) in rows.iter().zip(&cell.copies) {
            assert_eq!(*field(row, "end"), Field::Str(end_name(copy.end_kind).into()));
            assert_eq!(*field(row, "start_s"), Field::Double(copy.start));
            assert_eq!(*field(row, "core"), Field::Long(copy.core.into()));
        }
    }

    #[test]
    fn looks_at_caches_are_rows() {
        let folder = tempfile::tempdir().unwrap();
        let cell = measured("a", &[], 1, 1.0, 10);
        let path = folder.path().join("staleness.parquet");
        TableKind::Staleness
            .write(File::create(&path).unwrap(), &Labels::new("x", &cell.summary), &cell)
            .unwrap();
        let rows = rows(&path);
        assert_eq!((rows.len(), cell.staleness.len()), (20, 20));
        for (row, look) in rows.iter().zip(&cell.staleness) {
            assert_eq!(*field(row, "time_s"), Field::Double(look.time));
            assert_eq!(*field(row, "age_s"), Field::Double(look.age));
            assert_eq!(*field(row, "bias_s"), Field::Double(look.bias));
            assert_eq!(*field(row, "in_flight"), Field::Long(look.in_flight.cast_signed()));
        }
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
}
