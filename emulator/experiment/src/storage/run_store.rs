//! The file `runs.log`: the finished runs of a study, each with its record and the rows of its tables.
//!
//! It consists of `frames`, one for each run, in the order in which the runs ended; if a run has several frames, the
//! last one is read. Every frame has the section `MARK`: after a damaged frame, a search for this mark finds the next
//! frame. A payload is a `Head`, then its parts, each compressed separately: the record as JSON, then the rows of each
//! table.
//!
//! A frame is appended in one write: a process that is killed leaves whole frames and at most one incomplete frame.
//! Readers ignore damaged parts; the next process that writes to the file removes them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::iter;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use volary_engine::results::Measured;
use zstd::bulk::Compressor;

use super::files::{Error, RUNS, append, io as failed, replace, set_aside};
use super::frames::{HEADER, NextFrame, PREFIX, SECTION, frame, next_frame, prefix, read_prefix, vocabulary};
use super::run_record::RunRecord;
use super::run_rows::{PARTS, RunFrame, RunRows, StoreFile};
use super::tables::TableKind;
use crate::number::plural;
use crate::{codec, parallel};

/// The first bytes of the file.
const MAGIC: [u8; 8] = *b"volaryrn";
/// Version of the format, raised whenever frames change. The vocabulary includes the version of the tables.
const FORMAT: u32 = 1;
/// The section number of every frame, by which a search finds frames after a damaged one.
const MARK: u32 = u32::from_le_bytes(*b"\xffrun");
/// The level of compression. Higher levels take longer than a small run.
const LEVEL: i32 = 3;
/// Number of records that are read in parallel.
const BATCH: usize = 256;
/// Number of bytes that are searched at once.
const SEARCHED: usize = 1 << 20;

/// The start of a payload.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    run: String,
    /// Lengths of the parts in bytes; zero for a table without rows.
    parts: [u32; PARTS],
}

/// The finished runs of a study directory, as far as the file was read.
#[derive(Debug)]
pub struct RunStore {
    /// The open file; `None` if there is none.
    log: Option<Arc<StoreFile>>,
    path: PathBuf,
    runs: BTreeMap<String, RunFrame>,
    /// Offset of the end of the last whole frame.
    end: u64,
    size: u64,
    /// Damaged ranges before the last whole frame.
    lost: Vec<Range<u64>>,
}

