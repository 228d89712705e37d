//! The interface of planners: their input, with the free cores of a cluster by kind of node, and their decisions.

use std::fmt::Debug;

use std::collections::VecDeque;

use crate::base::{CopyId, JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::layout::Layout;
use crate::machine::{Effects, Stored};
use crate::message::UsageReport;
use crate::roles::job_table::{JobTable, OpenJob};

/// The input of a planner.
pub struct Situation<'a> {
    /// The open jobs.
    pub jobs: &'a mut JobTable<PlannedJob>,
    /// The cores of the cluster.
    pub pool: &'a CorePool,
}

/// Tasks of a job to be launched together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchOrder {
    /// The job.
    pub job: JobId,
    /// Places of the job's first waiting tasks.
    pub places: TaskPlaces,
}

impl LaunchOrder {
    /// Number of tasks to be launched.
    pub fn size(&self) -> u32 {
        match &self.places {
            TaskPlaces::Kinds(tasks) => tasks.iter().sum(),
            TaskPlaces::Nodes(nodes) => nodes.len() as u32,
        }
    }
}

/// The places of tasks that are launched together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskPlaces {
    /// A number of tasks on each kind of nodes, on the cores that became free first.
    Kinds(Vec<u32>),
    /// The number of a node for each task; a node may occur several times.
    Nodes(Vec<u32>),
}

/// A decision of a planner.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Copies to be preempted first, whatever is launched.
    pub stops: Vec<HeldCore>,
    /// Launches, in this order.
    pub launches: Vec<LaunchOrder>,
    /// Running jobs that may be preempted, in this order, for launches that lack cores.
    pub victims: Vec<JobId>,
    /// Time of the next decision, even if nothing has happened until then.
    pub due: Option<Time>,
    /// Emulated time that the decision takes.
    pub takes: Span,
    /// Number of cycles since the last decision, this cycle included; the scheduler counts them.
    pub cycles: u32,
}

/// The run of a finished job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRun {
    /// Time from the launch of the job to its end.
    pub length: Span,
    /// Whether a task ran on a kind of node that the job does not prefer.
    pub elsewhere: bool,
}

