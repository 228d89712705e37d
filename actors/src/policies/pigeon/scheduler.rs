//! The scheduler of Pigeon. It divides the tasks of a job among the masters (section 2.2 of the paper), by their load
//! if they report it (section 6.2), and counts results.

mod recovery;

use std::collections::BTreeSet;

use super::config::Pigeon;
use super::groups::WorkerGroups;
use super::masters::{GroupMasters, MasterClaim};
use super::reports::GroupLoad;
use super::task_scheduling::{GroupShare, Splitter};
use crate::base::{ActorId, JobId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Batch, Group, Job, Launch, Message, Waiting};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::resend;

/// Destination of the last copy of a task, as group and attempt; `None` while no group can be used.
type SentTo = Option<(u32, u32)>;

#[derive(Clone, Debug)]
struct PigeonJob {
    open: OpenJob,
    tasks: Box<[SentTo]>,
}

impl PigeonJob {
    /// The open tasks for which `there` holds of the destination of their last copy.
    fn open_tasks(&self, there: impl Fn(SentTo) -> bool) -> Vec<u32> {
        let is_there = |&index: &u32| !self.open.is_done(index) && there(self.tasks[index as usize]);
        (0..self.open.spec.tasks).filter(is_there).collect()
    }

    /// Records that tasks go to a group, and sends them in batches.
    fn send(
        &mut self,
        job: JobId,
        (group, attempt): (u32, u32),
        tasks: impl Iterator<Item = u32>,
        send: impl FnMut(Batch),
    ) {
        let tasks = tasks.inspect(|&index| self.tasks[index as usize] = Some((group, attempt)));
        batches(job, attempt, tasks, send);
    }
}

/// A group as a scheduler sees it.
#[derive(Clone, Debug)]
struct GroupView {
    masters: GroupMasters,
    reachable: bool,
    load: GroupLoad,
}

/// A distributed scheduler.
#[derive(Clone, Debug)]
pub(super) struct PigeonScheduler {
    groups: WorkerGroups,
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
            masters: GroupMasters::new(&groups, group, layout),
            reachable: true,
            load: GroupLoad::default(),
        };
        Self {
            splitter: Splitter::new(config.split, groups.count),
            views: (0..groups.count).map(view).collect(),
            groups,
            down: BTreeSet::new(),
            jobs: JobTable::default(),
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let tasks = vec![None; open.spec.tasks as usize].into();
        self.jobs.open(job, PigeonJob { open, tasks });
        self.launch(job, false, fx);
    }

    /// Divides the open tasks of a job that no group has among the masters (section 2.2). `recovery` says whether
    /// these tasks were lost.
    fn launch(&mut self, job: JobId, recovery: bool, fx: &mut Effects<'_>) {
        let Role::Scheduler(scheduler) = fx.layout().role(fx.me()) else { return };
        let Some(entry) = self.jobs.get_mut(job) else { return };
        let tasks = entry.open_tasks(|sent| sent.is_none());
        if tasks.is_empty() || (recovery && self.splitter.groups.is_empty()) {
            return;
        }
        let shares = self.split(tasks.len(), fx);
        let Some(entry) = self.jobs.get_mut(job) else { return };
        let attempt = entry.open.attempts(1);
        for GroupShare { group, base, len, step } in shares {
            let Some(master) = self.views[group as usize].masters.current() else { continue };
            let part = tasks[base..].iter().copied().step_by(step).take(len);
            entry.send(job, (group, attempt), part, |batch| {
                fx.send_as(recovery, master, Group::Tasks(Waiting { scheduler, batch }));
            });
        }
    }

    /// Handles a message of a master.
    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        let Some(group) = self.groups.group_of(from, fx.layout()) else { return };
        let view = &mut self.views[group as usize];
        match msg {
            Group::Ask => self.answer(group, from, fx),
            Group::Takes { term, at } => {
                let claim = MasterClaim { term, at: at.into(), node: from };
                let is_worker = matches!(fx.layout().role(from), Role::Node(_));
                // Workers repeat their claims; a repeated claim has already been answered.
                let is_new = if is_worker { view.masters.accept(claim) } else { Some(true) };
                let Some(is_new) = is_new else { return };
                let was_reachable = std::mem::replace(&mut view.reachable, true);
                if is_new {
                    self.answer(group, from, fx);
                }
                if is_new || !was_reachable {
                    self.regroup(fx);
                }
            }
            Group::Lengths { waiting, busy, at } => view.load.report(waiting.saturating_add(busy), at.into()),
            _ => fx.unexpected(&msg.into()),
        }
    }

    /// Divides tasks among the groups in use.
    fn split(&mut self, tasks: usize, fx: &mut Effects<'_>) -> Vec<GroupShare> {
        let lengths = self.groups.config.lengths;
        if lengths == Span::ZERO {
            return self.splitter.even(tasks, fx.rng());
        }
        let (now, layout, views) = (fx.now(), fx.layout(), &mut self.views);
        views.iter_mut().for_each(|view| view.load.forget(now, lengths));
        let workers = |group| self.groups.workers(group, layout).len() as u32;
        let load = |group| (views[group as usize].load.tasks(), workers(group));
        let shares = self.splitter.level(tasks, load, fx.rng());
        for share in &shares {
            views[share.group as usize].load.send(share.len as u32, now);
        }
        shares
    }
}

/// Sends tasks in as few batches as possible; the tasks of a batch have equal distances.
fn batches(job: JobId, attempt: u32, tasks: impl Iterator<Item = u32>, mut send: impl FnMut(Batch)) {
    let mut batch: Option<Batch> = None;
    for index in tasks {
        match &mut batch {
            Some(last) if last.len == 1 => (last.step, last.len) = (index - last.base, 2),
            Some(last) if index == last.base + last.len * last.step => last.len += 1,
            _ => batch.replace(Batch::single(job.task(index).copy(attempt))).into_iter().for_each(&mut send),
        }
    }
    batch.into_iter().for_each(send);
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
                Message::Group(Group::Tasks(tasks) | Group::Open(tasks)) => self.refused(to, tasks.batch, fx),
                _ => drop(resend(to, msg, fx)),
            },
            Input::Fire(Timer::Tick(group)) => {
                self.views[group as usize].reachable = true;
                self.regroup(fx);
            }
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // `Start` needs no action. No other timer is armed. The remaining inputs go to workers only.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_sent_in_as_few_batches_as_possible() {
        let of = |tasks: &[u32]| {
            let mut all = Vec::new();
            batches(JobId(0), 7, tasks.iter().copied(), |batch| all.push(batch));
            assert!(all.iter().flat_map(|batch| batch.indices()).eq(tasks.iter().copied()));
            all.len()
        };
        assert_eq!([of(&[]), of(&[4]), of(&[4, 5, 6]), of(&[1, 4, 7, 10])], [0, 1, 1, 1]);
        assert_eq!([of(&[0, 1, 5, 6, 7]), of(&[0, 1, 2, 9])], [2, 2]);
    }
}
