//! YARN's resource manager and node managers, which give containers on heartbeats, from one queue or from two with
//! shares.
//!
//! This file has the resource manager. On a node's heartbeat it gives the node's room to the oldest applications. A
//! heartbeat does not include containers that are still on their way to the node. The manager therefore also counts the
//! containers that it gave each node, and gives at most the smaller of the reported room and the cores left by this
//! count.

mod node;

use std::collections::BTreeMap;

pub use node::ContainerNode;

use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::layout::Layout;
use crate::machine::{Effects, Timer};
use crate::message::{Launch, Message, NodeReport, SuspendableCopy, TaskRange};
use crate::roles::dispatcher::{DispatchRule, Dispatcher, OpenTasks};
use crate::roles::task_queue::TaskQueue;

// Options of the resource manager.

/// Options of the resource manager.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct YarnOptions {
    /// Whether an application master keeps a container for the life of its job.
    pub masters: bool,
    /// Two queues and the rules for taking containers back from them; `None` for one queue.
    pub reclaiming: Option<Reclaiming>,
}

/// Two queues with shares, for short and for long jobs, and the rules by which a queue over its share is cut back
/// (`ProportionalCapacityPreemptionPolicy` of Hadoop, as in Big-C).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reclaiming {
    /// The share of the containers that is guaranteed to short jobs; the rest is for long jobs.
    pub short_share: f64,
    /// Period at which queues are compared with their shares.
    pub every: Span,
    /// Excess over its share above which a queue is cut back, as a fraction of the share.
    pub over: f64,
    /// Largest fraction of all containers that is taken back in one comparison.
    pub round: f64,
    /// Fraction of a queue's excess that is taken back in one comparison.
    pub damping: f64,
    /// Whether containers are killed instead of suspended.
    pub kill: bool,
}

/// The tick at which queues are compared with their shares.
const MONITOR: Timer = Timer::Tick(0);

/// The one scheduler of a run.
pub type ResourceManager = Dispatcher<ContainerRule>;

impl ResourceManager {
    /// A manager of all nodes of a layout.
    pub fn new(options: YarnOptions, layout: &Layout) -> Self {
        let queues = LeafQueues::new(options.reclaiming.as_ref());
        let hosts = ContainerHosts::new(layout);
        Self::with(ContainerRule { options, queues, hosts, monitoring: false }, layout)
    }
}

/// The rule of the resource manager.
#[derive(Clone, Debug)]
pub struct ContainerRule {
    options: YarnOptions,
    queues: LeafQueues,
    hosts: ContainerHosts,
    /// Whether the next check of the queues is armed.
    monitoring: bool,
}

impl ContainerRule {
    /// The queue of an open job.
    fn leaf(&mut self, job: JobId, tasks: &mut OpenTasks) -> &mut LeafQueue {
        let class = tasks.spec(job).map_or(0, |spec| spec.class);
        let leaf = self.queues.of(class);
        self.queues.get(leaf)
    }

    /// Gives containers on a node that has reported room.
    fn heartbeat(&mut self, node: u32, slots: u32, at: Time, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if !self.hosts.record_heartbeat(node, at) {
            return;
        }
        let mut room = slots.min(self.hosts.get(node).room());
        while room > 0 && self.give(node, tasks, fx) {
            room -= 1;
        }
    }

    /// Gives one container on a node to the queue that is least served for its share: a suspended container of this
    /// queue resumes before a new one is given. Returns whether a container was given or resumed.
    fn give(&mut self, node: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        self.skip_done(tasks);
        let wants = |leaf, queue: &LeafQueue| {
            let next = queue.waiting.next().map(|copy| copy.task.job);
            next.is_some_and(|job| !self.lacks_master(job) || self.may_have_master(job))
                || self.hosts.has_suspended(node, leaf)
        };
        let Some(leaf) = self.queues.least_served(wants) else { return false };
        if let Some(container) = self.hosts.get(node).suspended(leaf) {
            self.queues.get(leaf).used += 1;
            fx.send(fx.layout().node(node), container.task.switch());
            return true;
        }
        match self.queues.get(leaf).waiting.next().map(|copy| copy.task.job) {
            Some(job) if self.lacks_master(job) => self.give_master(node, job),
            _ => self.give_task(node, leaf, tasks, fx),
        }
    }

