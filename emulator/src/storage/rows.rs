//! Rows of runs: a part for each run and table while a run goes on, and rows of the folder's tables once it has
//! ended.
//!
//! A row group of a table holds whole runs: a large run, or many small ones, because each column of a group has a
//! header and a dictionary of its own. Columns of a run that has a group for itself are copied without being decoded,
//! so that memory does not depend on the number of its rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use ::parquet::column::writer::ColumnCloseResult;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};

use super::error::{Error, rows};
use super::files::cell_files;
use super::labels::{Labels, RUN};
use super::paths::{CELLS, part_suffix, table_path};
use super::tables::{RowSum, TableKind, TableRow, missing};
use crate::storage::run_record::RunRecord;

/// Number of rows from which a row group is full. A run with as many has a group for itself.
const GROUP_ROWS: usize = 1 << 16;
/// Number of runs with which a row group is full. Each may be in a file of its own, which is open with the others.
const GROUP_RUNS: usize = 256;

/// Where the rows of runs are that a table has, in several study directories.
pub(super) struct RowIndex {
    kind: TableKind,
    places: BTreeMap<String, RowPlace>,
}

enum RowPlace {
    /// A file with the rows of one run.
    Part(PathBuf),
    /// A part of a table.
    Table(RunRows),
}

/// The rows of a run: some of a row group.
#[derive(Clone)]
struct RunRows {
    file: Arc<RowFile>,
    group: usize,
    first: usize,
    rows: usize,
}

/// A Parquet file.
struct RowFile {
    path: PathBuf,
    file: File,
    reader: SerializedFileReader<File>,
}

