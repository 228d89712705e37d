//! The expected use of the tasks on each node, their sum, and the risk of adding more.

use std::sync::Arc;

use crate::base::JobId;
use crate::layout::Layout;
use crate::predict::Distribution;
use crate::roles::job_table::JobTable;
use crate::roles::planning::{CorePool, HeldCore, PlannedJob};

/// The expected resource use of a task. All tasks of a job have the same use, so one value describes all of them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TaskUse {
    /// The CPU use of a task that is not throttled, in cores.
    pub(super) cpu: Distribution,
    /// The memory that a task uses, bytes.
    pub(super) memory: Distribution,
    /// CPU requested for the task, cores. Nodes divide their CPU in proportion to requests.
    pub(super) request: f64,
}

/// CPU in cores and memory in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Room {
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

impl Room {
    /// The room of a node: its CPU, and its memory up to the limit for evictions. A node that is not shared has a core
    /// for each task.
    pub(super) fn of(layout: &Layout, node: u32) -> Self {
        if layout.sharing().is_none() {
            return Self { cpu: f64::from(layout.cores(node)), memory: f64::INFINITY };
        }
        let limit = layout.memory_limit(node);
        let memory = if limit == u64::MAX { f64::INFINITY } else { limit as f64 };
        Self { cpu: layout.room(node).cpu as f64 / 1000.0, memory }
    }
}

/// Tasks of one job on a node.
#[derive(Clone, Debug)]
struct JobShare {
    job: JobId,
    copies: u32,
    /// Expected use of each of the tasks.
    tasks: Arc<TaskUse>,
}

impl PartialEq for JobShare {
    /// Expected uses are replaced as a whole, so equal uses are the same object.
    fn eq(&self, other: &Self) -> bool {
        self.job == other.job && self.copies == other.copies && Arc::ptr_eq(&self.tasks, &other.tasks)
    }
}

/// The probabilities that a node's memory and CPU are over-allocated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Risk {
    pub(super) memory: f64,
    pub(super) cpu: f64,
}

/// The expected use of the tasks on a node.
#[derive(Clone, Debug)]
pub(super) struct NodeLoad {
    pub(super) room: Room,
    /// Number of tasks that the node can take; 0 if it cannot be used.
    pub(super) slots: u32,
    /// CPU of the node's tasks, cores.
    pub(super) cpu: UsageSum,
    /// Memory of the node's tasks, bytes.
    pub(super) memory: UsageSum,
    /// CPU requested for the node's tasks, cores.
    pub(super) requests: f64,
    shares: Vec<JobShare>,
    /// The shares counted so far in this cycle; when complete, they replace `shares`.
    next: Vec<JobShare>,
}

