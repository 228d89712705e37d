//! Hawk: an idle node takes over reservations that wait behind long tasks elsewhere.

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use crate::base::{Class, JobId};

/// Stealing, between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Steal {
    /// Have you anything for me?
    Ask,
    /// A reservation; several of them are an answer.
    Loot {
        /// Number of the scheduler that made it.
        scheduler: u32,
        /// The job.
        job: JobId,
        /// Places, at least one.
        count: u32,
        /// Whether it repairs a loss.
        repair: bool,
    },
    /// Nothing.
    Nothing,
}

impl Conversation for Steal {
    const VARIANTS: &'static [(&'static str, Class)] = &[
        ("steal.ask", Class::Datagram),
        ("steal.loot", Class::Datagram),
        ("steal.nothing", Class::Datagram),
    ];
    fn variant(&self) -> u8 {
        match self {
            Self::Ask => 0,
            Self::Loot { .. } => 1,
            Self::Nothing => 2,
        }
    }

    fn allowed(&self, envelope: &Envelope<'_>) -> bool {
        envelope.along()
            && match *self {
                Self::Ask | Self::Nothing => true,
                Self::Loot { scheduler, job, count, .. } => {
                    scheduler < envelope.layout.schedulers() && count > 0 && envelope.has_task(job.task(0))
                }
            }
    }
}
