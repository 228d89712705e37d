//! Reports of nodes to schedulers: the wait, attained service or room of a node, periodically; the progress of
//! running copies; the use of a shared node by copies; and the throttling and eviction of copies.

use serde::{Deserialize, Serialize};

use super::probe::Stamp;
use super::protocol::protocol;
use crate::base::{CopyId, Score, Span, Time};

/// The state at a given time. The newest report wins; a lost report is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Heartbeat {
    /// Node → scheduler: the wait at the node.
    Wait {
        /// Time for which a new task would wait for a core.
        wait: Span,
        /// The part of the wait that decreases as time passes: the remaining estimate of the running tasks, per core.
        passing: Span,
        /// Time of the observation.
        at: Time,
    },
}

protocol! {
    Heartbeat in run;
    Wait = "heartbeat.wait", Datagram, 32, Node -> Scheduler: Self::Wait { .. },
}

/// The state of a node for a central scheduler. The newest report wins; a lost report is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NodeReport {
    /// Node → scheduler: attained service of the copies that run or are suspended here (Kairos, algorithm 1).
    Service {
        /// Number of copies.
        tasks: u32,
        /// Sum of the copies' attained service, ms.
        attained_ms: u32,
        /// Standard deviation of the copies' attained service, ms.
        spread_ms: u32,
        /// Time of the observation.
        at: Time,
    },
    /// Node → scheduler: number of containers that fit beside the running ones (YARN).
    Room {
        /// Number of containers.
        slots: u32,
        /// Time of the observation.
        at: Time,
    },
}

protocol! {
    NodeReport in run;
    Service = "heartbeat.service", Datagram, 28, Node -> Scheduler: Self::Service { .. },
    Room = "heartbeat.room", Datagram, 20, Node -> Scheduler: Self::Room { .. },
}

/// Progress at a given time. The newest report wins; a lost report is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Progress {
    /// Node → scheduler: the progress of a copy.
    Report {
        /// The copy.
        copy: CopyId,
        /// The share of the copy's work that is done.
        score: Score,
        /// Time of the observation.
        at: Stamp,
        /// Run time of the copy up to `at`, in whole milliseconds, rounded down; at most 49 days.
        age_ms: u32,
    },
}

protocol! {
    Progress in run;
    Report = "progress.report", Datagram, 36, Node -> Scheduler:
        Self::Report { copy, .. } if run.has_task(copy.task) => copy.task.job,
}

/// The use of a shared node by a copy, reported to the scheduler that launched the copy (Park's thesis, section 5.3).
/// The newest report wins; a lost report is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum UsageReport {
    /// Node → scheduler: the use of a copy.
    Report {
        /// The copy.
        copy: CopyId,
        /// The CPU given to the copy, thousandths of a core.
        cpu: u32,
        /// The memory that the copy uses, in MiB, rounded up.
        memory: u32,
        /// Time of the observation.
        at: Stamp,
    },
}

protocol! {
    UsageReport in run;
    Report = "usage.report", Datagram, 36, Node -> Scheduler:
        Self::Report { copy, .. } if run.has_task(copy.task) => copy.task.job,
}

/// Contention for CPU or memory on a shared node, reported to the scheduler that launched the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Contention {
    /// Node → scheduler: throttling of the copy begins, ends, or has changed when reports are due. The newest report
    /// wins.
    Throttled {
        /// The copy.
        copy: CopyId,
        /// The fraction of the copy's CPU demand that the node gives, millionths; [`ALL`](Self::ALL) unless throttled.
        rate: u32,
        /// Time of the observation.
        at: Stamp,
    },
    /// Node → scheduler: the node was short of memory and has stopped the copy, or has lost it in a crash. The copy's
    /// work is lost.
    Evicted {
        /// The copy.
        copy: CopyId,
        /// Run time of the copy, in whole milliseconds, rounded down; at most 49 days.
        age_ms: u32,
        /// Whether no other copy ran on the node, so that the copy needs more memory than the node has.
        alone: bool,
    },
}

impl Contention {
    /// The rate of a copy that is not throttled.
    pub const ALL: u32 = 1_000_000;
}

protocol! {
    Contention in run;
    Throttled = "usage.throttled", Stream, 32, Node -> Scheduler:
        Self::Throttled { copy, rate, .. } if rate <= Self::ALL && run.has_task(copy.task) => copy.task.job,
    Evicted = "usage.evicted", Stream, 25, Node -> Scheduler:
        Self::Evicted { copy, .. } if run.has_task(copy.task) => copy.task.job,
}
