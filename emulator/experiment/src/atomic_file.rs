//! Atomic replacement of files.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The suffix of a file that is being written.
pub(crate) const PARTIAL: &str = ".partial";

/// Writes a file beside `path`, and renames it to `path` if `fill` succeeds. If that fails, a file that was at `path`
/// is kept. The name while it is written is that of `path` with the suffix `.partial`; only one process may write
/// `path`.
///
/// # Errors
/// When the file cannot be created or renamed; the inner error is that of `fill`.
pub(crate) fn replace<T, E>(
    path: &Path,
    fill: impl FnOnce(File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    replace_as(path, PARTIAL, fill)
}

/// Replaces a file as `replace` does, but several processes may write it: each writes under a name of its own.
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
    // A process that was killed leaves such a file; a link to another file must not be followed. A link to a device is
    // left, so that /dev/full can stand for a full disk.
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

/// Removes a file, if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
