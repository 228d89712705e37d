//! Flat tables of a study for other programs: runs with a column a figure, and those of the study directory.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use ::parquet::errors::Result as ParquetResult;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use clap::ValueEnum;
use serde_json::Value;
use volary_engine::results::plain;

use super::error::{Error, io as failed, rows};
use super::files::replace;
use super::labels::{Labels, write_flat};
use super::paths::MANIFEST;
use super::rows::RowIndex;
use super::study::Study;
use super::tables::TableKind;

/// The format of exported tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportFormat {
    /// Text with a line of column names; what is null is empty.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl ExportFormat {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// A table that can be exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportTable {
    /// A row for each run, with a column for each figure.
    Runs,
    /// A table of the study directory.
    Stored(TableKind),
}

impl ExportTable {
    /// The tables that every run has.
    pub const USUAL: [Self; 3] = [Self::Runs, Self::Stored(TableKind::Jobs), Self::Stored(TableKind::Tasks)];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Runs].into_iter().chain(TableKind::ALL.iter().copied().map(Self::Stored))
    }

    /// The name of the file without suffix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Stored(kind) => kind.name(),
        }
    }
}

/// Writes `tables` in `format` to the folder `out`, and returns the files.
///
/// # Errors
/// No run has finished, `out` is a study directory, a part is damaged, or `out` cannot be written.
pub fn export(
    study: &Study,
    tables: &[ExportTable],
    format: ExportFormat,
    out: &Path,
) -> Result<Vec<PathBuf>, Error> {
    if study.records().next().is_none() {
        return Err(Error::Merge(
            "no run has finished, so there is nothing to export; finish it with --resume".to_owned(),
        ));
    }
    if out.join(MANIFEST).exists() {
        return Err(Error::Merge(format!(
            "{} is a study directory, whose files would be written over; name another folder with --out",
            out.display()
        )));
    }
    fs::create_dir_all(out).map_err(failed("create", out))?;
    let labels = Labels::of(study);
    let write = |table: &ExportTable| {
        let path = out.join(format!("{}.{}", table.name(), format.suffix()));
        match table {
            ExportTable::Runs => replace(&path, |to| write_runs(study, &labels, format, to), rows(&path))?,
            ExportTable::Stored(kind) => {
                let ids = study.records().map(|record| record.id.as_str());
                let index = RowIndex::of(&study.folders, *kind, ids)?;
                let make = |table| index.write(table, Some(&labels), study.records());
                let fill = |to| match format {
                    ExportFormat::Csv => write_csv(to, made(make)?),
                    ExportFormat::Parquet => make(to),
                };
                replace(&path, fill, rows(&path))?;
            }
        }
        Ok(path)
    };
    tables.iter().map(write).collect()
}

fn write_runs(study: &Study, labels: &Labels, format: ExportFormat, to: File) -> ParquetResult<()> {
    let (names, runs) = flat(study, labels);
    match format {
        ExportFormat::Csv => Ok(csv(to, &names, &runs)?),
        ExportFormat::Parquet => write_flat(to, ExportTable::Runs.name(), &names, &runs),
    }
}

/// A Parquet table in a file without a name.
fn made(make: impl FnOnce(File) -> ParquetResult<()>) -> ParquetResult<File> {
    let mut table = tempfile::tempfile().map_err(|error| {
        let why = format!(
            "cannot make a file in {}: {error}; name another folder with TMPDIR",
            env::temp_dir().display()
        );
        io::Error::new(error.kind(), why)
    })?;
    make(table.try_clone()?)?;
    table.rewind()?;
    Ok(table)
}

/// A row for each run: its figures by their dotted keys.
type Flat = Vec<BTreeMap<String, Value>>;

/// The columns, those that name a run first, and the rows. Swept values are under their keys alone; lists are JSON.
fn flat(study: &Study, labels: &Labels) -> (Vec<String>, Flat) {
    let mut names: Vec<String> = labels.names().map(str::to_owned).collect();
    let mut runs = Flat::new();
    for record in study.records() {
        let mut row: BTreeMap<String, Value> = record.summary.cell.clone();
        let line = serde_json::to_value(record.line()).unwrap_or_default();
        for (key, value) in line.as_object().into_iter().flatten().filter(|(key, _)| *key != "cell") {
            add(&mut row, key, value);
        }
        runs.push(row);
    }
    let figures: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    let more: Vec<String> = figures.into_iter().filter(|name| !names.contains(name)).cloned().collect();
    names.extend(more);
    (names, runs)
}

/// Adds the figures in `value`; those that are null are left out.
fn add(row: &mut BTreeMap<String, Value>, key: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(below) => {
            for (name, value) in below {
                add(row, &format!("{key}.{name}"), value);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            row.insert(key.to_owned(), value.clone());
        }
    }
}

