//! The search for traces, and the cache of parsed ones: each file is parsed once and shared by all cells.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use volary_engine::workload::{Trace, TraceSource, WorkloadError};

use crate::files::Files;
use crate::guard::guard;

/// The key of the cache: a file, and how many of its jobs.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    file: PathBuf,
    jobs: Option<u32>,
}

/// Finds trace files and caches parsed traces.
#[derive(Debug)]
pub struct Traces {
    files: Files,
    folders: Vec<PathBuf>,
    parsed: Mutex<BTreeMap<Key, Arc<Trace>>>,
}

impl Traces {
    /// Searches `folders` of the disk, in that order.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { files: Files::of_disk(), folders, parsed: Mutex::default() }
    }

    /// Searches the experiment file's `folder`, then the folders that `files` names.
    #[must_use]
    pub fn beside(files: &Files, folder: &Path) -> Self {
        let folders = std::iter::once(folder.to_owned()).chain(files.folders().iter().cloned()).collect();
        Self { files: files.clone(), folders, parsed: Mutex::default() }
    }

    /// The path of `file`.
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
}

impl TraceSource for Traces {
    fn open(&self, file: &Path, jobs: Option<u32>) -> Result<Arc<Trace>, WorkloadError> {
        let key = Key { file: self.find(file)?, jobs };
        // Held while parsing, so that concurrent cells do not parse the same file twice.
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

/// Reads the first `jobs` jobs of a file, all if `None`.
///
/// # Errors
/// When the file cannot be read, is damaged, malformed or empty.
pub fn read(file: &Path, jobs: Option<u32>) -> Result<Trace, WorkloadError> {
    let input = File::open(file).map_err(|source| WorkloadError::Io { file: file.to_owned(), source })?;
    Trace::parse(file, input, jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_file(name: &str, text: &str) -> (tempfile::TempDir, Traces) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        let traces = Traces::new(vec![PathBuf::from("/nonexistent"), folder.path().to_owned()]);
        (folder, traces)
    }

    #[test]
    fn a_trace_is_parsed_once() {
        let (folder, traces) = with_file("a.tr", "10 1 2 2\n11 1 2 2\n");
        let first = traces.open("a.tr".as_ref(), None).unwrap();
        std::fs::write(folder.path().join("a.tr"), "garbage").unwrap();
        assert!(Arc::ptr_eq(&first, &traces.open("a.tr".as_ref(), None).unwrap()));
        assert!(traces.open("a.tr".as_ref(), Some(1)).is_err());
    }

    #[test]
    fn a_missing_trace_says_where_it_looked() {
        let (folder, traces) = with_file("a.tr", "");
        let text = traces.open("b.tr.xz".as_ref(), None).unwrap_err().to_string();
        let beside = folder.path().join("b.tr.xz").display().to_string();
        for part in ["/nonexistent/b.tr.xz", &beside, "VOLARY_TRACES", "fallback", "published"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
