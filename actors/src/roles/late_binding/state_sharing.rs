//! Succinct State Sharing: the new nodes for places that a node with long work rejected (Eagle, section 4.2).

use crate::base::ActorId;
use crate::machine::{CacheNote, Effects};
use crate::message::Blocks;
use crate::roles::membership::Membership;
use crate::roles::node_bitmap::{NodeBitmap, nth_bit};
use crate::roles::partitions::Partitions;

/// Random draws before a scan.
const DRAWS: u32 = 16;

/// A scheduler's view of the nodes with long work.
pub struct StateSharing {
    /// Rounds of probes sent to nodes without long work by the bitmap.
    rounds: u16,
    partitions: Partitions,
    /// The newest bitmap received.
    pub(super) bits: NodeBitmap,
    watched: bool,
}

impl StateSharing {
    /// Begins with an empty bitmap. `watched` says whether the age of the bitmap is recorded.
    pub fn new(rounds: u16, partitions: Partitions, watched: bool) -> Self {
        Self { rounds, partitions, bits: NodeBitmap::default(), watched }
    }

    /// Applies a part of a bitmap.
    pub(super) fn learn(&mut self, blocks: Blocks, fx: &mut Effects<'_>) {
        let before = self.bits.newest();
        self.bits.learn(blocks, fx.layout().nodes());
        if self.watched && self.bits.newest() > before {
            fx.note(CacheNote::Refreshed { at: self.bits.newest() });
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
            && let Some(node) = free(&self.bits, members, fx)
        {
            return Some((node, false));
        }
        let node = for_short(self.partitions, members, fx).or_else(|| members.pick(fx.rng()))?;
        Some((node, true))
    }
}

/// A uniformly drawn live node without long work by a bitmap.
fn free(bits: &NodeBitmap, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
    let layout = fx.layout();
    for _ in 0..DRAWS {
        let node = members.pick(fx.rng())?;
        let number = layout.node_number(node);
        if bits.word(number / 32) >> (number % 32) & 1 == 0 {
            return Some(node);
        }
    }
    let nodes = layout.nodes();
    let words = || (0..nodes.div_ceil(32)).map(|word| (word, !bits.word(word) & members.word(word)));
    let full = members.is_full();
    let count = if full { bits.clear(nodes) } else { words().map(|(_, bits)| bits.count_ones()).sum() };
    if count == 0 {
        return None;
    }
    let mut nth = fx.rng().below(count);
    if full {
        return Some(layout.node(bits.nth_clear(nth)));
    }
    let (word, bits) = words().find(|(_, bits)| {
        let here = nth < bits.count_ones();
        nth -= if here { 0 } else { bits.count_ones() };
        here
    })?;
    Some(layout.node(word * 32 + nth_bit(bits, nth)))
}

/// A uniformly drawn live node of the small partition.
fn for_short(partitions: Partitions, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
    let (layout, small) = (fx.layout(), partitions.small());
    let live = |nth| Some(layout.node(partitions.small_node(nth))).filter(|&node| members.has(node, layout));
    if small == 0 {
        return None;
    }
    let drawn = (0..DRAWS).find_map(|_| live(fx.rng().below(small)));
    drawn.or_else(|| {
        let count = (0..small).filter_map(live).count() as u32;
        let nth = (count > 0).then(|| fx.rng().below(count))?;
        (0..small).filter_map(live).nth(nth as usize)
    })
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
        type Search<'a> = &'a dyn Fn(&Membership, &mut Effects<'_>) -> Option<ActorId>;
        let mut assert_found = |members: &Membership, wanted: &dyn Fn(u32) -> bool, search: Search<'_>| {
            let mut found: Vec<u32> = (0..2000)
                .filter_map(|_| {
                    let me = layout.scheduler(0);
                    let mut fx = Effects::new(Time::ZERO, me, &mut rng, &mut effects, &jobs, &layout);
                    search(members, &mut fx).map(|node| layout.node_number(node))
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
                assert_found(&members, &|node| free.contains(&node), &|members, fx| {
                    super::free(&bits, members, fx)
                });
            }
            for big in [1, 33, 98, 99, 100] {
                let of = Partitions::new(100, big);
                assert_found(&members, &|node| !of.is_big(node), &|members, fx| for_short(of, members, fx));
            }
        }
    }
}
