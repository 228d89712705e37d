//! A node asked how far what it runs is.

use super::{Node, Slot};
use crate::base::{ActorId, CopyId, Score};
use crate::layout::Role;
use crate::machine::Effects;
use crate::message::{Core, Progress};

impl Node {
    /// Asks every busy core how far it is; what it answers is reported to whoever sent the copy.
    pub fn ask(&self, fx: &mut Effects<'_>) {
        for (core, slot) in self.slots.iter().enumerate() {
            if let Slot::Running(held) = slot {
                fx.send(Self::worker(core, fx), Core::Ask { copy: held.row.copy(held.at) });
            }
        }
    }

    /// Whether a core runs something.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Running(_)))
    }

    /// A core's answer.
    pub(super) fn score(&self, worker: ActorId, copy: CopyId, score: Score, fx: &mut Effects<'_>) {
        if let Role::Worker { core, .. } = fx.layout().role(worker)
            && let Slot::Running(held) = &self.slots[core as usize]
        {
            fx.send(held.from, Progress::Report { copy, score, at: fx.now() });
        }
    }
}
