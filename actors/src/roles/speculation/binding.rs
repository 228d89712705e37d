//! Bindings, which decide the node and the time of each copy: a queue of copies for the free cores of a cluster, or for
//! random nodes. [`Reservations`](super::Reservations) are the third binding.

use std::collections::VecDeque;
use std::fmt::Debug;

use super::rule::Cluster;
use crate::base::{ActorId, CopyId, JobId, TaskId, parameters};
use crate::layout::{Layout, Role};
use crate::machine::Effects;
use crate::message::{Message, Probe};
use crate::roles::membership::Membership;

parameters! {
    /// The nodes to which copies are sent.
    enum CopyBinding {
        /// To free cores, from one queue. The only scheduler holds the queue and knows the free cores.
        #[default]
        Central,
        /// To the first free core of two random nodes for each copy, reserved as in Sparrow's batch sampling.
        Sparrow,
        /// To random nodes, where copies wait.
        Random,
    }
}

/// The reason for sending a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchReason {
    /// The task has no copy.
    First,
    /// The task has a slow copy.
    Backup,
    /// The previous copy was lost.
    Lost,
}

/// A copy that needs a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedCopy {
    /// The copy.
    pub copy: CopyId,
    /// The reason for sending the copy.
    pub reason: LaunchReason,
}

/// The outcome of a request for a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupPlace {
    /// The backup goes to this node.
    Node(ActorId),
    /// A node will claim the backup.
    Reserved,
}

/// A binding of copies to nodes.
pub trait NodeBinding: Clone + Debug + Send + 'static {
    /// Queues the first copies of a job's tasks.
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, fx: &mut Effects<'_>);

    /// Queues a copy of a task that has no other copy. A copy that replaces a lost one becomes the first of the queue,
    /// a copy that replaces a restarted one the second.
    fn again(&mut self, wanted: WantedCopy, fx: &mut Effects<'_>);

    /// The next queued copy whose task is needed, with a node for it, if a node is available now.
    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)>;

    /// A node that suits a backup; `None` if there is none.
    fn back_up(
        &mut self,
        copy: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace>;

    /// The answer to a node that holds a core for a group of a job, and the copy that it carries, if any. For a task,
    /// `needed` returns whether a copy is needed and whether the node suits a backup.
    fn claimed(
        &mut self,
        _node: ActorId,
        claim: CoreClaim,
        _needed: impl FnMut(TaskId) -> (bool, bool),
        _fx: &mut Effects<'_>,
    ) -> (Message, Option<WantedCopy>) {
        (claim.nothing(), None)
    }

    /// Called when a copy of a job left a node.
    fn left(&mut self, _job: JobId) {}

    /// Called when a task of a job is finished.
    fn finished(&mut self, _job: JobId) {}

    /// Called when an unclaimed copy is not wanted any more.
    fn withdrawn(&mut self, _copy: CopyId, _fx: &mut Effects<'_>) {}

    /// Called when a copy left a node because it ended, was stopped, or never arrived.
    fn freed(&mut self, _node: ActorId) {}

    /// Called when a job is finished.
    fn close(&mut self, _job: JobId, _fx: &mut Effects<'_>) {}

    /// Called when a job's requests are due to be repeated.
    fn repeat(&mut self, _job: JobId, _fx: &mut Effects<'_>) {}

    /// Called when an actor crashed, before its copies are taken back.
    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>);

    /// Called when an actor is back.
    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>);

    /// The known state of the cluster for a job, with `sent` copies on nodes.
    fn cluster(&mut self, job: JobId, sent: u32, backups: u32) -> Cluster;
}

/// A core that a node holds for a group of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreClaim {
    /// The job.
    pub job: JobId,
    /// The group.
    pub group: u32,
    /// Whether the scheduler may refuse the core.
    pub refusable: bool,
    /// Whether the claim repairs a loss; its answer is then a repair, too.
    pub repair: bool,
}

impl CoreClaim {
    /// The answer that there is no copy for the core.
    pub(super) fn nothing(&self) -> Message {
        Probe::Nothing { job: self.job, group: self.group }.into()
    }
}

/// Copies in the order in which they get nodes.
#[derive(Clone, Default, Debug)]
struct CopyQueue(VecDeque<WantedCopy>);

