//! What a report shows: the cells of one experiment, from one run directory or several shards of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::record::cell::CellRecord;
use crate::record::manifest::{Failure, Manifest, State};
use crate::record::rundir::{self, Error};
use crate::results::{Cell, ClaimResult, Verdict};

/// One experiment's results.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// What was run; of several shards the first's, with the cells of all.
    pub manifest: Manifest,
    /// The folders it was loaded from.
    pub folders: Vec<PathBuf>,
    /// Cells in the manifest's order.
    pub cells: Vec<CellGroup>,
    /// Claims with their verdicts.
    pub claims: Vec<ClaimResult>,
    /// Cells that could not finish.
    pub failures: Vec<Failure>,
    /// Cells of the plan that neither finished nor failed.
    pub missing: usize,
}

/// One point of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct CellGroup {
    /// Values of the swept keys.
    pub cell: Cell,
    /// Policies in the order of the experiment.
    pub policies: Vec<PolicyRuns>,
}

/// A policy in one cell.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyRuns {
    /// Its label.
    pub policy: String,
    /// One run a seed, in order of seed.
    pub runs: Vec<CellRecord>,
}

/// Why several run directories do not make one experiment.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// No folder was named.
    #[error("no run directory was named")]
    Nothing,
    /// They differ in what they ran.
    #[error("{} ran {what} `{found}`, {} ran `{expected}`: they are not shards of one experiment; set them side by side with `volary compare`", path.display(), first.display())]
    Different {
        /// Which part differs.
        what: &'static str,
        /// The first folder.
        first: PathBuf,
        /// What the first ran.
        expected: String,
        /// The other folder.
        path: PathBuf,
        /// What it ran.
        found: String,
    },
    /// The same point was run twice with different settings.
    #[error("{} ran `{policy}` with seed {seed} under other settings than the folders before it; leave one of them out, or set them side by side with `volary compare`", path.display())]
    Conflict {
        /// The later folder.
        path: PathBuf,
        /// Label of the policy.
        policy: String,
        /// Seed.
        seed: u64,
    },
}

impl Study {
    /// Of one run directory, finished or not.
    ///
    /// # Errors
    /// The folder holds no run, or a file in it is damaged.
    pub fn load(root: &Path) -> Result<Self, Error> {
        let manifest = rundir::load_manifest(root)?;
        let records = rundir::load_records(root)?;
        let failures = rundir::load_failures(root)?;
        let claims = rundir::load_claims(root)?;
        Ok(Self::assemble(manifest, vec![root.to_owned()], records, claims, failures))
    }

    /// Puts records in order.
    #[must_use]
    pub fn assemble(
        manifest: Manifest,
        folders: Vec<PathBuf>,
        records: Vec<CellRecord>,
        claims: Vec<ClaimResult>,
        failures: Vec<Failure>,
    ) -> Self {
        let missing = manifest.cells.len().saturating_sub(records.len() + failures.len());
        let mut cells: Vec<CellGroup> = Vec::new();
        for record in records {
            let cell = &record.summary.cell;
            let at = cells.iter().position(|group| group.cell == *cell).unwrap_or_else(|| {
                cells.push(CellGroup { cell: cell.clone(), policies: Vec::new() });
                cells.len() - 1
            });
            cells[at].add(record);
        }
        for runs in cells.iter_mut().flat_map(|group| &mut group.policies) {
            runs.runs.sort_by_key(|run| run.summary.seed);
        }
        Self { manifest, folders, cells, claims, failures, missing }
    }

    /// All runs: by cell, policy and seed.
    pub fn records(&self) -> impl Iterator<Item = &CellRecord> {
        self.cells.iter().flat_map(|group| group.policies.iter().flat_map(|runs| &runs.runs))
    }

    /// Labels of all policies, in order of first appearance.
    #[must_use]
    pub fn policies(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for runs in self.cells.iter().flat_map(|group| &group.policies) {
            if !labels.contains(&runs.policy.as_str()) {
                labels.push(&runs.policy);
            }
        }
        labels
    }

    /// Keys that were swept, with the values that occur, in order of first appearance.
    #[must_use]
    pub fn swept(&self) -> BTreeMap<&str, Vec<&serde_json::Value>> {
        let mut keys: BTreeMap<&str, Vec<&serde_json::Value>> = BTreeMap::new();
        for (key, value) in self.cells.iter().flat_map(|group| &group.cell) {
            let values = keys.entry(key).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        keys
    }

    /// Largest number of replications of a policy in a cell.
    #[must_use]
    pub fn replications(&self) -> usize {
        let policies = self.cells.iter().flat_map(|group| &group.policies);
        policies.map(|runs| runs.runs.len()).max().unwrap_or(0)
    }
}

impl CellGroup {
    fn add(&mut self, record: CellRecord) {
        let policy = &record.summary.policy;
        if let Some(runs) = self.policies.iter_mut().find(|runs| runs.policy == *policy) {
            runs.runs.push(record);
        } else {
            self.policies.push(PolicyRuns { policy: policy.clone(), runs: vec![record] });
        }
    }

