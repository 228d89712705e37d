//! The choice of servers for a group: those with the shortest queues among more that were asked, or those that are free
//! first.

use crate::base::ActorId;

/// Nodes asked for their queue length, or for a place, for the group that starts at `base`.
pub(super) struct Choice {
    pub base: u32,
    /// The nodes asked, and their answers.
    asked: Vec<(ActorId, Option<i32>)>,
    /// Rows already granted.
    pub given: u32,
}

impl Choice {
    pub(super) fn new(base: u32, nodes: &[ActorId]) -> Self {
        Self { base, asked: nodes.iter().map(|&node| (node, None)).collect(), given: 0 }
    }

    /// Records more nodes asked.
    pub(super) fn ask(&mut self, nodes: &[ActorId]) {
        self.asked.extend(nodes.iter().map(|&node| (node, None)));
    }

    /// The nodes asked that have not claimed their place.
    pub(super) fn asked(&self) -> impl Iterator<Item = ActorId> {
        self.asked.iter().map(|asked| asked.0)
    }

    /// Records the claim of a node; returns its row.
    pub(super) fn claimed(&mut self, node: ActorId) -> u32 {
        self.keep(|other| other != node);
        self.given += 1;
        self.given - 1
    }

    /// Drops the nodes for which `which` does not hold.
    pub(super) fn keep(&mut self, which: impl Fn(ActorId) -> bool) {
        self.asked.retain(|asked| which(asked.0));
    }

    /// Records an answer; returns whether all are there. The latest of a node counts.
    pub(super) fn answer(&mut self, node: ActorId, length: i32) -> bool {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.0 == node) {
            asked.1 = Some(length);
        }
        self.asked.iter().all(|asked| asked.1.is_some())
    }

    /// The nodes asked, the shortest queue first and those without an answer last; ties in the order drawn.
    pub(super) fn by_length(mut self) -> impl Iterator<Item = ActorId> {
        self.asked.sort_by_key(|asked| (asked.1.is_none(), asked.1));
        self.asked.into_iter().map(|asked| asked.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_come_first_and_the_silent_last() {
        let mut choice = Choice::new(6, &[1, 2, 3, 4].map(ActorId));
        for (node, length) in [(3, 2), (4, -1), (9, -7), (3, 5), (2, 5)] {
            assert!(!choice.answer(ActorId(node), length));
        }
        let order: Vec<_> = choice.by_length().map(|node| node.0).collect();
        assert_eq!(order, [4, 2, 3, 1]);
        let mut all = Choice::new(0, &[1, 2].map(ActorId));
        assert!(!all.answer(ActorId(1), i32::MAX) && all.answer(ActorId(2), i32::MIN));
    }
}
