//! Names of the files of a study directory, its lock, and the errors of study directories and of their merge.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ::parquet::errors::ParquetError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use volary_engine::results::SCHEMA;

use super::input_log;
use super::manifest::{Manifest, RunState};
use crate::atomic_file::{self, PARTIAL};

/// Bytes of padding in the manifest of an unfinished study, for its final state and end time.
const ROOM: usize = 64;
/// Number of attempts to take a lock, at intervals of [`APART`]. A reader holds the lock for a moment to check whether
/// a study owns the folder, and a child of the owner holds it until it executes its program.
const TRIES: u32 = 20;
/// Number of attempts of a reader to take the lock.
const READ_TRIES: u32 = 4;
const APART: Duration = Duration::from_millis(5);

/// The file that is locked by the process that owns the folder.
const LOCK: &str = ".lock";

/// Locks the folder, and creates it if needed. When the process ends for any reason, the system releases the lock.
pub(super) fn lock(root: &Path) -> Result<File, Error> {
    fs::create_dir_all(root).map_err(io("create", root))?;
    let path = root.join(LOCK);
    if path.is_symlink() {
        let elsewhere = io::Error::new(
            ErrorKind::InvalidInput,
            "it is a link to another file, which would be overwritten",
        );
        return Err(io("lock", &path)(elsewhere));
    }
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(io("create", &path))?;
    match retried(TRIES, || file.try_lock()) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid); // only for the message
            let pid = if pid.trim().is_empty() { "(unknown)".to_owned() } else { pid.trim().to_owned() };
            return Err(Error::Locked { path: root.to_owned(), pid });
        }
        Err(TryLockError::Error(source)) => return Err(Error::Io { doing: "lock", path, source }),
    }
    let written = file.set_len(0).and_then(|()| file.rewind());
    written.and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io("write", &path))?;
    Ok(file)
}

/// Takes a lock, with retries, since others may hold it for a moment.
fn retried(tries: u32, take: impl Fn() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    for _ in 1..tries {
        match take() {
            Err(TryLockError::WouldBlock) => thread::sleep(APART),
            taken => return taken,
        }
    }
    take()
}

/// Refuses a folder without a study that contains foreign files, or study directories that are not in `kept` and would
/// be hidden. Accepts files from the beginning of a study, hidden files, logs other than those of runs and inputs, and
/// the files that a file system puts into its root folder.
///
/// # Errors
/// [`Error::Foreign`], [`Error::Collection`], or an error of reading the folder.
pub fn check_own(root: &Path, kept: &[PathBuf]) -> Result<(), Error> {
    if root.join(MANIFEST).exists() {
        return Ok(());
    }
    let is_hidden = |run: &&PathBuf| *run != root && !kept.iter().any(|kept| is_same(kept, run));
    if let Some(run) = run_dirs(root, None).unwrap_or_default().iter().find(is_hidden) {
        let run = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(Error::Collection { path: root.to_owned(), run });
    }
    let entries = match fs::read_dir(root) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        entries => entries.map_err(io("read", root))?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let names: Vec<_> = names.collect::<Result<_, _>>().map_err(io("read", root))?;
    let begun = [format!("{MANIFEST}{PARTIAL}"), "lost+found".to_owned()];
    let is_log = |name: &String| name.ends_with(".log") && ![input_log::FILE, RUNS].contains(&name.as_str());
    let is_ours = |name: &String| name.starts_with('.') || is_log(name) || begun.contains(name);
    let foreign = names.into_iter().filter(|name| !is_ours(name));
    // The first name in alphabetical order is reported, independent of the order of the folder.
    foreign.min().map_or(Ok(()), |file| Err(Error::Foreign { path: root.to_owned(), file }))
}

/// Whether two paths are the same existing file or folder.
pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// Whether a process owns the folder; false if the state of its lock is unknown.
pub fn is_owned(root: &Path) -> bool {
    let lock = File::open(root.join(LOCK));
    lock.is_ok_and(|lock| {
        matches!(retried(READ_TRIES, || lock.try_lock_shared()), Err(TryLockError::WouldBlock))
    })
}

