//! The columns of summary tables, on the terminal and on the page.

use volary_engine::results::{Deadlines, Summary};

use crate::number::Quantity;
use crate::storage::study::{CellGroup, Metric, PolicyRuns};

/// A column of a summary table.
#[derive(Clone, Copy)]
pub(super) struct SummaryColumn {
    pub(super) heading: &'static str,
    /// What the number means.
    pub(super) meaning: &'static str,
    pub(super) value: Metric,
    pub(super) quantity: Quantity,
    /// Whether the smallest is marked as the best.
    pub(super) marked: bool,
    /// Whether each class of jobs has the number as well.
    pub(super) by_class: bool,
    /// Whether the number can be compared although jobs are unfinished.
    with_open_jobs: bool,
}

impl SummaryColumn {
    /// A column without a mark.
    const fn new(heading: &'static str, meaning: &'static str, value: Metric, quantity: Quantity) -> Self {
        Self { heading, meaning, value, quantity, marked: false, by_class: false, with_open_jobs: false }
    }

    const fn marked(self) -> Self {
        Self { marked: true, ..self }
    }

    const fn by_class(self) -> Self {
        Self { by_class: true, ..self }
    }

    const fn with_open_jobs(self) -> Self {
        Self { with_open_jobs: true, ..self }
    }

    /// A column of times or slowdowns of jobs, with a mark.
    const fn of_jobs(
        heading: &'static str,
        meaning: &'static str,
        value: Metric,
        quantity: Quantity,
    ) -> Self {
        Self::new(heading, meaning, value, quantity).marked().by_class()
    }

    const fn times(heading: &'static str, meaning: &'static str, value: Metric) -> Self {
        Self::of_jobs(heading, meaning, value, Quantity::Time)
    }

    /// The number in a summary, of one class of jobs or of all; NaN if classes do not have it.
    pub(super) fn of(&self, class: Option<&str>) -> impl Fn(&Summary) -> f64 {
        let Self { value, by_class, .. } = *self;
        move |summary| match class {
            None => value(summary),
            Some(label) if by_class => summary.of_class(label).map_or(f64::NAN, |of_class| value(&of_class)),
            Some(_) => f64::NAN,
        }
    }

    /// The smallest mean of a marked column, if there are several to compare.
    pub(super) fn best(&self, group: &CellGroup, class: Option<&str>) -> Option<f64> {
        let compared = group.policies.iter().filter(|runs| self.is_comparable(runs));
        let means = compared.filter_map(|runs| Some(runs.interval(self.of(class))?.mean));
        let (least, most) = means.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        (self.marked && !group.partial && least < most).then_some(least)
    }

    /// Whether the number of a policy can be the best. Where jobs are unfinished, most numbers are those of the jobs
    /// that ended, which are the fast ones.
    pub(super) fn is_comparable(&self, runs: &PolicyRuns) -> bool {
        self.with_open_jobs || runs.runs.iter().all(|run| not_finished(&run.summary) == 0)
    }
}

const MEAN: SummaryColumn = SummaryColumn::times("mean", "mean response time", |s| s.response_s.mean);
const P50: SummaryColumn = SummaryColumn::times("p50", "median response time", |s| s.response_s.p50);
const P99: SummaryColumn =
    SummaryColumn::times("p99", "99th percentile of response time", |s| s.response_s.p99);
const SLOWDOWN: SummaryColumn = SummaryColumn::of_jobs(
    "slowdown",
    "median of response time over the work of the longest task, or over `alone`",
    |s| s.slowdown.p50,
    Quantity::Plain,
);
const UTILIZATION: SummaryColumn =
    SummaryColumn::new("utilization", "busy share of all core time", |s| s.utilization, Quantity::Share);
const GOODPUT: SummaryColumn =
    SummaryColumn::new("goodput", "useful share of all core time", |s| s.goodput, Quantity::Share);
const UNQUEUED: SummaryColumn = SummaryColumn::new(
    "unqueued",
    "share of jobs that took hardly longer than their longest task, by at most run.record.unqueued",
    |s| s.unqueued.unwrap_or(f64::NAN),
    Quantity::Share,
)
.by_class();
const MISSES: SummaryColumn = SummaryColumn::new(
    "misses",
    "share of the jobs with a deadline that did not end by it",
    miss_rate,
    Quantity::Share,
)
.marked()
.with_open_jobs();
const SLO_HOURS: SummaryColumn = SummaryColumn::new(
    "SLO node-h",
    "node-hours of jobs that ended by their deadline: tasks × longest task",
    |s| of_deadlines(s, |d| d.goodput_h.slo),
    Quantity::Plain,
);
const BE_HOURS: SummaryColumn = SummaryColumn::new(
    "BE node-h",
    "node-hours of jobs without a deadline that ended: tasks × longest task",
    |s| of_deadlines(s, |d| d.goodput_h.be),
    Quantity::Plain,
);
const WASTED: SummaryColumn = SummaryColumn::new(
    "wasted",
    "share of busy core time spent on copies that were preempted, lost, or finished second",
    wasted_share,
    Quantity::Share,
)
.marked();
const IN_PROGRESS: SummaryColumn = SummaryColumn::new(
    "in progress",
    "share of busy core time spent on copies that were open when the run ended, neither useful nor wasted",
    in_progress_share,
    Quantity::Share,
);
const SUSPENSIONS: SummaryColumn = SummaryColumn::new(
    "suspended/task",
    "how often copies were suspended, for each task",
    suspensions_per_task,
    Quantity::Plain,
);
const MESSAGES: SummaryColumn = SummaryColumn::new(
    "msgs/task",
    "the policy's own messages for each task",
    messages_per_task,
    Quantity::Plain,
)
.marked();
const REPAIRS: SummaryColumn = SummaryColumn::new(
    "repairs/task",
    "messages for each task that repair losses or report what is so, counted apart",
    repairs_per_task,
    Quantity::Plain,
);

