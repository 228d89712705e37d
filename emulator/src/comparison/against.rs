//! The comparison of one policy in one runtime with the reference: counts, jobs, placement, metrics.

use std::collections::{BTreeMap, BTreeSet};

use volary_engine::results::{CopyEnd, CopyRow, Injected, JobRow, Summary};
use volary_experiment::storage::run_record::RunRecord;

use super::causes::cause;
use super::divergence;
use super::validation::{Against, DrawsCompared, JobPlacement, ValidatedPoint};
use super::variant::{Error, VariantRuns};
use crate::runtime::StudyError;

/// Divergence from which a cause is searched for.
const NOTABLE: f64 = 0.01;

/// The reference with cores as a run found them; `None` if that is not known.
pub(super) type AsFound<'a> = dyn Fn(&RunRecord) -> Result<Option<Summary>, Error> + 'a;

/// Compares a runtime with the reference; `None` if either did not run the point.
///
/// # Errors
/// When a file cannot be read, or the reference cannot be run again.
pub(super) fn against(
    point: &ValidatedPoint,
    reference: &VariantRuns,
    variant: &VariantRuns,
    as_found: &AsFound<'_>,
) -> Result<Option<Against>, Error> {
    let of_reference = format!("{}, which it is compared with", reference.variant);
    let (reference, runs) =
        (reference.of(&point.policy, &point.cell), variant.of(&point.policy, &point.cell));
    let (Some(base), false) = (reference.first(), runs.is_empty()) else {
        return Ok(None);
    };
    let read = |error| Error::Run(StudyError::StudyDir(error));
    let jobs = base.rows.read().map_err(read)?;
    let copies = base.rows.read().map_err(read)?;
    // The maximum over all repetitions.
    let (mut different, mut moved) = (Vec::new(), Vec::new());
    for run in &runs {
        different.push(draws(&jobs, &run.rows.read().map_err(read)?));
        moved.extend(placement(&copies, &run.rows.read().map_err(read)?));
    }
    let accounts = accounts(&base.summary, &summaries(&runs));
    // Degraded or injected runs say nothing about the others.
    let (bad, good): (Vec<_>, Vec<_>) = runs.iter().copied().partition(|run| run.summary.has_departed());
    let left_out = if good.is_empty() { 0 } else { bad.len() };
    let compared = if good.is_empty() { bad } else { good };
    let summaries = summaries(&compared);
    let is_judged = !base.summary.has_departed() && !summaries.iter().any(|run| run.has_departed());
    let again: Vec<Summary> =
        compared.iter().filter_map(|&run| as_found(run).transpose()).collect::<Result<_, _>>()?;
    let of_base = reasons(&[base]).into_iter().map(|why| format!("{of_reference}: {why}"));
    let mut found = Against {
        runtime: variant.variant.to_string(),
        runs: runs.len(),
        left_out,
        is_judged,
        is_certified: runs.iter().any(|run| run.summary.fidelity.is_some()),
        accounts,
        draws: different.into_iter().max_by_key(|draws| draws.different).unwrap_or_default(),
        placement: moved.into_iter().max_by_key(|placement| placement.moved),
        degraded: reasons(&runs).into_iter().chain(of_base).collect(),
        metrics: divergence::all((&base.summary, &again), &summaries),
        policy: divergence::of_policy(&base.summary, &summaries),
    };
    let placement = found.placement;
    for divergence in found.metrics.iter_mut().chain(found.policy.values_mut().flatten()) {
        if divergence.relative.is_some_and(|share| share.abs() > NOTABLE) {
            divergence.cause = Some(cause(divergence, &base.summary, &summaries, placement));
        }
    }
    Ok(Some(found))
}

/// Counts that differ, in words.
fn accounts(reference: &Summary, runs: &[&Summary]) -> Vec<String> {
    type Count = (&'static str, fn(&Summary) -> u64);
    const COUNTS: [Count; 5] = [
        ("jobs submitted", |s| s.jobs.submitted),
        ("jobs finished", |s| s.jobs.finished),
        ("jobs failed", |s| s.jobs.failed),
        ("tasks submitted", |s| s.tasks.submitted),
        ("tasks finished", |s| s.tasks.finished),
    ];
    let differ = COUNTS.iter().flat_map(|(name, count)| {
        let other = runs.iter().map(|run| count(run)).find(|other| *other != count(reference));
        other.map(|other| format!("{name}: {} against {other}", count(reference)))
    });
    differ.collect()
}

fn draws(a: &[JobRow], b: &[JobRow]) -> DrawsCompared {
    let drawn = |rows: &[JobRow]| -> BTreeMap<u32, (u64, u64, u32)> {
        rows.iter().map(|row| (row.job, (row.arrival.to_bits(), row.longest.to_bits(), row.tasks))).collect()
    };
    let (a, b) = (drawn(a), drawn(b));
    let same = a.iter().filter(|(job, draws)| b.get(job) == Some(draws)).count();
    let all = a.len() + b.keys().filter(|job| !a.contains_key(job)).count();
    DrawsCompared { jobs: all as u64, different: (all - same) as u64 }
}

fn placement(a: &[CopyRow], b: &[CopyRow]) -> Option<JobPlacement> {
    let placed = |rows: &[CopyRow]| {
        let mut jobs: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.end_kind == CopyEnd::First) {
            jobs.entry(row.job).or_default().insert(row.task, row.core);
        }
        jobs
    };
    let (a, b) = (placed(a), placed(b));
    let both: Vec<_> = a.iter().filter_map(|(job, tasks)| Some((tasks, b.get(job)?))).collect();
    let moved = both.iter().filter(|(a, b)| a != b).count();
    (!both.is_empty()).then_some(JobPlacement { jobs: both.len() as u64, moved: moved as u64 })
}

fn summaries<'a>(records: &[&'a RunRecord]) -> Vec<&'a Summary> {
    records.iter().map(|record| &record.summary).collect()
}

/// The reasons of degraded runs, and their injections, without duplicates.
fn reasons(runs: &[&RunRecord]) -> Vec<String> {
    let certificates = runs.iter().filter_map(|run| run.summary.fidelity.as_ref());
    let says: BTreeSet<_> = certificates.flat_map(|c| &c.reasons).map(|reason| reason.says.clone()).collect();
    let injected = runs.iter().flat_map(|run| &run.summary.injections).map(Injected::says);
    says.into_iter().chain(injected.collect::<BTreeSet<_>>()).collect()
}
