//! Flat tables of a study for other programs: the runs, with a column for each number, and the tables of the study
//! directory.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::mem;
use std::path::{Path, PathBuf};

use ::parquet::errors::Result as ParquetResult;
use serde_json::{Value, json};

pub use super::columns::ExportFormat;
use super::columns::{Column, ColumnType, EncodedGroup, Kind, TableFile, Values};
use super::files::{Error, MANIFEST, io as failed, replace, rows};
use super::run_record::RunRecord;
use super::study::Study;
use super::tables::{GROUP_ROWS, RUN, TableKind};
use crate::parallel;
use crate::stats::Interval;

/// Number of runs in a full row group.
const GROUP_RUNS: usize = 256;
/// Stored bytes, per processor, of the runs whose rows are read together; in memory the rows take several times as
/// much. The rows of a larger run are read chunk by chunk. Tests use a smaller value, so that they have runs of both
/// kinds.
const BATCH: u64 = if cfg!(test) { 500 } else { 1 << 20 };

/// A table that can be exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportTable {
    /// A row for each run, with a column for each number of its results.
    Runs,
    /// A row for each number of the results of a cell and policy, with its mean over the replications.
    Summary,
    /// A table of the study directory.
    Stored(TableKind),
}

impl ExportTable {
    /// The tables that are exported by default.
    pub const USUAL: [Self; 3] = [Self::Runs, Self::Stored(TableKind::Jobs), Self::Stored(TableKind::Tasks)];

    /// All tables.
    pub fn all() -> impl Iterator<Item = Self> {
        let stored = TableKind::ALL.iter().copied().map(Self::Stored);
        [Self::Runs].into_iter().chain(stored).chain([Self::Summary])
    }

    /// The name of the file without suffix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Summary => "summary",
            Self::Stored(kind) => kind.name(),
        }
    }
}

/// Writes `tables` in `format` to the folder `out`, and returns the files.
///
/// # Errors
/// When no run has finished, `out` is a study directory, a part is damaged, or `out` cannot be written.
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
            "{} is a study directory, whose files would be overwritten; name another folder with --out",
            out.display()
        )));
    }
    fs::create_dir_all(out).map_err(failed("create", out))?;
    let labels = Labels::of(study);
    let suffix = match format {
        ExportFormat::Csv => "csv",
        ExportFormat::Parquet => "parquet",
    };
    let write = |table: &ExportTable| {
        let path = out.join(format!("{}.{suffix}", table.name()));
        let fill = |to: File| match table {
            ExportTable::Runs => {
                write_flat(flat(study, &labels), table.name(), format, to).map_err(rows(&path))
            }
            ExportTable::Summary => {
                write_flat(summary(study, &labels), table.name(), format, to).map_err(rows(&path))
            }
            ExportTable::Stored(kind) => write_rows(*kind, format, (to, &path), &labels, study.records()),
        };
        replace(&path, fill, |error| error)?;
        Ok(path)
    };
    tables.iter().map(write).collect()
}

fn write_flat(
    (names, rows): (Vec<String>, Flat),
    table: &str,
    format: ExportFormat,
    to: File,
) -> ParquetResult<()> {
    let values = |name: &str| rows.iter().map(|row| row.get(name)).collect::<Vec<_>>();
    let column = |name: String| {
        let kinds = values(&name).into_iter().flatten().map(Kind::of);
        let kind = if name == "seed" { Some(Kind::Seed) } else { kinds.reduce(Kind::with) };
        ColumnType { name, kind: kind.unwrap_or(Kind::Text), optional: true, repeats: true }
    };
    let types: Vec<ColumnType> = names.into_iter().map(column).collect();
    let columns: Vec<Column<'_>> =
        types.iter().map(|column| Column::of(column.kind, values(&column.name).into_iter())).collect();
    let mut file = TableFile::create(format, to, table, types, &BTreeMap::new())?;
    let group = file.encode(&columns, rows.len())?;
    file.append(group)?;
    file.close()
}

/// The columns and the rows of the summary: for each cell, policy and number of the results, the mean over the
/// replications, the half-width of its 95 % interval, and the count of replications that have the number.
fn summary(study: &Study, labels: &Labels) -> (Vec<String>, Flat) {
    let (_, runs) = flat(study, labels);
    let keys: Vec<&str> = ["policy"].into_iter().chain(labels.swept.keys().map(String::as_str)).collect();
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let mut places: HashMap<Vec<Option<&Value>>, usize> = HashMap::new();
    for run in &runs {
        let key = keys.iter().map(|&key| run.get(key)).collect();
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(run);
    }
    let mut rows = Flat::new();
    for runs in groups {
        let label = |key: &&str| Some(((*key).to_owned(), runs[0].get(*key)?.clone()));
        let figures: BTreeSet<&String> = runs.iter().flat_map(|run| run.keys()).collect();
        for figure in figures.into_iter().filter(|name| *name != "seed" && !keys.contains(&name.as_str())) {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(figure)?.as_f64()).collect();
            let Some(Interval { mean, half_width, replications }) = Interval::new(&values) else { continue };
            let numbers = [
                ("figure", json!(figure)),
                ("mean", json!(mean)),
                ("half_width", json!(half_width)),
                ("replications", json!(replications)),
            ];
            let numbers = numbers.map(|(name, value)| (name.to_owned(), value));
            rows.push(
                keys.iter().filter_map(label).chain(numbers).filter(|(_, value)| !value.is_null()).collect(),
            );
        }
    }
    let names = keys.into_iter().chain(["figure", "mean", "half_width", "replications"]);
    (names.map(str::to_owned).collect(), rows)
}

