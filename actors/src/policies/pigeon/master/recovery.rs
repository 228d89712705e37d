//! Recovery of a master: crashes of workers and schedulers, messages that return, and takeovers. Section 6.1 of the
//! paper has the standby, and the notices and questions of a new master; the details are ours. In the paper a new
//! second master is chosen after a takeover; here none is, and the first master takes the group back when it restarts.
//!
//! Nothing is lost as long as every open task of a scheduler is with a live master or on its way there. A master that
//! loses workers, or takes over a group whose state it does not know, therefore asks the schedulers for open tasks. It
//! queues the tasks that no worker has.

use std::collections::BTreeSet;
use std::mem;

use super::super::task_scheduling::{Assignment, Waiting, is_short};
use super::super::ticks::Tick;
use super::{Master, cores, queued};
use crate::base::{ActorId, is_same_submission};
use crate::layout::{Layout, Role};
use crate::machine::Effects;
use crate::message::{Batch, Group, Mirror};

impl Master {
    /// Takes the group over without knowing the workers. The master notifies workers and schedulers; workers answer
    /// with the copies that they run, schedulers with the open tasks.
    pub(in super::super) fn take_over(&mut self, takeover: u32, term: u32, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let mirrored = mem::take(&mut self.mirrored);
        self.reset(layout);
        (self.mirrored, self.takeover, self.acting) = (mirrored, takeover, true);
        self.takes = Group::Takes { term, at: fx.now().into() };
        self.reported_open = Some(Vec::new());
        for &actor in &self.dead {
            if let Role::Node(node) = layout.role(actor) {
                self.workers.down(cores(node, layout));
            }
        }
        self.tell_all(|node| !self.dead.contains(&node), fx);
        fx.arm(Tick::Settle.timer(takeover), self.groups.config.declare_after);
        if term > 0 {
            fx.arm(Tick::Probe.timer(takeover), self.groups.config.declare_after);
        }
    }

    /// Forgets the group.
    fn reset(&mut self, layout: &Layout) {
        let fresh = Self::new(&self.groups.config, self.seat, layout);
        *self = Self { dead: mem::take(&mut self.dead), takeover: self.takeover, ..fresh };
    }

    /// Announces this master to the nodes for which `nodes` holds, and to all schedulers.
    fn tell_all(&self, nodes: impl Fn(ActorId) -> bool, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let all = self.groups.nodes(self.group, layout).map(|node| layout.node(node));
        all.filter(|&node| nodes(node)).for_each(|node| fx.recover(node, self.takes));
        self.tell_schedulers(true, self.takes, fx);
    }

    /// Announces this master again to all, also to workers that could not be reached. A worker that is the master is
    /// not notified of crashes: it learns of them from undelivered messages, and from the answers of restarted nodes.
    pub(super) fn probe(&self, fx: &mut Effects<'_>) {
        let me = fx.me();
        self.tell_all(|node| node != me, fx);
        fx.arm(Tick::Probe.timer(self.takeover), self.groups.config.declare_after);
    }

    /// Notices that the sender of a message is up. A worker that is the master is not told that a node is back.
    pub(super) fn notice(&mut self, from: ActorId, fx: &mut Effects<'_>) {
        if self.is_declared() && self.dead.contains(&from) && matches!(fx.layout().role(from), Role::Node(_))
        {
            self.announce(from, fx);
        }
    }

