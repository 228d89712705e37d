//! Snapshots of a study directory, whether its run has ended or goes on in another process.
//!
//! A folder says which runs have ended, and how; what a run does between its start and its end is known to its process
//! alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use volary_actors::base::Time;
use volary_engine::results::{Cell, Summary};
use volary_netem::FaultSpec;

use super::snapshot::{CellView, CurveView, Disturbance, PageHeader, RunEntry, RunStage, Snapshot};
use super::{disturbances, record};
use crate::guard::guard;
use crate::storage::manifest::{Manifest, RunState};
use crate::storage::run_record::RunRecord;
use crate::storage::{
    CELLS, Error, MANIFEST, SUMMARY, is_owned, load_failures, load_manifest, load_summary, records_of,
};

/// Least real time between two readings, in multiples of what the last one took.
const READING: u32 = 20;
/// Least real time between two readings.
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
    snapshot: Snapshot,
    /// When the run started and, unless it goes on, ended.
    times: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// Before this there is no other.
    next: Instant,
}

/// Sizes and times of the files that change while a run goes on, and whether its process lives.
type Stamp = ([Option<(u64, SystemTime)>; 3], bool);

impl RunFolder {
    /// The study directory `root`.
    ///
    /// # Errors
    /// It holds no run, or a file in it is damaged.
    pub fn open(root: &Path) -> Result<Self, Error> {
        Ok(Self { root: root.to_owned(), latest: Mutex::new(FolderReading::of(root)?) })
    }

    /// What the folder holds now; or what it held at the last reading that succeeded, and why later ones failed.
    pub fn snapshot(&self) -> Snapshot {
        let mut latest = guard(&self.latest);
        if Instant::now() >= latest.next {
            latest.update(&self.root);
        }
        let (started, ended) = latest.times;
        let until = ended.unwrap_or_else(|| SystemTime::now().into());
        let real_s = started.map(|started| (until - started).num_milliseconds().max(0) as f64 * 1e-3);
        Snapshot { real_s, ..latest.snapshot.clone() }
    }
}

impl FolderReading {
    /// Reads the folder again if it has changed. A file that is being replaced, or is damaged, may be whole at the next
    /// reading.
    fn update(&mut self, root: &Path) {
        let began = Instant::now();
        let outdated = if stamp(root) == self.stamp {
            None
        } else {
            Self::of(root).map(|reading| *self = reading).err().map(|error| error.to_string())
        };
        if let Some(why) = outdated.as_ref().filter(|_| self.snapshot.outdated.is_none()) {
            tracing::warn!("the page shows an earlier state: {why}");
        }
        self.snapshot.outdated = outdated;
        self.next = next_reading(began);
    }

    fn of(root: &Path) -> Result<Self, Error> {
        // The stamp first: what changes while the files are read is noticed at the next reading.
        let (began, stamp) = (Instant::now(), stamp(root));
        let manifest = load_manifest(root)?;
        let snapshot = read(root, &manifest)?;
        let time = |text: &str| Some(DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc));
        let times = (time(&manifest.started), manifest.ended.as_deref().and_then(time));
        Ok(Self { stamp, snapshot, times, next: next_reading(began) })
    }
}

/// When the folder may be read again after a reading that began then and has just ended.
fn next_reading(began: Instant) -> Instant {
    Instant::now() + (began.elapsed() * READING).max(LEAST)
}

