//! Results of the metrics of policies: placement times, the staleness of caches, plans and estimates.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::policies::{Caches, Gossips, Traits};

use super::distribution::{DeliveryTimes, NanIsNull, Spread};
use super::graphs::nan;

/// Sections of the summary that only some policies have.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PolicySections {
    /// Placement times, for the policies that report them: `murmuration` and `kubernetes`.
    #[serde(default)]
    pub placements: Option<Placements>,
    /// Staleness of the caches of schedulers, for policies with caches.
    pub staleness: Option<Staleness>,
    /// Plans, for the policies that plan in cycles: `3sigma`, `prio` and `distsched`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<Planning>,
    /// Errors of the estimates of run times, for `3sigma`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionErrors>,
    /// Dissemination of updates, in runs without jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gossip: Option<Dissemination>,
    /// Detection of failures, in runs without jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
}

impl PolicySections {
    /// All sections, with zeros. Together they have every key that results can have.
    pub fn every() -> Self {
        Self {
            placements: Some(Placements::default()),
            staleness: Some(Staleness::default()),
            planning: Some(Planning::default()),
            prediction: Some(PredictionErrors::default()),
            gossip: Some(Dissemination::default()),
            detection: Some(Detection::default()),
        }
    }

    /// The reason why results of a policy with these traits have no number at a path; `None` if they can have it.
    pub fn lacks(path: &[&str], traits: &Traits<'_>) -> Option<&'static str> {
        match path {
            ["planning" | "prediction", ..] | ["engine", "planning_cpu_s"] => {
                (!traits.plans()).then_some("does not plan")
            }
            ["staleness", number, ..] => Staleness::lacks(number, traits.caches),
            ["gossip", ..] => (traits.gossips != Some(Gossips::Updates)).then_some("spreads no updates"),
            ["detection", ..] => {
                (traits.gossips != Some(Gossips::Failures)).then_some("detects no failures of members")
            }
            _ => None,
        }
    }
}

/// Measurements of the metrics of policies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PolicyResults {
    /// Sections of the summary.
    pub sections: PolicySections,
    /// Observations of caches.
    pub looks: Vec<CacheRow>,
    /// Sampled decisions by caches.
    pub decisions: Vec<DecisionRow>,
    /// Times from an update until a member had it, s, in ascending order, each with the number of such deliveries.
    pub deliveries: Vec<(f64, u64)>,
    /// Values by name, of policies in other languages.
    pub values: BTreeMap<String, Spread>,
}

/// Placement times, for policies whose schedulers bind each task to a node directly (Murmuration paper, section 2.1).
/// The last binding of a task is used.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Placements {
    /// Number of bindings of tasks to nodes, repeated bindings included.
    pub count: u64,
    /// Maximum number of bindings in a second of emulated time.
    pub peak_per_s: u64,
    /// Time from the first arrival to the last binding.
    #[serde(with = "NanIsNull")]
    pub last_s: f64,
    /// Time from a job's arrival until its tasks were bound: the paper's TST.
    pub scheduled_s: Stage,
    /// Time from a job's arrival until its tasks started: TST + w2x.
    pub started_s: Stage,
    /// Time from a job's arrival until its tasks ended: TCT.
    pub ended_s: Stage,
}

/// Decisions of a scheduler that plans in cycles. Their time is emulated; the time of the host is part of `engine`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Planning {
    /// Number of cycles up to the last decision.
    pub cycles: u64,
    /// Number of problems solved. Cycles without changes and policies without a solver solve none.
    pub solved: u64,
    /// Mean number of options of a plan: starts and kinds of nodes considered for the waiting jobs.
    #[serde(with = "NanIsNull")]
    pub options: f64,
    /// Mean number of columns of the linear program of a plan.
    #[serde(with = "NanIsNull")]
    pub columns: f64,
    /// Mean number of pivots of a plan.
    #[serde(with = "NanIsNull")]
    pub pivots: f64,
    /// Relative distance between a plan's value and its proven bound.
    pub gap: PlanGap,
    /// Number of launches of jobs, in whole or in part.
    pub launched: u64,
    /// Number of launches that were no longer possible when the decision was made.
    pub revoked: u64,
    /// Number of jobs preempted.
    pub preempted: u64,
    /// Emulated time of all decisions, s.
    pub emulated_s: f64,
}

/// Gaps of plans.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanGap {
    /// Mean gap.
    #[serde(with = "NanIsNull")]
    pub mean: f64,
    /// 99th percentile of gaps.
    #[serde(with = "NanIsNull")]
    pub p99: f64,
    /// Maximum gap.
    #[serde(with = "NanIsNull")]
    pub max: f64,
}

/// Errors of the run times that a scheduler expected when jobs were submitted, over the jobs whose run time is known.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PredictionErrors {
    /// Number of jobs.
    pub jobs: u64,
    /// Share of jobs whose estimate is within a factor of two.
    pub within_2x: f64,
    /// Share of jobs whose estimate is below half of the run time.
    pub under: f64,
    /// Share of jobs whose estimate is above twice the run time.
    pub over: f64,
    /// Sum of absolute errors over the sum of run times.
    #[serde(with = "NanIsNull")]
    pub error: f64,
}