/// The columns on the terminal.
pub(super) const TERMINAL: [SummaryColumn; 16] = [
    P50,
    P99,
    MEAN,
    SLOWDOWN,
    MISSES,
    SLO_HOURS,
    BE_HOURS,
    UNQUEUED,
    UTILIZATION,
    GOODPUT,
    WASTED,
    IN_PROGRESS,
    SUSPENSIONS,
    MESSAGES,
    REPAIRS,
    SummaryColumn::new("unfinished", "", |s| not_finished(s) as f64, Quantity::Count),
];

/// The columns on the page.
pub(super) const PAGE: [SummaryColumn; 22] = [
    MEAN,
    P50,
    SummaryColumn::times("p90", "90th percentile of response time", |s| s.response_s.p90),
    SummaryColumn::times("p95", "95th percentile of response time", |s| s.response_s.p95),
    P99,
    SummaryColumn::times("p99.9", "99.9th percentile of response time", |s| s.response_s.p999),
    SummaryColumn::times("max", "longest response time", |s| s.response_s.max),
    SLOWDOWN,
    SummaryColumn::of_jobs(
        "slowdown p99",
        "99th percentile of slowdown",
        |s| s.slowdown.p99,
        Quantity::Plain,
    ),
    MISSES,
    SLO_HOURS,
    BE_HOURS,
    UNQUEUED,
    SummaryColumn::times("wait p50", "median wait of tasks", |s| s.wait_s.p50),
    SummaryColumn::times("wait p99", "99th percentile of the wait of tasks", |s| s.wait_s.p99),
    UTILIZATION,
    GOODPUT,
    WASTED,
    IN_PROGRESS,
    SUSPENSIONS,
    MESSAGES,
    REPAIRS,
];

/// Share of busy core time spent on copies that were preempted, lost, or finished second; NaN if nothing ran.
pub(super) fn wasted_share(summary: &Summary) -> f64 {
    share_of_busy(summary, summary.copies.wasted_work_s)
}

/// Share of busy core time spent on copies in progress; NaN if nothing ran.
pub(super) fn in_progress_share(summary: &Summary) -> f64 {
    share_of_busy(summary, summary.copies.in_progress_s)
}

fn share_of_busy(summary: &Summary, core_s: f64) -> f64 {
    let busy = summary.copies.busy_s;
    if busy > 0.0 { core_s / busy } else { f64::NAN }
}

/// Share of the core time in which cores were degraded; NaN without interference.
pub(super) fn degraded_share(summary: &Summary) -> f64 {
    summary.interference.map_or(f64::NAN, |met| met.degraded)
}

/// Share of the work of healthy cores that degraded ones could not do; NaN without interference.
pub(super) fn work_lost(summary: &Summary) -> f64 {
    summary.interference.map_or(f64::NAN, |met| met.work_lost)
}

/// Share of the deadlines that were missed; NaN if there were none.
pub fn miss_rate(summary: &Summary) -> f64 {
    of_deadlines(summary, |deadlines| deadlines.miss_rate)
}

/// A number about deadlines; NaN if no job has one.
pub fn of_deadlines(summary: &Summary, number: fn(&Deadlines) -> f64) -> f64 {
    summary.deadlines.as_ref().map_or(f64::NAN, number)
}

/// Suspensions per submitted task; NaN if there were none.
fn suspensions_per_task(summary: &Summary) -> f64 {
    match summary.copies.suspensions {
        0 => f64::NAN,
        count => count as f64 / summary.tasks.submitted as f64,
    }
}

/// The policy's own messages per submitted task.
pub fn messages_per_task(summary: &Summary) -> f64 {
    summary.messages.total as f64 / summary.tasks.submitted as f64
}

/// Messages per submitted task that only repair losses or report state; they are counted separately from the policy's
/// own.
fn repairs_per_task(summary: &Summary) -> f64 {
    summary.messages.recovery as f64 / summary.tasks.submitted as f64
}

/// Jobs that failed or were still open at the end.
pub(super) const fn not_finished(summary: &Summary) -> u64 {
    summary.jobs.failed + summary.jobs.unfinished
}
