//! `[workload.…]` and `[service]` of an experiment file: the jobs that arrive, and their work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{DistributionSpec, Span};
use volary_netem::Size;

use super::by::By;
use super::gossip::Gossip;
use super::read::{ColumnNames, Reading, SizeBy, Zone};
use super::slo::Slo;
use super::trace::WorkloadError;
use super::usage::UsageSection;
use super::work::Share;

/// The source of jobs: exactly one of `[workload.synthetic]`, `[workload.mix]`, `[workload.trace]`,
/// `[workload.yahoo-like]`, `[workload.cloudera-like]`, or
/// `[workload.gossip]`, which has no jobs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// Jobs drawn from distributions; needs `service.demand`.
    Synthetic(Synthetic),
    /// Jobs of several classes. A job is a graph of stages, each with its own distributions.
    Mix(Mix),
    /// Jobs read from a file.
    Trace(TraceSpec),
    /// Jobs with the distributions of the Yahoo trace of the Hawk, Eagle, Kairos, Pigeon and Murmuration papers.
    YahooLike(Like),
    /// Jobs with the distributions of the Cloudera-c trace of the same papers.
    ClouderaLike(Like),
    /// Updates that spread among members, in place of jobs.
    Gossip(Gossip),
}

/// A value of the section about jobs, which is named `$jobs`; `None` without jobs.
macro_rules! of_jobs {
    ($spec:expr, $jobs:ident => $value:expr) => {
        match $spec {
            WorkloadSpec::Synthetic($jobs) => Some($value),
            WorkloadSpec::Mix($jobs) => Some($value),
            WorkloadSpec::Trace($jobs) => Some($value),
            WorkloadSpec::YahooLike($jobs) | WorkloadSpec::ClouderaLike($jobs) => Some($value),
            WorkloadSpec::Gossip(_) => None,
        }
    };
}

impl WorkloadSpec {
    /// Whether jobs are of a short and a long class.
    pub fn has_long(&self) -> bool {
        match self {
            Self::Synthetic(spec) => spec.cutoff.is_some(),
            Self::Trace(spec) => spec.cutoff.is_some(),
            Self::Mix(mix) => mix.class.iter().any(|class| class.long && class.weight > 0.0),
            // The traces behind the generators have a cutoff of their own.
            Self::YahooLike(_) | Self::ClouderaLike(_) => true,
            Self::Gossip(_) => false,
        }
    }

    /// The section about updates, in place of jobs.
    pub const fn gossip(&self) -> Option<&Gossip> {
        if let Self::Gossip(spec) = self { Some(spec) } else { None }
    }

    /// The keys `speedup` and `load` of the section; `None` without jobs.
    pub const fn pace(&mut self) -> Option<(&mut f64, &mut Option<f64>)> {
        of_jobs!(self, jobs => (&mut jobs.speedup, &mut jobs.load))
    }

    /// Number of steps of a job.
    pub fn steps(&self) -> u32 {
        of_jobs!(self, jobs => jobs.synchronous).flatten().unwrap_or(1)
    }

    /// The section about SLO jobs.
    pub fn slo(&self) -> Option<&Slo> {
        of_jobs!(self, jobs => jobs.slo.as_ref()).flatten()
    }

    /// The section about SLO jobs, for the plan to complete.
    pub fn slo_mut(&mut self) -> Option<&mut Slo> {
        of_jobs!(self, jobs => jobs.slo.as_mut()).flatten()
    }

    /// The name of the section below `workload`.
    pub const fn section(&self) -> &'static str {
        match self {
            Self::Synthetic(_) => "synthetic",
            Self::Mix(_) => "mix",
            Self::Trace(_) => "trace",
            Self::YahooLike(_) => "yahoo-like",
            Self::ClouderaLike(_) => "cloudera-like",
            Self::Gossip(_) => "gossip",
        }
    }
}

