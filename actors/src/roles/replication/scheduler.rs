//! Redundant groups: a job's tasks are cut into groups of v, each group goes to v distinct servers, and every server of
//! a group holds all of its tasks, or as many as are asked for. Policies differ in the order on each server and in when
//! copies are dropped.

use super::choice::Choice;
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
    /// Every other copy of a task as soon as one finishes.
    PerTask,
    /// All remaining copies of a group when its last task finishes.
    PerGroup,
    /// Never: every copy runs to its end.
    Never,
}

/// Parameters of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// Tasks of a group, and servers it runs on; the last group of a job may be smaller.
    pub order: u32,
    /// Tasks that each server of a group holds, the first ones of its row; at most all tasks of a smaller group.
    pub columns: u32,
    /// Whether row i starts at task i (a latin square) or every row at the first task.
    pub staggered: bool,
    /// Event at which copies are dropped.
    pub drops: Drops,
    /// Nodes asked for each server of a group; those with the shortest queues get it. One: no node is asked.
    pub choices: u32,
    /// Whether nodes reserve places instead, and those that are free first get the rows.
    pub late: bool,
    /// Time to wait for answers; pause until places that may have been lost are requested again.
    pub patience: Span,
}

impl Design {
    /// First task and length of the group a task belongs to.
    pub(super) const fn group(self, task: u32, tasks: u32) -> (u32, u32) {
        let base = task / self.order * self.order;
        (base, if tasks - base < self.order { tasks - base } else { self.order })
    }

    /// Row `i` of the group of `len` tasks that starts at `base`.
    pub(super) const fn row(self, job: JobId, (base, len): (u32, u32), i: u32, attempt: u32) -> Row {
        let turn = if self.staggered { i as u16 } else { 0 };
        let width = if self.columns < len { self.columns } else { len } as u16;
        Row { job, base, len: len as u16, turn, width, attempt, elsewhere: false }
    }
}

pub(super) struct ReplicatedJob {
    pub(super) open: OpenJob,
    /// Server and attempt of row i of the group that starts at task b, at b + i; `None` while no node is alive.
    pub(super) servers: Vec<Option<(ActorId, u32)>>,
    /// Open tasks of each group, where groups are dropped as a whole.
    left: Vec<u32>,
    /// Groups that wait for answers; they have no servers yet.
    pub(super) choosing: Vec<Choice>,
    /// Number of repetitions of open places.
    repeats: u32,
}

/// A scheduler of redundant groups.
pub struct Replication {
    pub(super) design: Design,
    /// Whether the network can lose datagrams.
    lossy: bool,
    pub(super) members: Membership,
    pub(super) jobs: JobTable<ReplicatedJob>,
    pub(super) sample: Vec<ActorId>,
}

