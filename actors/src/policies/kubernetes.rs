//! The default scheduler of Kubernetes: one queue, no queues at nodes, and retries.
//!
//! After a failover there may be two: jobs that the second one has stay there when the first is back, and neither
//! knows what the other bound. Nodes then queue what both sent.

mod nodes;
mod pending;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::nodes::Nodes;
use self::pending::{Pending, Pod};
use super::{Policy, Seat};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Note, Timer};
use crate::message::{Job, Launch, Message, Row};
use crate::roles::client::Central;
use crate::roles::jobs::{Completion, JobTable, Open};
use crate::roles::{AVOIDED, Client, returned};

/// Parameters of Kubernetes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// What becomes of a task for which there is no room.
    pub retry: Retry,
    /// `timer`: how long it waits. 30 s by default in the Murmuration paper, and 1 s (section 2.3.2).
    pub retry_after: Span,
    /// `timer`: a task that comes back is tried in the order of its return, as kube-scheduler does, and not in that in
    /// which jobs arrived, as the Murmuration paper says.
    pub restamp: bool,
    /// Time of one attempt to place a task, one after the other: 5 ms in the Murmuration paper's prototype
    /// (sections 6.1 and 6.2.4).
    pub attempt: Span,
}

/// What becomes of a task for which there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// It waits `retry_after`, as the Murmuration paper describes it.
    #[default]
    Timer,
    /// It goes to the tail of the queue ("no retry queue").
    Tail,
    /// As in Kubernetes 1.23: it waits until a task ends somewhere and its back-off (1 s, doubled by each
    /// attempt up to 10 s) is over, looked at every second; or for a minute, looked at every 30 s. Tasks are
    /// tried in the order in which they came, or came back.
    Events,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            retry: Retry::Timer,
            retry_after: Span::from_secs(30),
            restamp: false,
            attempt: Span::from_millis(5),
        }
    }
}

impl Policy for Kubernetes {
    const ABOUT: &'static str = "Kubernetes, default scheduler (1.23; as in the Murmuration paper, section 2.3)\n\
        All jobs go to the first scheduler that is up. It takes one task after the other, looks for nodes with \
        room for it now, and binds it to the one with the best score: least allocated, and evenly between CPU \
        and memory. A task for which there is no room is tried again later, and others may find some before \
        it. Nodes do not queue.";

    fn check(&self, _: &Layout) -> Result<(), String> {
        if self.retry_after == Span::ZERO {
            return Err("retry_after: must be longer than zero; retry = \"tail\" does not wait".into());
        }
        if self.retry == Retry::Tail && self.attempt == Span::ZERO {
            return Err("attempt: must be longer than zero for retry = \"tail\", which tries for ever".into());
        }
        Ok(())
    }

    fn client(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Client::with(seat.index, Central::Everything))
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Scheduler {
            attempt: self.attempt,
            pending: Pending::new(self.retry, self.retry_after, self.restamp),
            nodes: Nodes::new(seat.layout),
            jobs: JobTable::default(),
            trying: None,
            freed: false,
            woken: None,
        })
    }
}

/// The end of an attempt, and the time to look at those that wait.
const DECIDE: u32 = 0;
const WAKE: u32 = 1;
/// From here on, ticks name nodes that may be tried again.
const NODES: u32 = 2;

#[derive(Debug)]
struct Scheduler {
    attempt: Span,
    pending: Pending,
    nodes: Nodes,
    jobs: JobTable<Open>,
    /// The task for which a node is being looked for.
    trying: Option<Pod>,
    /// Whether room was made since that began.
    freed: bool,
    /// The next time those that wait are looked at.
    woken: Option<Time>,
}

