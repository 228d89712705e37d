//! The columns of summary tables, on the terminal and on the page.

use std::fmt::Write;
use std::str::FromStr;

use volary_engine::results::{Deadlines, SharedNodes, Staleness, Summary};

use crate::config::error::nearest;
use crate::number::Quantity;
use crate::stats::Interval;
use crate::storage::study::{CellGroup, Metric, PolicyRuns};

/// A column of a summary table.
#[derive(Clone, Copy, Debug)]
pub struct SummaryColumn {
    pub heading: &'static str,
    /// What the number means.
    pub meaning: &'static str,
    pub(super) value: Metric,
    pub(super) quantity: Quantity,
    /// Whether the smallest is marked as the best.
    pub(super) marked: bool,
    /// Whether each class of jobs has the number as well.
    pub(super) by_class: bool,
    /// Whether the number can be compared although jobs are unfinished.
    with_open_jobs: bool,
    /// What must be above zero in a run for the column to be shown unasked; `None` if being measured is enough.
    shown_if: Option<Metric>,
    pub(super) group: ColumnGroup,
    /// Place among the columns that are shown unasked, the most important first; `None` for one that must be asked for.
    pub(super) rank: Option<u8>,
}

/// What a column is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnGroup {
    /// Response times of jobs, and what is left of them.
    Response,
    /// Slowdown, waits and deadlines.
    Service,
    /// What the policy costs: core time and messages.
    Cost,
    /// Staleness of caches.
    Staleness,
}

impl ColumnGroup {
    /// All groups, with their titles.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Response, "Response times of jobs"),
        (Self::Service, "Slowdown, waits and deadlines"),
        (Self::Cost, "Core time and messages"),
        (Self::Staleness, "Staleness of caches"),
    ];
}

impl SummaryColumn {
    /// A column of costs, without a mark.
    const fn new(heading: &'static str, meaning: &'static str, value: Metric, quantity: Quantity) -> Self {
        Self {
            heading,
            meaning,
            value,
            quantity,
            marked: false,
            by_class: false,
            with_open_jobs: false,
            shown_if: None,
            group: ColumnGroup::Cost,
            rank: None,
        }
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

    /// Shown unasked only where a number in it is above zero.
    const fn if_any(self) -> Self {
        self.where_any(self.value)
    }

    const fn where_any(self, found: Metric) -> Self {
        Self { shown_if: Some(found), ..self }
    }

    const fn of_group(self, group: ColumnGroup) -> Self {
        Self { group, ..self }
    }

    const fn ranked(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// A column of response times of jobs, with a mark.
    const fn response(heading: &'static str, meaning: &'static str, value: Metric) -> Self {
        let column = Self::new(heading, meaning, value, Quantity::Time);
        column.marked().by_class().of_group(ColumnGroup::Response)
    }

    /// A column of slowdowns, waits or deadlines of jobs.
    const fn service(
        heading: &'static str,
        meaning: &'static str,
        value: Metric,
        quantity: Quantity,
    ) -> Self {
        Self::new(heading, meaning, value, quantity).of_group(ColumnGroup::Service)
    }

    /// A column about caches; empty for policies without.
    const fn staleness(
        heading: &'static str,
        meaning: &'static str,
        value: Metric,
        quantity: Quantity,
    ) -> Self {
        Self::new(heading, meaning, value, quantity).of_group(ColumnGroup::Staleness)
    }

    /// The name on the command line: the heading without capitals and spaces.
    pub fn name(&self) -> String {
        self.heading.to_lowercase().replace(' ', "-")
    }

    /// Its meaning in few words, for the title of a chart or an axis.
    pub(super) fn brief(&self) -> String {
        if self.is_response_time() {
            format!("response time, {}", self.heading)
        } else {
            self.heading.to_owned()
        }
    }

    /// Whether it is a time that jobs took.
    pub(super) fn is_response_time(&self) -> bool {
        self.group == ColumnGroup::Response && self.quantity == Quantity::Time
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

    /// Labels of the policies with the smallest mean of a marked column. Empty if they are all the same, if they cannot
    /// be [ranked](CellGroup::is_ranked), and if seeds cannot tell the best from another: the 95 % interval of the
    /// paired difference contains zero.
    pub(super) fn best<'a>(&self, group: &'a CellGroup, class: Option<&str>) -> Vec<&'a str> {
        if !self.marked || !group.is_ranked() {
            return Vec::new();
        }
        let compared = group.policies.iter().filter(|runs| self.is_comparable(runs));
        let means = compared.filter_map(|runs| Some((runs, runs.interval(self.of(class))?.mean)));
        let means: Vec<(&PolicyRuns, f64)> = means.collect();
        let Some(&(best, least)) = means.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
        let (equal, others): (Vec<_>, Vec<_>) = means.iter().partition(|(_, mean)| *mean == least);
        let told = |runs: &PolicyRuns| {
            let difference = Interval::paired(&runs.pairs(best, self.of(class)));
            difference.is_none_or(|found| found.half_width.is_none() || found.excludes_zero())
        };
        if others.is_empty() || !others.iter().all(|(runs, _)| told(runs)) {
            return Vec::new();
        }
        equal.into_iter().map(|(runs, _)| runs.policy.as_str()).collect()
    }

    /// Whether the number of a policy can be the best. Where jobs are unfinished, most numbers are those of the jobs
    /// that ended, which are the fast ones.
    fn is_comparable(&self, runs: &PolicyRuns) -> bool {
        self.with_open_jobs || runs.runs.iter().all(|run| not_finished(&run.summary) == 0)
    }

    /// Whether any of the runs has a number worth showing.
    pub(super) fn is_worth<'a>(&self, runs: impl IntoIterator<Item = &'a Summary>) -> bool {
        let mut runs = runs.into_iter();
        match self.shown_if {
            Some(found) => runs.any(|run| found(run) > 0.0),
            None => runs.any(|run| (self.value)(run).is_finite()),
        }
    }
}

