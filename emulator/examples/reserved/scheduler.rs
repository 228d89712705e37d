//! The scheduler: asks nodes for places, and sends each task to the shortest queue.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a scheduler has a use for a few messages: the others count as unexpected"
)]

use volary_actors::base::{ActorId, JobId, Span, TaskId};
use volary_actors::layout::Layout;
use volary_actors::machine::{Effects, Input, Machine, Timer};
use volary_actors::message::{CustomProtocol as _, Job, Launch, Message, Row};
use volary_actors::roles::job_table::{JobTable, OpenJob};
use volary_actors::roles::membership::Membership;
use volary_actors::roles::resend;

use crate::messages::Reservation;

/// What is known about a task.
#[derive(Clone, Default, Debug)]
struct Choice {
    /// How often nodes were asked; answers to earlier questions are ignored.
    round: u32,
    /// Nodes that were asked and have not answered.
    asked: Vec<ActorId>,
    /// The shortest queue, and its node.
    best: Option<(i32, ActorId)>,
    /// Where the task is, and its attempt number there.
    sent: Option<(ActorId, u32)>,
    /// Whether the task was ever sent to a node.
    launched: bool,
}

#[derive(Clone, Debug)]
struct PlacedJob {
    open: OpenJob,
    tasks: Vec<Choice>,
    /// Whether a look at missing answers is armed.
    checking: bool,
}

impl PlacedJob {
    /// Sends a task to the shortest queue, if one is known.
    fn launch(&mut self, task: TaskId, fx: &mut Effects<'_>) {
        let choice = &mut self.tasks[task.index as usize];
        let Some((_, node)) = choice.best.take() else { return };
        let first = !std::mem::replace(&mut choice.launched, true);
        // No two launches of a task share an attempt number. The job takes the first when it is submitted.
        let attempt = if first { self.open.first_attempt() } else { self.open.attempts(1) };
        choice.sent = Some((node, attempt));
        choice.asked.clear();
        fx.send_as(!first, node, Launch::Row(Row::single(task.copy(attempt))));
    }

    /// Whether a task is neither done nor at a node.
    fn is_unplaced(&self, index: u32) -> bool {
        self.tasks[index as usize].sent.is_none() && !self.open.is_done(index)
    }
}

/// A scheduler that asks before it binds.
#[derive(Clone, Debug)]
pub(crate) struct Reserving {
    probes: usize,
    timeout: Span,
    lossy: bool,
    members: Membership,
    jobs: JobTable<PlacedJob>,
}

impl Reserving {
    /// A scheduler that asks `probes` nodes for each task, and again after `timeout` if datagrams can be lost.
    pub(crate) fn new(probes: u32, timeout: Span, layout: &Layout, lossy: bool) -> Self {
        let (probes, members) = (probes as usize, Membership::new(layout));
        Self { probes, timeout, lossy, members, jobs: JobTable::default() }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        // `None`: the job is open, and this is an old submission.
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        open.attempts(1);
        let tasks = vec![Choice::default(); open.spec.tasks as usize];
        self.jobs.open(job, PlacedJob { open, tasks, checking: false });
        self.place(Some(job), false, |placed, index| placed.is_unplaced(index), fx);
    }

