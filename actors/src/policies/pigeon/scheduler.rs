//! The scheduler of Pigeon: deals the tasks of a job out to the masters and counts results.

use std::collections::BTreeSet;

use super::claim::{GroupMasters, MasterClaim};
use super::config::Pigeon;
use super::groups::WorkerGroups;
use super::load::GroupLoad;
use super::split::{GroupShare, Splitter};
use crate::base::{ActorId, JobId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Batch, Group, Job, Launch, Message};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::{RETRY_AFTER, resend};

/// Where the last copy of a task was sent: the group and the attempt; `None` while no group can be used.
type SentTo = Option<(u32, u32)>;

struct PigeonJob {
    open: OpenJob,
    tasks: Box<[SentTo]>,
}

/// A group as a scheduler sees it.
struct GroupView {
    masters: GroupMasters,
    workers: u32,
    reachable: bool,
    load: GroupLoad,
}

/// A distributed scheduler.
pub(super) struct PigeonScheduler {
    groups: WorkerGroups,
    /// How often masters report their lengths; zero: never.
    lengths: Span,
    splitter: Splitter,
    views: Box<[GroupView]>,
    /// Nodes that are down.
    down: BTreeSet<u32>,
    jobs: JobTable<PigeonJob>,
}

impl PigeonScheduler {
    pub(super) fn new(config: &Pigeon, layout: &Layout) -> Self {
        let groups = WorkerGroups::new(config, layout);
        let view = |group| GroupView {
            masters: GroupMasters::new(groups.master(group, layout), groups.standby(group, layout)),
            workers: groups.workers(group, layout).len() as u32,
            reachable: true,
            load: GroupLoad::default(),
        };
        Self {
            groups,
            lengths: config.lengths,
            splitter: Splitter::new(config.split, groups.count()),
            views: (0..groups.count()).map(view).collect(),
            down: BTreeSet::new(),
            jobs: JobTable::default(),
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (attempt, count) = (open.attempts(1), open.spec.tasks);
        let mut tasks = vec![None; count as usize].into_boxed_slice();
        let short = open.spec.class == 0;
        let shares = split(&mut self.splitter, &mut self.views, self.lengths, count, fx);
        for &GroupShare { group, base, len, step } in shares {
            let batch = Batch { job, base, len, step, attempt };
            batch.indices().for_each(|index| tasks[index as usize] = Some((group, attempt)));
            send(&self.views[group as usize], batch, short, false, fx);
        }
        self.jobs.open(job, PigeonJob { open, tasks });
    }

    /// Sends the open tasks of a job that are nowhere to groups.
    fn launch(&mut self, job: JobId, fx: &mut Effects<'_>) {
        if !self.splitter.has_groups() {
            return;
        }
        let Some(PigeonJob { open, tasks }) = self.jobs.get_mut(job) else { return };
        let nowhere = |&index: &u32| tasks[index as usize].is_none() && !open.is_done(index);
        let list: Vec<_> = (0..open.spec.tasks).filter(nowhere).collect();
        if list.is_empty() {
            return;
        }
        let (attempt, short) = (open.attempts(1), open.spec.class == 0);
        let shares = split(&mut self.splitter, &mut self.views, self.lengths, list.len() as u32, fx);
        for &GroupShare { group, base, len, step } in shares {
            let part: Vec<_> = (0..len).map(|i| list[(base + i * step) as usize]).collect();
            part.iter().for_each(|&index| tasks[index as usize] = Some((group, attempt)));
            for batch in batches(job, attempt, &part) {
                send(&self.views[group as usize], batch, short, true, fx);
            }
        }
    }

    /// Marks open tasks as nowhere, and sends them and all others that are.
    fn relaunch(&mut self, lost: impl Fn(JobId, u32, SentTo) -> bool, fx: &mut Effects<'_>) {
        let mut jobs = Vec::new();
        for (job, PigeonJob { open, tasks }) in self.jobs.iter_mut() {
            for (index, sent) in (0..).zip(tasks.iter_mut()) {
                if !open.is_done(index) && lost(job, index, *sent) {
                    *sent = None;
                }
            }
            jobs.push(job);
        }
        jobs.into_iter().for_each(|job| self.launch(job, fx));
    }

    /// Tells a master the open tasks of its group, with fresh attempt numbers.
    fn answer(&mut self, group: u32, master: ActorId, fx: &mut Effects<'_>) {
        let Role::Scheduler(scheduler) = fx.layout().role(fx.me()) else { return };
        for (job, PigeonJob { open, tasks }) in self.jobs.iter_mut() {
            let here = |index: &u32| {
                !open.is_done(*index) && tasks[*index as usize].is_some_and(|(of, _)| of == group)
            };
            let part: Vec<_> = (0..open.spec.tasks).filter(here).collect();
            if part.is_empty() {
                continue;
            }
            let (attempt, short) = (open.attempts(1), open.spec.class == 0);
            part.iter().for_each(|&index| tasks[index as usize] = Some((group, attempt)));
            for batch in batches(job, attempt, &part) {
                fx.recover(master, Group::Open { short, scheduler, batch });
            }
        }
    }

    /// The group of a master; `None` if it is none.
    fn group_of(&self, actor: ActorId, layout: &Layout) -> Option<u32> {
        match layout.role(actor) {
            Role::Auxiliary(master) => Some(self.groups.of_master(master).0),
            Role::Node(node) => Some(self.groups.of(node, layout)),
            _ => None,
        }
    }

    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        let Some(group) = self.group_of(from, fx.layout()) else { return };
        match msg {
            Group::Ask => self.answer(group, from, fx),
            Group::Takes { term, at } => {
                let claim = MasterClaim { term, at: at.into(), node: from };
                let is_worker = matches!(fx.layout().role(from), Role::Node(_));
                let masters = &mut self.views[group as usize].masters;
                // A worker repeats what it has said; it has been answered.
                let is_known = is_worker && masters.has(claim);
                if is_worker && !masters.accept(claim) {
                    return;
                }
                let was_reachable = std::mem::replace(&mut self.views[group as usize].reachable, true);
                if !is_known {
                    self.answer(group, from, fx);
                }
                if !(is_known && was_reachable) {
                    self.regroup(fx);
                }
            }
            Group::Lengths { waiting, busy, at } => {
                self.views[group as usize].load.report(waiting.saturating_add(busy), at.into());
            }
            Group::Tasks { .. }
            | Group::Run { .. }
            | Group::Idle { .. }
            | Group::Status { .. }
            | Group::Open { .. }
            | Group::Watch
            | Group::Mirror(_) => fx.unexpected(&msg.into()),
        }
    }