/// All columns, in the order in which they are shown.
pub(super) const COLUMNS: [SummaryColumn; 41] = [
    SummaryColumn::response("p50", "median response time", |s| s.response_s.p50).ranked(2),
    SummaryColumn::response("p90", "90th percentile of response time", |s| s.response_s.p90),
    SummaryColumn::response("p95", "95th percentile of response time", |s| s.response_s.p95),
    SummaryColumn::response("p99", "99th percentile of response time", |s| s.response_s.p99).ranked(3),
    SummaryColumn::response("p99.9", "99.9th percentile of response time", |s| s.response_s.p999),
    SummaryColumn::response("max", "longest response time", |s| s.response_s.max),
    SummaryColumn::response("mean", "mean response time", |s| s.response_s.mean).ranked(4),
    SummaryColumn::new("unfinished", "jobs that failed or were open at the end", |s| if s.jobs.submitted > 0 { not_finished(s) as f64 } else { f64::NAN }, Quantity::Count)
        .if_any()
        .by_class()
        .of_group(ColumnGroup::Response)
        .ranked(0),
    SummaryColumn::service(
        "slowdown",
        "median of response time over the work of the longest task, or over `alone`",
        |s| s.slowdown.p50,
        Quantity::Plain,
    )
    .marked()
    .by_class()
    .ranked(7),
    SummaryColumn::service("slowdown p99", "99th percentile of slowdown", |s| s.slowdown.p99, Quantity::Plain)
        .marked()
        .by_class(),
    SummaryColumn::service("wait p50", "median wait of tasks", |s| s.wait_s.p50, Quantity::Time).marked().by_class(),
    SummaryColumn::service("wait p99", "99th percentile of the wait of tasks", |s| s.wait_s.p99, Quantity::Time)
        .marked()
        .by_class(),
    SummaryColumn::service(
        "misses",
        "share of the jobs with a deadline that did not end by it",
        miss_rate,
        Quantity::Share,
    )
    .marked()
    .with_open_jobs()
    .ranked(1),
    SummaryColumn::service(
        "SLO node-h",
        "node-hours of jobs that ended by their deadline: tasks × longest task",
        |s| of_deadlines(s, |d| d.goodput_h.slo),
        Quantity::Plain,
    )
    .ranked(8),
    SummaryColumn::service(
        "BE node-h",
        "node-hours of jobs without a deadline that ended: tasks × longest task",
        |s| of_deadlines(s, |d| d.goodput_h.be),
        Quantity::Plain,
    )
    .ranked(9),
    SummaryColumn::service(
        "unqueued",
        "share of jobs that took hardly longer than their longest task, by at most run.record.unqueued",
        |s| s.unqueued.unwrap_or(f64::NAN),
        Quantity::Share,
    )
    .by_class()
    .ranked(14),
    SummaryColumn::new(
        "CPU used",
        "share of the CPU of all shared nodes that copies were given",
        |s| of_shared(s, |nodes| nodes.cpu),
        Quantity::Share,
    )
    .ranked(10),
    SummaryColumn::new(
        "CPU wasted",
        "share of the CPU-time of copies on shared nodes that was lost with copies which were stopped",
        |s| of_shared(s, |nodes| nodes.wasted_core_h / nodes.used_core_h),
        Quantity::Share,
    )
    .ranked(11),
    SummaryColumn::new(
        "throttled",
        "share of the time of copies in which a shared node gave them less CPU than they would have used",
        |s| of_shared(s, |nodes| nodes.throttled),
        Quantity::Share,
    )
    .ranked(12),
    SummaryColumn::new(
        "evictions",
        "copies that shared nodes stopped because memory was short",
        |s| of_shared(s, |nodes| nodes.evictions as f64),
        Quantity::Count,
    )
    .ranked(13),
    SummaryColumn::new(
        "pods used",
        "share of the time of the pods of shared nodes in which they held a copy, however much CPU it was given",
        |s| of_shared(s, |_| 1.0) * s.utilization,
        Quantity::Share,
    )
    .ranked(24),
    SummaryColumn::new("utilization", "busy share of all core time; not of shared nodes", |s| of_cores(s, s.utilization), Quantity::Share)
        .ranked(15),
    SummaryColumn::new("goodput", "useful share of all core time; not of shared nodes", |s| of_cores(s, s.goodput), Quantity::Share)
        .where_any(|s| of_cores(s, s.copies.wasted_work_s + s.copies.in_progress_s))
        .ranked(16),
    SummaryColumn::new(
        "wasted",
        "share of busy core time spent on copies that were preempted, lost, or finished second",
        wasted_share,
        Quantity::Share,
    )
    .marked()
    .ranked(5),
    SummaryColumn::new(
        "in progress",
        "share of busy core time spent on copies that were open when the run ended, neither useful nor wasted",
        in_progress_share,
        Quantity::Share,
    )
    .if_any()
    .ranked(17),
    SummaryColumn::new(
        "suspended/task",
        "how often copies were suspended, for each task",
        suspensions_per_task,
        Quantity::Plain,
    )
    .ranked(19),
    SummaryColumn::new("msgs/task", "the policy's own messages for each task", messages_per_task, Quantity::Plain)
        .marked()
        .ranked(6),
    SummaryColumn::new(
        "repairs/task",
        "messages for each task that repair losses or report what is so, counted apart",
        repairs_per_task,
        Quantity::Plain,
    )
    .if_any()
    .ranked(20),
    SummaryColumn::new(
        "degraded",
        "share of the core time in which cores were degraded by interference",
        degraded_share,
        Quantity::Share,
    ),
    SummaryColumn::new(
        "work lost",
        "share of the work of healthy cores that degraded ones could not do",
        work_lost,
        Quantity::Share,
    ),
    SummaryColumn::new("makespan", "time from the first arrival to the last end", |s| s.makespan_s, Quantity::Time),
    SummaryColumn::staleness(
        "age",
        "mean age of synchronisation: age of the oldest update about a node that a scheduler lacks, 0 if none",
        |s| of_staleness(s, |found| found.age_of_synchronisation_s.mean),
        Quantity::Time,
    )
    .ranked(18),
    SummaryColumn::staleness(
        "age p99",
        "99th percentile of the age of synchronisation",
        |s| of_staleness(s, |found| found.age_of_synchronisation_s.p99),
        Quantity::Time,
    ),
    SummaryColumn::staleness(
        "AoI",
        "mean age of information: time since the newest snapshot that a scheduler has was made",
        |s| of_staleness(s, |found| found.age_of_information_s.mean),
        Quantity::Time,
    ),
    SummaryColumn::staleness(
        "version age",
        "mean number of updates about a node that a scheduler lacks",
        |s| of_staleness(s, |found| found.version_age.mean),
        Quantity::Plain,
    ),
    SummaryColumn::staleness(
        "out of sync",
        "share of time that a scheduler lacks an update about a node",
        |s| of_staleness(s, |found| found.out_of_sync),
        Quantity::Share,
    ),
    SummaryColumn::staleness(
        "error",
        "mean size of the difference between the cached and the true work at a node",
        |s| of_staleness(s, |found| found.error_s.mean),
        Quantity::Time,
    )
    .ranked(21),
    SummaryColumn::staleness(
        "bias",
        "mean of the cached less the true work at a node",
        |s| of_staleness(s, |found| found.bias_s),
        Quantity::Time,
    )
    .ranked(23),
    SummaryColumn::staleness(
        "regret",
        "mean of what a task will wait at its node less the least that it could have waited",
        |s| of_staleness(s, |found| found.regret_s.mean),
        Quantity::Time,
    )
    .ranked(22),
    SummaryColumn::staleness(
        "regret p99",
        "99th percentile of regret",
        |s| of_staleness(s, |found| found.regret_s.p99),
        Quantity::Time,
    ),
    SummaryColumn::staleness(
        "conflicts",
        "share of decisions for a node that another scheduler had chosen unknown to this one",
        |s| of_staleness(s, |found| found.conflicts),
        Quantity::Share,
    ),
];