    /// Removes, from the heads of the queues, the copies that no longer wait.
    fn skip_done(&mut self, tasks: &mut OpenTasks) {
        for queue in self.queues.iter_mut() {
            while queue.waiting.next().is_some_and(|copy| !tasks.waits(copy)) {
                let _ = queue.waiting.pop();
            }
        }
    }

    fn give_task(&mut self, node: u32, leaf: usize, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let queue = self.queues.get(leaf);
        let Some(copy) = queue.waiting.pop() else { return false };
        queue.used += 1;
        self.hosts.get(node).containers.push(Container { task: SuspendableCopy::new(copy), leaf });
        tasks.launch_by(Launch::Task { copy, at: fx.now() }, copy, fx.layout().node(node), fx);
        true
    }

    /// Whether a job needs a container for its master before it gets others. With a single container in the cluster
    /// jobs have no masters.
    fn lacks_master(&self, job: JobId) -> bool {
        self.options.masters && self.hosts.total() > 1 && !self.hosts.has_master(job)
    }

    /// Whether a job without a master may have one. Masters never fill the cluster: if they would, the newest job gives
    /// up its master.
    fn may_have_master(&self, job: JobId) -> bool {
        self.hosts.masters() + 1 < self.hosts.total()
            || self.hosts.newest_master().is_some_and(|newest| newest > job)
    }

    /// Gives a container to the master of a job that may have a master; the master keeps it until the job ends.
    fn give_master(&mut self, node: u32, job: JobId) -> bool {
        if self.hosts.masters() + 1 >= self.hosts.total()
            && let Some(newest) = self.hosts.newest_master()
        {
            self.hosts.remove_master(newest);
        }
        self.hosts.add_master(node, job);
        true
    }

    /// Takes containers back from queues that are over their share while another one wants them.
    fn monitor(&mut self, options: Reclaiming, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let excess = self.queues.excess(&options, self.hosts.total().saturating_sub(self.hosts.masters()));
        for (leaf, count) in (0..).zip(excess) {
            if count > 0 {
                for (node, copy) in self.hosts.newest(leaf).into_iter().take(count as usize) {
                    self.take_back(node, copy, options.kill, tasks, fx);
                }
            }
        }
    }

    fn take_back(
        &mut self,
        node: u32,
        copy: CopyId,
        kill: bool,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) {
        let to = fx.layout().node(node);
        if kill {
            self.left(copy, to, fx);
            fx.send(to, Launch::Drop(TaskRange::one(copy.task, copy.attempt + 1)));
            if let Some(next) = tasks.take_back(to, copy, false) {
                self.ready(next, tasks, fx);
            }
        } else if let Some(container) = self.hosts.find(node, copy) {
            self.queues.get(container.leaf).used -= 1;
            fx.send(to, container.task.switch());
        }
    }
}

impl DispatchRule for ContainerRule {
    fn submitted(&mut self, first: CopyId, count: u32, tasks: &mut OpenTasks, _: &mut Effects<'_>) {
        self.leaf(first.task.job, tasks).waiting.add(first.task.job, 0..count, first.attempt);
    }

    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, _: &mut Effects<'_>) {
        self.leaf(copy.task.job, tasks).waiting.add_copy(copy);
    }

    /// Arms the next check of the queues while tasks wait.
    fn settle(&mut self, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        if let Some(Reclaiming { every, .. }) = self.options.reclaiming
            && !self.monitoring
            && self.queues.is_waiting()
        {
            self.monitoring = true;
            fx.arm(MONITOR, Span(every.0 - fx.now().0 % every.0));
        }
    }

    fn left(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        if let Some(container) = self.hosts.remove(fx.layout().node_number(node), copy) {
            self.queues.get(container.leaf).used -= u32::from(!container.task.is_suspended());
        }
    }

    fn finished(&mut self, task: TaskId, last: bool, _: &mut Effects<'_>) {
        if last {
            self.hosts.remove_master(task.job);
        }
    }

    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        for container in self.hosts.down(fx.layout().node_number(node)) {
            self.queues.get(container.leaf).used -= u32::from(!container.task.is_suspended());
        }
        while let Some(newest) =
            self.hosts.newest_master().filter(|_| self.hosts.masters() >= self.hosts.total())
        {
            self.hosts.remove_master(newest);
        }
    }

    fn back(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.hosts.up(fx.layout().node_number(node));
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        self.hosts.get(fx.layout().node_number(node)).avoided = !can;
        true
    }

    fn receive(&mut self, from: ActorId, msg: &Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let Message::NodeReport(NodeReport::Room { slots, at }) = *msg else { return false };
        self.heartbeat(fx.layout().node_number(from), slots, at, tasks, fx);
        true
    }

    /// Repeats an undelivered order about a container, unless a newer order was sent since.
    fn returned(&mut self, to: ActorId, msg: Message, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        let Message::Preemption(order) = msg else { return };
        let container = self.hosts.find(fx.layout().node_number(to), order.copy());
        if container.is_some_and(|container| container.task.newest() == order) {
            fx.recover(to, order);
        }
    }

    fn fire(&mut self, _: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if let Some(options) = self.options.reclaiming {
            self.monitoring = false;
            self.monitor(options, tasks, fx);
        }
    }
}

