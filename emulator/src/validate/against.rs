//! One policy in one runtime against the reference: books, draws, placement, metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cause::cause;
use super::{BAR, Error, Point, Ran, spread, staleness};
use crate::compare::{METRICS, Metric};
use crate::record::cell::CellRecord;
use crate::results::{CopyEnd, CopyRow, Injected, JobRow, Summary};
use crate::runtime::RunError;
use crate::stats::Interval;
use crate::storage::{load_copies, load_jobs};

/// What is shown, and whether it must stay within the bar.
const SHOWN: [(&str, bool); 8] = [
    ("response_s.p50", true),
    ("response_s.p90", true),
    ("response_s.p99", true),
    ("response_s.mean", false),
    ("wait_s.mean", false),
    ("slowdown.mean", false),
    ("utilization", false),
    ("messages.total / tasks", false),
];

/// Divergence from which on a cause is looked for.
const NOTABLE: f64 = 0.01;

/// A runtime against the reference.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Against {
    /// The runtime.
    pub runtime: String,
    /// How many runs of it.
    pub runs: usize,
    /// In which books it differs: empty if as many jobs and tasks were submitted and finished.
    pub books: Vec<String>,
    /// Whether it met the same jobs.
    pub draws: Draws,
    /// Where they ran; absent if no executions were sampled.
    pub placement: Option<Placement>,
    /// Why its results are degraded, or that somebody injected interference into it; empty if they are not.
    pub degraded: Vec<String>,
    /// The metrics.
    pub metrics: Vec<Divergence>,
    /// How stale caches were, for policies that keep some.
    #[serde(default)]
    pub staleness: Vec<Divergence>,
}

/// Jobs compared one by one, arrival and demand to the bit, in the repetition with most differences.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Draws {
    /// Jobs that either saw.
    pub jobs: u64,
    /// Of these, jobs that only one saw, or that arrived at another time or with other work.
    pub different: u64,
}

/// Where sampled jobs ran, in the repetition in which most moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// Jobs of which both sampled the executions.
    pub jobs: u64,
    /// Of these, jobs with a task whose first finished copy ran on another core.
    pub moved: u64,
}

/// A metric in both.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Divergence {
    /// Its name in the results.
    pub metric: String,
    /// In the reference.
    pub reference: Option<f64>,
    /// Mean of the runs.
    pub value: Option<f64>,
    /// By which share of the reference they differ.
    pub relative: Option<f64>,
    /// Half-width of the 95 % interval of one further run; absent with fewer than three runs.
    pub spread: Option<f64>,
    /// What the reference says of cores that are as fast as the runs found theirs, where copies burn real ones; mean.
    #[serde(default)]
    pub found: Option<f64>,
    /// Whether the value is within the bar of the reference, or within what runs differ by themselves; absent for
    /// metrics that are only shown.
    pub within: Option<bool>,
    /// The same of [`found`](Self::found): all but the cores did what the reference does. Whether the cores did as they
    /// were asked, the certificate says.
    #[serde(default)]
    pub within_found: Option<bool>,
    /// The likely cause of a difference of more than one in a hundred.
    pub cause: Option<String>,
}

impl Against {
    /// See [`Validation::holds`](super::Validation::holds).
    #[must_use]
    pub fn holds(&self) -> bool {
        let same = self.books.is_empty() && self.draws.different == 0;
        let off = self.staleness.iter().any(|divergence| divergence.within == Some(false));
        same && (!self.degraded.is_empty() || self.beyond().next().is_none() && !off)
    }

    /// Metrics beyond the bar, with cores as asked and as found.
    pub fn beyond(&self) -> impl Iterator<Item = &Divergence> {
        let beyond = |d: &&Divergence| d.within == Some(false) && d.within_found != Some(true);
        self.metrics.iter().filter(beyond)
    }
}

/// The reference with cores as a run found them, from its folder and record; nothing if it cannot say.
pub(super) type AsFound<'a> = dyn Fn((&Path, &CellRecord)) -> Result<Option<Summary>, Error> + 'a;