/// Appends all bytes or none; returns the offset of the first byte.
pub(super) fn append(mut file: &File, bytes: &[u8]) -> io::Result<u64> {
    let end = file.metadata()?.len();
    file.write_all(bytes).or_else(|error| file.set_len(end).and(Err(error)))?;
    Ok(end)
}

/// Replaces a file by the output of `fill`; `failed` converts the error of `fill`.
pub(super) fn replace<T, E>(
    path: &Path,
    fill: impl FnOnce(File) -> Result<T, E>,
    failed: impl FnOnce(E) -> Error,
) -> Result<(), Error> {
    let filled = atomic_file::replace(path, fill).map_err(io("create", path))?;
    filled.map(drop).map_err(failed)
}

/// Renames a damaged file, so that its name is free.
pub(super) fn set_aside(path: &Path) -> Result<(), Error> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    fs::rename(path, aside).map_err(io("rename", path))
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |mut file| file.write_all(bytes), io("write", path))
}

/// A value as a line of JSON for the file at `path`.
pub(super) fn json_line<T: Serialize>(path: &Path, value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map(|line| line + "\n").map_err(damaged(path))
}

/// Writes the manifest. At the end of a study it can be written even if the disk is full.
pub(super) fn write_manifest(root: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = root.join(MANIFEST);
    let mut text = json_line(&path, manifest)?;
    let running = manifest.state == RunState::Running;
    text.insert_str(text.len() - 1, &" ".repeat(if running { ROOM } else { 0 }));
    let fill = |mut file: File| {
        file.write_all(text.as_bytes())?;
        // At the end of a study the manifest is synced like the other files, since readers open the manifest first.
        if running { Ok(()) } else { file.sync_all() }
    };
    match replace(&path, fill, io("write", &path)) {
        Err(error) if !running => write_over(&path, text.as_bytes()).map_err(|_| error),
        written => written,
    }
}

/// Overwrites the beginning of a file that is long enough; this needs no disk space.
fn write_over(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.len() < bytes.len() as u64 {
        return Err(ErrorKind::StorageFull.into());
    }
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Reads a JSON file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    serde_json::from_str(&fs::read_to_string(path).map_err(io("read", path))?).map_err(damaged(path))
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    atomic_file::remove(path).map_err(io("remove", path))
}

/// The study directories at `path`: `path` itself, or the study directories in this folder, sorted by name, without
/// `except`.
///
/// # Errors
/// [`Error::NotARun`], or an error of reading the folder.
pub fn run_dirs(path: &Path, except: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
    if path.join(MANIFEST).exists() || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(io("read", path))?;
    let mut found = Vec::new();
    for entry in entries {
        let folder = entry.map_err(io("read", path))?.path();
        let left_out = || except.and_then(|except| except.canonicalize().ok()) == folder.canonicalize().ok();
        if folder.join(MANIFEST).exists() && !left_out() {
            found.push(folder);
        }
    }
    found.sort();
    if found.is_empty() { Err(Error::NotARun { path: path.to_owned() }) } else { Ok(found) }
}