fn csv(to: File, names: &[String], rows: &Flat) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    line(&mut to, names.iter().cloned())?;
    for row in rows {
        line(&mut to, names.iter().map(|name| row.get(name).map(plain).unwrap_or_default()))?;
    }
    to.flush()
}

/// Writes the rows of a Parquet table.
fn write_csv(to: File, table: File) -> ParquetResult<()> {
    let reader = SerializedFileReader::new(table)?;
    let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
    let mut to = BufWriter::new(to);
    line(&mut to, columns.iter().map(|column| column.name().to_owned()))?;
    for row in reader.get_row_iter(None)? {
        let row = row?;
        line(&mut to, row.get_column_iter().map(|(_, field)| text(field)))?;
    }
    Ok(to.flush()?)
}

/// A field as it is in CSV; null is empty.
fn text(field: &Field) -> String {
    if let Field::Str(text) = field {
        text.clone()
    } else if let Field::Double(number) = field {
        // As in JSON, and so as in the table of runs.
        if number.is_finite() { Value::from(*number).to_string() } else { number.to_string() }
    } else if *field == Field::Null {
        String::new()
    } else {
        field.to_string()
    }
}

/// Writes a line of fields, in quotes where they need some (RFC 4180).
fn line(to: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            to.write_all(b",")?;
        }
        if field.contains([',', '"', '\n', '\r']) {
            write!(to, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            to.write_all(field.as_bytes())?;
        }
    }
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::{manifest, measured};
    use crate::storage::manifest::RunState;
    use crate::storage::{RenderedReport, StudyDir, load};
    use serde_json::json;

    /// A study of two runs under distributions, with a policy whose label needs quotes.
    fn study(root: &Path) -> Study {
        let run = StudyDir::create(root, manifest(&["1", "2"])).unwrap();
        for (id, loss) in [("1", 0.0), ("2", 0.5)] {
            let distribution = json!({"exponential": {"mean": "5ms"}});
            let cell = [("network.loss", json!(loss)), ("service.demand", distribution)];
            let mut measured = measured("a, \"b\"", &cell, u64::MAX, 1.0, 3);
            measured.jobs[1].response = f64::NAN;
            measured.summary.times.wait_s.p99 = f64::NAN;
            run.store(id, &measured).unwrap();
        }
        run.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap();
        load(root).unwrap()
    }

    #[test]
    fn a_run_is_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(&folder.path().join("run"));
        let out = folder.path().join("out");
        let files = export(&study, &ExportTable::USUAL, ExportFormat::Csv, &out).unwrap();
        assert_eq!(files, ["runs", "jobs", "tasks"].map(|name| out.join(format!("{name}.csv"))));
        let runs = fs::read_to_string(&files[0]).unwrap();
        let lines: Vec<&str> = runs.lines().collect();
        assert!(lines[0].starts_with("run,policy,seed,network.loss,service.demand,copies."), "{runs}");
        assert!(lines[0].contains("response_s.p99,") && !lines[0].contains("wait_s.p99"), "{runs}");
        let first = r#"1,"a, ""b""",18446744073709551615,0.0,"{""exponential"":{""mean"":""5ms""}}","#;
        assert!(lines[1].starts_with(first) && lines.len() == 3, "{runs}");
        let jobs = fs::read_to_string(&files[1]).unwrap();
        let second = jobs.lines().nth(2).unwrap();
        assert!(second.contains(",1,0.02,,"), "an unfinished job has no response time: {jobs}");
        assert_eq!(jobs.lines().count(), 7);
    }

    #[test]
    fn both_formats_have_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(&folder.path().join("run"));
        let out = folder.path().join("out");
        let tables: Vec<ExportTable> = ExportTable::all().collect();
        let files = export(&study, &tables, ExportFormat::Parquet, &out).unwrap();
        export(&study, &tables, ExportFormat::Csv, &out).unwrap();
        assert_eq!(files.len(), 6);
        for file in files {
            let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
            let count = reader.get_row_iter(None).unwrap().count();
            let text = fs::read_to_string(file.with_extension("csv")).unwrap();
            assert_eq!(text.lines().count(), count + 1, "{}", file.display());
            let names = reader.metadata().file_metadata().schema_descr().columns().to_vec();
            let names: Vec<&str> = names.iter().map(|column| column.name()).collect();
            assert_eq!(text.lines().next().unwrap(), names.join(","));
        }
    }

    #[test]
    fn a_study_directory_as_target_and_a_study_without_runs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let study = study(&root);
        let error = export(&study, &ExportTable::USUAL, ExportFormat::Csv, &root).unwrap_err().to_string();
        assert!(error.contains("is a study directory") && error.contains("--out"), "{error}");
        let none = Study::assemble(manifest(&["1"]), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let error = export(&none, &ExportTable::USUAL, ExportFormat::Csv, &folder.path().join("o"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no run has finished"), "{error}");
    }
}
