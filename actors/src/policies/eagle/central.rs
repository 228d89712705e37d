//! The central scheduler's choice of nodes for long tasks: the least wait within the big partition.

use crate::base::{ActorId, TaskId};
use crate::layout::Layout;
use crate::machine::Effects;
use crate::message::Share;
use crate::roles::backlog::Backlogs;
use crate::roles::early_binding::PlacementRule;
use crate::roles::membership::Membership;
use crate::roles::node_bitmap::NodeBitmap;

/// The nodes and the work sent there.
pub(in crate::policies) struct LeastWait {
    backlogs: Backlogs,
    /// The bitmap of nodes with long work, if it is shared.
    bits: Option<NodeBitmap>,
}

impl LeastWait {
    /// Among the first `big` nodes; `shares` the bitmap with them.
    pub(in crate::policies) fn new(layout: &Layout, big: u32, shares: bool) -> Self {
        Self { backlogs: Backlogs::new(layout, big), bits: shares.then(NodeBitmap::default) }
    }

    fn mark(&mut self, node: u32, layout: &Layout) {
        if let Some(bits) = &mut self.bits {
            bits.set(node, !self.backlogs.is_idle(node), layout.nodes());
        }
    }
}

impl PlacementRule for LeastWait {
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        let now = fx.now();
        let Some(node) = self.backlogs.pick(now, fx.rng()) else {
            // None of them can be reached: any live node is better than none.
            return members.pick(fx.rng());
        };
        self.backlogs.add(node, task, fx.catalog().job_estimate(task.job), now);
        self.mark(node, fx.layout());
        Some(fx.layout().node(node))
    }

    fn sent(&mut self, _: TaskId, node: ActorId, fx: &mut Effects<'_>) {
        if let Some(bits) = &mut self.bits {
            bits.stamp(fx.now());
            for part in bits.newer(crate::base::Time::ZERO) {
                fx.send(node, Share::Bits(part));
            }
        }
    }

    fn left(&mut self, task: TaskId, node: ActorId, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        self.backlogs.remove(number, task, fx.now());
        self.mark(number, fx.layout());
    }

    fn crashed(&mut self, node: ActorId, back: bool, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        self.backlogs.clear(number);
        self.backlogs.reach(number, back);
        self.mark(number, fx.layout());
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        self.backlogs.reach(fx.layout().node_number(node), can);
        true
    }
}
