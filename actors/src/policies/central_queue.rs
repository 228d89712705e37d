//! A central FIFO queue: the M/M/c of the textbooks.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat, one_scheduler};
use crate::base::{ActorId, CopyId, JobId, TaskId};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine};
use crate::message::{Job, Launch, Message, Row};
use crate::roles::jobs::{Completion, JobTable, Open};
use crate::roles::returned;

/// No parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CentralQueue {}

impl Policy for CentralQueue {
    const ABOUT: &'static str = "Central queue (textbook M/G/c)\n\
        One scheduler holds every waiting task in a FIFO queue and knows which cores are free; the core that \
        has been idle longest gets the next task. Without network delay no work-conserving policy without \
        preemption or knowledge of sizes waits less on average.";

    fn check(&self, layout: &Layout) -> Result<(), String> {
        one_scheduler(layout, "central-queue")
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        let layout = seat.layout;
        let free =
            (0..layout.nodes()).flat_map(|n| (0..layout.cores(n)).map(move |_| layout.node(n))).collect();
        Box::new(Scheduler { free, queue: VecDeque::new(), jobs: JobTable::default() })
    }
}

#[derive(Debug)]
struct Placed {
    open: Open,
    /// Node that a task's copy runs on; `None` while it waits and when the copy has come back.
    nodes: Vec<Option<ActorId>>,
    /// Copies out, each with a core that is not free until it comes back.
    out: u32,
    finished: bool,
}

impl Placed {
    /// The copy of a task on a node comes back, or is lost; says whether one was out there.
    fn take(&mut self, task: u32, node: ActorId) -> bool {
        let was = self.nodes[task as usize] == Some(node);
        if was {
            self.nodes[task as usize] = None;
            self.out -= 1;
        }
        was
    }

    const fn closed(&self) -> bool {
        self.finished && self.out == 0
    }
}

#[derive(Debug)]
struct Scheduler {
    /// A node once for each free core, longest idle first.
    free: VecDeque<ActorId>,
    queue: VecDeque<CopyId>,
    jobs: JobTable<Placed>,
}

impl Scheduler {
    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (tasks, attempt) = (open.spec.tasks, open.attempts(1));
        self.queue.extend((0..tasks).map(|i| job.task(i).copy(attempt)));
        self.jobs.open(job, Placed { open, nodes: vec![None; tasks as usize], out: 0, finished: false });
        self.dispatch(fx);
    }

    fn dispatch(&mut self, fx: &mut Effects<'_>) {
        while !self.free.is_empty() {
            let Some(copy) = self.queue.pop_front() else { return };
            let Some(placed) = self.jobs.get_mut(copy.task.job) else { continue };
            if placed.open.is_done(copy.task.index) {
                continue;
            }
            let Some(node) = self.free.pop_front() else { return };
            placed.nodes[copy.task.index as usize] = Some(node);
            placed.out += 1;
            let row = Launch::Row(Row::single(copy));
            if placed.open.is_repeated(copy.attempt) { fx.recover(node, row) } else { fx.send(node, row) }
        }
    }

    fn completed(&mut self, from: ActorId, task: TaskId, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(task.job) else { return };
        // The core is free if this is the copy we count on; a late result of a node given up frees nothing.
        if placed.take(task.index, from) {
            self.free.push_back(from);
        }
        if placed.open.complete(task.index) == Completion::Job {
            placed.finished = true;
            placed.open.report(task.job, fx);
        }
        if placed.closed() {
            self.jobs.close(task.job);
        }
        self.dispatch(fx);
    }

    /// Puts tasks of a lost node back at the head of the queue; says whether copies were out there.
    fn requeue(&mut self, node: ActorId, only: Option<TaskId>) -> bool {
        let mut lost = false;
        let (mut closed, mut again) = (Vec::new(), Vec::new());
        for (job, placed) in self.jobs.iter_mut() {
            for index in 0..placed.open.spec.tasks {
                let task = job.task(index);
                if only.is_none_or(|o| o == task) && placed.take(index, node) {
                    lost = true;
                    if !placed.open.is_done(index) {
                        again.push(task.copy(placed.open.attempts(1)));
                    }
                }
            }
            if placed.closed() {
                closed.push(job);
            }
        }
        for job in closed {
            self.jobs.close(job);
        }
        // The oldest comes out first.
        for copy in again.into_iter().rev() {
            self.queue.push_front(copy);
        }
        lost
    }
}

impl Machine for Scheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy.task, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => {
                // The core is believed free again and tried last, so that a cut-off node does not spin.
                if let Some(row) = returned(to, msg, fx)
                    && self.requeue(to, Some(row.copy(0).task))
                {
                    self.free.push_back(to);
                    self.dispatch(fx);
                }
            }
            Input::Down { actor } => {
                self.free.retain(|&node| node != actor);
                let _ = self.requeue(actor, None);
                self.dispatch(fx);
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.free.retain(|&n| n != actor);
                    self.free.extend((0..fx.layout().cores(node)).map(|_| actor));
                    self.dispatch(fx);
                }
            }
            Input::Start { .. } | Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } => {}
        }
    }
}