/// `[workload.synthetic]`: jobs drawn from distributions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// Number of jobs that arrive, at least one.
    pub jobs: u32,
    /// Tasks of a job. Samples of a distribution are rounded to whole numbers of at least one. A distribution whose
    /// bounds are below one is refused.
    pub tasks: DistributionSpec<f64>,
    /// Gap before each arrival.
    pub interarrival: DistributionSpec<Span>,
    /// Divides the arrival times: 2 makes jobs arrive twice as fast.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub speedup: f64,
    /// In place of `speedup`: the offered load, which is the share of the cores' time that one copy of each task needs,
    /// as `volary plan` prints it. Arrival times are scaled to reach this load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// A job whose estimate (the mean over its tasks) is at least this long is of the long class. Without a cutoff all
    /// jobs are short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff: Option<Span>,
    /// Gives each job a deadline: its arrival plus (1 + slack) times the work of its longest task
    /// (3Sigma, section 4.3: slack of 0.2 to 0.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_slack: Option<DistributionSpec<f64>>,
    /// The jobs that have a deadline and may prefer nodes; if absent, only `deadline_slack` gives deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// Whether jobs are gangs: all tasks of a job have equal work, and a policy that knows about gangs starts them
    /// together. A job with more tasks than the cluster has cores is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gang: bool,
    /// Whether gangs with more tasks than the cluster has cores are left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub filter: bool,
    /// Number of first jobs that are history: they have ended before the run, which begins at the arrival of the last
    /// of these jobs. Predictors of run times know them. They are not submitted, and results do not include them.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub pretrain: u32,
    /// Number of steps of a job, at least one, for synchronous jobs such as training. Each task does an equal part of
    /// its work in each step. A step is submitted when the client is notified that all tasks of the previous step have
    /// ended. Policies see each step as a job; results see all of them as one job. If absent a job has one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronous: Option<u32>,
}

/// `[workload.mix]`: jobs of several classes, like the mixes of the Kairos paper (Table 1).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Number of jobs that arrive, at least one.
    pub jobs: u32,
    /// Gap before each arrival.
    pub interarrival: DistributionSpec<Span>,
    /// Divides the arrival times: 2 makes jobs arrive twice as fast.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub speedup: f64,
    /// In place of `speedup`: the offered load, which is the share of the cores' time that one copy of each task needs,
    /// as `volary plan` prints it. Arrival times are scaled to reach this load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The jobs that have a deadline and may prefer nodes; if absent, only `deadline_slack` gives deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// Whether jobs are gangs: all tasks of a job have equal work, and a policy that knows about gangs starts them
    /// together. A job with more tasks than the cluster has cores is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gang: bool,
    /// Whether gangs with more tasks than the cluster has cores are left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub filter: bool,
    /// Number of first jobs that are history: they have ended before the run, which begins at the arrival of the last
    /// of these jobs. Predictors of run times know them. They are not submitted, and results do not include them.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub pretrain: u32,
    /// Number of steps of a job, at least one, for synchronous jobs such as training. Each task does an equal part of
    /// its work in each step. A step is submitted when the client is notified that all tasks of the previous step have
    /// ended. Policies see each step as a job; results see all of them as one job. If absent a job has one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronous: Option<u32>,
    /// The classes, at least one. The probability of a class is in proportion to its weight.
    #[serde(default)]
    pub class: Vec<MixClass>,
    /// In place of `class`: a file with the classes, as `[[class]]` tables, relative to the experiment file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<PathBuf>,
}

/// `[[workload.mix.class]]`: a class of jobs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixClass {
    /// Name of the class in results, claims and reports: letters, digits, `-` and `_`.
    pub name: String,
    /// Share of the jobs that are of this class, relative to the other classes.
    pub weight: f64,
    /// Stages of a job, at least one. A stage waits for the stage above it in the list, or for the stages in `after`,
    /// and is submitted when the client is notified that they have ended. Policies see each stage as a job; results see
    /// all of them as one job.
    pub stages: Vec<MixStage>,
    /// Response time of a job of the class alone in the cluster, the base of its slowdown. If absent the base is the
    /// work of the longest task of each stage, summed along the longest path of dependent stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Span>,
    /// Whether policies with classes treat jobs of the class as long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub long: bool,
    /// Number of names that jobs of the class share, from 1 to the number of jobs. A name has a mean work for each
    /// stage, drawn once from the distribution of that stage; jobs of the name are alike, up to `spread`. As in a
    /// trace, names are a feature from which run times can be predicted. If absent jobs have no names, and each job
    /// draws its own work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<u32>,
    /// Number of users, from 1 to the number of names: each name belongs to one user. If absent users are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Share of the jobs that reuse one of the `names`, drawn with equal probability; all other jobs have unique names.
    /// If absent all jobs recur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<Share>,
    /// Coefficient of variation of the work of jobs of a name, from 0 to 10: all stages of a job have the mean work of
    /// its name times one log-normal factor of mean 1. 0 if absent, so that jobs of a name are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

