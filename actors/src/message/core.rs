//! Node manager ↔ its own worker; never crosses the network.

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use crate::base::{Class, CopyId, Score, Span};

/// Orders to a core and its answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Core {
    /// Run a copy from the beginning. The worker must be idle.
    Run {
        /// Which copy.
        copy: CopyId,
    },
    /// Run a suspended copy on. The worker must be idle.
    Resume {
        /// Which copy.
        copy: CopyId,
        /// Work still missing.
        left: Span,
    },
    /// Stop the running copy and forget its progress. The worker is idle at once.
    Stop {
        /// Which copy.
        copy: CopyId,
    },
    /// Stop the running copy and report what is missing. The worker is idle at once.
    Suspend {
        /// Which copy.
        copy: CopyId,
    },
    /// Worker → node: the copy finished, the worker is idle.
    Ended {
        /// Which copy.
        copy: CopyId,
    },
    /// Worker → node: the copy was suspended.
    Suspended {
        /// Which copy.
        copy: CopyId,
        /// Work still missing.
        left: Span,
    },
    /// How far is the running copy? A worker that runs another one, or none, is silent.
    Ask {
        /// Which copy.
        copy: CopyId,
    },
    /// Worker → node: so far, at this moment.
    Score {
        /// Which copy.
        copy: CopyId,
        /// How much of its work it has done.
        score: Score,
    },
}

impl Conversation for Core {
    const VARIANTS: &'static [(&'static str, Class)] = &[
        ("core.run", Class::Stream),
        ("core.resume", Class::Stream),
        ("core.stop", Class::Stream),
        ("core.suspend", Class::Stream),
        ("core.ended", Class::Stream),
        ("core.suspended", Class::Stream),
        ("core.ask", Class::Stream),
        ("core.score", Class::Stream),
    ];
    fn variant(&self) -> u8 {
        match self {
            Self::Run { .. } => 0,
            Self::Resume { .. } => 1,
            Self::Stop { .. } => 2,
            Self::Suspend { .. } => 3,
            Self::Ended { .. } => 4,
            Self::Suspended { .. } => 5,
            Self::Ask { .. } => 6,
            Self::Score { .. } => 7,
        }
    }

    fn allowed(&self, _: &Envelope<'_>) -> bool {
        false
    }
}
