//! How far running copies are, told to whoever sent them.

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use crate::base::{Class, CopyId, Score, Time};

/// State as of a time; the newest wins, a lost one is made good by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Progress {
    /// Node → scheduler.
    Report {
        /// The copy.
        copy: CopyId,
        /// How much of its work it has done.
        score: Score,
        /// When it was so.
        at: Time,
    },
}

impl Conversation for Progress {
    const VARIANTS: &'static [(&'static str, Class)] = &[("progress.report", Class::Datagram)];
    fn variant(&self) -> u8 {
        match self {
            Self::Report { .. } => 0,
        }
    }

    fn allowed(&self, envelope: &Envelope<'_>) -> bool {
        let Self::Report { copy, score, .. } = self;
        envelope.upwards() && envelope.has_task(copy.task) && *score <= Score::ALL
    }
}
