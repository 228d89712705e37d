//! DistSched: a central scheduler places tasks on shared nodes from distributions of what they use.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | the parameters |
//! | `estimate` | what is expected of a job's use: predictors of CPU, memory and CPU-time |
//! | `known` | an open job: what is expected of it by now |
//! | `observed` | what nodes report of its tasks, and when that counts more than what was expected |
//! | `sum` | sums of independent distributions on a grid |
//! | `load` | the tasks of each node, and the risk of more |
//! | `view` | the nodes as one job sees them |
//! | `placement` | nodes for the tasks of a job |
//! | `value` | the expected utility of a placement |
//! | `greedy` | which jobs start: the most useful one first |
//! | `relief` | best-effort tasks to be preempted |
//! | `planner` | cycles |
//! | `policy` | the policy that the registry lists |

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