    /// Asks nodes about the tasks of open jobs, or of one of them, that `which` selects.
    fn place(
        &mut self,
        only: Option<JobId>,
        repair: bool,
        which: impl Fn(&PlacedJob, u32) -> bool,
        fx: &mut Effects<'_>,
    ) {
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|only| only == *job)) {
            let mut some = false;
            for index in 0..placed.open.spec.tasks {
                if which(placed, index) {
                    some = true;
                    let choice = &mut placed.tasks[index as usize];
                    ask(&mut self.members, self.probes, job.task(index), repair, choice, fx);
                }
            }
            if some && self.lossy && !placed.checking {
                placed.checking = true;
                fx.arm(Timer::Recheck { job, attempt: 0 }, self.timeout);
            }
        }
    }

    fn answer(&mut self, from: ActorId, task: TaskId, round: u32, length: i32, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(task.job) else { return };
        let choice = &mut placed.tasks[task.index as usize];
        // An answer that arrives twice is the answer of one node.
        let Some(at) = choice.asked.iter().position(|node| *node == from) else { return };
        if choice.round != round {
            return;
        }
        choice.asked.swap_remove(at);
        if choice.best.is_none_or(|(shortest, _)| length < shortest) {
            choice.best = Some((length, from));
        }
        if choice.asked.is_empty() {
            placed.launch(task, fx);
        }
    }

    /// Handles the timeout of questions: tasks with any answer go to the best; nodes are asked anew about the others.
    fn recheck(&mut self, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(job) else { return };
        for index in 0..placed.open.spec.tasks {
            placed.launch(job.task(index), fx);
        }
        if !(0..placed.open.spec.tasks).any(|index| placed.is_unplaced(index)) {
            placed.checking = false;
            return;
        }
        let wait = Span(self.timeout.0.saturating_mul(1 << (attempt + 1).min(16)));
        fx.arm(Timer::Recheck { job, attempt: attempt + 1 }, wait);
        self.place(Some(job), true, PlacedJob::is_unplaced, fx);
    }

    /// Places a task again whose node could not be reached.
    fn refused(&mut self, node: ActorId, row: Row, fx: &mut Effects<'_>) {
        let task = row.copy(0).task;
        let lost = move |placed: &PlacedJob, index: u32| {
            index == task.index && placed.tasks[index as usize].sent == Some((node, row.attempt))
        };
        self.place(
            Some(row.job),
            true,
            move |placed, index| lost(placed, index) && !placed.open.is_done(index),
            fx,
        );
    }

    /// Places the tasks of a crashed node again, and no longer waits for its answers.
    fn down(&mut self, node: ActorId, fx: &mut Effects<'_>) {
        for (job, placed) in self.jobs.iter_mut() {
            for index in 0..placed.open.spec.tasks {
                let choice = &mut placed.tasks[index as usize];
                let before = choice.asked.len();
                choice.asked.retain(|asked| *asked != node);
                choice.best = choice.best.filter(|(_, best)| *best != node);
                if before > choice.asked.len() && choice.asked.is_empty() {
                    placed.launch(job.task(index), fx);
                }
            }
        }
        let lost = |placed: &PlacedJob, index: u32| {
            let choice = &placed.tasks[index as usize];
            let unasked = choice.sent.is_none() && choice.asked.is_empty();
            (unasked || choice.sent.is_some_and(|(at, _)| at == node)) && !placed.open.is_done(index)
        };
        self.place(None, true, lost, fx);
    }
}

/// Asks a sample of the nodes about a task. If none is alive, nobody is asked until one is up.
fn ask(
    members: &mut Membership,
    probes: usize,
    task: TaskId,
    repair: bool,
    choice: &mut Choice,
    fx: &mut Effects<'_>,
) {
    choice.round += 1;
    (choice.best, choice.sent) = (None, None);
    choice.asked.clear();
    members.sample(fx.rng(), probes, &mut choice.asked);
    for &node in &choice.asked {
        fx.send_as(repair, node, Reservation::Ask { task, round: choice.round, repair });
    }
}

impl Machine for Reserving {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => {
                    self.jobs.complete(copy.task, |placed| &mut placed.open, fx);
                }
                _ => match Reservation::of(&msg) {
                    Some(Reservation::Length { task, round, length }) => {
                        self.answer(from, task, round, length, fx);
                    }
                    _ => fx.unexpected(&msg),
                },
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.recheck(job, attempt, fx),
            Input::Undelivered { to, msg } => {
                if let Some(row) = resend(to, msg, fx) {
                    self.refused(to, row, fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.down(actor, fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                let stranded = |placed: &PlacedJob, index: u32| {
                    placed.is_unplaced(index) && placed.tasks[index as usize].asked.is_empty()
                };
                self.place(None, true, stranded, fx);
            }
            // A start needs no action; only rechecks are armed; the other inputs are a worker's.
            _ => {}
        }
    }
}
