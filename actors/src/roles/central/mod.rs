//! A central scheduler: one FIFO queue of tasks, and it knows which cores are free.
//!
//! A core counts as free from the moment on at which its copy is known to have ended or is told to stop. A rule
//! looks at each open job from time to time and may ask for more copies of a task: they go to cores for which
//! no first copy waits. The first result of a task counts, its other copies are stopped.

pub mod attempts;
#[cfg(test)]
pub(crate) mod fixture;
pub mod rule;

use std::collections::VecDeque;

pub use self::attempts::{Attempt, Attempts};
pub use self::rule::{Cluster, Never, Rule, View, Wish};
use super::jobs::{Completion, JobTable, Open};
use super::returned;
use crate::base::{ActorId, CopyId, JobId, Score, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Progress, Row, Tasks};

/// Why a copy is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// Its task has none.
    First,
    /// Its task has one that is slow.
    Backup,
    /// The one before it was lost.
    Lost,
}

#[derive(Debug)]
struct Placed {
    open: Open,
    attempts: Attempts,
    /// How long copies that finished tasks took, if somebody looks.
    took: Vec<Span>,
    /// Tasks that were begun anew by choice, once for each time.
    restarted: Vec<u32>,
    /// Number of the look that is armed, if one is.
    next_look: Option<u32>,
}

/// A central scheduler.
#[derive(Debug)]
pub struct Central<R> {
    rule: R,
    slots: u32,
    /// A node once for each free core, longest idle first.
    free: VecDeque<ActorId>,
    queue: VecDeque<(CopyId, Why)>,
    jobs: JobTable<Placed>,
    /// Backups that run.
    backups: u32,
    wishes: Vec<Wish>,
    /// Looks so far.
    looks: u32,
}

