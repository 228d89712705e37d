//! Errors of study directories, and of the union of several.

use std::io;
use std::path::{Path, PathBuf};

use ::parquet::errors::ParquetError;
use volary_engine::results::SCHEMA;

use super::paths::MANIFEST;
use crate::storage::manifest::RunState;

/// Why a study directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {doing} {}: {source}; {}, or choose another with --out", path.display(), io_remedy(source))]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// The folder already holds a run.
    #[error("{} already holds a run of `{experiment}` ({state}); add --resume to keep its runs and run what is missing, or choose another folder with --out", path.display())]
    Occupied { path: PathBuf, experiment: String, state: RunState },
    /// The folder holds a run of another experiment, so there is nothing to resume.
    #[error("{} holds a run of another experiment, none of whose cells is wanted here ({differs}); name its folder with --out, or leave out --resume", path.display())]
    Another { path: PathBuf, differs: String },
    /// Another process is running in the folder.
    #[error("{} is in use by process {pid}; wait for it, stop it, or choose another folder with --out", path.display())]
    Locked {
        path: PathBuf,
        /// The other process's id, if known.
        pid: String,
    },
    /// The folder holds something else than a run.
    #[error("{} is no study directory, and not empty: it holds `{file}`; choose a new or an empty folder with --out", path.display())]
    Foreign { path: PathBuf, file: String },
    /// The folder holds study directories, which would no longer be found through it.
    #[error("{} holds study directories, such as `{run}`, which a run there would hide; choose another folder with --out", path.display())]
    Collection { path: PathBuf, run: String },
    /// The folder holds no run.
    #[error("{} is not a study directory: it has no {MANIFEST}; name the folder given to --out", path.display())]
    NotARun { path: PathBuf },
    /// A file does not parse.
    #[error("{} is damaged: {source}; {}", path.display(), remedy(path))]
    Damaged { path: PathBuf, source: serde_json::Error },
    /// A finished run cannot be read.
    #[error("{} is damaged at byte {at}: {why}; run again with --resume, which runs again what is missing", path.display())]
    DamagedRun { path: PathBuf, at: u64, why: String },
    /// The file is no log of runs.
    #[error("{} is no log of runs; restore it, or run again with --resume, which begins another one", path.display())]
    ForeignLog { path: PathBuf },
    /// The log of runs was written by another version.
    #[error("{} is of another format than this volary reads; run again into another folder, or use the volary that wrote it", path.display())]
    LogVersion { path: PathBuf },
    /// Written by another version.
    #[error("{} has results of schema {found}, this volary reads {SCHEMA}; run again into another folder, or use the volary that wrote it", path.display())]
    Schema { path: PathBuf, found: u32 },
    /// A table could not be written.
    #[error("cannot make {}: {source}; check the folder's permissions and space", path.display())]
    Rows { path: PathBuf, source: ParquetError },
    /// Several directories do not make one experiment.
    #[error("{0}")]
    Merge(String),
}

/// What to do about a folder in which a file operation failed.
fn io_remedy(source: &io::Error) -> &'static str {
    let kind = source.kind();
    if kind == io::ErrorKind::FileTooLarge {
        "raise the limit on the size of files, which `ulimit -f` shows"
    } else if [io::ErrorKind::AlreadyExists, io::ErrorKind::NotADirectory].contains(&kind) {
        "a file is in the way"
    } else {
        "check the folder's permissions and space"
    }
}

/// What to do about a damaged file. Without a manifest there is nothing to resume.
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

pub(super) fn damaged(path: &Path) -> impl Fn(serde_json::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Damaged { path: path.clone(), source }
}

pub(super) fn rows(path: &Path) -> impl Fn(ParquetError) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Rows { path: path.clone(), source }
}
