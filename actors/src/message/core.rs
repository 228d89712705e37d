//! Node manager ↔ its own worker; never crosses the network.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{CopyId, Score, Span};

/// Orders to a core and its answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Core {
    /// Run a copy from the beginning. The worker must be idle.
    Run {
        /// The copy.
        copy: CopyId,
        /// See [`Row::elsewhere`](super::Row::elsewhere).
        elsewhere: bool,
    },
    /// Continue a suspended copy. The worker must be idle.
    Resume {
        /// The copy.
        copy: CopyId,
        /// Remaining work, in reference-core time.
        left: Span,
    },
    /// Stop the running copy and forget its progress. The worker is idle at once.
    Stop {
        /// The copy.
        copy: CopyId,
    },
    /// Stop the running copy and report its remaining work. The worker is idle at once.
    Suspend {
        /// The copy.
        copy: CopyId,
    },
    /// Worker → node: the copy finished, the worker is idle.
    Ended {
        /// The copy.
        copy: CopyId,
    },
    /// Worker → node: the copy was suspended.
    Suspended {
        /// The copy.
        copy: CopyId,
        /// Remaining work, in reference-core time.
        left: Span,
    },
    /// Query of the progress of a running copy. A worker that does not run this copy does not answer.
    Ask {
        /// The copy.
        copy: CopyId,
    },
    /// Worker → node: the current progress.
    Score {
        /// The copy.
        copy: CopyId,
        /// The share of the copy's work that is done.
        score: Score,
        /// The work that the copy has done, in whole milliseconds of a healthy core; at most 49 days.
        done_ms: u32,
    },
}

impl Core {
    /// The order to run a copy from the beginning, for a job that is not a gang.
    pub const fn run(copy: CopyId) -> Self {
        Self::Run { copy, elsewhere: false }
    }
}

protocol! {
    Core in _run;
    Run = "core.run", Stream, 0, Node -> Worker: Self::Run { copy, .. } => copy.task.job,
    Resume = "core.resume", Stream, 0, Node -> Worker: Self::Resume { copy, .. } => copy.task.job,
    Stop = "core.stop", Stream, 0, Node -> Worker: Self::Stop { copy, .. } => copy.task.job,
    Suspend = "core.suspend", Stream, 0, Node -> Worker: Self::Suspend { copy, .. } => copy.task.job,
    Ended = "core.ended", Stream, 0, Worker -> Node: Self::Ended { copy, .. } => copy.task.job,
    Suspended = "core.suspended", Stream, 0, Worker -> Node: Self::Suspended { copy, .. } => copy.task.job,
    Ask = "core.ask", Stream, 0, Node -> Worker: Self::Ask { copy, .. } => copy.task.job,
    Score = "core.score", Stream, 0, Worker -> Node: Self::Score { copy, .. } => copy.task.job,
}
