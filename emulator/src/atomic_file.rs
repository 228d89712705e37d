//! Atomic replacement of files.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Writes a file under the name of `path` with the suffix `.partial`, and renames it to `path` if `fill` succeeds. If
/// that fails, a file that was at `path` is kept.
///
/// # Errors
/// When the file cannot be created or renamed; the inner error is that of `fill`.
pub(crate) fn replace<T, E>(
    path: &Path,
    fill: impl FnOnce(File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    // A process that was killed leaves such a file; a link to another file must not be followed. A link to a device is
    // left, so that /dev/full can stand for a full disk.
    if !fs::metadata(&partial).is_ok_and(|known| known.file_type().is_char_device()) {
        remove(&partial)?;
    }
    let filled = fill(File::create(&partial)?);
    match filled {
        Ok(_) => fs::rename(&partial, path).inspect_err(|_| drop(fs::remove_file(&partial)))?,
        Err(_) => fs::remove_file(&partial)?,
    }
    Ok(filled)
}

/// Removes a file, if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
