//! DistSched: a central scheduler places tasks on shared nodes from distributions of their use.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | the parameters |
//! | `estimate` | estimates of a job's use: predictors of CPU, memory and CPU-time |
//! | `known` | an open job: its current estimate, and reports of its tasks that replace the estimate |
//! | `load` | the tasks of each node, the risk of more, and sums of independent distributions on a grid |
//! | `placement` | nodes for the tasks of a job, and the nodes as one job sees them |
//! | `value` | the expected utility of a placement |
//! | `greedy` | which jobs start: the most useful one first |
//! | `relief` | best-effort tasks to be preempted |
//! | `planner` | the policy that the registry lists, and its cycles |

mod config;
mod estimate;
mod greedy;
mod known;
mod load;
mod placement;
mod planner;
mod relief;
mod value;

#[cfg(test)]
mod tests;

pub use config::{DistSched, UsageEstimates, UsageStatistic};
