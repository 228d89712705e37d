//! A 16-ary index of the work expected at every node, with a fast query of the minimum.
//!
//! The index is a tree over a table with one entry for each node. Every entry of the tree holds the minimum of sixteen
//! entries of the level below, and the number of nodes with that minimum. A change updates the table and marks its
//! group; the tree is updated on the next query. However many changes there are between two queries, each group that
//! they touch is updated once.

use crate::base::Rng;

/// Fan-out of the tree: sixteen entries of the table fill two cache lines.
const FAN: usize = 16;

/// The minimum wait of some nodes, and the number of nodes that have it (0 if no node is reachable).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Least {
    wait: i64,
    ties: u32,
}

impl Least {
    fn of(waits: impl Iterator<Item = Self>) -> Self {
        waits.filter(|entry| entry.ties > 0).fold(Self::default(), |least, entry| {
            if least.ties == 0 || entry.wait < least.wait {
                entry
            } else if entry.wait == least.wait {
                Self { ties: least.ties + entry.ties, ..least }
            } else {
                least
            }
        })
    }
}

/// Expected work of each node, in ns. It can be negative, because the update for the end of a task may overtake the
/// update for its placement.
#[derive(Clone, Debug)]
pub struct MinWaitIndex {
    work: Vec<i64>,
    /// Number of cores of each node, which divides its work; empty if all nodes have equally many.
    cores: Vec<u32>,
    /// Excluded nodes, a bit each.
    away: Vec<u64>,
    /// Levels of the tree, from the groups of nodes up to the root.
    levels: Vec<Vec<Least>>,
    /// Groups of nodes that changed since the last update of the tree, a bit each.
    stale: Vec<u64>,
    /// Changed groups of a level in ascending order; a field only to reuse its memory.
    changed: Vec<usize>,
}

impl MinWaitIndex {
    /// An index of `nodes` nodes without work. `cores` is the number of cores of each node, by which its work is
    /// divided; empty if all nodes have equally many.
    pub fn new(nodes: u32, cores: Vec<u32>) -> Self {
        let nodes = nodes as usize;
        debug_assert!(cores.is_empty() || cores.len() == nodes);
        let mut levels = Vec::new();
        let mut len = nodes;
        while len > 1 || levels.is_empty() {
            len = len.div_ceil(FAN);
            levels.push(vec![Least::default(); len]);
        }
        let groups = levels[0].len();
        let mut stale = vec![0; groups.div_ceil(64)];
        (0..groups).for_each(|group| stale[group / 64] |= 1 << (group % 64));
        let away = vec![0; nodes.div_ceil(64)];
        Self { work: vec![0; nodes], cores, away, levels, stale, changed: Vec::new() }
    }

    /// The work expected at a node, ns.
    #[inline]
    pub fn work(&self, node: u32) -> i64 {
        self.work[node as usize]
    }

    /// Changes the work of a node by `change`, which may be negative.
    #[inline]
    pub fn add(&mut self, node: u32, change: i64) {
        let work = &mut self.work[node as usize];
        *work = work.saturating_add(change);
        self.mark(node);
    }

    /// Sets the work of a node.
    #[inline]
    pub fn set(&mut self, node: u32, work: i64) {
        self.work[node as usize] = work;
        self.mark(node);
    }

    /// Excludes a node, or readmits it; an excluded node is never the minimum.
    pub fn reach(&mut self, node: u32, can: bool) {
        let (word, bit) = (node as usize / 64, 1 << (node % 64));
        self.away[word] = if can { self.away[word] & !bit } else { self.away[word] | bit };
        self.mark(node);
    }

    /// Whether a node is not excluded.
    #[inline]
    pub fn reaches(&self, node: u32) -> bool {
        self.away[node as usize / 64] >> (node % 64) & 1 == 0
    }

    /// The minimum wait of the nodes that are not excluded, ns.
    pub fn least(&mut self) -> Option<i64> {
        let root = self.root();
        (root.ties > 0).then_some(root.wait)
    }

    /// A node with the minimum wait, uniformly among ties; `None` if all nodes are excluded.
    pub fn pick(&mut self, rng: &mut Rng) -> Option<u32> {
        let root = self.root();
        let left = match root.ties {
            0 => return None,
            1 => 0,
            ties => rng.below(ties),
        };
        Some(self.tie(root, left))
    }

    /// The first node with the minimum wait; `None` if all nodes are excluded.
    pub fn pick_first(&mut self) -> Option<u32> {
        let root = self.root();
        (root.ties > 0).then(|| self.tie(root, 0))
    }

    /// The node with index `left` among the nodes with the minimum wait.
    fn tie(&self, root: Least, mut left: u32) -> u32 {
        let mut at = 0;
        for level in (0..self.levels.len() - 1).rev() {
            at = descend(at, self.levels[level].len(), &mut left, |child| {
                let entry = self.levels[level][child];
                if entry.wait == root.wait { entry.ties } else { 0 }
            });
        }
        let node = descend(at, self.work.len(), &mut left, |node| {
            let entry = self.leaf(node);
            if entry.wait == root.wait { entry.ties } else { 0 }
        });
        node as u32
    }

