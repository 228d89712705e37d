//! The part of a scheduler that policies share: open jobs, attempts, crashes. A rule chooses the nodes.
//!
//! The dispatcher tracks the open jobs, the attempt numbers, and the node of each task. It handles crashes,
//! undeliverable messages, duplicates and evictions. A rule decides which ready task goes to which node, and when.

use std::fmt::Debug;

use super::job_table::{Completion, JobTable, OpenJob};
use super::membership::Membership;
use super::{RETRY_AFTER, back_off, resend};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::catalog::JobSpec;
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Contention, Job, Launch, Message, Row, TaskRange};

/// A policy's choice of the node and the moment of each launch.
pub trait DispatchRule: Clone + Debug + Send + 'static {
    /// Called when this scheduler starts, for the first time (epoch 0) or after a crash.
    fn started(&mut self, _epoch: u32, _fx: &mut Effects<'_>) {}

    /// A job of `count` tasks arrived; `first` is the copy of its first task, and the others have its attempt number.
    fn submitted(&mut self, first: CopyId, count: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let CopyId { task: TaskId { job, .. }, attempt } = first;
        (0..count).for_each(|index| self.ready(job.task(index).copy(attempt), tasks, fx));
    }

    /// A task needs a node, because its job arrived or the task lost its node. The rule [launches](OpenTasks::launch)
    /// this copy of the task now or later.
    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>);

    /// Called after every input, once all copies that the input made ready are known.
    fn settle(&mut self, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A copy left a node: it ended or was evicted there, or never reached it.
    fn left(&mut self, _copy: CopyId, _node: ActorId, _fx: &mut Effects<'_>) {}

    /// A task finished: the first of its copies did. `last` says whether its job finished too.
    fn finished(&mut self, _task: TaskId, _last: bool, _fx: &mut Effects<'_>) {}

    /// A node crashed; its tasks become ready after this call.
    fn crashed(&mut self, _node: ActorId, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A node is back.
    fn back(&mut self, _node: ActorId, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A scheduler, client or auxiliary actor crashed or is back.
    fn peer(&mut self, _actor: ActorId, _up: bool, _fx: &mut Effects<'_>) {}

    /// A node cannot be reached (`can` is false), or may be tried again after a while. Returns whether the rule avoids
    /// the node meanwhile; if it does, the second call follows.
    fn reach(&mut self, _node: ActorId, _can: bool, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// A message other than those of jobs and launches; returns whether the rule handles it.
    fn receive(
        &mut self,
        _from: ActorId,
        _msg: &Message,
        _tasks: &mut OpenTasks,
        _fx: &mut Effects<'_>,
    ) -> bool {
        false
    }

    /// A message of this scheduler other than a row was undeliverable, and [`resend`](fn@resend) does not repeat it.
    /// If it is a [`Launch::Task`], the task becomes ready after this call, unless its node was reported down.
    fn returned(&mut self, _to: ActorId, _msg: Message, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// The [check](OpenTasks::check_later) of a job is due.
    fn check(&mut self, _job: JobId, _attempt: u32, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}

    /// A tick of the rule fired. No other timer calls this: timers of tasks make them [ready](Self::ready), timers of
    /// nodes end the [avoidance](Self::reach) of a node, and timers of jobs are [checks](Self::check).
    fn fire(&mut self, _timer: Timer, _tasks: &mut OpenTasks, _fx: &mut Effects<'_>) {}
}

/// The state of a task.
#[derive(Clone, Copy, Debug)]
struct TaskState {
    /// The attempt number of the copy that waits or is at a node.
    attempt: u32,
    /// The node of the copy; `None` if it waits.
    node: Option<ActorId>,
    /// Whether its next launch repairs a loss.
    lost: bool,
}

#[derive(Clone, Debug)]
struct DispatchedJob {
    open: OpenJob,
    tasks: Vec<TaskState>,
    /// Number of evictions of each task; empty before the first one.
    evictions: Vec<u8>,
    /// Time of the next check. A timer that fires earlier belongs to an earlier submission of the job, or to an earlier
    /// series of checks.
    next_check: Option<Time>,
}

impl DispatchedJob {
    /// The wait of a task after one more eviction. It doubles each time; otherwise a task that fits into the memory of
    /// no node would be relaunched without pause. The maximum is Kubernetes' back-off for a container that keeps
    /// failing.
    fn wait_after_eviction(&mut self, index: u32) -> Span {
        if self.evictions.is_empty() {
            self.evictions.resize(self.tasks.len(), 0);
        }
        let times = &mut self.evictions[index as usize];
        *times = times.saturating_add(1);
        back_off(RETRY_AFTER, u32::from(*times) - 1)
    }

    /// The copy of a task that waits for a node; `None` if the task is finished or at a node.
    fn waiting(&self, task: TaskId) -> Option<CopyId> {
        let TaskState { attempt, node, .. } = *self.tasks.get(task.index as usize)?;
        (node.is_none() && !self.open.is_done(task.index)).then_some(task.copy(attempt))
    }

    /// The copies that wait for a node.
    fn all_waiting(&self, job: JobId) -> impl Iterator<Item = CopyId> {
        (0..self.open.spec.tasks).filter_map(move |index| self.waiting(job.task(index)))
    }

    /// Takes a task from its node; its next copy gets a new attempt number.
    fn take(&mut self, index: u32, lost: bool) {
        let attempt = self.open.attempts(1);
        self.tasks[index as usize] = TaskState { attempt, node: None, lost };
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

    /// The copy of a task that waits for a node; `None` if the task is finished or at a node.
    pub fn waiting(&mut self, task: TaskId) -> Option<CopyId> {
        self.jobs.get_mut(task.job)?.waiting(task)
    }

    /// Whether a copy waits for a node.
    pub fn waits(&mut self, copy: CopyId) -> bool {
        self.waiting(copy.task) == Some(copy)
    }

    /// The job of a copy that waits for a node.
    fn job_of_waiting(&mut self, copy: CopyId) -> Option<&mut DispatchedJob> {
        self.jobs.get_mut(copy.task.job).filter(|dispatched| dispatched.waiting(copy.task) == Some(copy))
    }

    /// The copies of a job that wait for a node.
    pub fn waiting_of(&mut self, job: JobId) -> Vec<CopyId> {
        self.jobs.get_mut(job).map_or_else(Vec::new, |dispatched| dispatched.all_waiting(job).collect())
    }

    /// The copies of all open jobs that wait for a node.
    pub fn all_waiting(&mut self) -> Vec<CopyId> {
        self.jobs.iter_mut().flat_map(|(job, dispatched)| dispatched.all_waiting(job)).collect()
    }

    /// Whether a task was lost by its node, so that its next launch is a repair.
    pub fn is_lost(&mut self, task: TaskId) -> bool {
        self.jobs.get_mut(task.job).is_some_and(|dispatched| dispatched.tasks[task.index as usize].lost)
    }

    /// Launches a copy that waits on a node.
    ///
    /// # Panics
    /// If the copy does not [wait](Self::waits) for a node: it was launched before, or its task is finished.
    pub fn launch(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        self.launch_by(Launch::Row(Row::single(copy)), copy, node, fx);
    }

    /// Launches a waiting copy with a message other than a row.
    ///
    /// # Panics
    /// If the copy does not wait for a node.
    pub fn launch_by(
        &mut self,
        launch: impl Into<Message>,
        copy: CopyId,
        node: ActorId,
        fx: &mut Effects<'_>,
    ) {
        let Some(dispatched) = self.job_of_waiting(copy) else {
            panic!("a rule launches {copy}, which does not wait for a node");
        };
        let state = &mut dispatched.tasks[copy.task.index as usize];
        state.node = Some(node);
        fx.send_as(std::mem::take(&mut state.lost), node, launch);
    }

    /// Arms a check of a job for requests that may have been lost, and replaces an earlier check. The wait begins with
    /// `first` and doubles with each `attempt`, counted from zero; without `first` nothing is armed.
    pub fn check_later(&mut self, job: JobId, attempt: u32, first: Option<Span>, fx: &mut Effects<'_>) {
        let (Some(dispatched), Some(first)) = (self.jobs.get_mut(job), first) else { return };
        let wait = back_off(first, attempt);
        dispatched.next_check = Some(fx.now() + wait);
        fx.arm(Timer::Recheck { job, attempt }, wait);
    }

    /// Whether a check of a job is armed.
    pub fn has_check(&mut self, job: JobId) -> bool {
        self.jobs.get_mut(job).is_some_and(|open| open.next_check.is_some())
    }

    /// Kills an open job: stops its copies and notifies its client.
    pub fn kill(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let Some(DispatchedJob { open, tasks, .. }) = self.jobs.close(job) else { return };
        for (index, TaskState { attempt, node, .. }) in (0..).zip(tasks) {
            if let Some(node) = node.filter(|_| !open.is_done(index)) {
                fx.send(node, Launch::Drop(TaskRange::one(job.task(index), attempt + 1)));
            }
        }
        open.report(job, true, fx);
    }

    /// Whether a check of a job is due.
    fn is_due(&mut self, job: JobId, now: Time) -> bool {
        self.jobs.get_mut(job).is_some_and(|open| open.next_check.take_if(|at| *at <= now).is_some())
    }

    /// The copy of a task that was launched and not taken back, with its node; `None` if the task waits or is finished.
    pub fn at_node(&mut self, task: TaskId) -> Option<(CopyId, ActorId)> {
        let dispatched = self.jobs.get_mut(task.job)?;
        let TaskState { attempt, node, .. } = *dispatched.tasks.get(task.index as usize)?;
        node.filter(|_| !dispatched.open.is_done(task.index)).map(|node| (task.copy(attempt), node))
    }

    /// Whether a copy was launched on a node and not taken back; `None` if its job has ended.
    pub fn is_at(&mut self, node: ActorId, copy: CopyId) -> Option<bool> {
        let state = self.jobs.get_mut(copy.task.job)?.tasks[copy.task.index as usize];
        Some((state.node, state.attempt) == (Some(node), copy.attempt))
    }

    /// Takes back a copy that its node lost or must give up. Returns the copy that waits in its place; `None` if the
    /// copy was not at the node or the task is finished.
    pub fn take_back(&mut self, node: ActorId, copy: CopyId, lost: bool) -> Option<CopyId> {
        let there = self.is_at(node, copy)?;
        let CopyId { task, .. } = copy;
        let dispatched = self.jobs.get_mut(task.job)?;
        if !there || dispatched.open.is_done(task.index) {
            return None;
        }
        dispatched.take(task.index, lost);
        dispatched.waiting(task)
    }

    /// Marks a copy that waits as lost, so that its launch counts as a repair; returns whether it waits.
    pub fn repair(&mut self, copy: CopyId) -> bool {
        let Some(dispatched) = self.job_of_waiting(copy) else { return false };
        dispatched.tasks[copy.task.index as usize].lost = true;
        true
    }

    /// Gives a waiting copy a new attempt number and marks its launch as a repair. `None` if the copy does not wait.
    pub fn renumber(&mut self, copy: CopyId) -> Option<CopyId> {
        let dispatched = self.job_of_waiting(copy)?;
        dispatched.take(copy.task.index, true);
        dispatched.waiting(copy.task)
    }

    /// Takes back all copies of a node that crashed; returns those that wait in their places.
    fn take_all(&mut self, node: ActorId) -> Vec<CopyId> {
        let mut copies = Vec::new();
        for (job, dispatched) in self.jobs.iter_mut() {
            for index in 0..dispatched.open.spec.tasks {
                if dispatched.tasks[index as usize].node == Some(node) && !dispatched.open.is_done(index) {
                    dispatched.take(index, true);
                    copies.push(job.task(index).copy(dispatched.tasks[index as usize].attempt));
                }
            }
        }
        copies
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
        let (attempt, count) = (open.attempts(1), open.spec.tasks);
        let tasks = vec![TaskState { attempt, node: None, lost: false }; count as usize];
        self.tasks.jobs.open(job, DispatchedJob { open, tasks, evictions: Vec::new(), next_check: None });
        self.rule.submitted(job.task(0).copy(attempt), count, &mut self.tasks, fx);
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => {
                self.rule.left(copy, from, fx);
                let ended = self.tasks.jobs.complete(copy.task, |dispatched| &mut dispatched.open, fx);
                if ended != Completion::Duplicate {
                    self.rule.finished(copy.task, ended == Completion::Job, fx);
                }
            }
            Message::Contention(Contention::Evicted { copy, .. }) => self.evicted(from, copy, fx),
            // Rules do not take the use of shared nodes into account.
            Message::Usage(_) | Message::Contention(Contention::Throttled { .. }) => {}
            _ => {
                if !self.rule.receive(from, msg, &mut self.tasks, fx) {
                    fx.unexpected(msg);
                }
            }
        }
    }

    /// Makes an evicted task ready after a wait, in which memory may become free.
    fn evicted(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        if self.tasks.is_at(node, copy) == Some(false) {
            return;
        }
        // Another copy may have finished the task or the job.
        self.rule.left(copy, node, fx);
        if self.tasks.take_back(node, copy, false).is_some()
            && let Some(dispatched) = self.tasks.jobs.get_mut(copy.task.job)
        {
            fx.arm(Timer::Task(copy.task), dispatched.wait_after_eviction(copy.task.index));
        }
    }

    /// Makes the task of an undeliverable launch ready, and avoids its node for a while.
    fn refused(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        match self.tasks.is_at(node, copy) {
            // The node crashed, and the task was made ready when that was reported.
            Some(false) => return,
            // The job has ended.
            None => return self.rule.left(copy, node, fx),
            Some(true) => self.rule.left(copy, node, fx),
        }
        if self.rule.reach(node, false, fx)
            && let Role::Node(number) = fx.layout().role(node)
        {
            fx.arm(Timer::Node(number), RETRY_AFTER);
        }
        if let Some(next) = self.tasks.take_back(node, copy, true) {
            self.rule.ready(next, &mut self.tasks, fx);
        }
    }

    fn fire(&mut self, timer: Timer, fx: &mut Effects<'_>) {
        match timer {
            Timer::Node(number) => {
                let node = fx.layout().node(number);
                if self.tasks.members.has(node, fx.layout()) {
                    self.rule.reach(node, true, fx);
                }
            }
            Timer::Task(task) => {
                if let Some(copy) = self.tasks.waiting(task) {
                    self.rule.ready(copy, &mut self.tasks, fx);
                }
            }
            Timer::Recheck { job, attempt } => {
                if self.tasks.is_due(job, fx.now()) {
                    self.rule.check(job, attempt, &mut self.tasks, fx);
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
            Input::Undelivered { to, msg: msg @ Message::Launch(Launch::Task { copy, .. }) } => {
                self.rule.returned(to, msg, &mut self.tasks, fx);
                self.refused(to, copy, fx);
            }
            Input::Undelivered { to, msg } => match resend(to, msg, fx) {
                Some(row) => self.refused(to, row.copy(0), fx),
                None => self.rule.returned(to, msg, &mut self.tasks, fx),
            },
            Input::Down { actor } => {
                self.tasks.members.down(actor, fx.layout());
                if let Role::Node(_) = fx.layout().role(actor) {
                    let lost = self.tasks.take_all(actor);
                    self.rule.crashed(actor, &mut self.tasks, fx);
                    for copy in lost {
                        self.rule.ready(copy, &mut self.tasks, fx);
                    }
                } else {
                    self.rule.peer(actor, false, fx);
                }
            }
            Input::Up { actor } => {
                self.tasks.members.up(actor, fx.layout());
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.rule.back(actor, &mut self.tasks, fx);
                } else {
                    self.rule.peer(actor, true, fx);
                }
            }
            Input::Fire(timer) => self.fire(timer, fx),
            Input::Start { epoch } => self.rule.started(epoch, fx),
            // Only workers get the other inputs.
            _ => return,
        }
        self.rule.settle(&mut self.tasks, fx);
    }
}