impl RunStore {
    /// The runs of a study directory; none if there is no file yet.
    ///
    /// # Errors
    /// When the file cannot be read, is not a log of runs, or is of another version.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let path = root.join(RUNS);
        let mut store = Self { log: None, path, runs: BTreeMap::new(), end: 0, size: 0, lost: Vec::new() };
        store.refresh()?;
        Ok(store)
    }

    /// Reads the frames that were added to the file since the last call, or the whole file if another one replaced it.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn refresh(&mut self) -> Result<(), Error> {
        let unread = failed("read", &self.path);
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (self.log, self.size, self.end) = (None, 0, 0);
                self.runs.clear();
                self.lost.clear();
                return Ok(());
            }
            file => file.map_err(&unread)?,
        };
        let identity = |file: &File| file.metadata().map(|of| (of.dev(), of.ino())).map_err(&unread);
        self.size = file.metadata().map_err(&unread)?.len();
        let known = self.log.as_ref().map(|log| identity(&log.file)).transpose()?;
        if known != Some(identity(&file)?) || self.size < self.end {
            (self.log, self.end) = (Some(Arc::new(StoreFile { path: self.path.clone(), file })), 0);
            self.runs.clear();
            self.lost.clear();
        }
        let Some(log) = self.log.clone() else { return Ok(()) };
        self.scan(&mut BufReader::with_capacity(1 << 16, &log.file)).map_err(unread)?
    }

    fn scan(&mut self, file: &mut (impl Read + Seek)) -> io::Result<Result<(), Error>> {
        if self.end == 0 {
            // A file shorter than its prefix is still being created, or its process was killed.
            if self.size < PREFIX {
                return Ok(Ok(()));
            }
            file.rewind()?;
            match read_prefix(file, self.size, MAGIC)? {
                None => return Ok(Err(Error::ForeignLog { path: self.path.clone() })),
                Some(found) if found == version() => self.end = PREFIX,
                Some(_) => return Ok(Err(Error::LogVersion { path: self.path.clone() })),
            }
        }
        file.seek(SeekFrom::Start(self.end))?;
        let mut payload = Vec::new();
        while self.end < self.size {
            if let Some((run, found)) = whole(file, self.end, self.size, &mut payload)? {
                self.end = found.bytes.end;
                self.runs.insert(run, found);
            } else if let Some(next) = next_whole(file, self.end + 1, self.size)? {
                self.lost.push(self.end..next);
                self.end = next;
                file.seek(SeekFrom::Start(next))?;
            } else {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// Opens the file to append to it, and creates it if needed. Damaged parts are removed. A file that is not a log of
    /// runs is set aside.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is of another version.
    pub(super) fn open_to_write(root: &Path) -> Result<Self, Error> {
        let mut store = match Self::open(root) {
            Err(error @ Error::ForeignLog { .. }) => {
                tracing::warn!("{error}");
                set_aside(&root.join(RUNS))?;
                Self::open(root)?
            }
            store => store?,
        };
        if let Some(damage) = store.damage(false) {
            tracing::warn!("{damage}: the damaged part is removed, and the missing runs are repeated");
        }
        if store.end < PREFIX || !store.lost.is_empty() {
            let mut frames: Vec<&RunFrame> = store.runs.values().collect();
            frames.sort_by_key(|frame| frame.bytes.start);
            write(&store.path, frames.into_iter().filter_map(|frame| Some((store.log.as_deref()?, frame))))?;
            store.refresh()?;
        }
        let unwritten = failed("write", &store.path);
        let file = OpenOptions::new().read(true).append(true).open(&store.path).map_err(&unwritten)?;
        if store.end < store.size {
            file.set_len(store.end).map_err(&unwritten)?;
            store.size = store.end;
        }
        store.log = Some(Arc::new(StoreFile { path: store.path.clone(), file }));
        Ok(store)
    }

    /// A description of the damage of the file, if any. While the file is being written, bytes after the last whole run
    /// are not damage.
    pub(super) fn damage(&self, is_written: bool) -> Option<String> {
        let lost: u64 = self.lost.iter().map(|lost| lost.end - lost.start).sum();
        let cut = if self.end < PREFIX || is_written { 0 } else { self.size - self.end };
        let (what, bytes) =
            if lost > 0 { ("is damaged", lost + cut) } else { ("ends with an incomplete run", cut) };
        (bytes > 0)
            .then(|| format!("{} {what} ({} of broken runs)", self.path.display(), plural(bytes, "byte")))
    }

    /// The runs, each with the byte range of its frame.
    pub fn runs(&self) -> impl Iterator<Item = (&str, Range<u64>)> {
        self.runs.iter().map(|(id, frame)| (id.as_str(), frame.bytes.clone()))
    }

    /// The rows of a run, if the run is stored.
    pub fn rows(&self, id: &str) -> Option<RunRows> {
        Some(RunRows(Some((Arc::clone(self.log.as_ref()?), self.runs.get(id)?.clone()))))
    }

    /// The records of the stored runs among `ids`, in the order of `ids`.
    ///
    /// # Errors
    /// An item is an error if the record cannot be read.
    pub fn records<'a>(
        &'a self,
        ids: impl IntoIterator<Item = &'a String> + 'a,
    ) -> impl Iterator<Item = Result<RunRecord, Error>> + 'a {
        self.parsed(ids).map(|found| {
            let (frame, log, record): (_, _, RunRecord) = found?;
            Ok(RunRecord { rows: RunRows(Some((Arc::clone(log), frame.clone()))), ..record })
        })
    }

    /// The fields of `T`, read from stored records; see [`records`](Self::records).
    ///
    /// # Errors
    /// An item is an error if the record cannot be read.
    pub fn parts_of_records<'a, T: DeserializeOwned + Send>(
        &'a self,
        ids: impl IntoIterator<Item = &'a String> + 'a,
    ) -> impl Iterator<Item = Result<T, Error>> + 'a {
        self.parsed(ids).map(|found| found.map(|(_, _, record)| record))
    }

    fn parsed<'a, T: DeserializeOwned + Send>(
        &'a self,
        ids: impl IntoIterator<Item = &'a String> + 'a,
    ) -> impl Iterator<Item = Result<(&'a RunFrame, &'a Arc<StoreFile>, T), Error>> + 'a {
        let log = self.log.as_ref();
        let mut frames = ids.into_iter().filter_map(move |id| Some((log?, self.runs.get(id)?)));
        let batches = iter::from_fn(move || {
            let batch: Vec<_> = frames.by_ref().take(BATCH).collect();
            let parsed = parallel::map(0..batch.len(), |at| {
                let (log, frame) = batch[at];
                let text = String::from_utf8(frame.part(log, 0)?).map_err(|why| log.damaged(frame, &why))?;
                let record = serde_json::from_str(&text).map_err(|why| log.damaged(frame, &why))?;
                Ok((frame, log, record))
            });
            Some(parsed).filter(|parsed| !parsed.is_empty())
        });
        batches.flatten()
    }

    /// Appends a finished run completely or not at all. Afterwards the run is finished, and `record` refers to its
    /// rows.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn append(&mut self, encoded: &EncodedRun, record: &mut RunRecord) -> Result<(), Error> {
        let unwritten = failed("write", &self.path);
        let Some(log) = &self.log else { return Err(unwritten(ErrorKind::NotFound.into())) };
        let start = append(&log.file, &encoded.bytes).map_err(unwritten)?;
        let frame = RunFrame {
            bytes: start..start + encoded.bytes.len() as u64,
            first: start + encoded.first,
            parts: encoded.parts,
        };
        record.rows = RunRows(Some((Arc::clone(log), frame.clone())));
        (self.end, self.size) = (frame.bytes.end, frame.bytes.end);
        self.runs.insert(record.id.clone(), frame);
        Ok(())
    }

    /// Waits until the system has written the file to the disk.
    ///
    /// # Errors
    /// When the system cannot write the file.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.log.as_ref().map_or(Ok(()), |log| log.file.sync_all().map_err(failed("write", &self.path)))
    }
}

