//! 3Sigma: a central scheduler plans the starts of jobs from distributions of their run times.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | the parameters |
//! | `estimate` | the estimated distribution of a job's run time |
//! | `problem` | the problem of a cycle: options of waiting jobs, expected cores by slot, jobs to preempt |
//! | `planner` | cycles: the problem is solved, and what starts now is launched |

mod config;
mod estimate;
mod planner;
mod problem;

#[cfg(test)]
mod tests;

pub use config::{RunTimeEstimates, ThreeSigma};
