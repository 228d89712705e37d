//! Records of finished runs: files in `runs/` while a run goes on, and one compressed file once it has ended.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, ErrorKind, Write as _};
use std::path::Path;
use std::rc::Rc;
use std::{iter, mem};

use serde::de::Error as _;

use super::error::{Error, io as failed};
use super::files::{cell_files, checked_line, parse, read, remove, replace, set_aside, write};
use super::manifest::Manifest;
use super::paths::{CELLS, MANIFEST, RECORDS, failure_path, part_path, record_id, record_path, table_path};
use super::run_record::RunRecord;
use super::study::Study;
use super::tables::TableKind;
use crate::parallel;

/// The level of compression: a tenth of the text remains, and packing takes less time than writing the text.
const LEVEL: i32 = 3;
/// Number of records that are parsed at once, on all processors.
const BATCH: usize = 256;

/// The record of a finished run as it is in a folder.
struct RecordText {
    run: String,
    text: String,
    is_packed: bool,
}

impl RecordText {
    fn parse(&self, root: &Path) -> Result<RunRecord, Error> {
        if !self.is_packed {
            return parse(&record_path(root, &self.run), &self.text);
        }
        parse(&root.join(RECORDS), &self.text).map_err(|error| {
            if let Error::Damaged { path, source } = error {
                Error::DamagedRecords { path, source }
            } else {
                error
            }
        })
    }

    /// Whether it can be packed as it is: one line, with the key by which packed records are found, which earlier
    /// versions called `id`.
    fn is_current(&self) -> bool {
        self.text.find('\n').is_some_and(|end| end + 1 == self.text.len()) && run_of(&self.text).is_some()
    }
}

/// The id in the text of a record.
fn run_of(text: &str) -> Option<&str> {
    text.split_once("\"run\":\"").and_then(|(_, rest)| rest.split_once('"')).map(|(run, _)| run)
}

/// The records of the finished runs among `ids`, in no order: those in `runs/`, then the packed ones that are not
/// there as well.
///
/// # Errors
/// Of an item: it is damaged, or the file of packed records is from here on.
pub(super) fn records<'a>(
    root: &'a Path,
    ids: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = Result<RunRecord, Error>> {
    let mut texts = texts(root, ids);
    let batches = iter::from_fn(move || {
        let batch: Vec<_> = texts.by_ref().take(BATCH).collect();
        let parsed = parallel::map(0..batch.len(), |at| Some(batch[at].as_ref().ok()?.parse(root)));
        let items = batch.into_iter().zip(parsed);
        let items = items.filter_map(|(text, parsed)| text.err().map_or(parsed, |error| Some(Err(error))));
        Some(items.collect::<Vec<_>>()).filter(|items| !items.is_empty())
    });
    batches.flatten()
}

/// The same records, not parsed.
fn texts<'a>(
    root: &'a Path,
    ids: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = Result<RecordText, Error>> {
    let (loose, rest): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| record_path(root, id).exists());
    // Runs whose records have been packed since.
    let gone = Rc::new(RefCell::new(BTreeSet::new()));
    let also_gone = Rc::clone(&gone);
    let loose = loose.into_iter().filter_map(move |run| {
        let path = record_path(root, run);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                gone.borrow_mut().insert(run.clone());
                None
            }
            text => {
                let text = text.map_err(failed("read", &path));
                Some(text.map(|text| RecordText { run: run.clone(), text, is_packed: false }))
            }
        }
    });
    let packed = packed_texts(root, rest.into_iter().cloned().collect());
    loose.chain(packed).chain(iter::once_with(move || packed_texts(root, also_gone.take())).flatten())
}

/// The packed records of those of the runs that have one. An error of the file is the last item.
fn packed_texts(root: &Path, ids: BTreeSet<String>) -> impl Iterator<Item = Result<RecordText, Error>> {
    let packed = (!ids.is_empty()).then(|| packed(root)).into_iter().flatten();
    packed.filter(move |text| text.as_ref().map_or(true, |text| ids.contains(&text.run)))
}

/// The packed records of a folder. An error is the last item.
fn packed(root: &Path) -> impl Iterator<Item = Result<RecordText, Error>> {
    let path = root.join(RECORDS);
    let opened = File::open(&path).and_then(zstd::Decoder::new);
    let (lines, unopened) = match opened {
        Ok(decoder) => (Some(BufReader::new(decoder).lines()), None),
        // A run that goes on has none.
        Err(error) if error.kind() == ErrorKind::NotFound => (None, None),
        Err(error) => (None, Some(Err(error))),
    };
    let lines = lines.into_iter().flatten().chain(unopened).map(move |line| {
        let line = line.map_err(|source| match source.raw_os_error() {
            Some(_) => failed("read", &path)(source),
            None => Error::DamagedRecords { path: path.clone(), source: serde_json::Error::custom(source) },
        })? + "\n";
        let run = run_of(&line).unwrap_or_default().to_owned();
        Ok(RecordText { run, text: line, is_packed: true })
    });
    let mut ended = false;
    lines.take_while(move |line| !mem::replace(&mut ended, line.is_err()))
}

