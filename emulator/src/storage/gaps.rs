//! Gaps of a study: runs of its experiment that it lacks.

use std::collections::BTreeSet;

use super::error::Error;
use super::load::load_manifest;
use crate::number::plural;
use crate::storage::slices::Slices;
use crate::storage::study::Study;

/// What is missing, a sentence for each cause: slices that are in none of the folders, and each folder in which runs
/// of its plan are missing. Empty if the study has every run of its experiment.
///
/// # Errors
/// A manifest cannot be read.
pub fn gaps(study: &Study) -> Result<Vec<String>, Error> {
    let there: BTreeSet<&str> = study.records().map(|record| record.id.as_str()).collect();
    let mut says: Vec<String> = study.manifest.slices.iter().map(Slices::says).collect();
    for folder in &study.folders {
        let mut manifest = load_manifest(folder)?;
        if study.folders.len() == 1 {
            // Whether its process is at work was found out before the folder was locked.
            manifest.state = study.manifest.state;
        }
        let missing: Vec<&String> = manifest.runs.iter().filter(|id| !there.contains(id.as_str())).collect();
        if missing.is_empty() {
            continue;
        }
        let failed: Vec<_> = study
            .failures
            .iter()
            .filter(|failure| !failure.interrupted && missing.contains(&&failure.id))
            .collect();
        let first = failed.first().and_then(|failure| failure.log.lines().next());
        let why = first.map_or_else(String::new, |why| format!(", {} failed: {why}", failed.len()));
        let all = plural(manifest.runs.len() as u64, "run");
        says.push(format!(
            "{} lacks {} of its {all} ({}{why}).",
            folder.display(),
            missing.len(),
            manifest.state
        ));
    }
    Ok(says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::{manifest, measured};
    use crate::storage::manifest::{Failure, Manifest, RunState};
    use crate::storage::slices::SweepSlice;
    use crate::storage::{RenderedReport, StudyDir, merge};

    #[test]
    fn every_cause_is_named() {
        let root = tempfile::tempdir().unwrap();
        let slice = |index, plan: &[&str]| {
            let held = vec![SweepSlice { of: 3, index }];
            let manifest = Manifest { slices: Some(Slices { held, runs: 6 }), ..manifest(plan) };
            StudyDir::create(&root.path().join(format!("part-{index}")), manifest).unwrap()
        };
        let (first, second) = (slice(1, &["a", "d"]), slice(2, &["b", "e"]));
        let run = |seed| measured("a", &[], seed, 1.0, 5);
        first.store("a", &run(1)).unwrap();
        first.store("d", &run(2)).unwrap();
        first.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap();
        second.store("b", &run(3)).unwrap();
        second
            .fail(&Failure {
                id: "e".into(),
                policy: "a".into(),
                cell: [].into(),
                seed: 4,
                log: "no room\nmore".into(),
                summary: None,
                interrupted: false,
            })
            .unwrap();
        second.finish(RunState::Failed, &[], |_| RenderedReport::default()).unwrap();
        let part = |index| root.path().join(format!("part-{index}"));
        let says = gaps(&merge(&[part(1), part(2)]).unwrap()).unwrap();
        assert_eq!(says[0], "Slice 3 of 3 is missing: 2 of 6 runs.");
        let folder = part(2);
        assert_eq!(
            says[1..],
            [format!("{} lacks 1 of its 2 runs (failed in part, 1 failed: no room).", folder.display())]
        );
        let third = slice(3, &["c", "f"]);
        third.store("c", &run(5)).unwrap();
        third.store("f", &run(6)).unwrap();
        third.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap();
        second.store("e", &run(4)).unwrap();
        let all = merge(&[part(1), part(2), part(3)]).unwrap();
        assert_eq!((gaps(&all).unwrap(), all.records().count()), (Vec::<String>::new(), 6));
    }
}