/// The columns of percentiles of response times, in order.
pub(super) fn percentiles_of_response() -> impl Iterator<Item = &'static SummaryColumn> {
    const ALL: &[SummaryColumn] = &COLUMNS;
    ALL.iter().filter(|column| column.is_response_time() && column.heading.starts_with('p'))
}

/// A column that was asked for, of all jobs or of one class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PickedColumn {
    pub class: Option<String>,
    /// Index in the list of all columns.
    pub(super) at: usize,
}

impl PickedColumn {
    /// The 99th percentile of response times.
    pub(super) fn p99() -> Self {
        Self { class: None, at: COLUMNS.iter().position(|column| column.name() == "p99").unwrap_or(0) }
    }

    /// The column itself.
    pub(super) const fn column(&self) -> &'static SummaryColumn {
        const ALL: &[SummaryColumn] = &COLUMNS;
        &ALL[self.at]
    }

    /// The number in a summary.
    pub(super) fn of(&self) -> impl Fn(&Summary) -> f64 {
        self.column().of(self.class.as_deref())
    }

    /// Its meaning in few words.
    pub(super) fn title(&self) -> String {
        let what = self.column().brief();
        self.class.as_ref().map_or_else(|| what.clone(), |class| format!("{what} of {class}"))
    }
}

impl FromStr for PickedColumn {
    type Err = String;

