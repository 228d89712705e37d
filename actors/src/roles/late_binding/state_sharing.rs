//! Succinct State StateSharing: where places go that a node with long work turned away (Eagle, section 4.2).

use crate::base::ActorId;
use crate::layout::Layout;
use crate::machine::Effects;
use crate::roles::membership::Membership;
use crate::roles::node_bitmap::NodeBitmap;

/// Draws before all nodes are looked through.
const DRAWS: u32 = 16;

/// What a scheduler knows of nodes with long work.
#[derive(Debug)]
pub struct StateSharing {
    /// Rounds of probes that go where the bitmap says there is no long work.
    rounds: u16,
    /// The first node that never has any; all after it do not either.
    short: u32,
    /// The newest bitmap heard of.
    pub(super) bits: NodeBitmap,
}

impl StateSharing {
    /// Nothing is known. `short` is the first node that long tasks never go to.
    #[must_use]
    pub fn new(rounds: u16, short: u32) -> Self {
        Self { rounds, short, bits: NodeBitmap::default() }
    }

    /// A node for a place that was turned away `round` times, and whether it must keep it.
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

/// A live node of which something holds, uniformly.
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
