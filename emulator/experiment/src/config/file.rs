//! The experiment file as the user writes it. Only its form is checked here.
//!
//! [`RealSection`] is `[run.real]`: copies that burn real cores. [`Repeat`] is the number of replications: a number, or
//! `"auto"`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use volary_actors::base::Span;
use volary_engine::cores::{Interference, RunLength};
use volary_engine::handling::ActorsSection;
use volary_engine::metrics::Recording;
use volary_engine::metrics::RunConfig;
use volary_engine::results::{Origin, Tolerance};
use volary_engine::scenario::{ClusterSection, PolicyEntry};
use volary_engine::workload::{Measure, Service, WorkloadSpec};
use volary_netem::Network;

use crate::number;

/// A whole experiment file.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "volary experiment")]
pub struct File {
    /// Subject of the experiment, in one line.
    pub title: String,
    /// The paper, section and figure that the experiment reproduces.
    #[serde(default)]
    pub source: Option<String>,
    /// Seed of replication 0; replication r has seed + r.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Number of replications.
    #[serde(default)]
    pub repeat: Repeat,
    /// With `repeat = "auto"`: the relative half-width of the paired 95 % interval to reach.
    #[serde(default = "five_percent")]
    pub precision: f64,
    /// The emulated machines.
    pub cluster: ClusterSection,
    /// The jobs that arrive.
    pub workload: WorkloadSpec,
    /// The work of copies.
    #[serde(default)]
    pub service: Service,
    /// Delays, losses and faults of messages; if absent, messages arrive at once.
    #[serde(default)]
    pub network: Network,
    /// The time that actors take for messages; if absent, they take none.
    #[serde(default)]
    pub actors: Option<ActorsSection>,
    /// Interference, which slows cores down; if absent, there is none.
    #[serde(default)]
    pub interference: Option<Interference>,
    /// The policies to run in this world, at least one.
    pub policy: Vec<PolicyEntry>,
    /// Dotted keys with the values that each key takes. Every combination of values is a cell, which is run under every
    /// policy. A value may be a table such as `{ "cluster.nodes" = 100, "workload.mix.jobs" = 5000 }`. The table
    /// contains a value of the swept key, which names the cell, and other keys that are set in the same cell.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<Value>>,
    /// Claims about the results, which are judged after the run.
    #[serde(default)]
    pub claim: Vec<ClaimSection>,
    /// Settings of the run.
    #[serde(default)]
    pub run: RunSection,
    /// Settings of the report.
    #[serde(default)]
    pub report: ReportSection,
}

/// `[report]`: settings of the report.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReportSection {
    /// Numbers that the report of a sweep plots over the swept keys, in the syntax of claims without the policy, such
    /// as `response_s.p99 / response_s.p50`. If empty: the first four numbers of the claims. Without claims: median and
    /// 99th percentile of response times, or two numbers of gossip or failure detection.
    pub charts: Vec<String>,
}

const fn first_seed() -> u64 {
    1
}

const fn five_percent() -> f64 {
    0.05
}

/// `[[claim]]`: a statement and the comparisons that test it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSection {
    /// The statement, as the paper makes it.
    pub says: String,
    /// Origin of the claim; verdicts are counted by origin.
    #[serde(default)]
    pub origin: Origin,
    /// Restricts the claim to cells with these values of swept keys; a list means any of its values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Value>,
    /// Comparisons that must all hold, such as `a.response_s.p50 < 0.8 * b.response_s.p50`.
    pub check: Vec<String>,
    /// Comparisons with the published numbers, such as `b.response_s.p50 / a.response_s.p50 within 10% of 2.2`. If
    /// every `check` holds and a comparison here fails, the verdict is `other-size`: right direction, other size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size: Vec<String>,
    /// Source of the tolerance or range of the comparisons. Required for a claim with an origin other than `ours` that
    /// has `size` or compares within a tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
}

/// The runtime: virtual or real time, on one or many hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeKind {
    /// Discrete events in virtual time, as fast as the processor allows.
    #[default]
    Virtual,
    /// Real time × `speed`, one process.
    Local,
    /// Real time × `speed`, many machines.
    Hosts,
}

