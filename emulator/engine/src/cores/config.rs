//! The `[interference]` table and profile files.
//!
//! A profile file holds the same keys as the table, so `[interference] profile = "bursts.toml"` and the keys themselves
//! mean the same. A profile names exactly one process; this module also checks that.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use volary_actors::base::{DistributionSpec, Span};
use volary_netem::Target;

use volary_actors::base::CoreSet;

/// An error of an interference profile. Messages name the file, the line or key, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A trace file that cannot be read, is malformed or empty.
    #[error("{0}")]
    File(String),
    /// Keys that contradict each other.
    #[error("{0}")]
    Keys(String),
}

/// Performance interference: x_i(t) = 1 while unit i is degraded. A degraded core keeps working at 1 / σ of
/// its speed and does not stop (latin-square paper, section I, fig. 1 and table I).
///
/// Exactly one of `profile`, `bernoulli`, `markov`, `renewal`, `scripted` and `trace` is given. A key
/// beside `profile` overrides the same key of the file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interference {
    /// Name of a preset, such as `azure-cache` (`volary profile list` has all), or path of a profile file with the same
    /// keys, relative to the file that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PathBuf>,
    /// Each slot is degraded independently of all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bernoulli: Option<Bernoulli>,
    /// A two-state chain that moves once per slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markov: Option<Markov>,
    /// Gaps and bursts in turn, each of a random length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,
    /// A table of slots, written out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripted: Option<Scripted>,
    /// Observed bursts, from a file or listed as rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<BurstTrace>,
    /// The cores that share one process. Default `core`: every core has its own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// No core is degraded before this time; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// No core is degraded from this time on. Default: no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Probability that a unit is subject to interference at all, drawn once per unit; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_probability")]
    pub affected: Option<f64>,
    /// Kind of contention, such as "cache". `service.sensitivity` states how strongly each class of tasks suffers from
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Other profiles for some cores and a limited time. Experiments may have injections, profile files may not. With
    /// injections all other keys are optional.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injection: Vec<InjectionSpec>,
}

/// A scheduled injection: for some time a profile replaces `[interference]` on some cores, at the same emulated time
/// under every policy and in every runtime. It applies to the cores of `who` and `cores` together; without both keys it
/// applies to all cores. Slot k of the profile is the same as if `[interference]` named the profile, under the seed of
/// the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InjectionSpec {
    /// A preset, a profile file relative to the file that names it, or the keys of a profile: `{ bernoulli = { … } }`.
    #[schemars(schema_with = "file_or_keys")]
    pub profile: Interference,
    /// Nodes to which the injection applies, each with all of its cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<Target>,
    /// Numbers of the cores to which the injection applies, counted across all nodes, such as `0-5,8`.
    #[serde(default, skip_serializing_if = "CoreSet::is_empty")]
    #[schemars(with = "String")]
    pub cores: CoreSet,
    /// Start time, counted from the start of the run.
    pub at: Span,
    /// Duration. Default: until the run ends.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,
}

/// The schema of a profile inside an experiment. It does not repeat the keys of `[interference]`.
fn file_or_keys(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "object"] })
}

/// The cores that share one interference process: the unit i of x_i(t).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each core has a process of its own.
    #[default]
    Core,
    /// All cores of a node slow down together.
    Node,
    /// All cores of a rack slow down together.
    Rack,
}

/// Independent slots: x_{i,k} = 1 with `probability`. Slot k covers [k · slot, (k + 1) · slot).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bernoulli {
    /// Length of a slot.
    #[serde(deserialize_with = "slot_length")]
    pub slot: Span,
    /// Probability that a slot is degraded.
    #[serde(deserialize_with = "probability")]
    pub probability: f64,
    /// σ, drawn for each degraded slot; samples below 1 are raised to 1.
    #[serde(deserialize_with = "slowdown")]
    pub slowdown: DistributionSpec<f64>,
}

/// A two-state Markov chain over slots, started in its stationary distribution: runs of healthy slots have mean
/// 1 / `p_on` slots, bursts 1 / `p_off`, and the share of degraded slots is p_on / (p_on + p_off).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Markov {
    /// Length of a slot.
    #[serde(deserialize_with = "slot_length")]
    pub slot: Span,
    /// Probability per slot that a healthy unit becomes degraded in the next.
    #[serde(deserialize_with = "probability")]
    pub p_on: f64,
    /// Probability per slot that a degraded unit becomes healthy in the next.
    #[serde(deserialize_with = "probability")]
    pub p_off: f64,
    /// σ, drawn once for each burst (run of degraded slots); samples below 1 are raised to 1.
    #[serde(deserialize_with = "slowdown")]
    pub slowdown: DistributionSpec<f64>,
}

