//! Results of jobs with dependencies: some of their stages or steps wait for others.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::{Brief, NanIsNull};

/// Jobs with dependencies among those that arrived.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Graphs {
    /// Share of the jobs that have dependencies.
    pub share: f64,
    /// Depth of these jobs: the number of stages and steps on the longest path.
    pub depth: Brief,
    /// Critical path of these jobs, if they finished: the least time that a job needs on any number of healthy cores.
    /// Each stage on the longest path takes the work of its longest task (attempt 0).
    pub critical_path_s: Brief,
    /// Response time of these jobs over their critical path.
    pub slowdown: Brief,
    /// Share of these jobs with a slowdown above 1.001, among the finished ones.
    #[serde(default = "nan", with = "NanIsNull")]
    pub delayed: f64,
    /// Share of these jobs with a slowdown above 1.1, among the finished ones: the straggling jobs of "Understanding
    /// Stragglers in Large Model Training" (OSDI 2025).
    #[serde(default = "nan", with = "NanIsNull")]
    pub straggling: f64,
    /// The finished jobs by depth; jobs without dependencies have depth 1.
    pub by_depth: BTreeMap<u32, DepthResults>,
}

/// Jobs of one depth that finished.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DepthResults {
    /// Number of these jobs.
    pub jobs: u64,
    /// Their critical paths; the work of the longest task at depth 1.
    pub critical_path_s: Brief,
    /// Response time over critical path.
    pub slowdown: Brief,
}

/// The value of a number that results of earlier versions lack.
pub(super) const fn nan() -> f64 {
    f64::NAN
}
