//! Per-task sampling (Sparrow, section 3.1): each task goes to the shortest of d random queues, as in the power of d
//! choices.

use std::collections::BTreeSet;

use super::Sparrow;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::machine::Effects;
use crate::message::{Message, Probe};
use crate::roles::dispatcher::{DispatchRule, OpenTasks};
use crate::roles::job_table::JobTable;

/// The rule of a scheduler that samples queue lengths for each task.
#[derive(Clone, Debug)]
pub(super) struct PerTaskSampling {
    /// Number of nodes that are asked for a task, d.
    d: usize,
    /// Time after which nodes are first asked again; `None` where no question can be lost.
    timeout: Option<Span>,
    jobs: JobTable<Vec<Samples>>,
    /// Lost tasks, about which no node has been asked.
    lost: BTreeSet<TaskId>,
}

/// The samples of a task.
#[derive(Clone, Default, Debug)]
struct Samples {
    /// Nodes that were asked and have not answered.
    asked: Vec<ActorId>,
    /// The shortest reported queue, and its node.
    best: Option<(i32, ActorId)>,
}

impl PerTaskSampling {
    /// A rule with these options. It repeats questions only if datagrams can be lost (`lossy`).
    pub(super) fn new(options: &Sparrow, lossy: bool) -> Self {
        let timeout = lossy.then_some(options.probe_timeout);
        let (d, jobs, lost) = (options.places(1), JobTable::default(), BTreeSet::new());
        Self { d, timeout, jobs, lost }
    }

    fn samples(&mut self, task: TaskId) -> Option<&mut Samples> {
        self.jobs.get_mut(task.job)?.get_mut(task.index as usize)
    }

    /// Asks d random nodes for the lengths of their queues; earlier samples of the task are dropped.
    fn ask(&mut self, task: TaskId, repair: bool, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let d = self.d;
        let Some(Samples { asked, best }) = self.samples(task) else { return };
        *best = None;
        tasks.members().sample(fx.rng(), d, asked);
        asked.iter().for_each(|&node| fx.send_as(repair, node, Probe::Sample { task, repair }));
    }

    /// Records an answer; returns whether all nodes have answered. A duplicate, or an answer to an earlier question,
    /// updates the best queue but does not count as another node's answer.
    fn answered(&mut self, from: ActorId, task: TaskId, length: i32) -> bool {
        let Some(Samples { asked, best }) = self.samples(task) else { return false };
        if best.is_none_or(|(shortest, _)| length < shortest) {
            *best = Some((length, from));
        }
        asked.retain(|node| *node != from);
        asked.is_empty()
    }

    /// Launches a copy on the node with the shortest reported queue; returns whether any queue was reported.
    fn bind(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let best = self.samples(copy.task).and_then(|samples| samples.best);
        best.inspect(|&(_, node)| tasks.launch(copy, node, fx)).is_some()
    }
}

impl DispatchRule for PerTaskSampling {
    fn submitted(&mut self, first: CopyId, count: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let job = first.task.job;
        self.jobs.open(job, vec![Samples::default(); count as usize]);
        (0..count).for_each(|index| self.ask(job.task(index), false, tasks, fx));
        tasks.check_later(job, 0, self.timeout, fx);
    }

    fn receive(&mut self, from: ActorId, msg: &Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let Message::Probe(Probe::Length { task, length }) = *msg else { return false };
        if let Some(copy) = tasks.waiting(task)
            && self.answered(from, task, length)
        {
            self.bind(copy, tasks, fx);
        }
        true
    }

    fn finished(&mut self, task: TaskId, last: bool, _: &mut Effects<'_>) {
        if last {
            self.jobs.close(task.job);
        }
    }

    /// Keeps a lost task until `settle` asks nodes about it.
    fn ready(&mut self, copy: CopyId, _: &mut OpenTasks, _: &mut Effects<'_>) {
        self.lost.insert(copy.task);
    }

    /// Asks about the lost tasks. These questions can also be lost, so the back-off begins again.
    fn settle(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        while let Some(task) = self.lost.pop_first() {
            self.ask(task, true, tasks, fx);
            if self.lost.first().is_none_or(|next| next.job != task.job) {
                tasks.check_later(task.job, 0, self.timeout, fx);
            }
        }
    }

    /// Asks about the tasks that found no live node.
    fn back(&mut self, _: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        for CopyId { task, .. } in tasks.all_waiting() {
            if self.samples(task).is_some_and(|samples| samples.asked.is_empty()) {
                self.ask(task, true, tasks, fx);
            }
        }
    }

    /// Decides on the answers that have arrived, and asks again about tasks without any.
    fn check(&mut self, job: JobId, attempt: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let mut open = tasks.waiting_of(job);
        open.retain(|&copy| !self.bind(copy, tasks, fx));
        open.iter().for_each(|copy| self.ask(copy.task, true, tasks, fx));
        if !open.is_empty() {
            tasks.check_later(job, attempt + 1, self.timeout, fx);
        }
    }
}
