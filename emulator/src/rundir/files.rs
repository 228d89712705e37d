//! Names of the files of a run directory, and how they are written: whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Error, damaged, io};
use crate::record::parquet;

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Name of the summary lines.
pub const SUMMARY: &str = "summary.jsonl";
/// Name of the report.
pub const REPORT: &str = "report.html";
/// Name of the timeline.
pub const TIMELINE: &str = "timeline.perfetto-trace";
/// Folder of the cells.
pub(super) const CELLS: &str = "cells";

pub(super) fn record_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.json"))
}

pub(super) fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.failed.json"))
}

pub(super) fn part_path(root: &Path, id: &str, kind: parquet::Rows) -> PathBuf {
    root.join(CELLS).join(format!("{id}.{}.parquet", kind.name()))
}

/// Writes a file beside `path` and renames it to `path` if `fill` succeeds.
pub(super) fn replace<T, E>(
    path: &Path,
    fill: impl FnOnce(File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let filled = fill(File::create(&partial)?);
    if filled.is_ok() {
        fs::rename(&partial, path)?
    } else {
        fs::remove_file(&partial)?
    }
    Ok(filled)
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |mut file| file.write_all(bytes)).map_err(io("create", path))?.map_err(io("write", path))
}

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let mut text = serde_json::to_string(value).map_err(damaged(path))?;
    text.push('\n');
    write(path, text.as_bytes())
}

pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(io("read", path))?;
    serde_json::from_str(&text).map_err(damaged(path))
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