    /// Repeats `pick` until the picked node's stored work is up to date; `work` recomputes the work of each picked
    /// node.
    pub fn pick_updated(
        &mut self,
        mut pick: impl FnMut(&mut Self) -> Option<u32>,
        work: impl Fn(u32) -> i64,
    ) -> Option<u32> {
        loop {
            let node = pick(self)?;
            let (before, now) = (self.work(node), work(node));
            self.set(node, now);
            if before == now {
                return Some(node);
            }
        }
    }

    /// The wait of a node, ns.
    #[inline]
    pub fn wait(&self, node: u32) -> i64 {
        let node = node as usize;
        self.cores.get(node).map_or(self.work[node], |&cores| self.work[node].div_euclid(i64::from(cores)))
    }

    #[inline]
    fn leaf(&self, node: usize) -> Least {
        Least { wait: self.wait(node as u32), ties: u32::from(self.reaches(node as u32)) }
    }

    #[inline]
    fn mark(&mut self, node: u32) {
        let group = node as usize / FAN;
        self.stale[group / 64] |= 1 << (group % 64);
    }

    /// Updates the tree and returns its root.
    fn root(&mut self) -> Least {
        let mut changed = std::mem::take(&mut self.changed);
        for word in 0..self.stale.len() {
            let mut bits = std::mem::take(&mut self.stale[word]);
            while bits != 0 {
                let group = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.levels[0][group] = Least::of(span(group, self.work.len()).map(|node| self.leaf(node)));
                changed.push(group / FAN);
            }
        }
        for level in 1..self.levels.len() {
            changed.dedup();
            for group in &mut changed {
                let below = &self.levels[level - 1];
                self.levels[level][*group] = Least::of(span(*group, below.len()).map(|child| below[child]));
                *group /= FAN;
            }
        }
        changed.clear();
        self.changed = changed;
        self.levels.last().and_then(|root| root.first()).copied().unwrap_or_default()
    }
}

/// The entries of a group on the level below, which has `len` entries.
const fn span(group: usize, len: usize) -> std::ops::Range<usize> {
    let end = (group + 1) * FAN;
    group * FAN..if end < len { end } else { len }
}

/// The child of a group that holds the tie with index `left`; `left` becomes the index within the child.
fn descend(group: usize, len: usize, left: &mut u32, ties: impl Fn(usize) -> u32) -> usize {
    for child in span(group, len) {
        let here = ties(child);
        if *left < here {
            return child;
        }
        *left -= here;
    }
    unreachable!("a group has as many ties as it says")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minimum equals the minimum of the whole table after every kind of change, for numbers of nodes around the
    /// sizes of the levels.
    #[test]
    fn the_minimum_equals_the_minimum_of_a_full_scan() {
        for nodes in [1, 2, 15, 16, 17, 255, 256, 257, 5000] {
            let mut rng = Rng::new(7, nodes, 0);
            for cores in [Vec::new(), (0..nodes).map(|n| 1 + n % 3).collect()] {
                let mut waits = MinWaitIndex::new(nodes, cores);
                for _ in 0..300 {
                    for _ in 0..rng.below(20) {
                        let node = rng.below(nodes);
                        match rng.below(8) {
                            0 => waits.reach(node, false),
                            1 => waits.reach(node, true),
                            2 => waits.set(node, i64::from(rng.below(5)) - 2),
                            _ => waits.add(node, i64::from(rng.below(7)) - 3),
                        }
                    }
                    let within: Vec<u32> = (0..nodes).filter(|&n| waits.reaches(n)).collect();
                    let least = within.iter().map(|&n| waits.wait(n)).min();
                    assert_eq!(waits.least(), least);
                    let first = within.iter().copied().find(|&n| Some(waits.wait(n)) == least);
                    assert_eq!(waits.pick_first(), first);
                    let picked = waits.pick(&mut rng);
                    assert_eq!(picked.map(|n| waits.wait(n)), least);
                    assert!(picked.is_none_or(|n| waits.reaches(n)));
                }
            }
        }
    }

    #[test]
    fn ties_are_broken_evenly() {
        let mut waits = MinWaitIndex::new(300, Vec::new());
        let mut rng = Rng::new(1, 2, 3);
        (0..300).filter(|n| n % 3 != 0).for_each(|n| waits.add(n, 5));
        waits.reach(33, false);
        let mut hits = [0u32; 300];
        for _ in 0..99_000 {
            hits[waits.pick(&mut rng).unwrap() as usize] += 1;
        }
        for (node, &n) in hits.iter().enumerate() {
            let expected = if node % 3 == 0 && node != 33 { 1000.0 } else { 0.0f64 };
            assert!((f64::from(n) - expected).abs() <= 5.0 * expected.sqrt(), "node {node}: {n}");
        }
    }

    /// A node with two cores has the same wait as one with one core and half the work.
    #[test]
    fn waits_are_divided_by_the_number_of_cores() {
        let mut waits = MinWaitIndex::new(2, vec![1, 2]);
        let mut rng = Rng::new(1, 1, 1);
        waits.add(0, 30);
        waits.add(1, 50);
        assert_eq!((waits.least(), waits.pick(&mut rng)), (Some(25), Some(1)));
        waits.add(1, 11);
        assert_eq!(waits.pick(&mut rng), Some(0));
    }
}
