//! Algorithm 1 of the paper, the placement of tasks by a scheduler (section 4.1).
//!
//! | lines | step | function |
//! |---|---|---|
//! | 7 | the task with the earliest creation timestamp | `queued`, `schedule` |
//! | 8, 9 | feasible nodes, and among them the one with the smallest expected wait | `Cache::choose` |
//! | 10 | dispatch of the task | `place` |
//! | 11 | UpdateLocCache | `Cache::add_placed` |
//! | 12, 13 | UpdateRemCache | `place`, `announce_batch`, `Disseminator::announce` |
//! | 16, 17 | update of a placement received | `Cache::receive` |
//! | 18 to 21 | update of an end | `MurmurationNode::ended`, `Cache::receive` |
//!
//! A scheduler places all tasks of a job before the next job, so its queue of jobs is equivalent to a queue of tasks.
//! Section 4.2 orders this queue by work (SJF). Decisions take time in section 6.2.4.

use std::cmp::Reverse;

use super::config::{MurmurationNews, MurmurationOrder};
use super::scheduler::{MurmurationRule, Queued};
use super::timers::DECIDE;
use crate::base::{CopyId, JobId, Span, Time};
use crate::machine::{CacheNote, Effects, Note};
use crate::message::{Gossip, Launch, PlacementForm, PlacementUpdate};
use crate::roles::dispatcher::OpenTasks;

impl MurmurationRule {
    /// The entry of a job in the queue after decisions on `decided` of its tasks. The oldest job comes first
    /// (FCFS) or, with SJF (section 4.2), the job with the smallest f·x, where f is the number of tasks left.
    pub(super) fn queued(&self, job: JobId, decided: u32, fx: &Effects<'_>) -> Queued {
        let left = u64::from(fx.catalog().tasks(job) - decided);
        let work = match self.config.order {
            MurmurationOrder::Fcfs | MurmurationOrder::Las => 0,
            MurmurationOrder::Srjf => fx.catalog().job_estimate(job).0.saturating_mul(left),
        };
        Reverse((work, fx.catalog().job(job).arrival, job, decided))
    }

    /// Line 7: takes jobs from the queue, until it is empty or a decision takes time.
    pub(super) fn schedule(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        while self.busy.is_none()
            && self.request.is_none()
            && let Some(Reverse((.., job, decided))) = self.queue.pop()
        {
            self.busy = Some((job, decided));
            let per_job = if decided == 0 { self.config.decision_per_job } else { Span::ZERO };
            let first = per_job + self.config.decision_per_task;
            if first == Span::ZERO {
                self.decide(tasks, fx);
            } else {
                fx.arm(DECIDE, first);
            }
        }
    }

    /// Places the next task of the current job, or all its tasks if `decision_per_task` is zero.
    pub(super) fn decide(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let Some((job, decided)) = self.busy else { return };
        if let Some(spec) = tasks.spec(job) {
            let per_task = self.config.decision_per_task;
            let next = if per_task == Span::ZERO { spec.tasks } else { decided + 1 };
            for index in decided..next {
                // A copy of an earlier submission may have finished the task.
                if let Some(copy) = tasks.waiting(job.task(index)) {
                    self.place(copy, false, tasks, fx);
                }
            }
            if next < spec.tasks {
                if self.config.news == MurmurationNews::BetweenTasks {
                    self.read_inbox(fx);
                }
                let rest = self.queued(job, next, fx);
                // Entries are reversed: a lesser one comes later.
                if !self.config.preemptive || self.queue.peek().is_none_or(|other| *other < rest) {
                    self.busy = Some((job, next));
                    return fx.arm(DECIDE, per_task);
                }
                self.queue.push(rest);
            }
        }
        self.announce_batch(job, fx);
        self.busy = None;
        self.read_inbox(fx);
    }

    /// Lines 8 to 13: sends a task to the node with the smallest expected wait and updates all caches. A placement that
    /// repairs a loss is not part of the batch of a job.
    pub(super) fn place(
        &mut self,
        copy: CopyId,
        recovery: bool,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) {
        let Some((node, believed)) = self.cache.choose(fx) else {
            self.stranded.insert(copy);
            return;
        };
        fx.note(match self.config.service() {
            Some(order) => CacheNote::Placed { copy, node, believed, order }.into(),
            None => Note::Bound { copy },
        });
        let (job, at) = (copy.task.job, fx.now());
        self.cache.add_placed(node, job, fx);
        tasks.launch_by(Launch::Task { copy, at }, copy, fx.layout().node(node), fx);
        if self.config.batch && !recovery {
            self.unannounced.push((node, at));
        } else {
            let update = self.next_update(job, &[(node, at)], PlacementForm::Single);
            self.disseminator.announce(update, recovery, fx);
        }
    }

    /// Lines 12 and 13 for all tasks of a job (section 4.1, Batched Resource Updates), in pairs of the same decision
    /// time, because receivers accept or ignore each pair by its decision time.
    fn announce_batch(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let (mut form, unannounced) = (PlacementForm::Batch, std::mem::take(&mut self.unannounced));
        for placed in unannounced.chunk_by(|a, b| a.1 == b.1).flat_map(|at_once| at_once.chunks(2)) {
            let update = self.next_update(job, placed, form);
            self.disseminator.announce(update, false, fx);
            form = PlacementForm::Rest;
        }
    }

    /// The next update of this scheduler, about one or two tasks that were placed on these nodes at the same time.
    pub(super) fn next_update(&mut self, job: JobId, placed: &[(u32, Time)], form: PlacementForm) -> Gossip {
        let (number, rumour) = (self.disseminator.take_number(), self.disseminator.rumours);
        let (first, at) = placed[0];
        let nodes = [first, placed.get(1).map_or(PlacementUpdate::NO_NODE, |second| second.0)];
        Gossip::Placed(PlacementUpdate { job, nodes, at, number, origin: self.cache.me, form, rumour })
    }
}
