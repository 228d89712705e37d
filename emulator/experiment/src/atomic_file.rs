//! Atomic replacement of files.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The suffix of a file that is being written.
pub(crate) const PARTIAL: &str = ".partial";

/// Writes a temporary file, named `path` with the suffix `.partial`, and renames it to `path` if `fill` succeeds. If
/// `fill` fails, an existing file at `path` stays unchanged. Only one process at a time may write `path`.
///
/// # Errors
/// When the file cannot be created or renamed. The inner error is the error of `fill`.
pub(crate) fn replace<T, E>(
    path: &Path,
    fill: impl FnOnce(File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    replace_as(path, PARTIAL, fill)
}

/// Replaces a file that several processes may write: each process writes a temporary file of its own.
pub fn replace_shared<T, E>(
    path: &Path,
    fill: impl FnOnce(File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    replace_as(path, &format!(".{}{PARTIAL}", std::process::id()), fill)
}

fn replace_as<T, E>(
    path: &Path,
    suffix: &str,
    fill: impl FnOnce(File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(suffix);
    let partial = PathBuf::from(partial);
    // Remove what is at this path before creating it: it may be the leftover of a killed process, or a link, which must
    // not be followed. A link to a character device stays, since tests use /dev/full as a full disk.
    if !fs::metadata(&partial).is_ok_and(|known| known.file_type().is_char_device()) {
        remove(&partial)?;
    }
    let done = match fill(File::create(&partial)?) {
        Ok(value) => fs::rename(&partial, path).map(|()| Ok(value)),
        Err(error) => Ok(Err(error)),
    };
    if !matches!(done, Ok(Ok(_))) {
        let _ = fs::remove_file(&partial); // the original error is reported
    }
    done
}

/// Removes a file; a missing file is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
