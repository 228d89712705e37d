//! Succinct State Sharing: the new nodes for places that a node with long work rejected (Eagle, section 4.2).

use crate::base::ActorId;
use crate::machine::{Effects, Note};
use crate::message::Blocks;
use crate::roles::membership::Membership;
use crate::roles::node_bitmap::{NodeBitmap, nth_bit};

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
    watched: bool,
}

impl StateSharing {
    /// Begins with an empty bitmap. `short` is the first node that long tasks never go to; `watched` says whether the
    /// age of the bitmap is recorded.
    pub fn new(rounds: u16, short: u32, watched: bool) -> Self {
        Self { rounds, short, bits: NodeBitmap::default(), watched }
    }

    /// Applies a part of a bitmap.
    pub(super) fn learn(&mut self, blocks: Blocks, fx: &mut Effects<'_>) {
        let before = self.bits.newest();
        self.bits.learn(blocks, fx.layout().nodes());
        if self.watched && self.bits.newest() > before {
            fx.note(Note::Refreshed { at: self.bits.newest() });
        }
    }

    /// A node for a place that was rejected `round` times, and whether it must accept.
    pub(super) fn elsewhere(
        &self,
        round: u16,
        members: &Membership,
        fx: &mut Effects<'_>,
    ) -> Option<(ActorId, bool)> {
        if round <= self.rounds
            && let Some(node) = search(members, &Free(&self.bits), fx)
        {
            return Some((node, false));
        }
        let node = search(members, &ForShort(self.short), fx).or_else(|| members.pick(fx.rng()))?;
        Some((node, true))
    }
}

/// A set of nodes.
trait NodeSet {
    /// Which of the 32 nodes from number `32 * word` on are in it; a bit each.
    fn word(&self, word: u32) -> u32;
    /// How many of `nodes` nodes are in it.
    fn len(&self, nodes: u32) -> u32;
    /// The number of its `nth` node, in order of numbers.
    fn nth(&self, nth: u32) -> u32;
}

/// The nodes without long work by a bitmap.
struct Free<'a>(&'a NodeBitmap);

impl NodeSet for Free<'_> {
    fn word(&self, word: u32) -> u32 {
        !self.0.word(word)
    }
    fn len(&self, nodes: u32) -> u32 {
        self.0.clear(nodes)
    }
    fn nth(&self, nth: u32) -> u32 {
        self.0.nth_clear(nth)
    }
}

/// The nodes from this one on.
struct ForShort(u32);

impl NodeSet for ForShort {
    fn word(&self, word: u32) -> u32 {
        match self.0.checked_sub(word * 32) {
            None => u32::MAX,
            Some(first) => u32::MAX.checked_shl(first).unwrap_or(0),
        }
    }
    fn len(&self, nodes: u32) -> u32 {
        nodes.saturating_sub(self.0)
    }
    fn nth(&self, nth: u32) -> u32 {
        self.0 + nth
    }
}

/// A uniformly drawn live node of a set.
fn search<S: NodeSet + ?Sized>(members: &Membership, wanted: &S, fx: &mut Effects<'_>) -> Option<ActorId> {
    let layout = fx.layout();
    for _ in 0..DRAWS {
        let node = members.pick(fx.rng())?;
        let number = layout.node_number(node);
        if wanted.word(number / 32) >> (number % 32) & 1 == 1 {
            return Some(node);
        }
    }
    let nodes = layout.nodes();
    let words = || (0..nodes.div_ceil(32)).map(|word| (word, wanted.word(word) & members.word(word)));
    let full = members.is_full();
    let count = if full { wanted.len(nodes) } else { words().map(|(_, bits)| bits.count_ones()).sum() };
    if count == 0 {
        return None;
    }
    let mut nth = fx.rng().below(count);
    if full {
        return Some(layout.node(wanted.nth(nth)));
    }
    let (word, bits) = words().find(|(_, bits)| {
        let here = nth < bits.count_ones();
        nth -= if here { 0 } else { bits.count_ones() };
        here
    })?;
    Some(layout.node(word * 32 + nth_bit(bits, nth)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Rng, Time};
    use crate::harness::Jobs;
    use crate::layout::Layout;

    /// Each wanted live node is found, and no other, whether a draw meets it or all are searched.
    #[test]
    fn the_search_finds_the_wanted_live_nodes() {
        let layout = Layout::new(1, 0, vec![1; 100]);
        let (mut rng, mut effects, jobs) = (
            Rng::new(1, 2, 0),
            Vec::new(),
            Jobs { tasks: 1, long: Vec::new(), deadlines: Vec::new(), stages: 1 },
        );
        let mut assert_found = |members: &Membership, wanted: &dyn Fn(u32) -> bool, set: &dyn NodeSet| {
            let mut found: Vec<u32> = (0..2000)
                .filter_map(|_| {
                    let me = layout.scheduler(0);
                    let mut fx = Effects::new(Time::ZERO, me, &mut rng, &mut effects, &jobs, &layout);
                    search(members, set, &mut fx).map(|node| layout.node_number(node))
                })
                .collect();
            found.sort_unstable();
            found.dedup();
            let live = (0..100).filter(|&node| wanted(node) && members.has(layout.node(node), &layout));
            assert_eq!(found, live.collect::<Vec<_>>());
        };
        for dead in [&[][..], &[1, 33, 99]] {
            let mut members = Membership::new(&layout);
            dead.iter().for_each(|&node| members.down(layout.node(node), &layout));
            for free in [vec![0, 1, 2, 31, 32, 33, 64, 98, 99], vec![98], vec![33], (0..100).collect()] {
                let mut bits = NodeBitmap::default();
                for node in 0..100 {
                    bits.set(node, !free.contains(&node), 100);
                }
                assert_found(&members, &|node| free.contains(&node), &Free(&bits));
            }
            for first in [0, 1, 33, 98, 100] {
                assert_found(&members, &|node| node >= first, &ForShort(first));
            }
        }
    }
}