// The leaf queues of the resource manager, with their guaranteed shares.

/// A queue of applications.
#[derive(Clone, Debug)]
struct LeafQueue {
    /// Tasks without a container.
    pub waiting: TaskQueue,
    /// Number of running containers of the queue.
    pub used: u32,
    /// The share of all containers that is guaranteed to the queue.
    pub share: f64,
}

/// One queue, or one for each class of jobs.
#[derive(Clone, Debug)]
struct LeafQueues(Vec<LeafQueue>);

impl LeafQueues {
    fn new(reclaiming: Option<&Reclaiming>) -> Self {
        let shares = reclaiming
            .map_or_else(|| vec![1.0], |options| vec![options.short_share, 1.0 - options.short_share]);
        let leaf = |share| LeafQueue { waiting: TaskQueue::default(), used: 0, share };
        Self(shares.into_iter().map(leaf).collect())
    }

    /// The queue of a class of jobs.
    fn of(&self, class: u8) -> usize {
        usize::from(class).min(self.0.len() - 1)
    }

    fn get(&mut self, leaf: usize) -> &mut LeafQueue {
        &mut self.0[leaf]
    }

    /// All queues.
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut LeafQueue> {
        self.0.iter_mut()
    }

    /// Whether a task waits in any queue.
    fn is_waiting(&self) -> bool {
        self.0.iter().any(|leaf| !leaf.waiting.is_empty())
    }

    /// The queue that is least served for its share, among the queues for which `wants` holds.
    fn least_served(&self, mut wants: impl FnMut(usize, &LeafQueue) -> bool) -> Option<usize> {
        let ratio = |leaf: usize| f64::from(self.0[leaf].used) / self.0[leaf].share;
        (0..self.0.len())
            .filter(|&leaf| wants(leaf, &self.0[leaf]))
            .min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))
    }

    /// Number of containers to be taken from each queue now, with `total` in the cluster. A queue that exceeds its
    /// share by more than the tolerance gives up containers that other queues want within their shares and that are not
    /// free. It gives up the smaller of its surplus and this need, times the damping. All queues together give up at
    /// most a fraction of the cluster.
    ///
    /// No queue is cut below its share. Hadoop rounds up to whole containers. Two queues that share very few containers
    /// would then lose their container to each other in turn, and killed tasks would never end.
    fn excess(&self, options: &Reclaiming, total: u32) -> Vec<u32> {
        let guaranteed = |leaf: &LeafQueue| leaf.share * f64::from(total);
        let used: u32 = self.0.iter().map(|leaf| leaf.used).sum();
        let wanted: f64 = self
            .0
            .iter()
            .map(|leaf| (guaranteed(leaf) - f64::from(leaf.used)).min(leaf.waiting.len() as f64).max(0.0))
            .sum();
        let mut need = (wanted - f64::from(total.saturating_sub(used))).max(0.0);
        let mut most = (options.round * f64::from(total)).floor().max(1.0);
        let excess = |leaf: &LeafQueue| {
            let surplus = f64::from(leaf.used) - guaranteed(leaf);
            if surplus <= options.over * guaranteed(leaf) {
                return 0;
            }
            // A share of 1 − 0.95 of 120 is 6 + 5·10⁻¹⁵ containers, so a surplus can be a little below a whole number.
            let whole = (surplus + 1e-9).floor();
            let taken = (options.damping * surplus.min(need)).ceil().min(whole).min(most);
            (need, most) = ((need - taken).max(0.0), most - taken);
            taken as u32
        };
        self.0.iter().map(excess).collect()
    }
}

// The nodes as the resource manager knows them, with their containers.

