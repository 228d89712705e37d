//! The default folder of a run: `runs/<experiment>`, with a number where that is taken.

use std::fs;
use std::path::{Path, PathBuf};

use super::load::load_manifest;

/// A folder below `runs` that does not exist or is empty.
pub fn fresh(runs: &Path, experiment: &str) -> PathBuf {
    let name = folder_name(experiment);
    let numbered = (2..).map(|n| runs.join(format!("{name}-{n}")));
    std::iter::once(runs.join(&name)).chain(numbered).find(|path| !path.exists()).unwrap_or_default()
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
    use crate::storage::RunDir;
    use crate::storage::fixture::manifest;

    #[test]
    fn the_latest_run_is_found_and_a_new_one_disturbs_none() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path();
        let run = |name: &str, experiment: &str, started: &str| {
            let mut manifest = manifest(&[]);
            (manifest.experiment, manifest.started) = (experiment.into(), started.into());
            RunDir::create(&runs.join(name), manifest).unwrap();
        };
        assert_eq!((latest(runs, "a/b"), fresh(runs, "a/b")), (None, runs.join("a-b")));
        run("a-b", "a/b", "2024-01-01T00:00:00Z");
        assert_eq!((latest(runs, "a/b"), fresh(runs, "a/b")), (Some(runs.join("a-b")), runs.join("a-b-2")));
        run("a-b-2", "a/b", "2024-01-02T00:00:00Z");
        run("a-b-10", "a/b", "2024-01-02T00:00:00Z");
        run("a-b-3", "a/b", "2024-01-01T00:00:00Z");
        run("a-b-11", "a-b", "2024-02-01T00:00:00Z");
        run("a-b-late", "a/b", "2024-02-01T00:00:00Z");
        run("a-bc", "a/b", "2024-02-01T00:00:00Z");
        fs::create_dir(runs.join("a-b-12")).unwrap();
        assert_eq!(
            (latest(runs, "a/b"), fresh(runs, "a/b")),
            (Some(runs.join("a-b-10")), runs.join("a-b-4"))
        );
        assert_eq!(latest(runs, "a-b"), Some(runs.join("a-b-11")));
    }
}
