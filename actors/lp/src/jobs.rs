//! Jobs of a problem: pending ones with their options, and running ones that can be preempted.

/// A pending job. At most one of its options is chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Name of the job, the same from problem to problem; no other job or running job has it.
    pub name: u64,
    /// Tasks, which start together; each takes one node. At least 1.
    pub tasks: u32,
    /// Ways to run it. Empty: the job cannot be planned.
    pub blocks: Vec<Block>,
}

/// The options of a job that differ in their start alone, such as those on its preferred nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Name of the block within its job, the same from problem to problem.
    pub name: u32,
    /// Sets of nodes over which the tasks may be split, rising.
    pub sets: Vec<u32>,
    /// Expected nodes in use for each task, by slots since the start; 0 beyond the end. Not negative. In 3Sigma this
    /// is 1 − CDF of the runtime.
    pub demand: Vec<f64>,
    /// Starts to choose from, rising.
    pub starts: Vec<Start>,
}

/// An option's start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Start {
    /// Slot of the window, from 0.
    pub slot: u32,
    /// Utility of the job if it starts there, in any unit. Options of no utility are never chosen.
    pub utility: f64,
}

/// A running job that can be preempted, as a whole and at a price, to gain the capacity that it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Running {
    /// Name of the job, the same from problem to problem; no other job or running job has it.
    pub name: u64,
    /// Its tasks on each set of nodes.
    pub tasks: Vec<u32>,
    /// Expected nodes in use for each task, by slot of the window; 0 beyond the end. Not negative.
    pub demand: Vec<f64>,
    /// Price of preempting it, in the unit of utilities. Not negative.
    pub price: f64,
}
