//! Folders of study directories, as array jobs leave them.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Error, io};
use super::paths::MANIFEST;

/// The study directories that `path` stands for: itself, or, if it is a folder of study directories, those in it, in
/// the order of their names. `except` is left out, where it is one of several.
///
/// # Errors
/// [`Error::NotARun`], or the folder cannot be read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StudyDir;
    use crate::storage::fixture::manifest;

    #[test]
    fn a_folder_of_runs_stands_for_them() {
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
