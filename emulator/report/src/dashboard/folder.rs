//! Snapshots of a study directory; the study has ended, or is in progress in another process.
//!
//! A folder has only the ended runs with their results; only the process of a run knows its progress.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use volary_engine::cores::InjectionSpec;
use volary_engine::results::Cell;
use volary_experiment::guard::guard;
use volary_experiment::storage::manifest::{Manifest, RunState};
use volary_experiment::storage::run_record::RunHead;
use volary_experiment::storage::{
    Error, FAILED, MANIFEST, RUNS, RunStore, is_owned, load_failures, load_manifest,
};
use volary_netem::FaultSpec;

use super::snapshot;
use super::snapshot::{
    CellView, CurveView, Disturbance, PageHeader, RunEntry, RunStage, RunView, Snapshot, SnapshotSource,
};

/// Minimum real time between two readings, as a multiple of the duration of the last one.
const READING: u32 = 20;
/// Minimum real time between two readings.
const LEAST: Duration = Duration::from_millis(900);

/// A study directory.
#[derive(Debug)]
pub struct RunFolder {
    root: PathBuf,
    latest: Mutex<FolderReading>,
}

/// The last reading of a folder.
#[derive(Debug)]
struct FolderReading {
    stamp: Stamp,
    store: RunStore,
    /// Data of the ended runs, by id.
    ended: BTreeMap<String, FolderRun>,
    snapshot: Snapshot,
    /// Start of the study, and its end unless it is in progress.
    times: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// Earliest time of the next reading.
    next: Instant,
}

/// Sizes and times of the files that change during a study, and whether its process lives.
type Stamp = ([Option<(u64, SystemTime)>; 3], bool);

impl RunFolder {
    /// The study directory `root`.
    ///
    /// # Errors
    /// When the folder holds no run, or a file in it is damaged.
    pub fn open(root: &Path) -> Result<Self, Error> {
        Ok(Self { root: root.to_owned(), latest: Mutex::new(FolderReading::of(root)?) })
    }
}

impl SnapshotSource for RunFolder {
    /// The current content of the folder. After a failed reading, the content at the last successful reading, with the
    /// reason.
    fn snapshot(&self) -> Snapshot {
        let mut latest = guard(&self.latest);
        if Instant::now() >= latest.next {
            latest.update(&self.root);
        }
        let (started, ended) = latest.times;
        let until = ended.unwrap_or_else(|| SystemTime::now().into());
        let real_s = started.map(|started| (until - started).num_milliseconds().max(0) as f64 * 1e-3);
        Snapshot { real_s, ..latest.snapshot.clone() }
    }

    /// Does nothing, since the files contain all details.
    fn request_details(&self) {}
}

impl FolderReading {
    /// Reads the folder again if it has changed. A file that is being replaced, or is damaged, may be complete at the
    /// next reading.
    fn update(&mut self, root: &Path) {
        let began = Instant::now();
        let outdated = if stamp(root) == self.stamp {
            None
        } else {
            self.read(root).err().map(|error| error.to_string())
        };
        if let Some(why) = outdated.as_ref().filter(|_| self.snapshot.outdated.is_none()) {
            tracing::warn!("the page shows an earlier state: {why}");
        }
        self.snapshot.outdated = outdated;
        self.next = next_reading(began);
    }

    fn of(root: &Path) -> Result<Self, Error> {
        load_manifest(root)?; // fails for a folder without a run
        let (began, store) = (Instant::now(), RunStore::open(root)?);
        let (snapshot, times) = (Snapshot::default(), (None, None));
        let stamp = ([None; 3], false);
        let mut reading = Self { stamp, store, ended: BTreeMap::new(), snapshot, times, next: began };
        reading.read(root)?;
        reading.next = next_reading(began);
        Ok(reading)
    }

    fn read(&mut self, root: &Path) -> Result<(), Error> {
        // The stamp is taken first: changes during this reading are noticed at the next reading.
        let stamp = stamp(root);
        let manifest = load_manifest(root)?;
        self.read_ended()?;
        self.snapshot = self.shown(root, &manifest)?;
        let time = |text: &str| Some(DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc));
        self.times = (time(&manifest.started), manifest.ended.as_deref().and_then(time));
        self.stamp = stamp;
        Ok(())
    }

    /// Reads the runs that have ended since the last reading.
    fn read_ended(&mut self) -> Result<(), Error> {
        self.store.refresh()?;
        let places: BTreeMap<String, u64> =
            self.store.runs().map(|(id, bytes)| (id.to_owned(), bytes.start)).collect();
        self.ended.retain(|id, run| places.get(id) == Some(&run.at));
        let new: Vec<&String> = places.keys().filter(|id| !self.ended.contains_key(*id)).collect();
        for record in self.store.parts_of_records(new) {
            let RunHead { id, summary, .. } = record?;
            let at = places.get(&id).copied().unwrap_or_default();
            let mut entry = RunEntry::waiting(&id, &summary.policy, &summary.cell, Some(summary.seed));
            entry.finish(&summary);
            self.ended.insert(id, FolderRun { at, entry });
        }
        Ok(())
    }
}