/// A stage of a class of jobs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixStage {
    /// Tasks of the stage. Samples of a distribution are rounded to whole numbers of at least one.
    pub tasks: DistributionSpec<f64>,
    /// Distribution of the work of the stage's tasks, in place of `service.demand`; `service.homogeneous` and
    /// `service.correlated` say which tasks and copies have equal work.
    pub demand: DistributionSpec<Span>,
    /// The stages that this stage waits for, by their numbers in the list, from 0; they must be above it in the list. A
    /// stage with an empty list begins with the job. If absent the stage waits for the one above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<u32>>,
}

/// Defines sections whose jobs follow a trace, with their common keys.
macro_rules! following {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$about])* pub $field: $ty,)*
            /// Number of jobs that arrive: the first jobs of the file, or generated jobs. If absent all jobs of the
            /// trace (published: 24,262 Yahoo, 21,030 Cloudera).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub jobs: Option<u32>,
            /// Divides the arrival times, including those of `interarrival`: 1000 makes jobs arrive a thousand times
            /// faster.
            #[serde(default = "one")]
            pub speedup: f64,
            /// In place of `speedup`: the offered load, which is the share of the cores' time that one copy of each
            /// task needs, as `volary plan` prints it. Arrival times are scaled to reach this load. The scale is
            /// computed for the jobs of the first seed; replications of a generator with other seeds differ in load.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub load: Option<f64>,
            /// Redraws the gaps between arrivals; the jobs keep their order.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub interarrival: Option<DistributionSpec<Span>>,
            /// A job whose estimate is at least this long is of the long class. If absent a generator uses the
            /// published boundary, and all jobs of a file are short.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cutoff: Option<Span>,
            /// Gives each job a deadline: its arrival plus (1 + slack) times the work of its longest task, or its
            /// critical path if its tasks wait for others.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub deadline_slack: Option<DistributionSpec<f64>>,
            /// The jobs that have a deadline and may prefer nodes; if absent, only `deadline_slack` gives deadlines.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub slo: Option<Slo>,
            /// Whether jobs are gangs: all tasks of a job have equal work, the mean over the tasks of the trace, and a
            /// policy that knows about gangs starts them together. A job with more tasks than the cluster has cores is
            /// refused. If absent the jobs of an `.swf` trace are gangs, and others are not.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gang: Option<bool>,
            /// Whether gangs with more tasks than the cluster has cores are left out.
            #[serde(default, skip_serializing_if = "is_false")]
            pub filter: bool,
            /// Number of first jobs that are history: they have ended before the run, which begins at the arrival of
            /// the last of these jobs. Predictors of run times know them. They are not submitted, and results do not
            /// include them.
            #[serde(default, skip_serializing_if = "is_nought")]
            pub pretrain: u32,
            /// Number of steps of a job, at least one, for synchronous jobs such as training. Each task does an equal
            /// part of its work in each step. A step is submitted when the client is notified that all tasks of the
            /// previous step have ended. Policies see each step as a job; results see all of them as one job. If absent
            /// a job has one step.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub synchronous: Option<u32>,
        }
    )*};
}

