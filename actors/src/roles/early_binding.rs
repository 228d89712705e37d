//! Early binding: each task goes to a node as soon as its job arrives.

use std::fmt::Debug;

use super::job_table::{JobTable, OpenJob};
use super::membership::Membership;
use super::{RETRY_AFTER, back_off, resend};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::{Layout, Role};
use crate::machine::{CacheNote, Effects, Input, Machine, ServiceOrder, Timer};
use crate::message::{Contention, Job, Launch, Message, Row};

/// A policy's choice of nodes. A policy without knowledge of nodes implements `place` only.
pub trait PlacementRule: Clone + Debug + Send + 'static {
    /// The node of the next task; `None` if no node is alive.
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId>;

    /// The work expected ahead of the task that was placed last, ns, and the order in which nodes serve; `None` if it
    /// was not placed by a cache of waits.
    fn expected(&self) -> Option<(i64, ServiceOrder)> {
        None
    }

    /// Called after the task was sent to the node that was chosen for it.
    fn sent(&mut self, _task: TaskId, _node: ActorId, _fx: &mut Effects<'_>) {}

    /// Called when a task left a node: it ended there, or never reached it.
    fn left(&mut self, _task: TaskId, _node: ActorId, _fx: &mut Effects<'_>) {}

    /// Called when a node crashed, with its tasks, or is back.
    fn crashed(&mut self, _node: ActorId, _back: bool, _fx: &mut Effects<'_>) {}

    /// Called when a node cannot be reached, or may be tried again; returns whether the rule reacts to it.
    fn reach(&mut self, _node: ActorId, _can: bool, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// Called with messages other than jobs and results; returns whether the rule knows it.
    fn receive(&mut self, _from: ActorId, _msg: &Message, _fx: &mut Effects<'_>) -> bool {
        false
    }
}

/// Node of a task, and the attempt that went there; `None` while no node is alive.
type Place = Option<(ActorId, u32)>;

#[derive(Clone, Debug)]
struct EarlyJob {
    open: OpenJob,
    nodes: Vec<Place>,
    /// Number of evictions of each task; empty before the first one.
    evictions: Vec<u8>,
}

impl EarlyJob {
    /// The wait of a task after one more eviction; it doubles each time, since tasks that find no memory anywhere would
    /// otherwise be launched at once again and again. The longest wait is that of Kubernetes for a container that keeps
    /// failing.
    fn wait_after_eviction(&mut self, index: u32) -> Span {
        if self.evictions.is_empty() {
            self.evictions.resize(self.nodes.len(), 0);
        }
        let times = &mut self.evictions[index as usize];
        *times = times.saturating_add(1);
        back_off(RETRY_AFTER, u32::from(*times) - 1)
    }
}

/// A scheduler that binds early.
#[derive(Clone, Debug)]
pub struct EarlyBinding<P> {
    place: P,
    members: Membership,
    jobs: JobTable<EarlyJob>,
}

impl<P: PlacementRule> EarlyBinding<P> {
    /// A scheduler that places with `place`.
    pub fn new(place: P, layout: &Layout) -> Self {
        Self { place, members: Membership::new(layout), jobs: JobTable::default() }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let attempt = open.attempts(1);
        let mut nodes = Vec::with_capacity(open.spec.tasks as usize);
        for task in 0..open.spec.tasks {
            let node = self.place.place(job.task(task), &self.members, fx);
            if let Some(node) = node {
                let copy = job.task(task).copy(attempt);
                note_placement(&self.place, copy, node, fx);
                fx.send(node, Launch::Row(Row::single(copy)));
                self.place.sent(job.task(task), node, fx);
            }
            nodes.push(node.map(|node| (node, attempt)));
        }
        self.jobs.open(job, EarlyJob { open, nodes, evictions: Vec::new() });
    }

    /// Launches every open task again that is `lost`.
    fn relaunch(&mut self, only: Option<JobId>, lost: impl Fn(u32, Place) -> bool, fx: &mut Effects<'_>) {
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            for task in 0..placed.open.spec.tasks {
                if !placed.open.is_done(task) && lost(task, placed.nodes[task as usize]) {
                    launch_again(&mut self.place, &self.members, placed, job.task(task), true, fx);
                }
            }
        }
    }

    /// Launches an evicted task again, unless it was launched meanwhile.
    fn retry(&mut self, task: TaskId, fx: &mut Effects<'_>) {
        if let Some(placed) = self.jobs.get_mut(task.job)
            && placed.nodes[task.index as usize].is_none()
            && !placed.open.is_done(task.index)
        {
            launch_again(&mut self.place, &self.members, placed, task, false, fx);
        }
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => {
                self.place.left(copy.task, from, fx);
                self.jobs.complete(copy.task, |placed| &mut placed.open, fx);
            }
            Message::Contention(Contention::Evicted { copy, .. }) => self.evicted(from, copy, fx),
            // Nodes are chosen without regard to use.
            Message::Usage(_) | Message::Contention(Contention::Throttled { .. }) => {}
            _ => {
                if !self.place.receive(from, msg, fx) {
                    fx.unexpected(msg);
                }
            }
        }
    }

    /// Launches an evicted task again after a while, in which memory of its node may have been freed.
    fn evicted(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let CopyId { task: TaskId { job, index }, attempt } = copy;
        if let Some(placed) = self.jobs.get_mut(job)
            && placed.nodes[index as usize] == Some((node, attempt))
            && !placed.open.is_done(index)
        {
            placed.nodes[index as usize] = None;
            self.place.left(copy.task, node, fx);
            fx.arm(Timer::Task(copy.task), placed.wait_after_eviction(index));
        }
    }

    /// Launches an undeliverable row on another node, and avoids its node for a while.
    fn refused(&mut self, node: ActorId, row: Row, fx: &mut Effects<'_>) {
        let (task, gone) = (row.copy(0).task, Some((node, row.attempt)));
        let open = self.jobs.get_mut(row.job);
        if open.is_none_or(|placed| placed.nodes[task.index as usize] != gone) {
            // The node crashed, and the task was launched elsewhere when that was reported.
            return;
        }
        self.place.left(task, node, fx);
        if self.place.reach(node, false, fx)
            && let Role::Node(number) = fx.layout().role(node)
        {
            fx.arm(Timer::Tick(number), RETRY_AFTER);
        }
        self.relaunch(Some(row.job), |index, at| index == task.index && at == gone, fx);
    }
}

/// Launches a task again; `repairs` says whether that repairs a loss. It waits if no node is alive.
fn launch_again<P: PlacementRule>(
    rule: &mut P,
    members: &Membership,
    placed: &mut EarlyJob,
    task: TaskId,
    repairs: bool,
    fx: &mut Effects<'_>,
) {
    let node = rule.place(task, members, fx);
    placed.nodes[task.index as usize] = node.map(|node| {
        let copy = task.copy(placed.open.attempts(1));
        note_placement(rule, copy, node, fx);
        fx.send_as(repairs, node, Launch::Row(Row::single(copy)));
        rule.sent(task, node, fx);
        (node, copy.attempt)
    });
}

/// Notes a decision by a cache.
fn note_placement(rule: &impl PlacementRule, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
    if let Some((believed, order)) = rule.expected() {
        fx.note(CacheNote::Placed { copy, node: fx.layout().node_number(node), believed, order });
    }
}

impl<P: PlacementRule> Machine for EarlyBinding<P> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Undelivered { to, msg } => {
                if let Some(row) = resend(to, msg, fx) {
                    self.refused(to, row, fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.place.crashed(actor, false, fx);
                }
                self.relaunch(None, |_, at| at.is_some_and(|(node, _)| node == actor), fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.place.crashed(actor, true, fx);
                }
                self.relaunch(None, |_, at| at.is_none(), fx);
            }
            Input::Fire(Timer::Tick(number)) => {
                let node = fx.layout().node(number);
                if self.members.has(node, fx.layout()) {
                    self.place.reach(node, true, fx);
                }
            }
            Input::Fire(Timer::Task(task)) => self.retry(task, fx),
            // A start needs no action; arrivals are a client's, and the other inputs a worker's.
            _ => {}
        }
    }
}
