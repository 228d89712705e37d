//! The nodes a scheduler believes alive.

use std::collections::BTreeSet;

use crate::base::{ActorId, Rng};
use crate::layout::{Layout, Role};

/// Live nodes, with uniform picks and samples without replacement.
///
/// While every node is alive and samples are small, nothing is stored. The first crash or the first large sample
/// creates the table (4 bytes a node).
#[derive(Clone, Debug)]
pub struct Membership {
    first: ActorId,
    nodes: u32,
    /// Live nodes in arbitrary order, once the table exists; samples shuffle it in place.
    live: Option<Vec<u32>>,
    /// Nodes that crashed and are not back.
    down: BTreeSet<u32>,
}

/// Largest sample that is taken by rejection of duplicates; larger samples shuffle a table.
const SMALL: usize = 8;

impl Membership {
    /// All nodes of the layout.
    pub const fn new(layout: &Layout) -> Self {
        Self { first: layout.node(0), nodes: layout.nodes(), live: None, down: BTreeSet::new() }
    }

    /// Number of live nodes.
    pub fn len(&self) -> u32 {
        self.live.as_ref().map_or(self.nodes, |live| live.len() as u32)
    }

    /// Whether no node is alive.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all nodes are alive.
    pub fn is_full(&self) -> bool {
        self.down.is_empty()
    }

    /// Whether a node is alive.
    pub fn has(&self, node: ActorId, layout: &Layout) -> bool {
        !self.down.contains(&layout.node_number(node))
    }

    /// Bit mask of the live nodes among the 32 nodes from number `32 * word` on.
    pub fn word(&self, word: u32) -> u32 {
        let first = word * 32;
        let there = u32::MAX.checked_shr((first + 32).saturating_sub(self.nodes)).unwrap_or(0);
        if self.down.is_empty() {
            return there;
        }
        self.down.range(first..first + 32).fold(there, |bits, node| bits & !(1 << (node - first)))
    }

    /// A live node, uniformly; `None` if none is alive.
    pub fn pick(&self, rng: &mut Rng) -> Option<ActorId> {
        let len = self.len();
        (len > 0).then(|| self.at(rng.below(len)))
    }

    /// The live node after `pointer` in cyclic order of ids, and the pointer for the next call.
    pub fn next(&self, pointer: &mut u32) -> Option<ActorId> {
        if self.is_empty() {
            return None;
        }
        for _ in 0..self.nodes {
            let node = *pointer % self.nodes;
            *pointer = (node + 1) % self.nodes;
            if !self.down.contains(&node) {
                return Some(ActorId(self.first.0 + node));
            }
        }
        None
    }

    /// Replaces the content of `out` by `count` distinct live nodes, drawn uniformly without replacement; by all of
    /// them, in random order, if fewer are alive.
    pub fn sample(&mut self, rng: &mut Rng, count: usize, out: &mut Vec<ActorId>) {
        let count = count.min(self.len() as usize);
        out.clear();
        if count <= SMALL && count * 2 <= self.len() as usize {
            while out.len() < count {
                let node = self.at(rng.below(self.len()));
                if !out.contains(&node) {
                    out.push(node);
                }
            }
            return;
        }
        let first = self.first.0;
        let live = self.table();
        for i in 0..count {
            let j = i + rng.below((live.len() - i) as u32) as usize;
            live.swap(i, j);
            out.push(ActorId(first + live[i]));
        }
    }

    /// A live node that is not among `taken`, or any live node if all are taken; `None` if no node is alive.
    pub fn another(&self, rng: &mut Rng, taken: &[ActorId]) -> Option<ActorId> {
        let len = self.len();
        if len == 0 {
            return None;
        }
        let start = rng.below(len);
        (0..len)
            .map(|i| self.at((start + i) % len))
            .find(|node| !taken.contains(node))
            .or_else(|| self.pick(rng))
    }

    /// Removes a node that crashed; other actors are ignored.
    pub fn down(&mut self, actor: ActorId, layout: &Layout) {
        if let Role::Node(node) = layout.role(actor) {
            self.table().retain(|&n| n != node);
            self.down.insert(node);
        }
    }

    /// Adds a node that restarted; other actors are ignored.
    pub fn up(&mut self, actor: ActorId, layout: &Layout) {
        if let Role::Node(node) = layout.role(actor)
            && self.down.remove(&node)
        {
            self.table().push(node);
        }
    }

    fn at(&self, i: u32) -> ActorId {
        ActorId(self.first.0 + self.live.as_ref().map_or(i, |live| live[i as usize]))
    }

    fn table(&mut self) -> &mut Vec<u32> {
        let nodes = self.nodes;
        self.live.get_or_insert_with(|| (0..nodes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_contain_distinct_live_nodes_with_equal_frequency() {
        let layout = Layout::new(1, 0, vec![1; 20]);
        let mut members = Membership::new(&layout);
        let mut rng = Rng::new(1, 2, 0);
        members.down(layout.node(3), &layout);
        for count in [2, 5, 12, 19, 40] {
            let mut hits = [0u32; 20];
            for _ in 0..4000 {
                let mut out = vec![ActorId(999)];
                members.sample(&mut rng, count, &mut out);
                assert_eq!(out.len(), count.min(19));
                for (i, node) in out.iter().enumerate() {
                    assert!(!out[..i].contains(node) && *node != layout.node(3));
                    hits[(node.0 - layout.node(0).0) as usize] += 1;
                }
            }
            let expected = 4000.0 * count.min(19) as f64 / 19.0;
            for (node, &n) in hits.iter().enumerate().filter(|(node, _)| *node != 3) {
                assert!(
                    (f64::from(n) - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "node {node}: {n} of {expected}"
                );
            }
        }
        members.up(layout.node(3), &layout);
        assert_eq!(members.len(), 20);
        let mut pointer = 18;
        let order: Vec<_> =
            (0..4).map(|_| members.next(&mut pointer).unwrap().0 - layout.node(0).0).collect();
        assert_eq!(order, [18, 19, 0, 1]);
    }
}
