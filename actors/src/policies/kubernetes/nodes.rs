//! The nodes with room for a task, by score.

use crate::base::{CopyId, Rng};
use crate::layout::Layout;
use crate::roles::min_wait_index::MinWaitIndex;

#[derive(Clone, Debug)]
struct Host {
    /// Tasks bound to it.
    tasks: Vec<CopyId>,
    /// How many it can have.
    room: u32,
    /// What one task takes of its CPU and of its memory, as shares.
    share: [f64; 2],
    up: bool,
    /// Whether it could not be reached lately.
    avoided: bool,
}

impl Host {
    fn is_feasible(&self) -> bool {
        self.up && !self.avoided && self.tasks.len() < self.room as usize
    }

    /// Sum of two scores from 0 to 100 in whole numbers, as if the task were bound to it: what stays free of CPU
    /// and memory (LeastAllocated), and how evenly they are used (BalancedAllocation).
    fn score(&self) -> i64 {
        let [cpu, memory] = self.share.map(|share| (share * (self.tasks.len() as f64 + 1.0)).min(1.0));
        let free = 50.0 * (2.0 - cpu - memory);
        let balanced = 100.0 * (1.0 - (cpu - memory).abs() / 2.0);
        free as i64 + balanced as i64
    }
}

/// All nodes, as known to the scheduler.
pub(super) struct Nodes {
    hosts: Vec<Host>,
    /// Feasible nodes by negated score.
    ranks: MinWaitIndex,
}

impl Nodes {
    pub(super) fn new(layout: &Layout) -> Self {
        let host = |node| Host {
            tasks: Vec::new(),
            room: layout.cores(node),
            share: layout.task_share(node),
            up: true,
            avoided: false,
        };
        let hosts: Vec<_> = (0..layout.nodes()).map(host).collect();
        let mut nodes = Self { hosts, ranks: MinWaitIndex::new(layout.nodes(), Vec::new()) };
        (0..layout.nodes()).for_each(|node| nodes.rank(node));
        nodes
    }

    /// The feasible node with the best score, ties broken evenly.
    pub(super) fn pick(&mut self, rng: &mut Rng) -> Option<u32> {
        self.ranks.pick(rng)
    }

    /// Binds a task to a node.
    pub(super) fn take(&mut self, node: u32, copy: CopyId) {
        self.hosts[node as usize].tasks.push(copy);
        self.rank(node);
    }

    /// Removes a task from a node; returns whether it was there.
    pub(super) fn release(&mut self, node: u32, copy: CopyId) -> bool {
        let tasks = &mut self.hosts[node as usize].tasks;
        let Some(at) = tasks.iter().position(|&c| c == copy) else { return false };
        tasks.swap_remove(at);
        self.rank(node);
        true
    }

    /// Excludes a node, or readmits it.
    pub(super) fn avoid(&mut self, node: u32, avoided: bool) {
        if let Some(host) = self.hosts.get_mut(node as usize) {
            host.avoided = avoided;
            self.rank(node);
        }
    }

    /// Marks a node as down; returns the tasks it had.
    pub(super) fn down(&mut self, node: u32) -> Vec<CopyId> {
        let host = &mut self.hosts[node as usize];
        host.up = false;
        let lost = std::mem::take(&mut host.tasks);
        self.rank(node);
        lost
    }

    /// Marks a node as up, without tasks.
    pub(super) fn up(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        (host.up, host.avoided) = (true, false);
        self.rank(node);
    }

    fn rank(&mut self, node: u32) {
        let host = &self.hosts[node as usize];
        self.ranks.set(node, -host.score());
        self.ranks.reach(node, host.is_feasible());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;

    /// Nodes of one, two and four tasks: the share that stays free decides, then chance.
    #[test]
    fn the_least_allocated_node_comes_first() {
        let layout = Layout::new(1, 0, [1, 2, 4]);
        let mut nodes = Nodes::new(&layout);
        let mut rng = Rng::new(1, 1, 1);
        let copy = |task| JobId(0).task(task).copy(0);
        let mut order = Vec::new();
        for i in 0..7 {
            let node = nodes.pick(&mut rng).unwrap();
            nodes.take(node, copy(i));
            order.push(node);
        }
        assert_eq!(order[0], 2, "three quarters stay free");
        order[1..3].sort_unstable();
        assert_eq!(order[1..3], [1, 2], "half");
        assert_eq!(order[3], 2, "a quarter");
        assert_eq!(nodes.pick(&mut rng), None, "all is full");
        let one = order.iter().position(|&node| node == 1).unwrap() as u32;
        assert!(!nodes.release(0, copy(one)), "it is not there");
        assert!(nodes.release(1, copy(one)));
        nodes.avoid(1, true);
        assert_eq!(nodes.pick(&mut rng), None);
        nodes.avoid(1, false);
        assert_eq!(nodes.pick(&mut rng), Some(1));
        assert_eq!(nodes.down(1).len(), 1);
        assert_eq!(nodes.pick(&mut rng), None);
    }
}