/// Writes the runs of `records`, in this order, and then all other runs of the existing file, which is replaced.
///
/// # Errors
/// When a file cannot be read or written.
pub(super) fn gather<'a>(root: &Path, records: impl Iterator<Item = &'a RunRecord>) -> Result<(), Error> {
    let own = RunStore::open(root)?;
    let mut others = own.runs.clone();
    let frame = |record: &'a RunRecord| {
        others.remove(&record.id);
        record.rows.0.as_ref().map(|(log, frame)| (&**log, frame))
    };
    let frames: Vec<_> = records.filter_map(frame).collect();
    let others = others.values().filter_map(|frame| Some((own.log.as_deref()?, frame)));
    write(&own.path, frames.into_iter().chain(others))
}

/// Replaces a file by frames of other files.
fn write<'a>(path: &Path, frames: impl Iterator<Item = (&'a StoreFile, &'a RunFrame)>) -> Result<(), Error> {
    let fill = |mut to: File| {
        let unwritten = failed("write", path);
        to.write_all(&begin()).map_err(&unwritten)?;
        for (log, RunFrame { bytes, .. }) in frames {
            let bytes = log.read(bytes.start, bytes.end - bytes.start)?;
            to.write_all(&bytes).map_err(&unwritten)?;
        }
        to.sync_all().map_err(unwritten)
    };
    replace(path, fill, |error| error)
}

/// The first bytes of a file.
pub fn begin() -> Vec<u8> {
    let (format, tables) = version();
    prefix(MAGIC, format, tables)
}

/// Version of the format, and fingerprint of the tables.
fn version() -> (u32, u32) {
    let columns = TableKind::ALL.iter().flat_map(|kind| kind.own_columns());
    (FORMAT, vocabulary(columns.map(|(name, of, _)| format!("{name} {of:?}"))))
}

/// Reads the run at offset `at`, the current position of `file`; `None` if no whole frame begins there. Afterwards
/// `file` is positioned after the frame.
fn whole(
    file: &mut impl Read,
    at: u64,
    size: u64,
    payload: &mut Vec<u8>,
) -> io::Result<Option<(String, RunFrame)>> {
    if next_frame(file, size - at, payload)? != NextFrame::Whole(MARK) {
        return Ok(None);
    }
    let Ok((Head { run, parts }, head)) = codec::take(payload) else { return Ok(None) };
    let all: u64 = parts.iter().map(|part| u64::from(*part)).sum();
    if head as u64 + all != payload.len() as u64 {
        return Ok(None);
    }
    let first = at + HEADER + head as u64;
    Ok(Some((run, RunFrame { bytes: at..first + all, first, parts })))
}