following! {
    /// `[workload.trace]`: jobs read from a `.tr`, `.swf` or job-level `.csv` file, plain or compressed (xz,
    /// zstd, gzip).
    TraceSpec {
        /// The file, searched beside the experiment file, then in the folders of `VOLARY_TRACES`. A `.tr` file
        /// (`arrival_s num_tasks mean_s dur_1 … dur_n`) or `.swf` file (Standard Workload Format) has one job per line.
        /// A table (`.csv`, `.jsonl`, `.parquet`) has one row per job; the columns of many published tables are known.
        /// Any of them may be compressed as `.xz`, `.zst` or `.gz`. `volary trace convert` makes a `.tr` file from
        /// Google's event tables, from Alibaba's batch tables, and from tables with other columns.
        file: PathBuf,
        /// Columns of a table, as `--columns` of `volary trace` names them: "submit=at,run=took:min,gpus=n", or the
        /// name of a known table such as "philly". If absent the header must have known names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<ColumnNames>,
        /// Zone of dates that state none: a name of the IANA database, such as "UTC" or "Europe/Stockholm".
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<Zone>,
        /// Column of a table from which the number of tasks of a job is taken, rounded up: "gpus" or "cores". Such jobs
        /// are gangs, unless `gang` is false. Jobs whose number is zero or missing are left out. If absent a job has
        /// the tasks or nodes that the table states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<SizeBy>,
        /// The feature whose values are the classes of jobs in results, claims, reports and `service.sensitivity`. The
        /// 20 values with the most jobs have classes; other jobs are in `other`, and jobs without a value in `unknown`.
        /// If absent classes are short and long, by `cutoff`. Policies see short and long in any case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
        /// Largest share of malformed rows, from 0 to 1, that are left out with a warning. If absent a malformed row is
        /// an error.
        #[serde(default = "no_share", skip_serializing_if = "is_no_share")]
        skip_bad: Share,
        /// Whether tasks wait for the tasks that the trace names (tables of Alibaba, column `after`). If false all
        /// tasks of a job arrive with it.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        dependencies: bool,
        /// Generator that replaces a missing file; the run then warns about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<Model>,
    }
    /// `[workload.yahoo-like]`, `[workload.cloudera-like]`: jobs with the distributions measured on a published trace.
    Like {}
}

impl TraceSpec {
    /// Options for reading the file.
    pub(super) fn reading(&self) -> Reading {
        let Self { jobs, zone, size, skip_bad, dependencies, .. } = *self;
        Reading { jobs, columns: self.columns.clone(), zone, size, skip_bad, dependencies }
    }

    /// The settings of the generator that replaces a missing file.
    pub fn like(&self) -> Like {
        let Self { jobs, speedup, load, interarrival, cutoff, deadline_slack, .. } = self.clone();
        let Self { slo, gang, filter, pretrain, synchronous, .. } = self.clone();
        Like {
            jobs,
            speedup,
            load,
            interarrival,
            cutoff,
            deadline_slack,
            slo,
            gang,
            filter,
            pretrain,
            synchronous,
        }
    }
}

const fn no_share() -> Share {
    Share::NONE
}

fn is_no_share(share: &Share) -> bool {
    *share == Share::NONE
}

/// A published trace whose distributions are known well enough to generate jobs from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// The Yahoo trace.
    YahooLike,
    /// The Cloudera-c trace.
    ClouderaLike,
}

/// Sensitivity by kind of interference: a factor on the slowdown above 1.
pub type Kinds = BTreeMap<String, f64>;

