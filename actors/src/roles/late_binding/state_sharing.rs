//! Succinct State Sharing: the new nodes for places that a node with long work rejected (Eagle, section 4.2).

use crate::base::ActorId;
use crate::layout::Layout;
use crate::machine::{Effects, Note};
use crate::message::Blocks;
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
        let layout = fx.layout();
        let free = |word: u32| !self.bits.word(word);
        // All bits of the words above the first short node, its own and later ones of its word, none below.
        let for_short = |word: u32| match self.short.checked_sub(word * 32) {
            None => u32::MAX,
            Some(first) => u32::MAX.checked_shl(first).unwrap_or(0),
        };
        if round <= self.rounds
            && let Some(node) = search(members, layout, free, fx)
        {
            return Some((node, false));
        }
        let node = search(members, layout, for_short, fx).or_else(|| members.pick(fx.rng()))?;
        Some((node, true))
    }
}

/// A uniformly drawn live node whose bit is set in `wanted`, which gives the bits of the nodes from 32 times its
/// argument on.
fn search(
    members: &Membership,
    layout: &Layout,
    wanted: impl Fn(u32) -> u32,
    fx: &mut Effects<'_>,
) -> Option<ActorId> {
    for _ in 0..DRAWS {
        let node = members.pick(fx.rng())?;
        let number = layout.node_number(node);
        if wanted(number / 32) >> (number % 32) & 1 == 1 {
            return Some(node);
        }
    }
    let words = || (0..layout.nodes().div_ceil(32)).map(|word| (word, wanted(word) & members.word(word)));
    let count = words().map(|(_, bits)| bits.count_ones()).sum();
    if count == 0 {
        return None;
    }
    let mut nth = fx.rng().below(count);
    let (word, mut bits) = words().find(|(_, bits)| {
        let here = nth < bits.count_ones();
        nth -= if here { 0 } else { bits.count_ones() };
        here
    })?;
    for _ in 0..nth {
        bits &= bits - 1;
    }
    Some(layout.node(word * 32 + bits.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Rng, Time};
    use crate::harness::Jobs;

    /// Each wanted live node is found, and no other, whether a draw meets it or the words are searched.
    #[test]
    fn the_search_finds_the_wanted_live_nodes() {
        let layout = Layout::new(1, 0, vec![1; 100]);
        let mut members = Membership::new(&layout);
        [1, 33, 99].into_iter().for_each(|node| members.down(layout.node(node), &layout));
        let (mut rng, mut effects, jobs) =
            (Rng::new(1, 2, 0), Vec::new(), Jobs { tasks: 1, long: Vec::new() });
        for wanted in [vec![0, 1, 2, 31, 32, 33, 64, 98, 99], vec![98], vec![33], (0..100).collect()] {
            let word = |word: u32| {
                wanted.iter().filter(|&&node| node / 32 == word).fold(0, |bits, node| bits | 1 << (node % 32))
            };
            let mut found: Vec<u32> = (0..2000)
                .filter_map(|_| {
                    let me = layout.scheduler(0);
                    let mut fx = Effects::new(Time::ZERO, me, &mut rng, &mut effects, &jobs, &layout);
                    search(&members, &layout, word, &mut fx).map(|node| layout.node_number(node))
                })
                .collect();
            found.sort_unstable();
            found.dedup();
            let live: Vec<u32> = wanted.into_iter().filter(|node| ![1, 33, 99].contains(node)).collect();
            assert_eq!(found, live);
        }
    }
}