/// The reason why a study directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {doing} {}: {source}; {}, or choose another with --out", path.display(), io_remedy(source))]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// The folder already holds a study.
    #[error("{} already holds a run of `{experiment}` ({state}); add --resume to keep its runs and run what is missing, or choose another folder with --out", path.display())]
    Occupied { path: PathBuf, experiment: String, state: RunState },
    /// The folder holds a study of another experiment, which cannot be resumed.
    #[error("{} holds a run of another experiment, which has none of the requested runs ({differs}); name its folder with --out, or leave out --resume", path.display())]
    Another { path: PathBuf, differs: String },
    /// Another process is running in the folder.
    #[error("{} is in use by process {pid}; wait for it, stop it, or choose another folder with --out", path.display())]
    Locked {
        path: PathBuf,
        /// Id of the other process, if it is known.
        pid: String,
    },
    /// The folder holds files that do not belong to a study.
    #[error("{} is not a study directory, and not empty: it holds `{file}`; choose a new or an empty folder with --out", path.display())]
    Foreign { path: PathBuf, file: String },
    /// The folder holds study directories, which a study in it would hide.
    #[error("{} holds study directories, such as `{run}`, which a run there would hide; choose another folder with --out", path.display())]
    Collection { path: PathBuf, run: String },
    /// The folder holds no study.
    #[error("{} is not a study directory: it has no {MANIFEST}; name the folder given to --out", path.display())]
    NotARun { path: PathBuf },
    /// A file does not parse.
    #[error("{} is damaged: {source}; {}", path.display(), remedy(path))]
    Damaged { path: PathBuf, source: serde_json::Error },
    /// A finished run cannot be read.
    #[error("{} is damaged at byte {at}: {why}; run again with --resume, which repeats the missing runs", path.display())]
    DamagedRun { path: PathBuf, at: u64, why: String },
    /// The file is not a log of runs.
    #[error("{} is not a log of runs; restore it, or run again with --resume, which begins a new log", path.display())]
    ForeignLog { path: PathBuf },
    /// The log of runs was written by another version.
    #[error("{} is of another format than this volary reads; run again into another folder, or use the volary that wrote it", path.display())]
    LogVersion { path: PathBuf },
    /// The folder was written by another version.
    #[error(
        "{} has results of schema {found}, and this volary reads {SCHEMA}; run again into another folder, or use the \
         volary that wrote it",
        path.display()
    )]
    Schema { path: PathBuf, found: u32 },
    /// A table could not be written.
    #[error("cannot write {}: {source}; check the folder's permissions and space", path.display())]
    Rows { path: PathBuf, source: ParquetError },
    /// Several directories do not form one experiment.
    #[error("{0}")]
    Merge(String),
}

/// The remedy for a folder in which a file operation failed.
fn io_remedy(source: &io::Error) -> &'static str {
    let kind = source.kind();
    if kind == ErrorKind::FileTooLarge {
        "raise the limit on the size of files, which `ulimit -f` shows"
    } else if [ErrorKind::AlreadyExists, ErrorKind::NotADirectory].contains(&kind) {
        "a file is in the way"
    } else {
        "check the folder's permissions and space"
    }
}

/// The remedy for a damaged file. Without a manifest, no run can be resumed.
fn remedy(path: &Path) -> &'static str {
    if path.file_name().is_some_and(|name| name == MANIFEST) {
        "restore it, or run again into another folder"
    } else {
        "remove it and run again with --resume"
    }
}

pub(super) fn io(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Io { doing, path: path.clone(), source }
}

fn damaged(path: &Path) -> impl Fn(serde_json::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Damaged { path: path.clone(), source }
}

pub(super) fn rows(path: &Path) -> impl Fn(ParquetError) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Rows { path: path.clone(), source }
}

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Name of the log of finished runs.
pub const RUNS: &str = "runs.log";
/// Name of the summary lines.
pub const SUMMARY: &str = "summary.jsonl";
/// Name of the file of claims with their verdicts.
pub const CLAIMS: &str = "claims.jsonl";
/// Name of the report.
pub const REPORT: &str = "report.html";
/// Name of the folder beside the report for the cells that do not fit into the page.
pub const REPORT_CELLS: &str = "report";
/// Name of the timeline.
pub const TIMELINE: &str = "timeline.perfetto-trace";
/// Name of the folder of runs that could not finish.
pub const FAILED: &str = "failed";
/// Name of the folder of the logs of hosts.
pub(super) const LOGS: &str = "logs";

/// The path of the record of a run that could not finish.
pub fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(FAILED).join(format!("{id}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StudyDir;
    use crate::storage::fixture::manifest;

    #[test]
    fn a_folder_of_study_directories_is_expanded_to_all_of_them() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert!(matches!(run_dirs(root, None), Err(Error::NotARun { .. })));
        for name in ["b", "a", "whole"] {
            StudyDir::create(&root.join(name), manifest(&[])).unwrap();
        }
        fs::create_dir(root.join("log")).unwrap();
        fs::write(root.join("note"), "").unwrap();
        let whole = root.join("whole");
        assert_eq!(run_dirs(root, Some(&whole)).unwrap(), [root.join("a"), root.join("b")]);
        assert_eq!(run_dirs(root, None).unwrap().len(), 3);
        assert_eq!(run_dirs(&root.join("a"), Some(&whole)).unwrap(), [root.join("a")]);
        assert_eq!(run_dirs(&whole, Some(&whole)).unwrap(), [whole.as_path()]);
    }
}
