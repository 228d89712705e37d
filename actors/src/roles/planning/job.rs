//! An open job of a planning scheduler: which of its tasks wait, and which hold cores.

use super::pool::CorePool;
use crate::base::{CopyId, Time};
use crate::roles::job_table::OpenJob;

/// A copy that holds a core of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HeldCore {
    /// The copy.
    pub copy: CopyId,
    /// The number of its node.
    pub node: u32,
}

/// An open job.
pub struct PlannedJob {
    /// Its description and finished tasks.
    pub open: OpenJob,
    /// Tasks without a finished copy that hold no core, rising.
    pub waiting: Vec<u32>,
    /// The copies of the others.
    pub held: Vec<HeldCore>,
    /// When the first of these were launched.
    pub began: Time,
    /// Whether one of them runs on a kind of node that the job does not prefer.
    pub elsewhere: bool,
    /// Whether all tasks of the job were launched at `began`, and these copies are the ones that finish.
    pub whole: bool,
    /// Whether some of those that wait were lost. Launching those counts as a repair; after a preemption it does not.
    pub lost: bool,
    /// How often all copies of the job were preempted.
    pub preemptions: u32,
}

impl PlannedJob {
    /// A job all of whose tasks wait.
    pub fn new(open: OpenJob) -> Self {
        let waiting = (0..open.spec.tasks).collect();
        Self {
            open,
            waiting,
            held: Vec::new(),
            began: Time::ZERO,
            elsewhere: false,
            whole: false,
            lost: false,
            preemptions: 0,
        }
    }

    /// Makes a task wait again, unless it has a finished copy.
    pub(super) fn again(&mut self, task: u32) {
        if !self.open.is_done(task)
            && let Err(at) = self.waiting.binary_search(&task)
        {
            self.waiting.insert(at, task);
        }
    }

    /// The cores it holds on each kind of nodes, of those that can be used.
    pub fn held_by_kind(&self, pool: &CorePool) -> Vec<u32> {
        let mut held = vec![0; pool.kinds()];
        for core in self.held.iter().filter(|core| pool.is_usable(core.node)) {
            held[pool.kind(core.node)] += 1;
        }
        held
    }
}
