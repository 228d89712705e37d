//! Gang scheduler ↔ node: synchronised time slices.

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use crate::base::{Class, CopyId};
use crate::layout::Role;

/// Orders of a gang scheduler to a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Gang {
    /// Scheduler → node: the slice changes. Suspend what this core runs and run `copy` instead, resuming it
    /// if it was suspended here; with `None` the core rests.
    Switch {
        /// Which core of the node.
        core: u16,
        /// What it runs in this slice.
        copy: Option<CopyId>,
        /// How often the scheduler was restarted.
        epoch: u16,
        /// How many orders this life of it gave to this core. A core ignores what is older than the last, by
        /// epoch and then by number.
        order: u32,
    },
}

impl Conversation for Gang {
    const VARIANTS: &'static [(&'static str, Class)] = &[("gang.switch", Class::Stream)];
    fn variant(&self) -> u8 {
        match self {
            Self::Switch { .. } => 0,
        }
    }

    fn allowed(&self, envelope: &Envelope<'_>) -> bool {
        let Self::Switch { core, copy, .. } = *self;
        let Role::Node(node) = envelope.to else { return false };
        envelope.downwards()
            && u32::from(core) < envelope.layout.cores(node)
            && copy.is_none_or(|copy| envelope.has_task(copy.task))
    }
}
