//! Progress of running copies, reported to their schedulers.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use super::share::Stamp;
use crate::base::{CopyId, Score};

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
