//! Recovery of a master: crashes of workers and schedulers, messages that return, and takeovers. Section 6.1 of the
//! paper has the standby, and the notices and questions of a new master; the details are ours. In the paper a new
//! second master is chosen after a takeover; here none is, and the first master takes the group back when it restarts.
//!
//! No task is lost as long as every open task of a scheduler is with a live master or on its way there. A master that
//! takes a group over, or notices that a worker, a copy or a result may be lost, asks workers and schedulers for
//! their states. It queues the open tasks that no worker has.

use std::collections::BTreeSet;
use std::mem;

use super::super::task_scheduling::is_short;
use super::super::ticks::Tick;
use super::{Master, cores};
use crate::base::{ActorId, is_same_submission};
use crate::layout::Role;
use crate::machine::Effects;
use crate::message::{Batch, Group, Waiting};

impl Master {
    /// Takes the group over.
    pub(in super::super) fn take_over(&mut self, takeover: u32, term: u32, fx: &mut Effects<'_>) {
        (self.takeover, self.acting) = (takeover, true);
        self.takes = Group::Takes { term, at: fx.now().into() };
        self.relearn(self.takes, fx);
        if term > 0 {
            fx.arm(Tick::Probe.timer(takeover), self.groups.config.declare_after);
        }
    }

    /// Forgets the states of the workers and asks for them: workers answer with the copies that they run, schedulers
    /// with the open tasks. Tasks that wait here stay in their queue. `request` goes to the schedulers.
    pub(super) fn relearn(&mut self, request: Group, fx: &mut Effects<'_>) {
        let (layout, after) = (fx.layout(), self.groups.config.declare_after);
        self.workers.forget();
        for &actor in &self.dead {
            if let Role::Node(node) = layout.role(actor) {
                self.workers.down(cores(node, layout));
            }
        }
        (self.reported_open, self.settle_by) = (Some(Vec::new()), fx.now() + after);
        self.announce(|node| !self.dead.contains(&node), fx);
        self.tell_schedulers(true, request, fx);
        fx.arm(Tick::Settle.timer(self.takeover), after);
    }

    /// Announces this master to the nodes for which `nodes` holds.
    fn announce(&self, nodes: impl Fn(ActorId) -> bool, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let all = self.groups.nodes(self.group, layout).map(|node| layout.node(node));
        all.filter(|&node| nodes(node)).for_each(|node| fx.recover(node, self.takes));
    }

    /// Announces this master again to all, also to workers that could not be reached. A worker that is the master is
    /// not notified of crashes. It notices them by undelivered messages and by the answers of restarted nodes.
    pub(super) fn probe(&self, fx: &mut Effects<'_>) {
        let me = fx.me();
        self.announce(|node| node != me, fx);
        self.tell_schedulers(true, self.takes, fx);
        fx.arm(Tick::Probe.timer(self.takeover), self.groups.config.declare_after);
    }

    /// Notices that the sender of a message is up. A worker that is the master is not notified when a node comes
    /// back.
    pub(super) fn notice(&mut self, from: ActorId, fx: &mut Effects<'_>) {
        if self.is_declared() && self.dead.contains(&from) && matches!(fx.layout().role(from), Role::Node(_))
        {
            self.up(from, fx);
        }
    }

    /// Gives idle workers waiting tasks, or lists them again, after the first unreserved worker came up or the last
    /// one went down.
    fn regroup(&mut self, fx: &mut Effects<'_>) {
        self.workers.idle.remove_all().into_iter().for_each(|core| self.freed(core, fx));
    }

    /// Whether this master is a worker that declared itself master.
    pub(super) const fn is_declared(&self) -> bool {
        matches!(self.takes, Group::Takes { term: 1.., .. })
    }

    pub(super) const fn is_standby(&self) -> bool {
        self.seat >= self.groups.count
    }

    /// Whether an actor in this seat is the standby of this master, or the first master of this standby.
    const fn is_partner(&self, seat: u32) -> bool {
        self.groups.group_of_master(seat) == self.group
    }