/// A rule that decides which jobs run.
pub trait Planner: Clone + Debug + Send + 'static {
    /// Called when the scheduler starts, after [`restore`](Self::restore) if it has crashed.
    fn started(&mut self, _fx: &mut Effects<'_>) {}

    /// Called when a job was submitted.
    fn submitted(&mut self, _job: JobId, _spec: &JobSpec, _fx: &mut Effects<'_>) {}

    /// Whether there is something to decide at the end of a cycle in which something has changed. `waiting` says
    /// whether tasks wait.
    fn has_choice(&self, waiting: bool) -> bool {
        waiting
    }

    /// Decides at the end of a cycle in which something has changed.
    fn decide(&mut self, situation: Situation<'_>, fx: &mut Effects<'_>) -> Decision;

    /// Called when a shared node has reported the use of a copy; returns whether the report may change a decision.
    fn reported(&mut self, _report: UsageReport, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// Called when a shared node reports that from `at` on a copy gets this fraction of its CPU demand, in millionths.
    /// Returns whether this may change a decision. Reports can overtake each other; the one with the latest `at` is
    /// valid.
    fn throttled(&mut self, _copy: CopyId, _rate: u32, _at: Time, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// Called when a node has evicted a copy; `alone` says that no other copy ran on it. [`stopped`](Self::stopped)
    /// follows.
    fn evicted(&mut self, _copy: CopyId, _node: u32, _alone: bool, _fx: &mut Effects<'_>) {}

    /// Called when a copy was preempted, evicted or lost with its node; its work is lost.
    fn stopped(&mut self, _copy: CopyId, _fx: &mut Effects<'_>) {}

    /// Called when a job ended; `run` describes its run, if all its tasks ran at the same time.
    fn ended(&mut self, _job: JobId, _run: Option<JobRun>, _fx: &mut Effects<'_>) {}

    /// State that survives a crash of the scheduler; see [`Machine::stored`](crate::machine::Machine::stored).
    fn stored(&mut self) -> Option<Stored> {
        None
    }

    /// Restores the state that a predecessor stored.
    fn restore(&mut self, _stored: Stored) {}
}

// An open job of a planning scheduler, with its waiting tasks and its held cores.

/// A copy that holds a core of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HeldCore {
    /// The copy.
    pub copy: CopyId,
    /// Number of the copy's node.
    pub node: u32,
}

/// An open job.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    /// Description and finished tasks of the job.
    pub open: OpenJob,
    /// Tasks without a finished copy that hold no core, in ascending order.
    pub waiting: Vec<u32>,
    /// Copies of the other tasks without a finished copy.
    pub held: Vec<HeldCore>,
    /// Time at which the first held copies were launched.
    pub began: Time,
    /// Whether a held copy runs on a kind of node that the job does not prefer.
    pub elsewhere: bool,
    /// Whether all tasks of the job were launched at `began`, and these copies are the ones that finish.
    pub whole: bool,
    /// Whether some waiting tasks were lost. Their launch counts as a repair; a launch after a preemption does not.
    pub lost: bool,
    /// Number of preemptions of the whole job.
    pub preemptions: u32,
}

impl PlannedJob {
    /// A job whose tasks all wait.
    pub fn new(open: OpenJob) -> Self {
        let waiting = (0..open.spec.tasks).collect();
        Self {
            open,
            waiting,
            held: Vec::new(),
            began: Time::ZERO,
            elsewhere: false,
            whole: false,
            lost: false,
            preemptions: 0,
        }
    }

    /// Makes a task wait again, unless it has a finished copy.
    pub(super) fn again(&mut self, task: u32) {
        if !self.open.is_done(task)
            && let Err(at) = self.waiting.binary_search(&task)
        {
            self.waiting.insert(at, task);
        }
    }

    /// Number of cores that the job holds on usable nodes, by kind of node.
    pub fn held_by_kind(&self, pool: &CorePool) -> Vec<u32> {
        let mut held = vec![0; pool.kinds()];
        for core in self.held.iter().filter(|core| pool.is_usable(core.node)) {
            held[pool.kind(core.node)] += 1;
        }
        held
    }
}

/// A node and the copies that hold its cores.
#[derive(Clone, Debug)]
struct PoolNode {
    kind: u8,
    cores: u32,
    held: Vec<CopyId>,
    up: bool,
    /// Whether the node is avoided because it could not be reached.
    avoided: bool,
    /// Number of the node's entries among the free cores that [`CorePool::take_on`] has made stale.
    stale: u32,
}

impl PoolNode {
    const fn is_usable(&self) -> bool {
        self.up && !self.avoided
    }
}

/// All cores of a cluster.
#[derive(Clone, Debug)]
pub struct CorePool {
    nodes: Vec<PoolNode>,
    /// The number of a node for each of its free cores, by kind of node, in the order in which cores became free.
    free: Vec<VecDeque<u32>>,
    /// Number of stale entries of all nodes, by kind.
    stale: Vec<u32>,
}

impl CorePool {
    /// All nodes of a layout, up and idle.
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
        // The first core of each node comes before the second core of any.
        let most = nodes.iter().map(|node| node.cores).max().unwrap_or(0);
        for core in 0..most {
            for (index, node) in (0..).zip(&nodes).filter(|(_, node)| core < node.cores) {
                free[usize::from(node.kind)].push_back(index);
            }
        }
        let stale = vec![0; free.len()];
        Self { nodes, free, stale }
    }

    /// Number of kinds of nodes.
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

    /// Number of free cores on usable nodes of a kind.
    pub fn free(&self, kind: usize) -> u32 {
        self.free[kind].len() as u32 - self.stale[kind]
    }

    /// Number of free cores of a node; 0 if the node cannot be used.
    pub fn free_on(&self, index: u32) -> u32 {
        let node = &self.nodes[index as usize];
        if node.is_usable() { node.cores.saturating_sub(node.held.len() as u32) } else { 0 }
    }

    /// Number of cores of usable nodes, free and held, by kind.
    pub fn usable(&self) -> Vec<u32> {
        let mut usable = vec![0; self.kinds()];
        for node in self.nodes.iter().filter(|node| node.is_usable()) {
            usable[usize::from(node.kind)] += node.cores;
        }
        usable
    }

    /// Number of cores of all nodes that are up.
    pub fn up_cores(&self) -> u32 {
        self.nodes.iter().filter(|node| node.up).map(|node| node.cores).sum()
    }

    /// Gives a free core on some node of a kind to a copy; returns the node.
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

    /// Gives a free core of a node to a copy; returns whether there was a free core. The core's entry among the free
    /// cores becomes stale and is removed later, because finding it now would take a search.
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

    /// Frees the core that a copy holds on a node; returns whether the copy held a core.
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

    /// Excludes a node from the free cores, or readmits it.
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

    /// Rebuilds the list of free cores of a node.
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
        assert_eq!(
            taken,
            [Some(0), Some(1), Some(1), None],
            "the first core of each node comes before any second core"
        );
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
        assert_eq!((pool.free(0), pool.take(0, copy(8))), (0, None), "all cores are held");
    }

    #[test]
    fn lost_and_avoided_nodes_have_no_free_cores() {
        let mut pool = CorePool::new(&Layout::new(1, 0, [1, 2]));
        assert_eq!(pool.take(0, copy(0)), Some(0));
        assert_eq!(pool.down(0), [copy(0)]);
        assert!(!pool.release(0, copy(0)), "the core is lost");
        pool.avoid(1, true);
        assert_eq!((pool.free(0), pool.usable(), pool.up_cores()), (0, vec![0], 2));
        pool.up(0);
        pool.avoid(1, false);
        assert_eq!((pool.free(0), pool.usable()), (3, vec![3]));
    }
}
