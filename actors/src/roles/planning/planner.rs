//! The interface of planners: what they see, and what they decide.

use super::job::PlannedJob;
use super::pool::CorePool;
use crate::base::{JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::machine::{Effects, Stored};
use crate::roles::job_table::JobTable;

/// What a planner sees.
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
    /// How many of its waiting tasks, by kind of nodes.
    pub tasks: Vec<u32>,
}

/// What a planner decides.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// What to launch, in this order.
    pub launches: Vec<LaunchOrder>,
    /// Running jobs that may be preempted, in this order, for launches that lack cores.
    pub victims: Vec<JobId>,
    /// When to decide again, even if nothing has happened until then.
    pub due: Option<Time>,
    /// How long deciding takes in the emulated world.
    pub takes: Span,
    /// Cycles since the last decision, this one included; the scheduler counts them.
    pub cycles: u32,
}

/// How a job ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRun {
    /// Time from its launch to its end.
    pub length: Span,
    /// Whether a task ran on a kind of node that the job does not prefer.
    pub elsewhere: bool,
}

/// What decides which jobs run.
pub trait Planner: Send {
    /// The scheduler starts, for the `epoch`-th time after a crash.
    fn started(&mut self, _epoch: u32, _fx: &mut Effects<'_>) {}

    /// A job was submitted.
    fn submitted(&mut self, _job: JobId, _spec: &JobSpec, _fx: &mut Effects<'_>) {}

    /// Decides at the end of a cycle in which something has changed, while tasks wait.
    fn decide(&mut self, situation: Situation<'_>, fx: &mut Effects<'_>) -> Decision;

    /// A job ended; `run` says how it ran, if all its tasks ran at the same time.
    fn ended(&mut self, _job: JobId, _run: Option<JobRun>, _fx: &mut Effects<'_>) {}

    /// What outlives a crash of the scheduler; see [`Machine::stored`](crate::machine::Machine::stored).
    fn stored(&mut self) -> Option<Stored> {
        None
    }

    /// Takes over what its predecessor stored.
    fn restore(&mut self, _stored: Stored) {}
}
