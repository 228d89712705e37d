//! The placement of one job: nodes for its tasks, the least risky first (thesis, section 5.2.3), and the expected
//! utility of a placement (section 5.2.1).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::load::{Convolution, NodeLoad, Risk, TaskUse};
use crate::base::{Address, JobId, Purpose};

// The nodes from the point of view of one job.

/// A node that runs tasks of a job.
struct OwnNode {
    node: u32,
    /// Load of the node without these tasks.
    others: NodeLoad,
    /// Number of the job's tasks on the node.
    own: u32,
}

/// The loads of the nodes from the point of view of one job. All tasks of a job have the same use, so its running tasks
/// are not independent of the tasks to be placed. They are therefore added to the tasks to be placed, not to the load.
pub(super) struct PlacementView<'a> {
    nodes: &'a [NodeLoad],
    /// Nodes that run tasks of the job, by number.
    own: Vec<OwnNode>,
    /// Nodes that take no further task of the job, by number.
    avoided: &'a [u32],
}

impl<'a> PlacementView<'a> {
    /// The view of `job`, which runs tasks on the nodes `held` and avoids the nodes `avoided`; both are in ascending
    /// order.
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

    /// The load of a node without the tasks of the job, and the number of these tasks.
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

/// Sort key of a candidate node: the risk for memory, the risk for CPU, free memory and free CPU, all ascending, and a
/// random number for ties.
#[derive(Clone, Copy, Debug)]
struct RankedNode {
    risk: Risk,
    free_memory: f64,
    free_cpu: f64,
    tie: u64,
    node: u32,
    /// Number of the job's tasks that the node has been given already; `risk` is the risk with one more.
    taken: u32,
}

impl PartialEq for RankedNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
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
        self.risk
            .memory
            .total_cmp(&other.risk.memory)
            .then_with(|| self.risk.cpu.total_cmp(&other.risk.cpu))
            .then_with(|| self.free_memory.total_cmp(&other.free_memory))
            .then_with(|| self.free_cpu.total_cmp(&other.free_cpu))
            .then_with(|| (self.tie, self.node).cmp(&(other.tie, other.node)))
    }
}

/// The constraints of a placement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Terms {
    /// Number of tasks to be placed.
    pub(super) tasks: u32,
    /// The probability of an over-allocation must be below this limit; 0 accepts no risk.
    pub(super) risk: f64,
    /// Whether a task may be alone on a node, whatever the risk. Otherwise a job whose expected use exceeds every node
    /// would never run.
    pub(super) alone: bool,
    /// Seed of the random order of equal nodes.
    pub(super) salt: u64,
}

/// Nodes for tasks of a job, one for each task; a node may occur several times. There are fewer than requested if no
/// node takes another task.
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

/// Number of steps between the least fraction of its CPU demand that a throttled task can get, and 1. The thesis
/// states no number.
const LEVELS: u32 = 8;

/// Lower bound of the expected CPU use of a task, in cores. With zero CPU a task would never end.
pub(super) const LEAST_CPU: f64 = 0.001;

/// Tasks of a job on a node.
#[derive(Clone, Copy)]
struct NodeShare<'a> {
    node: &'a NodeLoad,
    copies: u32,
}

/// The expected utility of a placement in which every node gets one task for each of its occurrences in `chosen`. It
/// is the probability that no task is evicted times the expected utility of the time of the last task (equation 5.3).
/// `utility` maps the time of the last task, in seconds per core-second of work, to the utility of the job.
pub(super) fn expected(
    view: &PlacementView<'_>,
    chosen: &[u32],
    tasks: &TaskUse,
    utility: impl Fn(f64) -> f64,
) -> f64 {
    let mut sorted = chosen.to_vec();
    sorted.sort_unstable();
    let share = |group: &[u32]| {
        let (node, own) = view.node(group[0]);
        NodeShare { node, copies: own + group.len() as u32 }
    };
    let shares: Vec<_> = sorted.chunk_by(|a, b| a == b).map(share).collect();
    let stays: f64 = shares.iter().map(|share| share.stays(tasks)).product();
    let in_time: f64 = tasks
        .cpu
        .pieces()
        .iter()
        .map(|piece| piece.mass * given_cpu(&shares, piece.middle(), tasks, &utility))
        .sum();
    // The least positive value is a lower bound, so that a job that will surely be evicted is still launched if no
    // other is.
    stays.max(f64::MIN_POSITIVE) * in_time
}

