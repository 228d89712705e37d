//! Reactions to losses, crashes and restarts, which the paper leaves to the framework below, and reports of nodes
//! (ours).

use super::cache::{Cache, instant};
use super::disseminator::Disseminator;
use super::node::MurmurationNode;
use super::numbering::first_of;
use super::scheduler::MurmurationRule;
use crate::base::{ActorId, CopyId, Time};
use crate::layout::Role;
use crate::machine::{CacheNote, Effects, Timer};
use crate::message::{BacklogReport, Core, Gossip, PlacementForm};
use crate::roles::dispatcher::OpenTasks;

impl MurmurationRule {
    /// Sends the copies that found no node as soon as a node can be reached.
    #[inline]
    pub(super) fn place_stranded(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if !self.stranded.is_empty() && self.cache.waits.least().is_some() {
            for copy in std::mem::take(&mut self.stranded) {
                if let Some(copy) = tasks.renumber(copy) {
                    self.place(copy, true, tasks, fx);
                }
            }
        }
    }

    /// Withdraws a task that never reached its node from all caches, unless the node was reported down since.
    pub(super) fn withdraw(
        &mut self,
        node: ActorId,
        copy: CopyId,
        at: Time,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) {
        // If the node was reported down in the instant of the placement, this cache was emptied after the placement.
        let is_emptied = tasks.is_at(node, copy) == Some(false);
        let (node, job) = (fx.layout().node_number(node), copy.task.job);
        if !self.cache.counts(node, at) {
            return;
        }
        if !is_emptied {
            let change = -fx.catalog().job_estimate(job).signed();
            self.cache.change(node, change, at, fx.layout());
            if let Some((_, sent)) = self.cache.reports.get_mut(node as usize) {
                *sent = sent.saturating_sub(1);
            }
            if self.cache.watched {
                // The scheduler withdraws its own placement: no update carries it, so it has no number.
                let origin = self.cache.me;
                fx.note(CacheNote::Learnt { node, change, origin, number: 0, datagram: false });
            }
        }
        let update = self.next_update(job, &[(node, at)], PlacementForm::Withdrawn);
        self.disseminator.announce(update, true, fx);
    }

    /// Sets a node's work to zero when it crashes or comes back; it is not chosen meanwhile.
    pub(super) fn renew(&mut self, node: u32, up: bool, fx: &mut Effects<'_>) {
        self.cache.waits.reach(node, up);
        self.cache.waits.set(node, 0);
        if let Some((_, sent)) = self.cache.reports.get_mut(node as usize) {
            *sent = 0;
        }
        if let Some(renewed) = self.cache.renewed.get_mut(node as usize) {
            *renewed = fx.now();
        }
        if self.cache.watched && self.request.is_none() {
            fx.note(CacheNote::Believes { node, work: 0, at: fx.now() });
        }
    }
}

impl Cache {
    /// Replaces the entry of a node by its report. A report is ignored if it would undo newer updates: a task of this
    /// scheduler that is still on its way, or an end that was already applied.
    pub(super) fn backlog(&mut self, node: u32, report: BacklogReport, fx: &mut Effects<'_>) {
        let BacklogReport { work, at, number, came } = report;
        let renewed = self.renewed(node);
        let Some((reported, sent)) = self.reports.get_mut(node as usize) else { return };
        if at < *reported || at < renewed || came < *sent {
            return;
        }
        let origin = fx.layout().schedulers() + node;
        if self.seen.as_mut().is_some_and(|seen| !seen.catch_up(origin, number)) {
            return;
        }
        *reported = at;
        let work = work.signed();
        let free = instant(at).saturating_add(work / i64::from(fx.layout().cores(node)));
        self.waits.set(node, if self.clock { free } else { work });
        if self.watched {
            fx.note(CacheNote::Believes { node, work, at });
        }
    }
}

impl Disseminator {
    /// Begins an epoch.
    pub(super) const fn begin(&mut self, epoch: u32) {
        self.number = first_of(epoch);
    }

    /// Sends an undelivered update again, at once or when the scheduler is back.
    pub(super) fn undelivered(&mut self, to: ActorId, update: Gossip, fx: &mut Effects<'_>) {
        let Some((_, number)) = update.origin(fx.layout()) else { return };
        match self.down.iter_mut().find(|(who, _)| *who == to) {
            Some((_, missed)) => *missed = number.min(*missed),
            None => fx.recover(to, update),
        }
    }

    /// Records that a scheduler crashed, and the first update that it misses; sends a restarted scheduler the updates
    /// that it missed.
    pub(super) fn peer(&mut self, actor: ActorId, up: bool, fx: &mut Effects<'_>) {
        let at = self.down.iter().position(|&(who, _)| who == actor);
        if let Some(at) = at.filter(|_| up) {
            let (_, missed) = self.down.swap_remove(at);
            for &update in self.recent.iter().flatten() {
                if update.origin(fx.layout()).is_some_and(|(_, number)| number >= missed) {
                    fx.recover(actor, update);
                }
            }
        } else if at.is_none() && !up && matches!(fx.layout().role(actor), Role::Scheduler(_)) {
            self.down.push((actor, self.number));
        }
    }
}

impl MurmurationNode {
    /// Drops the tasks of a crashed scheduler, because another scheduler places them again. Running tasks are stopped;
    /// the paper does not say what becomes of them.
    pub(super) fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) {
        let mut gone = Vec::new();
        if let Role::Scheduler(index) = fx.layout().role(scheduler)
            && let Some(came) = self.came.get_mut(index as usize)
        {
            *came = 0;
        }
        if let Some((las, tasks)) = &mut self.las {
            las.forget(scheduler, fx);
            gone.extend(tasks.extract_if(.., |task| task.from == scheduler));
        }
        for (core, slot) in (0..).zip(&mut self.cores) {
            if let Some(task) = slot.take_if(|task| task.from == scheduler) {
                fx.send(fx.layout().worker(self.index, core), Core::Stop { copy: task.copy });
                gone.push(task);
            }
        }
        self.queue.retain_mut(|task| {
            gone.extend((task.from == scheduler).then_some(*task));
            task.from != scheduler
        });
        gone.iter().for_each(|task| self.announce(task, true, fx));
        self.fill(fx);
    }

    /// Sends all schedulers the node's work and arms the next report.
    pub(super) fn report(&self, fx: &mut Effects<'_>) {
        let (at, number, work) = (fx.now(), self.disseminator.number, self.work());
        for (index, &came) in (0..).zip(&self.came) {
            let scheduler = fx.layout().scheduler(index);
            if self.disseminator.is_up(scheduler) {
                fx.recover(scheduler, Gossip::Backlog(BacklogReport { work, at, number, came }));
            }
        }
        fx.arm(Timer::Beat, self.repair);
    }
}
