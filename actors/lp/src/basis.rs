//! Bases by the names of their variables, to start the next problem from.

/// A variable of a linear program, by names that stay the same from problem to problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// The share of a job that starts at a slot on a set of nodes.
    Share {
        /// Name of the job.
        job: u64,
        /// Name of the block.
        block: u32,
        /// Slot of the start.
        slot: u32,
        /// Set of nodes.
        set: u32,
    },
    /// The share of a running job that is preempted.
    Preempted {
        /// Name of the running job.
        job: u64,
    },
    /// The slack of a group row: the share of a pending job that is not planned, or of a running one that goes on.
    Unplanned {
        /// Name of the job.
        job: u64,
    },
    /// The slack of a capacity row: nodes that stay idle.
    Idle {
        /// Set of nodes.
        set: u32,
        /// Slot of the window.
        slot: u32,
    },
}

/// A basis of a linear program: which variables determine the solution.
///
/// It refers to variables by name, so it serves for a later problem in which jobs have come and gone, capacities have
/// changed, and utilities and demands are others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Basis {
    /// The key column of each group whose key is not its slack.
    pub(crate) keys: Vec<Variable>,
    /// The columns of the working basis.
    pub(crate) working: Vec<Variable>,
}