/// Compares; nothing if either did not run the point.
///
/// # Errors
/// When something cannot be read, or the reference not be run again.
pub(super) fn against(
    point: &Point,
    reference: &Ran,
    ran: &Ran,
    as_found: &AsFound<'_>,
) -> Result<Option<Against>, Error> {
    let (reference, runs) = (reference.of(point), ran.of(point));
    let (Some((folder, base)), false) = (reference.first(), runs.is_empty()) else {
        return Ok(None);
    };
    let read = |error| Error::Run(RunError::RunDir(error));
    let jobs = load_jobs(folder, &base.id).map_err(read)?;
    let copies = load_copies(folder, &base.id).map_err(read)?;
    // The worst of all repetitions.
    let (mut different, mut moved) = (Vec::new(), Vec::new());
    for (folder, run) in &runs {
        different.push(draws(&jobs, &load_jobs(folder, &run.id).map_err(read)?));
        moved.extend(placement(&copies, &load_copies(folder, &run.id).map_err(read)?));
    }
    let draws = different.into_iter().max_by_key(|draws| draws.different).unwrap_or_default();
    let placement = moved.into_iter().max_by_key(|placement| placement.moved);
    let records: Vec<&CellRecord> = runs.iter().map(|(_, record)| *record).collect();
    let summaries: Vec<&Summary> = records.iter().map(|record| &record.summary).collect();
    let again: Vec<Summary> =
        runs.iter().filter_map(|&run| as_found(run).transpose()).collect::<Result<_, _>>()?;
    let found = Against {
        runtime: ran.way.to_string(),
        runs: runs.len(),
        books: books(&base.summary, &summaries),
        draws,
        placement,
        degraded: degraded(&records),
        metrics: Vec::new(),
        staleness: Vec::new(),
    };
    let shown = SHOWN
        .iter()
        .filter_map(|(name, judged)| Some((METRICS.iter().find(|metric| metric.name == *name)?, *judged)));
    let explained = |mut divergence: Divergence| {
        if divergence.relative.is_some_and(|share| share.abs() > NOTABLE) {
            divergence.cause = Some(cause(&divergence, &base.summary, &summaries, &found));
        }
        divergence
    };
    let metrics =
        shown.map(|(metric, judged)| divergence(metric, judged, (&base.summary, &again), &summaries));
    let metrics = metrics.map(explained).collect();
    let staleness = staleness::compared(&base.summary, &summaries).into_iter().map(explained).collect();
    Ok(Some(Against { metrics, staleness, ..found }))
}

/// Counts that differ, in words.
fn books(reference: &Summary, runs: &[&Summary]) -> Vec<String> {
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

fn draws(a: &[JobRow], b: &[JobRow]) -> Draws {
    let drawn = |rows: &[JobRow]| -> BTreeMap<u32, (u64, u64, u32)> {
        rows.iter().map(|row| (row.job, (row.arrival.to_bits(), row.longest.to_bits(), row.tasks))).collect()
    };
    let (a, b) = (drawn(a), drawn(b));
    let same = a.iter().filter(|(job, draws)| b.get(job) == Some(draws)).count();
    let all = a.len() + b.keys().filter(|job| !a.contains_key(job)).count();
    Draws { jobs: all as u64, different: (all - same) as u64 }
}

fn placement(a: &[CopyRow], b: &[CopyRow]) -> Option<Placement> {
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
    (!both.is_empty()).then_some(Placement { jobs: both.len() as u64, moved: moved as u64 })
}

/// What the certificates of degraded runs say, and what was injected into runs, each once.
fn degraded(runs: &[&CellRecord]) -> Vec<String> {
    let certificates = runs.iter().filter_map(|run| run.summary.fidelity.as_ref());
    let says: BTreeSet<_> = certificates.flat_map(|c| &c.reasons).map(|reason| reason.says.clone()).collect();
    let injected = runs.iter().flat_map(|run| &run.summary.injections).map(Injected::says);
    says.into_iter().chain(injected.collect::<BTreeSet<_>>()).collect()
}

pub(super) fn divergence(
    metric: &Metric,
    judged: bool,
    (reference, again): (&Summary, &[Summary]),
    runs: &[&Summary],
) -> Divergence {
    let value_in = |summary| Some((metric.value)(summary)).filter(|value| value.is_finite());
    let reference = value_in(reference);
    let mean = |values: &[f64]| Interval::new(values).map(|interval| interval.mean);
    let found = mean(&again.iter().map(metric.value).collect::<Vec<_>>());
    let values: Vec<f64> = runs.iter().map(|run| (metric.value)(run)).collect();
    let value = mean(&values);
    let spread = spread(&values);
    let pair = reference.zip(value);
    let apart = pair.map(|(reference, value)| value - reference);
    let within = |reference: Option<f64>| {
        let pair = reference.zip(value).filter(|_| judged);
        pair.map(|(to, value)| (value - to).abs() <= (BAR * to.abs()).max(spread.unwrap_or(0.0)))
    };
    Divergence {
        metric: metric.name.to_owned(),
        reference,
        value,
        relative: apart.zip(reference).filter(|(_, r)| *r != 0.0).map(|(apart, reference)| apart / reference),
        spread,
        found,
        within: within(reference),
        within_found: within(found),
        cause: None,
    }
}

#[cfg(test)]
mod tests;
