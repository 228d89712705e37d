//! Readers of a study directory.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use ::parquet::errors::ParquetError;
use serde::de::DeserializeOwned;
use volary_engine::results::{ClaimResult, ClaimsLine, SCHEMA};

use super::error::{Error, damaged, io, unreadable};
use super::files::{is_owned, read};
use super::manifest::{Failure, Manifest};
use super::paths::{CLAIMS, MANIFEST, SUMMARY, failure_path};
use super::record_list::{RecordList, TIMELINES};
use super::records::records;
use super::rows::RowIndex;
use super::study::Study;
use super::tables::{TableKind, TableRow};
use crate::storage::run_record::RunRecord;

/// The study of one study directory, finished or not.
///
/// # Errors
/// The folder holds no run, or a file in it is damaged.
pub fn load(root: &Path) -> Result<Study, Error> {
    let manifest = load_manifest(root)?;
    let records = load_records(root, &manifest)?;
    let failures = load_failures(root, &manifest)?;
    let claims = load_claims(root)?;
    Ok(Study::assemble(manifest, vec![root.to_owned()], records, claims, failures))
}

/// The manifest of a study directory. A run whose process has ended is not shown as running.
///
/// # Errors
/// [`Error::NotARun`], [`Error::Schema`], [`Error::Damaged`].
pub fn load_manifest(root: &Path) -> Result<Manifest, Error> {
    let path = root.join(MANIFEST);
    if !path.exists() {
        return Err(Error::NotARun { path: root.to_owned() });
    }
    let mut manifest: Manifest = read(&path)?;
    if manifest.schema != SCHEMA {
        return Err(Error::Schema { path: root.to_owned(), found: manifest.schema });
    }
    if !is_owned(root) {
        manifest.state = manifest.state.without_its_process();
    }
    Ok(manifest)
}

/// The finished runs of a study directory, in the manifest's order; runs of earlier plans are left out. Of many, only
/// those that are drawn have their timelines.
///
/// # Errors
/// A run is damaged.
pub fn load_records(root: &Path, manifest: &Manifest) -> Result<Vec<RunRecord>, Error> {
    load_records_with(root, manifest, TIMELINES)
}

/// The same; in any case the first `timelines` runs of the manifest keep theirs.
pub(super) fn load_records_with(
    root: &Path,
    manifest: &Manifest,
    timelines: usize,
) -> Result<Vec<RunRecord>, Error> {
    let early: BTreeSet<&String> = manifest.runs.iter().take(timelines).collect();
    let mut found = RecordList::default();
    for record in records(root, distinct(&manifest.runs)) {
        let record = record?;
        let is_early = early.contains(&record.id);
        found.push(record, is_early);
    }
    let mut found = found.into_records();
    sort(&mut found, &manifest.runs);
    Ok(found)
}

/// The records of those of the runs `ids` that have finished, in this order.
///
/// # Errors
/// A record is damaged.
pub fn records_of(root: &Path, ids: &[String]) -> Result<Vec<RunRecord>, Error> {
    let mut found: Vec<RunRecord> = records(root, distinct(ids)).collect::<Result<_, _>>()?;
    sort(&mut found, ids);
    Ok(found)
}

/// Each id once.
fn distinct(ids: &[String]) -> impl Iterator<Item = &String> {
    let mut seen = BTreeSet::new();
    ids.iter().filter(move |id| seen.insert(*id))
}

/// Puts records into the order of their ids.
fn sort(records: &mut [RunRecord], ids: &[String]) {
    // Of an id that is there twice, the first place is inserted last.
    let places: BTreeMap<&str, usize> =
        ids.iter().enumerate().rev().map(|(at, id)| (id.as_str(), at)).collect();
    records.sort_by_key(|record| places.get(record.id.as_str()).copied());
}

/// The lines of the summary, one a run that has ended, as far as they are asked for; those of claims, which earlier
/// versions added, are left out. A last line that is still being written is left out as well.
///
/// # Errors
/// There is no summary, or a line is damaged.
pub fn load_summary<L: DeserializeOwned>(root: &Path) -> Result<Vec<L>, Error> {
    let path = root.join(SUMMARY);
    let text = fs::read_to_string(&path).map_err(io("read", &path))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().filter(|line| !line.starts_with(CLAIMS_LINE));
    lines.map(|line| serde_json::from_str(line).map_err(damaged(&path))).collect()
}