/// Packs the records of a study and removes the files of its runs from `runs/`; its rows must be in the folder's
/// tables. Other runs are left, and those that were packed must have been [unpacked](others).
pub(super) fn pack(root: &Path, study: &Study) -> Result<(), Error> {
    let path = root.join(RECORDS);
    replace(&path, |file| write_packed(&path, BufWriter::new(file), study), |error| error)?;
    // What the removed files had must be on the disk before.
    let tables = TableKind::ALL.iter().map(|kind| table_path(root, *kind)).filter(|path| path.exists());
    for path in tables.chain([path]) {
        File::open(&path).and_then(|file| file.sync_all()).map_err(failed("write", &path))?;
    }
    // Their names as well, where the file system can do that.
    let _ = File::open(root).and_then(|folder| folder.sync_all());
    for record in study.records() {
        remove(&record_path(root, &record.id))?;
        // A failure that was copied here, of a run that has finished since.
        remove(&failure_path(root, &record.id))?;
        TableKind::ALL.iter().try_for_each(|kind| remove(&part_path(root, &record.id, *kind)))?;
    }
    // It stays if it has failures, or runs that are none of the study's.
    let _ = fs::remove_dir(root.join(CELLS));
    Ok(())
}

/// Writes the records of a study as they are in its folders: in memory most of them have no timeline.
fn write_packed(path: &Path, to: impl io::Write, study: &Study) -> Result<(), Error> {
    let mut left: BTreeSet<&String> = study.records().map(|record| &record.id).collect();
    let unwritten = failed("write", path);
    let mut to = zstd::Encoder::new(to, LEVEL).map_err(&unwritten)?;
    to.include_checksum(true).map_err(&unwritten)?;
    for folder in &study.folders {
        let own = read::<Manifest>(&folder.join(MANIFEST))?.runs;
        let ids: Vec<&String> = own.iter().filter(|id| left.contains(id)).collect();
        for record in texts(folder, ids) {
            let record = record?;
            if !left.remove(&record.run) {
                continue;
            }
            let text =
                if record.is_current() { record.text } else { checked_line(path, &record.parse(folder)?)? };
            to.write_all(text.as_bytes()).map_err(&unwritten)?;
        }
    }
    if let Some(id) = left.first() {
        return Err(Error::Merge(format!(
            "the record of run {id} was removed while it was read: run again with --resume"
        )));
    }
    to.finish().and_then(|mut to| to.flush()).map_err(&unwritten)
}

/// The records of finished runs that a study does not have, those of an earlier plan. Packed ones are written to
/// `runs/` again; their rows are left where they are. Damaged ones in `runs/` are left out.
pub(super) fn others(root: &Path, study: &Study) -> Result<Vec<RunRecord>, Error> {
    let kept: BTreeSet<&str> = study.records().map(|record| record.id.as_str()).collect();
    unpack(root, |id| !kept.contains(id))?;
    let names = cell_files(root)?;
    let ids = names.iter().filter_map(|name| record_id(name)).filter(|id| !kept.contains(id));
    let records = ids.map(|id| read(&record_path(root, id)));
    records.filter(|record| !matches!(record, Err(Error::Damaged { .. }))).collect()
}

/// Writes packed records that can be read to `runs/`, and sets the damaged file of packed ones aside.
pub(super) fn salvage(root: &Path) -> Result<(), Error> {
    let unpacked = unpack(root, |_| true);
    if !matches!(unpacked, Err(Error::DamagedRecords { .. })) {
        unpacked?;
    }
    set_aside(&root.join(RECORDS))
}

/// Leaves out finished runs, of which something else is missing: all others are in `runs/` then.
pub(super) fn forget(root: &Path, runs: &[RunRecord]) -> Result<(), Error> {
    unpack(root, |_| true)?;
    remove(&root.join(RECORDS))?;
    runs.iter().try_for_each(|run| remove(&record_path(root, &run.id)))
}

/// Writes the packed records of runs for which `is_wanted` holds to `runs/`, unless they are there.
///
/// # Errors
/// A record is damaged: those that can be read have been written. Or a file cannot be read or written.
fn unpack(root: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<(), Error> {
    let runs = root.join(CELLS);
    let mut whole = Ok(());
    for record in packed(root) {
        let unpacked = record.and_then(|record| {
            let path = record_path(root, &record.run);
            if !is_wanted(&record.run) || read::<RunRecord>(&path).is_ok() {
                return Ok(());
            }
            record.parse(root)?;
            fs::create_dir_all(&runs).map_err(failed("create", &runs))?;
            write(&path, record.text.as_bytes())
        });
        match unpacked {
            Err(error @ Error::DamagedRecords { .. }) => whole = whole.and(Err(error)),
            unpacked => unpacked?,
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::render;
    use crate::storage::StudyDir;
    use crate::storage::fixture::{manifest, measured};
    use crate::storage::manifest::RunState;

    #[test]
    fn records_are_found_though_they_are_packed_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let run = StudyDir::create(folder.path(), manifest(&["a", "b"])).unwrap();
        run.store("a", &measured("first", &[], 1, 1.0, 50)).unwrap();
        run.store("b", &measured("second", &[], 1, 1.0, 30)).unwrap();
        let ids = ["a", "b"].map(str::to_owned);
        let reading = records(folder.path(), &ids);
        run.finish(RunState::Finished, &[], render).unwrap();
        assert!(!folder.path().join(CELLS).exists());
        let found: Vec<String> = reading.map(|record| record.unwrap().id).collect();
        assert_eq!(found, ids);
    }
}
