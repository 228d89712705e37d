//! 3Sigma: a central scheduler plans the starts of jobs from distributions of their run times.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | the parameters |
//! | `estimate` | the distribution of run times that is expected of a job |
//! | `outlook` | the same as it is used: expected cores by slot, also of jobs that run already |
//! | `problem` | the problem of a cycle: options of waiting jobs, capacities, running jobs to preempt |
//! | `planner` | cycles: the problem is solved, and what starts now is launched |

mod config;
mod estimate;
mod planner;
mod problem;

#[cfg(test)]
mod tests;

pub use config::{RunTimeEstimates, ThreeSigma};
