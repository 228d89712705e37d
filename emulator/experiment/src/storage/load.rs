//! Loading of studies from one study directory, or from the directories of the slices of one experiment.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use volary_engine::results::{ClaimResult, SCHEMA, Summary};

use super::files::{CLAIMS, Error, MANIFEST, failure_path, io, is_owned, read};
use super::manifest::{Failure, Manifest, PlannedPoint, RunState};
use super::perfetto::RUNS;
use super::run_record::RunRecord;
use super::run_store::RunStore;
use super::slices::Slices;
use super::spec_diff::{differences, summary};
use super::study::{Study, cell_key};
use super::tables::TableRow;
use crate::number::plural;

/// Number of runs at the start of an experiment whose timelines are kept in memory: one more than the timeline file
/// shows, so that its writer detects that runs are left out.
const TIMELINES: usize = RUNS + 1;

/// The study of one study directory, finished or not.
///
/// # Errors
/// When the folder holds no study, or a file in it is damaged.
pub fn load(root: &Path) -> Result<Study, Error> {
    load_stored(root, load_manifest(root)?, &RunStore::open(root)?)
}

/// The study of one study directory, from its manifest and its open log of runs.
///
/// # Errors
/// The errors of [`load`], except those of the manifest.
pub(super) fn load_stored(root: &Path, manifest: Manifest, runs: &RunStore) -> Result<Study, Error> {
    let records = load_records(runs, &manifest, TIMELINES)?;
    let failures = load_failures(root, &manifest)?;
    let claims = load_claims(root)?;
    Ok(Study::assemble(manifest, vec![root.to_owned()], records, claims, failures))
}

/// The manifest of a study directory. Its state is never `Running` if the process of the study has ended.
///
/// # Errors
/// [`Error::NotARun`], [`Error::Schema`], [`Error::Damaged`].
pub fn load_manifest(root: &Path) -> Result<Manifest, Error> {
    let path = root.join(MANIFEST);
    if !path.exists() {
        return Err(Error::NotARun { path: root.to_owned() });
    }
    let mut manifest: Manifest = read(&path)?;
    if manifest.schema != SCHEMA {
        return Err(Error::Schema { path: root.to_owned(), found: manifest.schema });
    }
    if !is_owned(root) {
        manifest.state = manifest.state.without_its_process();
    }
    Ok(manifest)
}

/// The finished runs of a study directory, in the manifest's order; runs of earlier plans are left out. The first
/// `timelines` runs of the manifest keep their timelines, and so does the first run of each policy in a cell. A
/// timeline takes far more memory than the rest of a record, and a wide sweep has many thousand runs.
fn load_records(store: &RunStore, manifest: &Manifest, timelines: usize) -> Result<Vec<RunRecord>, Error> {
    if let Some(damage) = store.damage(manifest.state == RunState::Running) {
        tracing::warn!("{damage}: run again with --resume, which repeats the missing runs");
    }
    let early: BTreeSet<&String> = manifest.runs.iter().take(timelines).collect();
    let mut found = RecordList::default();
    for record in store.records(distinct(&manifest.runs)) {
        let record = record?;
        let is_early = early.contains(&record.id);
        found.push(record, is_early);
    }
    Ok(found.records)
}

/// The records of the finished runs among `ids`, in the order of `ids`.
///
/// # Errors
/// When a record is damaged.
pub fn records_of(root: &Path, ids: &[String]) -> Result<Vec<RunRecord>, Error> {
    RunStore::open(root)?.records(distinct(ids)).collect()
}

/// The rows of a finished run.
///
/// # Errors
/// When the run has not finished, or is damaged.
pub fn load_rows<R: TableRow>(root: &Path, id: &str) -> Result<Vec<R>, Error> {
    let found = records_of(root, &[id.to_owned()])?.pop();
    found.ok_or_else(|| Error::Merge(format!("run {id} has not finished")))?.rows.read()
}

/// The ids without repetitions, in order.
fn distinct(ids: &[String]) -> impl Iterator<Item = &String> {
    let mut seen = BTreeSet::new();
    ids.iter().filter(move |id| seen.insert(*id))
}

/// The claims of a finished study directory; empty if the directory has no claims.
///
/// # Errors
/// When the file cannot be read.
pub fn load_claims(root: &Path) -> Result<Vec<ClaimResult>, Error> {
    let path = root.join(CLAIMS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).map_err(io("read", &path))?;
    let claims: serde_json::Result<_> = text.lines().map(serde_json::from_str).collect();
    Ok(claims.unwrap_or_else(|error| {
        tracing::warn!("{} is damaged ({error}): `volary report` judges the claims again", path.display());
        Vec::new()
    }))
}