/// `[service]`: the work that a copy needs on a healthy core.
///
/// The four models of the latin-square paper (Tables III and IV) are the combinations of `homogeneous` and
/// `correlated`. A number between 0 and 1 gives that share of the jobs the property, so 0.5 and 0.5 are the equal
/// mixture of the paper's Fig. 7.
///
/// | | homogeneous | heterogeneous |
/// |---|---|---|
/// | correlated | one draw per job | one draw per task |
/// | uncorrelated | one draw per copy | a mean m per task, then m × (a draw per copy) / mean |
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Service {
    /// Distribution of the work. A synthetic workload needs it; a mix has distributions of its own instead. A trace or
    /// a trace-like generator states the work of its tasks, which a distribution given here replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<DistributionSpec<Span>>,
    /// Whether all tasks of a job, or of a stage, have equal work. Ignored where the trace gives the duration of each
    /// task.
    pub homogeneous: Share,
    /// Whether all copies of a task have equal work.
    pub correlated: Share,
    /// Estimates for estimate-based policies. If absent "exact" where the work follows `demand`, and "mean" where a
    /// trace or a trace-like generator states it, as in the papers that use such traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Run time that the user of a job requests, as a multiple of the work of its longest task: 1 is exact. If absent
    /// the requested time of an `.swf` trace; it is unknown in other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<DistributionSpec<f64>>,
    /// Estimates are rounded down to multiples of this unit, as in simulators that count whole seconds ("1s" in
    /// Murmuration's, Fig. 14). Zero for no rounding.
    #[serde(skip_serializing_if = "is_zero")]
    pub estimate_unit: Span,
    /// Time that a core stays occupied after a copy was stopped before its end: the cost of preemption and of
    /// cancelling redundant copies. It is part of the busy time of the next copy on the core.
    #[serde(skip_serializing_if = "is_zero")]
    pub preemption: Span,
    /// CPU that a task reserves while it runs, in cores: 0.1 is a tenth of a core. Needs `cluster.cpu`. It bounds the
    /// number of tasks that a node runs at once, not their speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Memory that a task reserves while it runs. Needs `cluster.memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Sensitivity of the tasks of each class of jobs to each kind of interference (`interference.kind`): a factor on
    /// the slowdown above 1. With `{ batch = { cache = 0.2 } }` a slowdown of 1.5 is a slowdown of 1.1 for class
    /// `batch`. Classes are those of the results. The factor is 1 for a class or kind that is not listed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sensitivity: BTreeMap<String, Kinds>,
    /// Use of shared nodes by tasks, and their requests. Needs `cluster.shared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSection>,
}

impl Service {
    /// Sensitivity of each class to each kind of interference; empty if no class states any.
    ///
    /// # Errors
    /// If a class does not exist, or a factor is out of range.
    pub(super) fn sensitivities(&self, classes: &[Arc<str>]) -> Result<Arc<[Kinds]>, WorkloadError> {
        let sensitivity = &self.sensitivity;
        for (class, kinds) in sensitivity {
            let key = format!("service.sensitivity.{class}");
            if !classes.iter().any(|label| **label == **class) {
                let why = format!("no jobs are of this class; the classes are {}", classes.join(", "));
                return Err(WorkloadError::config(key, why));
            }
            let wrong = kinds.iter().find(|(_, factor)| !(0.0..1e6).contains(*factor));
            if let Some((kind, factor)) = wrong {
                let why = format!(
                    "a factor on slowdowns is between 0 and a million, not {factor}; 1 changes nothing"
                );
                return Err(WorkloadError::config(format!("{key}.{kind}"), why));
            }
        }
        if sensitivity.is_empty() {
            return Ok(Arc::default());
        }
        Ok(classes.iter().map(|class| sensitivity.get(&**class).cloned().unwrap_or_default()).collect())
    }
}

impl Default for Service {
    fn default() -> Self {
        Self {
            demand: None,
            homogeneous: Share::ALL,
            correlated: Share::ALL,
            estimate: None,
            requested: None,
            estimate_unit: Span::ZERO,
            preemption: Span::ZERO,
            cpu: None,
            memory: None,
            sensitivity: BTreeMap::new(),
            usage: None,
        }
    }
}

/// Estimates of the work of tasks, for estimate-based policies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimate {
    /// The work as far as it is known before a copy runs: exact if copies are equal, else the expectation (the
    /// distribution's mean, or the task's own mean if tasks differ).
    Exact,
    /// The mean of the exact estimates of the job's tasks, or the mean that the trace states.
    Mean,
    /// The default estimate times one factor per job (Murmuration, Fig. 14: uniform between 0.5 and 1.5).
    Error(DistributionSpec<f64>),
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn is_nought(jobs: &u32) -> bool {
    *jobs == 0
}

fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

const fn yes() -> bool {
    true
}

/// serde passes a reference.
const fn is_yes(flag: &bool) -> bool {
    *flag
}

