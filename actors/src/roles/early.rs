//! Early binding: each task goes to a node as soon as its job arrives.

use super::jobs::{Completion, JobTable, Open};
use super::members::Members;
use super::returned;
use crate::base::{ActorId, JobId, Rng};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Job, Launch, Message, Row};

/// How a policy picks the node of a task.
pub trait Place: Send {
    /// The node of the next task; `None` if no node is alive.
    fn place(&mut self, members: &Members, rng: &mut Rng) -> Option<ActorId>;
}

#[derive(Debug)]
struct Placed {
    open: Open,
    /// Node of each task; `None` while no node is alive.
    nodes: Vec<Option<ActorId>>,
}

/// A scheduler that binds early.
#[derive(Debug)]
pub struct Early<P> {
    place: P,
    members: Members,
    jobs: JobTable<Placed>,
}

impl<P: Place> Early<P> {
    /// A scheduler that places with `place`.
    pub fn new(place: P, layout: &Layout) -> Self {
        Self { place, members: Members::new(layout), jobs: JobTable::default() }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let attempt = open.attempts(1);
        let mut nodes = Vec::with_capacity(open.spec.tasks as usize);
        for task in 0..open.spec.tasks {
            let node = self.place.place(&self.members, fx.rng());
            if let Some(node) = node {
                fx.send(node, Launch::Row(Row::single(job.task(task).copy(attempt))));
            }
            nodes.push(node);
        }
        self.jobs.open(job, Placed { open, nodes });
    }

    /// Launches again every open task for which `lost` says so.
    fn relaunch(
        &mut self,
        only: Option<JobId>,
        lost: impl Fn(u32, Option<ActorId>) -> bool,
        fx: &mut Effects<'_>,
    ) {
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            for task in 0..placed.open.spec.tasks {
                let slot = &mut placed.nodes[task as usize];
                if placed.open.is_done(task) || !lost(task, *slot) {
                    continue;
                }
                *slot = self.place.place(&self.members, fx.rng());
                if let Some(node) = *slot {
                    let attempt = placed.open.attempts(1);
                    fx.recover(node, Launch::Row(Row::single(job.task(task).copy(attempt))));
                }
            }
        }
    }

    fn deliver(&mut self, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => {
                let job = copy.task.job;
                let Some(placed) = self.jobs.get_mut(job) else { return };
                if placed.open.complete(copy.task.index) == Completion::Job {
                    placed.open.report(job, fx);
                    self.jobs.close(job);
                }
            }
            _ => fx.unexpected(msg),
        }
    }
}

impl<P: Place> Machine for Early<P> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { msg, .. } => self.deliver(&msg, fx),
            Input::Undelivered { to, msg } => {
                if let Some(row) = returned(to, msg, fx) {
                    self.relaunch(Some(row.job), |task, at| task == row.base && at == Some(to), fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.relaunch(None, |_, at| at == Some(actor), fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                self.relaunch(None, |_, at| at.is_none(), fx);
            }
            Input::Start { .. } | Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } => {}
        }
    }
}
