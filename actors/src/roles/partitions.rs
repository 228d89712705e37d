//! Two partitions of the nodes: the big one, to which long tasks may go, and the small one, for short tasks only. Also
//! Eagle's bitmap of nodes with long work, as the central scheduler last issued it.

use crate::base::Time;
use crate::message::Blocks;

/// The partitions of a cluster. The small partition is spread evenly over the numbers of nodes, so each rack and each
/// kind of node contributes to both partitions in proportion. Messages of one instant arrive in the order of these
/// numbers, so neither partition is served before the other.
#[derive(Clone, Copy, Debug)]
pub struct Partitions {
    nodes: u32,
    big: u32,
}

impl Partitions {
    /// Partitions of `nodes` nodes, with `big` nodes, at least one, in the big partition.
    pub const fn new(nodes: u32, big: u32) -> Self {
        debug_assert!(0 < big && big <= nodes);
        Self { nodes, big }
    }

    /// The size of the big partition.
    pub const fn big(self) -> u32 {
        self.big
    }

    /// The size of the small partition.
    pub const fn small(self) -> u32 {
        self.nodes - self.big
    }

    /// Number of nodes of the big partition below `node`.
    pub const fn big_before(self, node: u32) -> u32 {
        (node as u64 * self.big as u64).div_ceil(self.nodes as u64) as u32
    }

    /// Whether a node is in the big partition.
    pub const fn is_big(self, node: u32) -> bool {
        self.big_before(node) < self.big_before(node + 1)
    }

    /// The `nth` node of the big partition.
    pub const fn big_node(self, nth: u32) -> u32 {
        (nth as u64 * self.nodes as u64 / self.big as u64) as u32
    }

    /// The `nth` node of the small partition.
    pub const fn small_node(self, nth: u32) -> u32 {
        ((nth as u64 + 1) * self.nodes as u64).div_ceil(self.small() as u64) as u32 - 1
    }
}

const NODES: u32 = Blocks::NODES;

/// A bit for each node, in blocks that each have a time stamp. Empty before the first block arrives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeBitmap {
    blocks: Vec<[u32; 3]>,
    /// Number of set bits in each block, and in total.
    ones: Vec<u32>,
    all_ones: u32,
    stamps: Vec<Time>,
    newest: Time,
}

impl NodeBitmap {
    /// The time of the newest block.
    pub const fn newest(&self) -> Time {
        self.newest
    }

    /// Bit mask of the nodes with long work among the 32 nodes from number `32 * word` on, by the newest blocks.
    pub fn word(&self, word: u32) -> u32 {
        let (block, word, _) = place(word * 32);
        self.blocks.get(block).map_or(0, |bits| bits[word])
    }

    /// Number of nodes without long work, among `nodes` nodes.
    pub const fn clear(&self, nodes: u32) -> u32 {
        nodes.saturating_sub(self.all_ones)
    }

    /// Number of the node without long work that has index `nth` among such nodes; at least `nth` + 1 must exist.
    pub fn nth_clear(&self, mut nth: u32) -> u32 {
        let mut first = 0;
        for (block, ones) in self.blocks.iter().zip(&self.ones) {
            if nth >= NODES - ones {
                nth -= NODES - ones;
                first += NODES;
                continue;
            }
            for &word in block {
                if nth < word.count_zeros() {
                    return first + nth_bit(!word, nth);
                }
                nth -= word.count_zeros();
                first += 32;
            }
        }
        // The nodes beyond the blocks, when no block has arrived.
        first + nth
    }

    /// Replaces a block.
    fn replace(&mut self, block: usize, bits: [u32; 3]) {
        let ones = bits.iter().map(|word| word.count_ones()).sum();
        self.all_ones = self.all_ones + ones - self.ones[block];
        self.ones[block] = ones;
        self.blocks[block] = bits;
    }

    /// Marks one of `nodes` nodes; returns whether the bitmap changes.
    pub fn set(&mut self, node: u32, long: bool, nodes: u32) -> bool {
        self.make(nodes);
        let (block, word, bit) = place(node);
        let before = self.blocks[block];
        let mut bits = before;
        bits[word] = if long { bits[word] | bit } else { bits[word] & !bit };
        self.replace(block, bits);
        bits != before
    }

    /// Stamps all blocks with `now`; only the actor that maintains the bitmap calls this.
    pub fn stamp(&mut self, now: Time) {
        self.stamps.fill(now);
        self.newest = now;
    }