/// `[run]`: how to run the experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// The runtime; `--runtime` overrides it.
    pub runtime: RuntimeKind,
    /// Emulated seconds per real second, in `local` and `hosts`: 2 is twice as fast as real time, 0.1 gives a busy
    /// machine ten times as much time. `virtual` ignores this key and runs as fast as it can.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub speed: f64,
    /// Keep the processors from sleeping, in `local` and `hosts`, since a sleeping processor reacts late. This needs
    /// write access to `/dev/cpu_dma_latency`, which only root has by default; results say whether it was possible.
    pub awake: bool,
    /// Emulated time at which the run stops, finished or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The part of the run that results cover: `{ from = "10 %", until = "5min" }`, or `"auto"` in virtual time, where
    /// a first pass finds the end of the warm-up. If absent, the whole run. Results cover the jobs that arrive in this
    /// part and the time between its bounds; earlier jobs are the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// Have copies burn real cores, in `local` and `hosts`; if absent, a timer ends each copy. `virtual` ignores this
    /// key and calculates when copies end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real: Option<RealSection>,
    /// Data kept beside the summaries.
    pub record: Record,
}

impl Default for RunSection {
    fn default() -> Self {
        Self {
            runtime: RuntimeKind::Virtual,
            speed: 1.0,
            awake: false,
            until: None,
            measure: None,
            real: None,
            record: Record::default(),
        }
    }
}

impl RunSection {
    /// The time limit of a run, and the extent of its recording.
    pub fn config(&self) -> RunConfig {
        RunConfig { until: self.until, recording: self.recording() }
    }

    /// The section for a replication. By default, in virtual time, only the first replication has a timeline.
    #[must_use]
    pub fn of_replication(&self, replication: u32) -> Self {
        let mut section = self.clone();
        if replication > 0 && self.runtime == RuntimeKind::Virtual {
            section.record.timeline = section.record.timeline.or(Some(Span::ZERO));
        }
        section
    }

    /// The data kept beyond the summary.
    pub fn recording(&self) -> Recording {
        let Record { tasks_one_in, timeline, timeline_cores, timeline_messages, staleness, unqueued, .. } =
            self.record;
        let slowdown_bound = self.record.slowdown_bound;
        Recording {
            one_in: tasks_one_in,
            timeline: timeline.unwrap_or_else(|| Recording::default().timeline),
            timeline_cores,
            timeline_messages,
            cache_interval: staleness,
            unqueued,
            slowdown_bound,
            ..Recording::default()
        }
    }

    /// Whether processors are to be kept from sleeping in this runtime.
    pub fn keeps_awake(&self) -> bool {
        self.awake && self.runtime != RuntimeKind::Virtual
    }

    /// The settings of copies that burn real cores; `None` if copies in this runtime do not.
    pub fn burning(&self) -> Option<RealSection> {
        self.real.filter(|real| real.kernel != Kernel::None && self.runtime != RuntimeKind::Virtual)
    }
}

/// `[run.record]`: the data that is kept beside the summaries.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Write `jobs.parquet`, a row per job.
    pub jobs: bool,
    /// Write the copies of one job in this many to `tasks.parquet`; 0 writes no copies, and 1 the copies of all jobs.
    /// If absent, the number is chosen so that a run writes about 5,000 copies at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_one_in: Option<u32>,
    /// Length of the timeline, from the start of each run; zero for none. If absent, 10 s; in virtual time, only for
    /// the first replication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Span>,
    /// Number of cores on the timeline.
    pub timeline_cores: u32,
    /// Number of messages on the timeline: the first messages from and to the nodes of the timeline's cores; 0 for
    /// none.
    pub timeline_messages: u32,
    /// Interval between observations of the caches of schedulers, for policies with caches, and of the updates that
    /// members of a gossip group have. A few schedulers and nodes, or members, are observed at a random instant of each
    /// interval, at most a thousand times in a run. With zero, the staleness of caches is not measured, and no ages are
    /// plotted over time.
    pub staleness: Span,
    /// Count the jobs that do not wait for a core: their response time exceeds the run time of their longest task by at
    /// most this time, which should allow for the policy's messages. If absent, these jobs are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unqueued: Option<Span>,
    /// Lower bound on the run time of a job in `bounded_slowdown`.
    pub slowdown_bound: Span,
    /// Write `inputs.log`, from which `volary replay` steps the same actors again: about 30 bytes a step.
    pub inputs: bool,
}

