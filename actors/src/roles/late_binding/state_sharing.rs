//! Succinct State Sharing (Eagle, section 4.2): reservations that nodes with long work reject move to nodes that a
//! bitmap shows without long work.

use super::group::TaskGroup;
use crate::base::{ActorId, JobId};
use crate::machine::{CacheNote, Effects};
use crate::message::{Share, Stamp};
use crate::roles::job_table::JobTable;
use crate::roles::membership::Membership;
use crate::roles::partitions::{NodeBitmap, Partitions, nth_bit};

/// Number of nodes tried at random before all nodes are scanned.
const DRAWS: u32 = 16;

/// A scheduler's view of the nodes with long work.
#[derive(Clone, Debug)]
pub struct StateSharing {
    /// Number of rounds in which probes go to nodes that the bitmap shows without long work.
    rounds: u16,
    partitions: Partitions,
    /// The newest bitmap received.
    bits: NodeBitmap,
    watched: bool,
    sample: Vec<ActorId>,
}

impl StateSharing {
    /// A view with an empty bitmap. `watched` says whether the age of the bitmap is recorded.
    pub fn new(rounds: u16, partitions: Partitions, watched: bool) -> Self {
        Self { rounds, partitions, bits: NodeBitmap::default(), watched, sample: Vec::new() }
    }

    /// The first request of `count` reservations for a job. Nodes must accept a request that repairs a loss.
    pub(super) fn request(&self, job: JobId, count: u32, repair: bool) -> Share {
        Share::Probe { job, count, round: 0, last: repair, repair, known: self.known() }
    }

    /// Timestamp of the newest block. Requests state it, so that the node answers with newer blocks only.
    fn known(&self) -> Stamp {
        self.bits.newest().into()
    }

    /// Handles a node's answer: stores a block of the bitmap, or moves rejected reservations while they are useful.
    pub(super) fn receive(
        &mut self,
        from: ActorId,
        share: Share,
        jobs: &mut JobTable<Vec<TaskGroup>>,
        members: &Membership,
        fx: &mut Effects<'_>,
    ) {
        match share {
            Share::Rejected { job, count, round, repair } => {
                let Some([group]) = jobs.get_mut(job).map(Vec::as_mut_slice) else { return };
                // A later probe covers all reservations on the node and has its own answer. If each answer moved them,
                // they would move again before their probes arrive, and probes would multiply.
                if count < group.places.of(from) {
                    return;
                }
                let places = group.places.take(from, count);
                if group.waiting() > 0 {
                    let round = round.saturating_add(1);
                    let last = self.elsewhere(places, round, members, fx);
                    // One probe of each node covers all its reservations. If each reservation had a probe, rejections
                    // would multiply.
                    group.places.spread(self.sample.len(), &self.sample, |node, count| {
                        let known = self.known();
                        fx.send_as(repair, node, Share::Probe { job, count, round, last, repair, known });
                    });
                }
            }
            Share::Bits(blocks) => {
                let before = self.bits.newest();
                self.bits.learn(blocks, fx.layout().nodes());
                if self.watched && self.bits.newest() > before {
                    fx.note(CacheNote::Refreshed { at: self.bits.newest() });
                }
            }
            // The message is sent only because it carries the bitmap.
            Share::Accepted { .. } => {}
            Share::Probe { .. } => fx.unexpected(&share.into()),
        }
    }

    /// Samples nodes for reservations that were rejected `round` times: nodes without long work in the first rounds,
    /// then nodes outside the big partition. Returns whether the nodes must accept. Equal nodes are adjacent in the
    /// sample.
    fn elsewhere(&mut self, places: u32, round: u16, members: &Membership, fx: &mut Effects<'_>) -> bool {
        let mut last = false;
        self.sample.clear();
        for _ in 0..places {
            let known = if round <= self.rounds { free(&self.bits, members, fx) } else { None };
            let node = known.or_else(|| for_short(self.partitions, members, fx));
            let Some(node) = node.or_else(|| members.pick(fx.rng())) else { break };
            last = known.is_none();
            self.sample.push(node);
        }
        self.sample.sort_unstable();
        last
    }
}

/// A uniformly sampled live node that a bitmap shows without long work.
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
    let mut words = (0..nodes.div_ceil(32)).map(|word| (word, !bits.word(word) & members.word(word)));
    let full = members.is_full();
    let ones = |(_, bits): (u32, u32)| bits.count_ones();
    let count = if full { bits.clear(nodes) } else { words.clone().map(ones).sum() };
    let mut nth = (count > 0).then(|| fx.rng().below(count))?;
    if full {
        return Some(layout.node(bits.nth_clear(nth)));
    }
    let (word, bits) = words.find(|&(_, bits)| {
        let here = nth < bits.count_ones();
        nth -= if here { 0 } else { bits.count_ones() };
        here
    })?;
    Some(layout.node(word * 32 + nth_bit(bits, nth)))
}

/// A uniformly sampled live node of the small partition.
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
    use crate::harness::{Jobs, SINGLE};
    use crate::layout::Layout;

    /// The search finds each wanted live node and no other node, both by draws and by a scan of all nodes.
    #[test]
    fn the_search_finds_the_wanted_live_nodes() {
        let layout = Layout::new(1, 0, vec![1; 100]);
        let (mut rng, mut effects, jobs) = (
            Rng::new(1, 2, 0),
            Vec::new(),
            Jobs { tasks: 1, long: Vec::new(), deadlines: Vec::new(), stages: SINGLE },
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
