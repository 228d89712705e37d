//! The table of metrics: the numbers of a run that tables, comparisons and figures show, with their properties.
//!
//! Each number is described once. Its unit, its better direction, its presence by class and its distortion by
//! unfinished jobs apply to claims, `compare`, `validate`, tables, the report and figures alike. To add a number, add a
//! field to the schema, compute it, and add a row here.

use super::Summary;

/// Function that reads a number from a summary; NaN if the run does not have it.
pub type Reading = fn(&Summary) -> f64;

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Seconds of emulated time.
    Seconds,
    /// Hours of work of nodes or cores.
    Hours,
    /// A share from 0 to 1, shown in per cent.
    Share,
    /// A number without a unit.
    Plain,
    /// A whole number.
    Count,
}

/// Direction in which a number is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// The smaller value is better.
    Less,
    /// The larger value is better.
    More,
    /// No value is better by itself.
    Neither,
}

/// A number of the results.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Key of the number in the results, or the quotient of two keys.
    pub key: &'static str,
    /// Unit of the number.
    pub unit: Unit,
    /// Direction in which the number is better.
    pub better: Better,
    /// Meaning of the number, in one line.
    pub meaning: &'static str,
    /// Whether each class of jobs has the number as well.
    pub by_class: bool,
    /// Whether the number covers only jobs that ended. Policies cannot be compared by such a number in a run with
    /// unfinished jobs, because the jobs that ended are the fast ones.
    pub censored: bool,
    /// The number in a summary.
    pub value: Reading,
    /// Column of the number in tables.
    pub column: Option<TableColumn>,
    /// Whether `volary compare` shows the number.
    pub compared: bool,
}

/// The column of a number in summary tables.
#[derive(Clone, Copy, Debug)]
pub struct TableColumn {
    /// Heading of the column.
    pub heading: &'static str,
    /// Subject of the column.
    pub group: ColumnGroup,
    /// Rank among the default columns, the most important first; `None` for a column that is shown only on request.
    pub rank: Option<u8>,
    /// Number that must be above zero in a run for a default column to be shown; `None` to show every measured number.
    pub shown_if: Option<Reading>,
}

/// Subject of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnGroup {
    /// Response times of jobs, and unfinished jobs.
    Response,
    /// Slowdown, waits and deadlines.
    Service,
    /// Costs of the policy: core time and messages.
    Cost,
    /// Staleness of caches.
    Staleness,
    /// Spread of updates among members, or detection of their failures.
    Gossip,
}

impl ColumnGroup {
    /// All groups, with their titles.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Response, "Response times of jobs"),
        (Self::Service, "Slowdown, waits and deadlines"),
        (Self::Cost, "Core time and messages"),
        (Self::Staleness, "Staleness of caches"),
        (Self::Gossip, "Gossip without jobs"),
    ];
}

impl Metric {
    const fn new(key: &'static str, unit: Unit, better: Better, value: Reading) -> Self {
        Self {
            key,
            unit,
            better,
            meaning: "",
            by_class: false,
            censored: false,
            value,
            column: None,
            compared: false,
        }
    }

    /// A number of finished jobs, measured for each class as well.
    const fn of_jobs(key: &'static str, unit: Unit, better: Better, value: Reading) -> Self {
        Self { by_class: true, ..Self::new(key, unit, better, value) }.censored()
    }

    const fn means(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    const fn by_class(self) -> Self {
        Self { by_class: true, ..self }
    }

    const fn censored(self) -> Self {
        Self { censored: true, ..self }
    }

    const fn compared(self) -> Self {
        Self { compared: true, ..self }
    }

    const fn column(self, group: ColumnGroup, heading: &'static str) -> Self {
        Self { column: Some(TableColumn { heading, group, rank: None, shown_if: None }), ..self }
    }

    const fn ranked(self, rank: u8) -> Self {
        match self.column {
            Some(column) => Self { column: Some(TableColumn { rank: Some(rank), ..column }), ..self },
            None => self,
        }
    }

    const fn shown_if(self, found: Reading) -> Self {
        match self.column {
            Some(column) => Self { column: Some(TableColumn { shown_if: Some(found), ..column }), ..self },
            None => self,
        }
    }

    /// The metric of this key, without the prefix `classes.LABEL.` of a class.
    pub fn named(key: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.key == key)
    }