fn stamp(root: &Path) -> Stamp {
    let of = |name: &str| {
        let metadata = fs::metadata(root.join(name)).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    ([MANIFEST, SUMMARY, CELLS].map(of), is_owned(root))
}

/// What is used of a line of the summary.
#[derive(Deserialize)]
struct SummaryEntry {
    run: String,
    policy: String,
    cell: Cell,
    seed: u64,
    jobs: Jobs,
    response_s: Response,
}

#[derive(Deserialize)]
struct Jobs {
    submitted: u64,
    finished: u64,
}

#[derive(Deserialize)]
struct Response {
    p50: Option<f64>,
    p99: Option<f64>,
}

fn read(root: &Path, manifest: &Manifest) -> Result<Snapshot, Error> {
    let lines: Vec<SummaryEntry> = load_summary(root)?;
    let planned: BTreeSet<&str> = manifest.runs.iter().map(String::as_str).collect();
    let last = lines.iter().rfind(|line| planned.contains(line.run.as_str()));
    let (last, cell) = (last.map(|line| line.run.clone()), last.map(|line| line.cell.clone()));
    let mut runs = entries(manifest, lines);
    for failure in load_failures(root, manifest)? {
        if let Some(entry) = runs.iter_mut().find(|entry| entry.run == failure.id) {
            (entry.policy, entry.cell, entry.seed) = (failure.policy, failure.cell, Some(failure.seed));
            (entry.stage, entry.why) = (RunStage::Failed, Some(failure.log));
        }
    }
    let cell = match (last, cell) {
        (Some(last), Some(cell)) => Some(self::cell(root, manifest, &runs, &last, cell)?),
        _ => None,
    };
    let header = PageHeader {
        experiment: manifest.experiment.clone(),
        title: manifest.title.clone(),
        runtime: manifest.runtime.clone(),
        policies: policies(manifest, &runs),
        folder: root.display().to_string(),
    };
    let (running, state) = (manifest.state == RunState::Running, manifest.state.to_string());
    Ok(Snapshot { header, running, state, runs, cell, ..Snapshot::default() })
}

/// The planned runs with what is known of those that have ended. The policy and cell of a run that has not ended follow
/// from its place in the plan, if the folder has every run of the plan and all points have the same number of runs.
fn entries(manifest: &Manifest, lines: Vec<SummaryEntry>) -> Vec<RunEntry> {
    let mut ended: BTreeMap<String, SummaryEntry> =
        lines.into_iter().map(|line| (line.run.clone(), line)).collect();
    let points: Vec<_> = manifest.points().collect();
    let each = manifest.runs.len().checked_div(points.len()).unwrap_or(0);
    // Replications that a stopping rule adds come after those of all points.
    let fixed = manifest.slices.is_none() && manifest.spec["repeat"] != "auto";
    let regular = fixed && each > 0 && manifest.runs.len() == each * points.len();
    let entry = |(at, id): (usize, &String)| match ended.remove(id) {
        Some(line) => RunEntry {
            stage: RunStage::Finished,
            jobs: line.jobs.submitted,
            finished: line.jobs.finished,
            response_s: line.response_s.p50.zip(line.response_s.p99),
            ..RunEntry::waiting(id, &line.policy, &line.cell, Some(line.seed))
        },
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

/// The cell of the run that ended last.
fn cell(
    root: &Path,
    manifest: &Manifest,
    runs: &[RunEntry],
    last: &str,
    cell: Cell,
) -> Result<CellView, Error> {
    let of_cell = runs.iter().filter(|run| run.stage == RunStage::Finished && run.cell == cell);
    let of_cell: Vec<String> = of_cell.map(|run| run.run.clone()).collect();
    let (mut distributions, mut run) = (Vec::new(), None);
    for record in records_of(root, &of_cell)? {
        if record.id == last {
            let mut view = record::view(&record);
            view.disturbances.extend(faults(manifest, &record));
            view.disturbances.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
            run = Some(view);
        }
        distributions.push((record.summary.policy, record.response, record.summary.jobs.submitted));
    }
    Ok(CellView { cell, curves: CurveView::of_ended(distributions.into_iter()), run })
}

/// The faults that a run met.
fn faults(manifest: &Manifest, record: &RunRecord) -> Vec<Disturbance> {
    let Summary { policy, cell, .. } = &record.summary;
    let point = manifest.points().find(|point| point.label() == policy && point.cell() == *cell);
    let specs = point.and_then(|point| point.world("/network/fault").cloned());
    let specs: Vec<FaultSpec> =
        specs.and_then(|specs| serde_json::from_value(specs).ok()).unwrap_or_default();
    disturbances::faults(&specs, Time((record.summary.makespan_s * 1e9) as u64))
}
