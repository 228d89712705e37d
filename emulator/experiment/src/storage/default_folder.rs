//! The default folder of a run: `runs/<experiment>`, with a number where that is taken.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::{Error, io};
use super::load::load_manifest;

/// A new folder below `runs`, which no other process has. If nothing was put into it, it is removed when this is
/// dropped.
#[derive(Debug)]
pub struct NewFolder {
    path: PathBuf,
    /// The folder of runs, if it is new as well.
    runs: Option<PathBuf>,
}

impl NewFolder {
    /// Makes the folder of an experiment: the first name that is not taken. Of processes that do this at the same time,
    /// each gets a folder of its own.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn make(runs: &Path, experiment: &str) -> Result<Self, Error> {
        let (name, is_new) = (folder_name(experiment), !runs.exists());
        let (mut path, mut number) = (runs.join(&name), 1_u64);
        loop {
            fs::create_dir_all(runs).map_err(io("create", runs))?;
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, runs: is_new.then(|| runs.to_owned()) }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    number += 1;
                    path = runs.join(format!("{name}-{number}"));
                }
                // Another process has just removed the folder of runs, which was empty.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(io("create", &path)(error)),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // Fails if there is something in them.
        let _ = fs::remove_dir(&self.path);
        self.runs.iter().for_each(|runs| drop(fs::remove_dir(runs)));
    }
}

/// The folder below `runs` with the latest run of an experiment, which `--resume` continues. Of runs that started in
/// the same second, the one with the highest number.
pub fn latest(runs: &Path, experiment: &str) -> Option<PathBuf> {
    let name = folder_name(experiment);
    let number = |path: &Path| -> Option<u32> {
        match path.file_name()?.to_str()?.strip_prefix(name.as_str())? {
            "" => Some(1),
            rest => rest.strip_prefix('-')?.parse().ok(),
        }
    };
    let folders = fs::read_dir(runs).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let ours = folders.filter_map(|path| {
        let number = number(&path)?;
        // Different experiment names can give the same folder name.
        let manifest = load_manifest(&path).ok().filter(|manifest| manifest.experiment == experiment)?;
        Some((manifest.started, number, path))
    });
    ours.max().map(|(.., path)| path)
}

fn folder_name(experiment: &str) -> String {
    experiment.replace(['/', '\\'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StudyDir;
    use crate::storage::fixture::manifest;

    #[test]
    fn the_latest_run_is_found_and_a_new_one_disturbs_none() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path();
        let run = |name: &str, experiment: &str, started: &str| {
            let mut manifest = manifest(&[]);
            (manifest.experiment, manifest.started) = (experiment.into(), started.into());
            StudyDir::create(&runs.join(name), manifest).unwrap();
        };
        let fresh = || NewFolder::make(runs, "a/b").unwrap().path().to_owned();
        assert_eq!((latest(runs, "a/b"), fresh()), (None, runs.join("a-b")));
        run("a-b", "a/b", "2024-01-01T00:00:00Z");
        assert_eq!((latest(runs, "a/b"), fresh()), (Some(runs.join("a-b")), runs.join("a-b-2")));
        run("a-b-2", "a/b", "2024-01-02T00:00:00Z");
        run("a-b-10", "a/b", "2024-01-02T00:00:00Z");
        run("a-b-3", "a/b", "2024-01-01T00:00:00Z");
        run("a-b-11", "a-b", "2024-02-01T00:00:00Z");
        run("a-b-late", "a/b", "2024-02-01T00:00:00Z");
        run("a-bc", "a/b", "2024-02-01T00:00:00Z");
        fs::create_dir(runs.join("a-b-12")).unwrap();
        assert_eq!((latest(runs, "a/b"), fresh()), (Some(runs.join("a-b-10")), runs.join("a-b-4")));
        assert_eq!(latest(runs, "a-b"), Some(runs.join("a-b-11")));
    }

    /// Threads that begin together stand for processes.
    #[test]
    fn folders_that_are_made_together_differ() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let runs = folder.path().join(format!("runs{round}"));
            let barrier = std::sync::Barrier::new(16);
            let made: Vec<NewFolder> = std::thread::scope(|scope| {
                let make = || {
                    barrier.wait();
                    NewFolder::make(&runs, "e").unwrap()
                };
                let threads: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let paths: std::collections::BTreeSet<_> = made.iter().map(NewFolder::path).collect();
            assert_eq!(paths.len(), 16, "{paths:?}");
            assert!(paths.iter().all(|path| path.is_dir()));
        }
    }

    #[test]
    fn a_folder_that_stays_empty_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        drop(NewFolder::make(&runs, "e").unwrap());
        assert!(!runs.exists(), "nor is the folder of runs left");
        fs::create_dir(&runs).unwrap();
        drop(NewFolder::make(&runs, "e").unwrap());
        assert!(runs.exists(), "it was there before");
        let kept = NewFolder::make(&runs, "e").unwrap();
        fs::write(kept.path().join("a"), "").unwrap();
        drop(kept);
        assert!(runs.join("e/a").exists());
    }
}