/// Dissemination of updates among the members of a gossip group. A member has an update if it has received it or a
/// newer one of the same origin. Deliveries and coverage count updates made in the measured part of the run. Ages cover
/// all origins and other members during that part.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dissemination {
    /// Number of updates in the whole run.
    pub updates: u64,
    /// Number of updates in the measured part.
    pub measured: u64,
    /// Coverage: share of (update, member) pairs in which the member had the update by the end of the run.
    #[serde(with = "NanIsNull")]
    pub coverage: f64,
    /// Share of the updates that every member had by the end of the run.
    #[serde(with = "NanIsNull")]
    pub complete: f64,
    /// Time from an update until a member had it, over all deliveries.
    pub delivery_s: DeliveryTimes,
    /// Time from an update until half of the members had it, over the updates that half of them had.
    pub half_s: Spread,
    /// Time from an update until every member had it, over the updates that every member had.
    pub full_s: Spread,
    /// Version age: number of updates of an origin that a member lacks. Mean over time and origins; the distribution is
    /// over members (Yates 2021).
    pub version_age: Spread,
    /// Age of synchronisation: age of the oldest update of an origin that a member lacks, 0 if none. Mean over time and
    /// origins; the distribution is over members (Zhong, Yates and Soljanin 2018).
    pub age_of_synchronisation_s: Spread,
    /// Age of information: age of the newest update of an origin that a member has. Mean over time, from the first such
    /// update on, and origins; the distribution is over members (Kaul, Yates and Gruteser 2012).
    pub age_of_information_s: Spread,
    /// Messages sent in the whole run, per update and member.
    #[serde(with = "NanIsNull")]
    pub messages: f64,
    /// Bytes sent in the whole run, per update and member. Each update in a message is counted as a datagram of its
    /// own.
    #[serde(with = "NanIsNull")]
    pub sent_bytes: f64,
}

/// Detection of failures among the members of a gossip group. Only crashes that begin in the measured part of the run
/// are counted. A suspicion or death is false if its subject is up at that time, and is counted for each member that
/// adopts it. A member is sound if no fault of the run is aimed at it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Detection {
    /// Number of crashes.
    pub crashes: u64,
    /// Share of the crashes that another member detected before the crashed one restarted or the run ended.
    #[serde(with = "NanIsNull")]
    pub detected: f64,
    /// Share of the crashes that all members that were up knew of before the crashed one restarted or the run ended.
    #[serde(default = "nan", with = "NanIsNull")]
    pub known: f64,
    /// Time from a crash until another member suspected the crashed one, or declared it dead; over crashes.
    pub suspected_s: Spread,
    /// Time from a crash until another member declared the crashed one dead; over the crashes that were detected.
    pub detected_s: Spread,
    /// Time from a crash until all members that were up considered the crashed one dead; over the crashes that all knew
    /// of.
    pub known_s: Spread,
    /// False suspicions per member and hour.
    #[serde(with = "NanIsNull")]
    pub false_suspicions: f64,
    /// False deaths per member and hour.
    #[serde(with = "NanIsNull")]
    pub false_deaths: f64,
    /// False deaths of sound members, per member and hour.
    #[serde(with = "NanIsNull")]
    pub false_deaths_of_sound: f64,
    /// False deaths of sound members, stated or adopted by sound members, per member and hour.
    #[serde(with = "NanIsNull")]
    pub false_deaths_among_sound: f64,
    /// Messages of the whole run, per member and second.
    #[serde(with = "NanIsNull")]
    pub messages: f64,
}

/// The times at which a job's tasks reached a stage, over the jobs whose tasks all ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Mean over the job's tasks.
    pub average: Spread,
    /// Time of the job's last task.
    pub tail: Spread,
    /// Standard deviation within the job.
    pub deviation: Spread,
}

