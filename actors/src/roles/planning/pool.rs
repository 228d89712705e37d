//! The cores of a cluster as a central scheduler knows them: which are free, by kind of node.

use std::collections::VecDeque;

use crate::base::CopyId;
use crate::layout::Layout;

/// A node and the copies that hold its cores.
#[derive(Clone, Debug)]
struct PoolNode {
    kind: u8,
    cores: u32,
    held: Vec<CopyId>,
    up: bool,
    /// Whether it could not be reached lately.
    avoided: bool,
    /// Entries among the free cores for cores that are not free, as [`CorePool::take_on`] leaves them.
    stale: u32,
}

impl PoolNode {
    const fn is_usable(&self) -> bool {
        self.up && !self.avoided
    }
}

/// All cores.
pub struct CorePool {
    nodes: Vec<PoolNode>,
    /// A node's number for each of its free cores, by kind of node; the one that was freed first comes first.
    free: Vec<VecDeque<u32>>,
    /// Stale entries of all nodes, by kind.
    stale: Vec<u32>,
}

impl CorePool {
    /// All nodes of the layout, up and idle.
    pub fn new(layout: &Layout) -> Self {
        let node = |index| PoolNode {
            kind: layout.kind(index),
            cores: layout.cores(index),
            held: Vec::new(),
            up: true,
            avoided: false,
            stale: 0,
        };
        let nodes: Vec<_> = (0..layout.nodes()).map(node).collect();
        let mut free = vec![VecDeque::new(); usize::from(layout.kinds())];
        // A core of each node before the second of any.
        let most = nodes.iter().map(|node| node.cores).max().unwrap_or(0);
        for core in 0..most {
            for (index, node) in (0..).zip(&nodes).filter(|(_, node)| core < node.cores) {
                free[usize::from(node.kind)].push_back(index);
            }
        }
        let stale = vec![0; free.len()];
        Self { nodes, free, stale }
    }

    /// Kinds of nodes.
    pub const fn kinds(&self) -> usize {
        self.free.len()
    }

    /// The kind of a node.
    pub fn kind(&self, node: u32) -> usize {
        usize::from(self.nodes[node as usize].kind)
    }

    /// Whether a node is up.
    pub fn is_up(&self, node: u32) -> bool {
        self.nodes[node as usize].up
    }

    /// Whether a node is up and can be reached, as far as is known.
    pub fn is_usable(&self, node: u32) -> bool {
        self.nodes[node as usize].is_usable()
    }

    /// Free cores of a kind of nodes that can be used.
    pub fn free(&self, kind: usize) -> u32 {
        self.free[kind].len() as u32 - self.stale[kind]
    }

    /// Free cores of a node, none if it cannot be used.
    pub fn free_on(&self, index: u32) -> u32 {
        let node = &self.nodes[index as usize];
        if node.is_usable() { node.cores.saturating_sub(node.held.len() as u32) } else { 0 }
    }

    /// Cores of each kind of nodes that can be used, free and held.
    pub fn usable(&self) -> Vec<u32> {
        let mut usable = vec![0; self.kinds()];
        for node in self.nodes.iter().filter(|node| node.is_usable()) {
            usable[usize::from(node.kind)] += node.cores;
        }
        usable
    }

    /// Cores of all nodes that are up.
    pub fn up_cores(&self) -> u32 {
        self.nodes.iter().filter(|node| node.up).map(|node| node.cores).sum()
    }

    /// Gives a free core of a kind of nodes to a copy, and returns the node.
    pub fn take(&mut self, kind: usize, copy: CopyId) -> Option<u32> {
        loop {
            let index = self.free[kind].pop_front()?;
            let node = &mut self.nodes[index as usize];
            if node.stale == 0 {
                node.held.push(copy);
                return Some(index);
            }
            node.stale -= 1;
            self.stale[kind] -= 1;
        }
    }

    /// Gives a free core of a node to a copy; returns whether there was one. Its entry among the free ones stays until
    /// it is met, since finding it would take a search.
    pub fn take_on(&mut self, index: u32, copy: CopyId) -> bool {
        let free = self.free_on(index) > 0;
        if free {
            let node = &mut self.nodes[index as usize];
            node.held.push(copy);
            node.stale += 1;
            self.stale[usize::from(node.kind)] += 1;
        }
        free
    }