impl NodeLoad {
    fn new(room: Room) -> Self {
        Self {
            room,
            slots: 0,
            cpu: UsageSum::new(room.cpu),
            memory: UsageSum::new(room.memory),
            requests: 0.0,
            shares: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Whether the node has no task.
    pub(super) const fn is_idle(&self) -> bool {
        self.shares.is_empty()
    }

    /// The load without the tasks of a job, and the number of these tasks; `None` if the node runs none of them.
    pub(super) fn without(&self, job: JobId, buffers: &mut Convolution) -> Option<(Self, u32)> {
        let at = self.shares.iter().position(|share| share.job == job)?;
        let mut others = self.clone();
        let own = others.shares.swap_remove(at);
        others.sum(buffers);
        Some((others, own.copies))
    }

    /// The risk with `copies` further tasks, which are independent of the tasks on the node; `None` if the risk for
    /// memory or the risk for CPU is not below `limit`.
    pub(super) fn risk(&self, tasks: &TaskUse, copies: u32, limit: f64) -> Option<Risk> {
        let memory = self.memory.over((&tasks.memory, copies), self.room.memory, limit)?;
        let cpu = self.cpu.over((&tasks.cpu, copies), self.room.cpu, limit)?;
        Some(Risk { memory, cpu })
    }

    /// Adds a task to `next`. The tasks of a job must be added one after the other.
    fn count(&mut self, job: JobId, tasks: &Arc<TaskUse>) {
        match self.next.last_mut() {
            Some(share) if share.job == job => share.copies += 1,
            _ => self.next.push(JobShare { job, copies: 1, tasks: Arc::clone(tasks) }),
        }
    }

    fn add(&mut self, job: JobId, copies: u32, tasks: &Arc<TaskUse>, buffers: &mut Convolution) {
        self.slots -= copies;
        match self.shares.iter_mut().find(|share| share.job == job) {
            Some(share) => share.copies += copies,
            None => self.shares.push(JobShare { job, copies, tasks: Arc::clone(tasks) }),
        }
        self.sum(buffers);
    }

    /// Replaces the shares by `next` if they differ, and empties `next`.
    fn renew(&mut self, buffers: &mut Convolution) {
        if self.next != self.shares {
            std::mem::swap(&mut self.next, &mut self.shares);
            self.sum(buffers);
        }
        self.next.clear();
    }

    fn sum(&mut self, buffers: &mut Convolution) {
        let shares = || self.shares.iter();
        self.cpu.set(shares().map(|share| (&share.tasks.cpu, share.copies)), buffers);
        self.memory.set(shares().map(|share| (&share.tasks.memory, share.copies)), buffers);
        self.requests = shares().map(|share| share.tasks.request * f64::from(share.copies)).sum();
    }
}

/// Nodes with equal room.
#[derive(Clone, Debug)]
struct NodeClass {
    idle: NodeLoad,
    /// Number of tasks that each of these nodes can take.
    slots: u32,
    /// Number of usable nodes.
    nodes: u32,
}

/// The loads of all nodes.
#[derive(Clone, Debug)]
pub(super) struct NodeLoads {
    nodes: Vec<NodeLoad>,
    /// Whether each node can be used.
    usable: Vec<bool>,
    classes: Vec<NodeClass>,
    /// The class of each node.
    class: Vec<usize>,
    buffers: Convolution,
}

impl NodeLoads {
    /// The nodes of a layout, without tasks.
    pub(super) fn new(layout: &Layout) -> Self {
        let rooms: Vec<_> = (0..layout.nodes()).map(|node| Room::of(layout, node)).collect();
        let (mut classes, mut class) = (Vec::<NodeClass>::new(), Vec::new());
        for (room, slots) in rooms.iter().zip((0..).map(|node| layout.cores(node))) {
            let known = classes.iter().position(|known| known.idle.room == *room && known.slots == slots);
            class.push(known.unwrap_or(classes.len()));
            if known.is_none() {
                classes.push(NodeClass { idle: NodeLoad::new(*room), slots, nodes: 0 });
            }
        }
        let nodes: Vec<_> = rooms.into_iter().map(NodeLoad::new).collect();
        Self { usable: vec![false; nodes.len()], nodes, classes, class, buffers: Convolution::default() }
    }

    /// The nodes, by number.
    pub(super) fn nodes(&self) -> &[NodeLoad] {
        &self.nodes
    }

    /// The most memory of a usable node, bytes.
    pub(super) fn largest_memory(&self) -> f64 {
        let usable = self.classes.iter().filter(|class| class.nodes > 0);
        usable.map(|class| class.idle.room.memory).fold(0.0, f64::max)
    }

    /// Updates each node to the tasks that run on it, without those in `stops`. `tasks` returns the expected use of
    /// the tasks of a job. A node is recomputed only if its tasks or their expected use have changed.
    pub(super) fn refresh(
        &mut self,
        (jobs, pool): (&mut JobTable<PlannedJob>, &CorePool),
        mut stops: Vec<HeldCore>,
        mut tasks: impl FnMut(JobId) -> Option<Arc<TaskUse>>,
    ) {
        stops.sort_unstable();
        for (id, job) in jobs.iter_mut().filter(|(_, job)| !job.held.is_empty()) {
            let Some(tasks) = tasks(id) else { continue };
            for core in job.held.iter().filter(|core| stops.binary_search(core).is_err()) {
                self.nodes[core.node as usize].count(id, &tasks);
            }
        }
        self.classes.iter_mut().for_each(|class| class.nodes = 0);
        for (index, node) in (0..).zip(&mut self.nodes) {
            node.renew(&mut self.buffers);
            node.slots = pool.free_on(index);
            let usable = pool.is_usable(index);
            self.usable[index as usize] = usable;
            self.classes[self.class[index as usize]].nodes += u32::from(usable);
        }
        for core in stops {
            self.nodes[core.node as usize].slots += u32::from(pool.is_usable(core.node));
        }
    }

    /// Adds tasks of a job, one to each listed node.
    pub(super) fn add(&mut self, job: JobId, nodes: &[u32], tasks: &Arc<TaskUse>) {
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        for group in sorted.chunk_by(|a, b| a == b) {
            self.nodes[group[0] as usize].add(job, group.len() as u32, tasks, &mut self.buffers);
        }
    }

    /// Number of tasks of a job, up to `wanted`, that the usable nodes would take if idle; `avoided` nodes do not
    /// count.
    pub(super) fn idle_room(&self, tasks: &TaskUse, wanted: u32, limit: f64, avoided: &[u32]) -> u32 {
        let mut room = 0u32;
        let usable = self.usable_by_class(avoided);
        for (class, &nodes) in self.classes.iter().zip(&usable).filter(|(_, nodes)| **nodes > 0) {
            for copies in 1..=class.slots {
                if room >= wanted {
                    return wanted;
                }
                if class.idle.risk(tasks, copies, limit).is_none() {
                    break;
                }
                room = room.saturating_add(nodes);
            }
        }
        room.min(wanted)
    }

    /// Number of usable nodes that are not `avoided`.
    pub(super) fn usable(&self, avoided: &[u32]) -> u32 {
        self.usable_by_class(avoided).iter().sum()
    }

    fn usable_by_class(&self, avoided: &[u32]) -> Vec<u32> {
        let mut usable: Vec<u32> = self.classes.iter().map(|class| class.nodes).collect();
        for &node in avoided.iter().filter(|node| self.usable[**node as usize]) {
            usable[self.class[node as usize]] -= 1;
        }
        usable
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::predict::Histogram;

    /// A distribution of points with weights.
    pub(in super::super) fn of(points: &[(f64, f64)]) -> Distribution {
        let mut histogram = Histogram::default();
        points.iter().for_each(|(value, weight)| histogram.add_weighted(*value, *weight));
        Distribution::of(&histogram).expect("points")
    }

    /// Tasks that use exactly this CPU and memory, and have requested the same CPU.
    pub(in super::super) fn certain(cpu: f64, memory: f64) -> Arc<TaskUse> {
        let (cpu, memory, request) = (Distribution::point(cpu), Distribution::point(memory), cpu);
        Arc::new(TaskUse { cpu, memory, request })
    }

    /// Idle usable nodes with room for eight tasks each.
    pub(in super::super) fn idle(rooms: &[(f64, f64)]) -> NodeLoads {
        let rooms: Vec<_> = rooms.iter().map(|&(cpu, memory)| Room { cpu, memory }).collect();
        let node = |room: &Room| NodeLoad { slots: 8, ..NodeLoad::new(*room) };
        let class = |room: &Room| NodeClass { idle: NodeLoad::new(*room), slots: 8, nodes: 1 };
        NodeLoads {
            nodes: rooms.iter().map(node).collect(),
            usable: vec![true; rooms.len()],
            classes: rooms.iter().map(class).collect(),
            class: (0..rooms.len()).collect(),
            buffers: Convolution::default(),
        }
    }

    #[test]
    fn cpu_and_memory_have_separate_risks() {
        let mut loads = idle(&[(8.0, 16.0)]);
        let unsure = Arc::new(TaskUse {
            cpu: of(&[(2.0, 0.5), (4.0, 0.5)]),
            memory: of(&[(4.0, 0.9), (12.0, 0.1)]),
            request: 4.0,
        });
        loads.add(JobId(0), &[0], &unsure);
        let node = &loads.nodes[0];
        assert_eq!((node.cpu.mean(), node.requests, node.slots), (3.0, 4.0, 7));
        assert_eq!(node.risk(&unsure, 1, 1.0).map(round), Some(Risk { memory: 0.01, cpu: 0.0 }));
        assert_eq!(node.risk(&unsure, 2, 1.0).map(round), Some(Risk { memory: 0.19, cpu: 0.5 }));
        assert_eq!(node.risk(&unsure, 2, 0.5), None);
    }

    /// Rounds a risk to millionths.
    fn round(risk: Risk) -> Risk {
        let of = |p: f64| (p * 1e6).round() / 1e6;
        Risk { memory: of(risk.memory), cpu: of(risk.cpu) }
    }

    #[test]
    fn idle_room_counts_the_tasks_that_idle_nodes_take() {
        let loads = idle(&[(8.0, 16.0), (4.0, 64.0)]);
        assert_eq!(loads.idle_room(&certain(2.0, 4.0), 100, 0.0, &[]), 4 + 2);
        assert_eq!(loads.idle_room(&certain(2.0, 4.0), 100, 0.0, &[0]), 2, "the second node takes two tasks");
        assert_eq!(loads.idle_room(&certain(2.0, 4.0), 3, 0.0, &[]), 3);
        assert_eq!(loads.idle_room(&certain(0.5, 1.0), 100, 0.0, &[]), 16, "each node has eight slots");
        assert_eq!(loads.idle_room(&certain(9.0, 1.0), 100, 0.0, &[]), 0);
        assert_eq!((loads.usable(&[]), loads.usable(&[1])), (2, 1));
    }
}

// Sums of independent uncertain amounts on a fixed grid (thesis, equation 5.2).

/// Number of grid steps from zero to the capacity of a node.
const STEPS: usize = 256;

/// Index of the last entry, which holds all probability beyond the grid.
const BEYOND: usize = STEPS + 1;

/// Largest probability that is treated as a rounding error.
const NONE: f64 = 1e-9;

/// Largest distance from a grid point, in steps, that is treated as a rounding error.
const ROUNDING: f64 = 1e-6;

/// The distribution of a sum of independent, non-negative amounts. The least value is kept exactly, so a sum of
/// points is a point; the excess over it is kept on a grid. An amount between two grid points is split between them,
/// which keeps the mean exact. An excess beyond the grid exceeds any limit.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct UsageSum {
    step: f64,
    least: f64,
    mean: f64,
    /// Probability by steps above the least value; the last entry is not zero.
    masses: Vec<f64>,
    /// For each number of steps, the probability of at least this many steps.
    tails: Vec<f64>,
}

/// Buffers of a convolution.
#[derive(Clone, Debug, Default)]
pub(super) struct Convolution {
    steps: Vec<(usize, f64)>,
    masses: Vec<f64>,
}

impl UsageSum {
    /// The empty sum, on a grid up to `capacity`. A sum never reaches an infinite capacity.
    pub(super) fn new(capacity: f64) -> Self {
        let step = if capacity.is_finite() && capacity > 0.0 { capacity / STEPS as f64 } else { 1.0 };
        Self { step, least: 0.0, mean: 0.0, masses: vec![1.0], tails: vec![1.0] }
    }

    /// Sets the distribution to that of a sum of independent amounts, each times its number of copies.
    pub(super) fn set<'a>(
        &mut self,
        amounts: impl Iterator<Item = (&'a Distribution, u32)>,
        buffers: &mut Convolution,
    ) {
        (self.least, self.mean) = (0.0, 0.0);
        self.masses.clear();
        self.masses.push(1.0);
        for (amount, copies) in amounts {
            self.add(amount, f64::from(copies), buffers);
        }
        self.tails.clear();
        self.tails.extend(self.masses.iter().rev().scan(0.0, |sum, mass| {
            *sum += mass;
            Some(*sum)
        }));
        self.tails.reverse();
    }

    /// Adds an independent amount, times `copies`.
    fn add(&mut self, amount: &Distribution, copies: f64, buffers: &mut Convolution) {
        let pieces = amount.pieces();
        let least = pieces.first().map_or(0.0, |piece| piece.middle());
        self.least += least * copies;
        self.mean += amount.mean() * copies;
        if pieces.len() == 1 {
            return;
        }
        buffers.steps.clear();
        for piece in pieces {
            let above = (piece.middle() - least) * copies / self.step;
            let step = (above as usize).min(BEYOND);
            let upper = if step < BEYOND { above - step as f64 } else { 0.0 };
            buffers.count(step, piece.mass * (1.0 - upper));
            buffers.count(step + 1, piece.mass * upper);
        }
        buffers.convolve(&mut self.masses);
    }

    /// The expected value.
    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    /// The probability that the sum is above `limit`.
    pub(super) fn above(&self, limit: f64) -> f64 {
        let steps = ((limit - self.least) / self.step + ROUNDING).floor();
        if steps < 0.0 {
            return 1.0;
        }
        let above = self.tails.get((steps as usize).saturating_add(1)).copied().unwrap_or(0.0);
        if above < NONE { 0.0 } else { above }
    }

    /// The probability that the sum plus `copies` times an independent amount exceeds `capacity` (thesis, equation
    /// 5.1); `None` if the probability is not below `limit`. With a limit of zero no risk is accepted.
    pub(super) fn over(
        &self,
        (amount, copies): (&Distribution, u32),
        capacity: f64,
        limit: f64,
    ) -> Option<f64> {
        let mut risk = 0.0;
        // Large amounts come first, because they decide soonest.
        for piece in amount.pieces().iter().rev() {
            let above = self.above(capacity - f64::from(copies) * piece.middle());
            if above == 0.0 {
                break;
            }
            risk += piece.mass * above;
            if risk >= limit.max(NONE) {
                return None;
            }
        }
        Some(if risk < NONE { 0.0 } else { risk })
    }
}

impl Convolution {
    /// Adds probability to a step, which must be one of the two highest steps so far, or a higher one.
    fn count(&mut self, step: usize, mass: f64) {
        let step = step.min(BEYOND);
        match self.steps.iter_mut().rev().take(2).find(|(known, _)| *known == step) {
            Some((_, sum)) => *sum += mass,
            None if mass > 0.0 => self.steps.push((step, mass)),
            None => {}
        }
    }

    /// Replaces `masses` by their convolution with the counted steps.
    fn convolve(&mut self, masses: &mut Vec<f64>) {
        let most = self.steps.last().map_or(0, |(step, _)| *step);
        let len = (masses.len() + most).min(BEYOND + 1);
        self.masses.clear();
        self.masses.resize(len, 0.0);
        for &(step, weight) in &self.steps {
            let fit = (len - step).min(masses.len());
            let (within, beyond) = masses.split_at(fit);
            for (sum, mass) in self.masses[step..].iter_mut().zip(within) {
                *sum += mass * weight;
            }
            if !beyond.is_empty() {
                self.masses[len - 1] += beyond.iter().sum::<f64>() * weight;
            }
        }
        std::mem::swap(masses, &mut self.masses);
    }
}

#[cfg(test)]
mod sum_tests {
    use super::tests::of;
    use super::*;
    use crate::base::{Address, Draw, Purpose};
    use rand::RngExt as _;

    fn sum(capacity: f64, amounts: &[(&Distribution, u32)]) -> UsageSum {
        let mut sum = UsageSum::new(capacity);
        sum.set(amounts.iter().copied(), &mut Convolution::default());
        sum
    }

    /// Every combination of values of some amounts, with its probability.
    fn enumerated(amounts: &[(&Distribution, u32)]) -> Vec<(f64, f64)> {
        amounts.iter().fold(vec![(0.0, 1.0)], |sums, (amount, copies)| {
            let pieces = amount.pieces();
            let with = |(sum, mass): &(f64, f64)| {
                pieces
                    .iter()
                    .map(|piece| (sum + f64::from(*copies) * piece.low, mass * piece.mass))
                    .collect::<Vec<_>>()
            };
            sums.iter().flat_map(with).collect()
        })
    }

    fn enumerated_above(combinations: &[(f64, f64)], limit: f64) -> f64 {
        combinations.iter().filter(|(sum, _)| *sum > limit + 1e-9).map(|(_, mass)| mass).sum()
    }

    /// Capacity 8. One task uses 1 or 3, the other 2 or 5.
    #[test]
    fn sums_of_two_tasks_equal_hand_computed_values() {
        let (a, b) = (of(&[(1.0, 0.5), (3.0, 0.5)]), of(&[(2.0, 0.75), (5.0, 0.25)]));
        let both = sum(8.0, &[(&a, 1), (&b, 1)]);
        assert!((both.mean() - 4.75).abs() < 1e-12);
        let above = [2.9, 3.0, 4.9, 5.0, 6.0, 7.9, 8.0].map(|limit| both.above(limit));
        assert_eq!(above, [1.0, 0.625, 0.625, 0.25, 0.125, 0.125, 0.0]);
        assert_eq!(both.over((&a, 1), 8.0, 1.0), Some(0.5 * 0.25 + 0.5 * 0.125));
        assert_eq!(both.over((&a, 1), 8.0, 0.18), None, "the risk is above the limit");
        assert_eq!(both.over((&a, 1), 11.0, 0.0), Some(0.0), "every combination fits");
        assert_eq!(both.over((&a, 2), 11.0, 1.0), Some(0.5 * 0.25), "two tasks of a job have the same use");
        assert_eq!(both.over((&a, 1), 10.9, 0.0), None);
    }

    /// Single values between grid points add up exactly.
    #[test]
    fn a_sum_of_constant_amounts_is_an_exact_constant() {
        let (third, tenth) = (Distribution::point(1.0 / 3.0), Distribution::point(0.1));
        let full = sum(1.0, &[(&third, 2), (&tenth, 3)]);
        assert_eq!(full.above(1.0), 0.0);
        assert_eq!(full.over((&Distribution::point(1.0 / 30.0), 1), 1.0, 0.0), Some(0.0));
        assert_eq!(full.over((&Distribution::point(0.04), 1), 1.0, 1.0), None);
        let none = sum(1.0, &[]);
        assert_eq!(
            none.over((&Distribution::point(1.0), 1), 1.0, 0.0),
            Some(0.0),
            "using the whole node does not exceed it"
        );
        assert_eq!(sum(f64::INFINITY, &[(&third, 9)]).above(f64::INFINITY), 0.0);
    }

    fn draw_amount(draw: &mut Draw, step: f64) -> Distribution {
        let points = draw.random_range(1..6);
        let point = |draw: &mut Draw| {
            let value = f64::from(draw.random_range(0..60_u32)) * step;
            (value, f64::from(draw.random_range(1..10_u32)))
        };
        of(&(0..points).map(|_| point(draw)).collect::<Vec<_>>())
    }

    /// Amounts on grid points. The sum must equal the enumeration of all combinations, up to the capacity.
    #[test]
    fn sums_of_amounts_on_the_grid_equal_an_enumeration() {
        for seed in 0..300 {
            let mut draw = Address::new(seed, Purpose::Tool).draw();
            let amounts: Vec<_> = (0..draw.random_range(0..6)).map(|_| draw_amount(&mut draw, 0.5)).collect();
            let amounts: Vec<_> =
                amounts.iter().map(|amount| (amount, draw.random_range(1..4_u32))).collect();
            let capacity = 128.0;
            let found = sum(capacity, &amounts);
            let combinations = enumerated(&amounts);
            for limit in (0..=256).map(|half| f64::from(half) / 2.0) {
                let expected = enumerated_above(&combinations, limit);
                let above = found.above(limit);
                assert!((above - expected).abs() < 2e-9, "seed {seed}: {above} and {expected} above {limit}");
            }
            let mean: f64 = combinations.iter().map(|(sum, mass)| sum * mass).sum();
            assert!((found.mean() - mean).abs() < 1e-9);
        }
    }

    /// Rounding changes each amount by at most half a step of the grid. The probability that n amounts stay below a
    /// limit is therefore between two exact ones, whose limits are (n + 1) / 2 steps lower and higher.
    #[test]
    fn sums_of_amounts_off_the_grid_are_close_to_exact_sums() {
        for seed in 0..300 {
            let mut draw = Address::new(seed, Purpose::Tool).at(1).draw();
            let amounts: Vec<_> =
                (0..draw.random_range(1..6)).map(|_| draw_amount(&mut draw, 0.377)).collect();
            let amounts: Vec<_> = amounts.iter().map(|amount| (amount, 1)).collect();
            let found = sum(128.0, &amounts);
            let combinations = enumerated(&amounts);
            let coarse = 0.5 * (amounts.len() + 1) as f64;
            for limit in (0..128).map(f64::from) {
                let above = found.above(limit);
                let [most, least] =
                    [limit - coarse, limit + coarse].map(|l| enumerated_above(&combinations, l));
                assert!((least - 2e-9..=most + 2e-9).contains(&above), "seed {seed}: {least} {above} {most}");
            }
        }
    }

    #[test]
    fn mass_beyond_the_grid_stays_in_the_last_bin() {
        let wide = of(&[(0.0, 0.5), (1000.0, 0.5)]);
        let found = sum(8.0, &[(&wide, 1), (&wide, 1)]);
        assert_eq!((found.masses.len(), found.above(8.0)), (BEYOND + 1, 0.75));
    }
}
