//! The messages of Pigeon: tasks pass from schedulers through the masters of groups to workers. A part of
//! `crate::message`.
//!
//! A master is an auxiliary actor, or a node that declared itself one. A worker is named by the number of its core
//! among all cores of the run.

use serde::{Deserialize, Serialize};

use crate::base::{CopyId, JobId};
use crate::message::Stamp;
use crate::message::protocol::{Run, protocol};

/// Tasks of a job: `len` tasks, the first with index `base`, each `step` after its predecessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// The job.
    pub job: JobId,
    /// Index of the first task.
    pub base: u32,
    /// Number of tasks, at least one.
    pub len: u32,
    /// Distance between the indices of consecutive tasks, at least one.
    pub step: u32,
    /// Attempt number of every copy.
    pub attempt: u32,
}

impl Batch {
    /// A batch of one task.
    pub const fn single(copy: CopyId) -> Self {
        Self { job: copy.task.job, base: copy.task.index, len: 1, step: 1, attempt: copy.attempt }
    }

    /// The copy at a position below `len`.
    pub const fn copy(&self, position: u32) -> CopyId {
        self.job.task(self.base + position * self.step).copy(self.attempt)
    }

    /// The indices of the batch's tasks.
    pub fn indices(self) -> impl Iterator<Item = u32> {
        (0..self.len).map(move |position| self.base + position * self.step)
    }

    /// Removes the first copy of the batch.
    pub const fn take_first(&mut self) -> CopyId {
        let first = self.copy(0);
        self.base += if self.len > 1 { self.step } else { 0 };
        self.len -= 1;
        first
    }
}

/// The number of a core's state, compared first by the life of its node and then by the changes in this life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// Number of restarts of the node.
    pub life: u16,
    /// Number of times that the core began or ended a copy in this life.
    pub count: u32,
}

/// Tasks of one job for a master.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// Number of the scheduler that gets the results.
    pub scheduler: u32,
    /// The tasks.
    pub batch: Batch,
}

impl Waiting {
    fn fits(&self, run: &Run<'_>) -> bool {
        let Batch { job, base, len, step, .. } = self.batch;
        let last = u64::from(base) + u64::from(len.saturating_sub(1)) * u64::from(step);
        let all_exist = run.has_job(job) && last < u64::from(run.catalog.tasks(job));
        len > 0 && step > 0 && all_exist && run.has_scheduler(self.scheduler)
    }
}

/// A copy for a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The copy.
    pub copy: CopyId,
    /// Number of the scheduler that gets the result.
    pub scheduler: u32,
}

impl Assignment {
    fn fits(&self, run: &Run<'_>) -> bool {
        run.has_task(self.copy.task) && run.has_scheduler(self.scheduler)
    }
}

/// Messages of schedulers, masters and workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Group {
    /// Scheduler → master: run these tasks. A master that has handed over passes the message on.
    Tasks(Waiting),
    /// Master → node: run this copy on a core.
    Run {
        /// The core.
        core: u32,
        /// The copy.
        next: Assignment,
    },
    /// Node → master: a core is idle. A master that has handed over passes the message on.
    Idle {
        /// Number of restarts of the node.
        life: u16,
        /// Number of changes of the core in this life.
        count: u32,
        /// The core.
        core: u32,
    },
    /// Node → master, in answer to a request: a core is busy.
    Status {
        /// Number of restarts of the node.
        life: u16,
        /// Number of changes of the core in this life.
        count: u32,
        /// The core.
        core: u32,
        /// The copy that the core runs.
        running: Assignment,
    },
    /// Master → scheduler: request for the open tasks of this group.
    Ask,
    /// Node → the node that is its master: request for a sign of life.
    Watch,
    /// Scheduler → master, in answer to a request: these tasks are open. Those without a worker run under the fresh
    /// attempt number given here.
    Open(Waiting),
    /// Master → node, scheduler: this actor is the master of the group. Nodes answer with the states of their cores,
    /// schedulers with their open tasks.
    Takes {
        /// Number of the election; a claim in a later election wins.
        term: u32,
        /// Time of the claim; within an election the earliest claim wins.
        at: Stamp,
    },
    /// Master → its standby: tasks of a job have begun to wait, behind all other tasks of their class.
    Mirror {
        /// The job of the tasks.
        job: JobId,
        /// The job of the first waiting task of this class.
        head: JobId,
    },
    /// Master → scheduler: the number of waiting tasks and of busy workers.
    Lengths {
        /// Number of waiting tasks.
        waiting: u32,
        /// Number of busy workers.
        busy: u32,
        /// Time of the observation.
        at: Stamp,
    },
}

protocol! {
    Group in run;
    Tasks = "group.tasks", Stream, 32,
        Scheduler -> Auxiliary | Scheduler -> Node | Auxiliary -> Auxiliary | Node -> Auxiliary | Node -> Node:
        Self::Tasks(tasks) if tasks.fits(run) => tasks.batch.job,
    Run = "group.run", Stream, 28, Auxiliary -> Node | Node -> Node: Self::Run { core, next }
        if run.has_core(core) && matches!(run.to, Role::Node(node) if run.layout.node_of_core(core) == node)
            && next.fits(run) => next.copy.task.job,
    Idle = "group.idle", Stream, 18, Node -> Auxiliary | Node -> Node | Auxiliary -> Auxiliary:
        Self::Idle { core, .. } if run.has_core(core),
    Status = "group.status", Stream, 34, Node -> Auxiliary | Node -> Node | Auxiliary -> Auxiliary:
        Self::Status { core, running, .. } if run.has_core(core) && running.fits(run) => running.copy.task.job,
    Ask = "group.ask", Stream, 8, Auxiliary -> Scheduler | Node -> Scheduler: Self::Ask,
    Watch = "group.watch", Stream, 8, Node -> Node: Self::Watch,
    Open = "group.open", Stream, 32,
        Scheduler -> Auxiliary | Scheduler -> Node | Auxiliary -> Auxiliary | Node -> Auxiliary | Node -> Node:
        Self::Open(tasks) if tasks.fits(run) => tasks.batch.job,
    Takes = "group.takes", Stream, 20, Auxiliary -> Node | Auxiliary -> Scheduler | Node -> Node | Node -> Scheduler:
        Self::Takes { .. },
    Mirror = "group.mirror", Stream, 16, Auxiliary -> Auxiliary:
        Self::Mirror { job, head, .. } if run.has_job(job) && run.has_job(head),
    Lengths = "group.lengths", Datagram, 24, Auxiliary -> Scheduler | Node -> Scheduler: Self::Lengths { .. },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_every_step_th_task_of_its_range() {
        let mut batch = Batch { job: JobId(1), base: 2, len: 3, step: 4, attempt: 0 };
        assert_eq!(batch.indices().collect::<Vec<_>>(), [2, 6, 10]);
        assert_eq!([(); 3].map(|()| batch.take_first().task.index), [2, 6, 10]);
        assert_eq!(batch.len, 0);
    }
}
