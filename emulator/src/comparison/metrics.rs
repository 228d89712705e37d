//! The compared metrics, their statistics and their format.

use volary_engine::results::{Planning, PredictionErrors, Summary};

use crate::number::Quantity;
use crate::report::columns::{messages_per_task, miss_rate, of_deadlines, of_shared};
use crate::report::style::missing;
use crate::stats::Interval;

/// Limit on the divergence of a quantile of response time, as a share of the reference.
pub const BAR: f64 = 0.05;
/// Repetitions from which the spread of a runtime's own runs can be estimated.
pub const ENOUGH: usize = 3;

/// A number of a summary.
#[derive(Clone, Copy, Debug)]
pub struct ComparedMetric {
    /// Its name in the results, such as `response_s.p50`.
    pub name: &'static str,
    pub value: fn(&Summary) -> f64,
    /// What it measures.
    pub quantity: Quantity,
}

pub(super) const fn metric(
    name: &'static str,
    value: fn(&Summary) -> f64,
    quantity: Quantity,
) -> ComparedMetric {
    ComparedMetric { name, value, quantity }
}

/// Number of metrics, the first ones, that each class of jobs has as well.
pub(super) const OF_CLASSES: usize = 11;

/// The metrics of every policy.
pub const METRICS: [ComparedMetric; 41] = [
    metric("response_s.mean", |s| s.response_s.mean, Quantity::Time),
    metric("response_s.p50", |s| s.response_s.p50, Quantity::Time),
    metric("response_s.p90", |s| s.response_s.p90, Quantity::Time),
    metric("response_s.p95", |s| s.response_s.p95, Quantity::Time),
    metric("response_s.p99", |s| s.response_s.p99, Quantity::Time),
    metric("response_s.p999", |s| s.response_s.p999, Quantity::Time),
    metric("wait_s.mean", |s| s.wait_s.mean, Quantity::Time),
    metric("wait_s.p99", |s| s.wait_s.p99, Quantity::Time),
    metric("slowdown.mean", |s| s.slowdown.mean, Quantity::Plain),
    metric("slowdown.p99", |s| s.slowdown.p99, Quantity::Plain),
    metric("unqueued", |s| s.unqueued.unwrap_or(f64::NAN), Quantity::Share),
    metric("utilization", |s| s.utilization, Quantity::Share),
    metric("goodput", |s| s.goodput, Quantity::Share),
    metric("copies.wasted_work_s", |s| s.copies.wasted_work_s, Quantity::Time),
    metric("copies.in_progress_s", |s| s.copies.in_progress_s, Quantity::Time),
    metric("messages.total / tasks", messages_per_task, Quantity::Plain),
    metric("deadlines.miss_rate", miss_rate, Quantity::Share),
    metric("deadlines.goodput_h.total", |s| of_deadlines(s, |d| d.goodput_h.total), Quantity::Plain),
    metric("deadlines.be_response_s.mean", |s| of_deadlines(s, |d| d.be_response_s.mean), Quantity::Time),
    metric("deadlines.goodput_h.slo", |s| of_deadlines(s, |d| d.goodput_h.slo), Quantity::Plain),
    metric("deadlines.goodput_h.late", |s| of_deadlines(s, |d| d.goodput_h.late), Quantity::Plain),
    metric("deadlines.goodput_h.be", |s| of_deadlines(s, |d| d.goodput_h.be), Quantity::Plain),
    metric("deadlines.value", |s| of_deadlines(s, |d| d.value as f64), Quantity::Count),
    metric("planning.cycles", |s| of_planning(s, |p| p.cycles as f64), Quantity::Count),
    metric("planning.solved", |s| of_planning(s, |p| p.solved as f64), Quantity::Count),
    metric("planning.options", |s| of_planning(s, |p| p.options), Quantity::Plain),
    metric("planning.pivots", |s| of_planning(s, |p| p.pivots), Quantity::Plain),
    metric("planning.gap.mean", |s| of_planning(s, |p| p.gap.mean), Quantity::Share),
    metric("planning.launched", |s| of_planning(s, |p| p.launched as f64), Quantity::Count),
    metric("planning.revoked", |s| of_planning(s, |p| p.revoked as f64), Quantity::Count),
    metric("planning.preempted", |s| of_planning(s, |p| p.preempted as f64), Quantity::Count),
    metric("prediction.within_2x", |s| of_prediction(s, |p| p.within_2x), Quantity::Share),
    metric("prediction.under", |s| of_prediction(s, |p| p.under), Quantity::Share),
    metric("prediction.over", |s| of_prediction(s, |p| p.over), Quantity::Share),
    metric("prediction.error", |s| of_prediction(s, |p| p.error), Quantity::Share),
    metric("shared.throttled", |s| of_shared(s, |n| n.throttled), Quantity::Share),
    metric("shared.throttle_rate", |s| of_shared(s, |n| n.throttle_rate), Quantity::Plain),
    metric("shared.evictions", |s| of_shared(s, |n| n.evictions as f64), Quantity::Count),
    metric("shared.used_core_h", |s| of_shared(s, |n| n.used_core_h), Quantity::Plain),
    metric("shared.wasted_core_h", |s| of_shared(s, |n| n.wasted_core_h), Quantity::Plain),
    metric("shared.cpu", |s| of_shared(s, |n| n.cpu), Quantity::Share),
];

/// A number about plans; NaN if the policy makes none.
fn of_planning(summary: &Summary, number: fn(&Planning) -> f64) -> f64 {
    summary.planning.as_ref().map_or(f64::NAN, number)
}

/// A number about estimates of run times; NaN if the policy learns none.
fn of_prediction(summary: &Summary, number: fn(&PredictionErrors) -> f64) -> f64 {
    summary.prediction.as_ref().map_or(f64::NAN, number)
}

/// The name of a metric of a class of jobs.
pub(super) fn class_metric(class: &str, name: &str) -> String {
    format!("{CLASSES}{class}.{name}")
}

/// The class of jobs, if it is of one, and the name of the metric.
pub(super) fn split_class(name: &str) -> (Option<&str>, &str) {
    let parts = name.strip_prefix(CLASSES).and_then(|rest| rest.split_once('.'));
    parts.map_or((None, name), |(class, metric)| (Some(class), metric))
}

const CLASSES: &str = "classes.";

impl ComparedMetric {
    /// The value in each summary.
    pub fn values<'a>(&self, summaries: impl IntoIterator<Item = &'a Summary>) -> Vec<f64> {
        summaries.into_iter().map(self.value).collect()
    }

    /// The value with its unit; a dash for `None`.
    pub fn entry(&self, value: Option<f64>) -> String {
        value.map_or_else(missing, |value| self.quantity.text(value))
    }
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

/// Half-width of the 95 % interval in which one further run falls; `None` with fewer than [`ENOUGH`] runs.
pub fn spread(values: &[f64]) -> Option<f64> {
    let interval = Interval::new(values).filter(|interval| interval.replications >= ENOUGH)?;
    Some(interval.half_width? * (interval.replications as f64 + 1.0).sqrt())
}