const fn one() -> f64 {
    1.0
}

fn is_one(speedup: &f64) -> bool {
    *speedup == 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        workload: WorkloadSpec,
        #[serde(default)]
        service: Service,
    }

    fn parse(text: &str) -> Result<File, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn all_forms_of_workload_and_service_sections_parse() {
        let file = parse(
            "[workload.synthetic]\njobs = 20_000\ntasks = 100\ninterarrival = { exponential = { mean = \"20ms\" } }\n\
             [service]\ndemand = { exponential = { mean = \"1s\" } }\nhomogeneous = 0.5\ncorrelated = false\n\
             estimate = \"exact\"\n",
        )
        .unwrap();
        let WorkloadSpec::Synthetic(synthetic) = &file.workload else { panic!("{:?}", file.workload) };
        assert_eq!((synthetic.jobs, &synthetic.tasks), (20_000, &DistributionSpec::Constant(100.0)));
        assert_eq!(file.service.homogeneous.part(), 0.5);
        assert_eq!(file.service.correlated, Share::NONE);
        assert_eq!(file.service.estimate, Some(Estimate::Exact));

        let file = parse(
            "[workload.trace]\nfile = \"yahoo.tr.xz\"\njobs = 10_000\nspeedup = 1000\nfallback = \"yahoo-like\"\n\
             [service]\nestimate = { error = { uniform = { low = 0.5, high = 1.5 } } }\n",
        )
        .unwrap();
        let WorkloadSpec::Trace(trace) = &file.workload else { panic!("{:?}", file.workload) };
        assert_eq!((trace.speedup, trace.fallback), (1000.0, Some(Model::YahooLike)));
        assert!(matches!(file.service.estimate, Some(Estimate::Error(_))));
        assert_eq!(file.service.correlated, Share::ALL);

        assert!(matches!(parse("[workload.yahoo-like]").unwrap().workload, WorkloadSpec::YahooLike(_)));
        let mix = "[workload.mix]\njobs = 9\ninterarrival = \"1s\"\n[[workload.mix.class]]\nname = \"a\"\n\
                   weight = 0.3\nstages = [{ tasks = 15, demand = \"51s\" }, { tasks = { uniform = { low = 1, high = 9 \
                   } }, demand = \"34s\" }]\nalone = \"85s\"\n[[workload.mix.class]]\nname = \"b\"\nweight = 1\n\
                   long = true\nstages = [{ tasks = 1, demand = \"1s\" }]\n";
        let WorkloadSpec::Mix(mix) = parse(mix).unwrap().workload else { panic!("{mix}") };
        let [a, b] = &mix.class[..] else { panic!("{mix:?}") };
        assert_eq!((a.stages.len(), a.alone, a.long), (2, Some(Span::from_secs(85)), false));
        assert_eq!((b.name.as_str(), b.weight, b.long), ("b", 1.0, true));

        let like = parse("[workload.cloudera-like]\njobs = 5\n").unwrap().workload;
        assert!(matches!(like, WorkloadSpec::ClouderaLike(Like { jobs: Some(5), .. })));
    }

    #[test]
    fn errors_of_workload_sections_name_the_line() {
        for (text, line, names) in [
            ("[workload.synthetic]\njobs = 1\ntaskz = 2\n", "line 3", "taskz"),
            ("[workload.trace]\nfile = \"a.tr\"\nfallback = \"yahoo\"\n", "line 3", "yahoo-like"),
            ("[workload.mix]\njobs = 1\nclass = []\n", "line 1", "interarrival"),
            ("[workload.yahoolike]\n", "line 1", "yahoo-like"),
            ("[workload.yahoo-like]\n[service]\ncorrelated = 1.5\n", "line 3", "share"),
            ("[workload.yahoo-like]\n[service]\nestimate = \"perfect\"\n", "line 3", "exact"),
        ] {
            let error = parse(text).err().unwrap_or_else(|| panic!("{text} was accepted")).to_string();
            assert!(error.contains(line) && error.contains(names), "{text}: {error}");
        }
    }
}
