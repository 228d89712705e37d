//! Late binding (Sparrow, section 3.3): reservations for a group of tasks are placed on random nodes, and the nodes
//! that claim first get the tasks. Sparrow uses it, and Hawk and Eagle for short jobs.
//!
//! | file | contents |
//! |---|---|
//! | `late_binding.rs` | batch sampling, which places the reservations; claims; the reaction to losses and crashes |
//! | `state_sharing.rs` | Succinct State Sharing, which moves rejected reservations (Eagle, section 4.2) |
//! | `group.rs` | the tasks and the reservations of a group |
//! | `options.rs` | the parameters |

mod group;
mod options;
mod state_sharing;

use std::collections::BTreeMap;

pub use group::Places;
use group::TaskGroup;
pub use options::{ProbeOptions, SamplingForm};
pub use state_sharing::StateSharing;

use super::dispatcher::{DispatchRule, OpenTasks};
use super::job_table::JobTable;
use super::membership::Membership;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::machine::Effects;
use crate::message::{Message, Probe, Row};

/// Job and number of a group.
type GroupId = (JobId, u32);

/// The choice of nodes for reservations.
#[derive(Clone, Debug)]
struct Sampling {
    options: ProbeOptions,
    /// State for reservations that nodes can reject, if the policy has them.
    sharing: Option<StateSharing>,
    sample: Vec<ActorId>,
}

impl Sampling {
    /// Places d·m reservations for the m tasks of a group, or for `lost` tasks after a loss.
    fn reserve(
        &mut self,
        group: &mut TaskGroup,
        lost: Option<u32>,
        members: &mut Membership,
        fx: &mut Effects<'_>,
    ) {
        let ProbeOptions { form, replacement, .. } = self.options;
        let places = match lost {
            None => self.options.reserved_for(group.len) as usize,
            Some(tasks) => self.options.places(tasks),
        };
        let servers = if form == SamplingForm::Pairs { places.min(group.len as usize) } else { places };
        let mut sample = std::mem::take(&mut self.sample);
        sample.clear();
        if replacement {
            sample.extend((0..servers).filter_map(|_| members.pick(fx.rng())));
            sample.sort_unstable();
        } else {
            members.sample(fx.rng(), servers, &mut sample);
        }
        let (job, number, repair) = (group.job, group.number, lost.is_some());
        group.places.spread(places, &sample, |node, count| {
            fx.send_as(repair, node, self.request(job, number, count, repair));
        });
        self.sample = sample;
    }

    /// Repeats the reservations of an open group; nodes that hold them ignore the repetition. A group without
    /// reservations gets new ones. Returns whether the group is open.
    fn repeat(&mut self, group: &mut TaskGroup, members: &mut Membership, fx: &mut Effects<'_>) -> bool {
        let waiting = group.waiting();
        if waiting > 0 && group.places.is_empty() {
            self.reserve(group, Some(waiting), members, fx);
        } else if waiting > 0 {
            for (node, count) in group.places.iter() {
                fx.recover(node, self.request(group.job, group.number, count, true));
            }
        }
        waiting > 0
    }

    /// The message that places reservations.
    fn request(&self, job: JobId, group: u32, count: u32, repair: bool) -> Message {
        match &self.sharing {
            None => Probe::Reserve { job, group, count, repair }.into(),
            Some(sharing) => sharing.request(job, count, repair).into(),
        }
    }
}

/// The rule of a scheduler that binds late.
#[derive(Clone, Debug)]
pub struct LateBinding {
    sampling: Sampling,
    /// Time after which reservations are first repeated; `None` where they cannot be lost.
    timeout: Option<Span>,
    jobs: JobTable<Vec<TaskGroup>>,
    /// Groups that lost tasks or reservations, each with the number of tasks that need new reservations.
    losses: BTreeMap<GroupId, u32>,
}

impl LateBinding {
    /// A rule with these options. It repeats reservations only if datagrams can be lost (`lossy`).
    pub fn new(options: ProbeOptions, sharing: Option<StateSharing>, lossy: bool) -> Self {
        let timeout = lossy.then_some(options.probe_timeout);
        let sampling = Sampling { options, sharing, sample: Vec::new() };
        Self { sampling, timeout, jobs: JobTable::default(), losses: BTreeMap::new() }
    }