/// Staleness of the copies that receivers keep of sources. Receivers are schedulers and sources are nodes; where a
/// policy has one shared state, receivers are schedulers or nodes and the source is that state. A cache holds the work
/// expected at every node. The truth is the work of the tasks placed there that have not ended, by the same estimates.
/// Decisions and errors of snapshots and shared states are not measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Staleness {
    /// Age of synchronisation: time since a scheduler last had all updates about a node, which is the age of the oldest
    /// missing update; 0 in sync. Measured over time, schedulers and nodes (Zhong, Yates and Soljanin 2018). A lost
    /// update is missing until a later update of its origin arrives.
    pub age_of_synchronisation_s: Spread,
    /// Share of time that a scheduler lacks an update about a node.
    #[serde(with = "NanIsNull")]
    pub out_of_sync: f64,
    /// Age of synchronisation while out of sync.
    pub age_out_of_sync_s: Spread,
    /// Version age: number of updates about a node that a scheduler lacks. Measured over time, schedulers and nodes
    /// (Yates 2021).
    pub version_age: Spread,
    /// Age of information: age of the newest snapshot that a receiver has of a source, from the first snapshot on.
    /// Measured over time, receivers and sources (Kaul, Yates and Gruteser 2012), and only where snapshots are sent.
    pub age_of_information_s: Spread,
    /// Age of information just before a new snapshot replaces the old snapshot.
    pub peak_age_of_information_s: Spread,
    /// Absolute difference between the cached and the true load of a node: over time, schedulers and nodes.
    pub error_s: Spread,
    /// Mean signed error (cached minus true).
    #[serde(with = "NanIsNull")]
    pub bias_s: f64,
    /// Number of updates that a scheduler lacks, about all nodes: over time and schedulers.
    pub in_flight: Spread,
    /// Share of decisions whose scheduler lacked an update about the node that it chose.
    #[serde(with = "NanIsNull")]
    pub decisions_out_of_sync: f64,
    /// Share of decisions for a node to which another scheduler had sent a task unknown to the deciding one.
    #[serde(with = "NanIsNull")]
    pub conflicts: f64,
    /// Absolute difference between the cached and the true load of the chosen node, over decisions.
    pub decision_error_s: Spread,
    /// Wait of a task at the chosen node minus the least wait that it could have had, over a sample of decisions. A
    /// wait is the remaining work, on healthy cores, of the tasks that the node serves before it.
    pub regret_s: Spread,
    /// Time between two observations.
    pub every_s: f64,
    /// Number of receivers observed: schedulers, or nodes where nodes keep copies.
    pub receivers: u32,
    /// Number of sources observed: nodes, or 1 where all receivers keep copies of one state.
    pub sources: u32,
}

impl Staleness {
    /// No measurements: every number is NaN or 0.
    pub const UNMEASURED: Self = Self {
        age_of_synchronisation_s: Spread::UNMEASURED,
        out_of_sync: f64::NAN,
        age_out_of_sync_s: Spread::UNMEASURED,
        version_age: Spread::UNMEASURED,
        age_of_information_s: Spread::UNMEASURED,
        peak_age_of_information_s: Spread::UNMEASURED,
        error_s: Spread::UNMEASURED,
        bias_s: f64::NAN,
        in_flight: Spread::UNMEASURED,
        decisions_out_of_sync: f64::NAN,
        conflicts: f64::NAN,
        decision_error_s: Spread::UNMEASURED,
        regret_s: Spread::UNMEASURED,
        every_s: f64::NAN,
        receivers: 0,
        sources: 0,
    };

    /// The reason why `number` is not measured under a policy with such caches; `None` if it is measured.
    fn lacks(number: &str, caches: Caches) -> Option<&'static str> {
        let (has, why) = match number {
            "age_of_information_s" | "peak_age_of_information_s" => {
                (caches != Caches::Updates, "sends updates and no snapshots")
            }
            "error_s" | "bias_s" | "decision_error_s" => {
                (caches == Caches::Updates, "sends snapshots, which have no error by this measure")
            }
            "in_flight" | "decisions_out_of_sync" | "conflicts" | "regret_s" => {
                (caches != Caches::SharedState, "keeps one state of the whole cluster, not of single nodes")
            }
            _ => (true, ""),
        };
        if caches == Caches::None { Some("keeps no caches") } else { (!has).then_some(why) }
    }
}

/// An observation of a scheduler's cache over the observed nodes, a row of `staleness.parquet`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CacheRow {
    /// Time of the observation, s.
    pub time: f64,
    /// Number of the scheduler, or of the node where nodes keep copies.
    pub receiver: u32,
    /// Mean age of synchronisation, s.
    pub age: f64,
    /// Maximum age of synchronisation, s.
    pub age_max: f64,
    /// Share of nodes about which the scheduler lacks updates.
    pub out_of_sync: f64,
    /// Mean version age.
    pub versions: f64,
    /// Mean age of information, s; NaN without snapshots.
    pub information: f64,
    /// Mean absolute error, s.
    pub error: f64,
    /// Mean signed error, s.
    pub bias: f64,
    /// Maximum absolute error, s.
    pub error_max: f64,
    /// Number of updates that the scheduler lacks, about all nodes.
    pub in_flight: u64,
}

/// A sampled decision, a row of `decisions.parquet`. Ages and versions describe the scheduler's copies of the states of
/// two nodes: the node that it chose, and the best node, where the task would have waited least.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DecisionRow {
    /// Time of the decision, s.
    pub time: f64,
    /// Number of the scheduler.
    pub scheduler: u32,
    /// The node that the scheduler chose.
    pub node: u32,
    /// The node where the task would have waited least; the chosen node if none is better.
    pub best: u32,
    /// Age of synchronisation of the chosen node, s.
    pub age: f64,
    /// Age of synchronisation of the best node, s.
    pub age_best: f64,
    /// Age of information of the chosen node, s; NaN without snapshots.
    pub information: f64,
    /// Age of information of the best node, s.
    pub information_best: f64,
    /// Version age of the chosen node.
    pub versions: u64,
    /// Version age of the best node.
    pub versions_best: u64,
    /// The wait that the scheduler expected at the chosen node, s.
    pub believed: f64,
    /// The true wait at the chosen node, s.
    pub wait: f64,
    /// The true wait at the chosen node minus the true wait at the best node, s.
    pub regret: f64,
}