    /// The swept values in words, as `load = 0.8, order = 2`; empty if nothing is swept.
    #[must_use]
    pub fn name(&self) -> String {
        cell_name(&self.cell)
    }
}

/// Swept values in words.
#[must_use]
pub fn cell_name(cell: &Cell) -> String {
    let words = cell.iter().map(|(key, value)| format!("{key} = {}", plain(value)));
    words.collect::<Vec<_>>().join(", ")
}

/// A value without the quotes of a string.
#[must_use]
pub fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Puts the run directories of one experiment together.
///
/// Runs that several of them hold count once. Claims are combined with care: what holds in every folder holds,
/// what fails in one fails, anything else is not tested, since a comparison may need numbers of several folders.
/// Evaluate them again over [`Study::records`] where the experiment is at hand.
///
/// # Errors
/// A folder cannot be read, or they are not shards of one experiment.
pub fn merge(folders: &[PathBuf]) -> Result<Study, Error> {
    let (first, rest) = folders.split_first().ok_or(MergeError::Nothing)?;
    let mut manifest = rundir::load_manifest(first)?;
    let mut records = rundir::load_records(first)?;
    let mut failures = rundir::load_failures(first)?;
    let mut claims = rundir::load_claims(first)?;
    for folder in rest {
        let other = rundir::load_manifest(folder)?;
        alike("experiment", first, &manifest.experiment, folder, &other.experiment)?;
        alike("runtime", first, &manifest.runtime, folder, &other.runtime)?;
        absorb(&mut manifest, other);
        for record in rundir::load_records(folder)? {
            add_record(&mut records, record, folder)?;
        }
        failures.extend(rundir::load_failures(folder)?);
        claims = combine(claims, rundir::load_claims(folder)?);
    }
    failures.retain(|failure| records.iter().all(|record| record.id != failure.id));
    failures.sort_by(|a, b| a.id.cmp(&b.id));
    failures.dedup_by(|a, b| a.id == b.id);
    Ok(Study::assemble(manifest, folders.to_vec(), records, claims, failures))
}

fn alike(
    what: &'static str,
    first: &Path,
    expected: &str,
    path: &Path,
    found: &str,
) -> Result<(), MergeError> {
    if expected == found {
        return Ok(());
    }
    let (first, path) = (first.to_owned(), path.to_owned());
    Err(MergeError::Different { what, first, expected: expected.to_owned(), path, found: found.to_owned() })
}

/// The plan of both; from the earlier start to the later end, and no better than the worse state.
fn absorb(manifest: &mut Manifest, other: Manifest) {
    for id in other.cells {
        if !manifest.cells.contains(&id) {
            manifest.cells.push(id);
        }
    }
    let rank = |state: State| match state {
        State::Finished => 0,
        State::Interrupted => 1,
        State::Running => 2,
        State::Failed => 3,
    };
    if rank(other.state) > rank(manifest.state) {
        manifest.state = other.state;
    }
    manifest.started = std::mem::take(&mut manifest.started).min(other.started);
    manifest.ended = manifest.ended.take().max(other.ended);
}

fn add_record(records: &mut Vec<CellRecord>, record: CellRecord, folder: &Path) -> Result<(), MergeError> {
    if records.iter().any(|known| known.id == record.id) {
        return Ok(());
    }
    let (summary, path) = (&record.summary, folder.to_owned());
    let key = |record: &CellRecord| {
        (record.summary.policy.clone(), record.summary.cell.clone(), record.summary.seed)
    };
    if records.iter().any(|known| key(known) == key(&record)) {
        return Err(MergeError::Conflict { path, policy: summary.policy.clone(), seed: summary.seed });
    }
    records.push(record);
    Ok(())
}

fn combine(mut claims: Vec<ClaimResult>, others: Vec<ClaimResult>) -> Vec<ClaimResult> {
    for other in others {
        let Some(claim) = claims.iter_mut().find(|claim| claim.says == other.says) else {
            claims.push(other);
            continue;
        };
        claim.verdict = match (claim.verdict, other.verdict) {
            (Verdict::Fails, _) | (_, Verdict::Fails) => Verdict::Fails,
            (Verdict::Holds, Verdict::Holds) => Verdict::Holds,
            (Verdict::NotTested, _) | (_, Verdict::NotTested) => Verdict::NotTested,
        };
        claim.measured.extend(other.measured);
    }
    claims
}