    /// Whether a copy holds a core of a node.
    pub fn holds(&self, index: u32, copy: CopyId) -> bool {
        self.nodes[index as usize].held.contains(&copy)
    }

    /// Frees the core that a copy holds on a node; returns whether it held one.
    pub fn release(&mut self, index: u32, copy: CopyId) -> bool {
        let node = &mut self.nodes[index as usize];
        let Some(at) = node.held.iter().position(|held| *held == copy) else { return false };
        node.held.swap_remove(at);
        if node.is_usable() && node.stale > 0 {
            node.stale -= 1;
            self.stale[usize::from(node.kind)] -= 1;
        } else if node.is_usable() {
            self.free[usize::from(node.kind)].push_back(index);
        }
        true
    }

    /// Excludes a node from the free ones, or readmits it.
    pub fn avoid(&mut self, index: u32, avoided: bool) {
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.avoided = avoided;
            self.recount(index);
        }
    }

    /// Marks a node as down; returns the copies that held its cores.
    pub fn down(&mut self, index: u32) -> Vec<CopyId> {
        let node = &mut self.nodes[index as usize];
        node.up = false;
        let lost = std::mem::take(&mut node.held);
        self.recount(index);
        lost
    }

    /// Marks a node as up and idle.
    pub fn up(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        (node.up, node.avoided) = (true, false);
        self.recount(index);
    }

    /// Lists the free cores of a node anew.
    fn recount(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let free = &mut self.free[usize::from(node.kind)];
        free.retain(|other| *other != index);
        self.stale[usize::from(node.kind)] -= std::mem::take(&mut node.stale);
        if node.is_usable() {
            free.extend((node.held.len() as u32..node.cores).map(|_| index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;

    fn copy(task: u32) -> CopyId {
        JobId(0).task(task).copy(0)
    }

    #[test]
    fn cores_are_held_until_they_are_released() {
        let mut pool = CorePool::new(&Layout::new(1, 0, [1, 2]));
        let taken: Vec<_> = (0..4).map(|task| pool.take(0, copy(task))).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(1), None], "a core of each node before the second of one");
        assert!(pool.release(1, copy(2)) && !pool.release(1, copy(2)));
        assert_eq!((pool.free(0), pool.up_cores()), (1, 3));
        assert_eq!(pool.take(0, copy(4)), Some(1));
    }

    /// Taking cores of named nodes and of any node gives each core once.
    #[test]
    fn taking_cores_of_named_nodes_gives_each_core_once() {
        let mut pool = CorePool::new(&Layout::new(1, 0, [2, 2]));
        assert!(pool.take_on(1, copy(0)) && pool.take_on(1, copy(1)) && !pool.take_on(1, copy(2)));
        assert_eq!((pool.free(0), pool.free_on(0), pool.free_on(1)), (2, 2, 0));
        assert!(pool.release(1, copy(1)));
        assert_eq!((pool.free(0), pool.free_on(1)), (3, 1));
        let taken: Vec<_> = (3..7).map(|task| pool.take(0, copy(task))).collect();
        assert_eq!(taken, [Some(0), Some(0), Some(1), None]);
        assert!(pool.release(0, copy(3)) && pool.take_on(0, copy(7)));
        pool.avoid(0, true);
        assert_eq!((pool.free(0), pool.free_on(0), pool.take_on(0, copy(8))), (0, 0, false));
        pool.avoid(0, false);
        assert_eq!((pool.free(0), pool.take(0, copy(8))), (0, None), "all are held");
    }

    #[test]
    fn lost_and_avoided_nodes_have_no_free_cores() {
        let mut pool = CorePool::new(&Layout::new(1, 0, [1, 2]));
        assert_eq!(pool.take(0, copy(0)), Some(0));
        assert_eq!(pool.down(0), [copy(0)]);
        assert!(!pool.release(0, copy(0)), "it is lost");
        pool.avoid(1, true);
        assert_eq!((pool.free(0), pool.usable(), pool.up_cores()), (0, vec![0], 2));
        pool.up(0);
        pool.avoid(1, false);
        assert_eq!((pool.free(0), pool.usable()), (3, vec![3]));
    }
}