/// Gaps and bursts in turn, all independent. Time 0 starts a gap, so every unit is healthy at first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// Length of a healthy gap. With `exponential` gaps of mean 1 / α and bursts of mean 1 / β the share of
    /// degraded time tends to α / (α + β).
    pub gap: DistributionSpec<Span>,
    /// Length of a burst.
    pub burst: DistributionSpec<Span>,
    /// σ, drawn once for each burst; samples below 1 are raised to 1.
    #[serde(deserialize_with = "slowdown")]
    pub slowdown: DistributionSpec<f64>,
}

/// Slots written out: `rows[i][k]` is x_{i,k}. Units without a row are healthy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// Length of a slot.
    #[serde(deserialize_with = "slot_length")]
    pub slot: Span,
    /// One row per unit, one 0 (healthy) or 1 (degraded) per slot; rows may differ in length.
    #[serde(deserialize_with = "bits")]
    pub rows: Vec<Vec<u8>>,
    /// σ, drawn for each degraded slot; samples below 1 are raised to 1.
    #[serde(deserialize_with = "slowdown")]
    pub slowdown: DistributionSpec<f64>,
    /// Whether a row starts again after its last slot; otherwise the unit is healthy from then on.
    #[serde(default)]
    pub repeat: bool,
}

/// Observed bursts. A unit is healthy in times that no row covers, and in rows with a slowdown of 1.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trace")]
pub struct BurstTrace {
    /// A text file of lines `unit start_s end_s slowdown`, separated by blanks or commas; `#` starts a comment. A
    /// header line may name these columns in another order, with further columns, or the columns `time`, `core` and
    /// `slowdown` of samples. A sample lasts until the next sample of its core, and the last sample only ends the row
    /// before it. All times are in seconds. The path is relative to the file that names it. Loading moves the bursts
    /// into `rows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The bursts themselves, instead of a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<TraceRow>,
    /// The time of the trace at which the run starts; bursts that have ended by then are left out. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    /// Whether the trace starts again after the end of its latest row, over all units; otherwise all units are healthy
    /// from then on. A later row with a slowdown of 1 postpones the restart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// Whether the trace's units are reused for all units of the cluster: unit i of the cluster follows unit i mod n of
    /// the trace, so that the CPUs of one recorded machine stand for all cores. n is the trace's highest unit plus one;
    /// if its last unit has no burst, it needs a row with a slowdown of 1. With `repeat`, each reuse begins at a random
    /// time of the trace, drawn from the seed; without it, all cores that share a unit slow down together. If `spread`
    /// is false, unit i of the cluster follows unit i of the trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spread: bool,
}

/// One observed burst of one unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceRow {
    /// Number of the core, node or rack; `scope` says which.
    pub unit: u32,
    /// Start of the burst, counted from the start of the run.
    pub start: Span,
    /// End of the burst, counted from the start of the run.
    pub end: Span,
    /// Slowdown σ, at least 1.
    pub slowdown: f64,
}

impl Interference {
    /// Length of a slot, or mean length of a burst of `renewal`; `None` for a trace.
    pub fn slot(&self) -> Option<Span> {
        let bernoulli = self.bernoulli.as_ref().map(|process| process.slot);
        let markov = self.markov.as_ref().map(|process| process.slot);
        let renewal = self.renewal.as_ref().map(|process| Span::from_secs_f64(process.burst.mean()));
        let scripted = self.scripted.as_ref().map(|process| process.slot);
        bernoulli.or(markov).or(renewal).or(scripted)
    }