impl CopyQueue {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32) {
        let first = |task| WantedCopy { copy: job.task(task).copy(attempt), reason: LaunchReason::First };
        self.0.extend((0..tasks).map(first));
    }

    fn again(&mut self, wanted: WantedCopy) {
        let at = if wanted.reason == LaunchReason::Lost { 0 } else { self.0.len().min(1) };
        self.0.insert(at, wanted);
    }

    fn next(&mut self, mut needed: impl FnMut(TaskId) -> bool) -> Option<WantedCopy> {
        while let Some(wanted) = self.0.pop_front() {
            if needed(wanted.copy.task) {
                return Some(wanted);
            }
        }
        None
    }
}

/// All cores of the cluster. A core is free as soon as its copy is known to have ended or is ordered to stop.
#[derive(Clone, Debug)]
pub struct FreeCores {
    slots: u32,
    queue: CopyQueue,
    /// The node of each free core, longest idle first.
    free: VecDeque<ActorId>,
}

impl FreeCores {
    /// All cores of a layout, free.
    pub fn new(layout: &Layout) -> Self {
        let cores = |node| (0..layout.cores(node)).map(move |_| layout.node(node));
        let free = (0..layout.nodes()).flat_map(cores).collect();
        Self { slots: layout.workers(), queue: CopyQueue::default(), free }
    }
}

impl NodeBinding for FreeCores {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, _: &mut Effects<'_>) {
        self.queue.open(job, tasks, attempt);
    }

    fn again(&mut self, wanted: WantedCopy, _: &mut Effects<'_>) {
        self.queue.again(wanted);
    }

    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        _: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)> {
        if self.free.is_empty() {
            return None;
        }
        let wanted = self.queue.next(needed)?;
        Some((wanted, self.free.pop_front()?))
    }

    /// The suitable node that has been idle longest.
    fn back_up(
        &mut self,
        _: CopyId,
        fits: impl Fn(ActorId) -> bool,
        _: &mut Effects<'_>,
    ) -> Option<BackupPlace> {
        let at = self.free.iter().position(|&node| fits(node))?;
        self.free.remove(at).map(BackupPlace::Node)
    }

    fn freed(&mut self, node: ActorId) {
        self.free.push_back(node);
    }

    fn down(&mut self, actor: ActorId, _: &mut Effects<'_>) {
        self.free.retain(|&node| node != actor);
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        if let Role::Node(node) = fx.layout().role(actor) {
            self.free.retain(|&n| n != actor);
            self.free.extend((0..fx.layout().cores(node)).map(|_| actor));
        }
    }

    fn cluster(&mut self, _: JobId, _: u32, backups: u32) -> Cluster {
        let (free, waiting) = (self.free.len() as u32, self.queue.0.len() as u32);
        Cluster { slots: self.slots, free, busy: self.slots.saturating_sub(free), waiting, backups }
    }
}

/// Number of nodes sampled for a backup; the first that fits gets it.
pub(super) const BACKUP_DRAWS: usize = 8;

/// A scheduler's share of the cores of a layout.
pub(super) fn share(layout: &Layout) -> u32 {
    layout.workers().div_ceil(layout.schedulers())
}

/// Random live nodes. Copies are queued only while no node is alive.
#[derive(Clone, Debug)]
pub struct RandomNodes {
    slots: u32,
    queue: CopyQueue,
    members: Membership,
    sample: Vec<ActorId>,
}

impl RandomNodes {
    /// All nodes of a layout.
    pub fn new(layout: &Layout) -> Self {
        let (queue, members) = (CopyQueue::default(), Membership::new(layout));
        Self { slots: share(layout), queue, members, sample: Vec::new() }
    }
}

impl NodeBinding for RandomNodes {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, _: &mut Effects<'_>) {
        self.queue.open(job, tasks, attempt);
    }

    fn again(&mut self, wanted: WantedCopy, _: &mut Effects<'_>) {
        self.queue.again(wanted);
    }

    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)> {
        if self.members.is_empty() {
            return None;
        }
        let wanted = self.queue.next(needed)?;
        Some((wanted, self.members.pick(fx.rng())?))
    }

    fn back_up(
        &mut self,
        _: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace> {
        self.members.sample(fx.rng(), BACKUP_DRAWS, &mut self.sample);
        self.sample.iter().copied().find(|&node| fits(node)).map(BackupPlace::Node)
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.down(actor, fx.layout());
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.up(actor, fx.layout());
    }

    fn cluster(&mut self, _: JobId, sent: u32, backups: u32) -> Cluster {
        let busy = sent + self.queue.0.len() as u32;
        Cluster { slots: self.slots, free: self.slots, busy, waiting: 0, backups }
    }
}