/// The claims of a finished study directory; empty if it has none. Earlier versions kept them in the last line of the
/// summary.
///
/// # Errors
/// A file cannot be read, or a line is damaged.
pub fn load_claims(root: &Path) -> Result<Vec<ClaimResult>, Error> {
    let path = root.join(CLAIMS);
    if path.exists() {
        let text = fs::read_to_string(&path).map_err(io("read", &path))?;
        let claims: serde_json::Result<_> = text.lines().map(serde_json::from_str).collect();
        return Ok(claims.unwrap_or_else(|error| {
            tracing::warn!(
                "{} is damaged ({error}): `volary report` judges the claims again",
                path.display()
            );
            Vec::new()
        }));
    }
    let path = root.join(SUMMARY);
    let text = match fs::read_to_string(&path) {
        // It is made from records, which may be there.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(io("read", &path))?,
    };
    let Some(line) = text.lines().find(|line| line.starts_with(CLAIMS_LINE)) else { return Ok(Vec::new()) };
    let claims: ClaimsLine = serde_json::from_str(line).map_err(damaged(&path))?;
    Ok(claims.claims)
}

/// The start of the line of claims; no summary starts like this.
const CLAIMS_LINE: &str = "{\"claims\"";

/// The failures of a study directory's runs, in its manifest's order.
///
/// # Errors
/// A log is damaged.
pub fn load_failures(root: &Path, manifest: &Manifest) -> Result<Vec<Failure>, Error> {
    let paths = manifest.runs.iter().map(|id| failure_path(root, id)).filter(|path| path.exists());
    paths.map(|path| read(&path)).collect()
}

/// The rows of a finished run: jobs in order of id, sampled executions in order of their ends, stretches of real cores
/// by core and time. For several runs of a folder, [`StudyRows`] finds the rows of all at once.
///
/// # Errors
/// They are missing or damaged.
pub fn load_rows<R: TableRow>(root: &Path, id: &str) -> Result<Vec<R>, Error> {
    let index = RowIndex::of(&[root.to_owned()], R::KIND, iter::once(id))?;
    if !index.has(id) {
        // A run without such rows is in no table.
        let record = records_of(root, &[id.to_owned()])?.pop();
        let none = || ParquetError::General(format!("run {id} has not finished"));
        let record = record.ok_or_else(none).map_err(unreadable(root))?;
        R::KIND.may_lack(&record).map_err(unreadable(root))?;
    }
    index.read(id).map_err(unreadable(root))
}

/// The rows of the runs of a study. A table is searched for the places of all runs when it is first read.
pub struct StudyRows {
    folders: Vec<PathBuf>,
    ids: Vec<String>,
    /// By kind, in the order of [`TableKind::ALL`].
    indices: [OnceCell<RowIndex>; TableKind::ALL.len()],
}

impl StudyRows {
    pub fn of(study: &Study) -> Self {
        let ids = study.records().map(|record| record.id.clone()).collect();
        Self { folders: study.folders.clone(), ids, indices: Default::default() }
    }

    /// The rows of a run, in the order of [`load_rows`].
    ///
    /// # Errors
    /// They are missing or damaged.
    pub fn read<R: TableRow>(&self, record: &RunRecord) -> Result<Vec<R>, Error> {
        let index = self.index(R::KIND)?;
        let root = self.folders.first().map_or_else(|| Path::new(""), PathBuf::as_path);
        if !index.has(&record.id) {
            R::KIND.may_lack(record).map_err(unreadable(root))?;
        }
        index.read(&record.id).map_err(unreadable(root))
    }

    fn index(&self, kind: TableKind) -> Result<&RowIndex, Error> {
        let known = &self.indices[kind as usize];
        if let Some(index) = known.get() {
            return Ok(index);
        }
        let index = RowIndex::of(&self.folders, kind, self.ids.iter().map(String::as_str))?;
        Ok(known.get_or_init(|| index))
    }
}
