//! Redundant groups: a job's tasks are cut into groups of v, each group goes to v distinct servers, and every
//! server of a group holds all of its tasks. What differs between policies is the order on each server and
//! when copies are dropped.

use super::jobs::{Completion, JobTable, Open};
use super::members::Members;
use super::returned;
use crate::base::{ActorId, CopyId, JobId};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Job, Launch, Message, Row, Tasks};

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
    /// Whether row i starts at task i (a latin square) or every row at the first task.
    pub staggered: bool,
    /// When copies are dropped.
    pub drops: Drops,
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
        Row { job, base, len: len as u16, turn, attempt }
    }
}

#[derive(Debug)]
struct Placed {
    open: Open,
    /// Server of row i of the group that starts at task b, at b + i; `None` while no node is alive.
    servers: Vec<Option<ActorId>>,
    /// Open tasks of each group, where groups are dropped as a whole.
    left: Vec<u32>,
}

/// A scheduler of redundant groups.
#[derive(Debug)]
pub struct Redundant {
    design: Design,
    members: Members,
    jobs: JobTable<Placed>,
    sample: Vec<ActorId>,
}

impl Redundant {
    /// A scheduler of that design over the nodes of `layout`.
    #[must_use]
    pub fn new(design: Design, layout: &Layout) -> Self {
        Self { design, members: Members::new(layout), jobs: JobTable::default(), sample: Vec::new() }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let tasks = open.spec.tasks;
        let attempt = open.attempts(self.design.order);
        let mut servers = Vec::with_capacity(tasks as usize);
        let mut left = Vec::new();
        let mut base = 0;
        while base < tasks {
            let group @ (_, len) = self.design.group(base, tasks);
            self.sample.clear();
            self.members.sample(fx.rng(), len as usize, &mut self.sample);
            for i in 0..len {
                let server = self.sample.get(i as usize).copied();
                if let Some(server) = server {
                    fx.send(server, Launch::Row(self.design.row(job, group, i, attempt + i)));
                }
                servers.push(server);
            }
            if self.design.drops == Drops::PerGroup {
                left.push(len);
            }
            base += len;
        }
        self.jobs.open(job, Placed { open, servers, left });
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let (job, task) = (copy.task.job, copy.task.index);
        let design = self.design;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        let completion = placed.open.complete(task);
        if completion == Completion::Duplicate {
            return;
        }
        let (base, len) = design.group(task, placed.open.spec.tasks);
        let group = &placed.servers[base as usize..(base + len) as usize];
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
            let only = group.iter().filter(|server| **server == Some(from)).count() == 1;
            let skip = (design.drops == Drops::PerTask && only).then_some(from);
            for &server in group.iter().flatten().filter(|&&s| Some(s) != skip) {
                fx.send(server, Launch::Drop(tasks));
            }
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
                if !lost(at, placed.servers[at as usize]) {
                    continue;
                }
                let group @ (base, len) = design.group(at, tasks);
                if (base..base + len).all(|task| placed.open.is_done(task)) {
                    continue;
                }
                let taken: Vec<_> =
                    placed.servers[base as usize..(base + len) as usize].iter().flatten().copied().collect();
                let server = members.another(fx.rng(), &taken);
                placed.servers[at as usize] = server;
                let Some(server) = server else { continue };
                let row = design.row(job, group, at - base, placed.open.attempts(1));
                fx.recover(server, Launch::Row(row));
                for task in (base..base + len).filter(|&task| placed.open.is_done(task)) {
                    let below = placed.open.next_attempt();
                    fx.recover(server, Launch::Drop(Tasks::one(job.task(task), below)));
                }
            }
        }
    }
}

impl Machine for Redundant {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => {
                if let Some(row) = returned(to, msg, fx) {
                    let group = row.base..row.base + u32::from(row.len);
                    self.relaunch(Some(row.job), |at, server| group.contains(&at) && server == Some(to), fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.relaunch(None, |_, server| server == Some(actor), fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                self.relaunch(None, |_, server| server.is_none(), fx);
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
mod tests {
    use super::*;
    use crate::scripts::{Bench, sends};

    const LATIN: Design = Design { order: 3, staggered: true, drops: Drops::PerTask };
    const JOB: JobId = JobId(0);

    fn bench(design: Design, tasks: u32, nodes: usize) -> Bench {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        let me = layout.scheduler(0);
        let machine = Box::new(Redundant::new(design, &layout));
        Bench::new(layout, me, tasks, machine)
    }

    fn rows(sent: &[(ActorId, Message)]) -> Vec<(ActorId, Row)> {
        sent.iter()
            .filter_map(
                |&(to, msg)| if let Message::Launch(Launch::Row(row)) = msg { Some((to, row)) } else { None },
            )
            .collect()
    }

    fn submit(bench: &mut Bench) -> Vec<(ActorId, Row)> {
        rows(&bench.hear(bench.layout.client(0), Job::Submit { job: JOB, round: 0 }))
    }

    /// Table II: the square, and what the scheduler tells whom as tasks 0, 1, 2 complete on s1, s2, s3.
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
            let sent = bench.hear(on, Launch::Completed { copy });
            let drop = Message::from(Launch::Drop(Tasks::one(copy.task, 3)));
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
            assert_eq!(bench.hear(on, Launch::Completed { copy }), [], "a late duplicate changes nothing");
        }
    }

    #[test]
    fn what_the_order_does_not_divide_gets_a_smaller_square() {
        let mut bench = bench(LATIN, 7, 9);
        let rows = submit(&mut bench);
        let shape: Vec<_> = rows.iter().map(|(_, row)| (row.base, row.len, row.turn)).collect();
        assert_eq!(shape, [(0, 3, 0), (0, 3, 1), (0, 3, 2), (3, 3, 0), (3, 3, 1), (3, 3, 2), (6, 1, 0)]);
        for group in [&rows[..3], &rows[3..6]] {
            assert!(group[0].0 != group[1].0 && group[1].0 != group[2].0 && group[0].0 != group[2].0);
        }
    }

    #[test]
    fn full_repetition_drops_a_branch_at_its_end() {
        let design = Design { order: 2, staggered: false, drops: Drops::PerGroup };
        let mut bench = bench(design, 2, 4);
        let rows = submit(&mut bench);
        assert_eq!(rows.iter().map(|(_, row)| row.turn).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(bench.hear(rows[0].0, Launch::Completed { copy: rows[0].1.copy(0) }), []);
        let sent = bench.hear(rows[1].0, Launch::Completed { copy: rows[1].1.copy(1) });
        assert_eq!(sent.len(), 3, "both servers drop the branch, the client hears of the end");
    }

    #[test]
    fn a_dead_server_is_replaced_by_one_the_branch_does_not_have() {
        let mut bench = bench(LATIN, 3, 4);
        let before = submit(&mut bench);
        bench.hear(before[1].0, Launch::Completed { copy: before[1].1.copy(0) });
        let after = sends(&bench.step(Input::Down { actor: before[0].0 }));
        let row = rows(&after);
        assert_eq!(row.len(), 1);
        assert!(before.iter().all(|(server, _)| *server != row[0].0));
        assert_eq!((row[0].1.turn, row[0].1.attempt), (0, 3), "the same row, a fresh attempt");
        assert_eq!(after[1].1, Launch::Drop(Tasks::one(JOB.task(1), 4)).into(), "what is done stays done");
    }
}