    /// Name of the column on the command line: the heading without capitals and spaces.
    pub fn column_name(&self) -> Option<String> {
        self.column.map(|column| column.heading.to_lowercase().replace(' ', "-"))
    }
}

/// The sections of a summary, and the keys without a section, that cover only jobs that ended.
pub fn censored_sections() -> impl Iterator<Item = &'static str> {
    let plain = METRICS.iter().filter(|metric| metric.censored && !metric.key.contains(' '));
    plain.map(|metric| metric.key.split('.').next().unwrap_or_default())
}

/// Whether the number of a key, given in parts, covers only jobs that ended. The key may belong to a class.
pub fn is_censored<'a>(key: impl IntoIterator<Item = &'a str>) -> bool {
    let mut parts = key.into_iter();
    let first = parts.next();
    let section = if first == Some("classes") { parts.nth(1) } else { first };
    section.is_some_and(|section| censored_sections().any(|censored| censored == section))
}

/// A number of an optional section of the summary; NaN without the section.
fn of<T>(section: Option<&T>, number: fn(&T) -> f64) -> f64 {
    section.map_or(f64::NAN, number)
}

/// A share of core time; NaN where nodes are shared, because shared nodes have pods instead of cores, and without
/// tasks.
fn of_cores(summary: &Summary, share: f64) -> f64 {
    if summary.shared.is_some() || summary.tasks.submitted == 0 { f64::NAN } else { share }
}

/// A share of busy core time; NaN if no copy ran.
fn of_busy(summary: &Summary, core_s: f64) -> f64 {
    let busy = summary.copies.busy_s;
    if busy > 0.0 { core_s / busy } else { f64::NAN }
}

/// A number for each submitted task.
fn per_task(summary: &Summary, count: u64) -> f64 {
    let tasks = summary.tasks.submitted;
    if tasks > 0 { count as f64 / tasks as f64 } else { f64::NAN }
}

impl Summary {
    /// Length of the time over which results average: of the measured window, or else the makespan, s.
    pub fn length_s(&self) -> f64 {
        self.window.map_or(self.makespan_s, |window| window.until_s - window.from_s)
    }

    /// Number of jobs that did not finish, measured or not.
    pub fn unfinished(&self) -> u64 {
        self.jobs.unfinished + self.window.map_or(0, |window| window.unfinished)
    }

    /// Number of jobs that arrived, measured or not.
    pub fn arrived(&self) -> u64 {
        self.jobs.submitted + self.window.map_or(0, |window| window.warm_up + window.after)
    }

    /// Jobs that failed or were still open at the end.
    pub const fn not_finished(&self) -> u64 {
        self.jobs.failed + self.jobs.unfinished
    }

    /// Share of busy core time spent on copies that were preempted, lost, or finished second; NaN if no copy ran.
    pub fn wasted_share(&self) -> f64 {
        of_busy(self, self.copies.wasted_work_s)
    }

    /// Share of busy core time spent on copies in progress; NaN if no copy ran.
    pub fn in_progress_share(&self) -> f64 {
        of_busy(self, self.copies.in_progress_s)
    }

    /// The policy's own messages for each submitted task.
    pub fn messages_per_task(&self) -> f64 {
        per_task(self, self.messages.total)
    }

    /// Share of the deadlines that were missed; NaN if there were none.
    pub fn miss_rate(&self) -> f64 {
        of(self.deadlines.as_ref(), |deadlines| deadlines.miss_rate)
    }
}

use Better::{Less, More, Neither};
use ColumnGroup::{Cost, Response, Service};
use Unit::{Count, Hours, Plain, Seconds, Share};