    /// Handles a message to a standby that does not act.
    pub(super) fn follow(&mut self, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Mirror { job, head } => {
                let order = &mut self.order[usize::from(!is_short(job, fx))];
                order.push_back(job);
                if let Some(served) = order.iter().position(|other| *other == head) {
                    order.drain(..served);
                }
            }
            Group::Tasks(_) | Group::Open(_) | Group::Idle { .. } | Group::Status { .. } => {
                // The first master acts: this message was on its way when the first master came back.
                fx.recover(self.groups.master(self.group, fx.layout()), msg);
            }
            _ => fx.unexpected(&msg.into()),
        }
    }

    /// Handles a reported crash, or an unreachable worker of a master that is not notified of crashes.
    pub(super) fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        self.dead.insert(actor);
        match layout.role(actor) {
            Role::Auxiliary(seat) if self.is_partner(seat) => {
                self.unsent = None;
                if self.is_standby() {
                    self.take_over(self.takeover + 1, 0, fx);
                }
            }
            Role::Node(node)
                if self.acting && self.groups.lists(self.group, self.groups.group_of_node(node, layout)) =>
            {
                let known = self.workers.down(cores(node, layout));
                if self.workers.all_down() {
                    // The schedulers send the tasks of a group without nodes to other groups.
                    self.queues.retain(|_| false);
                }
                if known {
                    self.relearn(Group::Ask, fx);
                }
                self.regroup(fx);
                self.settle(fx);
            }
            Role::Scheduler(scheduler) => {
                self.queues.retain(|waiting| waiting.scheduler != scheduler);
                if let Some(open) = &mut self.reported_open {
                    open.retain(|waiting| waiting.scheduler != scheduler);
                }
            }
            _ => {}
        }
    }

    /// Handles the return of an actor.
    pub(in super::super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        self.dead.remove(&actor);
        match layout.role(actor) {
            Role::Auxiliary(seat) if self.is_partner(seat) => {
                if self.is_standby() {
                    // The first master has returned and asks workers and schedulers for the group's state, so
                    // this standby forgets its copy.
                    let fresh = Self::new(&self.groups.config, self.seat, layout);
                    *self = Self { dead: mem::take(&mut self.dead), takeover: self.takeover, ..fresh };
                } else {
                    self.unsent = Some(self.queues.iter().map(|waiting| waiting.batch.job).collect());
                }
            }
            Role::Node(node)
                if self.acting && self.groups.lists(self.group, self.groups.group_of_node(node, layout)) =>
            {
                let gone = self.workers.all_down();
                self.workers.up(cores(node, layout));
                if gone {
                    self.relearn(Group::Ask, fx);
                } else {
                    self.regroup(fx);
                    fx.recover(actor, self.takes);
                }
            }
            Role::Scheduler(_) if self.is_declared() => fx.recover(actor, self.takes),
            _ => {}
        }
    }

    /// Handles a message of this master that could not be delivered.
    pub(super) fn undelivered(&mut self, to: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            // If the worker's state is unknown, schedulers have been asked since.
            Group::Run { core, .. } if self.workers.is_known(core) => self.relearn(Group::Ask, fx),
            Group::Ask | Group::Takes { .. } if !self.dead.contains(&to) => match fx.layout().role(to) {
                Role::Node(_) if self.is_declared() => self.down(to, fx),
                _ => fx.recover(to, msg),
            },
            _ => {}
        }
    }

    /// Queues the open tasks that no worker has, once all workers have reported or the wait for them is over.
    pub(super) fn settle(&mut self, fx: &mut Effects<'_>) {
        let is_over = fx.now() >= self.settle_by || !self.workers.has_unknown();
        let Some(mut open) = self.reported_open.take_if(|_| is_over) else { return };
        let order = mem::take(&mut self.order);
        let position = |job| order.iter().flatten().position(|other| *other == job).unwrap_or(usize::MAX);
        open.sort_by_cached_key(|waiting| position(waiting.batch.job));
        for waiting in open {
            self.place_unknown(waiting, fx);
        }
    }

    /// Places the tasks that neither wait nor run in this group.
    pub(super) fn place_unknown(&mut self, waiting: Waiting, fx: &mut Effects<'_>) {
        let known = self.known(&waiting);
        let Batch { job, attempt, .. } = waiting.batch;
        let unknown: Vec<_> = waiting.batch.indices().filter(|index| !known.contains(index)).collect();
        if unknown.len() as u32 == waiting.batch.len {
            return self.place(waiting, fx);
        }
        for index in unknown {
            self.place(Waiting { batch: Batch::single(job.task(index).copy(attempt)), ..waiting }, fx);
        }
    }

    /// The tasks of the same submission as `like` that wait or run in this group. Copies of another submission do not
    /// count: their scheduler has crashed, so they are being stopped, or their results are lost.
    fn known(&self, like: &Waiting) -> BTreeSet<u32> {
        let is_same = |batch: Batch, scheduler| {
            (batch.job, scheduler) == (like.batch.job, like.scheduler)
                && is_same_submission(batch.attempt, like.batch.attempt)
        };
        let waiting = self.queues.iter().map(|waiting| (waiting.batch, waiting.scheduler));
        let running = self.workers.running().map(|next| (Batch::single(next.copy), next.scheduler));
        let same = waiting.chain(running).filter(|&(batch, scheduler)| is_same(batch, scheduler));
        same.flat_map(|(batch, _)| batch.indices()).collect()
    }

    /// Sends the standby the jobs whose tasks have begun to wait since the last message.
    pub(super) fn push(&mut self, fx: &mut Effects<'_>) {
        self.pushing = false;
        let Some(standby) = self.groups.standby(self.group, fx.layout()) else { return };
        for job in self.unsent.iter_mut().flat_map(mem::take) {
            let head = self.queues.first(is_short(job, fx)).map_or(job, |first| first.batch.job);
            fx.send(standby, Group::Mirror { job, head });
        }
    }
}