    /// Checks this table and reads its trace, relative to `folder`, with `read`. The caller has already inserted the
    /// profile file and the values of empirical distributions.
    ///
    /// # Errors
    /// When the trace cannot be read or parsed, when not exactly one process is named, or when keys contradict
    /// each other.
    pub(super) fn check(
        &mut self,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<(), ProfileError> {
        let keys = |message: &str| Err(ProfileError::Keys(message.into()));
        if !self.injection.is_empty() {
            return keys(
                "a profile has no injections; write [[interference.injection]] in the experiment file",
            );
        }
        if self.profile.is_some() {
            return keys(match self.processes() {
                0 => "a profile cannot name another profile; copy its process here",
                _ => "give either `profile` or a process, not both; keep one",
            });
        }
        if self.processes() != 1 {
            return keys(
                "not exactly one process is named; keep one of `bernoulli`, `markov`, `renewal`, `scripted`, `trace`, \
                 or name a `profile`",
            );
        }
        if self.has_unread_distributions() {
            return keys("the file of an empirical distribution was not read; give its `values`");
        }
        if let Some(trace) = &mut self.trace {
            trace.load(folder, read)?;
        }
        if let Some(renewal) = &self.renewal
            && renewal.gap.mean() + renewal.burst.mean() < SHORTEST.as_secs_f64()
        {
            return Err(ProfileError::Keys(format!(
                "a gap and a burst of the renewal together last less than {SHORTEST} on average; make them longer"
            )));
        }
        if let Some(scripted) = &self.scripted
            && scripted.rows.iter().all(Vec::is_empty)
        {
            return keys("scripted lists no slot; write rows such as [[0, 1, 1]], or leave interference out");
        }
        let (from, until) = self.window();
        if from >= until {
            let why = format!("`from` ({from}) is not earlier than `until` ({until}); move one of them");
            return Err(ProfileError::Keys(why));
        }
        Ok(())
    }

    /// Start and end of the time in which units are degraded.
    pub(super) fn window(&self) -> (Span, Span) {
        (self.from.unwrap_or(Span::ZERO), self.until.unwrap_or(Span::MAX))
    }

    fn processes(&self) -> usize {
        [
            self.bernoulli.is_some(),
            self.markov.is_some(),
            self.renewal.is_some(),
            self.scripted.is_some(),
            self.trace.is_some(),
        ]
        .into_iter()
        .filter(|&named| named)
        .count()
    }

    fn has_unread_distributions(&self) -> bool {
        let slowdowns = [
            self.bernoulli.as_ref().map(|p| &p.slowdown),
            self.markov.as_ref().map(|p| &p.slowdown),
            self.renewal.as_ref().map(|p| &p.slowdown),
            self.scripted.as_ref().map(|p| &p.slowdown),
        ];
        let lengths = self.renewal.iter().flat_map(|p| [&p.gap, &p.burst]);
        slowdowns.into_iter().flatten().any(DistributionSpec::is_unread)
            || lengths.into_iter().any(DistributionSpec::is_unread)
    }
}

/// Minimum length of a slot or stretch. Every stretch costs a draw, and shorter stretches are finer than any task.
pub(super) const SHORTEST: Span = Span(1_000);
/// Maximum slowdown, at which a core makes no visible progress; larger slowdowns are lowered to it.
pub(crate) const MOST_SLOWDOWN: f64 = 1e12;

fn slot_length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let slot = Span::deserialize(deserializer)?;
    if slot < SHORTEST {
        return Err(D::Error::custom(format!(
            "a slot must last {SHORTEST} or longer, for example \"100ms\""
        )));
    }
    Ok(slot)
}

fn probability<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let p = f64::deserialize(deserializer)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(D::Error::custom(format!("{p} is not a probability; give a number from 0 to 1")));
    }
    Ok(p)
}

fn some_probability<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    probability(deserializer).map(Some)
}

fn slowdown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DistributionSpec<f64>, D::Error> {
    let distribution: DistributionSpec<f64> = Deserialize::deserialize(deserializer)?;
    // Distributions that reach below 1 only in their tail are clipped; distributions whose lower bound is stated below
    // 1 are a mistake.
    let (low, high) = distribution.bounds();
    if let Some(low) = low.filter(|&low| low < 1.0) {
        return Err(D::Error::custom(format!(
            "a slowdown of {low} would speed the core up; give at least 1 (2 halves its speed)"
        )));
    }
    if let Some(high) = high.filter(|&high| high > MOST_SLOWDOWN) {
        return Err(D::Error::custom(format!("a slowdown of {high} is above {MOST_SLOWDOWN:e}; give less")));
    }
    Ok(distribution)
}

fn bits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let rows = Vec::<Vec<u8>>::deserialize(deserializer)?;
    for (i, row) in rows.iter().enumerate() {
        if let Some(k) = row.iter().position(|&x| x > 1) {
            return Err(D::Error::custom(format!(
                "row {i}, slot {k} is {}; write 0 (healthy) or 1 (degraded)",
                row[k]
            )));
        }
    }
    Ok(rows)
}