    /// Whether tasks can be sent to a group: it has a master that can be reached, and a node.
    fn is_usable(&self, group: u32, layout: &Layout) -> bool {
        let view = &self.views[group as usize];
        view.reachable && view.masters.current().is_some() && self.has_nodes(group, layout)
    }

    fn has_nodes(&self, group: u32, layout: &Layout) -> bool {
        let nodes = self.groups.worker_nodes(group, layout);
        let down = self.down.range(nodes.clone()).count();
        down < nodes.len()
    }

    /// Uses the groups that can be used, for tasks that found none as well.
    fn regroup(&mut self, fx: &mut Effects<'_>) {
        self.set_groups(fx.layout());
        self.relaunch(|_, _, _| false, fx);
    }

    fn set_groups(&mut self, layout: &Layout) {
        let usable: Vec<_> =
            (0..self.groups.count()).filter(|&group| self.is_usable(group, layout)).collect();
        self.splitter.set_groups(usable.into_iter());
    }

    /// Tasks that could not be delivered go to other groups, unless they have been dealt with since.
    fn refused(&mut self, to: ActorId, batch: Batch, fx: &mut Effects<'_>) {
        let Some(group) = self.group_of(to, fx.layout()) else { return };
        let current = self.views[group as usize].masters.current();
        if current == Some(to) {
            self.views[group as usize].reachable = false;
            fx.arm(Timer::Tick(group), RETRY_AFTER);
        }
        let Some(PigeonJob { open, tasks }) = self.jobs.get_mut(batch.job) else { return };
        for index in batch.indices().filter(|&index| !open.is_done(index)) {
            let sent = &mut tasks[index as usize];
            if *sent == Some((group, batch.attempt)) {
                *sent = None;
            }
        }
        self.set_groups(fx.layout());
        self.launch(batch.job, fx);
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let Some(group) = self.group_of(actor, layout) else { return };
        self.views[group as usize].masters.set(actor, false);
        if let Role::Node(node) = layout.role(actor) {
            self.down.insert(node);
        }
        self.regroup(fx);
        if !self.has_nodes(group, layout) {
            self.relaunch(|_, _, sent| sent.is_some_and(|(of, _)| of == group), fx);
        }
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let Some(group) = self.group_of(actor, layout) else { return };
        match layout.role(actor) {
            Role::Node(node) => drop(self.down.remove(&node)),
            _ => drop(self.views[group as usize].masters.set(actor, true)),
        }
        self.regroup(fx);
    }
}