impl RowIndex {
    /// The places of the rows of runs. Of several, the first folder counts, and in a folder the part.
    ///
    /// # Errors
    /// A folder or a table cannot be read.
    pub(super) fn of<'a>(
        folders: &[PathBuf],
        kind: TableKind,
        ids: impl Iterator<Item = &'a str>,
    ) -> std::result::Result<Self, Error> {
        let (mut places, ids) = (BTreeMap::new(), ids.collect::<Vec<_>>());
        for folder in folders {
            for (id, path) in parts(folder, kind)? {
                places.entry(id).or_insert(RowPlace::Part(path));
            }
            let path = table_path(folder, kind);
            if path.exists() && !ids.iter().all(|id| places.contains_key(*id)) {
                for (id, rows) in table_rows(&path).map_err(rows(&path))? {
                    places.entry(id).or_insert(RowPlace::Table(rows));
                }
            }
        }
        Ok(Self { kind, places })
    }

    /// The places of the rows of runs in a folder, and whether its table is damaged: then only parts are found.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn of_readable<'a>(
        folder: &Path,
        kind: TableKind,
        ids: impl Iterator<Item = &'a str>,
    ) -> std::result::Result<(Self, bool), Error> {
        match Self::of(&[folder.to_owned()], kind, ids) {
            Err(Error::Rows { .. }) => {
                let places = parts(folder, kind)?.into_iter().map(|(id, path)| (id, RowPlace::Part(path)));
                Ok((Self { kind, places: places.collect() }, true))
            }
            index => Ok((index?, false)),
        }
    }

    /// Whether a run has rows, or a part for them.
    pub(super) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// Which of the runs have their rows here, undamaged, or need none.
    pub(super) fn whole(&self, runs: &[RunRecord]) -> Vec<bool> {
        runs.chunks(GROUP_RUNS).flat_map(|runs| self.whole_of(runs)).collect()
    }

    /// The same of so few runs that the files of all can be open.
    fn whole_of(&self, runs: &[RunRecord]) -> Vec<bool> {
        let found: Vec<_> = runs.iter().map(|run| self.rows(&run.id)).collect();
        let (mut at, mut rows) = (Vec::new(), Vec::new());
        for (number, found) in found.iter().enumerate() {
            if let Ok(Some(found)) = found {
                at.push(number);
                rows.push(found);
            }
        }
        let mut sums: Vec<Option<RowSum>> = rows.iter().map(|_| Some(RowSum::default())).collect();
        for name in self.kind.own_columns() {
            sum_values(&mut sums, &rows, name);
        }
        let mut sums: BTreeMap<usize, Option<u32>> =
            at.into_iter().zip(sums).map(|(number, sum)| (number, sum.map(RowSum::finish))).collect();
        let is_whole = |(number, run): (usize, &RunRecord)| {
            let stored = run.rows.get(self.kind.name());
            match &found[number] {
                Err(_) => false,
                Ok(None) => self.kind.may_lack(run).is_ok(),
                Ok(Some(_)) => {
                    let sum = sums.remove(&number).flatten();
                    sum.is_some_and(|sum| stored.is_none_or(|stored| *stored == sum))
                }
            }
        };
        runs.iter().enumerate().map(is_whole).collect()
    }

    /// The rows of a run, if it has some.
    fn rows(&self, id: &str) -> Result<Option<RunRows>> {
        match self.places.get(id) {
            None => Ok(None),
            Some(RowPlace::Table(rows)) => Ok(Some(rows.clone())),
            Some(RowPlace::Part(path)) => {
                let file = match RowFile::open(path) {
                    // It was moved to the table in the meantime.
                    Err(gone) if !path.exists() => {
                        let folder = path.ancestors().nth(2).unwrap_or(path);
                        let moved = table_rows(&table_path(folder, self.kind)).map_err(|_| gone)?;
                        return Ok(moved.into_iter().find(|(of, _)| of == id).map(|(_, rows)| rows));
                    }
                    file => file?,
                };
                // A part without rows has no row group.
                let rows = file.reader.metadata().row_groups().first().map(|group| group.num_rows() as usize);
                Ok(rows.map(|rows| RunRows { file: Arc::new(file), group: 0, first: 0, rows }))
            }
        }
    }

    /// Writes the rows of runs, in their order, as a table behind `labels`, or without labels as parts are.
    ///
    /// # Errors
    /// A part is damaged or lacks a column, or `to` cannot be written.
    pub(super) fn write<'a, W: Write + Send>(
        &self,
        to: W,
        labels: Option<&Labels>,
        runs: impl Iterator<Item = &'a RunRecord>,
    ) -> Result<()> {
        let mut file = self.kind.create(to, labels)?;
        let (mut group, mut count) = (Vec::new(), 0);
        for record in runs {
            let Some(rows) = self.rows(&record.id)? else {
                self.kind.may_lack(record)?;
                continue;
            };
            if count + rows.rows > GROUP_ROWS || group.len() == GROUP_RUNS {
                write_group(&mut file, self.kind, labels, &mem::take(&mut group))?;
                count = 0;
            }
            count += rows.rows;
            group.push((record, rows));
        }
        write_group(&mut file, self.kind, labels, &group)?;
        file.close().map(drop)
    }

    /// The rows of a run in their order.
    ///
    /// # Errors
    /// They are damaged, or lack a column.
    pub(super) fn read<R: TableRow>(&self, id: &str) -> Result<Vec<R>> {
        let Some(RunRows { file, group, first, rows }) = self.rows(id)? else { return Ok(Vec::new()) };
        let read = || {
            let group = file.reader.get_row_group(group)?;
            group.get_row_iter(None)?.skip(first).take(rows).map(|row| R::read(&row?)).collect()
        };
        unpanicked(read).map_err(|error| file.named(error))
    }
}

/// The parts of a table in a folder, by the ids of the runs.
fn parts(folder: &Path, kind: TableKind) -> std::result::Result<Vec<(String, PathBuf)>, Error> {
    let (cells, suffix) = (folder.join(CELLS), part_suffix(kind));
    let id_and_path = |name: String| Some((name.strip_suffix(&suffix)?.to_owned(), cells.join(&name)));
    Ok(cell_files(folder)?.into_iter().filter_map(id_and_path).collect())
}

/// Whether a table exists and has rows.
pub(super) fn has_rows(path: &Path) -> Result<bool> {
    Ok(path.exists() && RowFile::open(path)?.reader.metadata().file_metadata().num_rows() > 0)
}

