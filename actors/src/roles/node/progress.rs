//! Progress queries of a node manager.

use super::manager::{CoreState, NodeManager};
use crate::base::{ActorId, CopyId, Score};
use crate::layout::Role;
use crate::machine::Effects;
use crate::message::{Core, Progress};

impl NodeManager {
    /// Queries the progress of every busy core; the answers are reported to the schedulers of the copies.
    pub fn ask(&self, fx: &mut Effects<'_>) {
        for (core, slot) in self.slots.iter().enumerate() {
            if let CoreState::Running(row) = slot {
                fx.send(Self::worker(core, fx), Core::Ask { copy: row.row.copy(row.at) });
            }
        }
    }

    /// Whether a core runs something.
    pub fn is_running(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, CoreState::Running(_)))
    }

    /// Forwards the answer of a core.
    pub(super) fn score(&self, worker: ActorId, copy: CopyId, score: Score, fx: &mut Effects<'_>) {
        if let Role::Worker { core, .. } = fx.layout().role(worker)
            && let CoreState::Running(row) = &self.slots[core as usize]
        {
            fx.send(row.from, Progress::Report { copy, score, at: fx.now() });
        }
    }
}
