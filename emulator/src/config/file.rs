//! The experiment file as it is written. Only form is checked here.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use volary_actors::base::Span;
use volary_engine::cores::Interference;
use volary_engine::metrics::Recording;
use volary_engine::results::{Origin, Tolerance};
use volary_engine::scenario::{ClusterSection, PolicyEntry};
use volary_engine::virtual_time::RunConfig;
use volary_engine::workload::{Service, WorkloadSpec};
use volary_netem::Network;

use super::real::{Kernel, RealSection};
use super::repeat::Repeat;

/// A whole experiment file.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "volary experiment")]
pub struct File {
    /// What it is about, in one line.
    pub title: String,
    /// The paper, section and figure it reproduces.
    #[serde(default)]
    pub source: Option<String>,
    /// Seed of replication 0; replication r has seed + r.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How many replications.
    #[serde(default)]
    pub repeat: Repeat,
    /// With `repeat = "auto"`: the relative half-width of the paired 95 % interval to reach.
    #[serde(default = "five_percent")]
    pub precision: f64,
    /// The emulated machines.
    pub cluster: ClusterSection,
    /// Which jobs arrive.
    pub workload: WorkloadSpec,
    /// How much work a copy needs.
    #[serde(default)]
    pub service: Service,
    /// What the network does to messages; absent: nothing, they arrive at once.
    #[serde(default)]
    pub network: Network,
    /// What slows cores down; absent: nothing.
    #[serde(default)]
    pub interference: Option<Interference>,
    /// The policies that meet this world, at least one.
    pub policy: Vec<PolicyEntry>,
    /// Dotted key to the values it takes; every combination, times every policy, is a cell. A table with the dotted key
    /// itself, such as `{ "cluster.nodes" = 100, "workload.mix.jobs" = 5000 }`, sets its other keys in the cells with
    /// that value; the value alone names them.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<Value>>,
    /// What should come out.
    #[serde(default)]
    pub claim: Vec<ClaimSection>,
    /// How to run it.
    #[serde(default)]
    pub run: RunSection,
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
    /// Where it comes from; verdicts are counted by it.
    #[serde(default)]
    pub origin: Origin,
    /// Only cells with these values of swept keys; a list means any of its values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Value>,
    /// Comparisons that must all hold, such as `a.response_s.p50 < 0.8 * b.response_s.p50`.
    pub check: Vec<String>,
    /// Comparisons with the published numbers, such as `b.response_s.p50 / a.response_s.p50 within 10% of 2.2`. If all
    /// of `check` hold and one of these does not, the verdict is `other-size`: right direction, other size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size: Vec<String>,
    /// Whose tolerance or band the comparisons have: a claim with another origin than `ours` that has `size`, or
    /// compares within a tolerance, must say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
}

/// Which clock moves the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeKind {
    /// Discrete events, as fast as the processor goes.
    #[default]
    Virtual,
    /// Real time × `speed`, one process.
    Local,
    /// Real time × `speed`, many machines.
    Hosts,
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// `[run]`: how to run the experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// Which runtime; `--runtime` overrides.
    pub runtime: RuntimeKind,
    /// Emulated seconds per real second, in `local` and `hosts`: 2 is twice as fast as life, 0.1 gives a busy
    /// machine ten times as long for everything. `virtual` runs as fast as it can whatever this says.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub speed: f64,
    /// Keep the processors from sleeping, in `local` and `hosts`, since one that sleeps is late: by
    /// `/dev/cpu_dma_latency`, which only root can write by default. Where it cannot be done, results say so.
    pub awake: bool,
    /// Stop at this emulated time, finished or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Have copies burn real cores, in `local` and `hosts`; absent: they are timed. `virtual` calculates them
    /// whatever this says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real: Option<RealSection>,
    /// What is kept beside the summaries.
    pub record: Record,
}

impl Default for RunSection {
    fn default() -> Self {
        Self {
            runtime: RuntimeKind::Virtual,
            speed: 1.0,
            awake: false,
            until: None,
            real: None,
            record: Record::default(),
        }
    }
}

impl RunSection {
    /// How a run is bounded and recorded.
    pub fn config(&self) -> RunConfig {
        RunConfig { until: self.until, recording: self.recording() }
    }

    /// How much is kept beyond the summary.
    pub fn recording(&self) -> Recording {
        let Record { tasks_one_in, timeline, timeline_cores, timeline_messages, staleness, unqueued, .. } =
            self.record;
        Recording {
            one_in: tasks_one_in,
            timeline,
            timeline_cores,
            timeline_messages,
            cache_interval: staleness,
            unqueued,
            ..Recording::default()
        }
    }

    /// Whether processors are to be kept from sleeping in this runtime.
    pub fn keeps_awake(&self) -> bool {
        self.awake && self.runtime != RuntimeKind::Virtual
    }

    /// How copies burn real cores, if they do in this runtime.
    pub fn burning(&self) -> Option<RealSection> {
        self.real.filter(|real| real.kernel != Kernel::None && self.runtime != RuntimeKind::Virtual)
    }
}

/// `[run.record]`: what is kept beside the summaries.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Write `jobs.parquet`.
    pub jobs: bool,
    /// The executions of one job in this many go to `tasks.parquet`; 0 writes none. Absent: as many as keep
    /// the file small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_one_in: Option<u32>,
    /// How much of the run the timeline shows, from its start.
    pub timeline: Span,
    /// How many cores the timeline shows.
    pub timeline_cores: u32,
    /// How many messages from and to the nodes of these cores the timeline shows, the first ones; 0: none.
    pub timeline_messages: u32,
    /// How often the caches of schedulers are looked at, for policies that keep some: a few schedulers and
    /// nodes, once in each interval of this length at a random instant, a thousand times at most. Zero: never, and
    /// their staleness is not measured.
    pub staleness: Span,
    /// Count the jobs that wait for no core: those that take at most this much longer than their longest task; the
    /// policy's messages need some time as well. Absent: they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unqueued: Option<Span>,
    /// Write `inputs.log`, from which `volary replay` steps the same actors again: about 30 bytes a step.
    pub inputs: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            jobs: true,
            tasks_one_in: None,
            timeline: Span::from_secs(10),
            timeline_cores: 64,
            timeline_messages: 2_000,
            staleness: Span::from_secs(1),
            unqueued: None,
            inputs: false,
        }
    }
}
