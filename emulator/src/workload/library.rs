//! Where traces are looked for, and those already parsed: each file is parsed once and shared by all cells.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::error::WorkloadError;
use super::trace::Trace;
use crate::files::Files;
use crate::guard::guard;

/// What was parsed: a file, and how many of its jobs.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    file: PathBuf,
    jobs: Option<u32>,
}

/// Finds trace files and keeps what was parsed of them.
#[derive(Debug)]
pub struct Traces {
    files: Files,
    folders: Vec<PathBuf>,
    parsed: Mutex<BTreeMap<Key, Arc<Trace>>>,
}

impl Traces {
    /// Looks in `folders` of the disk, in that order.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { files: Files::of_disk(), folders, parsed: Mutex::default() }
    }

    /// Looks beside an experiment file in `folder`, then in the folders that `files` names.
    #[must_use]
    pub fn beside(files: &Files, folder: &Path) -> Self {
        let folders = std::iter::once(folder.to_owned()).chain(files.folders().iter().cloned()).collect();
        Self { files: files.clone(), folders, parsed: Mutex::default() }
    }

    /// Where `file` is.
    ///
    /// # Errors
    /// [`WorkloadError::Missing`] with every path that was tried.
    pub fn find(&self, file: &Path) -> Result<PathBuf, WorkloadError> {
        let looked: Vec<PathBuf> = if file.is_absolute() {
            vec![file.to_owned()]
        } else {
            self.folders.iter().map(|folder| folder.join(file)).collect()
        };
        looked
            .iter()
            .find(|path| self.files.has(path))
            .cloned()
            .ok_or_else(|| WorkloadError::Missing { file: file.to_owned(), looked })
    }

    /// The first `jobs` jobs of `file` (all if `None`), parsed now or before.
    ///
    /// # Errors
    /// When the file is not found, cannot be read or is malformed.
    pub fn open(&self, file: &Path, jobs: Option<u32>) -> Result<Arc<Trace>, WorkloadError> {
        let key = Key { file: self.find(file)?, jobs };
        // Held while parsing, so that cells that start together do not all parse the same file.
        let mut parsed = guard(&self.parsed);
        if let Some(trace) = parsed.get(&key) {
            return Ok(Arc::clone(trace));
        }
        let io = |source| WorkloadError::Io { file: key.file.clone(), source };
        let trace = Arc::new(Trace::parse(&key.file, self.files.stream(&key.file).map_err(io)?, jobs)?);
        parsed.insert(key, Arc::clone(&trace));
        Ok(trace)
    }
}
