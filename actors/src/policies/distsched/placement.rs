//! The placement of one job: nodes for its tasks, the least risky first (thesis, section 5.2.3).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::load::Convolution;
use super::load::{NodeLoad, Risk, TaskUse};
use crate::base::{Address, JobId, Purpose};

// The nodes as one job sees them.

/// A node that runs tasks of a job.
struct OwnNode {
    node: u32,
    /// Its load without these tasks.
    others: NodeLoad,
    /// Number of these tasks.
    own: u32,
}

/// The loads of the nodes from the view of one job. The tasks of a job have the same use, so those that run already are
/// not independent of those to be placed, and count with them.
pub(super) struct PlacementView<'a> {
    nodes: &'a [NodeLoad],
    /// By number.
    own: Vec<OwnNode>,
    /// Nodes that take no further task of the job, by number.
    avoided: &'a [u32],
}

impl<'a> PlacementView<'a> {
    /// The nodes as `job` sees them, which runs tasks on the nodes `held` and takes none of `avoided`, both in order.
    pub(super) fn new(nodes: &'a [NodeLoad], job: JobId, held: &[u32], avoided: &'a [u32]) -> Self {
        let mut buffers = Convolution::default();
        let own = held.iter().filter_map(|&node| {
            let (others, own) = nodes[node as usize].without(job, &mut buffers)?;
            Some(OwnNode { node, others, own })
        });
        Self { nodes, own: own.collect(), avoided }
    }

    /// Number of nodes.
    pub(super) const fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The load of a node without the tasks of the job, and the number of these.
    pub(super) fn node(&self, number: u32) -> (&NodeLoad, u32) {
        match self.own.binary_search_by_key(&number, |own| own.node) {
            Ok(at) => (&self.own[at].others, self.own[at].own),
            Err(_) => (&self.nodes[number as usize], 0),
        }
    }

    /// Whether a node takes no further task of the job.
    pub(super) fn avoids(&self, number: u32) -> bool {
        self.avoided.binary_search(&number).is_ok()
    }
}

/// Sort key of a candidate node: the risk for memory, that for CPU, free memory, free CPU, all ascending, and a random
/// number for ties.
#[derive(Clone, Copy, Debug)]
struct RankedNode {
    risk: Risk,
    free_memory: f64,
    free_cpu: f64,
    tie: u64,
    node: u32,
    /// Tasks of the job that it has taken already; the risk is that with one more.
    taken: u32,
}

impl RankedNode {
    fn compare(&self, other: &Self) -> Ordering {
        self.risk
            .memory
            .total_cmp(&other.risk.memory)
            .then_with(|| self.risk.cpu.total_cmp(&other.risk.cpu))
            .then_with(|| self.free_memory.total_cmp(&other.free_memory))
            .then_with(|| self.free_cpu.total_cmp(&other.free_cpu))
            .then_with(|| (self.tie, self.node).cmp(&(other.tie, other.node)))
    }
}

impl PartialEq for RankedNode {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for RankedNode {}

impl PartialOrd for RankedNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedNode {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

/// The constraints of a placement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Terms {
    /// Tasks to be placed.
    pub(super) tasks: u32,
    /// Limit below which the probability of an over-allocation must be; zero takes no risk.
    pub(super) risk: f64,
    /// Whether a task may be alone on a node, whatever the risk. Otherwise a job that is expected to use more than any
    /// node has would never run.
    pub(super) alone: bool,
    /// Seed of the random order of equal nodes.
    pub(super) salt: u64,
}

/// Nodes for tasks of a job, one for each; a node may occur several times. They are fewer than asked for if no node
/// takes another one.
pub(super) fn place(view: &PlacementView<'_>, tasks: &TaskUse, terms: Terms) -> Vec<u32> {
    let means = (tasks.cpu.mean(), tasks.memory.mean());
    let ties = Address::new(terms.salt, Purpose::Actor);
    let candidate = |index: u32, taken: u32| {
        let (node, own) = view.node(index);
        if taken >= node.slots || view.avoids(index) {
            return None;
        }
        let all = own + taken;
        let risk = risk(node, tasks, all + 1, terms)?;
        Some(Reverse(RankedNode {
            risk,
            free_memory: node.room.memory - node.memory.mean() - means.1 * f64::from(all),
            free_cpu: node.room.cpu - node.cpu.mean() - means.0 * f64::from(all),
            tie: ties.at(u64::from(index)).seed(),
            node: index,
            taken,
        }))
    };
    let mut order: BinaryHeap<_> = (0..view.len()).filter_map(|node| candidate(node, 0)).collect();
    let mut chosen = Vec::new();
    while (chosen.len() as u32) < terms.tasks
        && let Some(Reverse(RankedNode { node, taken, .. })) = order.pop()
    {
        chosen.push(node);
        order.extend(candidate(node, taken + 1));
    }
    chosen
}

/// The risk of tasks on a node, if the terms allow it.
fn risk(node: &NodeLoad, tasks: &TaskUse, copies: u32, terms: Terms) -> Option<Risk> {
    let alone = terms.alone && copies == 1 && node.is_idle();
    node.risk(tasks, copies, if alone { f64::INFINITY } else { terms.risk })
}

#[cfg(test)]
mod view_tests {
    use std::sync::Arc;

    use super::super::load::TaskUse;
    use super::super::load::tests::{idle, of};
    use super::*;
    use crate::predict::Distribution;

