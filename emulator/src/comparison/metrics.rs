//! Statistics of compared metrics, and their format.

use volary_engine::results::{Metric, Summary};
use volary_experiment::number::UnitText;
use volary_experiment::stats::Interval;
use volary_report::style::missing;

/// Limit on the divergence of a quantile of response time, as a share of the reference.
pub const BAR: f64 = 0.05;
/// Number of repetitions from which the spread of a runtime's own runs can be estimated.
pub const ENOUGH: usize = 3;

/// The name of a metric of a class of jobs.
pub(super) fn class_metric(class: &str, name: &str) -> String {
    format!("{CLASSES}{class}.{name}")
}

/// The class of jobs, if the metric is of one, and the name of the metric.
pub(super) fn split_class(name: &str) -> (Option<&str>, &str) {
    let parts = name.strip_prefix(CLASSES).and_then(|rest| rest.split_once('.'));
    parts.map_or((None, name), |(class, metric)| (Some(class), metric))
}

const CLASSES: &str = "classes.";

/// The metric of this name, of all jobs or of a class.
pub fn named(name: &str) -> Option<&'static Metric> {
    Metric::named(split_class(name).1)
}

/// The value in each summary.
pub fn values<'a>(metric: &Metric, summaries: impl IntoIterator<Item = &'a Summary>) -> Vec<f64> {
    summaries.into_iter().map(metric.value).collect()
}

/// The value with its unit; a dash for `None`.
pub fn entry(metric: &Metric, value: Option<f64>) -> String {
    value.map_or_else(missing, |value| metric.unit.text(value))
}

/// The mean of the finite values; `None` if there are none.
pub fn mean(values: &[f64]) -> Option<f64> {
    Interval::new(values).map(|interval| interval.mean)
}

/// The difference as a share of the reference; `None` for a reference of zero.
pub fn relative(reference: Option<f64>, value: Option<f64>) -> Option<f64> {
    let (reference, value) = reference.zip(value)?;
    (reference != 0.0).then(|| (value - reference) / reference)
}

/// Half-width of the 95 % prediction interval of one further run; `None` with fewer than [`ENOUGH`] runs.
pub fn spread(values: &[f64]) -> Option<f64> {
    let interval = Interval::new(values).filter(|interval| interval.replications >= ENOUGH)?;
    Some(interval.half_width? * (interval.replications as f64 + 1.0).sqrt())
}