/// The rows of each run in a table, which are adjacent.
fn table_rows(path: &Path) -> Result<Vec<(String, RunRows)>> {
    let file = Arc::new(RowFile::open(path)?);
    let mut found: Vec<(String, RunRows)> = Vec::new();
    for (group, metadata) in file.reader.metadata().row_groups().iter().enumerate() {
        let rows = metadata.num_rows() as usize;
        let mut next = 0;
        for (id, rows) in runs_of(&file, group, metadata, rows)? {
            found.push((id, RunRows { file: file.clone(), group, first: next, rows }));
            next += rows;
        }
    }
    Ok(found)
}

/// The runs of a row group, with the number of rows of each.
fn runs_of(
    file: &RowFile,
    group: usize,
    metadata: &RowGroupMetaData,
    rows: usize,
) -> Result<Vec<(String, usize)>> {
    // Tables of earlier versions lack the column; their parts were kept.
    let Ok(at) = column(metadata, RUN[0].0) else { return Ok(Vec::new()) };
    let text = |id: &[u8]| String::from_utf8_lossy(id).into_owned();
    let statistics = metadata.column(at).statistics();
    let bounds = statistics.and_then(|bounds| bounds.min_bytes_opt().zip(bounds.max_bytes_opt()));
    if let Some((id, _)) = bounds.filter(|(min, max)| min == max) {
        return Ok(vec![(text(id), rows)]);
    }
    let (ids, _) = unpanicked(|| {
        let reader = file.reader.get_row_group(group)?.get_column_reader(at)?;
        take::<ByteArrayType>(&mut get_typed_column_reader(reader), rows)
    })?;
    let runs = ids.chunk_by(|a: &ByteArray, b| a.data() == b.data());
    Ok(runs.map(|run| (text(run[0].data()), run.len())).collect())
}

/// Writes a row group of whole runs.
fn write_group<W: Write + Send>(
    to: &mut SerializedFileWriter<W>,
    kind: TableKind,
    labels: Option<&Labels>,
    runs: &[(&RunRecord, RunRows)],
) -> Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let mut group = to.next_row_group()?;
    if let Some(labels) = labels {
        labels.write(&mut group, runs.iter().map(|(record, of)| (*record, of.rows)))?;
    }
    let rows: Vec<&RunRows> = runs.iter().map(|(_, rows)| rows).collect();
    for name in kind.own_columns() {
        let written = match rows[..] {
            [only] if only.is_whole() => copy_chunk(&mut group, only, name),
            _ => copy_values(&mut group, &rows, name),
        };
        written?;
    }
    group.close().map(drop)
}

/// Copies the column `name` of a row group without decoding it.
fn copy_chunk<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    from: &RunRows,
    name: &str,
) -> Result<()> {
    let metadata = from.metadata();
    let column = metadata.column(column(metadata, name)?);
    let chunk = ColumnCloseResult {
        bytes_written: column.compressed_size() as u64,
        rows_written: from.rows as u64,
        metadata: column.clone(),
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&from.file.file, chunk)
}

/// Copies the values of the column `name`.
fn copy_values<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    from: &[&RunRows],
    name: &str,
) -> Result<()> {
    let Some(mut to) = group.next_column()? else { return Err(missing(name)) };
    let metadata = from[0].metadata();
    match metadata.column(column(metadata, name)?).column_type() {
        Physical::INT64 => copy_typed::<Int64Type>(&mut to, from, name),
        Physical::DOUBLE => copy_typed::<DoubleType>(&mut to, from, name),
        Physical::BYTE_ARRAY => copy_typed::<ByteArrayType>(&mut to, from, name),
        Physical::BOOLEAN
        | Physical::INT32
        | Physical::INT96
        | Physical::FLOAT
        | Physical::FIXED_LEN_BYTE_ARRAY => Err(missing(name)),
    }?;
    to.close()
}

fn copy_typed<T: DataType>(to: &mut SerializedColumnWriter<'_>, from: &[&RunRows], name: &str) -> Result<()> {
    read_typed::<T>(from, name, |_, read| {
        let (values, defined) = read?;
        // A required column has no levels.
        let defined = Some(&defined[..]).filter(|defined| !defined.is_empty());
        to.typed::<T>().write_batch(&values, defined, None).map(drop)
    })
}

