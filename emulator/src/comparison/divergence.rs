//! Comparisons of one metric of a runtime with the reference.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use volary_engine::results::{Metric, Summary};

use super::metrics::{BAR, class_metric, mean, named, relative, spread, values};
use super::policy::{JUDGED, STALENESS, tolerance};

/// The compared metrics; each is either judged by the bar, or only shown.
const SHOWN: [(&str, bool); 12] = [
    ("response_s.p50", true),
    ("response_s.p90", true),
    ("response_s.p99", true),
    ("unqueued", false),
    ("response_s.mean", false),
    ("wait_s.mean", false),
    ("slowdown.mean", false),
    ("utilization", false),
    ("messages.total / tasks", false),
    ("deadlines.miss_rate", false),
    ("deadlines.goodput_h.total", false),
    ("deadlines.be_response_s.mean", false),
];
/// The compared metrics of a run without jobs.
const OF_GOSSIP: [(&str, bool); 7] = [
    ("gossip.coverage", true),
    ("gossip.delivery_s.p50", true),
    ("gossip.delivery_s.p95", true),
    ("gossip.full_s.mean", false),
    ("gossip.age_of_information_s.mean", false),
    ("gossip.version_age.mean", false),
    ("gossip.messages", false),
];
/// The compared metrics of a run in which members detect failures.
const OF_DETECTION: [(&str, bool); 6] = [
    ("detection.detected", true),
    ("detection.detected_s.mean", true),
    ("detection.known_s.mean", true),
    ("detection.false_suspicions", false),
    ("detection.false_deaths", false),
    ("detection.messages", false),
];
/// Number of metrics, from the first, that are also compared by class of jobs.
const OF_CLASSES: usize = 4;

/// A metric in a runtime and in the reference.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MetricDivergence {
    pub metric: String,
    pub reference: Option<f64>,
    /// Mean over the runs.
    pub value: Option<f64>,
    /// Difference as a share of the reference.
    pub relative: Option<f64>,
    /// Half-width of the 95 % prediction interval of one further run; absent with fewer than three runs.
    pub spread: Option<f64>,
    /// Mean of the reference with cores as fast as the runs measured them; absent unless copies burn real cores.
    #[serde(default)]
    pub found: Option<f64>,
    /// Whether the value is within the bar of the reference, or within the spread of the runs; absent for metrics that
    /// are only shown.
    pub within: Option<bool>,
    /// Whether the value is within the bar of [`found`](Self::found). If so, everything except the cores behaved as in
    /// the reference. The certificate says whether the cores behaved as requested.
    #[serde(default)]
    pub within_found: Option<bool>,
    /// The likely cause of a difference of more than 1 %.
    pub cause: Option<String>,
}

impl MetricDivergence {
    /// Compares runs with the reference, and with `again`, the runs of the reference with cores as found.
    fn new(
        metric: &Metric,
        judged: bool,
        (reference, again): (&Summary, &[Summary]),
        runs: &[&Summary],
    ) -> Self {
        let found = mean(&values(metric, again));
        let values = values(metric, runs.iter().copied());
        let (value, spread) = (mean(&values), spread(&values));
        let reference = Some((metric.value)(reference)).filter(|value| value.is_finite());
        let within = |reference: Option<f64>| {
            let (to, value) = reference.zip(value).filter(|_| judged)?;
            Some((value - to).abs() <= (BAR * to.abs()).max(spread.unwrap_or(0.0)))
        };
        Self {
            metric: metric.key.to_owned(),
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

    /// Whether the value is beyond the bar, both with cores as requested and as found.
    pub fn is_beyond(&self) -> bool {
        self.within == Some(false) && self.within_found != Some(true)
    }
}

/// The metrics that every policy has, of all jobs and of each class.
pub(super) fn all((reference, again): (&Summary, &[Summary]), runs: &[&Summary]) -> Vec<MetricDivergence> {
    if reference.sections.gossip.is_some() {
        return shown(&OF_GOSSIP, (reference, again), runs);
    }
    if reference.sections.detection.is_some() {
        return shown(&OF_DETECTION, (reference, again), runs);
    }
    let mut rows = shown(&SHOWN, (reference, again), runs);
    for label in reference.classes.keys() {
        let Some(reference) = reference.for_class(label) else { continue };
        let again: Vec<_> = again.iter().filter_map(|run| run.for_class(label)).collect();
        let runs: Vec<_> = runs.iter().filter_map(|run| run.for_class(label)).collect();
        let of_class = shown(&SHOWN[..OF_CLASSES], (&reference, &again), &runs.iter().collect::<Vec<_>>());
        let named =
            |row: MetricDivergence| MetricDivergence { metric: class_metric(label, &row.metric), ..row };
        rows.extend(of_class.into_iter().map(named));
    }
    rows
}

fn shown(
    names: &[(&str, bool)],
    reference: (&Summary, &[Summary]),
    runs: &[&Summary],
) -> Vec<MetricDivergence> {
    let shown = names.iter().filter_map(|(name, judged)| Some((named(name)?, *judged)));
    let rows = shown.map(|(metric, judged)| (judged, MetricDivergence::new(metric, judged, reference, runs)));
    let is_measured = |row: &MetricDivergence| row.reference.is_some() || row.value.is_some();
    rows.filter(|(judged, row)| *judged || is_measured(row)).map(|(_, row)| row).collect()
}

/// The metrics that only some policies have, by the key of their section; empty if the policy has no such metric.
pub(super) fn of_policy(reference: &Summary, runs: &[&Summary]) -> BTreeMap<String, Vec<MetricDivergence>> {
    let rows = tolerance(reference, runs).map_or_else(Vec::new, |allowed| {
        let row = |(i, metric): (usize, &Metric)| {
            let mut row = MetricDivergence::new(metric, false, (reference, &[]), runs);
            if let (Some(allowed), Some(relative), true) = (allowed, row.relative, i < JUDGED) {
                row.within = Some(relative.abs() <= allowed);
            }
            row
        };
        STALENESS.iter().filter_map(|name| named(name)).enumerate().map(row).collect()
    });
    BTreeMap::from([("staleness".to_owned(), rows)])
}
