//! The results schema: the measurements of a run, as JSON lines and as rows.
//!
//! A [`RunLine`] is one line of `summary.jsonl` and of `--json`: one cell, one policy, one seed. Its keys are a
//! contract. Times are emulated seconds; job percentiles are exact, interpolated linearly between order statistics;
//! task waits are computed from a histogram of three significant digits.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::Span;

use crate::fingerprint;

use super::distribution::{Brief, Distribution, NanIsNull, Spread};
use super::{
    ActorLoad, CacheRow, Certificate, ClaimResult, ClaimsLine, CoreRow, Deadlines, DecisionRow, Graphs,
    Injected, InterferenceMet, MeasuredWindow, PolicySections, ScheduledSpan, SharedNodes, Unsettled,
};

/// Version of this schema; raised whenever a key changes its meaning.
pub const SCHEMA: u32 = 2;

/// Sweep values of a cell: dotted key to value, in the order of the keys.
pub type Cell = BTreeMap<String, serde_json::Value>;

/// Swept values in words, as `load = 0.8, order = 2`; empty if nothing is swept.
pub fn cell_name(cell: &Cell) -> String {
    let words = cell.iter().map(|(key, value)| format!("{key} = {}", in_words(value)));
    words.collect::<Vec<_>>().join(", ")
}

/// A policy and its cell in words, as `sparrow, load = 0.8`.
pub fn point_name(policy: &str, cell: &Cell) -> String {
    let cell = cell_name(cell);
    let comma = if cell.is_empty() { "" } else { ", " };
    format!("{policy}{comma}{cell}")
}

/// A run in words, as `sparrow, load = 0.8, seed 3`.
pub fn run_name(policy: &str, cell: &Cell, seed: u64) -> String {
    format!("{}, seed {seed}", point_name(policy, cell))
}

/// Whether two swept values are the same, such as `0` and `0.0`, or `10ms` and `10000us`.
pub fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    a == b || canonical(a) == canonical(b)
}

/// The bound up to which an f64 represents every whole number.
const WHOLE: f64 = (1u64 << 53) as f64;