impl Replication {
    /// A scheduler of that design over the nodes of `layout`.
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
            self.sample.clear();
            self.members.sample(fx.rng(), (len * self.design.choices) as usize, &mut self.sample);
            if self.design.choices == 1 {
                // A square has every task in every row and can lack a row; a rectangle cannot.
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

    /// Fills the sample up to `len` live nodes, repeating nodes if there are too few.
    fn fill(&mut self, len: usize, fx: &mut Effects<'_>) {
        while self.sample.len() < len
            && let Some(node) = self.members.another(fx.rng(), &self.sample)
        {
            self.sample.push(node);
        }
    }

    /// Handles the timeout: decides without the missing answers, or asks again for places.
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
                    // Attempts are unique within a group: another row under way to this node is not lost.
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
            // A start needs no action; only rechecks are armed; the other inputs are a worker's.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};

    const LATIN: Design = Design {
        order: 3,
        columns: 3,
        staggered: true,
        drops: Drops::PerTask,
        choices: 1,
        late: false,
        patience: Span::from_secs(1),
    };
    const JOB: JobId = JobId(0);

    fn bench(design: Design, tasks: u32, nodes: usize) -> Harness {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        let me = layout.scheduler(0);
        let machine = Box::new(Replication::new(design, &layout, false));
        Harness::new(layout, me, tasks, machine)
    }

    fn rows(sent: &[(ActorId, Message)]) -> Vec<(ActorId, Row)> {
        sent.iter()
            .filter_map(
                |&(to, msg)| if let Message::Launch(Launch::Row(row)) = msg { Some((to, row)) } else { None },
            )
            .collect()
    }

    fn submit(bench: &mut Harness) -> Vec<(ActorId, Row)> {
        rows(&sends(&bench.submit(0)))
    }

    /// Table II: the square, and the messages to each server as tasks 0, 1, 2 complete on s1, s2, s3.
    #[test]
    fn table_ii_step_by_step() {
        let mut bench = bench(LATIN, 3, 9);
        let square = submit(&mut bench);
        let order = |row: Row| (0..3).map(|j| row.copy(j).task.index).collect::<Vec<_>>();
        let orders: Vec<_> = square.iter().map(|&(_, row)| order(row)).collect();
        assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        let servers: Vec<_> = square.iter().map(|&(server, _)| server).collect();
        for done in 0..3u32 {
            let on = servers[done as usize];
            let copy = square[done as usize].1.copy(0);
            assert_eq!(copy.task.index, done);
            let sent = bench.receive(on, Launch::Completed { copy });
            let drop = Message::from(Launch::Drop(TaskRange::one(copy.task, 3)));
            let others: Vec<_> = servers.iter().filter(|&&s| s != on).map(|&s| (s, drop)).collect();
            assert_eq!(sent[..2], others[..]);
            assert_eq!(
                sent[2..],
                if done == 2 {
                    vec![(bench.layout.client(0), Job::Finished { job: JOB }.into())]
                } else {
                    vec![]
                }
            );
            assert_eq!(bench.receive(on, Launch::Completed { copy }), [], "a late duplicate changes nothing");
        }
    }

    #[test]
    fn tasks_that_the_order_does_not_divide_get_a_smaller_square() {
        let mut bench = bench(LATIN, 7, 9);
        let rows = submit(&mut bench);
        let shape: Vec<_> = rows.iter().map(|(_, row)| (row.base, row.len, row.turn)).collect();
        assert_eq!(shape, [(0, 3, 0), (0, 3, 1), (0, 3, 2), (3, 3, 0), (3, 3, 1), (3, 3, 2), (6, 1, 0)]);
        for group in [&rows[..3], &rows[3..6]] {
            assert!(group[0].0 != group[1].0 && group[1].0 != group[2].0 && group[0].0 != group[2].0);
        }
    }

    /// Three tasks, two columns: each row holds two tasks, and only the two servers of a task drop it.
    #[test]
    fn in_a_youden_rectangle_only_the_servers_of_a_task_drop_it() {
        let mut bench = bench(Design { columns: 2, ..LATIN }, 3, 4);
        let rows = submit(&mut bench);
        let held = |row: Row| (0..row.width).map(|j| row.copy(j).task.index).collect::<Vec<_>>();
        assert_eq!(rows.iter().map(|&(_, row)| held(row)).collect::<Vec<_>>(), [[0, 1], [1, 2], [2, 0]]);
        let drop = Message::from(Launch::Drop(TaskRange::one(JOB.task(0), 3)));
        assert_eq!(
            bench.receive(rows[0].0, Launch::Completed { copy: rows[0].1.copy(0) }),
            [(rows[2].0, drop)]
        );
        // The first server has task 1 left, so its row is sent again if it is lost, without what is done.
        let after = sends(&bench.step(Input::Down { actor: rows[0].0 }));
        assert_eq!(after[1].1, Launch::Drop(TaskRange::one(JOB.task(0), 4)).into());
        bench.receive(rows[1].0, Launch::Completed { copy: rows[1].1.copy(0) });
        assert_eq!(sends(&bench.step(Input::Down { actor: after[0].0 })), [], "nothing of its row is open");
    }

    /// Two nodes for three rows of one task each: each row has a server all the same.
    #[test]
    fn a_rectangle_needs_a_server_for_every_row() {
        for (choices, late) in [(1, false), (2, false), (2, true)] {
            let mut bench = bench(Design { columns: 1, choices, late, ..LATIN }, 3, 2);
            let mut sent = sends(&bench.submit(0));
            let mut rows = 0;
            while let Some((node, msg)) = sent.pop() {
                let more = match msg {
                    Message::Probe(Probe::Sample { task, .. }) => {
                        bench.receive(node, Probe::Length { task, length: 0 })
                    }
                    Message::Probe(Probe::Reserve { job, group, repair, .. }) => {
                        bench.receive(node, Probe::Claim { job, group, repair })
                    }
                    Message::Probe(Probe::Grant { .. }) | Message::Launch(Launch::Row(_)) => {
                        rows += 1;
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                sent.extend(more);
            }
            assert_eq!(rows, 3, "{choices} choices, late: {late}");
        }
    }

    /// Two of four nodes get the square: those with the shortest queues, in any order of their answers.
    #[test]
    fn the_shortest_of_the_sampled_queues_are_chosen() {
        let mut bench = bench(Design { order: 2, columns: 2, choices: 2, ..LATIN }, 2, 9);
        let asked = sends(&bench.submit(0));
        let question = Message::from(Probe::Sample { task: JOB.task(0), repair: false });
        assert!(asked.len() == 4 && asked.iter().all(|&(_, msg)| msg == question));
        let answer = |length| Probe::Length { task: JOB.task(0), length };
        assert_eq!(bench.receive(asked[2].0, answer(4)), []);
        assert_eq!(bench.receive(asked[0].0, answer(1)), []);
        assert_eq!(bench.receive(asked[0].0, answer(1)), [], "the same answer, doubled");
        assert_eq!(bench.receive(asked[3].0, answer(0)), []);
        let sent = rows(&bench.receive(asked[1].0, answer(3)));
        let servers: Vec<_> = sent.iter().map(|&(server, row)| (server, row.turn, row.attempt)).collect();
        assert_eq!(servers, [(asked[3].0, 0, 0), (asked[0].0, 1, 1)]);
        assert_eq!(bench.receive(asked[1].0, answer(3)), [], "late");
    }

    /// One node answers, one dies, two are silent: after a while the square goes to the remaining nodes.
    #[test]
    fn missing_answers_are_not_waited_for_for_ever() {
        let mut bench = bench(Design { order: 2, columns: 2, choices: 2, ..LATIN }, 2, 4);
        let asked = sends(&bench.submit(0));
        bench.receive(asked[3].0, Probe::Length { task: JOB.task(0), length: 9 });
        assert_eq!(sends(&bench.step(Input::Down { actor: asked[0].0 })), [], "nothing is lost yet");
        let over = Input::Fire(Timer::Recheck { job: JOB, attempt: 0 });
        let servers: Vec<_> = rows(&sends(&bench.step(over))).iter().map(|&(server, _)| server).collect();
        assert_eq!(servers, [asked[3].0, asked[1].0]);
        assert_eq!(bench.step(over), []);
    }

    /// Four nodes keep a place for a square of two: the first two that ask get its rows, the others nothing.
    #[test]
    fn rows_go_to_the_nodes_that_are_free_first() {
        let mut bench = bench(Design { order: 2, columns: 2, choices: 2, late: true, ..LATIN }, 2, 9);
        let asked = sends(&bench.submit(0));
        let place = Message::from(Probe::Reserve { job: JOB, group: 0, count: 1, repair: false });
        assert!(asked.len() == 4 && asked.iter().all(|&(_, msg)| msg == place));
        let claim = Probe::Claim { job: JOB, group: 0, repair: false };
        let row =
            |turn, attempt| Row { job: JOB, base: 0, len: 2, turn, width: 2, attempt, elsewhere: false };
        let grant = |turn| Message::from(Probe::Grant { row: row(turn, u32::from(turn)), group: 0 });
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| asked[i].0);
        assert_eq!(bench.receive(c, claim), [(c, grant(0))]);
        // It finishes the first task before another node is free.
        assert_eq!(bench.receive(c, Launch::Completed { copy: JOB.task(0).copy(0) }), []);
        // One dies, which leaves enough places.
        assert_eq!(sends(&bench.step(Input::Down { actor: d })), []);
        let late = bench.receive(a, claim);
        let done = Launch::Drop(TaskRange::one(JOB.task(0), 2)).into();
        let cancel = Probe::Cancel { job: JOB, group: 0 }.into();
        assert_eq!(late, [(a, grant(1)), (a, done), (b, cancel)]);
        assert_eq!(bench.receive(b, claim), [(b, Probe::Nothing { job: JOB, group: 0 }.into())]);
    }

    /// All nodes die, one of them with a row; when it is back it gets that row again, and a place for the other.
    #[test]
    fn a_row_that_is_lost_with_all_nodes_is_not_forgotten() {
        let mut bench = bench(Design { order: 2, columns: 1, choices: 2, late: true, ..LATIN }, 2, 2);
        let asked = sends(&bench.submit(0));
        let [a, b] = [asked[0].0, asked[1].0];
        bench.receive(a, Probe::Claim { job: JOB, group: 0, repair: false });
        bench.step(Input::Down { actor: b });
        assert_eq!(sends(&bench.step(Input::Down { actor: a })), [], "nobody is left");
        let sent = sends(&bench.step(Input::Up { actor: a }));
        let place = Probe::Reserve { job: JOB, group: 0, count: 1, repair: true }.into();
        let row = Row { job: JOB, base: 0, len: 2, turn: 0, width: 1, attempt: 2, elsewhere: false };
        assert_eq!(sent, [(a, Launch::Row(row).into()), (a, place)]);
    }

    /// The last node with a place dies, and others are asked; the end of a group makes places void.
    #[test]
    fn lost_places_are_requested_again() {
        let mut bench = bench(Design { order: 2, columns: 2, choices: 2, late: true, ..LATIN }, 2, 2);
        let asked = sends(&bench.submit(0));
        let [a, b] = [asked[0].0, asked[1].0];
        let claim = Probe::Claim { job: JOB, group: 0, repair: false };
        bench.receive(a, claim);
        let again = Probe::Reserve { job: JOB, group: 0, count: 1, repair: true }.into();
        assert_eq!(sends(&bench.step(Input::Down { actor: b })), [(a, again)]);
        bench.receive(a, Launch::Completed { copy: JOB.task(0).copy(0) });
        let end = bench.receive(a, Launch::Completed { copy: JOB.task(1).copy(0) });
        assert!(end.contains(&(a, Probe::Cancel { job: JOB, group: 0 }.into())), "{end:?}");
    }

    #[test]
    fn full_repetition_drops_a_branch_at_its_end() {
        let design = Design { order: 2, columns: 2, staggered: false, drops: Drops::PerGroup, ..LATIN };
        let mut bench = bench(design, 2, 4);
        let rows = submit(&mut bench);
        assert_eq!(rows.iter().map(|(_, row)| row.turn).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(bench.receive(rows[0].0, Launch::Completed { copy: rows[0].1.copy(0) }), []);
        let sent = bench.receive(rows[1].0, Launch::Completed { copy: rows[1].1.copy(1) });
        assert_eq!(sent.len(), 3, "both servers drop the branch, the client hears of the end");
    }

    #[test]
    fn a_dead_server_is_replaced_by_one_the_branch_does_not_have() {
        let mut bench = bench(LATIN, 3, 4);
        let before = submit(&mut bench);
        bench.receive(before[1].0, Launch::Completed { copy: before[1].1.copy(0) });
        let after = sends(&bench.step(Input::Down { actor: before[0].0 }));
        let row = rows(&after);
        assert_eq!(row.len(), 1);
        assert!(before.iter().all(|(server, _)| *server != row[0].0));
        assert_eq!((row[0].1.turn, row[0].1.attempt), (0, 3), "the same row, a fresh attempt");
        assert_eq!(
            after[1].1,
            Launch::Drop(TaskRange::one(JOB.task(1), 4)).into(),
            "what is done stays done"
        );
    }
}
