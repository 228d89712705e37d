//! Redundant groups: a job's tasks are cut into groups of v, each group goes to v distinct servers, and every
//! server of a group holds all of its tasks, or as many as are asked for. What differs between policies is the
//! order on each server and when copies are dropped.

mod choice;
mod offers;

use self::choice::Choice;
use super::jobs::{Completion, JobTable, Open};
use super::members::Members;
use super::returned;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Probe, Row, Tasks};

/// Which copies are dropped when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drops {
    /// Every other copy of a task as soon as one finishes.
    PerTask,
    /// What is left of a group when its last task finishes.
    PerGroup,
    /// Never: every copy runs to its end.
    Never,
}

/// Parameters of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// Tasks of a group, and servers it runs on; the last group of a job takes what is left.
    pub order: u32,
    /// Tasks that each server of a group holds, the first ones of its row; of a smaller group all at most.
    pub columns: u32,
    /// Whether row i starts at task i (a latin square) or every row at the first task.
    pub staggered: bool,
    /// When copies are dropped.
    pub drops: Drops,
    /// Nodes asked for each server of a group; those with the shortest queues get it. One: nobody is asked.
    pub choices: u32,
    /// Whether they keep places instead, and whoever is free first gets it.
    pub late: bool,
    /// How long to wait for answers; how long until places that may have been lost are asked for again.
    pub patience: Span,
}

impl Design {
    /// First task and length of the group a task belongs to.
    const fn group(self, task: u32, tasks: u32) -> (u32, u32) {
        let base = task / self.order * self.order;
        (base, if tasks - base < self.order { tasks - base } else { self.order })
    }

    /// Row `i` of the group of `len` tasks that starts at `base`.
    const fn row(self, job: JobId, (base, len): (u32, u32), i: u32, attempt: u32) -> Row {
        let turn = if self.staggered { i as u16 } else { 0 };
        let width = if self.columns < len { self.columns } else { len } as u16;
        Row { job, base, len: len as u16, turn, width, attempt }
    }
}

#[derive(Debug)]
struct Placed {
    open: Open,
    /// Server of row i of the group that starts at task b, at b + i; `None` while no node is alive.
    servers: Vec<Option<ActorId>>,
    /// Open tasks of each group, where groups are dropped as a whole.
    left: Vec<u32>,
    /// Groups that wait for answers; they have no servers yet.
    choosing: Vec<Choice>,
}

/// A scheduler of redundant groups.
#[derive(Debug)]
pub struct Redundant {
    design: Design,
    /// Whether the network can lose datagrams.
    lossy: bool,
    members: Members,
    jobs: JobTable<Placed>,
    sample: Vec<ActorId>,
}

impl Redundant {
    /// A scheduler of that design over the nodes of `layout`.
    #[must_use]
    pub fn new(design: Design, layout: &Layout, lossy: bool) -> Self {
        Self { design, lossy, members: Members::new(layout), jobs: JobTable::default(), sample: Vec::new() }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let tasks = open.spec.tasks;
        open.attempts(self.design.order);
        let servers = vec![None; tasks as usize];
        let mut placed = Placed { open, servers, left: Vec::new(), choosing: Vec::new() };
        let mut base = 0;
        while base < tasks {
            let (_, len) = self.design.group(base, tasks);
            self.sample.clear();
            self.members.sample(fx.rng(), (len * self.design.choices) as usize, &mut self.sample);
            if self.design.choices == 1 {
                // A square has every task in every row, so a row less is no loss; a rectangle has not.
                if self.design.columns < len {
                    self.fill(len as usize, fx);
                }
                placed.send(self.design, job, base, self.sample.iter().copied(), fx);
            } else if self.design.late || !self.sample.is_empty() {
                for &node in &self.sample {
                    fx.send(node, self.question(job, base));
                }
                placed.choosing.push(Choice::new(base, &self.sample));
            }
            if self.design.drops == Drops::PerGroup {
                placed.left.push(len);
            }
            base += len;
        }
        // A node that crashes never answers; one that keeps a place may take its time.
        if !placed.choosing.is_empty() && (self.lossy || !self.design.late) {
            fx.arm(Timer::Recheck { job, attempt: placed.open.first_attempt() }, self.design.patience);
        }
        self.jobs.open(job, placed);
    }

    /// What a node is asked for the group that starts at `base`.
    fn question(&self, job: JobId, base: u32) -> Probe {
        if self.design.late {
            Probe::Reserve { job, group: base, count: 1, repair: false }
        } else {
            Probe::Sample { task: job.task(base), repair: false }
        }
    }

    /// A node says how long its queue is.
    fn length(&mut self, from: ActorId, task: TaskId, length: i32, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(task.job) else { return };
        let Some(at) = placed.choosing.iter().position(|choice| choice.base == task.index) else { return };
        if placed.choosing[at].answer(from, length) {
            let choice = placed.choosing.swap_remove(at);
            self.decide(task.job, choice, fx);
        }
    }

    /// Sends a group to the live nodes with the shortest queues; to others, if too few are left.
    fn decide(&mut self, job: JobId, choice: Choice, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(job) else { return };
        let base = choice.base;
        let (_, len) = self.design.group(base, placed.open.spec.tasks);
        let len = len as usize;
        self.sample.clear();
        self.sample.extend(choice.by_length().filter(|&node| self.members.has(node, fx.layout())).take(len));
        self.fill(len, fx);
        if let Some(placed) = self.jobs.get_mut(job) {
            placed.send(self.design, job, base, self.sample.iter().copied(), fx);
        }
    }