/// The canonical text of a value, equal for values that are the [`same`].
pub fn canonical(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            text.parse::<Span>().map_or_else(|_| value.to_string(), |span| span.to_string())
        }
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let is_exact = number == number.trunc() && number.abs() <= WHOLE;
            if is_exact { (number as i64).to_string() } else { number.to_string() }
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}:{}", canonical(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The text of a value; a string is not quoted.
pub fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value in words: distributions and other tables without braces and quotes (`exponential 62500us`).
pub fn in_words(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_words).collect();
            format!("({})", items.join(", "))
        }
        Value::Object(fields) => {
            // A distribution with a single parameter is written without the parameter's name.
            let words = fields.iter().map(|(name, value)| match value.as_object() {
                Some(inner) if inner.len() < 2 => {
                    let parameter = inner.values().map(|value| format!(" {}", in_words(value)));
                    format!("{name}{}", parameter.collect::<String>())
                }
                _ => format!("{name} {}", in_words(value)),
            });
            words.collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The id of a run: a hash of everything that the run depends on, 16 hex digits. Equal JSON values have equal ids.
///
/// Hashes the canonical text (object keys are sorted).
pub fn run_id(depends_on: &serde_json::Value) -> String {
    fingerprint::folded(depends_on.to_string().as_bytes())
}

/// The results of one run: one cell, one policy, one seed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Experiment file without folder `experiments` and suffix, such as `latin-square/fig6`.
    pub experiment: String,
    /// Label of the policy.
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Seed of this replication.
    pub seed: u64,
    /// The measured window, which the other results are about; absent if the whole run is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MeasuredWindow>,
    /// The response times of the first and of the last tenth of the measured jobs by arrival. Present only if they
    /// differ beyond noise, because the run warms up or its load changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<Unsettled>,
    /// Counts of jobs.
    pub jobs: JobCounts,
    /// Counts of tasks.
    pub tasks: TaskCounts,
    /// Counts of copies.
    pub copies: CopyCounts,
    /// Times of all jobs.
    #[serde(flatten)]
    pub times: JobTimes,
    /// The times of each class of jobs, by its label. The labels are `slo` and `be` where the workload has a section
    /// `slo`, `short` and `long` where it has a cutoff, and the names of the classes of a mix. Empty with a single
    /// class.
    #[serde(default)]
    pub classes: BTreeMap<String, ClassResults>,
    /// Time from the first arrival to the last completion or, in a run that did not finish, to the last event. Covers
    /// the whole run, also with `run.measure`.
    #[serde(with = "NanIsNull")]
    pub makespan_s: f64,
    /// The part of the makespan after the last arrival.
    #[serde(with = "NanIsNull")]
    pub drain_s: f64,
    /// Finished jobs per second: jobs that finished in the measured window or, without one, between the first and the
    /// last arrival. 0 if all arrive at once.
    #[serde(with = "NanIsNull")]
    pub throughput_per_s: f64,
    /// Busy core-seconds over cores × makespan. With a measured window: busy core-seconds in the window over cores ×
    /// its length.
    #[serde(with = "NanIsNull")]
    pub utilization: f64,
    /// Useful share of the cores: busy core-seconds without `copies.wasted_work_s` and `copies.in_progress_s` over
    /// cores × makespan.
    #[serde(with = "NanIsNull")]
    pub goodput: f64,
    /// Deadlines met and missed, and the work of the jobs that ended; absent if no job has a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<Deadlines>,
    /// Results of jobs with dependencies between stages or steps; absent if no job has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<Graphs>,
    /// Counts of messages sent.
    pub messages: Messages,
    /// Sections that only some policies have.
    #[serde(flatten)]
    pub sections: PolicySections,
    /// Values that the program of a policy in another language recorded, by name; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Spread>,
    /// Number of schedulers of the cluster that a central policy does not use; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused_schedulers: Option<u32>,
    /// Load of the actors that take time for messages, by role; absent if actors take no time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actors: BTreeMap<String, ActorLoad>,
    /// Use of shared nodes; absent if nodes are not shared. `utilization` and `goodput` then refer to their slots
    /// (`pods`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedNodes>,
    /// Requested against achieved behaviour, for real-time runs.
    pub fidelity: Option<Certificate>,
    /// Interference that the cores met; absent without interference, or if a single core had over a million slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<InterferenceMet>,
    /// Scheduled injections that began before the run ended; absent if there are none. The schedule is the same under
    /// every policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduled: Vec<ScheduledSpan>,
    /// Interference injected during the run; absent if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<Injected>,
    /// Reason for which the run was executed again, and the hosts; absent if it was executed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_again: Option<String>,
    /// Cost of the run.
    pub engine: Engine,
}

impl Summary {
    /// The run in words: see [`run_name`].
    pub fn name(&self) -> String {
        run_name(&self.policy, &self.cell, self.seed)
    }

    /// Whether results count a job.
    pub fn measures(&self, job: u32) -> bool {
        let of = |window: MeasuredWindow| window.warm_up..window.warm_up + self.jobs.submitted;
        self.window.is_none_or(|window| of(window).contains(&job.into()))
    }

    /// Whether this is a real-time run with a degraded certificate.
    pub fn is_degraded(&self) -> bool {
        self.fidelity.as_ref().is_some_and(Certificate::is_degraded)
    }

    /// Whether the certificate is degraded or interference was injected.
    pub fn has_departed(&self) -> bool {
        self.is_degraded() || !self.injections.is_empty()
    }

    /// The summary with the jobs of one class in place of all jobs. Job counts are zero if the run did not count
    /// unfinished jobs by class. `None` if there is no such class.
    pub fn for_class(&self, label: &str) -> Option<Self> {
        let ClassResults { jobs, not_finished, times } = *self.classes.get(label)?;
        let jobs = not_finished.map_or_else(JobCounts::default, |unfinished| JobCounts {
            submitted: jobs,
            finished: jobs.saturating_sub(unfinished),
            failed: 0,
            unfinished,
        });
        Some(Self { jobs, times, ..self.clone() })
    }
}