/// The failures of a study directory's runs, in the order of the manifest.
///
/// # Errors
/// When a log is damaged.
pub fn load_failures(root: &Path, manifest: &Manifest) -> Result<Vec<Failure>, Error> {
    let paths = manifest.runs.iter().map(|id| failure_path(root, id)).filter(|path| path.exists());
    paths.map(|path| read(&path)).collect()
}

/// Combines the study directories of one experiment.
///
/// Runs that occur in several folders count once. A claim that holds in every folder holds; a claim that fails in a
/// folder fails. Any other claim is not tested, since a comparison may need numbers of several folders. Callers with
/// the experiment should judge the claims again on [`Study::records`].
///
/// # Errors
/// When a folder cannot be read, or the folders are not slices of one experiment.
pub fn merge(folders: &[PathBuf]) -> Result<Study, Error> {
    let (first, rest) =
        folders.split_first().ok_or_else(|| Error::Merge("no study directory was named".to_owned()))?;
    let mut manifest = load_manifest(first)?;
    let mut union = RunUnion::default();
    // Slices get runs in turn, so the first runs of the experiment are the first runs of each slice.
    let early = TIMELINES.div_ceil(folders.len());
    for (at, record) in load_records(&RunStore::open(first)?, &manifest, early)?.into_iter().enumerate() {
        union.push(record, at < early);
    }
    let mut failures = load_failures(first, &manifest)?;
    let mut claims = load_claims(first)?;
    let mut slice = manifest.slices.is_some().then(|| (first, manifest.clone()));
    for folder in rest {
        let other = load_manifest(folder)?;
        if other.slices.is_some() {
            let (one, known) = slice.get_or_insert_with(|| (folder, other.clone()));
            check_plan((one, known), (folder, &other))?;
        }
        for (what, expected, found) in [
            ("experiment", &manifest.experiment, &other.experiment),
            ("runtime", &manifest.runtime, &other.runtime),
        ] {
            if expected != found {
                return Err(Error::Merge(format!(
                    "{} ran {what} `{found}`, {} ran `{expected}`: they are not slices of one experiment; set them side by \
                     side with `volary compare`",
                    folder.display(),
                    first.display()
                )));
            }
        }
        for (at, record) in load_records(&RunStore::open(folder)?, &other, early)?.into_iter().enumerate() {
            union.add(record, at < early, folder)?;
        }
        failures.extend(load_failures(folder, &other)?);
        claims = combine(claims, load_claims(folder)?);
        absorb(&mut manifest, other);
    }
    manifest.slices.take_if(|slices| slices.left_out() == 0);
    failures.retain(|failure| !union.ids.contains(&failure.id));
    failures.sort_by(|a, b| a.id.cmp(&b.id));
    failures.dedup_by(|a, b| a.id == b.id);
    let mut records = union.records.records;
    sort(&mut manifest, &mut records);
    Ok(Study::assemble(manifest, folders.to_vec(), records, claims, failures))
}

/// Refuses slices of different plans, whose runs together are not the runs of one experiment.
fn check_plan((one, known): (&Path, &Manifest), (folder, other): (&Path, &Manifest)) -> Result<(), Error> {
    let found = differences(known, other, ["there", "here"]);
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::Merge(format!(
        "{} is a slice of another plan than {} ({}); run it again with the same options, or leave it out",
        folder.display(),
        one.display(),
        summary(&found)
    )))
}

/// Sorts runs into the order of the experiment. Slices take runs in turn, so merged folders have them in another order.
fn sort(manifest: &mut Manifest, records: &mut [RunRecord]) {
    let key = |point: PlannedPoint<'_>| (cell_key(&point.cell()), point.label().to_owned());
    let places: BTreeMap<_, _> = manifest.points().map(key).zip(0..).collect();
    let place = |Summary { cell, policy, seed, .. }: &Summary| {
        (places.get(&(cell_key(cell), policy.clone())).copied().unwrap_or(usize::MAX), *seed)
    };
    records.sort_by_cached_key(|record| place(&record.summary));
    let ids: BTreeMap<&str, usize> =
        records.iter().enumerate().map(|(at, record)| (record.id.as_str(), at)).collect();
    manifest.runs.sort_by_key(|id| ids.get(id.as_str()).copied().unwrap_or(usize::MAX));
}

/// Combines the manifests of two folders: the earlier start, the later end, and the worse state.
fn absorb(manifest: &mut Manifest, other: Manifest) {
    manifest.unite(&other);
    manifest.expect(other.runs);
    // A folder without slices has all runs.
    manifest.slices = manifest.slices.take().zip(other.slices).map(|(all, more)| all.unite(more));
    manifest.state = manifest.state.max(other.state);
    manifest.started = std::mem::take(&mut manifest.started).min(other.started);
    manifest.ended = manifest.ended.take().max(other.ended);
}

