//! The union of the study directories of one experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use volary_engine::results::{ClaimResult, Summary};

use super::error::Error;
use super::load::{load_claims, load_failures, load_manifest, load_records_with};
use super::record_list::{PointKey, RecordList, TIMELINES, point_key};
use super::study::cell_key;
use crate::storage::Study;
use crate::storage::manifest::Manifest;
use crate::storage::planned::PlannedPoint;
use crate::storage::run_record::RunRecord;
use crate::storage::spec_diff::{differences, summary};

/// Combines the study directories of one experiment.
///
/// Runs that occur in several folders count once. A claim that holds in every folder holds, one that fails in some
/// folder fails, and any other is not tested, since a comparison may need numbers of several folders. Callers with the
/// experiment should evaluate the claims again over [`Study::records`].
///
/// # Errors
/// A folder cannot be read, or they are not slices of one experiment.
pub fn merge(folders: &[PathBuf]) -> Result<Study, Error> {
    let (first, rest) =
        folders.split_first().ok_or_else(|| Error::Merge("no study directory was named".to_owned()))?;
    let mut manifest = load_manifest(first)?;
    let mut union = RunUnion::default();
    // Slices take turns, so the first runs of the experiment are the first of each.
    let early = TIMELINES.div_ceil(folders.len());
    for (at, record) in load_records_with(first, &manifest, early)?.into_iter().enumerate() {
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
        for (at, record) in load_records_with(folder, &other, early)?.into_iter().enumerate() {
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
    let mut records = union.records.into_records();
    sort(&mut manifest, &mut records);
    Ok(Study::assemble(manifest, folders.to_vec(), records, claims, failures))
}

/// Refuses slices of different plans: each would leave out other runs than the rest believe.
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

/// Puts runs into the order of the experiment, in which slices take turns.
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

/// Combines the plans; the result has the earlier start, the later end, and the worse state.
fn absorb(manifest: &mut Manifest, other: Manifest) {
    manifest.unite(&other);
    manifest.expect(other.runs);
    // A folder without slices has all the runs.
    manifest.slices = manifest.slices.take().zip(other.slices).map(|(all, more)| all.unite(more));
    manifest.state = manifest.state.max(other.state);
    manifest.started = std::mem::take(&mut manifest.started).min(other.started);
    manifest.ended = manifest.ended.take().max(other.ended);
}

/// Policy and cell, and seed, of a run.
type RunKey = (PointKey, u64);

/// The runs of several folders, each once.
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

    /// Adds a record, unless it is known.
    fn add(&mut self, record: RunRecord, is_early: bool, folder: &Path) -> Result<(), Error> {
        if self.ids.contains(&record.id) {
            return Ok(());
        }
        if self.keys.contains(&Self::key(&record.summary)) {
            return Err(Error::Merge(format!(
                "{} ran `{}` under other settings than the folders before it; leave one of them out, or \
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