/// Splits tasks among the groups in use.
fn split<'a>(
    splitter: &'a mut Splitter,
    views: &mut [GroupView],
    lengths: Span,
    tasks: u32,
    fx: &mut Effects<'_>,
) -> &'a [GroupShare] {
    if lengths == Span::ZERO {
        return splitter.even(tasks, fx.rng());
    }
    let now = fx.now();
    views.iter_mut().for_each(|view| view.load.forget(now, lengths));
    let (workers, load) = (|group| views[group as usize].workers, |group| views[group as usize].load.tasks());
    let shares = splitter.level(tasks, workers, load, fx.rng());
    for share in shares {
        views[share.group as usize].load.send(share.len, now);
    }
    shares
}

/// Sends tasks to the master of a group.
fn send(view: &GroupView, batch: Batch, short: bool, recovery: bool, fx: &mut Effects<'_>) {
    if let (Some(master), Role::Scheduler(scheduler)) = (view.masters.current(), fx.layout().role(fx.me())) {
        fx.send_as(recovery, master, Group::Tasks { short, scheduler, batch });
    }
}

/// Tasks in as few batches as consecutive equal distances allow.
fn batches(job: JobId, attempt: u32, tasks: &[u32]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for &index in tasks {
        match batches.last_mut() {
            Some(last) if last.len == 1 => {
                last.step = index - last.base;
                last.len = 2;
            }
            Some(last) if index == last.base + last.len * last.step => last.len += 1,
            _ => batches.push(Batch::single(job.task(index).copy(attempt))),
        }
    }
    batches
}

impl Machine for PigeonScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => {
                    self.jobs.complete(copy.task, |job| &mut job.open, fx);
                }
                Message::Group(msg) => self.receive(from, msg, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => match msg {
                Message::Group(Group::Tasks { batch, .. } | Group::Open { batch, .. }) => {
                    self.refused(to, batch, fx);
                }
                _ => drop(resend(to, msg, fx)),
            },
            Input::Fire(Timer::Tick(group)) => {
                self.views[group as usize].reachable = true;
                self.regroup(fx);
            }
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // A start needs no action; only ticks are armed; the other inputs are a worker's.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_sent_in_few_batches() {
        let of = |tasks: &[u32]| {
            let batches = batches(JobId(0), 7, tasks);
            assert!(batches.iter().flat_map(|batch| batch.indices()).eq(tasks.iter().copied()));
            batches.len()
        };
        assert_eq!([of(&[]), of(&[4]), of(&[4, 5, 6]), of(&[1, 4, 7, 10])], [0, 1, 1, 1]);
        assert_eq!([of(&[0, 1, 5, 6, 7]), of(&[0, 1, 2, 9])], [2, 2]);
    }
}
