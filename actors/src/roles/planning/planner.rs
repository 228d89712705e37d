//! The interface of planners: their input, and their decisions.

use super::pool::CorePool;
use crate::base::{CopyId, JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::machine::{Effects, Stored};
use crate::message::UsageReport;
use crate::roles::job_table::{JobTable, OpenJob};

/// The input of a planner.
pub struct Situation<'a> {
    /// The open jobs.
    pub jobs: &'a mut JobTable<PlannedJob>,
    /// The cores.
    pub pool: &'a CorePool,
}

/// Tasks of a job to be launched together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchOrder {
    /// The job.
    pub job: JobId,
    /// The places of its first waiting tasks.
    pub places: TaskPlaces,
}

impl LaunchOrder {
    /// Number of tasks that it launches.
    pub fn size(&self) -> u32 {
        match &self.places {
            TaskPlaces::Kinds(tasks) => tasks.iter().sum(),
            TaskPlaces::Nodes(nodes) => nodes.len() as u32,
        }
    }
}

/// The places of tasks that are launched together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskPlaces {
    /// A number of tasks on each kind of nodes, on the cores that were freed first.
    Kinds(Vec<u32>),
    /// The number of a node for each task; a node may occur several times.
    Nodes(Vec<u32>),
}

/// A decision of a planner.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Copies to be preempted first, whatever is launched.
    pub stops: Vec<HeldCore>,
    /// Launches, in this order.
    pub launches: Vec<LaunchOrder>,
    /// Running jobs that may be preempted, in this order, for launches that lack cores.
    pub victims: Vec<JobId>,
    /// Time of the next decision, even if nothing has happened until then.
    pub due: Option<Time>,
    /// Emulated time that deciding takes.
    pub takes: Span,
    /// Cycles since the last decision, this one included; the scheduler counts them.
    pub cycles: u32,
}

/// Length and place of the run of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRun {
    /// Time from its launch to its end.
    pub length: Span,
    /// Whether a task ran on a kind of node that the job does not prefer.
    pub elsewhere: bool,
}

/// A rule that decides which jobs run.
pub trait Planner: Send {
    /// Called when the scheduler starts, after [`restore`](Self::restore) if it has crashed.
    fn started(&mut self, _fx: &mut Effects<'_>) {}

    /// Called when a job was submitted.
    fn submitted(&mut self, _job: JobId, _spec: &JobSpec, _fx: &mut Effects<'_>) {}

    /// Whether there is something to decide at the end of a cycle in which something has changed; `waiting` says
    /// whether tasks wait.
    fn has_choice(&self, waiting: bool) -> bool {
        waiting
    }

    /// Decides at the end of a cycle in which something has changed.
    fn decide(&mut self, situation: Situation<'_>, fx: &mut Effects<'_>) -> Decision;

    /// Called when a shared node has reported the use of a copy; returns whether that may change a decision.
    fn reported(&mut self, _report: UsageReport, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// Called when a shared node gave a copy this fraction of its demand at some time, in millionths; returns whether
    /// that may change a decision. Of two calls for a copy the later time counts.
    fn throttled(&mut self, _copy: CopyId, _rate: u32, _at: Time, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// Called when a node has evicted a copy that ran there `alone` or not; [`stopped`](Self::stopped) follows.
    fn evicted(&mut self, _copy: CopyId, _node: u32, _alone: bool, _fx: &mut Effects<'_>) {}

    /// Called when a copy was preempted, evicted or lost with its node; its work is lost.
    fn stopped(&mut self, _copy: CopyId, _fx: &mut Effects<'_>) {}

    /// Called when a job ended; `run` describes its run, if all its tasks ran at the same time.
    fn ended(&mut self, _job: JobId, _run: Option<JobRun>, _fx: &mut Effects<'_>) {}

    /// State that outlives a crash of the scheduler; see [`Machine::stored`](crate::machine::Machine::stored).
    fn stored(&mut self) -> Option<Stored> {
        None
    }

    /// Restores the state that a predecessor stored.
    fn restore(&mut self, _stored: Stored) {}
}

// An open job of a planning scheduler: which of its tasks wait, and which hold cores.

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
    /// Whether some waiting tasks were lost. Launching those counts as a repair; after a preemption it does not.
    pub lost: bool,
    /// Number of preemptions of the whole job.
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

    /// The cores that it holds on usable nodes, by kind of node.
    pub fn held_by_kind(&self, pool: &CorePool) -> Vec<u32> {
        let mut held = vec![0; pool.kinds()];
        for core in self.held.iter().filter(|core| pool.is_usable(core.node)) {
            held[pool.kind(core.node)] += 1;
        }
        held
    }
}
