//! Node → scheduler: the use of a shared node by copies, and their throttling and eviction.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use super::share::Stamp;
use crate::base::CopyId;

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
