//! Recovery of a scheduler: lost tasks, and groups whose masters or workers crash (section 6.1 of the paper; the
//! details are ours).

use super::PigeonScheduler;
use crate::base::ActorId;
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Timer};
use crate::message::{Batch, Group, Waiting};
use crate::roles::RETRY_AFTER;

impl PigeonScheduler {
    /// Sends a master the open tasks of its group, with fresh attempt numbers.
    pub(super) fn answer(&mut self, group: u32, master: ActorId, fx: &mut Effects<'_>) {
        let Role::Scheduler(scheduler) = fx.layout().role(fx.me()) else { return };
        for (job, entry) in self.jobs.iter_mut() {
            let tasks = entry.open_tasks(|sent| sent.is_some_and(|(of, _)| of == group));
            if tasks.is_empty() {
                continue;
            }
            let attempt = entry.open.attempts(1);
            entry.send(job, (group, attempt), tasks.into_iter(), |batch| {
                fx.recover(master, Group::Open(Waiting { scheduler, batch }));
            });
        }
    }

    /// Updates the groups in use, to which tasks can be sent: those with a node and a reachable master. Returns which
    /// groups have nodes.
    fn set_groups(&mut self, layout: &Layout) -> Vec<bool> {
        let count = self.groups.count;
        let with_nodes: Vec<_> = (0..count).map(|group| self.has_nodes(group, layout)).collect();
        let is_usable = |&group: &u32| {
            let view = &self.views[group as usize];
            view.reachable && view.masters.current().is_some() && with_nodes[group as usize]
        };
        self.splitter.set_groups((0..count).filter(is_usable).collect());
        with_nodes
    }

    /// Updates the groups in use. Sends the tasks that no group has, and those of groups without nodes.
    pub(super) fn regroup(&mut self, fx: &mut Effects<'_>) {
        let with_nodes = self.set_groups(fx.layout());
        let mut jobs = Vec::new();
        for (job, entry) in self.jobs.iter_mut() {
            for sent in &mut entry.tasks {
                *sent = sent.filter(|(group, _)| with_nodes[*group as usize]);
            }
            jobs.push(job);
        }
        jobs.into_iter().for_each(|job| self.launch(job, true, fx));
    }

    fn has_nodes(&self, group: u32, layout: &Layout) -> bool {
        self.groups.worker_nodes(group, layout).any(|node| !self.down.contains(&node))
    }

    /// Sends undelivered tasks to other groups, unless they were handled meanwhile.
    pub(super) fn refused(&mut self, to: ActorId, batch: Batch, fx: &mut Effects<'_>) {
        let Some(group) = self.groups.group_of(to, fx.layout()) else { return };
        let view = &mut self.views[group as usize];
        if view.masters.current() == Some(to) {
            view.reachable = false;
            fx.arm(Timer::Tick(group), RETRY_AFTER);
        }
        self.set_groups(fx.layout());
        let Some(entry) = self.jobs.get_mut(batch.job) else { return };
        for index in batch.indices() {
            let sent = &mut entry.tasks[index as usize];
            *sent = sent.filter(|sent| *sent != (group, batch.attempt));
        }
        self.launch(batch.job, true, fx);
    }

    pub(super) fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Some(group) = self.groups.group_of(actor, fx.layout()) else { return };
        self.views[group as usize].masters.record(actor, false);
        if let Role::Node(node) = fx.layout().role(actor) {
            self.down.insert(node);
        }
        self.regroup(fx);
    }

    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Some(group) = self.groups.group_of(actor, fx.layout()) else { return };
        match fx.layout().role(actor) {
            Role::Node(node) => drop(self.down.remove(&node)),
            _ => drop(self.views[group as usize].masters.record(actor, true)),
        }
        self.regroup(fx);
    }
}