/// The earliest time of the next reading, after a reading that began at `began` and has just ended.
fn next_reading(began: Instant) -> Instant {
    Instant::now() + (began.elapsed() * READING).max(LEAST)
}

fn stamp(root: &Path) -> Stamp {
    let of = |name: &str| {
        let metadata = fs::metadata(root.join(name)).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    ([MANIFEST, RUNS, FAILED].map(of), is_owned(root))
}

/// A run that has ended.
#[derive(Debug)]
struct FolderRun {
    /// Position of the run in the log of runs, which is in the order in which runs ended.
    at: u64,
    entry: RunEntry,
}

impl FolderReading {
    fn shown(&self, root: &Path, manifest: &Manifest) -> Result<Snapshot, Error> {
        let planned = manifest.runs.iter().filter_map(|id| Some((id, self.ended.get(id)?)));
        let last = planned.max_by_key(|(_, run)| run.at);
        let mut runs = entries(manifest, &self.ended);
        for failure in load_failures(root, manifest)? {
            if let Some(entry) = runs.iter_mut().find(|entry| entry.run == failure.id) {
                (entry.policy, entry.cell, entry.seed) = (failure.policy, failure.cell, Some(failure.seed));
                (entry.stage, entry.why) = (RunStage::Failed, Some(failure.log));
                let injections = failure.summary.map(|summary| summary.injections).unwrap_or_default();
                entry.injections = snapshot::injected(&injections);
            }
        }
        let cell = last.map(|(_, run)| self.cell(manifest, &runs, &run.entry.cell));
        let header = PageHeader {
            experiment: manifest.experiment.clone(),
            title: manifest.title.clone(),
            runtime: manifest.runtime.clone(),
            policies: policies(manifest, &runs),
            folder: root.display().to_string(),
        };
        let (running, state) = (manifest.state == RunState::Running, manifest.state.to_string());
        Ok(Snapshot { header, running, state, runs, cell: cell.transpose()?, ..Snapshot::default() })
    }

    /// The view of a cell, with the run of each policy that ended last.
    fn cell(&self, manifest: &Manifest, runs: &[RunEntry], cell: &Cell) -> Result<CellView, Error> {
        let of_cell = runs.iter().filter(|run| run.stage == RunStage::Finished && run.cell == *cell);
        let of_cell: Vec<String> = of_cell.map(|run| run.run.clone()).collect();
        let mut distributions = Vec::new();
        let mut views: Vec<(Option<u64>, RunView)> = Vec::new();
        for record in self.store.records(&of_cell) {
            let record = record?;
            let at = self.ended.get(&record.id).map(|run| run.at);
            let same = views.iter().position(|(_, view)| view.policy == record.summary.policy);
            if same.is_none_or(|same| views[same].0 < at) {
                let view = snapshot::view(&record);
                match same {
                    Some(same) => views[same] = (at, view),
                    None => views.push((at, view)),
                }
            }
            distributions.push((record.summary.policy, record.response, record.summary.jobs.submitted));
        }
        let curves = CurveView::of_ended(distributions.into_iter());
        let runs = views.into_iter().map(|(_, view)| view).collect();
        Ok(CellView::new(cell, curves, runs, &planned(manifest, cell)))
    }
}

/// The planned runs, with the data of the ended runs. The policy and cell of a run that has not ended follow from its
/// position in the plan, if the folder has every run of the plan and all points have the same number of runs.
fn entries(manifest: &Manifest, ended: &BTreeMap<String, FolderRun>) -> Vec<RunEntry> {
    let points: Vec<_> = manifest.points().collect();
    let each = manifest.runs.len().checked_div(points.len()).unwrap_or(0);
    // Replications that a stopping rule adds come after the replications of all points.
    let fixed = manifest.slices.is_none() && manifest.spec["repeat"] != "auto";
    let regular = fixed && each > 0 && manifest.runs.len() == each * points.len();
    let entry = |(at, id): (usize, &String)| match ended.get(id) {
        Some(run) => run.entry.clone(),
        None if regular => {
            let (point, seed) = (points[at / each], manifest.seed.wrapping_add((at % each) as u64));
            RunEntry::waiting(id, point.label(), &point.cell(), Some(seed))
        }
        None => RunEntry::waiting(id, "", &Cell::new(), None),
    };
    manifest.runs.iter().enumerate().map(entry).collect()
}

/// Labels of all policies, in the order of the experiment.
fn policies(manifest: &Manifest, runs: &[RunEntry]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    let planned = manifest.points().map(|point| point.label().to_owned());
    for label in planned.chain(runs.iter().map(|run| run.policy.clone())) {
        if !label.is_empty() && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// The faults and injections of the experiment in a cell.
fn planned(manifest: &Manifest, cell: &Cell) -> Vec<Disturbance> {
    let point = manifest.points().find(|point| point.cell() == *cell);
    let specs = |key: &str| point.and_then(|point| point.world(key)).cloned().unwrap_or_default();
    let faults: Vec<FaultSpec> = serde_json::from_value(specs("/network/fault")).unwrap_or_default();
    let injections: Vec<InjectionSpec> = serde_json::from_value(specs("/injections")).unwrap_or_default();
    snapshot::planned(&faults, injections.iter())
}