/// Policy, cell and seed, which identify a run.
type RunKey = (PointKey, u64);

/// The runs of several folders, each run once.
#[derive(Default)]
struct RunUnion {
    records: RecordList,
    ids: BTreeSet<String>,
    keys: BTreeSet<RunKey>,
}

impl RunUnion {
    fn push(&mut self, record: RunRecord, is_early: bool) {
        self.ids.insert(record.id.clone());
        self.keys.insert(Self::key(&record.summary));
        self.records.push(record, is_early);
    }

    /// Adds a record unless its run is known.
    fn add(&mut self, record: RunRecord, is_early: bool, folder: &Path) -> Result<(), Error> {
        if self.ids.contains(&record.id) {
            return Ok(());
        }
        if self.keys.contains(&Self::key(&record.summary)) {
            return Err(Error::Merge(format!(
                "{} ran `{}` under other settings than the folders before; leave out one of these folders, or \
                 set them side by side with `volary compare`",
                folder.display(),
                record.summary.name()
            )));
        }
        self.push(record, is_early);
        Ok(())
    }

    fn key(summary: &Summary) -> RunKey {
        (point_key(summary), summary.seed)
    }
}

fn combine(mut claims: Vec<ClaimResult>, others: Vec<ClaimResult>) -> Vec<ClaimResult> {
    for other in others {
        let Some(claim) = claims.iter_mut().find(|claim| claim.says == other.says) else {
            claims.push(other);
            continue;
        };
        claim.verdict = claim.verdict.max(other.verdict);
        claim.measured.extend(other.measured);
    }
    claims
}

/// Policy and cell of a run.
type PointKey = (String, String);

/// The policy and the cell of a run, as a key.
fn point_key(Summary { policy, cell, .. }: &Summary) -> PointKey {
    (policy.clone(), cell_key(cell))
}

/// Records in the order in which they were added. Only runs that charts plot keep their timelines: the run with the
/// lowest seed of each policy in a cell, and the first few runs.
#[derive(Debug, Default)]
struct RecordList {
    records: Vec<RunRecord>,
    /// Per policy and cell, the run with the lowest seed added so far.
    first: BTreeMap<PointKey, FirstRun>,
}

#[derive(Clone, Copy, Debug)]
struct FirstRun {
    seed: u64,
    /// Index of the run in the list.
    at: usize,
    /// Whether the run is one of the first few, which always keep their timelines.
    is_early: bool,
}

impl RecordList {
    /// Adds a record; `is_early` says whether its run is one of the first few of the experiment.
    fn push(&mut self, mut record: RunRecord, is_early: bool) {
        let run = FirstRun { seed: record.summary.seed, at: self.records.len(), is_early };
        match self.first.entry(point_key(&record.summary)) {
            Entry::Vacant(free) => {
                free.insert(run);
            }
            Entry::Occupied(mut known) if run.seed < known.get().seed => {
                let earlier = known.insert(run);
                if !earlier.is_early {
                    self.records[earlier.at].drop_timeline();
                }
            }
            Entry::Occupied(_) if is_early => {}
            Entry::Occupied(_) => record.drop_timeline(),
        }
        self.records.push(record);
    }
}

/// The missing parts of a study, one sentence per cause: slices that are in none of the folders, and folders with
/// unfinished runs of their plan. Empty if the study has every run of its experiment.
///
/// # Errors
/// When a manifest cannot be read.
pub fn gaps(study: &Study) -> Result<Vec<String>, Error> {
    let there: BTreeSet<&str> = study.records().map(|record| record.id.as_str()).collect();
    let mut says: Vec<String> = study.manifest.slices.iter().map(Slices::says).collect();
    for folder in &study.folders {
        let mut manifest = load_manifest(folder)?;
        if study.folders.len() == 1 {
            // Use the state from when the study was loaded: a lock that this process took since looks like a running
            // study.
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
    use crate::storage::slices::SweepSlice;
    use crate::storage::{RenderedReport, StudyDir};

    #[test]
    fn runs_with_a_chart_keep_their_timelines() {
        let mut list = RecordList::default();
        let record = |policy, seed| RunRecord::new("r", &measured(policy, &[], seed, 1.0, 2));
        for (policy, seed, is_early) in [
            ("a", 1, true),
            ("a", 2, true),
            ("a", 3, false),
            ("b", 7, false),
            ("b", 9, false),
            ("b", 5, false),
        ] {
            list.push(record(policy, seed), is_early);
        }
        let has_one: Vec<bool> = list.records.iter().map(|record| !record.timeline.is_empty()).collect();
        assert_eq!(has_one, [true, true, false, false, false, true], "b keeps its lowest seed");
    }

    #[test]
    fn gaps_name_every_missing_slice_and_folder() {
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