/// The times of all jobs, or of the jobs of a class.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobTimes {
    /// Response times of finished jobs: from the arrival at the client until the client is notified of the end of the
    /// job or, with several stages, of the stage that ends last.
    pub response_s: Distribution,
    /// Wait of tasks: from the arrival of the job, or the submission of its stage, to the start of the copy that
    /// finished first. Under a policy that runs several copies of a task it includes the time of slower copies that
    /// started earlier.
    pub wait_s: Brief,
    /// Wait of jobs that have started: from the arrival to the start of the first task of any stage.
    #[serde(default = "unmeasured")]
    pub job_wait_s: Brief,
    /// Slowdown of finished jobs: response time over the work of the longest task (`longest_s`), or over `alone` where
    /// the class of a mix states `alone`.
    pub slowdown: Brief,
    /// Bounded slowdown of finished jobs: response time over the base of `slowdown` or `run.record.slowdown_bound`,
    /// whichever is longer; at least 1.
    #[serde(default = "unmeasured")]
    pub bounded_slowdown: Brief,
    /// Work of the longest task of finished jobs (attempt 0 on a healthy core), summed along the critical path of
    /// stages. `response_s.p99 / longest_s.p99` is the slowdown that the Pigeon paper prints, a ratio of percentiles.
    pub longest_s: Brief,
    /// Share of the finished jobs that took more than ten times as long as their longest task (`longest_s`).
    #[serde(with = "NanIsNull")]
    pub over_10x: f64,
    /// Share of the finished jobs that took at most `run.record.unqueued` longer than their longest task (`longest_s`);
    /// absent without `run.record.unqueued`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unqueued: Option<f64>,
}

/// Default of times that results of older versions lack.
const fn unmeasured() -> Brief {
    Brief::UNMEASURED
}

/// Counts and times of the jobs of one class.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassResults {
    /// Jobs that arrived.
    pub jobs: u64,
    /// Jobs that failed or were open when the run ended; absent in results of older versions, which did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_finished: Option<u64>,
    /// Times of the jobs of the class.
    #[serde(flatten)]
    pub times: JobTimes,
}

/// Counts of jobs: submitted = finished + failed + unfinished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobCounts {
    /// Jobs that arrived.
    pub submitted: u64,
    /// Jobs whose client was notified of their end.
    pub finished: u64,
    /// Jobs that were killed because they ran longer than requested.
    pub failed: u64,
    /// Jobs still open when the run ended.
    pub unfinished: u64,
}

/// Counts of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskCounts {
    /// Tasks of jobs that arrived.
    pub submitted: u64,
    /// Tasks with at least one finished copy.
    pub finished: u64,
}

/// Counts of copies: started = finished + preempted + lost + in_progress.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyCounts {
    /// Copies that started.
    pub started: u64,
    /// Copies that ran to their end.
    pub finished: u64,
    /// Copies stopped, or no longer needed when the run ended.
    pub preempted: u64,
    /// Copies lost in a crash of their node.
    pub lost: u64,
    /// Open copies of tasks without a finished copy at the end of a run that did not finish.
    #[serde(default)]
    pub in_progress: u64,
    /// Core time spent on copies that were preempted, lost, or finished second. Tables show it as a share of `busy_s`.
    pub wasted_work_s: f64,
    /// Core time spent on copies in progress: neither useful nor wasted. Tables show it as a share of `busy_s`.
    #[serde(default)]
    pub in_progress_s: f64,
    /// Core time spent on all copies: useful, wasted and in progress. 0 if not recorded.
    #[serde(default)]
    pub busy_s: f64,
    /// Number of suspensions of copies, which keep their progress.
    #[serde(default)]
    pub suspensions: u64,
    /// Time from suspension to resumption of copies, summed.
    #[serde(default)]
    pub suspended_s: f64,
}

impl CopyCounts {
    /// Counts a copy that has ended, and the core time spent on it. A suspended copy has not ended.
    pub(crate) fn count(&mut self, how: CopyEnd, spent_s: f64) {
        let (copies, work) = match how {
            CopyEnd::First => return self.finished += 1,
            CopyEnd::Second => (&mut self.finished, &mut self.wasted_work_s),
            CopyEnd::Suspended => return,
            CopyEnd::Preempted => (&mut self.preempted, &mut self.wasted_work_s),
            CopyEnd::Lost => (&mut self.lost, &mut self.wasted_work_s),
            CopyEnd::InProgress => (&mut self.in_progress, &mut self.in_progress_s),
        };
        *copies += 1;
        *work += spent_s;
    }
}