/// Adds the values of the column `name` to the checksums of runs; those that cannot be read have none from then on.
fn sum_values(sums: &mut [Option<RowSum>], from: &[&RunRows], name: &str) {
    // The type of a column is that of its first run; others are refused where they are read.
    let Some(metadata) = from.first().map(|from| from.metadata()) else { return };
    let Ok(at) = column(metadata, name) else { return sums.fill_with(|| None) };
    match metadata.column(at).column_type() {
        Physical::INT64 => sum_typed::<Int64Type>(sums, from, name),
        Physical::DOUBLE => sum_typed::<DoubleType>(sums, from, name),
        Physical::BYTE_ARRAY => sum_typed::<ByteArrayType>(sums, from, name),
        Physical::BOOLEAN
        | Physical::INT32
        | Physical::INT96
        | Physical::FLOAT
        | Physical::FIXED_LEN_BYTE_ARRAY => sums.fill_with(|| None),
    }
}

fn sum_typed<T: DataType>(sums: &mut [Option<RowSum>], from: &[&RunRows], name: &str) {
    // Nothing that this gives back is an error.
    let _ = read_typed::<T>(from, name, |number, read| {
        let Some(sum) = &mut sums[number] else { return Ok(()) };
        match read {
            Ok((values, defined)) if defined.is_empty() => {
                values.iter().for_each(|value| sum.add(Some(value)))
            }
            Ok((values, defined)) => {
                let mut values = values.iter();
                defined.iter().for_each(|level| sum.add(if *level > 0 { values.next() } else { None }));
            }
            Err(_) => sums[number] = None,
        }
        Ok(())
    });
}

/// Reads a column of several runs, and gives the values of each with its number to `give`, in this order.
fn read_typed<T: DataType>(
    from: &[&RunRows],
    name: &str,
    mut give: impl FnMut(usize, Result<(Vec<T::T>, Vec<i16>)>) -> Result<()>,
) -> Result<()> {
    // Readers of tables, with the row that is next: several runs of a group are read in one pass.
    let mut readers: BTreeMap<(*const RowFile, usize), (ColumnReaderImpl<T>, usize)> = BTreeMap::new();
    for (number, run) in from.iter().enumerate() {
        let key = (Arc::as_ptr(&run.file), run.group);
        let mut open = readers.remove(&key).filter(|(_, next)| *next <= run.first);
        let mut read = || -> Result<_> {
            let (reader, next) = match &mut open {
                Some(open) => open,
                None => open.insert((run.reader(name)?, 0)),
            };
            reader.skip_records(run.first - *next)?;
            let values = take(reader, run.rows)?;
            *next = run.first + run.rows;
            Ok(values)
        };
        let values = unpanicked(&mut read).map_err(|error| run.file.named(error));
        let is_read = values.is_ok();
        give(number, values)?;
        // What could not be read leaves its reader somewhere.
        let goes_on = is_read && run.first + run.rows < run.metadata().num_rows() as usize;
        readers.extend(open.filter(|_| goes_on).map(|open| (key, open)));
    }
    Ok(())
}

/// What `read` gives; the reader of Parquet panics at some damage.
fn unpanicked<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    let panicked = |_| Err(ParquetError::General("the file is damaged".to_owned()));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(panicked)
}

/// The next values of a column, as many as rows that are not null; for an optional column with 1 for each row that has
/// a value, and 0 for the others.
fn take<T: DataType>(from: &mut ColumnReaderImpl<T>, rows: usize) -> Result<(Vec<T::T>, Vec<i16>)> {
    let (mut values, mut defined) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut left = rows;
    while left > 0 {
        let (read, _, _) = from.read_records(left, Some(&mut defined), None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF("rows are missing".to_owned()));
        }
        left -= read;
    }
    Ok((values, defined))
}

/// The place of a column.
fn column(metadata: &RowGroupMetaData, name: &str) -> Result<usize> {
    let at = metadata.columns().iter().position(|column| column.column_path().parts() == [name]);
    at.ok_or_else(|| missing(name))
}

impl RunRows {
    fn metadata(&self) -> &RowGroupMetaData {
        self.file.reader.metadata().row_group(self.group)
    }

    fn is_whole(&self) -> bool {
        self.rows == self.metadata().num_rows() as usize
    }