/// A container with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Container {
    pub task: SuspendableCopy,
    /// The leaf queue to which the container is charged.
    pub leaf: usize,
}

/// A node and its containers, as far as the resource manager knows.
#[derive(Clone, Debug)]
struct ContainerHost {
    /// The node's containers, in the order in which they were given.
    pub containers: Vec<Container>,
    /// Number of application masters with a container on the node.
    masters: u32,
    cores: u32,
    up: bool,
    /// Time at which the newest of the node's heartbeats was sent.
    reported: Time,
    /// Whether the node is avoided because it could not be reached.
    pub avoided: bool,
}

impl ContainerHost {
    /// Number of containers that fit beside the running ones.
    fn room(&self) -> u32 {
        if !self.up || self.avoided {
            return 0;
        }
        let running = self.containers.iter().filter(|container| !container.task.is_suspended()).count();
        self.cores.saturating_sub(running as u32 + self.masters)
    }

    /// The suspended container of a queue that resumes first: the container of the oldest application.
    fn suspended(&mut self, leaf: usize) -> Option<&mut Container> {
        let mine = |container: &&mut Container| container.leaf == leaf && container.task.is_suspended();
        self.containers.iter_mut().filter(mine).min_by_key(|container| container.task.copy.task)
    }
}

/// The containers of every node, and the node of each application master.
#[derive(Clone, Debug)]
struct ContainerHosts {
    hosts: Vec<ContainerHost>,
    /// The node of the application master of each job that has a master.
    masters: BTreeMap<JobId, u32>,
}

impl ContainerHosts {
    fn new(layout: &Layout) -> Self {
        let host = |node| ContainerHost {
            containers: Vec::new(),
            masters: 0,
            cores: layout.cores(node),
            up: true,
            reported: Time::ZERO,
            avoided: false,
        };
        Self { hosts: (0..layout.nodes()).map(host).collect(), masters: BTreeMap::new() }
    }

    fn get(&mut self, node: u32) -> &mut ContainerHost {
        &mut self.hosts[node as usize]
    }

    /// Number of containers of all nodes that are up.
    fn total(&self) -> u32 {
        self.hosts.iter().filter(|host| host.up).map(|host| host.cores).sum()
    }

    /// Records a heartbeat. Returns whether it is the newest so far; heartbeats can overtake each other.
    fn record_heartbeat(&mut self, node: u32, at: Time) -> bool {
        let reported = &mut self.get(node).reported;
        let newer = at >= *reported;
        *reported = at.max(*reported);
        newer
    }

    /// Marks a node as down; returns its containers.
    fn down(&mut self, node: u32) -> Vec<Container> {
        self.masters.retain(|_, of| *of != node);
        let host = self.get(node);
        (host.up, host.masters) = (false, 0);
        std::mem::take(&mut host.containers)
    }

    /// Marks a node as up, without containers.
    fn up(&mut self, node: u32) {
        let host = self.get(node);
        (host.up, host.avoided) = (true, false);
    }

    /// Gives a container on a node to the application master of a job.
    fn add_master(&mut self, node: u32, job: JobId) {
        self.masters.insert(job, node);
        self.get(node).masters += 1;
    }

    /// Removes the application master of a job, if it has one.
    fn remove_master(&mut self, job: JobId) {
        if let Some(node) = self.masters.remove(&job) {
            self.get(node).masters -= 1;
        }
    }

    /// Whether the application master of a job has a container.
    fn has_master(&self, job: JobId) -> bool {
        self.masters.contains_key(&job)
    }

    /// Number of application masters on all nodes.
    fn masters(&self) -> u32 {
        self.masters.len() as u32
    }

    /// The newest job whose application master has a container.
    fn newest_master(&self) -> Option<JobId> {
        self.masters.last_key_value().map(|(&job, _)| job)
    }

    /// Whether a node has a suspended container of a queue.
    fn has_suspended(&self, node: u32, leaf: usize) -> bool {
        self.hosts[node as usize].containers.iter().any(|c| c.leaf == leaf && c.task.is_suspended())
    }

    /// The container of a copy on a node.
    fn find(&mut self, node: u32, copy: CopyId) -> Option<&mut Container> {
        self.get(node).containers.iter_mut().find(|container| container.task.copy == copy)
    }

