//! Two partitions of the nodes: the big one, to which long tasks may go, and the small one, for short tasks only.

/// The partitions of a cluster. The small one is spread evenly over the numbers of nodes: messages of one instant come
/// in the order of these numbers, so neither partition is served before the other, and both have their share of every
/// rack and kind of node.
#[derive(Clone, Copy, Debug)]
pub struct Partitions {
    nodes: u32,
    big: u32,
}

impl Partitions {
    /// Partitions of `nodes` nodes, with `big`, at least one, in the big partition.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every stretch of node numbers has its share of both partitions, to within a node.
    #[test]
    fn the_partitions_are_spread_evenly_and_every_node_is_in_one() {
        let sizes = (1..=70).flat_map(|nodes| (1..=nodes).map(move |big| (nodes, big)));
        for (nodes, big) in sizes.chain([(15_000, 14_700), (4_000_000, 3_999_999)]) {
            let of = Partitions::new(nodes, big);
            let (bigs, smalls): (Vec<u32>, Vec<u32>) = (0..nodes).partition(|&node| of.is_big(node));
            assert_eq!((bigs.len(), smalls.len()), (big as usize, of.small() as usize), "of {nodes}");
            assert!(
                (0..).zip(&bigs).all(|(nth, &node)| (of.big_node(nth), of.big_before(node)) == (node, nth))
            );
            assert!((0..).zip(&smalls).all(|(nth, &node)| of.small_node(nth) == node));
            let mut before = 0;
            for node in 0..nodes {
                assert_eq!(of.big_before(node), before);
                let share = f64::from(node) * f64::from(big) / f64::from(nodes);
                assert!((f64::from(before) - share).abs() < 1.0, "{before} of {node}, of {big} of {nodes}");
                before += u32::from(of.is_big(node));
            }
        }
    }
}