/// Messages that crossed the emulated network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// The policy's own messages sent, recovery not included.
    pub total: u64,
    /// Messages that the emulated network lost, and stream messages returned as undeliverable. A message of several
    /// datagrams, such as a batch of Murmuration's, is counted as lost if its first datagram is. Losses in the real
    /// network between hosts are in `fidelity.hosts`.
    pub dropped: u64,
    /// Messages that actors send to repair losses, and transmissions repeated by streams of the emulated network.
    /// Retransmissions of QUIC between hosts are not counted.
    pub recovery: u64,
    /// Bytes of all these messages and repeated transmissions on the emulated network, including 57 bytes of headers
    /// each. Each part of a message that is sent in several parts has these headers.
    pub bytes: u64,
    /// Messages by kind, recovery included.
    pub by_kind: BTreeMap<String, u64>,
}

/// Cost of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    /// Number of events handled.
    pub events: u64,
    /// Hash of the order of events, 16 hex digits; equal seeds give equal hashes in `virtual`.
    pub order_hash: String,
    /// CPU time of the run's thread.
    pub cpu_s: f64,
    /// The part of `cpu_s` spent on planning by schedulers, for `3sigma`, `prio` and `distsched`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning_cpu_s: Option<f64>,
    /// Wall time of the run.
    pub wall_s: f64,
    /// Peak resident memory of the process so far.
    pub peak_rss_bytes: u64,
}

/// A run, as a line of `summary.jsonl` and of `--json`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct RunLine<'a> {
    /// Id of the run, the same in the manifest and in all tables.
    pub run: &'a str,
    /// One job in this many is sampled into `tasks.parquet`; 0 if no job is.
    pub sampled_one_in: u32,
    /// Offered load ρ of the cell: the share of the cores' time under interference that one copy of each task needs.
    /// Null if it is not known; a lower bound where interference is too fine to be summed.
    pub load: Option<f64>,
    /// The summary, whose keys are keys of the line.
    #[serde(flatten)]
    pub summary: &'a Summary,
}

/// A line of `--json`, of `summary.jsonl` and of `claims.jsonl`, as `volary schema results` describes it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "volary results, a line")]
pub enum Line {
    /// A run: one cell, one policy, one seed. All lines of `summary.jsonl` are runs.
    Run(RunLine<'static>),
    /// The claims, at the end of `--json`.
    Claims(ClaimsLine),
    /// A claim. All lines of `claims.jsonl` are claims.
    Claim(ClaimResult),
}

/// One finished or unfinished job, a row of `jobs.parquet`.
#[derive(Clone, PartialEq, Debug)]
pub struct JobRow {
    /// Id of the job.
    pub job: u32,
    /// Time of arrival, s.
    pub arrival: f64,
    /// Time from the arrival to the start of the first task, s; NaN if none has started.
    pub wait: f64,
    /// Response time, s; NaN if unfinished.
    pub response: f64,
    /// Work of the job's longest task, summed along the critical path of its stages, s.
    pub longest: f64,
    /// Response time of the job alone in the cluster, s, if the workload states it.
    pub alone: Option<f64>,
    /// Number of tasks, over all stages.
    pub tasks: u32,
    /// Label of the job's class.
    pub class: Arc<str>,
}

impl JobRow {
    /// Response time over `alone` or, without `alone`, over the work of the longest task; `None` if the job is
    /// unfinished or has no work.
    pub fn slowdown(&self) -> Option<f64> {
        let least = self.alone.unwrap_or(self.longest);
        (self.response.is_finite() && least > 0.0).then(|| self.response / least)
    }

    /// Response time over the base of the slowdown or `bound` seconds, whichever is longer; at least 1. `None` as for
    /// `slowdown`.
    pub fn bounded_slowdown(&self, bound: f64) -> Option<f64> {
        let least = self.alone.unwrap_or(self.longest).max(bound);
        (self.response.is_finite() && least > 0.0).then(|| (self.response / least).max(1.0))
    }
}

/// One execution on a core, a row of `tasks.parquet` and a slice of the timeline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CopyRow {
    /// Id of the job.
    pub job: u32,
    /// Number of the task in the job; tasks of later stages follow tasks of earlier stages.
    pub task: u32,
    /// Number of the attempt, from 0.
    pub attempt: u32,
    /// Number of the core among all cores of the run.
    pub core: u32,
    /// Start of the execution, s.
    pub start: f64,
    /// End of the execution, s.
    pub end: f64,
    /// The kind of its end.
    pub end_kind: CopyEnd,
}