/// The offset of the first whole frame from `from` on.
fn next_whole(file: &mut (impl Read + Seek), mut from: u64, size: u64) -> io::Result<Option<u64>> {
    let (mark, mut searched, mut payload) = (MARK.to_le_bytes(), Vec::new(), Vec::new());
    while from + HEADER <= size {
        file.seek(SeekFrom::Start(from + SECTION))?;
        searched.clear();
        file.take(SEARCHED as u64).read_to_end(&mut searched)?;
        for (at, _) in searched.windows(mark.len()).enumerate().filter(|(_, bytes)| *bytes == mark) {
            let at = from + at as u64;
            file.seek(SeekFrom::Start(at))?;
            if whole(file, at, size, &mut payload)?.is_some() {
                return Ok(Some(at));
            }
        }
        // A mark may lie across the boundary of two searched blocks.
        from += (SEARCHED - (mark.len() - 1)) as u64;
    }
    Ok(None)
}

/// A finished run, encoded as one frame.
#[derive(Debug)]
pub struct EncodedRun {
    bytes: Vec<u8>,
    first: u64,
    parts: [u32; PARTS],
}

impl EncodedRun {
    /// Encodes the record of a run, and the rows of its measurements, without those of jobs if `jobs` is false.
    ///
    /// # Errors
    /// When the run is larger than 4 GiB.
    pub(super) fn new(record: &RunRecord, measured: &Measured, jobs: bool) -> io::Result<Self> {
        let rows = TableKind::ALL.iter().map(|kind| {
            if *kind == TableKind::Jobs && !jobs {
                return Ok(Vec::new());
            }
            let mut rows = Vec::new();
            for chunk in kind.chunks(measured) {
                codec::append(&chunk, &mut rows).map_err(io::Error::other)?;
            }
            Ok(rows)
        });
        let text = serde_json::to_vec(record).map_err(io::Error::other);
        Self::of(&record.id, iter::once(text).chain(rows))
    }

    /// Encodes a run that consists of these parts.
    ///
    /// # Errors
    /// When a part is an error, or the run is larger than 4 GiB.
    pub fn of(run: &str, parts: impl Iterator<Item = io::Result<Vec<u8>>>) -> io::Result<Self> {
        let (mut lengths, mut all) = ([0; PARTS], Vec::new());
        let mut packer = Compressor::new(LEVEL)?;
        for (part, length) in parts.zip(&mut lengths) {
            let part = part?;
            if !part.is_empty() {
                let packed = packer.compress(&part)?;
                *length = u32::try_from(packed.len()).map_err(|_| ErrorKind::FileTooLarge)?;
                all.extend(packed);
            }
        }
        let (mut payload, mut bytes) = (Vec::new(), Vec::new());
        codec::append(&Head { run: run.to_owned(), parts: lengths }, &mut payload)
            .map_err(io::Error::other)?;
        let first = HEADER + payload.len() as u64;
        payload.append(&mut all);
        frame(MARK, &payload, &mut bytes)?;
        Ok(Self { bytes, first, parts: lengths })
    }

    /// The bytes of the frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use volary_engine::results::{CacheRow, CopyRow, CoreRow, JobRow};

    use super::*;
    use crate::storage::fixture::{manifest, measured};
    use crate::storage::{StudyDir, load};

    /// A run with rows in every table and a short timeline.
    fn run(id: &str) -> Measured {
        let mut run = measured(id, &[], id.len() as u64, 1.0, 3);
        run.timeline.truncate(2);
        run.messages.truncate(2);
        run.copies.truncate(3);
        run
    }

    /// A folder with finished runs.
    fn filled(ids: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let study = StudyDir::create(folder.path(), manifest(ids)).unwrap();
        ids.iter().for_each(|id| drop(study.store(id, &run(id)).unwrap()));
        folder
    }