impl<R: Rule> Central<R> {
    /// A scheduler of all cores of a layout.
    pub fn new(rule: R, layout: &Layout) -> Self {
        let cores = |node| (0..layout.cores(node)).map(move |_| layout.node(node));
        Self {
            rule,
            slots: layout.workers(),
            free: (0..layout.nodes()).flat_map(cores).collect(),
            queue: VecDeque::new(),
            jobs: JobTable::new(),
            backups: 0,
            wishes: Vec::new(),
            looks: 0,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (tasks, attempt) = (open.spec.tasks, open.attempts(1));
        self.queue.extend((0..tasks).map(|i| (job.task(i).copy(attempt), Why::First)));
        let (attempts, took, restarted) = (Attempts::new(tasks), Vec::new(), Vec::new());
        self.jobs.open(job, Placed { open, attempts, took, restarted, next_look: None });
        self.dispatch(fx);
        self.look(job, None, fx);
    }

    /// Gives free cores what waits.
    fn dispatch(&mut self, fx: &mut Effects<'_>) {
        while !self.free.is_empty() {
            let Some((copy, why)) = self.queue.pop_front() else { return };
            let Some(placed) = self.jobs.get_mut(copy.task.job) else { continue };
            if placed.open.is_done(copy.task.index) {
                continue;
            }
            let Some(node) = self.free.pop_front() else { return };
            placed.send(node, copy, why, fx);
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let CopyId { task: TaskId { job, index }, attempt: number } = copy;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        // The core is free if this is a copy we count on; a late result of a node given up frees nothing.
        let ended = placed.attempts.take(index, |a| a.number == number && a.node == from);
        let completion = placed.open.complete(index);
        if let Some(ended) = ended {
            if placed.next_look.is_some() {
                placed.took.push(fx.now().since(ended.since));
            }
            let first = placed.attempts.of(index).map(|other| other.since).fold(ended.since, Time::min);
            self.rule.finished(fx.now().since(first));
            self.rule.progressed(number_of(from, fx), gain(ended.score, Score::ALL));
            self.release(ended);
        }
        if completion != Completion::Duplicate {
            self.stop(copy.task, |_| true, fx);
        }
        if completion == Completion::Job
            && let Some(placed) = self.jobs.close(job)
        {
            placed.open.report(job, fx);
        }
        self.dispatch(fx);
    }

    /// Stops the attempts of a task for which `which` holds; says whether there were any.
    fn stop(&mut self, task: TaskId, which: impl Fn(&Attempt) -> bool, fx: &mut Effects<'_>) -> bool {
        let mut any = false;
        while let Some(placed) = self.jobs.get_mut(task.job)
            && let Some(gone) = placed.attempts.take(task.index, &which)
        {
            any = true;
            fx.send(gone.node, Launch::Drop(Tasks::one(task, gone.number + 1)));
            self.rule.progressed(number_of(gone.node, fx), gain(gone.score, Score::NONE));
            self.release(gone);
        }
        any
    }

    /// The core of an attempt is free.
    fn release(&mut self, gone: Attempt) {
        self.backups -= u32::from(gone.backup);
        self.free.push_back(gone.node);
    }

    /// Looks at a job, unless it is over, or was submitted again and has a look of its own.
    fn look(&mut self, job: JobId, number: Option<u32>, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(job).filter(|placed| placed.next_look == number) else {
            return;
        };
        let (free, waiting) = (self.free.len() as u32, self.queue.len() as u32);
        let cluster = Cluster { slots: self.slots, free, waiting, backups: self.backups };
        let mut wishes = std::mem::take(&mut self.wishes);
        self.rule.look(&placed.view(fx.now(), cluster), &mut wishes);
        let mut sent = false;
        for wish in wishes.drain(..) {
            match wish {
                Wish::Backup(task) => sent |= self.back_up(job.task(task), fx),
                Wish::Restart(task, number) => self.restart(job.task(task), number, fx),
            }
        }
        self.wishes = wishes;
        if let (Some(pause), Some(placed)) = (self.rule.pause(sent), self.jobs.get_mut(job)) {
            self.looks = self.looks.wrapping_add(1);
            placed.next_look = Some(self.looks);
            fx.arm(Timer::Recheck { job, attempt: self.looks }, pause);
        }
    }

    /// Sends one more copy of a task to the node that has been idle longest among those that may have it.
    fn back_up(&mut self, task: TaskId, fx: &mut Effects<'_>) -> bool {
        let Some(placed) = self.jobs.get_mut(task.job) else { return false };
        let fits = |&node: &ActorId| {
            self.rule.serves(number_of(node, fx)) && placed.attempts.of(task.index).all(|a| a.node != node)
        };
        let Some(at) = self.free.iter().position(fits) else { return false };
        let Some(node) = self.free.remove(at) else { return false };
        let copy = task.copy(placed.open.attempts(1));
        placed.send(node, copy, Why::Backup, fx);
        self.backups += 1;
        true
    }

    /// Stops an attempt and queues another one behind the task that is next.
    fn restart(&mut self, task: TaskId, number: u32, fx: &mut Effects<'_>) {
        if !self.stop(task, |a| a.number == number, fx) {
            return;
        }
        if let Some(placed) = self.jobs.get_mut(task.job) {
            placed.restarted.push(task.index);
            let at = self.queue.len().min(1);
            self.queue.insert(at, (task.copy(placed.open.attempts(1)), Why::First));
        }
        self.dispatch(fx);
    }

    fn progress(&mut self, report: Progress, fx: &Effects<'_>) {
        let Progress::Report { copy, score, at } = report;
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let Some(attempt) = placed.attempts.get_mut(copy.task.index, copy.attempt) else { return };
        if at > attempt.heard && score >= attempt.score {
            self.rule.progressed(number_of(attempt.node, fx), gain(attempt.score, score));
            (attempt.score, attempt.heard) = (score, at);
        }
    }

    /// Takes back the attempts of a job, or of all, that are lost with a node, or did not reach it. Tasks of
    /// which none is left go to the head of the queue. Says whether there were any.
    fn lost(&mut self, node: ActorId, only: Option<CopyId>, fx: &Effects<'_>) -> bool {
        let (mut any, mut again) = (false, Vec::new());
        for (job, placed) in self.jobs.iter_mut() {
            let which = |a: &Attempt| {
                a.node == node && only.is_none_or(|copy| copy == job.task(a.task).copy(a.number))
            };
            let mut tasks: Vec<_> =
                placed.attempts.all().iter().filter(|a| which(a)).map(|a| a.task).collect();
            tasks.sort_unstable();
            for task in tasks {
                let Some(gone) = placed.attempts.take(task, which) else { continue };
                any = true;
                self.backups -= u32::from(gone.backup);
                self.rule.progressed(number_of(node, fx), gain(gone.score, Score::NONE));
                if placed.attempts.copies(task) == 0 {
                    again.push(job.task(task).copy(placed.open.attempts(1)));
                }
            }
        }
        // The oldest comes out first.
        for copy in again.into_iter().rev() {
            self.queue.push_front((copy, Why::Lost));
        }
        any
    }
}

impl Placed {
    fn send(&mut self, node: ActorId, copy: CopyId, why: Why, fx: &mut Effects<'_>) {
        let (task, backup) = (copy.task.index, why == Why::Backup);
        self.attempts.add(Attempt::new(task, copy.attempt, node, fx.now(), backup));
        fx.send_as(why == Why::Lost, node, Launch::Row(Row::single(copy)));
    }

    fn view(&self, now: Time, cluster: Cluster) -> View<'_> {
        let Self { open, attempts, took, restarted, .. } = self;
        View { now, tasks: open.spec.tasks, finished: open.finished(), attempts, took, restarted, cluster }
    }
}

fn number_of(node: ActorId, fx: &Effects<'_>) -> u32 {
    fx.layout().node_number(node)
}

fn gain(from: Score, to: Score) -> i64 {
    i64::from(to.0) - i64::from(from.0)
}

impl<R: Rule> Machine for Central<R> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                Message::Progress(report) => self.progress(report, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.look(job, Some(attempt), fx),
            Input::Undelivered { to, msg } => {
                // The core is believed free again and tried last, so that a cut-off node does not spin.
                if let Some(row) = returned(to, msg, fx)
                    && self.lost(to, Some(row.copy(0)), fx)
                {
                    self.free.push_back(to);
                    self.dispatch(fx);
                }
            }
            Input::Down { actor } => {
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.free.retain(|&node| node != actor);
                    self.lost(actor, None, fx);
                    self.dispatch(fx);
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.free.retain(|&n| n != actor);
                    self.free.extend((0..fx.layout().cores(node)).map(|_| actor));
                    self.dispatch(fx);
                }
            }
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
