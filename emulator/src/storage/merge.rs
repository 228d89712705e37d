//! The union of the run directories of one experiment.

use std::path::{Path, PathBuf};

use super::error::{Error, MergeError};
use super::load::{load_claims, load_failures, load_manifest, load_records};
use crate::storage::Study;
use crate::storage::cell::CellRecord;
use crate::storage::manifest::Manifest;
use volary_engine::results::{ClaimResult, Verdict};

/// Combines the run directories of one experiment.
///
/// Runs that occur in several folders count once. A claim that holds in every folder holds, one that fails in some
/// folder fails, and any other is not tested, since a comparison may need numbers of several folders. Callers with the
/// experiment should evaluate the claims again over [`Study::records`].
///
/// # Errors
/// A folder cannot be read, or they are not shards of one experiment.
pub fn merge(folders: &[PathBuf]) -> Result<Study, Error> {
    let (first, rest) = folders.split_first().ok_or(MergeError::Nothing)?;
    let mut manifest = load_manifest(first)?;
    let mut records = load_records(first, &manifest)?;
    let mut failures = load_failures(first, &manifest)?;
    let mut claims = load_claims(first)?;
    for folder in rest {
        let other = load_manifest(folder)?;
        alike("experiment", first, &manifest.experiment, folder, &other.experiment)?;
        alike("runtime", first, &manifest.runtime, folder, &other.runtime)?;
        for record in load_records(folder, &other)? {
            add_record(&mut records, record, folder)?;
        }
        failures.extend(load_failures(folder, &other)?);
        claims = combine(claims, load_claims(folder)?);
        absorb(&mut manifest, other);
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

/// Combines the plans; the result has the earlier start, the later end, and the worse state.
fn absorb(manifest: &mut Manifest, other: Manifest) {
    manifest.unite(&other);
    for id in other.cells {
        if !manifest.cells.contains(&id) {
            manifest.cells.push(id);
        }
    }
    manifest.state = manifest.state.max(other.state);
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
