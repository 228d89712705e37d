//! Succinct State Sharing: the new nodes for places that a node with long work rejected (Eagle, section 4.2).

use crate::base::ActorId;
use crate::layout::Layout;
use crate::machine::Effects;
use crate::roles::membership::Membership;
use crate::roles::node_bitmap::NodeBitmap;

/// Random draws before a scan of all nodes.
const DRAWS: u32 = 16;

/// A scheduler's view of the nodes with long work.
pub struct StateSharing {
    /// Rounds of probes sent to nodes without long work by the bitmap.
    rounds: u16,
    /// The first node outside the big partition; nodes from here on have no long work.
    short: u32,
    /// The newest bitmap received.
    pub(super) bits: NodeBitmap,
}

impl StateSharing {
    /// Begins with an empty bitmap. `short` is the first node that long tasks never go to.
    pub fn new(rounds: u16, short: u32) -> Self {
        Self { rounds, short, bits: NodeBitmap::default() }
    }

    /// A node for a place that was rejected `round` times, and whether it must accept.
    pub(super) fn elsewhere(
        &self,
        round: u16,
        members: &Membership,
        fx: &mut Effects<'_>,
    ) -> Option<(ActorId, bool)> {
        let layout = fx.layout();
        let free = |node: ActorId| !self.bits.has(layout.node_number(node));
        let for_short = |node: ActorId| layout.node_number(node) >= self.short;
        if round <= self.rounds
            && let Some(node) = search(members, layout, free, fx)
        {
            return Some((node, false));
        }
        let node = search(members, layout, for_short, fx).or_else(|| members.pick(fx.rng()))?;
        Some((node, true))
    }
}

/// A uniformly drawn live node that is `wanted`.
fn search(
    members: &Membership,
    layout: &Layout,
    wanted: impl Fn(ActorId) -> bool,
    fx: &mut Effects<'_>,
) -> Option<ActorId> {
    for _ in 0..DRAWS {
        let node = members.pick(fx.rng())?;
        if wanted(node) {
            return Some(node);
        }
    }
    let all = || (0..layout.nodes()).map(|i| layout.node(i)).filter(|&n| wanted(n) && members.has(n, layout));
    let count = all().count() as u32;
    if count == 0 {
        return None;
    }
    let nth = fx.rng().below(count) as usize;
    all().nth(nth)
}
