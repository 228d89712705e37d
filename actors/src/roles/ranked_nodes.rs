//! The nodes of a central scheduler by rank: the copies on each node, and the best node for one more copy.

use std::fmt::Debug;

use super::min_wait_index::MinWaitIndex;
use crate::base::{CopyId, Rng, Time};

/// A policy's knowledge of a node, besides its copies.
pub trait NodeRank: Clone + Debug + Send + 'static {
    /// The rank of the node for one more copy, least first; `None` if it has no room. `copies` are the copies on the
    /// node, each with the time at which it was given.
    fn rank(&self, copies: &[(CopyId, Time)]) -> Option<i64>;
}

#[derive(Clone, Debug)]
struct KnownNode<N> {
    node: N,
    /// Copies given to the node and not known to have left it, each with the time at which it was given.
    copies: Vec<(CopyId, Time)>,
    up: bool,
    /// Whether the node is avoided because it could not be reached.
    avoided: bool,
}

/// All nodes of a layout, each with the policy's knowledge of it.
#[derive(Clone, Debug)]
pub struct RankedNodes<N> {
    nodes: Vec<KnownNode<N>>,
    /// The ranks; nodes that are down, avoided or full are excluded.
    ranks: MinWaitIndex,
}

impl<N: NodeRank> RankedNodes<N> {
    /// Ranks nodes, given in order of number, as up and without copies.
    pub fn new(nodes: impl Iterator<Item = N>) -> Self {
        let known = |node| KnownNode { node, copies: Vec::new(), up: true, avoided: false };
        let nodes: Vec<_> = nodes.map(known).collect();
        let ranks = MinWaitIndex::new(nodes.len() as u32, Vec::new());
        let mut all = Self { nodes, ranks };
        (0..all.nodes.len() as u32).for_each(|number| all.change(number, |_| {}));
        all
    }

    /// The node with the least rank, uniformly among ties; `None` if no node has room.
    pub fn pick(&mut self, rng: &mut Rng) -> Option<u32> {
        self.ranks.pick(rng)
    }

    /// Whether any node has room.
    pub fn has_room(&mut self) -> bool {
        self.ranks.least().is_some()
    }

    /// The policy's knowledge of a node, and the copies on the node with the times at which they were given.
    pub fn get(&self, number: u32) -> (&N, &[(CopyId, Time)]) {
        let KnownNode { node, copies, .. } = &self.nodes[number as usize];
        (node, copies)
    }

    /// Changes the policy's knowledge of a node.
    pub fn update(&mut self, number: u32, change: impl FnOnce(&mut N)) {
        self.change(number, |known| change(&mut known.node));
    }

    /// Gives a node a copy.
    pub fn give(&mut self, number: u32, copy: CopyId, now: Time) {
        self.change(number, |known| known.copies.push((copy, now)));
    }

    /// Removes a copy that left a node; returns whether the node had it.
    pub fn release(&mut self, number: u32, copy: CopyId) -> bool {
        let Some(at) = self.get(number).1.iter().position(|(given, _)| *given == copy) else { return false };
        self.change(number, |known| {
            known.copies.swap_remove(at);
        });
        true
    }

    /// Excludes a node that cannot be reached, or readmits it.
    pub fn avoid(&mut self, number: u32, avoided: bool) {
        self.change(number, |known| known.avoided = avoided);
    }

    /// Marks a node as down or, after a restart, as up. In both cases it has no copies.
    pub fn set_up(&mut self, number: u32, up: bool) {
        self.change(number, |known| {
            (known.up, known.avoided) = (up, known.avoided && !up);
            known.copies.clear();
        });
    }

    fn change(&mut self, number: u32, change: impl FnOnce(&mut KnownNode<N>)) {
        let known = &mut self.nodes[number as usize];
        change(known);
        let rank = known.node.rank(&known.copies).filter(|_| known.up && !known.avoided);
        if let Some(rank) = rank {
            self.ranks.set(number, rank);
        }
        self.ranks.reach(number, rank.is_some());
    }
}
