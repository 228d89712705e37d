//! The resource manager: on a node's heartbeat it gives the node's room to the oldest applications.
//!
//! It counts what it gave each node, and of the room that a node reports it gives no more than that count leaves: a
//! heartbeat does not know of containers under way.

use super::hosts::{Container, ContainerHosts};
use super::options::{Reclaiming, YarnOptions};
use super::queues::{LeafQueue, LeafQueues};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, NodeReport, Preemption, TaskRange};
use crate::roles::job_table::{Completion, JobTable, OpenJob};
use crate::roles::{RETRY_AFTER, resend};

/// The tick at which the queues are looked at.
const MONITOR: u32 = 0;
/// From here on, ticks name nodes that may be tried again.
const NODES: u32 = 1;

/// The one scheduler of a run.
pub struct ResourceManager {
    options: YarnOptions,
    jobs: JobTable<OpenJob>,
    queues: LeafQueues,
    hosts: ContainerHosts,
    /// Whether the next look at the queues is armed.
    monitoring: bool,
}

impl ResourceManager {
    /// A manager of all nodes of a layout.
    pub fn new(options: YarnOptions, layout: &Layout) -> Self {
        Self {
            options,
            jobs: JobTable::default(),
            queues: LeafQueues::new(options.reclaiming.as_ref()),
            hosts: ContainerHosts::new(layout),
            monitoring: false,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (attempt, leaf) = (open.attempts(1), self.queues.of(open.spec.class));
        self.queues.get(leaf).waiting.add(job, 0..open.spec.tasks, attempt);
        self.jobs.open(job, open);
    }

    /// Gives containers on a node that has reported room.
    fn heartbeat(&mut self, node: u32, slots: u32, at: Time, fx: &mut Effects<'_>) {
        if !self.hosts.hear(node, at) {
            return;
        }
        let mut room = slots.min(self.hosts.get(node).room());
        while room > 0 && self.give(node, fx) {
            room -= 1;
        }
    }

    /// Gives one container on a node to the queue that is least served for its share: a suspended container of it goes
    /// on before a new one is given. Returns whether there was any.
    fn give(&mut self, node: u32, fx: &mut Effects<'_>) -> bool {
        self.skip_done();
        let wants = |leaf, queue: &LeafQueue| {
            let next = queue.waiting.next().map(|copy| copy.task.job);
            next.is_some_and(|job| !self.lacks_master(job) || self.may_have_master(job))
                || self.hosts.has_suspended(node, leaf)
        };
        let Some(leaf) = self.queues.least_served(wants) else { return false };
        if let Some(container) = self.hosts.get(node).suspended(leaf) {
            container.turn += 1;
            let Container { copy, turn, .. } = *container;
            self.queues.get(leaf).used += 1;
            fx.send(fx.layout().node(node), Preemption::Resume { copy, turn });
            return true;
        }
        match self.queues.get(leaf).waiting.next().map(|copy| copy.task.job) {
            Some(job) if self.lacks_master(job) => self.give_master(node, job),
            _ => self.give_task(node, leaf, fx),
        }
    }

    /// Removes tasks from the heads of the queues that have a finished copy.
    fn skip_done(&mut self) {
        for queue in self.queues.iter_mut() {
            while let Some(TaskId { job, index }) = queue.waiting.next().map(|copy| copy.task)
                && self.jobs.get_mut(job).is_none_or(|open| open.is_done(index))
            {
                let _ = queue.waiting.pop();
            }
        }
    }

    fn give_task(&mut self, node: u32, leaf: usize, fx: &mut Effects<'_>) -> bool {
        let queue = self.queues.get(leaf);
        let Some(copy) = queue.waiting.pop() else { return false };
        queue.used += 1;
        self.hosts.get(node).containers.push(Container { copy, leaf, turn: 0 });
        // Where containers are killed, most of what is launched again was not lost: it counts as the policy's own.
        let kills = self.options.reclaiming.is_some_and(|options| options.kill);
        let repeated = self.jobs.get_mut(copy.task.job).is_some_and(|open| open.is_repeated(copy.attempt));
        fx.send_as(repeated && !kills, fx.layout().node(node), Launch::Task { copy, at: fx.now() });
        true
    }

    /// Whether a job needs a container for its master before it gets others. With a single container in the cluster
    /// jobs do without.
    fn lacks_master(&self, job: JobId) -> bool {
        self.options.masters && self.hosts.total() > 1 && !self.hosts.has_master(job)
    }

    /// Whether a job without a master may have one. Masters never fill the cluster: where they would, the newest job
    /// gives up its own.
    fn may_have_master(&self, job: JobId) -> bool {
        self.hosts.masters() + 1 < self.hosts.total()
            || self.hosts.newest_master().is_some_and(|newest| newest > job)
    }

    /// Gives a container to the master of a job that may have one, which keeps it until the job ends.
    fn give_master(&mut self, node: u32, job: JobId) -> bool {
        if self.hosts.masters() + 1 >= self.hosts.total()
            && let Some(newest) = self.hosts.newest_master()
        {
            self.hosts.remove_master(newest);
        }
        self.hosts.add_master(node, job);
        true
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        self.release(fx.layout().node_number(from), copy);
        if self.jobs.complete(copy.task, |open| open, fx) == Completion::Job {
            self.hosts.remove_master(copy.task.job);
        }
    }

    /// Removes a container; returns whether it was there.
    fn release(&mut self, node: u32, copy: CopyId) -> bool {
        let Some(container) = self.hosts.remove(node, copy) else { return false };
        self.queues.get(container.leaf).used -= u32::from(!container.is_suspended());
        true
    }

    /// Queues a lost task again.
    fn again(&mut self, task: TaskId) {
        if let Some(open) = self.jobs.get_mut(task.job)
            && !open.is_done(task.index)
        {
            let (copy, leaf) = (task.copy(open.attempts(1)), self.queues.of(open.spec.class));
            self.queues.get(leaf).waiting.add_copy(copy);
        }
    }

    fn refused(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        // Otherwise the node was reported down meanwhile, and its tasks are queued again already.
        if self.release(number, copy) {
            self.hosts.get(number).avoided = true;
            fx.arm(Timer::Tick(NODES + number), RETRY_AFTER);
            self.again(copy.task);
        }
    }

    /// Sends an order about a container again that could not be delivered, unless a newer one was sent since.
    fn repeat(&mut self, to: ActorId, order: Preemption, fx: &mut Effects<'_>) {
        let (Preemption::Suspend { copy, turn } | Preemption::Resume { copy, turn }) = order;
        let node = fx.layout().node_number(to);
        if self.hosts.find(node, copy).is_some_and(|container| container.turn == turn) {
            fx.recover(to, order);
        }
    }

    /// Takes containers back from queues that are over their share while another one wants them.
    fn monitor(&mut self, options: Reclaiming, fx: &mut Effects<'_>) {
        let excess = self.queues.excess(&options, self.hosts.total().saturating_sub(self.hosts.masters()));
        for (leaf, count) in (0..).zip(excess) {
            if count > 0 {
                for (node, copy) in self.hosts.newest(leaf).into_iter().take(count as usize) {
                    self.take_back(node, copy, options.kill, fx);
                }
            }
        }
    }

    fn take_back(&mut self, node: u32, copy: CopyId, kill: bool, fx: &mut Effects<'_>) {
        let to = fx.layout().node(node);
        if kill {
            self.release(node, copy);
            fx.send(to, Launch::Drop(TaskRange::one(copy.task, copy.attempt + 1)));
            self.again(copy.task);
        } else if let Some(container) = self.hosts.find(node, copy) {
            container.turn += 1;
            let Container { leaf, turn, .. } = *container;
            self.queues.get(leaf).used -= 1;
            fx.send(to, Preemption::Suspend { copy, turn });
        }
    }

    /// While tasks wait, queues are looked at in every period.
    fn arm(&mut self, fx: &mut Effects<'_>) {
        if let Some(Reclaiming { every, .. }) = self.options.reclaiming
            && !self.monitoring
            && self.queues.is_waiting()
        {
            self.monitoring = true;
            fx.arm(Timer::Tick(MONITOR), Span(every.0 - fx.now().0 % every.0));
        }
    }

    fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match self.options.reclaiming {
            Some(options) if tick == MONITOR => {
                self.monitoring = false;
                self.monitor(options, fx);
            }
            _ => self.hosts.get(tick - NODES).avoided = false,
        }
    }

    /// A node is lost with its containers.
    fn down(&mut self, node: u32) {
        for container in self.hosts.down(node) {
            self.queues.get(container.leaf).used -= u32::from(!container.is_suspended());
            self.again(container.copy.task);
        }
        while let Some(newest) =
            self.hosts.newest_master().filter(|_| self.hosts.masters() >= self.hosts.total())
        {
            self.hosts.remove_master(newest);
        }
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
            Message::NodeReport(NodeReport::Room { slots, at }) => {
                self.heartbeat(fx.layout().node_number(from), slots, at, fx);
            }
            _ => fx.unexpected(msg),
        }
    }
}

impl Machine for ResourceManager {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Undelivered { to, msg } => match msg {
                Message::Launch(Launch::Task { copy, .. }) => self.refused(to, copy, fx),
                Message::Preemption(order) => self.repeat(to, order, fx),
                _ => {
                    let _ = resend(to, msg, fx);
                }
            },
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.down(node);
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.hosts.up(node);
                }
            }
            Input::Fire(Timer::Tick(tick)) => self.fire(tick, fx),
            // A start needs no action; only ticks are armed; the other inputs are a worker's.
            _ => {}
        }
        self.arm(fx);
    }
}