    /// The ids of the stored runs. Each stored run is checked first.
    fn whole(root: &Path) -> Vec<String> {
        let store = RunStore::open(root).unwrap();
        let ids: Vec<String> = store.runs().map(|(id, _)| id.to_owned()).collect();
        for record in store.records(&ids).map(Result::unwrap) {
            let expected = run(&record.id);
            assert_eq!(record, RunRecord::new(&record.id, &expected));
            assert_eq!(record.rows.read::<JobRow>().unwrap(), expected.jobs);
            assert_eq!(record.rows.read::<CopyRow>().unwrap(), expected.copies);
            assert_eq!(record.rows.read::<CacheRow>().unwrap(), expected.looks);
            assert_eq!(record.rows.read::<CoreRow>().unwrap(), expected.cores);
        }
        ids
    }

    const IDS: [&str; 3] = ["a", "bb", "ccc"];

    /// A killed process leaves a log that may end at any byte; only the run that was being written is lost.
    #[test]
    fn a_log_that_is_cut_has_all_runs_before_the_cut() {
        let folder = filled(&IDS);
        let root = folder.path();
        let path = root.join(RUNS);
        let content = fs::read(&path).unwrap();
        let ends: Vec<u64> = RunStore::open(root).unwrap().runs().map(|(_, bytes)| bytes.end).collect();
        assert_eq!(ends.last(), Some(&(content.len() as u64)));
        let log = OpenOptions::new().write(true).open(&path).unwrap();
        for length in (0..=content.len()).rev() {
            log.set_len(length as u64).unwrap();
            let there = ends.iter().filter(|end| **end <= length as u64).count();
            let store = RunStore::open(root).unwrap();
            let found: Vec<&str> = store.runs().map(|(id, _)| id).collect();
            assert_eq!(found, IDS[..there], "{length}");
            let is_torn = length > PREFIX as usize && !ends.contains(&(length as u64));
            assert_eq!(store.damage(false).is_some(), is_torn, "{length}");
            if length.is_multiple_of(211) || length as u64 == ends[1] {
                assert_eq!(whole(root), IDS[..there], "{length}");
                let study = StudyDir::open(root, manifest(&IDS)).unwrap();
                let missing: Vec<_> = IDS.iter().filter(|id| !study.has(id)).collect();
                assert_eq!(missing.len(), IDS.len() - there, "{length}");
                missing.iter().for_each(|id| drop(study.store(id, &run(id)).unwrap()));
                assert!(fs::read(&path).unwrap() == content, "{length}: the log equals the original");
            }
        }
    }