    /// Removes the container of a copy from a node.
    fn remove(&mut self, node: u32, copy: CopyId) -> Option<Container> {
        let containers = &mut self.get(node).containers;
        let at = containers.iter().position(|container| container.task.copy == copy)?;
        Some(containers.remove(at))
    }

    /// The running containers of a queue and their nodes. Containers of the newest application are first, and within
    /// an application the task with the highest number.
    fn newest(&self, leaf: usize) -> Vec<(u32, CopyId)> {
        let of = |(node, host): (u32, &ContainerHost)| {
            let mine = host.containers.iter().filter(move |c| c.leaf == leaf && !c.task.is_suspended());
            mine.map(move |container| (node, container.task.copy)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = (0..).zip(&self.hosts).flat_map(of).collect();
        all.sort_unstable_by_key(|&(_, copy)| std::cmp::Reverse(copy));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{JobId, Span};

    const OPTIONS: Reclaiming = Reclaiming {
        short_share: 0.95,
        every: Span::from_secs(3),
        over: 0.1,
        round: 0.1,
        damping: 0.2,
        kill: false,
    };

    fn queues(options: &Reclaiming, used: [u32; 2], waiting: [u32; 2]) -> LeafQueues {
        let mut queues = LeafQueues::new(Some(options));
        for class in [0, 1] {
            let leaf = queues.get(class);
            leaf.used = used[class];
            leaf.waiting.add(JobId(0), 0..waiting[class], 0);
        }
        queues
    }

    /// 114 of 120 containers are for short jobs and 6 for long jobs.
    #[test]
    fn a_queue_over_its_share_gives_up_containers_that_the_other_lacks() {
        let excess = |used, waiting| queues(&OPTIONS, used, waiting).excess(&OPTIONS, 120);
        assert_eq!(
            excess([0, 120], [100, 0]),
            [0, 12],
            "a fifth of the need of 100, but at most a tenth of all"
        );
        assert_eq!(excess([80, 40], [30, 0]), [0, 6], "a fifth of the need of 30");
        assert_eq!(excess([80, 40], [1, 0]), [0, 1]);
        assert_eq!(excess([80, 30], [10, 0]), [0, 0], "ten containers are free");
        assert_eq!(excess([114, 6], [100, 100]), [0, 0]);
        assert_eq!(excess([120, 0], [0, 9]), [0, 0], "the queue is only 5 % over its share");
        let even = Reclaiming { short_share: 0.7, ..OPTIONS };
        assert_eq!(
            queues(&even, [120, 0], [0, 50]).excess(&even, 120),
            [8, 0],
            "a fifth of the surplus of 36 is 7.2"
        );
    }

    /// 0.7 of one container is for short jobs and 0.3 for long jobs. The queue that has the container keeps it.
    #[test]
    fn no_queue_is_cut_below_its_share() {
        let options = Reclaiming { short_share: 0.7, over: 0.0, ..OPTIONS };
        let excess = |used, waiting, total| queues(&options, used, waiting).excess(&options, total);
        assert_eq!(excess([1, 0], [9, 9], 1), [0, 0]);
        assert_eq!(excess([0, 1], [9, 9], 1), [0, 0]);
        assert_eq!(
            queues(&OPTIONS, [110, 7], [9, 0]).excess(&OPTIONS, 117),
            [0, 1],
            "the share is 5.85 of 117"
        );
        assert_eq!(queues(&OPTIONS, [113, 7], [9, 0]).excess(&OPTIONS, 120), [0, 1], "the share is 6 of 120");
        assert_eq!(excess([0, 2], [9, 9], 2), [0, 1], "the share of long jobs is 0.6 of two");
        assert_eq!(excess([2, 0], [9, 9], 2), [0, 0], "the share of short jobs is 1.4 of two");
    }

    #[test]
    fn the_least_served_queue_comes_first() {
        let least = |used| queues(&OPTIONS, used, [1, 1]).least_served(|_, leaf| !leaf.waiting.is_empty());
        assert_eq!([least([0, 0]), least([113, 6]), least([114, 5])], [Some(0), Some(0), Some(1)]);
        assert_eq!(
            queues(&OPTIONS, [0, 50], [0, 1]).least_served(|_, leaf| !leaf.waiting.is_empty()),
            Some(1)
        );
        let mut one = LeafQueues::new(None);
        assert_eq!((one.of(1), one.is_waiting()), (0, false));
        one.get(0).waiting.add(JobId(0), 0..1, 0);
        assert!(one.is_waiting());
    }
}
