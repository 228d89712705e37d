//! Comparisons of one metric of a runtime with the reference.

use serde::{Deserialize, Serialize};

use super::metrics::{ComparedMetric, METRICS, STALENESS, mean, relative, spread};
use volary_engine::results::{Staleness, Summary};

/// Limit on the divergence of a quantile of response time, as a share of the reference.
pub const BAR: f64 = 0.05;
/// The compared metrics, and whether they must stay within the bar.
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
/// The number of staleness metrics that are judged: age and error depend only on delays, independent of the node that
/// a task went to. The others depend on all previous choices and are only shown.
const JUDGED: usize = 2;
/// Standard deviations by which samples of caches may differ by chance.
const CHANCE: f64 = 5.0;

/// A metric in a runtime and in the reference.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MetricDivergence {
    pub metric: String,
    pub reference: Option<f64>,
    /// Mean of the runs.
    pub value: Option<f64>,
    /// Difference as a share of the reference.
    pub relative: Option<f64>,
    /// Half-width of the 95 % interval of one further run; absent with fewer than three runs.
    pub spread: Option<f64>,
    /// Mean of the reference with cores as fast as the runs measured theirs, if copies burn real cores.
    #[serde(default)]
    pub found: Option<f64>,
    /// Whether the value is within the bar of the reference, or within the spread of the runs; absent for metrics that
    /// are only shown.
    pub within: Option<bool>,
    /// The same relative to [`found`](Self::found): whether everything except the cores behaved as in the reference.
    /// Whether the cores behaved as asked is in the certificate.
    #[serde(default)]
    pub within_found: Option<bool>,
    /// The likely cause of a difference of more than 1 %.
    pub cause: Option<String>,
}

impl MetricDivergence {
    /// Compares runs with the reference, and with the same reference run `again` with cores as they were found.
    fn new(
        metric: &ComparedMetric,
        judged: bool,
        (reference, again): (&Summary, &[Summary]),
        runs: &[&Summary],
    ) -> Self {
        let values = metric.values(runs.iter().copied());
        let (value, spread) = (mean(&values), spread(&values));
        let reference = Some((metric.value)(reference)).filter(|value| value.is_finite());
        let found = mean(&metric.values(again));
        let within = |reference: Option<f64>| {
            let (to, value) = reference.zip(value).filter(|_| judged)?;
            Some((value - to).abs() <= (BAR * to.abs()).max(spread.unwrap_or(0.0)))
        };
        Self {
            metric: metric.name.to_owned(),
            reference,
            value,
            relative: relative(reference, value),
            spread,
            found,
            within: within(reference),
            within_found: within(found),
            cause: None,
        }
    }

    /// Whether the value is beyond the bar, with cores as asked and as found.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.within == Some(false) && self.within_found != Some(true)
    }
}

/// The metrics of every policy.
pub(super) fn all(reference: (&Summary, &[Summary]), runs: &[&Summary]) -> Vec<MetricDivergence> {
    let shown = SHOWN
        .iter()
        .filter_map(|(name, judged)| Some((METRICS.iter().find(|metric| metric.name == *name)?, *judged)));
    shown.map(|(metric, judged)| MetricDivergence::new(metric, judged, reference, runs)).collect()
}

/// The staleness metrics; empty for a policy without caches.
///
/// The judged ones may differ by the bar, by the lateness of deliveries and the clock error that the certificate
/// reports, and by chance, because caches are only sampled.
pub(super) fn staleness(reference: &Summary, runs: &[&Summary]) -> Vec<MetricDivergence> {
    let Some(stale) = &reference.staleness else { return Vec::new() };
    let allowed = tolerance(reference, stale, runs);
    let row = |(i, metric): (usize, &ComparedMetric)| {
        let mut row = MetricDivergence::new(metric, false, (reference, &[]), runs);
        if let (Some(allowed), Some(relative), true) = (allowed, row.relative, i < JUDGED) {
            row.within = Some(relative.abs() <= allowed);
        }
        row
    };
    STALENESS.iter().enumerate().map(row).collect()
}

/// The tolerance of a staleness metric as a share of the reference; `None` for any difference.
fn tolerance(reference: &Summary, stale: &Staleness, runs: &[&Summary]) -> Option<f64> {
    let certificates = runs.iter().filter_map(|run| run.fidelity.as_ref());
    let late = certificates.map(|certificate| {
        let asked = certificate.network.delay.asked.mean_s;
        (certificate.lateness.deliveries.mean_s + certificate.clock_bound_s()) / asked
    });
    let late = late.fold(0.0, f64::max);
    // The updates about one job are correlated: they are sent and arrive together, at all schedulers.
    let tasks = reference.tasks.submitted as f64 / reference.jobs.submitted as f64;
    let samples = reference.makespan_s / stale.every_s;
    // A lost update is in every later sample, so the number of losses bounds the independent samples.
    let lost = if reference.messages.dropped > 0 { reference.messages.dropped as f64 } else { f64::INFINITY };
    let chance = CHANCE / (samples * stale.in_flight.mean / tasks).min(lost).sqrt();
    // Updates that take longer are older, and more of them are in flight.
    let allowed = BAR + (1.0 + late).powi(2) - 1.0 + chance;
    (allowed < 1.0).then_some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::fixture::faithful;
    use crate::storage::fixture::measured;
    use volary_engine::results::Spread;

    /// Jobs of ten tasks for a day, updates of 10 ms in flight at each sample.
    fn run(age: f64) -> Summary {
        let mut run = measured("a", &[], 1, 1.0, 400).summary;
        let spread = |mean| Spread { mean, ..Spread::default() };
        run.makespan_s = 86_400.0;
        run.messages.dropped = 0;
        run.tasks.submitted = 10 * run.jobs.submitted;
        run.staleness = Some(Staleness {
            age_s: spread(age),
            error_s: spread(1.0),
            in_flight: spread(10.0),
            every_s: 1.0,
            ..Staleness::default()
        });
        run
    }

    fn real(age: f64) -> Summary {
        Summary { fidelity: Some(faithful()), ..run(age) }
    }

    fn judged(reference: &Summary, run: &Summary) -> Vec<Option<bool>> {
        staleness(reference, &[run]).iter().map(|row| row.within).collect()
    }

    #[test]
    fn ages_and_errors_are_judged_where_there_are_enough_of_them() {
        let reference = run(0.01);
        let allowed = tolerance(&reference, &reference.staleness.unwrap(), &[&real(0.01)]).unwrap();
        assert!((BAR..0.5).contains(&allowed), "{allowed}");
        let off = |share: f64| judged(&reference, &real(0.01 * (1.0 + share)));
        assert_eq!(off(0.99 * allowed), [Some(true), Some(true), None, None]);
        assert_eq!(off(1.01 * allowed)[..2], [Some(false), Some(true)]);
        assert_eq!(off(-1.01 * allowed)[..2], [Some(false), Some(true)]);
        let short = Summary { makespan_s: 10.0, ..run(0.01) };
        assert_eq!(judged(&short, &real(0.02)), [None; 4], "ten samples say nothing");
        let mut lossy = run(0.01);
        lossy.messages.dropped = 20;
        assert_eq!(judged(&lossy, &real(0.02)), [None; 4], "nor do twenty that were lost");
        assert!(staleness(&measured("a", &[], 1, 1.0, 400).summary, &[]).is_empty());
    }
}