    /// A flipped byte loses only the run of its frame. The loss is reported, and a resumed study repeats the run.
    #[test]
    fn a_flipped_byte_loses_one_run_and_is_reported() {
        let folder = filled(&IDS);
        let root = folder.path();
        let path = root.join(RUNS);
        let content = fs::read(&path).unwrap();
        let frames: Vec<Range<u64>> = RunStore::open(root).unwrap().runs().map(|(_, bytes)| bytes).collect();
        let is_head = |at: u64| frames.iter().any(|of| (of.start..of.start + 24).contains(&at));
        let sampled = |at: &usize| at.is_multiple_of(131) || is_head(*at as u64);
        for at in (0..content.len()).filter(sampled) {
            let mut bytes = content.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, bytes).unwrap();
            if at < PREFIX as usize {
                assert!(RunStore::open(root).is_err(), "{at}");
                continue;
            }
            let kept: Vec<&str> = IDS
                .into_iter()
                .zip(&frames)
                .filter(|(_, of)| !of.contains(&(at as u64)))
                .map(|(id, _)| id)
                .collect();
            assert_eq!(whole(root), kept, "{at}");
            assert!(RunStore::open(root).unwrap().damage(false).is_some(), "{at}");
            assert_eq!(load(root).unwrap().missing, 1, "{at}");
            let study = StudyDir::open(root, manifest(&IDS)).unwrap();
            let lost: Vec<_> = IDS.into_iter().filter(|id| !study.has(id)).collect();
            lost.iter().for_each(|id| drop(study.store(id, &run(id)).unwrap()));
            assert_eq!((lost.len(), whole(root).len()), (1, 3), "{at}");
            assert_eq!(RunStore::open(root).unwrap().damage(false), None, "{at}: damage was removed");
        }
    }

    #[test]
    fn a_foreign_file_is_set_aside_and_a_log_of_another_version_is_kept() {
        let folder = filled(&IDS);
        let path = folder.path().join(RUNS);
        let content = fs::read(&path).unwrap();
        fs::write(&path, [&b"volary??"[..], &content[8..]].concat()).unwrap();
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is not a log of runs") && error.contains("--resume"), "{error}");
        let study = StudyDir::open(folder.path(), manifest(&IDS)).unwrap();
        assert!(!study.has("a") && folder.path().join("runs.log.damaged").exists());
        drop(study);
        let mut other = content;
        other[8] += 1;
        fs::write(&path, &other).unwrap();
        let error = StudyDir::open(folder.path(), manifest(&IDS)).unwrap_err().to_string();
        assert!(error.contains("another format") && fs::read(&path).unwrap() == other, "{error}");
    }

    /// A repeated run, as after an injection, replaces the earlier one.
    #[test]
    fn a_repeated_run_is_read_from_its_last_frame() {
        let folder = filled(&["a"]);
        let study = StudyDir::open(folder.path(), manifest(&["a"])).unwrap();
        let before = fs::metadata(folder.path().join(RUNS)).unwrap().len();
        let later = measured("later", &[], 9, 1.0, 5);
        study.store("a", &later).unwrap();
        assert!(fs::metadata(folder.path().join(RUNS)).unwrap().len() > before);
        let found = load(folder.path()).unwrap();
        let record = found.records().next().unwrap();
        assert_eq!((record.summary.policy.as_str(), found.records().count()), ("later", 1));
        assert_eq!(record.rows.read::<JobRow>().unwrap(), later.jobs);
    }

    #[test]
    fn a_reader_follows_a_log_that_grows_or_is_replaced() {
        let folder = filled(&["a"]);
        let study = StudyDir::open(folder.path(), manifest(&IDS)).unwrap();
        let mut store = RunStore::open(folder.path()).unwrap();
        let read = store.end;
        study.store("bb", &run("bb")).unwrap();
        store.refresh().unwrap();
        assert!(store.runs.contains_key("bb") && store.end > read);
        let mut log = OpenOptions::new().append(true).open(folder.path().join(RUNS)).unwrap();
        log.write_all(&[0; 30]).unwrap();
        store.refresh().unwrap();
        assert_eq!((store.runs.len(), store.damage(true)), (2, None), "the rest may still be written");
        drop(study);
        let other = filled(&["ccc"]);
        fs::rename(other.path().join(RUNS), folder.path().join(RUNS)).unwrap();
        store.refresh().unwrap();
        assert_eq!(store.runs().map(|(id, _)| id).collect::<Vec<_>>(), ["ccc"]);
        fs::remove_file(folder.path().join(RUNS)).unwrap();
        store.refresh().unwrap();
        assert!(!store.runs.contains_key("ccc"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// A merge concatenates the frames of several logs. A run in several folders is taken from the first folder;
        /// within a log its last frame counts.
        #[test]
        fn a_merge_equals_a_concatenation_of_logs(parts in prop::collection::vec(prop::sample::subsequence(vec!["a", "bb", "ccc", "dddd"], 0..=4), 1..4)) {
            let folders: Vec<_> = parts.iter().map(|ids| filled(ids)).collect();
            let roots: Vec<PathBuf> = folders.iter().map(|folder| folder.path().to_owned()).collect();
            let study = crate::storage::merge(&roots).unwrap();
            let [merged, joined] = [(); 2].map(|()| tempfile::tempdir().unwrap());
            gather(merged.path(), study.records()).unwrap();
            let mut all = fs::read(roots[0].join(RUNS)).unwrap()[..PREFIX as usize].to_vec();
            for root in roots.iter().rev() {
                all.extend(&fs::read(root.join(RUNS)).unwrap()[PREFIX as usize..]);
            }
            fs::write(joined.path().join(RUNS), all).unwrap();
            let mut ids: Vec<&str> = parts.concat();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(whole(merged.path()), ids.clone());
            prop_assert_eq!(whole(joined.path()), ids);
            // A second merge into the same folder changes nothing.
            let before = fs::read(merged.path().join(RUNS)).unwrap();
            gather(merged.path(), study.records()).unwrap();
            prop_assert!(fs::read(merged.path().join(RUNS)).unwrap() == before);
        }
    }
}
