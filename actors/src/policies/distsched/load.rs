//! The expected use of the tasks on each node, and the risk of adding more.

use std::sync::Arc;

use super::sum::{Convolution, UsageSum};
use crate::base::JobId;
use crate::layout::Layout;
use crate::predict::Distribution;
use crate::roles::job_table::JobTable;
use crate::roles::planning::{CorePool, HeldCore, PlannedJob};

/// The expected resource use of a task. All tasks of a job have the same use, so one value describes each of them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TaskUse {
    /// The CPU that a task uses if it is not throttled, cores.
    pub(super) cpu: Distribution,
    /// Its memory, bytes.
    pub(super) memory: Distribution,
    /// The CPU that was requested for it, cores, by which nodes share out theirs.
    pub(super) request: f64,
}

/// CPU in cores and memory in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Room {
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

impl Room {
    /// What a node has for its tasks: memory up to what it evicts at, or a core for each task where nodes are not
    /// shared.
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
    /// What is expected of each of them.
    tasks: Arc<TaskUse>,
}

impl PartialEq for JobShare {
    /// Expectations are replaced as a whole, so that these are the same if they are one object.
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

/// What is expected of the tasks on a node.
#[derive(Clone, Debug)]
pub(super) struct NodeLoad {
    pub(super) room: Room,
    /// Tasks that it can take; none if it cannot be used.
    pub(super) slots: u32,
    /// CPU of its tasks, cores.
    pub(super) cpu: UsageSum,
    /// Memory of its tasks, bytes.
    pub(super) memory: UsageSum,
    /// CPU requested for its tasks, cores.
    pub(super) requests: f64,
    shares: Vec<JobShare>,
    /// The shares of this cycle, while they are collected.
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

    /// Whether it has no task.
    pub(super) const fn is_idle(&self) -> bool {
        self.shares.is_empty()
    }

    /// The load without the tasks of a job, and the number of these; `None` if it runs none of them.
    pub(super) fn without(&self, job: JobId, buffers: &mut Convolution) -> Option<(Self, u32)> {
        let at = self.shares.iter().position(|share| share.job == job)?;
        let mut others = self.clone();
        let own = others.shares.swap_remove(at);
        others.sum(buffers);
        Some((others, own.copies))
    }

    /// The risk with `copies` tasks of a job, which are independent of those there; `None` if one of the two risks is
    /// not below `limit`.
    pub(super) fn risk(&self, tasks: &TaskUse, copies: u32, limit: f64) -> Option<Risk> {
        let memory = self.memory.over((&tasks.memory, copies), self.room.memory, limit)?;
        let cpu = self.cpu.over((&tasks.cpu, copies), self.room.cpu, limit)?;
        Some(Risk { memory, cpu })
    }

    /// Notes a task for `next`; the tasks of a job follow each other.
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

    /// Takes over `next` if it differs, and empties it.
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
    /// Tasks that one of them can take.
    slots: u32,
    /// How many can be used.
    nodes: u32,
}

/// All nodes.
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

    /// The most memory of a node that can be used, bytes.
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

    /// Adds tasks of a job, one for each node of a list.
    pub(super) fn add(&mut self, job: JobId, nodes: &[u32], tasks: &Arc<TaskUse>) {
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        for group in sorted.chunk_by(|a, b| a == b) {
            self.nodes[group[0] as usize].add(job, group.len() as u32, tasks, &mut self.buffers);
        }
    }

    /// How many tasks of a job the nodes that it can use would take if they were idle, up to `wanted`. It cannot use
    /// those `avoided`.
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

    /// How many nodes can be used, without those `avoided`.
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

    /// Points with weights.
    pub(in super::super) fn of(points: &[(f64, f64)]) -> Distribution {
        let mut histogram = Histogram::default();
        points.iter().for_each(|(value, weight)| histogram.add_weighted(*value, *weight));
        Distribution::of(&histogram).expect("points")
    }

    /// Tasks that use some CPU and memory for certain, and have requested as much CPU.
    pub(in super::super) fn certain(cpu: f64, memory: f64) -> Arc<TaskUse> {
        let (cpu, memory, request) = (Distribution::point(cpu), Distribution::point(memory), cpu);
        Arc::new(TaskUse { cpu, memory, request })
    }

    /// Idle nodes that can be used, with room for eight tasks each.
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
    fn risks_are_those_of_cpu_and_memory() {
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

    /// To a millionth.
    fn round(risk: Risk) -> Risk {
        let of = |p: f64| (p * 1e6).round() / 1e6;
        Risk { memory: of(risk.memory), cpu: of(risk.cpu) }
    }

    #[test]
    fn idle_nodes_have_room() {
        let loads = idle(&[(8.0, 16.0), (4.0, 64.0)]);
        assert_eq!(loads.idle_room(&certain(2.0, 4.0), 100, 0.0, &[]), 4 + 2);
        assert_eq!(loads.idle_room(&certain(2.0, 4.0), 100, 0.0, &[0]), 2, "of the second node");
        assert_eq!(loads.idle_room(&certain(2.0, 4.0), 3, 0.0, &[]), 3);
        assert_eq!(loads.idle_room(&certain(0.5, 1.0), 100, 0.0, &[]), 16, "there are eight slots");
        assert_eq!(loads.idle_room(&certain(9.0, 1.0), 100, 0.0, &[]), 0);
        assert_eq!((loads.usable(&[]), loads.usable(&[1])), (2, 1));
    }
}
