//! Reports of nodes to schedulers: periodic ones of their wait, attained service or room; the progress of running
//! copies; the use of a shared node by copies, and their throttling and eviction.

use serde::{Deserialize, Serialize};

use super::probe::Stamp;
use super::protocol::protocol;
use crate::base::{CopyId, Score, Span, Time};

/// The state at a given time. The newest one wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Heartbeat {
    /// Node → scheduler.
    Wait {
        /// Time for which a new task would wait for a core.
        wait: Span,
        /// The part of it that decreases as time passes: the remaining estimate of the running tasks, per core.
        passing: Span,
        /// Time of the observation.
        at: Time,
    },
}

protocol! {
    Heartbeat in run;
    Wait = "heartbeat.wait", Datagram, Node -> Scheduler: Self::Wait { .. },
}

/// The state of a node for a central scheduler. The newest one wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NodeReport {
    /// Node → scheduler: attained service of the copies that run or are suspended here (Kairos, algorithm 1).
    Service {
        /// Number of copies.
        tasks: u32,
        /// The sum of their attained service, ms.
        attained_ms: u32,
        /// Its standard deviation, ms.
        spread_ms: u32,
        /// Time of the observation.
        at: Time,
    },
    /// Node → scheduler: containers that fit beside those that run here (YARN).
    Room {
        /// Number of containers.
        slots: u32,
        /// Time of the observation.
        at: Time,
    },
}

protocol! {
    NodeReport in run;
    Service = "heartbeat.service", Datagram, Node -> Scheduler: Self::Service { .. },
    Room = "heartbeat.room", Datagram, Node -> Scheduler: Self::Room { .. },
}

/// Progress at a given time. The newest report wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Progress {
    /// Node → scheduler.
    Report {
        /// The copy.
        copy: CopyId,
        /// The share of its work that it has done.
        score: Score,
        /// Time of the observation.
        at: Stamp,
        /// Time for which it had run by then, in whole milliseconds, rounded down; at most 49 days.
        age_ms: u32,
    },
}

protocol! {
    Progress in run;
    Report = "progress.report", Datagram, Node -> Scheduler:
        Self::Report { copy, .. } if run.has_task(copy.task) => copy.task.job,
}

/// The use of a shared node by a copy, reported to the scheduler that launched it (Park's thesis, section 5.3). The
/// newest report wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum UsageReport {
    /// Node → scheduler: the use of a copy.
    Report {
        /// The copy.
        copy: CopyId,
        /// The CPU that it is given, thousandths of a core.
        cpu: u32,
        /// The memory that it uses, MiB, rounded up.
        memory: u32,
        /// Time of the observation.
        at: Stamp,
    },
}

protocol! {
    UsageReport in run;
    Report = "usage.report", Datagram, Node -> Scheduler:
        Self::Report { copy, .. } if run.has_task(copy.task) => copy.task.job,
}

/// Contention for CPU or memory on a shared node, reported to the scheduler that launched the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Contention {
    /// Node → scheduler: throttling of the copy begins, ends, or has changed when reports are due. The newest wins.
    Throttled {
        /// The copy.
        copy: CopyId,
        /// The fraction of its CPU demand that the copy is given, millionths; [`ALL`](Self::ALL) unless throttled.
        rate: u32,
        /// Time of the observation.
        at: Stamp,
    },
    /// Node → scheduler: the node was short of memory and has stopped the copy, or has lost it in a crash. The copy's
    /// work is lost.
    Evicted {
        /// The copy.
        copy: CopyId,
        /// Time for which it had run, in whole milliseconds, rounded down; at most 49 days.
        age_ms: u32,
        /// Whether no other copy ran there, so that it needs more memory than the node has.
        alone: bool,
    },
}

impl Contention {
    /// The rate of a copy that is not throttled.
    pub const ALL: u32 = 1_000_000;
}

protocol! {
    Contention in run;
    Throttled = "usage.throttled", Stream, Node -> Scheduler:
        Self::Throttled { copy, rate, .. } if rate <= Self::ALL && run.has_task(copy.task) => copy.task.job,
    Evicted = "usage.evicted", Stream, Node -> Scheduler:
        Self::Evicted { copy, .. } if run.has_task(copy.task) => copy.task.job,
}
