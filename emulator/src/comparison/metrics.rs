//! Statistics of compared metrics, and their format.

use volary_engine::results::{Metric, Summary};
use volary_experiment::number::UnitText;
use volary_experiment::stats::Interval;
use volary_report::style::missing;

/// Limit on the divergence of a quantile of response time, relative to the reference.
pub const BAR: f64 = 0.05;
/// Number of repetitions from which the spread of a runtime's own runs can be estimated.
pub const ENOUGH: usize = 3;

/// The name of a metric of a class of jobs.
pub(super) fn class_metric(class: &str, name: &str) -> String {
    format!("{CLASSES}{class}.{name}")
}

/// The class of jobs in the name of a metric, if the name has a class, and the rest of the name.
pub(super) fn split_class(name: &str) -> (Option<&str>, &str) {
    let parts = name.strip_prefix(CLASSES).and_then(|rest| rest.split_once('.'));
    parts.map_or((None, name), |(class, metric)| (Some(class), metric))
}

const CLASSES: &str = "classes.";

/// The metric with this name, of all jobs or of a class.
pub fn named(name: &str) -> Option<&'static Metric> {
    Metric::named(split_class(name).1)
}

/// The values of the metric in the summaries.
pub fn values<'a>(metric: &Metric, summaries: impl IntoIterator<Item = &'a Summary>) -> Vec<f64> {
    summaries.into_iter().map(metric.value).collect()
}

/// A value with its unit; a dash for `None`.
pub fn entry(metric: &Metric, value: Option<f64>) -> String {
    value.map_or_else(missing, |value| metric.unit.text(value))
}

/// Mean of the finite values; `None` without finite values.
pub fn mean(values: &[f64]) -> Option<f64> {
    Interval::new(values).map(|interval| interval.mean)
}

/// Difference relative to the reference; `None` for a reference of zero.
pub fn relative(reference: Option<f64>, value: Option<f64>) -> Option<f64> {
    let (reference, value) = reference.zip(value)?;
    (reference != 0.0).then(|| (value - reference) / reference)
}

/// Half-width of the 95 % prediction interval of one further run; `None` with fewer than [`ENOUGH`] runs.
pub fn spread(values: &[f64]) -> Option<f64> {
    let interval = Interval::new(values).filter(|interval| interval.replications >= ENOUGH)?;
    Some(interval.half_width? * (interval.replications as f64 + 1.0).sqrt())
}