    /// The blocks newer than `known`; adjacent equal blocks are joined.
    pub fn newer(&self, known: Time) -> impl Iterator<Item = Blocks> + '_ {
        let mut at = if self.newest <= known { self.blocks.len() } else { 0 };
        std::iter::from_fn(move || {
            while self.stamps.get(at).is_some_and(|&stamp| stamp <= known) {
                at += 1;
            }
            let (bits, stamp) = (*self.blocks.get(at)?, self.stamps[at]);
            let first = at;
            while self.blocks.get(at) == Some(&bits) && self.stamps[at] == stamp && at - first < 0xffff {
                at += 1;
            }
            Some(Blocks { first: first as u16, len: (at - first) as u16, bits, at: stamp.into() })
        })
    }

    /// Applies blocks that are newer than the present ones; `nodes` is the number of nodes.
    pub fn learn(&mut self, new: Blocks, nodes: u32) {
        self.make(nodes);
        let at = Time::from(new.at);
        for block in usize::from(new.first)..usize::from(new.first) + usize::from(new.len) {
            if self.stamps[block] < at {
                self.replace(block, new.bits);
                self.stamps[block] = at;
            }
        }
        self.newest = self.newest.max(at);
    }

    fn make(&mut self, nodes: u32) {
        if self.blocks.is_empty() {
            let blocks = nodes.div_ceil(NODES) as usize;
            self.blocks = vec![[0; 3]; blocks];
            self.ones = vec![0; blocks];
            self.stamps = vec![Time::ZERO; blocks];
        }
    }
}

const fn place(node: u32) -> (usize, usize, u32) {
    ((node / NODES) as usize, (node % NODES / 32) as usize, 1 << (node % 32))
}

/// Position of the set bit with index `nth`; at least `nth` + 1 bits must be set.
pub(super) fn nth_bit(mut bits: u32, nth: u32) -> u32 {
    for _ in 0..nth {
        bits &= bits - 1;
    }
    bits.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range of node numbers has its share of both partitions, to within one node.
    #[test]
    fn the_partitions_are_spread_evenly_and_every_node_is_in_one() {
        let sizes = (1..=70).flat_map(|nodes| (1..=nodes).map(move |big| (nodes, big)));
        for (nodes, big) in sizes.chain([(15_000, 14_700), (4_000_000, 3_999_999)]) {
            let of = Partitions::new(nodes, big);
            let (bigs, smalls): (Vec<u32>, Vec<u32>) = (0..nodes).partition(|&node| of.is_big(node));
            assert_eq!((bigs.len(), smalls.len()), (big as usize, of.small() as usize), "{nodes} nodes");
            assert!(
                (0..).zip(&bigs).all(|(nth, &node)| (of.big_node(nth), of.big_before(node)) == (node, nth))
            );
            assert!((0..).zip(&smalls).all(|(nth, &node)| of.small_node(nth) == node));
            let mut before = 0;
            for node in 0..nodes {
                assert_eq!(of.big_before(node), before);
                let share = f64::from(node) * f64::from(big) / f64::from(nodes);
                assert!((f64::from(before) - share).abs() < 1.0, "{before} below {node}, {big} of {nodes}");
                before += u32::from(of.is_big(node));
            }
        }
    }

    #[test]
    fn a_bitmap_arrives_as_sent_and_older_blocks_are_ignored() {
        let nodes = 1000;
        let mut made = NodeBitmap::default();
        for node in (0..nodes).filter(|node| node % 7 == 0 || (192..480).contains(node)) {
            made.set(node, true, nodes);
        }
        made.stamp(Time(5));
        let mut received = NodeBitmap::default();
        let parts: Vec<_> = made.newer(Time::ZERO).collect();
        assert_eq!(parts.len(), 9, "three of the eleven blocks are equal: {parts:?}");
        parts.iter().for_each(|&part| received.learn(part, nodes));
        assert_eq!(received, made);
        assert_eq!(made.newer(Time(5)).count(), 0);
        made.set(3, true, nodes);
        made.stamp(Time(6));
        let news: Vec<_> = made.newer(received.newest()).collect();
        parts.iter().chain(&news).chain(&parts).for_each(|&part| received.learn(part, nodes));
        assert_eq!(received, made);
        let has = |node: u32| received.word(node / 32) >> (node % 32) & 1 == 1;
        assert!(has(3) && has(300) && !has(641));
        let clear: Vec<u32> = (0..nodes).filter(|&node| !has(node)).collect();
        assert_eq!(received.clear(nodes) as usize, clear.len());
        assert_eq!((0..received.clear(nodes)).map(|nth| received.nth_clear(nth)).collect::<Vec<_>>(), clear);
        assert_eq!((NodeBitmap::default().clear(7), NodeBitmap::default().nth_clear(6)), (7, 6));
    }
}