impl Record {
    /// The reason why no run has the number at a path of the results; `None` if the kept data may contain it.
    pub fn lacks(&self, path: &[&str]) -> Option<&'static str> {
        match path {
            ["staleness", ..] if self.staleness == Span::ZERO => {
                Some("run.record.staleness = \"0s\" leaves caches unobserved")
            }
            ["unqueued"] | ["classes", _, "unqueued"] if self.unqueued.is_none() => {
                Some("`unqueued` is measured only if run.record.unqueued is set")
            }
            _ => None,
        }
    }

    /// Warns if caches are first observed after a period that is longer than the run.
    pub fn unobserved(&self, run: RunLength) -> Option<String> {
        let every = self.staleness;
        (every > run.most && every != Self::default().staleness).then(|| {
            let [every, most] = [every, run.most].map(|span| number::seconds(span.as_secs_f64()));
            format!(
                "run.record.staleness is {every}, and the run is over by {most}: caches are not observed; shorten the interval"
            )
        })
    }
}

impl Default for Record {
    fn default() -> Self {
        Self {
            jobs: true,
            tasks_one_in: None,
            timeline: None,
            timeline_cores: 64,
            timeline_messages: 2_000,
            staleness: Span::from_secs(1),
            unqueued: None,
            slowdown_bound: Recording::SLOWDOWN_BOUND,
            inputs: false,
        }
    }
}

/// `[run.real]`: each emulated core has a CPU of its host to itself. A copy keeps this CPU busy until its work is done.
/// Work is measured in seconds of a CPU while only copies run on all of these CPUs; interference takes CPU time away
/// from a copy. Between copies, threads of the lowest priority keep the CPUs awake: every CPU is busy for the whole
/// run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RealSection {
    /// The computation of copies.
    pub kernel: Kernel,
    /// The mechanism that slows a core down.
    pub degrade: Degrade,
    /// Number of CPUs of each host that do not become emulated cores: the lowest CPUs that the process may use. 0
    /// suffices, since schedulers and node managers have priority over copies; spare CPUs keep them from interrupting
    /// copies.
    pub spare: u32,
}

/// The mechanism that slows a core down.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Degrade {
    /// A competing thread on the same CPU, which needs no privileges.
    #[default]
    Threads,
}

/// The computation of a copy on its core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Hashes: arithmetic that stays in the core's registers.
    #[default]
    Hash,
    /// Streams through more memory than any cache holds.
    Memory,
    /// Walks through memory that just fits into the core's own cache.
    Cache,
    /// No computation: a timer ends each copy, as without `[run.real]`.
    None,
}

impl Kernel {
    /// The kernels that burn cores.
    pub const BURNING: [Self; 3] = [Self::Hash, Self::Memory, Self::Cache];
}

/// The number of replications, or `"auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    /// The number that `precision` requires.
    Auto,
    /// A fixed number of replications.
    #[serde(untagged)]
    Times(u32),
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

impl Repeat {
    /// The number of replications; `None` for `"auto"`.
    pub const fn times(self) -> Option<u32> {
        match self {
            Self::Times(times) => Some(times),
            Self::Auto => None,
        }
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Repeat;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of replications, at least 1, or \"auto\"")
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Repeat, E> {
                n.to_string().parse().map_err(|()| E::invalid_value(de::Unexpected::Signed(n), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Repeat, E> {
                text.parse().map_err(|()| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl std::str::FromStr for Repeat {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().ok().filter(|&n| n > 0).map(Self::Times).ok_or(()),
        }
    }
}

/// Displays values as files spell them.
macro_rules! spelled {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    )*};
}
spelled! { RuntimeKind Degrade Kernel Repeat }

/// Serializes `--repeat` as text, for formats that are not self-describing.
pub(super) fn to_text<S: Serializer>(repeat: &Option<Repeat>, to: S) -> Result<S::Ok, S::Error> {
    repeat.map(|repeat| repeat.to_string()).serialize(to)
}

/// Reads the text that [`to_text`] writes.
pub(super) fn of_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Repeat>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|()| de::Error::custom("neither a number of replications nor `auto`"))
}

impl JsonSchema for Repeat {
    fn schema_name() -> Cow<'static, str> {
        "Repeat".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "number of replications, or \"auto\": as many as `precision` requires",
            "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "auto" }]
        })
    }
}