impl Scheduler {
    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let attempt = open.attempts(1);
        for index in 0..open.spec.tasks {
            self.pending.add(Pod::new(job.task(index).copy(attempt), open.spec.arrival), fx.now());
        }
        self.jobs.open(job, open);
        self.work(fx);
    }

    fn is_open(&mut self, task: TaskId) -> bool {
        self.jobs.get_mut(task.job).is_some_and(|open| !open.is_done(task.index))
    }

    /// Tries what is next, until there is nothing, or an attempt takes its time.
    fn work(&mut self, fx: &mut Effects<'_>) {
        while self.trying.is_none()
            && let Some(pod) = self.pending.pop()
        {
            if !self.is_open(pod.copy.task) {
                continue;
            }
            self.freed = false;
            self.trying = Some(pod);
            if self.attempt > Span::ZERO {
                fx.arm(Timer::Tick(DECIDE), self.attempt);
            } else {
                self.decide(fx);
            }
        }
        self.wake_later(fx);
    }

    fn decide(&mut self, fx: &mut Effects<'_>) {
        let Some(pod) = self.trying.take() else { return };
        let task = pod.copy.task;
        if !self.is_open(task) {
            return;
        }
        match self.nodes.pick(fx.rng()) {
            Some(node) => {
                self.nodes.take(node, pod.copy);
                fx.note(Note::Bound { copy: pod.copy });
                let repeated = self.jobs.get_mut(task.job).is_some_and(|o| o.is_repeated(pod.copy.attempt));
                fx.send_as(repeated, fx.layout().node(node), Launch::Row(Row::single(pod.copy)));
            }
            None => self.pending.failed(pod, self.freed, fx.now()),
        }
    }

    fn wake_later(&mut self, fx: &mut Effects<'_>) {
        if let Some(due) = self.pending.wakes(fx.now())
            && self.woken.is_none_or(|woken| woken > due)
        {
            self.woken = Some(due);
            fx.arm(Timer::Tick(WAKE), due.since(fx.now()));
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let job = copy.task.job;
        self.release(from, copy, fx);
        if let Some(open) = self.jobs.get_mut(job)
            && open.complete(copy.task.index) == Completion::Job
        {
            open.report(job, fx);
            self.jobs.close(job);
        }
        self.work(fx);
    }

    /// A copy is not at a node any more; whether it was.
    fn release(&mut self, node: ActorId, copy: CopyId, fx: &Effects<'_>) -> bool {
        let was = self.nodes.release(fx.layout().node_number(node), copy);
        if was {
            self.freed = true;
            self.pending.freed(fx.now());
        }
        was
    }

    /// A task that was lost is tried anew.
    fn again(&mut self, task: TaskId, fx: &Effects<'_>) {
        if let Some(open) = self.jobs.get_mut(task.job)
            && !open.is_done(task.index)
        {
            let copy = task.copy(open.attempts(1));
            self.pending.add(Pod::new(copy, open.spec.arrival), fx.now());
        }
    }

    fn refused(&mut self, node: ActorId, row: Row, fx: &mut Effects<'_>) {
        if !self.release(node, row.copy(0), fx) {
            // The node was reported down meanwhile, and what it had is tried again already.
            return;
        }
        let number = fx.layout().node_number(node);
        self.nodes.avoid(number, true);
        fx.arm(Timer::Tick(NODES + number), AVOIDED);
        self.again(row.copy(0).task, fx);
        self.work(fx);
    }

    fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match tick {
            DECIDE => self.decide(fx),
            // An earlier one may have been asked for after this one, which is then not due any more.
            WAKE if self.woken.is_none_or(|due| due > fx.now()) => return,
            WAKE => {
                self.woken = None;
                self.pending.wake(fx.now());
            }
            node => {
                self.nodes.avoid(node - NODES, false);
                self.pending.freed(fx.now());
            }
        }
        self.work(fx);
    }
}

impl Machine for Scheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => {
                if let Some(row) = returned(to, msg, fx)
                    && let Role::Node(_) = fx.layout().role(to)
                {
                    self.refused(to, row, fx);
                }
            }
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    for copy in self.nodes.down(node) {
                        self.again(copy.task, fx);
                    }
                    self.work(fx);
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.nodes.up(node);
                    self.pending.freed(fx.now());
                    self.work(fx);
                }
            }
            Input::Fire(Timer::Tick(tick)) => self.fire(tick, fx),
            Input::Start { .. }
            | Input::Fire(_)
            | Input::Done { .. }
            | Input::Halted { .. }
            | Input::Gauged { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
