//! The core table: node, rack and speed of every core, compact for a million equal cores.

use volary_actors::layout::Layout;
use volary_netem::topology::SPEEDS;

/// The maximum speed of a core, in units of the reference core; it keeps the arithmetic of work inside 128 bits.
pub const MAX_SPEED: f64 = *SPEEDS.end();

/// Maximum number of cores accepted from another host: somewhat more than the largest run has.
const MOST_CORES: u64 = 1 << 26;

/// Node, rack and speed of every core. Cores are numbered densely, node by node, like [`Layout::core_index`].
#[derive(Clone, PartialEq, Debug)]
pub struct CoreTable {
    nodes: Nodes,
    /// Rack of each node; empty if all are in rack 0.
    racks: Vec<u32>,
    /// Speed of each core; empty if all are 1.
    speeds: Vec<f64>,
}

#[derive(Clone, PartialEq, Debug)]
enum Nodes {
    /// The same number of cores on every node.
    Equal { nodes: u32, cores: u32 },
    /// Node of each core.
    Listed { nodes: u32, node: Vec<u32> },
}

impl CoreTable {
    /// `nodes` nodes of `cores` reference cores each, in one rack.
    ///
    /// # Panics
    /// When the cores do not fit 32-bit ids.
    pub fn equal(nodes: u32, cores: u32) -> Self {
        assert!(nodes.checked_mul(cores).is_some(), "{nodes} nodes of {cores} cores do not fit 32-bit ids");
        Self { nodes: Nodes::Equal { nodes, cores }, racks: Vec::new(), speeds: Vec::new() }
    }

    /// Creates the cores of a layout, with speed 1 and in one rack.
    pub fn of(layout: &Layout) -> Self {
        let first = if layout.nodes() == 0 { 0 } else { layout.cores(0) };
        if (0..layout.nodes()).all(|node| layout.cores(node) == first) {
            return Self::equal(layout.nodes(), first);
        }
        let node = (0..layout.nodes())
            .flat_map(|node| std::iter::repeat_n(node, layout.cores(node) as usize))
            .collect();
        let nodes = Nodes::Listed { nodes: layout.nodes(), node };
        Self { nodes, racks: Vec::new(), speeds: Vec::new() }
    }

    /// Sets the racks: `racks[n]` is the rack of node n.
    ///
    /// # Panics
    /// When there is not one entry per node.
    pub fn with_racks(mut self, racks: Vec<u32>) -> Self {
        assert_eq!(racks.len(), self.nodes() as usize, "one rack per node");
        self.racks = if racks.iter().all(|&rack| rack == 0) { Vec::new() } else { racks };
        self
    }

    /// Sets the speeds: `speeds[i]` is the work that core i does per second, where the reference core does 1.
    ///
    /// # Panics
    /// When there is not one entry per core, or a speed is not above 0 and at most [`MAX_SPEED`].
    pub fn with_speeds(mut self, speeds: Vec<f64>) -> Self {
        assert_eq!(speeds.len(), self.cores() as usize, "one speed per core");
        assert!(
            speeds.iter().all(|&s| s > 0.0 && s <= MAX_SPEED),
            "speeds must be above 0 and at most {MAX_SPEED}"
        );
        self.speeds = if speeds.iter().all(|&s| s == 1.0) { Vec::new() } else { speeds };
        self
    }