    /// Adds live nodes to the sample until it has so many, the same ones twice if there are too few.
    fn fill(&mut self, len: usize, fx: &mut Effects<'_>) {
        while self.sample.len() < len
            && let Some(node) = self.members.another(fx.rng(), &self.sample)
        {
            self.sample.push(node);
        }
    }

    /// Whoever has not answered is not waited for any longer, or asked again.
    fn lose_patience(&mut self, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        if self.design.late {
            let current = self.jobs.get_mut(job).is_some_and(|placed| placed.open.first_attempt() == attempt);
            if current && self.repeat(job, fx) {
                fx.arm(Timer::Recheck { job, attempt }, self.design.patience);
            }
            return;
        }
        while let Some(placed) = self.jobs.get_mut(job)
            && placed.open.first_attempt() == attempt
            && let Some(choice) = placed.choosing.pop()
        {
            self.decide(job, choice, fx);
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let (job, task) = (copy.task.job, copy.task.index);
        let design = self.design;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        let completion = placed.open.complete(task);
        if completion == Completion::Duplicate {
            return;
        }
        let group @ (base, len) = design.group(task, placed.open.spec.tasks);
        let servers = &placed.servers[base as usize..(base + len) as usize];
        let holds = |&i: &u32| design.row(job, group, i, 0).position(copy.task).is_some();
        let holders = || (0..len).filter(holds).filter_map(|i| servers[i as usize]);
        let below = placed.open.next_attempt();
        let dropped = match design.drops {
            Drops::PerTask => Some(Tasks::one(copy.task, below)),
            Drops::PerGroup => {
                let left = &mut placed.left[(task / design.order) as usize];
                *left -= 1;
                (*left == 0).then_some(Tasks { job, base, len, below })
            }
            Drops::Never => None,
        };
        if let Some(tasks) = dropped {
            // The server that finished the task has nothing to drop, unless a whole group goes or it holds
            // a second row of it.
            let only = holders().filter(|&server| server == from).count() == 1;
            let skip = (design.drops == Drops::PerTask && only).then_some(from);
            for server in holders().filter(|&s| Some(s) != skip) {
                fx.send(server, Launch::Drop(tasks));
            }
        }
        if !placed.choosing.is_empty() && (base..base + len).all(|task| placed.open.is_done(task)) {
            placed.withdraw(job, base, fx);
        }
        if completion == Completion::Job {
            placed.open.report(job, fx);
            self.jobs.close(job);
        }
    }

    /// Launches again every row with open tasks whose server is `lost`, on a server that has none of the
    /// group yet.
    fn relaunch(
        &mut self,
        only: Option<JobId>,
        lost: impl Fn(u32, Option<ActorId>) -> bool,
        fx: &mut Effects<'_>,
    ) {
        let (design, members) = (self.design, &self.members);
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            let tasks = placed.open.spec.tasks;
            for at in 0..tasks {
                let group @ (base, len) = design.group(at, tasks);
                // A row that has never gone to anybody is not lost.
                let waits = || placed.choosing.iter().any(|c| c.base == base && at - base >= c.given());
                if !lost(at, placed.servers[at as usize]) || waits() {
                    continue;
                }
                let held = design.row(job, group, at - base, 0);
                if held.tasks().all(|task| placed.open.is_done(task.index)) {
                    continue;
                }
                let taken: Vec<_> =
                    placed.servers[base as usize..(base + len) as usize].iter().flatten().copied().collect();
                let server = members.another(fx.rng(), &taken);
                placed.servers[at as usize] = server;
                let Some(server) = server else { continue };
                let row = design.row(job, group, at - base, placed.open.attempts(1));
                fx.recover(server, Launch::Row(row));
                for task in held.tasks().filter(|task| placed.open.is_done(task.index)) {
                    let below = placed.open.next_attempt();
                    fx.recover(server, Launch::Drop(Tasks::one(task, below)));
                }
            }
        }
    }
}

impl Placed {
    /// Sends the rows of the group that starts at `base` to these servers; a row without one waits for a node.
    fn send(
        &mut self,
        design: Design,
        job: JobId,
        base: u32,
        servers: impl Iterator<Item = ActorId>,
        fx: &mut Effects<'_>,
    ) {
        let group @ (_, len) = design.group(base, self.open.spec.tasks);
        for (i, server) in (0..len).zip(servers) {
            fx.send(server, Launch::Row(design.row(job, group, i, self.open.first_attempt() + i)));
            self.servers[(base + i) as usize] = Some(server);
        }
    }
}

impl Machine for Redundant {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                Message::Probe(Probe::Length { task, length }) => self.length(from, task, length, fx),
                Message::Probe(Probe::Claim { job, group, repair }) => {
                    self.claim(from, job, group, repair, fx)
                }
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.lose_patience(job, attempt, fx),
            Input::Undelivered { to, msg } => {
                if let Some(row) = returned(to, msg, fx) {
                    let group = row.base..row.base + u32::from(row.len);
                    self.relaunch(Some(row.job), |at, server| group.contains(&at) && server == Some(to), fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.relaunch(None, |_, server| server == Some(actor), fx);
                if self.design.late {
                    self.offer_again(fx);
                }
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                self.relaunch(None, |_, server| server.is_none(), fx);
                if self.design.late {
                    self.offer_again(fx);
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
