//! Replication: groups of tasks that run on groups of servers, every task on several of them.
//!
//! A job's tasks are divided into groups of v. Each group goes to v distinct servers, and every server of a group
//! holds all of its tasks, or as many as configured. Policies differ in the order on each server and in the events at
//! which copies are dropped. A group's servers are random nodes, the nodes with the shortest queues among several
//! that are asked, or the first nodes with a free core. In the last case more nodes get a reservation than the group
//! has rows, and the first nodes that claim get the rows in turn.

use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Probe, Row, TaskRange};
use crate::roles::job_table::{Completion, JobTable, OpenJob};
use crate::roles::membership::Membership;
use crate::roles::resend::{back_off, resend};

/// Events at which copies are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drops {
    /// Every other copy of a task is dropped as soon as one finishes.
    PerTask,
    /// All remaining copies of a group are dropped when its last task finishes.
    PerGroup,
    /// No copy is dropped: every copy runs to its end.
    Never,
}

/// Parameters of replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// Number of tasks of a group, and of its servers; the last group of a job may be smaller.
    pub order: u32,
    /// Number of tasks that each server of a group holds, the first ones of its row; at most all tasks of a smaller
    /// group.
    pub columns: u32,
    /// Whether row i starts at task i (a latin square) or every row at the first task.
    pub staggered: bool,
    /// Event at which copies are dropped.
    pub drops: Drops,
    /// Number of nodes asked for each server of a group; the nodes with the shortest queues become servers. With 1, no
    /// node is asked.
    pub choices: u32,
    /// Whether nodes get reservations instead of questions; the nodes that claim first get the rows.
    pub late: bool,
    /// Time to wait for answers; with `late`, pause before reservations that may have been lost are repeated.
    pub patience: Span,
}

impl Design {
    /// First task and length of the group of a task.
    const fn group(self, task: u32, tasks: u32) -> (u32, u32) {
        let base = task / self.order * self.order;
        (base, if tasks - base < self.order { tasks - base } else { self.order })
    }

    /// Row `i` of the group of `len` tasks that starts at `base`.
    const fn row(self, job: JobId, (base, len): (u32, u32), i: u32, attempt: u32) -> Row {
        let turn = if self.staggered { i as u16 } else { 0 };
        let width = if self.columns < len { self.columns } else { len } as u16;
        Row { job, base, len: len as u16, turn, width, attempt, elsewhere: false }
    }
}

#[derive(Clone, Debug)]
struct ReplicatedJob {
    open: OpenJob,
    /// Server and attempt of row i of the group that starts at task b, at index b + i; `None` while no node is alive.
    servers: Vec<Option<(ActorId, u32)>>,
    /// Number of open tasks of each group, where groups are dropped as a whole.
    left: Vec<u32>,
    /// Groups that wait for answers and have no servers yet.
    choosing: Vec<Choice>,
    /// Number of timeouts so far at which open reservations were sent again; the back-off grows with it.
    repeats: u32,
}

/// A scheduler that runs groups of tasks redundantly.
#[derive(Clone, Debug)]
pub struct Replication {
    design: Design,
    /// Whether the network can lose datagrams.
    lossy: bool,
    members: Membership,
    jobs: JobTable<ReplicatedJob>,
    sample: Vec<ActorId>,
}