    /// `p99`, or `short.p99` for the class `short`.
    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = COLUMNS.iter().map(SummaryColumn::name).collect();
        let wanted = text.to_lowercase().replace(' ', "-");
        if let Some(at) = names.iter().position(|name| *name == wanted) {
            return Ok(Self { class: None, at });
        }
        let of_class = names.iter().enumerate().filter_map(|(at, name)| {
            let class = wanted.strip_suffix(name.as_str())?.strip_suffix('.')?;
            Some((at, text.get(..class.len())?)) // as it was written
        });
        // `p99.9` is a name and has a suffix that is none, so the longest name counts.
        match of_class.max_by_key(|(at, _)| names[*at].len()) {
            Some((at, class)) if COLUMNS[at].by_class => Ok(Self { class: Some(class.to_owned()), at }),
            Some((at, _)) => Err(format!("classes of jobs have no column `{}`: {HELP}", names[at])),
            None => Err(match nearest(&wanted, names.iter().map(String::as_str)) {
                Some(near) => format!("no column is named `{text}`; did you mean `{near}`? {HELP}"),
                None => format!("no column is named `{text}`: {HELP}"),
            }),
        }
    }
}

/// The argument that lists all columns, given instead of a column's name.
pub const ASKED: &str = "help";
/// The remedy for an unknown column.
const HELP: &str = "`help` in its place lists all";

/// All columns with their meanings, by group.
pub fn help() -> String {
    let mut out = String::new();
    for (group, title) in ColumnGroup::ALL {
        let _ = writeln!(out, "{title}");
        for column in COLUMNS.iter().filter(|column| column.group == group) {
            let class = if column.by_class { " (also of a class)" } else { "" };
            let _ = writeln!(out, "  {:<15} {}{class}", column.name(), column.meaning);
        }
    }
    out.push_str("CLASS.COLUMN is the column of one class of jobs, such as short.p99.\n");
    out
}

/// A share of core time; NaN where nodes are shared, which have pods instead of cores.
fn of_cores(summary: &Summary, share: f64) -> f64 {
    if summary.shared.is_some() { f64::NAN } else { share }
}

/// A number about shared nodes; NaN where nodes are not shared.
pub fn of_shared(summary: &Summary, number: fn(&SharedNodes) -> f64) -> f64 {
    summary.shared.as_ref().map_or(f64::NAN, number)
}

/// A number about the staleness of caches; NaN for policies without.
pub fn of_staleness(summary: &Summary, number: fn(&Staleness) -> f64) -> f64 {
    summary.staleness.as_ref().map_or(f64::NAN, number)
}

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
pub const fn not_finished(summary: &Summary) -> u64 {
    summary.jobs.failed + summary.jobs.unfinished
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is either shown with its unit, or its column says what it counts or is the ratio of.
    #[test]
    fn the_unit_of_every_column_is_stated() {
        const SAID: [&str; 6] =
            ["for each task", "node-hours", "jobs that", "copies that", "response time over", "slowdown"];
        for column in &COLUMNS {
            let text = column.quantity.text(12.5);
            let said = match column.quantity {
                Quantity::Time => text.ends_with('s'),
                Quantity::Share => text.ends_with('%') && column.meaning.contains("share"),
                Quantity::Plain | Quantity::Count => {
                    SAID.iter().any(|words| column.meaning.contains(words))
                        || column.meaning.contains("number of")
                }
            };
            assert!(said, "{}: {text}, {}", column.heading, column.meaning);
        }
    }
}