    /// Divides all speeds by `factor`; a factor below 1 makes cores faster, up to [`MAX_SPEED`].
    pub fn slower(self, factor: f64) -> Self {
        let speeds = (0..self.cores()).map(|core| (self.speed(core) / factor).min(MAX_SPEED)).collect();
        self.with_speeds(speeds)
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> u32 {
        match &self.nodes {
            Nodes::Equal { nodes, .. } | Nodes::Listed { nodes, .. } => *nodes,
        }
    }

    /// Number of cores.
    pub const fn cores(&self) -> u32 {
        match &self.nodes {
            Nodes::Equal { nodes, cores } => *nodes * *cores,
            Nodes::Listed { node, .. } => node.len() as u32,
        }
    }

    /// The node a core belongs to.
    pub fn node(&self, core: u32) -> u32 {
        match &self.nodes {
            Nodes::Equal { cores: 1, .. } => core,
            Nodes::Equal { cores, .. } => core / cores,
            Nodes::Listed { node, .. } => node[core as usize],
        }
    }

    /// The rack a core belongs to.
    pub fn rack(&self, core: u32) -> u32 {
        self.racks.get(self.node(core) as usize).copied().unwrap_or(0)
    }

    /// Number of racks.
    pub fn racks(&self) -> u32 {
        self.racks.iter().max().map_or(1, |last| last + 1)
    }

    /// Work a healthy core does per second, in units of the reference core.
    pub fn speed(&self, core: u32) -> f64 {
        self.speeds.get(core as usize).copied().unwrap_or(1.0)
    }

    /// The table without speeds: runs of equal adjacent nodes, as number of nodes, cores of each, and their rack.
    pub fn outline(&self) -> Vec<(u32, u32, u32)> {
        let mut cores = vec![0u32; self.nodes() as usize];
        (0..self.cores()).for_each(|core| cores[self.node(core) as usize] += 1);
        let rack = |node: usize| self.racks.get(node).copied().unwrap_or(0);
        let nodes: Vec<_> = cores.into_iter().enumerate().map(|(node, cores)| (cores, rack(node))).collect();
        let runs = nodes.chunk_by(|a, b| a == b);
        runs.map(|run| (run.len() as u32, run[0].0, run[0].1)).collect()
    }

    /// Creates cores of speed 1 from an [`outline`](Self::outline); `None` beyond the maximum number of cores of a run.
    pub fn from_outline(outline: &[(u32, u32, u32)]) -> Option<Self> {
        let (nodes, cores) = outline.iter().fold((0u64, 0u64), |(nodes, cores), &(count, of, _)| {
            (nodes + u64::from(count), cores.saturating_add(u64::from(count) * u64::from(of)))
        });
        if nodes.max(cores) > MOST_CORES {
            return None;
        }
        let each =
            outline.iter().flat_map(|&(count, of, rack)| std::iter::repeat_n((of, rack), count as usize));
        let of_node = (0..).zip(each.clone());
        let node = of_node.flat_map(|(node, (of, _))| std::iter::repeat_n(node, of as usize)).collect();
        let racks = each.map(|(_, rack)| rack).collect();
        Some(Self { nodes: Nodes::Listed { nodes: nodes as u32, node }, racks, speeds: Vec::new() })
    }

    /// Whether every core is a reference core.
    pub const fn is_uniform(&self) -> bool {
        self.speeds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_and_listed_tables_agree_with_the_layout() {
        for cores in [vec![1, 1, 1], vec![4, 4], vec![1, 3, 2], vec![]] {
            let layout = Layout::new(1, 0, cores);
            let table = CoreTable::of(&layout);
            assert_eq!((table.nodes(), table.cores()), (layout.nodes(), layout.workers()));
            for core in 0..table.cores() {
                assert_eq!(table.node(core), layout.node_of_core(core));
                assert_eq!((table.rack(core), table.speed(core)), (0, 1.0));
            }
        }
    }

    #[test]
    fn an_outline_restores_the_node_and_rack_of_each_core() {
        let layout = Layout::new(1, 0, [2, 2, 1, 0, 1]);
        let table = CoreTable::of(&layout).with_racks(vec![0, 0, 0, 3, 1]);
        assert_eq!(table.outline(), [(2, 2, 0), (1, 1, 0), (1, 0, 3), (1, 1, 1)]);
        let again = CoreTable::from_outline(&table.outline()).unwrap();
        assert_eq!((again.nodes(), again.cores()), (5, 6));
        assert!(
            (0..6).all(|core| (again.node(core), again.rack(core)) == (table.node(core), table.rack(core)))
        );
        assert_eq!(CoreTable::from_outline(&[(u32::MAX, u32::MAX, 0)]), None);
        assert_eq!(CoreTable::from_outline(&[(u32::MAX, 0, 0)]), None);
    }

    #[test]
    fn racks_and_speeds_are_looked_up_per_node_and_core() {
        let table =
            CoreTable::equal(3, 2).with_racks(vec![7, 8, 7]).with_speeds(vec![1.0, 2.0, 1.0, 0.5, 1.0, 1.0]);
        assert_eq!((0..6).map(|c| table.rack(c)).collect::<Vec<_>>(), [7, 7, 8, 8, 7, 7]);
        assert_eq!((table.speed(1), table.speed(3)), (2.0, 0.5));
    }
}