    /// A reader of the column `name` of the row group.
    fn reader<T: DataType>(&self, name: &str) -> Result<ColumnReaderImpl<T>> {
        let metadata = self.metadata();
        let at = column(metadata, name).map_err(|error| self.file.named(error))?;
        if metadata.column(at).column_type() != T::get_physical_type() {
            return Err(self.file.named(missing(name)));
        }
        Ok(get_typed_column_reader(self.file.reader.get_row_group(self.group)?.get_column_reader(at)?))
    }
}

impl RowFile {
    fn open(path: &Path) -> Result<Self> {
        let opened = || -> Result<_> {
            let file = File::open(path)?;
            let reader = SerializedFileReader::new(file.try_clone()?)?;
            Ok(Self { path: path.to_owned(), file, reader })
        };
        unpanicked(opened).map_err(|error| ParquetError::General(format!("{}: {error}", path.display())))
    }

    fn named(&self, error: ParquetError) -> ParquetError {
        ParquetError::General(format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::Study;
    use crate::storage::fixture::{manifest, measured};
    use crate::storage::paths::part_path;
    use crate::storage::tables::row_sums;
    use ::parquet::basic::Compression;
    use ::parquet::record::{Field, Row};
    use serde_json::json;
    use volary_engine::results::{JobRow, Measured};

    fn rows_of(path: &Path) -> Vec<Row> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect()
    }

    fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
        row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field).unwrap()
    }

    /// Writes parts of jobs, and returns a study with their runs.
    fn written(root: &Path, runs: &[Measured]) -> Study {
        fs::create_dir_all(root.join(CELLS)).unwrap();
        let record = |(i, run): (usize, &Measured)| {
            let path = part_path(root, &format!("run{i}"), TableKind::Jobs);
            TableKind::Jobs.write(File::create(path).unwrap(), run).unwrap();
            RunRecord { rows: row_sums(run), ..RunRecord::new(&format!("run{i}"), run) }
        };
        let records = runs.iter().enumerate().map(record).collect();
        Study::assemble(manifest(&[]), vec![root.to_owned()], records, Vec::new(), Vec::new())
    }

    fn index(study: &Study) -> std::result::Result<RowIndex, Error> {
        RowIndex::of(&study.folders, TableKind::Jobs, study.records().map(|record| record.id.as_str()))
    }

    /// Merges the parts into the table of the folder.
    fn merge(root: &Path, study: &Study) -> PathBuf {
        let path = table_path(root, TableKind::Jobs);
        let (to, labels) = (File::create(root.join("merged")).unwrap(), Labels::of(study));
        index(study).unwrap().write(to, Some(&labels), study.records()).unwrap();
        fs::rename(root.join("merged"), &path).unwrap();
        path
    }

    #[test]
    fn a_table_has_the_rows_of_all_runs_behind_labels() {
        let folder = tempfile::tempdir().unwrap();
        let run = |(i, (policy, count)): (usize, (&str, u32))| {
            let swept =
                [("network.loss", json!(0.5 * i as f64)), ("service.demand", json!({"exponential": i}))];
            let mut run = measured(policy, &swept, u64::MAX - i as u64, 1.0, count);
            if let Some(job) = run.jobs.get_mut(3) {
                job.response = f64::NAN;
            }
            run
        };
        let runs: Vec<_> = [("a", 40), ("nothing", 0), ("b", 60)].into_iter().enumerate().map(run).collect();
        let study = written(folder.path(), &runs);
        let merged = merge(folder.path(), &study);
        let all = rows_of(&merged);
        assert_eq!(all.len(), 100);
        let (row, job) = (&all[41], &runs[2].jobs[1]);
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
        assert_eq!(reader.metadata().num_row_groups(), 1, "small runs share a group");
        let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let meanings =
            notes.iter().find(|note| note.key == "volary.columns").unwrap().value.as_ref().unwrap();
        let meanings: BTreeMap<String, String> = serde_json::from_str(meanings).unwrap();
        assert!(all[0].get_column_iter().all(|(name, _)| meanings.contains_key(name)), "{meanings:?}");
        let labels = reader.metadata().row_group(0).column(1);
        assert!(labels.dictionary_page_offset().is_some() && labels.compression() == Compression::SNAPPY);
    }

    /// From parts, then from a table, in another order; runs are shorter than a group, or have one for themselves.
    #[test]
    fn rows_of_a_run_are_found_in_parts_and_tables() {
        let folder = tempfile::tempdir().unwrap();
        let (root, large) = (folder.path(), GROUP_ROWS as u32);
        let counts = [3, 0, large, 5, 7, large + 1, 2];
        let runs: Vec<_> =
            counts.iter().enumerate().map(|(i, count)| measured("p", &[], i as u64, 1.0, *count)).collect();
        let mut study = written(root, &runs);
        let agree = |study: &Study| {
            let index = index(study).unwrap();
            for (i, run) in runs.iter().enumerate() {
                assert_eq!(index.read::<JobRow>(&format!("run{i}")).unwrap(), run.jobs, "{i}");
            }
        };
        agree(&study);
        merge(root, &study);
        fs::remove_dir_all(root.join(CELLS)).unwrap();
        agree(&study);
        study.cells[0].policies[0].runs.reverse();
        let merged = merge(root, &study);
        agree(&study);
        let reader = SerializedFileReader::new(File::open(&merged).unwrap()).unwrap();
        let groups: Vec<_> = reader.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect();
        let large = i64::from(large);
        assert_eq!(groups, [2, large + 1, 12, large, 3], "a large run has a group for itself");
        assert!(index(&study).unwrap().read::<JobRow>("none").unwrap().is_empty());
    }

    #[test]
    fn many_small_runs_make_few_groups() {
        let folder = tempfile::tempdir().unwrap();
        let runs: Vec<_> = (0..600).map(|i| measured("p", &[], i, 1.0, 2)).collect();
        let study = written(folder.path(), &runs);
        let merged = merge(folder.path(), &study);
        let reader = SerializedFileReader::new(File::open(&merged).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 600usize.div_ceil(GROUP_RUNS));
        assert_eq!(rows_of(&merged).len(), 1_200);
    }

    /// The first folder counts, whether it has parts or a table.
    #[test]
    fn rows_come_from_the_folder_that_the_record_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let roots = ["packed", "loose"].map(|name| folder.path().join(name));
        let studies = [3, 5].map(|count| measured("p", &[], 1, 1.0, count));
        let studies = [0, 1].map(|i| written(&roots[i], std::slice::from_ref(&studies[i])));
        merge(&roots[0], &studies[0]);
        fs::remove_dir_all(roots[0].join(CELLS)).unwrap();
        for (folders, count) in [([0, 1], 3), ([1, 0], 5)] {
            let folders = folders.map(|i| roots[i].clone());
            let index = RowIndex::of(&folders, TableKind::Jobs, ["run0", "none"].into_iter()).unwrap();
            assert_eq!(index.read::<JobRow>("run0").unwrap().len(), count);
        }
    }

    #[test]
    fn a_part_that_was_packed_in_the_meantime_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let run = measured("p", &[], 1, 1.0, 4);
        let study = written(folder.path(), std::slice::from_ref(&run));
        let index = index(&study).unwrap();
        merge(folder.path(), &study);
        fs::remove_dir_all(folder.path().join(CELLS)).unwrap();
        assert_eq!(index.read::<JobRow>("run0").unwrap(), run.jobs);
    }

    #[test]
    fn missing_rows_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let study = written(folder.path(), &[measured("p", &[], 1, 1.0, 4)]);
        fs::remove_dir_all(folder.path().join(CELLS)).unwrap();
        let error = index(&study).unwrap().write(Vec::new(), None, study.records()).unwrap_err().to_string();
        assert!(error.contains("no rows of run run0"), "{error}");
    }

    #[test]
    fn a_damaged_part_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let study = written(folder.path(), &[measured("a", &[], 1, 1.0, 1)]);
        let part = part_path(folder.path(), "run0", TableKind::Jobs);
        fs::write(&part, b"PAR1 not really").unwrap();
        let index = index(&study).unwrap();
        let write = || index.write(Vec::new(), None, study.records()).unwrap_err().to_string();
        assert!(write().contains("run0.jobs.parquet"), "{}", write());
        fs::remove_file(&part).unwrap();
        assert!(write().contains("run0.jobs.parquet"), "{}", write());
    }
}