/// A row of a table: its values by the name of the column.
type Row = BTreeMap<String, Value>;
type Flat = Vec<Row>;

/// The columns, beginning with those that identify a run, and the rows. Swept keys have no prefix; lists are JSON.
fn flat(study: &Study, labels: &Labels) -> (Vec<String>, Flat) {
    let mut names: Vec<String> = labels.columns().map(|column| column.name).collect();
    let mut runs = Flat::new();
    for record in study.records() {
        let mut row: Row = record.summary.cell.clone();
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

/// Adds the numbers in `value`; null values are left out.
fn add(row: &mut Row, key: &str, value: &Value) {
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

/// Writes the rows of runs, in the order of the runs, as a table whose first columns are `labels`. All processors read
/// and encode rows.
///
/// # Errors
/// When the rows of a run cannot be read, or `to` cannot be written.
pub(super) fn write_rows<'a>(
    kind: TableKind,
    format: ExportFormat,
    (to, path): (File, &Path),
    labels: &Labels,
    runs: impl Iterator<Item = &'a RunRecord>,
) -> Result<(), Error> {
    let own = kind.own_columns().iter().map(|&(name, (kind, optional), _)| {
        let name = name.to_owned();
        ColumnType { name, kind, optional, repeats: kind != Kind::Number }
    });
    let fixed = kind.all_meanings().into_iter().map(|(name, meaning)| (name, meaning.to_owned()));
    let meanings: BTreeMap<&str, String> = labels.meanings().chain(fixed).collect();
    let meanings = serde_json::to_string(&meanings).unwrap_or_default();
    let notes = [("volary.row", kind.about().trim().to_owned()), ("volary.columns", meanings)].into();
    let columns = labels.columns().chain(own).collect();
    let mut file = TableFile::create(format, to, kind.name(), columns, &notes).map_err(rows(path))?;
    let write = |file: &mut TableFile, groups: &[RowGroup<'_>]| {
        let encode = |at: usize| groups[at].encode(kind, labels, file);
        parallel::map(0..groups.len(), encode).into_iter().try_for_each(|group| file.append(group?))
    };
    let runs: Vec<_> = runs.collect();
    let most = BATCH * parallel::threads() as u64;
    let mut bytes = runs.first().map_or(0, |run| run.rows.bytes(kind));
    let batches = runs.chunk_by(|_, next| {
        let more = next.rows.bytes(kind);
        let has_room = bytes + more <= most;
        bytes = if has_room { bytes + more } else { more };
        has_room
    });
    let (mut group, mut full) = (RowGroup::default(), Vec::new());
    let mut add = |file: &mut TableFile, record, chunk| {
        full.extend(group.add(record, chunk));
        if full.len() < parallel::threads() { Ok(()) } else { write(file, &mem::take(&mut full)) }
    };
    for runs in batches {
        if let [record] = runs {
            // A run of any size, whose chunks are read one after the other.
            for chunk in record.rows.chunks(kind)? {
                add(&mut file, record, chunk?).map_err(rows(path))?;
            }
            continue;
        }
        let read = |at: usize| runs[at].rows.chunks(kind)?.collect::<Result<Vec<_>, _>>();
        for (record, chunks) in runs.iter().zip(parallel::map(0..runs.len(), read)) {
            chunks?.into_iter().try_for_each(|chunk| add(&mut file, record, chunk)).map_err(rows(path))?;
        }
    }
    full.extend(Some(group).filter(|group| group.rows > 0));
    write(&mut file, &full).and_then(|()| file.close()).map_err(rows(path))
}

/// The rows of a row group of a table.
#[derive(Default)]
struct RowGroup<'a> {
    columns: Vec<Values>,
    /// The runs, each with the number of its rows.
    runs: Vec<(&'a RunRecord, usize)>,
    rows: usize,
}

impl<'a> RowGroup<'a> {
    /// Adds rows; if there is no room for them, returns the full group and begins the next one.
    fn add(&mut self, record: &'a RunRecord, more: Vec<Values>) -> Option<Self> {
        let count = more.first().map_or(0, Values::len);
        let is_full = self.rows + count > GROUP_ROWS || self.runs.len() == GROUP_RUNS;
        let full = is_full.then(|| mem::take(self)).filter(|full| full.rows > 0);
        self.rows += count;
        self.runs.push((record, count));
        if self.columns.is_empty() {
            self.columns = more;
        } else {
            self.columns.iter_mut().zip(more).for_each(|(column, more)| column.append(more));
        }
        full
    }

    fn encode(&self, kind: TableKind, labels: &Labels, file: &TableFile) -> ParquetResult<EncodedGroup> {
        let own = self.columns.iter().zip(kind.types());
        let own = own.map(|(values, (_, optional))| Column::own(Cow::Borrowed(values), optional));
        let columns: Vec<Column<'_>> = labels.of_runs(&self.runs).chain(own).collect();
        file.encode(&columns, self.rows)
    }
}

/// The first columns of every table, which have the same values in all rows of a run: the columns that identify the
/// run, then a column for each swept key, named by the dotted key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Labels {
    swept: BTreeMap<String, Kind>,
}

impl Labels {
    /// The labels of a study. Their types follow from all values of the sweep, so that every slice of an experiment has
    /// the same types.
    pub(super) fn of(study: &Study) -> Self {
        let planned: Vec<(String, Vec<Value>)> = study
            .manifest
            .spec
            .get("sweep")
            .cloned()
            .and_then(|axes| serde_json::from_value(axes).ok())
            .unwrap_or_default();
        let planned = planned.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        let mut swept: BTreeMap<String, Kind> = BTreeMap::new();
        for (key, value) in planned.chain(study.cells.iter().flat_map(|group| &group.cell)) {
            let kind = Kind::of(value);
            swept.entry(key.clone()).and_modify(|known| *known = known.with(kind)).or_insert(kind);
        }
        Self { swept }
    }

    /// The columns of the labels.
    pub(super) fn columns(&self) -> impl Iterator<Item = ColumnType> {
        let run = RUN.iter().zip([Kind::Text, Kind::Text, Kind::Seed]);
        let run = run.map(|((name, _), kind)| ((*name).to_owned(), kind, false));
        let swept = self.swept.iter().map(|(key, kind)| (key.clone(), *kind, true));
        run.chain(swept).map(|(name, kind, optional)| ColumnType { name, kind, optional, repeats: true })
    }

    /// The columns of swept values and their meanings.
    fn meanings(&self) -> impl Iterator<Item = (&str, String)> {
        self.swept.keys().map(|key| (key.as_str(), format!("swept value of `{key}`")))
    }

    /// The values of the label columns for runs, each repeated for its number of rows.
    fn of_runs<'c>(&self, runs: &[(&RunRecord, usize)]) -> impl Iterator<Item = Column<'c>> {
        let counts: Vec<usize> = runs.iter().map(|(_, count)| *count).collect();
        let ids = runs.iter().map(|(record, _)| record.id.as_str());
        let policies = runs.iter().map(|(record, _)| record.summary.policy.as_str());
        let seeds = runs.iter().map(|(record, _)| record.summary.seed.cast_signed());
        let run = [
            Values::Texts(ids.collect()),
            Values::Texts(policies.collect()),
            Values::Integers(seeds.collect()),
        ];
        let run = run.map(|values| Column::own(Cow::Owned(values), false));
        let swept = self.swept.iter();
        let swept =
            swept.map(|(key, kind)| Column::of(*kind, runs.iter().map(|(of, _)| of.summary.cell.get(key))));
        let columns: Vec<Column<'_>> = run.into_iter().chain(swept).collect();
        columns.into_iter().map(move |column| column.repeated(&counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::{manifest, measured};
    use crate::storage::manifest::RunState;
    use crate::storage::{RenderedReport, StudyDir, load};
    use ::parquet::basic::Compression;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::{Field, Row};
    use volary_engine::results::Measured;

    /// A study of two runs whose swept values are distributions, with a policy whose label needs quotes.
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
    fn an_exported_table_has_a_row_for_each_run() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(&folder.path().join("run"));
        let out = folder.path().join("out");
        let files = export(&study, &ExportTable::USUAL, ExportFormat::Csv, &out).unwrap();
        assert_eq!(files, ["runs", "jobs", "tasks"].map(|name| out.join(format!("{name}.csv"))));
        let runs = fs::read_to_string(&files[0]).unwrap();
        let lines: Vec<&str> = runs.lines().collect();
        assert!(
            lines[0].starts_with("run,policy,seed,network.loss,service.demand,bounded_slowdown."),
            "{runs}"
        );
        assert!(lines[0].contains("response_s.p99,") && !lines[0].contains(",wait_s.p99"), "{runs}");
        let first = r#"1,"a, ""b""",18446744073709551615,0.0,"{""exponential"":{""mean"":""5ms""}}","#;
        assert!(lines[1].starts_with(first) && lines.len() == 3, "{runs}");
        let jobs = fs::read_to_string(&files[1]).unwrap();
        let second = jobs.lines().nth(2).unwrap();
        let (_, times) = second.split_once(",1,0.02,").unwrap();
        assert_eq!(times.split(',').nth(1), Some(""), "an unfinished job has no response time: {jobs}");
        assert_eq!(jobs.lines().count(), 7);
    }

    #[test]
    fn the_summary_has_means_and_half_widths_of_each_cell_and_policy() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let run = StudyDir::create(&root, manifest(&["1", "2", "3"])).unwrap();
        for (id, seed, loss) in [("1", 1, 0.0), ("2", 2, 0.0), ("3", 1, 0.5)] {
            let mut measured = measured("a", &[("network.loss", json!(loss))], seed, 1.0, 3);
            measured.summary.times.response_s.mean = seed as f64;
            run.store(id, &measured).unwrap();
        }
        run.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap();
        let study = load(&root).unwrap();
        let out = folder.path().join("out");
        let files = export(&study, &[ExportTable::Summary], ExportFormat::Csv, &out).unwrap();
        let text = fs::read_to_string(&files[0]).unwrap();
        let mut lines =
            text.lines().filter(|line| line.contains("response_s.mean") || line.contains("figure"));
        assert_eq!(lines.next(), Some("policy,network.loss,figure,mean,half_width,replications"));
        let first: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!([first[0], first[1], first[3], first[5]], ["a", "0.0", "1.5", "2"], "{text}");
        // Student's t with one degree of freedom, times the standard error of 1 and 2.
        assert!((first[4].parse::<f64>().unwrap() - 12.706 * 0.5).abs() < 0.001, "{text}");
        assert_eq!(lines.next(), Some("a,0.5,response_s.mean,1.0,,1"));
        assert!(!text.contains("seed"), "{text}");
    }

    #[test]
    fn both_formats_have_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(&folder.path().join("run"));
        let out = folder.path().join("out");
        let tables: Vec<ExportTable> = ExportTable::all().collect();
        let files = export(&study, &tables, ExportFormat::Parquet, &out).unwrap();
        export(&study, &tables, ExportFormat::Csv, &out).unwrap();
        assert_eq!(files.len(), ExportTable::all().count());
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

    /// The jobs of a finished study of `runs`: the rows, and the reader of the file.
    fn jobs(runs: &[Measured]) -> (Vec<Row>, SerializedFileReader<File>) {
        let folder = tempfile::tempdir().unwrap();
        let ids: Vec<String> = (0..runs.len()).map(|i| format!("run{i}")).collect();
        let plan = manifest(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        let study = StudyDir::create(folder.path(), plan).unwrap();
        ids.iter().zip(runs).for_each(|(id, run)| drop(study.store(id, run).unwrap()));
        study.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap();
        let file = File::open(folder.path().join("jobs.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        (reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect(), reader)
    }

    fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
        row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field).unwrap()
    }

    #[test]
    fn a_table_has_the_rows_of_all_runs_with_their_labels() {
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
        let (all, reader) = jobs(&runs);
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
        assert_eq!(reader.metadata().num_row_groups(), 1, "small runs share a group");
        let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let meanings =
            notes.iter().find(|note| note.key == "volary.columns").unwrap().value.as_ref().unwrap();
        let meanings: BTreeMap<String, String> = serde_json::from_str(meanings).unwrap();
        assert!(all[0].get_column_iter().all(|(name, _)| meanings.contains_key(name)), "{meanings:?}");
        let labels = reader.metadata().row_group(0).column(1);
        assert!(labels.dictionary_page_offset().is_some() && labels.compression() == Compression::SNAPPY);
    }

    #[test]
    fn a_large_run_fills_several_row_groups_and_small_runs_share_one() {
        let large = GROUP_ROWS as u32;
        let counts = [3, 0, large + 1, 5];
        let runs: Vec<_> =
            counts.iter().enumerate().map(|(i, count)| measured("p", &[], i as u64, 1.0, *count)).collect();
        let (rows, reader) = jobs(&runs);
        let groups: Vec<_> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [3, i64::from(large), 6]);
        let numbers: Vec<_> = rows.iter().map(|row| field(row, "job").clone()).collect();
        assert!(
            numbers == counts.iter().flat_map(|n| (0..*n).map(|n| Field::Long(n.into()))).collect::<Vec<_>>()
        );
        let (rows, reader) = jobs(&(0..600).map(|i| measured("p", &[], i, 1.0, 2)).collect::<Vec<_>>());
        assert_eq!((reader.metadata().num_row_groups(), rows.len()), (600usize.div_ceil(GROUP_RUNS), 1_200));
    }
}
