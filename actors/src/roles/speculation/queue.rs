//! A queue of copies, for the free cores of a cluster or for random nodes.

use std::collections::VecDeque;

use super::binding::{BackupPlace, LaunchReason, NodeBinding, WantedCopy};
use super::rule::Cluster;
use crate::base::{ActorId, CopyId, JobId, TaskId};
use crate::layout::{Layout, Role};
use crate::machine::Effects;
use crate::roles::membership::Membership;

/// Copies in the order in which they get nodes.
#[derive(Default)]
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

/// All cores of the cluster. One counts as free as soon as its copy is known to have ended or is ordered to stop.
pub struct FreeCores {
    slots: u32,
    queue: CopyQueue,
    /// A node once for each free core, longest idle first.
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

    fn cluster(&self, _: u32, backups: u32) -> Cluster {
        let (free, waiting) = (self.free.len() as u32, self.queue.0.len() as u32);
        Cluster { slots: self.slots, free, busy: self.slots.saturating_sub(free), waiting, backups }
    }
}

/// Nodes drawn for a backup, of which the first that fits gets it.
pub(super) const BACKUP_DRAWS: usize = 8;

/// A scheduler's share of the cores of a layout.
pub(super) fn share(layout: &Layout) -> u32 {
    layout.workers().div_ceil(layout.schedulers())
}

/// Random live nodes. Copies are queued only while there is none.
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
        self.sample.clear();
        self.members.sample(fx.rng(), BACKUP_DRAWS, &mut self.sample);
        self.sample.iter().copied().find(|&node| fits(node)).map(BackupPlace::Node)
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.down(actor, fx.layout());
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.up(actor, fx.layout());
    }

    fn cluster(&self, sent: u32, backups: u32) -> Cluster {
        let busy = sent + self.queue.0.len() as u32;
        Cluster { slots: self.slots, free: self.slots, busy, waiting: 0, backups }
    }
}