    /// Gives a node that claims a reservation of group `at` the next task, and cancels the other reservations after the
    /// last task. Returns whether there was a task.
    fn claim(&mut self, node: ActorId, at: GroupId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let ((job, number), groups) = (at, self.jobs.get_mut(at.0));
        let Some(group) = groups.and_then(|groups| groups.get_mut(number as usize)) else { return false };
        group.places.take(node, 1);
        let Some(copy) = group.next(tasks) else { return false };
        tasks.launch_by(Probe::Grant { row: Row::single(copy), group: number }, copy, node, fx);
        if self.sampling.options.cancellation && group.waiting() == 0 {
            group.places.cancel(job, number, fx);
        }
        true
    }
}

impl DispatchRule for LateBinding {
    fn submitted(&mut self, first: CopyId, count: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let (job, Sampling { options, .. }) = (first.task.job, &self.sampling);
        let size = if options.form == SamplingForm::Pairs { options.group } else { count };
        let mut groups = TaskGroup::of(job, count, size);
        for group in &mut groups {
            self.sampling.reserve(group, None, tasks.members(), fx);
        }
        self.jobs.open(job, groups);
        tasks.check_later(job, 0, self.timeout, fx);
    }

    fn receive(&mut self, from: ActorId, msg: &Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        match (*msg, &mut self.sampling.sharing) {
            (Message::Probe(Probe::Claim { job, group, repair }), _) => {
                if !self.claim(from, (job, group), tasks, fx) {
                    fx.send_as(repair, from, Probe::Nothing { job, group });
                }
            }
            (Message::Share(share), Some(sharing)) => {
                sharing.receive(from, share, &mut self.jobs, tasks.members(), fx);
            }
            _ => return false,
        }
        true
    }

    fn finished(&mut self, task: TaskId, last: bool, _: &mut Effects<'_>) {
        if last {
            self.jobs.close(task.job);
        }
    }

    /// Records that a task was lost and needs a new reservation.
    fn ready(&mut self, copy: CopyId, _: &mut OpenTasks, _: &mut Effects<'_>) {
        let TaskId { job, index } = copy.task;
        let Some(groups) = self.jobs.get_mut(job) else { return };
        // All groups but the last have the same size.
        let number = index / groups[0].len;
        groups[number as usize].lost.push(copy);
        *self.losses.entry((job, number)).or_default() += 1;
    }

    /// The node's reservations are lost, and the tasks that they would have served need new ones.
    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, _: &mut Effects<'_>) {
        for group in self.jobs.iter_mut().flat_map(|(_, groups)| groups) {
            let lost = group.places.forget(node);
            if lost > 0 && group.waiting() > 0 {
                let tasks = (f64::from(lost) / self.sampling.options.probe_ratio).ceil() as u32;
                *self.losses.entry((group.job, group.number)).or_default() += tasks;
            }
        }
    }

    /// Places reservations for groups that had found no live node.
    fn back(&mut self, _: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        for group in self.jobs.iter_mut().flat_map(|(_, groups)| groups) {
            if group.waiting() > 0 && group.places.is_empty() {
                self.sampling.reserve(group, Some(group.waiting()), tasks.members(), fx);
            }
        }
    }

    /// Replaces lost reservations. The new ones can also be lost, so the back-off begins again.
    fn settle(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        while let Some(((job, number), lost)) = self.losses.pop_first() {
            let Some(groups) = self.jobs.get_mut(job) else { continue };
            self.sampling.reserve(&mut groups[number as usize], Some(lost), tasks.members(), fx);
            if self.losses.first_key_value().is_none_or(|((next, _), _)| *next != job) {
                tasks.check_later(job, 0, self.timeout, fx);
            }
        }
    }

    /// Repeats the open reservations of a job.
    fn check(&mut self, job: JobId, attempt: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let mut open = false;
        for group in self.jobs.get_mut(job).into_iter().flatten() {
            open |= self.sampling.repeat(group, tasks.members(), fx);
        }
        if open {
            tasks.check_later(job, attempt + 1, self.timeout, fx);
        }
    }
}

#[cfg(test)]
mod tests;