/// The kinds of ends of executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyEnd {
    /// The copy was the first finished copy of its task.
    First,
    /// The copy finished after another copy of its task.
    Second,
    /// The copy was stopped and lost its progress.
    Preempted,
    /// The copy was stopped, to be resumed.
    Suspended,
    /// The copy was lost in a crash of its node.
    Lost,
    /// The copy was open when the run ended, and its task was unfinished.
    InProgress,
}

impl CopyEnd {
    /// All kinds of ends, in the order of legends.
    pub const ALL: [Self; 6] =
        [Self::First, Self::Second, Self::Preempted, Self::Suspended, Self::Lost, Self::InProgress];
}

/// A message between two endpoints of the cluster, an arrow of the timeline.
#[derive(Clone, PartialEq, Debug)]
pub struct MessageRow {
    /// Time of sending, s.
    pub sent: f64,
    /// Time at which the receiver handled the message, s.
    pub delivered: f64,
    /// The sender, such as `scheduler 3`.
    pub from: String,
    /// The receiver, such as `node 7`.
    pub to: String,
    /// Kind of the message, such as `probe.reserve`.
    pub kind: String,
    /// The job that the message concerns, if any.
    pub job: Option<u32>,
}

/// The load of a cluster from a time on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoadRow {
    /// Time of the sample, s.
    pub time: f64,
    /// Tasks of arrived jobs that have not started.
    pub waiting: u64,
    /// Cores that run a copy.
    pub busy: u32,
}

/// A stretch in which a core was slower than when healthy while it executed a copy of a sampled job, a row of
/// `slowdowns.parquet`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowRow {
    /// Number of the core among all cores of the run.
    pub core: u32,
    /// Start of the stretch, s.
    pub start: f64,
    /// End of the stretch, s.
    pub end: f64,
    /// Slowdown of the core, above 1.
    pub slowdown: f64,
}

/// Maximum number of rows about slow cores kept of a run.
pub const MOST_SLOW: usize = 1 << 16;

/// Maximum number of degraded intervals kept of a run.
pub const MOST_BURSTS: usize = 10_000;

/// All measurements of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The summary line.
    pub summary: Summary,
    /// Every job, in order of id.
    pub jobs: Vec<JobRow>,
    /// Executions of a sample of jobs, in order of end.
    pub copies: Vec<CopyRow>,
    /// One job in this many is sampled into `copies`.
    pub sampled_one_in: u32,
    /// Slow stretches of cores within the executions of `copies`, in their order; at most [`MOST_SLOW`].
    pub slow: Vec<SlowRow>,
    /// Executions on the first few cores from the start of the run, for timelines; complete within the window.
    pub timeline: Vec<CopyRow>,
    /// The node of each of the timeline's cores.
    pub timeline_nodes: Vec<u32>,
    /// Messages from and to the nodes of the timeline's cores, in order of time.
    pub messages: Vec<MessageRow>,
    /// Number of later messages that the timeline had no room for.
    pub messages_left_out: u64,
    /// Waiting tasks and running copies over the timeline, of the whole cluster.
    pub load: Vec<LoadRow>,
    /// Degraded intervals of the timeline's cores: (core, start s, end s, slowdown factor).
    pub bursts: Vec<(u32, f64, f64, f64)>,
    /// Observations of the caches of schedulers, by time and then by scheduler.
    pub looks: Vec<CacheRow>,
    /// Sampled decisions by caches.
    pub decisions: Vec<DecisionRow>,
    /// Times from an update until a member had it, s, in ascending order, each with the number of such deliveries.
    pub deliveries: Vec<(f64, u64)>,
    /// Work of real cores, by core and time; empty if copies burnt no real cores.
    pub cores: Vec<CoreRow>,
    /// Notes for reports: faults, injections, warnings.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn distributions_are_written_in_words() {
        for (value, words) in [
            (json!({"exponential": {"mean": "62500us"}}), "exponential 62500us"),
            (json!({"gamma": {"shape": 100, "mean": "10ms"}}), "gamma mean 10ms shape 100"),
            (json!({"uniform": {"low": "1500ms", "high": "2s"}}), "uniform high 2s low 1500ms"),
            (json!({"latin-square": {}}), "latin-square"),
            (json!(["1000ns", 2]), "(1000ns, 2)"),
            (json!(0.5), "0.5"),
            (json!(null), "null"),
        ] {
            assert_eq!(in_words(&value), words);
        }
    }
}