/// All metrics, in the order of tables.
#[rustfmt::skip]
pub static METRICS: [Metric; 105] = [
    Metric::of_jobs("response_s.p50", Seconds, Less, |s| s.times.response_s.p50)
        .means("median response time").column(Response, "p50").ranked(2).compared(),
    Metric::of_jobs("response_s.p90", Seconds, Less, |s| s.times.response_s.p90)
        .means("90th percentile of response time").column(Response, "p90").compared(),
    Metric::of_jobs("response_s.p95", Seconds, Less, |s| s.times.response_s.p95)
        .means("95th percentile of response time").column(Response, "p95").compared(),
    Metric::of_jobs("response_s.p99", Seconds, Less, |s| s.times.response_s.p99)
        .means("99th percentile of response time").column(Response, "p99").ranked(3).compared(),
    Metric::of_jobs("response_s.p999", Seconds, Less, |s| s.times.response_s.p999)
        .means("99.9th percentile of response time").column(Response, "p99.9").compared(),
    Metric::of_jobs("response_s.max", Seconds, Less, |s| s.times.response_s.max)
        .means("longest response time").column(Response, "max"),
    Metric::of_jobs("response_s.mean", Seconds, Less, |s| s.times.response_s.mean)
        .means("mean response time").column(Response, "mean").ranked(4).compared(),
    Metric::new("jobs.failed + jobs.unfinished", Count, Neither, |s| if s.jobs.submitted > 0 { s.not_finished() as f64 } else { f64::NAN })
        .means("jobs that failed or were open at the end").by_class().column(Response, "unfinished").ranked(0).shown_if(|s| s.not_finished() as f64),
    Metric::of_jobs("slowdown.p50", Plain, Less, |s| s.times.slowdown.p50)
        .means("median of response time over the work of the longest task, or over `alone`")
        .column(Service, "slowdown").ranked(7),
    Metric::of_jobs("slowdown.mean", Plain, Less, |s| s.times.slowdown.mean)
        .means("mean slowdown").compared(),
    Metric::of_jobs("slowdown.p99", Plain, Less, |s| s.times.slowdown.p99)
        .means("99th percentile of slowdown").column(Service, "slowdown p99").compared(),
    Metric::of_jobs("wait_s.p50", Seconds, Less, |s| s.times.wait_s.p50)
        .means("median wait of tasks").column(Service, "wait p50"),
    Metric::of_jobs("wait_s.mean", Seconds, Less, |s| s.times.wait_s.mean)
        .means("mean wait of tasks").compared(),
    Metric::of_jobs("wait_s.p99", Seconds, Less, |s| s.times.wait_s.p99)
        .means("99th percentile of the wait of tasks").column(Service, "wait p99").compared(),
    Metric::of_jobs("job_wait_s.mean", Seconds, Less, |s| s.times.job_wait_s.mean)
        .means("mean time from a job's arrival to the start of its first task").column(Service, "job wait").compared(),
    Metric::of_jobs("job_wait_s.p99", Seconds, Less, |s| s.times.job_wait_s.p99)
        .means("99th percentile of the wait of jobs").column(Service, "job wait p99").compared(),
    Metric::of_jobs("bounded_slowdown.mean", Plain, Less, |s| s.times.bounded_slowdown.mean)
        .means("mean of response time over the base of slowdown or run.record.slowdown_bound, whichever is longer")
        .column(Service, "bounded slowdown").compared(),
    Metric::of_jobs("bounded_slowdown.p99", Plain, Less, |s| s.times.bounded_slowdown.p99)
        .means("99th percentile of bounded slowdown").column(Service, "bounded slowdown p99").compared(),
    Metric::of_jobs("longest_s.mean", Seconds, Neither, |s| s.times.longest_s.mean)
        .means("mean work of the longest task of jobs"),
    Metric::new("deadlines.miss_rate", Share, Less, Summary::miss_rate)
        .means("share of the jobs with a deadline that missed it").column(Service, "misses").ranked(1).compared(),
    Metric::new("deadlines.goodput_h.slo", Hours, More, |s| of(s.deadlines.as_ref(), |d| d.goodput_h.slo))
        .means("node-hours of jobs that ended by their deadline: tasks × longest task")
        .column(Service, "SLO node-h").ranked(8).compared(),
    Metric::new("deadlines.goodput_h.be", Hours, Neither, |s| of(s.deadlines.as_ref(), |d| d.goodput_h.be))
        .means("node-hours of jobs without a deadline that ended: tasks × longest task")
        .column(Service, "BE node-h").ranked(9).compared(),
    Metric::new("deadlines.goodput_h.late", Hours, Neither, |s| of(s.deadlines.as_ref(), |d| d.goodput_h.late))
        .means("node-hours of jobs that ended after their deadline").compared(),
    Metric::new("deadlines.goodput_h.total", Hours, Neither, |s| of(s.deadlines.as_ref(), |d| d.goodput_h.total))
        .means("node-hours of all jobs that ended").compared(),
    Metric::new("deadlines.be_response_s.mean", Seconds, Less, |s| of(s.deadlines.as_ref(), |d| d.be_response_s.mean))
        .means("mean response time of jobs without a deadline").compared(),
    Metric::new("deadlines.value", Count, Neither, |s| of(s.deadlines.as_ref(), |d| d.value as f64))
        .means("utility that jobs earned").compared(),
    Metric::new("graphs.share", Share, Neither, |s| of(s.graphs.as_ref(), |g| g.share))
        .means("share of the jobs with dependencies between stages or steps").column(Service, "dependent"),
    Metric::new("graphs.depth.mean", Plain, Neither, |s| of(s.graphs.as_ref(), |g| g.depth.mean))
        .means("mean number of stages on the longest path of jobs with dependencies").column(Service, "depth"),
    Metric::new("graphs.critical_path_s.mean", Seconds, Neither, |s| of(s.graphs.as_ref(), |g| g.critical_path_s.mean))
        .means("mean critical path of jobs with dependencies: the least time they need on healthy cores")
        .censored().column(Service, "critical path"),
    Metric::new("graphs.slowdown.p50", Plain, Less, |s| of(s.graphs.as_ref(), |g| g.slowdown.p50))
        .means("median of response time over critical path of jobs with dependencies")
        .censored().column(Service, "graph slowdown").compared(),
    Metric::new("graphs.slowdown.mean", Plain, Less, |s| of(s.graphs.as_ref(), |g| g.slowdown.mean))
        .means("mean of response time over critical path of jobs with dependencies").censored().compared(),
    Metric::new("graphs.slowdown.p99", Plain, Less, |s| of(s.graphs.as_ref(), |g| g.slowdown.p99))
        .means("99th percentile of response time over critical path of jobs with dependencies")
        .censored().column(Service, "graph slowdown p99").compared(),
    Metric::new("graphs.delayed", Share, Less, |s| of(s.graphs.as_ref(), |g| g.delayed))
        .means("share of the jobs with dependencies that took over 1.001 times their critical path").censored().compared(),
    Metric::new("graphs.straggling", Share, Less, |s| of(s.graphs.as_ref(), |g| g.straggling))
        .means("share of the jobs with dependencies that took over 1.1 times their critical path").censored().compared(),
    Metric::of_jobs("unqueued", Share, More, |s| s.times.unqueued.unwrap_or(f64::NAN))
        .means("share of jobs that took at most run.record.unqueued longer than their longest task")
        .column(Service, "unqueued").ranked(14).compared(),
    Metric::of_jobs("over_10x", Share, Less, |s| s.times.over_10x)
        .means("share of jobs that took more than ten times as long as their longest task")
        .column(Service, "over 10x").compared(),
    Metric::new("shared.cpu", Share, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.cpu))
        .means("share of the CPU of all shared nodes that copies were given").column(Cost, "CPU used").ranked(10).compared(),
    Metric::new("shared.wasted_core_h / shared.used_core_h", Share, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.wasted_core_h / nodes.used_core_h))
        .means("share of the CPU-time on shared nodes that was spent on copies that were stopped")
        .column(Cost, "CPU wasted").ranked(11),
    Metric::new("shared.used_core_h", Hours, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.used_core_h))
        .means("CPU-time of copies on shared nodes").compared(),
    Metric::new("shared.wasted_core_h", Hours, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.wasted_core_h))
        .means("CPU-time of copies on shared nodes that were stopped").compared(),
    Metric::new("shared.throttled", Share, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.throttled))
        .means("share of the time of copies in which a shared node gave them less CPU than they would have used")
        .column(Cost, "throttled").ranked(12).compared(),
    Metric::new("shared.throttle_rate", Plain, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.throttle_rate))
        .means("throttling events per shared node and second").compared(),
    Metric::new("shared.evictions", Count, Neither, |s| of(s.shared.as_ref(), |nodes| nodes.evictions as f64))
        .means("copies that shared nodes stopped because memory was short").column(Cost, "evictions").ranked(13).compared(),
    Metric::new("utilization of pods", Share, Neither, |s| of(s.shared.as_ref(), |_| 1.0) * s.utilization)
        .means("share of the time of the pods of shared nodes in which they held a copy, however much CPU it was given")
        .column(Cost, "pods used").ranked(24),
    Metric::new("utilization", Share, Neither, |s| of_cores(s, s.utilization))
        .means("busy share of all core time; not of shared nodes").column(Cost, "utilization").ranked(15).compared(),
    Metric::new("goodput", Share, More, |s| of_cores(s, s.goodput))
        .means("useful share of all core time; not of shared nodes").column(Cost, "goodput").ranked(16).shown_if(|s| of_cores(s, s.copies.wasted_work_s + s.copies.in_progress_s)).compared(),
    Metric::new("copies.wasted_work_s / copies.busy_s", Share, Less, Summary::wasted_share)
        .means("share of busy core time spent on copies that were preempted, lost, or finished second")
        .censored().column(Cost, "wasted").ranked(5),
    Metric::new("copies.wasted_work_s", Seconds, Neither, |s| s.copies.wasted_work_s)
        .means("core time spent on copies that were preempted, lost, or finished second")
        .compared(),
    Metric::new("copies.in_progress_s / copies.busy_s", Share, Neither, Summary::in_progress_share)
        .means("share of busy core time spent on copies that were open when the run ended, neither useful nor wasted")
        .column(Cost, "in progress").ranked(17).shown_if(Summary::in_progress_share),
    Metric::new("copies.in_progress_s", Seconds, Neither, |s| s.copies.in_progress_s)
        .means("core time spent on copies that were open when the run ended").compared(),
    Metric::new("copies.suspensions / tasks", Plain, Neither, |s| if s.copies.suspensions > 0 { per_task(s, s.copies.suspensions) } else { f64::NAN })
        .means("suspensions of copies per task").column(Cost, "suspended/task").ranked(19),
    Metric::new("messages.total / tasks", Plain, Less, Summary::messages_per_task)
        .means("the policy's own messages per task").censored().column(Cost, "msgs/task").ranked(6).compared(),
    Metric::new("messages.bytes / tasks", Plain, Less, |s| per_task(s, s.messages.bytes))
        .means("bytes of all messages per task, headers and repeated transmissions included").censored().column(Cost, "bytes/task"),
    Metric::new("messages.recovery / tasks", Plain, Neither, |s| per_task(s, s.messages.recovery))
        .means("messages per task that repair losses or report state, not among the policy's own")
        .column(Cost, "repairs/task").ranked(20).shown_if(|s| per_task(s, s.messages.recovery)),
    Metric::new("actors.scheduler.busiest", Share, Neither, |s| of(s.actors.get("scheduler"), |load| load.busiest))
        .means("share of the run in which the busiest scheduler handled messages").column(Cost, "scheduler busy").ranked(25).compared(),
    Metric::new("actors.scheduler.wait_s", Seconds, Neither, |s| of(s.actors.get("scheduler"), |load| load.wait_s))
        .means("mean wait of a message at its scheduler before it was handled").column(Cost, "scheduler wait").compared(),
    Metric::new("actors.node.busiest", Share, Neither, |s| of(s.actors.get("node"), |load| load.busiest))
        .means("share of the run in which the busiest node manager handled messages").column(Cost, "node busy").compared(),
    Metric::new("actors.node.wait_s", Seconds, Neither, |s| of(s.actors.get("node"), |load| load.wait_s))
        .means("mean wait of a message at its node manager before it was handled").column(Cost, "node wait").compared(),
    Metric::new("interference.degraded", Share, Neither, |s| of(s.interference.as_ref(), |met| met.degraded))
        .means("share of the core time in which cores were degraded by interference")
        .column(Cost, "degraded"),
    Metric::new("interference.work_lost", Share, Neither, |s| of(s.interference.as_ref(), |met| met.work_lost))
        .means("share of the work of healthy cores that degraded ones could not do")
        .column(Cost, "work lost"),
    Metric::new("makespan_s", Seconds, Neither, |s| s.makespan_s)
        .means("time from the first arrival to the last end").censored().column(Cost, "makespan"),
    Metric::new("drain_s", Seconds, Neither, |s| s.drain_s)
        .means("time from the last arrival to the last end").censored(),
    Metric::new("planning.cycles", Count, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.cycles as f64))
        .means("planning cycles").compared(),
    Metric::new("planning.solved", Count, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.solved as f64))
        .means("planning cycles whose problem was solved").compared(),
    Metric::new("planning.options", Plain, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.options))
        .means("mean number of options in a problem").compared(),
    Metric::new("planning.pivots", Plain, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.pivots))
        .means("mean number of pivots of a solution").compared(),
    Metric::new("planning.gap.mean", Share, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.gap.mean))
        .means("mean relative gap between plans and their bound").compared(),
    Metric::new("planning.launched", Count, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.launched as f64))
        .means("tasks launched by plans").compared(),
    Metric::new("planning.revoked", Count, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.revoked as f64))
        .means("launches that were no longer possible when the decision was made").compared(),
    Metric::new("planning.preempted", Count, Neither, |s| of(s.sections.planning.as_ref(), |plans| plans.preempted as f64))
        .means("copies that plans stopped").compared(),
    Metric::new("prediction.within_2x", Share, Neither, |s| of(s.sections.prediction.as_ref(), |errors| errors.within_2x))
        .means("share of the jobs whose estimate was within a factor of two").compared(),
    Metric::new("prediction.under", Share, Neither, |s| of(s.sections.prediction.as_ref(), |errors| errors.under))
        .means("share of the jobs whose estimate was too small").compared(),
    Metric::new("prediction.over", Share, Neither, |s| of(s.sections.prediction.as_ref(), |errors| errors.over))
        .means("share of the jobs whose estimate was too large").compared(),
    Metric::new("prediction.error", Share, Neither, |s| of(s.sections.prediction.as_ref(), |errors| errors.error))
        .means("median absolute error of estimates").compared(),
    Metric::new("staleness.age_of_synchronisation_s.mean", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.age_of_synchronisation_s.mean))
        .means("mean age of synchronisation: age of the oldest update about a node that a scheduler lacks, 0 if none")
        .column(ColumnGroup::Staleness, "age").ranked(18).compared(),
    Metric::new("staleness.age_of_synchronisation_s.p99", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.age_of_synchronisation_s.p99))
        .means("99th percentile of the age of synchronisation").column(ColumnGroup::Staleness, "age p99"),
    Metric::new("staleness.age_of_information_s.mean", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.age_of_information_s.mean))
        .means("mean age of information: time since the newest snapshot that a scheduler has was made")
        .column(ColumnGroup::Staleness, "AoI").compared(),
    Metric::new("staleness.version_age.mean", Plain, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.version_age.mean))
        .means("mean number of updates about a node that a scheduler lacks").column(ColumnGroup::Staleness, "version age").compared(),
    Metric::new("staleness.out_of_sync", Share, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.out_of_sync))
        .means("share of time that a scheduler lacks an update about a node").column(ColumnGroup::Staleness, "out of sync").compared(),
    Metric::new("staleness.error_s.mean", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.error_s.mean))
        .means("mean absolute difference between the cached and the true work at a node")
        .column(ColumnGroup::Staleness, "error").ranked(21).compared(),
    Metric::new("staleness.bias_s", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.bias_s))
        .means("mean of the cached minus the true work at a node").column(ColumnGroup::Staleness, "bias").ranked(23),
    Metric::new("staleness.decision_error_s.mean", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.decision_error_s.mean))
        .means("mean absolute error of the cached work at the chosen nodes")
        .compared(),
    Metric::new("staleness.regret_s.mean", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.regret_s.mean))
        .means("mean wait of a task at its node minus the least wait that it could have had")
        .column(ColumnGroup::Staleness, "regret").ranked(22).compared(),
    Metric::new("staleness.regret_s.p99", Seconds, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.regret_s.p99))
        .means("99th percentile of regret").column(ColumnGroup::Staleness, "regret p99"),
    Metric::new("staleness.conflicts", Share, Neither, |s| of(s.sections.staleness.as_ref(), |found| found.conflicts))
        .means("share of decisions for a node to which another scheduler had sent a task unknown to the deciding one")
        .column(ColumnGroup::Staleness, "conflicts"),
    Metric::new("gossip.coverage", Share, More, |s| of(s.sections.gossip.as_ref(), |found| found.coverage))
        .means("share of (update, member) pairs in which the member had the update by the end of the run")
        .column(ColumnGroup::Gossip, "coverage").ranked(25).compared(),
    Metric::new("gossip.complete", Share, More, |s| of(s.sections.gossip.as_ref(), |found| found.complete))
        .means("share of the updates that every member had by the end of the run").column(ColumnGroup::Gossip, "complete"),
    Metric::new("gossip.delivery_s.p50", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.delivery_s.p50))
        .means("median time from an update until a member had it").column(ColumnGroup::Gossip, "delivery p50").ranked(26).compared(),
    Metric::new("gossip.delivery_s.p95", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.delivery_s.p95))
        .means("95th percentile of the time from an update until a member had it")
        .column(ColumnGroup::Gossip, "delivery p95").compared(),
    Metric::new("gossip.delivery_s.max", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.delivery_s.max))
        .means("longest time from an update until a member had it").column(ColumnGroup::Gossip, "delivery max"),
    Metric::new("gossip.half_s.mean", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.half_s.mean))
        .means("mean time from an update until half of the members had it").column(ColumnGroup::Gossip, "half").compared(),
    Metric::new("gossip.full_s.mean", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.full_s.mean))
        .means("mean time from an update until every member had it").column(ColumnGroup::Gossip, "full").ranked(27).compared(),
    Metric::new("gossip.version_age.mean", Plain, Less, |s| of(s.sections.gossip.as_ref(), |found| found.version_age.mean))
        .means("mean number of updates of an origin that a member lacks")
        .column(ColumnGroup::Gossip, "updates lacking").ranked(28).compared(),
    Metric::new("gossip.age_of_synchronisation_s.mean", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.age_of_synchronisation_s.mean))
        .means("mean age of the oldest update of an origin that a member lacks, 0 if none")
        .column(ColumnGroup::Gossip, "age of synchronisation").compared(),
    Metric::new("gossip.age_of_information_s.mean", Seconds, Less, |s| of(s.sections.gossip.as_ref(), |found| found.age_of_information_s.mean))
        .means("mean age of the newest update that a member has").column(ColumnGroup::Gossip, "age of information").ranked(29).compared(),
    Metric::new("gossip.messages", Plain, Less, |s| of(s.sections.gossip.as_ref(), |found| found.messages))
        .means("number of messages per update and member").column(ColumnGroup::Gossip, "msgs/update").ranked(30).compared(),
    Metric::new("gossip.sent_bytes", Plain, Less, |s| of(s.sections.gossip.as_ref(), |found| found.sent_bytes))
        .means("number of bytes sent per update and member").column(ColumnGroup::Gossip, "bytes/update").compared(),
    Metric::new("detection.detected", Share, More, |s| of(s.sections.detection.as_ref(), |found| found.detected))
        .means("share of the crashes that another member detected").column(ColumnGroup::Gossip, "detected").ranked(31).compared(),
    Metric::new("detection.detected_s.mean", Seconds, Less, |s| of(s.sections.detection.as_ref(), |found| found.detected_s.mean))
        .means("mean time from a crash until another member declared the crashed one dead")
        .column(ColumnGroup::Gossip, "detection").ranked(32).compared(),
    Metric::new("detection.known", Share, More, |s| of(s.sections.detection.as_ref(), |found| found.known))
        .means("share of the crashes known to all members that were up before the restart or the end of the run")
        .column(ColumnGroup::Gossip, "known").ranked(33).compared(),
    Metric::new("detection.known_s.mean", Seconds, Less, |s| of(s.sections.detection.as_ref(), |found| found.known_s.mean))
        .means("mean time from a crash until all members that were up considered the crashed one dead, if all did in time")
        .column(ColumnGroup::Gossip, "known to all").ranked(33).compared(),
    Metric::new("detection.false_suspicions", Plain, Less, |s| of(s.sections.detection.as_ref(), |found| found.false_suspicions))
        .means("number of false suspicions per member and hour").column(ColumnGroup::Gossip, "false suspicions").compared(),
    Metric::new("detection.false_deaths", Plain, Less, |s| of(s.sections.detection.as_ref(), |found| found.false_deaths))
        .means("number of false deaths per member and hour").column(ColumnGroup::Gossip, "false deaths").ranked(34).compared(),
    Metric::new("detection.false_deaths_of_sound", Plain, Less, |s| of(s.sections.detection.as_ref(), |found| found.false_deaths_of_sound))
        .means("number of false deaths of members at which no fault is aimed, per member and hour")
        .column(ColumnGroup::Gossip, "of sound members").compared(),
    Metric::new("detection.messages", Plain, Less, |s| of(s.sections.detection.as_ref(), |found| found.messages))
        .means("number of messages per member and second").column(ColumnGroup::Gossip, "msgs/s").ranked(35).compared(),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handling::ROLES;
    use crate::results::{
        ActorLoad, ClassResults, Deadlines, Graphs, InterferenceMet, JobTimes, PolicySections, SharedNodes,
    };

    /// A summary in which no two numbers are the same.
    fn numbered() -> (Summary, serde_json::Value) {
        fn number(value: &mut serde_json::Value, next: &mut u32) {
            if let Some(map) = value.as_object_mut() {
                map.values_mut().for_each(|value| number(value, next));
            } else if value.is_number() {
                *next += 1;
                *value = (*next).into();
            }
        }
        let times = JobTimes { unqueued: Some(0.0), ..JobTimes::default() };
        let summary = Summary {
            times,
            classes: [("a".to_owned(), ClassResults { times, ..ClassResults::default() })].into(),
            deadlines: Some(Deadlines::default()),
            graphs: Some(Graphs::default()),
            sections: PolicySections::every(),
            interference: Some(InterferenceMet::default()),
            actors: ROLES.map(|role| (role.to_owned(), ActorLoad::default())).into(),
            ..Summary::default()
        };
        let mut value = serde_json::to_value(summary).unwrap();
        number(&mut value, &mut 0);
        let shared = SharedNodes::default();
        let mut of_shared = serde_json::json!({ "shared": shared });
        number(&mut of_shared, &mut 10_000);
        let read = serde_json::from_value(value.clone()).unwrap();
        value["shared"] = of_shared["shared"].clone();
        (read, value)
    }

    fn at<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
        key.split('.').try_fold(value, |at, part| at.get(part))
    }

    /// A row whose key names one number of the results reads that number, of all jobs and of a class.
    #[test]
    fn each_row_reads_the_number_of_its_key() {
        let (summary, value) = numbered();
        let shared =
            Summary { shared: serde_json::from_value(value["shared"].clone()).unwrap(), ..summary.clone() };
        let mut plain = 0;
        for metric in METRICS.iter().filter(|metric| !metric.key.contains(' ')) {
            plain += 1;
            let summary = if metric.key.starts_with("shared.") { &shared } else { &summary };
            let expected = at(&value, metric.key).and_then(serde_json::Value::as_f64);
            assert_eq!(Some((metric.value)(summary)), expected, "{}", metric.key);
            if metric.by_class {
                let of_class = (metric.value)(&summary.for_class("a").unwrap());
                let expected = at(&value["classes"]["a"], metric.key).and_then(serde_json::Value::as_f64);
                assert_eq!(Some(of_class), expected, "{} of a class", metric.key);
            }
        }
        assert!(plain > 50, "{plain}");
    }

    #[test]
    fn keys_and_headings_are_unique_and_units_agree_with_keys() {
        for (at, metric) in METRICS.iter().enumerate() {
            let before = &METRICS[..at];
            assert!(before.iter().all(|other| other.key != metric.key), "{}", metric.key);
            assert!(!metric.meaning.is_empty(), "{}", metric.key);
            if let Some(column) = metric.column {
                let heading =
                    |other: &Metric| other.column.is_some_and(|other| other.heading == column.heading);
                assert!(!before.iter().any(heading), "{}", column.heading);
            }
            if !metric.key.contains(' ') {
                let named = |end: &str| metric.key.split('.').any(|part| part.ends_with(end));
                assert_eq!(metric.unit == Seconds, named("_s"), "{}", metric.key);
                assert_eq!(metric.unit == Hours, named("_h"), "{}", metric.key);
            }
        }
    }

    #[test]
    fn times_of_jobs_are_censored_and_counts_are_not() {
        let censored: std::collections::BTreeSet<_> = censored_sections().collect();
        let sections = [
            "bounded_slowdown",
            "drain_s",
            "graphs",
            "job_wait_s",
            "longest_s",
            "makespan_s",
            "over_10x",
            "response_s",
            "slowdown",
            "unqueued",
            "wait_s",
        ];
        assert_eq!(censored, sections.into());
        assert!(is_censored("classes.a.response_s.p1".split('.')) && !is_censored(["jobs", "failed"]));
    }
}