/// The expected utility if each task demands `cpu` cores. All tasks of the job have the same use, and the loads of
/// different nodes are independent.
///
/// A task gets a fraction of the CPU that it demands: at least its share of the node, at most 1. The fraction is
/// rounded down to one of a few levels between the smallest share on any of the nodes and 1; both ends are exact.
fn given_cpu(shares: &[NodeShare<'_>], cpu: f64, tasks: &TaskUse, utility: &impl Fn(f64) -> f64) -> f64 {
    let cpu = cpu.max(LEAST_CPU);
    let least = shares.iter().map(|share| share.entitled(cpu, tasks.request)).fold(1.0, f64::min);
    let at = |part: f64| utility(1.0 / (cpu * part));
    // The probability that every task gets at least this fraction of its CPU.
    let all = |part: f64| shares.iter().map(|share| share.gets(cpu, part, tasks.request)).product::<f64>();
    let unthrottled = all(1.0);
    if least >= 1.0 || unthrottled >= 1.0 {
        return at(1.0);
    }
    let (mut expected, mut reached, mut from) = (0.0, 1.0, least);
    for level in 1..=LEVELS {
        let to = least + (1.0 - least) * f64::from(level) / f64::from(LEVELS);
        let more = if level == LEVELS { unthrottled } else { all(to) };
        expected += (reached - more) * at(from);
        (reached, from) = (more, to);
    }
    expected + reached * at(1.0)
}

impl NodeShare<'_> {
    /// The probability that the node's memory suffices (equation 5.1).
    fn stays(&self, tasks: &TaskUse) -> f64 {
        let Self { node, copies } = *self;
        let over = node.memory.over((&tasks.memory, copies), node.room.memory, f64::INFINITY);
        1.0 - over.unwrap_or(1.0)
    }

    /// The fraction of `cpu` cores that each task gets whatever the others use: its share of the node by requests.
    fn entitled(&self, cpu: f64, request: f64) -> f64 {
        let own = request * f64::from(self.copies);
        let all = self.node.requests + own;
        let share = if all > 0.0 { own / all } else { 1.0 };
        self.node.room.cpu * share / (cpu * f64::from(self.copies))
    }

    /// The probability that each task gets at least this fraction of `cpu` cores: its share of the node suffices, or
    /// the other tasks leave enough CPU idle.
    fn gets(&self, cpu: f64, part: f64, request: f64) -> f64 {
        let Self { node, copies } = *self;
        if part <= self.entitled(cpu, request) {
            return 1.0;
        }
        1.0 - node.cpu.above(node.room.cpu - cpu * part * f64::from(copies))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::load::TaskUse;
    use super::super::load::tests::{certain, idle, of};
    use super::*;
    use crate::base::JobId;
    use crate::predict::Distribution;

    /// A node of 16 runs a task that uses 6 or 10. A second task of the same job uses as much, so the sum exceeds 16
    /// with probability 1/2. With a task of another job the probability is 1/4.
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

    fn place(nodes: &[NodeLoad], tasks: &TaskUse, terms: Terms) -> Vec<u32> {
        super::place(&PlacementView::new(nodes, JobId(99), &[], &[]), tasks, terms)
    }

    fn terms(tasks: u32, risk: f64) -> Terms {
        Terms { tasks, risk, alone: false, salt: 7 }
    }

    /// Two nodes have 8 cores and 16 units of memory; the second has less free memory.
    #[test]
    fn occupied_nodes_are_filled_first() {
        let mut loads = idle(&[(8.0, 16.0); 3]);
        loads.add(JobId(0), &[1], &certain(1.0, 8.0));
        loads.add(JobId(1), &[2], &certain(1.0, 4.0));
        let placed = place(loads.nodes(), &certain(2.0, 4.0), terms(6, 0.0));
        assert_eq!(placed[..5], [1, 1, 2, 2, 2], "least free memory first, compared after each task");
        assert_eq!(placed[5..], [0]);
    }

    /// Risky nodes come last. Nodes with too high a risk are not used.
    #[test]
    fn nodes_of_lower_risk_come_before_fuller_nodes() {
        let mut loads = idle(&[(8.0, 16.0); 2]);
        loads.add(JobId(0), &[1], &certain(1.0, 11.0));
        let unsure =
            |high| TaskUse { cpu: of(&[(1.0, 1.0)]), memory: of(&[(4.0, 0.75), (8.0, 0.25)]), request: high };
        assert_eq!(place(loads.nodes(), &unsure(1.0), terms(2, 0.0)), [0, 0], "two tasks of 8 fit on node 0");
        assert_eq!(
            place(loads.nodes(), &unsure(1.0), terms(4, 0.25)),
            [0, 0],
            "a quarter is not below a quarter"
        );
        assert_eq!(
            place(loads.nodes(), &unsure(1.0), terms(4, 0.26)),
            [0, 0, 1, 0],
            "node 1 has less memory left"
        );
    }

    #[test]
    fn slots_and_cpu_limit_the_number_of_tasks_of_a_node() {
        let loads = idle(&[(8.0, 1e9)]);
        assert_eq!(place(loads.nodes(), &certain(0.1, 1.0), terms(20, 0.0)).len(), 8);
        assert_eq!(place(loads.nodes(), &certain(3.0, 1.0), terms(20, 0.0)).len(), 2);
    }

    #[test]
    fn a_task_that_fits_on_no_node_may_run_alone_on_a_node() {
        let mut loads = idle(&[(8.0, 16.0); 3]);
        loads.add(JobId(0), &[1], &certain(1.0, 1.0));
        let large = certain(20.0, 1.0);
        assert!(place(loads.nodes(), &large, terms(3, 0.5)).is_empty());
        let mut placed = place(loads.nodes(), &large, Terms { alone: true, ..terms(3, 0.5) });
        placed.sort_unstable();
        assert_eq!(placed, [0, 2]);
    }

    /// A task that would be throttled on one node and evicted on the other goes to the first.
    #[test]
    fn a_task_that_fits_on_no_node_goes_to_a_node_with_enough_memory() {
        let loads = idle(&[(16.0, 16.0), (8.0, 64.0)]);
        let alone = |tasks| Terms { alone: true, ..terms(tasks, 0.1) };
        assert_eq!(place(loads.nodes(), &certain(12.0, 40.0), alone(1)), [1]);
        assert_eq!(place(loads.nodes(), &certain(12.0, 40.0), alone(2)), [1, 0]);
    }

    #[test]
    fn avoided_nodes_take_no_tasks() {
        let loads = idle(&[(8.0, 16.0); 3]);
        let view = PlacementView::new(loads.nodes(), JobId(0), &[], &[0, 2]);
        assert_eq!(super::place(&view, &certain(1.0, 8.0), terms(5, 0.0)), [1, 1]);
    }

    /// The order of equal nodes depends on the salt alone.
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

    fn expected(nodes: &[NodeLoad], chosen: &[u32], tasks: &TaskUse, utility: impl Fn(f64) -> f64) -> f64 {
        super::expected(&PlacementView::new(nodes, JobId(99), &[], &[]), chosen, tasks, utility)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "the result is {found}, expected {expected}");
    }

    /// Run time of a task of 10 core-seconds that takes this many seconds per core-second.
    fn time(seconds: f64) -> f64 {
        10.0 * seconds
    }

    /// The test covers the three rules for the CPU of a task, on a node of 8 cores, 6 of which other tasks have
    /// requested.
    #[test]
    fn the_cpu_of_a_task_depends_on_the_use_of_others() {
        let of = |others: f64, cpu: f64| {
            let mut loads = idle(&[(8.0, 16.0)]);
            let use_of_others = TaskUse { request: 6.0, ..(*certain(others, 1.0)).clone() };
            loads.add(JobId(0), &[0], &Arc::new(use_of_others));
            let tasks = TaskUse { request: 2.0, ..(*certain(cpu, 1.0)).clone() };
            10.0 / expected(loads.nodes(), &[0], &tasks, time)
        };
        close(of(7.9, 2.0), 2.0);
        close(of(7.0, 4.0), 2.0);
        close(of(2.0, 4.0), 4.0);
        close(of(1.0, 20.0), 6.5); // 7 cores are left: 0.35 of 20, rounded down to 0.1 + 2 / 8 × 0.9
    }

    /// Each of two nodes has tasks that use 2 or 7 of 8 cores with equal probability. A job has one task on each node,
    /// or both on one.
    #[test]
    fn the_last_task_decides_the_utility() {
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0), (8.0, 16.0)]);
        let unsure =
            TaskUse { cpu: of(&[(2.0, 0.5), (7.0, 0.5)]), memory: Distribution::point(1.0), request: 4.0 };
        let unsure = Arc::new(unsure);
        loads.add(JobId(0), &[0, 1], &unsure);
        let tasks = TaskUse { request: 1.0, ..(*certain(4.0, 1.0)).clone() };
        // The task is entitled to 8 × 1 / 5 = 1.6 of its 4 cores.
        close(expected(loads.nodes(), &[0], &tasks, time), 0.5 * 10.0 / 4.0 + 0.5 * 10.0 / 1.6);
        close(expected(loads.nodes(), &[0, 1], &tasks, time), 0.25 * 10.0 / 4.0 + 0.75 * 10.0 / 1.6);
        close(expected(loads.nodes(), &[0, 2], &tasks, time), 0.5 * 10.0 / 4.0 + 0.5 * 10.0 / 1.6);
        close(expected(loads.nodes(), &[2, 2], &tasks, time), 10.0 / 4.0);
    }

    /// The first of two nodes of 16 has 10 left. Two tasks of 4 each fit there (probability 3/4), and two tasks of 8
    /// each do not fit (1/4).
    #[test]
    fn the_utility_is_weighted_by_the_probability_of_no_eviction() {
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0)]);
        loads.add(JobId(0), &[0], &certain(1.0, 6.0));
        let memory = of(&[(4.0, 0.75), (8.0, 0.25)]);
        let tasks = TaskUse { cpu: Distribution::point(1.0), memory, request: 1.0 };
        let worth = |chosen: &[u32]| expected(loads.nodes(), chosen, &tasks, |_| 1.0);
        close(worth(&[0]), 1.0);
        close(worth(&[0, 0]), 0.75);
        close(worth(&[0, 1, 0, 1, 1]), 0.75 * 0.75);
        close(worth(&[1, 1]), 1.0);
    }

    /// The other tasks have a random CPU use. The utility equals an enumeration of all cases with the CPU rounded down
    /// to the levels, and is close to an enumeration without rounding.
    #[test]
    fn expected_utilities_equal_an_enumeration() {
        let others = of(&[(0.0, 0.1), (2.0, 0.2), (4.0, 0.3), (5.0, 0.2), (6.0, 0.1), (7.0, 0.1)]);
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0)]);
        let load = TaskUse { cpu: others.clone(), memory: Distribution::point(1.0), request: 6.0 };
        loads.add(JobId(0), &[0, 1], &Arc::new(load));
        let cpu = of(&[(1.0, 0.4), (4.0, 0.3), (6.0, 0.3)]);
        let tasks = TaskUse { cpu, memory: Distribution::point(1.0), request: 2.0 };
        let utility = |seconds: f64| (1.0 - time(seconds) / 6.0).max(0.0);
        let found = expected(loads.nodes(), &[0, 1], &tasks, utility);
        let enumerated = |round: &dyn Fn(f64, f64) -> f64| {
            let mut sum = 0.0;
            for piece in tasks.cpu.pieces() {
                let cpu = piece.low;
                for a in others.pieces() {
                    for b in others.pieces() {
                        let part = |used: f64| (2.0_f64.max(8.0 - used) / cpu).min(1.0);
                        let least = (2.0 / cpu).min(1.0);
                        let part = round(part(a.low.max(b.low)), least);
                        sum += piece.mass * a.mass * b.mass * utility(1.0 / (cpu * part));
                    }
                }
            }
            sum
        };
        let down = |part: f64, least: f64| {
            let level =
                if least < 1.0 { ((part - least) / (1.0 - least) * 8.0 + 1e-9).floor() / 8.0 } else { 1.0 };
            least + (1.0 - least) * level
        };
        close(found, enumerated(&down));
        let exact = enumerated(&|part, _| part);
        assert!(found <= exact && exact - found < 0.05, "found {found}, exact {exact}");
    }
}