    /// Announces this master to a node, which is up, since a message from it has arrived.
    pub(in super::super) fn announce(&mut self, node: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&node);
        fx.recover(node, self.takes);
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
            Group::Mirror(change) => self.mirrored.follow(change),
            Group::Tasks { .. } | Group::Open { .. } | Group::Idle { .. } | Group::Status { .. } => {
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
                self.mirror(false);
                if self.is_standby() {
                    self.take_over(self.takeover + 1, 0, fx);
                }
            }
            Role::Node(node)
                if self.acting && self.groups.lists(self.group, self.groups.group_of_node(node, layout)) =>
            {
                self.workers.down(cores(node, layout));
                if self.workers.all_down() {
                    // The schedulers send open tasks to other groups. They may have been notified of the crash earlier
                    // and have sent more tasks since, so they are asked when a worker is back.
                    self.drop_waiting(|_| true);
                    self.reported_open = None;
                    self.abandoned = true;
                } else {
                    // This also serves tasks while answers are missing: tasks that arrived since and went to that node
                    // are not in the answers.
                    self.serve(fx);
                    self.tell_schedulers(true, Group::Ask, fx);
                    self.settle(false, fx);
                }
            }
            Role::Scheduler(scheduler) => {
                self.drop_waiting(|waiting| waiting.scheduler == scheduler);
                if let Some(open) = &mut self.reported_open {
                    open.retain(|waiting| waiting.scheduler != scheduler);
                }
            }
            _ => {}
        }
    }

    /// Handles the return of an actor.
    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        self.dead.remove(&actor);
        match layout.role(actor) {
            Role::Auxiliary(seat) if self.is_partner(seat) => {
                if self.is_standby() {
                    // The first master asks workers and schedulers for the state known to this standby.
                    self.reset(layout);
                } else {
                    self.mirror(true);
                }
            }
            Role::Node(node)
                if self.acting && self.groups.lists(self.group, self.groups.group_of_node(node, layout)) =>
            {
                // After a takeover a report of the node's earlier life may be on its way: a newer one must follow it.
                let took_over = self.takeover > 0;
                for core in self.workers.up(cores(node, layout), !took_over) {
                    self.freed(core, fx);
                }
                if took_over {
                    fx.recover(actor, self.takes);
                }
                self.settle(false, fx);
            }
            Role::Scheduler(_) if self.is_declared() => fx.recover(actor, self.takes),
            _ => {}
        }
    }

    /// Asks for open tasks if all workers were down and the first one is back.
    pub(super) fn resume(&mut self, fx: &mut Effects<'_>) {
        if self.abandoned && !self.workers.all_down() {
            self.abandoned = false;
            self.tell_schedulers(true, Group::Ask, fx);
        }
    }

    /// Handles a message of this master that could not be delivered.
    pub(super) fn undelivered(&mut self, to: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Run { core, copy, scheduler } => {
                if self.workers.refused(core, (copy, scheduler)) {
                    fx.recover(to, self.takes);
                }
                self.put_back((copy, scheduler), fx);
            }
            Group::Mirror(_) => self.mirror(self.unsent.is_some()),
            Group::Ask | Group::Takes { .. } if !self.dead.contains(&to) => match fx.layout().role(to) {
                Role::Node(_) if self.is_declared() => self.down(to, fx),
                _ => fx.recover(to, msg),
            },
            _ => {}
        }
    }

    /// Queues a copy that did not reach its worker, before others. The worker may have reported since, and then no
    /// longer counts as running the copy. The copy may also have been replaced, or its group given up.
    fn put_back(&mut self, (copy, scheduler): Assignment, fx: &mut Effects<'_>) {
        let gone = self.workers.all_down() || self.dead.contains(&fx.layout().scheduler(scheduler));
        let short = is_short(copy.task.job, fx);
        let waiting = Waiting { short, scheduler, batch: Batch::single(copy) };
        if !gone && !self.known(&waiting).contains(&copy.task.index) {
            self.queues.push_front(waiting);
            self.log(queued(&waiting, true));
        }
        self.serve(fx);
    }

    /// Queues the open tasks that no worker has, once all workers have reported, or at once if `now` is set.
    pub(super) fn settle(&mut self, now: bool, fx: &mut Effects<'_>) {
        let Some(mut open) = self.reported_open.take_if(|_| now || !self.workers.has_unknown()) else {
            return;
        };
        let mirrored = mem::take(&mut self.mirrored);
        open.sort_by_cached_key(|waiting| mirrored.position(waiting.batch.job));
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

    /// The tasks of the same submission as `like` that wait or run in this group. Copies for another scheduler, or for
    /// an earlier submission, do not count: a crashed scheduler gets their results, or they are being stopped.
    fn known(&self, like: &Waiting) -> BTreeSet<u32> {
        let is_same = |batch: Batch, scheduler| {
            (batch.job, scheduler) == (like.batch.job, like.scheduler)
                && is_same_submission(batch.attempt, like.batch.attempt)
        };
        let waiting = self.queues.iter().map(|waiting| (waiting.batch, waiting.scheduler));
        let running = self.workers.running().map(|(copy, scheduler)| (Batch::single(copy), scheduler));
        let same = waiting.chain(running).filter(|&(batch, scheduler)| is_same(batch, scheduler));
        same.flat_map(|(batch, _)| batch.indices()).collect()
    }

    /// Gives waiting tasks to idle workers.
    fn serve(&mut self, fx: &mut Effects<'_>) {
        for short in [true, false] {
            while self.queues.has(short)
                && let Some(core) = self.workers.idle.take(short)
                && let Some(next) = self.queues.pop(short)
            {
                self.run_waiting(core, next, fx);
            }
        }
    }

    // The changes of the queues, for the standby.

    /// Starts or stops recording changes. The first changes are all waiting tasks.
    pub(super) fn mirror(&mut self, standby: bool) {
        let waiting = self.queues.iter().map(|waiting| queued(waiting, false));
        self.unsent = standby.then(|| std::iter::once(Mirror::Reset).chain(waiting).collect());
    }

    /// Records a change of the queues.
    pub(super) fn log(&mut self, change: Mirror) {
        let Some(unsent) = &mut self.unsent else { return };
        match (unsent.last_mut(), change) {
            (Some(Mirror::Served { short, long }), Mirror::Served { short: s, long: l }) => {
                *short += s;
                *long += l;
            }
            _ => unsent.push(change),
        }
    }

    fn drop_waiting(&mut self, drop: impl Fn(&Waiting) -> bool) {
        self.queues.retain(|waiting| !drop(waiting));
        self.mirror(self.unsent.is_some());
    }

    /// Sends the standby the changes.
    pub(super) fn push(&mut self, fx: &mut Effects<'_>) {
        self.pushing = false;
        let Some(standby) = self.groups.standby(self.group, fx.layout()) else { return };
        for change in self.unsent.iter_mut().flat_map(mem::take) {
            fx.send(standby, Group::Mirror(change));
        }
    }
}