impl Replication {
    /// A scheduler of a design over the nodes of `layout`.
    pub fn new(design: Design, layout: &Layout, lossy: bool) -> Self {
        Self {
            design,
            lossy,
            members: Membership::new(layout),
            jobs: JobTable::default(),
            sample: Vec::new(),
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let tasks = open.spec.tasks;
        open.attempts(self.design.order);
        let servers = vec![None; tasks as usize];
        let mut placed = ReplicatedJob { open, servers, left: Vec::new(), choosing: Vec::new(), repeats: 0 };
        let mut base = 0;
        while base < tasks {
            let (_, len) = self.design.group(base, tasks);
            self.members.sample(fx.rng(), (len * self.design.choices) as usize, &mut self.sample);
            if self.design.choices == 1 {
                // In a square every row has every task, so a row may be missing. In a rectangle no row may be missing.
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
        // A crashed node never answers. A node answers a reservation only when a core is free, so reservations need a
        // timeout only if they can be lost.
        if !placed.choosing.is_empty() && (self.lossy || !self.design.late) {
            fx.arm(Timer::Recheck { job, attempt: placed.open.first_attempt() }, self.design.patience);
        }
        self.jobs.open(job, placed);
    }

    /// The request to a node for the group that starts at `base`.
    fn question(&self, job: JobId, base: u32) -> Probe {
        if self.design.late {
            Probe::Reserve { job, group: base, count: 1, repair: false }
        } else {
            Probe::Sample { task: job.task(base), repair: false }
        }
    }

    /// Records the queue length of a node.
    fn length(&mut self, from: ActorId, task: TaskId, length: i32, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(task.job) else { return };
        let Some(at) = placed.choosing.iter().position(|choice| choice.base == task.index) else { return };
        if placed.choosing[at].answer(from, length) {
            let choice = placed.choosing.swap_remove(at);
            self.decide(task.job, choice, fx);
        }
    }

    /// Sends a group to the live nodes with the shortest queues, or to other nodes if too few are left.
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

    /// Fills the sample up to `len` live nodes. Nodes occur several times if there are too few.
    fn fill(&mut self, len: usize, fx: &mut Effects<'_>) {
        while self.sample.len() < len
            && let Some(node) = self.members.another(fx.rng(), &self.sample)
        {
            self.sample.push(node);
        }
    }

    /// Handles the timeout: decides without the missing answers, or repeats reservations.
    fn lose_patience(&mut self, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        if self.design.late {
            let current = self.jobs.get_mut(job).is_some_and(|placed| placed.open.first_attempt() == attempt);
            if current && self.repeat(job, fx) {
                let patience = self.jobs.get_mut(job).map_or(self.design.patience, |placed| {
                    placed.repeats += 1;
                    back_off(self.design.patience, placed.repeats)
                });
                fx.arm(Timer::Recheck { job, attempt }, patience);
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
        let holders = || (0..len).filter(holds).filter_map(|i| servers[i as usize]).map(|(server, _)| server);
        let below = placed.open.next_attempt();
        let dropped = match design.drops {
            Drops::PerTask => Some(TaskRange::one(copy.task, below)),
            Drops::PerGroup => {
                let left = &mut placed.left[(task / design.order) as usize];
                *left -= 1;
                (*left == 0).then_some(TaskRange { job, base, len, below })
            }
            Drops::Never => None,
        };
        if let Some(tasks) = dropped {
            // The server that finished the task has nothing to drop, unless a whole group is dropped or the server
            // holds a second row of the group.
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
            placed.open.report(job, false, fx);
            self.jobs.close(job);
        }
    }

    /// Launches again every row with open tasks whose server is `lost`, on a server that has no row of the group yet.
    fn relaunch(
        &mut self,
        only: Option<JobId>,
        lost: impl Fn(u32, Option<(ActorId, u32)>) -> bool,
        fx: &mut Effects<'_>,
    ) {
        let (design, members) = (self.design, &self.members);
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            let tasks = placed.open.spec.tasks;
            for at in 0..tasks {
                let group @ (base, len) = design.group(at, tasks);
                // A row that was never sent is not lost.
                let waits = || placed.choosing.iter().any(|c| c.base == base && at - base >= c.given);
                if !lost(at, placed.servers[at as usize]) || waits() {
                    continue;
                }
                let held = design.row(job, group, at - base, 0);
                if held.tasks().all(|task| placed.open.is_done(task.index)) {
                    continue;
                }
                let servers = &placed.servers[base as usize..(base + len) as usize];
                let taken: Vec<_> = servers.iter().flatten().map(|&(server, _)| server).collect();
                placed.servers[at as usize] = None;
                let Some(server) = members.another(fx.rng(), &taken) else { continue };
                let row = design.row(job, group, at - base, placed.open.attempts(1));
                placed.servers[at as usize] = Some((server, row.attempt));
                fx.recover(server, Launch::Row(row));
                for task in held.tasks().filter(|task| placed.open.is_done(task.index)) {
                    let below = placed.open.next_attempt();
                    fx.recover(server, Launch::Drop(TaskRange::one(task, below)));
                }
            }
        }
    }
}

impl ReplicatedJob {
    /// Sends the rows of the group that starts at `base` to these servers. A row without a server waits for a node.
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
            let row = design.row(job, group, i, self.open.first_attempt() + i);
            fx.send(server, Launch::Row(row));
            self.servers[(base + i) as usize] = Some((server, row.attempt));
        }
    }
}

impl Machine for Replication {
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
                if let Some(row) = resend(to, msg, fx) {
                    // Attempts are unique within a group: another row on its way to this node is not lost.
                    let group = row.base..row.base + u32::from(row.len);
                    let lost = |at, held| group.contains(&at) && held == Some((to, row.attempt));
                    self.relaunch(Some(row.job), lost, fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.relaunch(None, |_, held| held.is_some_and(|(server, _)| server == actor), fx);
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
            // `Start` needs no action. No other timer is armed. The remaining inputs go to workers only.
            _ => {}
        }
    }
}

impl Replication {
    /// Grants a node with a free core the next row of a group, without tasks that are done.
    fn claim(&mut self, from: ActorId, job: JobId, base: u32, repair: bool, fx: &mut Effects<'_>) {
        let granted = self.jobs.get_mut(job).and_then(|placed| {
            let at = placed.choosing.iter().position(|choice| choice.base == base)?;
            Some((placed.choosing[at].claimed(from), placed))
        });
        let Some((i, placed)) = granted else {
            return fx.send_as(repair, from, Probe::Nothing { job, group: base });
        };
        let group @ (_, len) = self.design.group(base, placed.open.spec.tasks);
        let row = self.design.row(job, group, i, placed.open.first_attempt() + i);
        placed.servers[(base + i) as usize] = Some((from, row.attempt));
        fx.send_as(repair, from, Probe::Grant { row, group: base });
        for task in row.tasks().filter(|task| placed.open.is_done(task.index)) {
            fx.send_as(repair, from, Launch::Drop(TaskRange::one(task, placed.open.next_attempt())));
        }
        if i + 1 == len {
            placed.withdraw(job, base, fx);
        } else if placed.choosing.iter().any(|choice| choice.base == base && choice.asked().next().is_none())
        {
            // There were fewer nodes than rows.
            self.repeat(job, fx);
        }
    }

    /// Repeats open reservations; a node that has the reservation ignores the repetition. Groups without any open
    /// reservation ask other nodes. Returns whether any group still waits.
    fn repeat(&mut self, job: JobId, fx: &mut Effects<'_>) -> bool {
        let Some(placed) = self.jobs.get_mut(job) else { return false };
        for choice in &mut placed.choosing {
            if choice.asked().next().is_none() {
                let (_, len) = self.design.group(choice.base, placed.open.spec.tasks);
                let places = (len - choice.given) * self.design.choices;
                self.members.sample(fx.rng(), places as usize, &mut self.sample);
                choice.ask(&self.sample);
            }
            for node in choice.asked() {
                fx.recover(node, Probe::Reserve { job, group: choice.base, count: 1, repair: true });
            }
        }
        !placed.choosing.is_empty()
    }

    /// Asks other nodes for groups that a crash left without any reservation.
    fn offer_again(&mut self, fx: &mut Effects<'_>) {
        let mut bare = Vec::new();
        for (job, placed) in self.jobs.iter_mut() {
            for choice in &mut placed.choosing {
                choice.keep(|node| self.members.has(node, fx.layout()));
            }
            if placed.choosing.iter().any(|choice| choice.asked().next().is_none()) {
                bare.push(job);
            }
        }
        for job in bare {
            self.repeat(job, fx);
        }
    }
}

impl ReplicatedJob {
    /// Cancels the open reservations of a group.
    fn withdraw(&mut self, job: JobId, base: u32, fx: &mut Effects<'_>) {
        if let Some(at) = self.choosing.iter().position(|choice| choice.base == base) {
            for node in self.choosing.swap_remove(at).asked() {
                fx.send(node, Probe::Cancel { job, group: base });
            }
        }
    }
}

/// Nodes that were asked for their queue length, or got a reservation, for the group that starts at `base`.
#[derive(Clone, Debug)]
struct Choice {
    pub base: u32,
    /// The nodes asked, each with its answer.
    asked: Vec<(ActorId, Option<i32>)>,
    /// Number of rows already granted.
    pub given: u32,
}

impl Choice {
    fn new(base: u32, nodes: &[ActorId]) -> Self {
        Self { base, asked: nodes.iter().map(|&node| (node, None)).collect(), given: 0 }
    }

    /// Records further nodes that were asked.
    fn ask(&mut self, nodes: &[ActorId]) {
        self.asked.extend(nodes.iter().map(|&node| (node, None)));
    }

    /// The nodes that were asked and have not claimed.
    fn asked(&self) -> impl Iterator<Item = ActorId> {
        self.asked.iter().map(|asked| asked.0)
    }

    /// Records the claim of a node; returns the index of its row.
    fn claimed(&mut self, node: ActorId) -> u32 {
        self.keep(|other| other != node);
        self.given += 1;
        self.given - 1
    }

    /// Drops the nodes for which `which` does not hold.
    fn keep(&mut self, which: impl Fn(ActorId) -> bool) {
        self.asked.retain(|asked| which(asked.0));
    }

    /// Records an answer; returns whether all answers have arrived. The latest answer of a node counts.
    fn answer(&mut self, node: ActorId, length: i32) -> bool {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.0 == node) {
            asked.1 = Some(length);
        }
        self.asked.iter().all(|asked| asked.1.is_some())
    }

    /// The nodes asked, by queue length; nodes without an answer come last, and ties stay in the random order of the
    /// sample.
    fn by_length(mut self) -> impl Iterator<Item = ActorId> {
        self.asked.sort_by_key(|asked| (asked.1.is_none(), asked.1));
        self.asked.into_iter().map(|asked| asked.0)
    }
}

#[cfg(test)]
mod tests;