    /// A node of 16 with a task that uses 6 or 10: another one of the same job uses as much, so that both are above 16
    /// with probability 1/2; with one of another job, 1/4.
    #[test]
    fn tasks_of_a_job_have_the_same_use() {
        let memory = of(&[(6.0, 0.5), (10.0, 0.5)]);
        let tasks = Arc::new(TaskUse { cpu: Distribution::point(1.0), memory, request: 1.0 });
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0)]);
        loads.add(JobId(3), &[1], &tasks);
        let risk = |job: u32, held: &[u32]| {
            let view = PlacementView::new(loads.nodes(), JobId(job), held, &[]);
            let (node, own) = view.node(1);
            node.risk(&tasks, own + 1, 1.0).unwrap().memory
        };
        assert_eq!(risk(3, &[1]), 0.5);
        assert_eq!(risk(4, &[]), 0.25);
        let view = PlacementView::new(loads.nodes(), JobId(3), &[1], &[0]);
        assert_eq!((view.node(0).1, view.node(1).1), (0, 1));
        assert!(view.avoids(0) && !view.avoids(1));
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::tests::{certain, idle, of};
    use super::*;
    use crate::base::JobId;

    fn place(nodes: &[NodeLoad], tasks: &TaskUse, terms: Terms) -> Vec<u32> {
        super::place(&PlacementView::new(nodes, JobId(99), &[], &[]), tasks, terms)
    }

    fn terms(tasks: u32, risk: f64) -> Terms {
        Terms { tasks, risk, alone: false, salt: 7 }
    }

    /// Nodes of 8 cores and 16 units of memory, of which the second has less free memory.
    #[test]
    fn occupied_nodes_are_filled_first() {
        let mut loads = idle(&[(8.0, 16.0); 3]);
        loads.add(JobId(0), &[1], &certain(1.0, 8.0));
        loads.add(JobId(1), &[2], &certain(1.0, 4.0));
        let placed = place(loads.nodes(), &certain(2.0, 4.0), terms(6, 0.0));
        assert_eq!(placed[..5], [1, 1, 2, 2, 2], "by free memory, again after each task");
        assert_eq!(placed[5..], [0]);
    }

    /// Risky nodes come last, and too risky ones are not used.
    #[test]
    fn risk_decides_before_room() {
        let mut loads = idle(&[(8.0, 16.0); 2]);
        loads.add(JobId(0), &[1], &certain(1.0, 11.0));
        let unsure =
            |high| TaskUse { cpu: of(&[(1.0, 1.0)]), memory: of(&[(4.0, 0.75), (8.0, 0.25)]), request: high };
        assert_eq!(place(loads.nodes(), &unsure(1.0), terms(2, 0.0)), [0, 0], "two of 8 fit there");
        assert_eq!(
            place(loads.nodes(), &unsure(1.0), terms(4, 0.25)),
            [0, 0],
            "a quarter is not below a quarter"
        );
        assert_eq!(place(loads.nodes(), &unsure(1.0), terms(4, 0.26)), [0, 0, 1, 0], "node 1 has less left");
    }

    #[test]
    fn slots_and_cpu_limit_the_tasks_of_a_node() {
        let loads = idle(&[(8.0, 1e9)]);
        assert_eq!(place(loads.nodes(), &certain(0.1, 1.0), terms(20, 0.0)).len(), 8);
        assert_eq!(place(loads.nodes(), &certain(3.0, 1.0), terms(20, 0.0)).len(), 2);
    }

    #[test]
    fn a_task_that_fits_nowhere_may_run_alone_on_a_node() {
        let mut loads = idle(&[(8.0, 16.0); 3]);
        loads.add(JobId(0), &[1], &certain(1.0, 1.0));
        let large = certain(20.0, 1.0);
        assert!(place(loads.nodes(), &large, terms(3, 0.5)).is_empty());
        let mut placed = place(loads.nodes(), &large, Terms { alone: true, ..terms(3, 0.5) });
        placed.sort_unstable();
        assert_eq!(placed, [0, 2]);
    }

    /// Throttled on one node or evicted on the other.
    #[test]
    fn a_task_that_fits_nowhere_goes_where_its_memory_fits() {
        let loads = idle(&[(16.0, 16.0), (8.0, 64.0)]);
        let alone = |tasks| Terms { alone: true, ..terms(tasks, 0.1) };
        assert_eq!(place(loads.nodes(), &certain(12.0, 40.0), alone(1)), [1]);
        assert_eq!(place(loads.nodes(), &certain(12.0, 40.0), alone(2)), [1, 0]);
    }

    #[test]
    fn avoided_nodes_take_nothing() {
        let loads = idle(&[(8.0, 16.0); 3]);
        let view = PlacementView::new(loads.nodes(), JobId(0), &[], &[0, 2]);
        assert_eq!(super::place(&view, &certain(1.0, 8.0), terms(5, 0.0)), [1, 1]);
    }

    /// Equal nodes are taken in an order that depends on the salt alone.
    #[test]
    fn the_order_of_equal_nodes_depends_on_the_salt() {
        let loads = idle(&[(1.0, 16.0); 8]);
        let placed = |salt| place(loads.nodes(), &certain(1.0, 1.0), Terms { salt, ..terms(8, 0.0) });
        let mut sorted = placed(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        assert_eq!(placed(1), placed(1));
        assert!((2..9).any(|salt| placed(salt) != placed(1)));
    }
}
