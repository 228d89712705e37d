//! Scheduler that owns what every scheduler owes its jobs, around a policy's rule.
//!
//! The dispatcher owns the open jobs, the number of each copy, and who has which task. It reacts to crashes, to
//! messages that return, to duplicates, and to evictions. A rule decides which ready task goes to which node, and when.

use std::fmt::Debug;

use super::job_table::{JobTable, OpenJob};
use super::membership::Membership;
use super::{RETRY_AFTER, back_off, resend};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::catalog::JobSpec;
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Contention, Job, Launch, Message, Row};

/// A policy's choice of the node and the moment of each launch.
pub trait DispatchRule: Clone + Debug + Send + 'static {
    /// A task needs a node: its job arrived, or the node that had it is gone. The rule [launches](OpenTasks::launch) it
    /// now or later.
    fn ready(&mut self, task: TaskId, tasks: &mut OpenTasks, fx: &mut Effects<'_>);

    /// A job arrived, with this number of tasks.
    fn submitted(&mut self, job: JobId, count: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        (0..count).for_each(|index| self.ready(job.task(index), tasks, fx));
    }

    /// Called after every input, when all tasks that it made ready are known.
    fn settle(&mut self, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A copy left a node: it ended or was evicted there, or never reached it.
    fn left(&mut self, _copy: CopyId, _node: ActorId, _fx: &mut Effects<'_>) {}

    /// A node crashed; its tasks are ready after this call.
    fn crashed(&mut self, _node: ActorId, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A node is back.
    fn back(&mut self, _node: ActorId, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A node cannot be reached, or may be tried again after a while; returns whether the rule reacts to it.
    fn reach(&mut self, _node: ActorId, _can: bool, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// A message other than those of jobs and launches; returns whether the rule knows it.
    fn receive(
        &mut self,
        _from: ActorId,
        _msg: &Message,
        _tasks: &mut OpenTasks,
        _fx: &mut Effects<'_>,
    ) -> bool {
        false
    }

    /// A timer of the rule went off: a tick below [`REACH`], or a check of a job.
    fn fire(&mut self, _timer: Timer, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}
}

/// The first tick of the dispatcher. The tick of a node ends the time in which it is avoided.
pub const REACH: u32 = 1 << 31;

/// The state of a task.
#[derive(Clone, Copy, Default, Debug)]
struct TaskState {
    /// The node that has it, and the attempt that went there.
    place: Option<(ActorId, u32)>,
    launched: bool,
    /// Whether its next launch repairs a loss.
    lost: bool,
}

#[derive(Clone, Debug)]
struct DispatchedJob {
    open: OpenJob,
    tasks: Vec<TaskState>,
    /// Number of evictions of each task; empty before the first one.
    evictions: Vec<u8>,
}

impl DispatchedJob {
    /// The wait of a task after one more eviction; it doubles each time, since tasks that find no memory anywhere would
    /// otherwise be launched at once again and again. The longest wait is that of Kubernetes for a container that keeps
    /// failing.
    fn wait_after_eviction(&mut self, index: u32) -> Span {
        if self.evictions.is_empty() {
            self.evictions.resize(self.tasks.len(), 0);
        }
        let times = &mut self.evictions[index as usize];
        *times = times.saturating_add(1);
        back_off(RETRY_AFTER, u32::from(*times) - 1)
    }

    /// Whether a task is neither finished nor at a node.
    fn needs_node(&self, index: u32) -> bool {
        self.tasks[index as usize].place.is_none() && !self.open.is_done(index)
    }
}

/// The tasks of the open jobs, and the nodes that are up.
#[derive(Clone, Debug)]
pub struct OpenTasks {
    members: Membership,
    jobs: JobTable<DispatchedJob>,
}

impl OpenTasks {
    /// The nodes that are up.
    pub const fn members(&mut self) -> &mut Membership {
        &mut self.members
    }

    /// The description of an open job.
    pub fn spec(&mut self, job: JobId) -> Option<JobSpec> {
        self.jobs.get_mut(job).map(|dispatched| dispatched.open.spec)
    }

    /// Whether a task is neither finished nor at a node.
    pub fn needs_node(&mut self, task: TaskId) -> bool {
        self.jobs.get_mut(task.job).is_some_and(|dispatched| dispatched.needs_node(task.index))
    }

    /// Whether the node that had a task lost it, so that its next launch is a repair.
    pub fn is_lost(&mut self, task: TaskId) -> bool {
        self.jobs.get_mut(task.job).is_some_and(|dispatched| dispatched.tasks[task.index as usize].lost)
    }

    /// The tasks that are neither finished nor at a node, of all open jobs or of one.
    pub fn without_node(&mut self, only: Option<JobId>) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for (job, dispatched) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|only| only == *job))
        {
            let indices = 0..dispatched.open.spec.tasks;
            tasks.extend(indices.filter(|index| dispatched.needs_node(*index)).map(|index| job.task(index)));
        }
        tasks
    }

    /// The copy of a task that is launched next. No two launches of a task share an attempt number.
    ///
    /// # Panics
    /// If the job is not open.
    pub fn next_copy(&mut self, task: TaskId) -> CopyId {
        let dispatched = self.jobs.get_mut(task.job).expect("the job of a ready task is open");
        let launched = std::mem::replace(&mut dispatched.tasks[task.index as usize].launched, true);
        let open = &mut dispatched.open;
        task.copy(if launched { open.attempts(1) } else { open.first_attempt() })
    }

    /// Launches a [copy](Self::next_copy) on a node.
    pub fn launch(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        self.launch_by(Launch::Row(Row::single(copy)), copy, node, fx);
    }

    /// Launches a copy by a message of another form.
    pub fn launch_by(&mut self, launch: Launch, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        let Some(dispatched) = self.jobs.get_mut(copy.task.job) else { return };
        let state = &mut dispatched.tasks[copy.task.index as usize];
        state.place = Some((node, copy.attempt));
        fx.send_as(std::mem::take(&mut state.lost), node, launch);
    }

    /// Takes a copy back that its node no longer has; returns whether the node had it.
    fn take_back(&mut self, node: ActorId, copy: CopyId, lost: bool) -> bool {
        let Some(dispatched) = self.jobs.get_mut(copy.task.job) else { return false };
        let state = &mut dispatched.tasks[copy.task.index as usize];
        let had = state.place.take_if(|place| *place == (node, copy.attempt)).is_some();
        state.lost |= had && lost;
        had
    }

    /// Takes back all copies of a node.
    fn take_all(&mut self, node: ActorId) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for (job, dispatched) in self.jobs.iter_mut() {
            for (index, state) in (0..).zip(&mut dispatched.tasks) {
                if state.place.is_some_and(|(at, _)| at == node) && !dispatched.open.is_done(index) {
                    (state.place, state.lost) = (None, true);
                    tasks.push(job.task(index));
                }
            }
        }
        tasks
    }
}

/// A scheduler that follows a rule.
#[derive(Clone, Debug)]
pub struct Dispatcher<R> {
    rule: R,
    tasks: OpenTasks,
}

impl<R: DispatchRule> Dispatcher<R> {
    /// A scheduler with this rule.
    pub fn with(rule: R, layout: &Layout) -> Self {
        Self { rule, tasks: OpenTasks { members: Membership::new(layout), jobs: JobTable::default() } }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.tasks.jobs.admit(job, round, fx.catalog()) else { return };
        open.attempts(1);
        let count = open.spec.tasks;
        let tasks = vec![TaskState::default(); count as usize];
        self.tasks.jobs.open(job, DispatchedJob { open, tasks, evictions: Vec::new() });
        self.rule.submitted(job, count, &mut self.tasks, fx);
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => {
                self.rule.left(copy, from, fx);
                self.tasks.jobs.complete(copy.task, |dispatched| &mut dispatched.open, fx);
            }
            Message::Contention(Contention::Evicted { copy, .. }) => self.evicted(from, copy, fx),
            // Nodes are chosen without regard to use.
            Message::Usage(_) | Message::Contention(Contention::Throttled { .. }) => {}
            _ => {
                if !self.rule.receive(from, msg, &mut self.tasks, fx) {
                    fx.unexpected(msg);
                }
            }
        }
    }

    /// Makes an evicted task ready after a while, in which memory of its node may have been freed.
    fn evicted(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let CopyId { task: TaskId { job, index }, .. } = copy;
        if self.tasks.jobs.get_mut(job).is_some_and(|dispatched| dispatched.open.is_done(index)) {
            return;
        }
        if self.tasks.take_back(node, copy, false)
            && let Some(dispatched) = self.tasks.jobs.get_mut(job)
        {
            self.rule.left(copy, node, fx);
            fx.arm(Timer::Task(copy.task), dispatched.wait_after_eviction(index));
        }
    }

    /// Makes the task of an undeliverable launch ready, and avoids its node for a while.
    fn refused(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        if !self.tasks.take_back(node, copy, true) {
            // The node crashed, and the task was made ready when that was reported.
            return;
        }
        self.rule.left(copy, node, fx);
        if self.rule.reach(node, false, fx)
            && let Role::Node(number) = fx.layout().role(node)
        {
            fx.arm(Timer::Tick(REACH + number), RETRY_AFTER);
        }
        if self.tasks.needs_node(copy.task) {
            self.rule.ready(copy.task, &mut self.tasks, fx);
        }
    }

    fn fire(&mut self, timer: Timer, fx: &mut Effects<'_>) {
        match timer {
            Timer::Tick(tick @ REACH..) => {
                let node = fx.layout().node(tick - REACH);
                if self.tasks.members.has(node, fx.layout()) {
                    self.rule.reach(node, true, fx);
                }
            }
            Timer::Task(task) => {
                if self.tasks.needs_node(task) {
                    self.rule.ready(task, &mut self.tasks, fx);
                }
            }
            _ => self.rule.fire(timer, &mut self.tasks, fx),
        }
    }
}

impl<R: DispatchRule> Machine for Dispatcher<R> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Undelivered { to, msg: Message::Launch(Launch::Task { copy, .. }) } => {
                self.refused(to, copy, fx);
            }
            Input::Undelivered { to, msg } => {
                if let Some(row) = resend(to, msg, fx) {
                    self.refused(to, row.copy(0), fx);
                }
            }
            Input::Down { actor } => {
                self.tasks.members.down(actor, fx.layout());
                if let Role::Node(_) = fx.layout().role(actor) {
                    let lost = self.tasks.take_all(actor);
                    self.rule.crashed(actor, &mut self.tasks, fx);
                    for task in lost {
                        self.rule.ready(task, &mut self.tasks, fx);
                    }
                }
            }
            Input::Up { actor } => {
                self.tasks.members.up(actor, fx.layout());
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.rule.back(actor, &mut self.tasks, fx);
                }
            }
            Input::Fire(timer) => self.fire(timer, fx),
            // A start needs no action; the other inputs are a worker's.
            _ => return,
        }
        self.rule.settle(&mut self.tasks, fx);
    }
}
