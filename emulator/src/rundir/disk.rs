//! Files of a run directory: whole, or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Error, damaged, io as failed};

/// Appends all of it or nothing.
pub(super) fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let end = file.metadata()?.len();
    file.write_all(bytes).or_else(|error| file.set_len(end).and(Err(error)))
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
    replace(path, |mut file| file.write_all(bytes))
        .map_err(failed("create", path))?
        .map_err(failed("write", path))
}

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let mut text = serde_json::to_string(value).map_err(damaged(path))?;
    text.push('\n');
    write(path, text.as_bytes())
}

pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(failed("read", path))?;
    serde_json::from_str(&text).map_err(damaged(path))
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
