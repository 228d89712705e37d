//! Results of jobs with deadlines, and of the best-effort jobs beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::{Brief, NanIsNull};

/// Outcomes of SLO jobs, which have a deadline, and of best-effort jobs (Park's thesis, section 4.4.1). slo = met +
/// missed + open.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Deadlines {
    /// SLO jobs that arrived.
    pub slo: u64,
    /// SLO jobs that ended by their deadline.
    pub met: u64,
    /// SLO jobs that did not end by their deadline.
    pub missed: u64,
    /// SLO jobs with a deadline beyond the end of a run that was cut off. They are neither met nor missed, even if they
    /// finished: to count only the finished ones, as met, would bias the miss rate in the policy's favour.
    pub open: u64,
    /// missed / (met + missed); `null` if both are 0.
    #[serde(with = "NanIsNull")]
    pub miss_rate: f64,
    /// Utility earned: 1 for each SLO job that ended by its deadline, 0 for each other SLO job (section 4.2.1, figure
    /// 4.3a). The deadline may lie beyond the end of a run that did not finish. Best-effort jobs earn nothing here; in
    /// the thesis their utility decreases over time, with a slope that is a parameter of the policy.
    #[serde(default)]
    pub value: u64,
    /// Work of the jobs that ended. The work of a restarted job is counted once. A job that ran on nodes that it does
    /// not prefer is counted with its work on preferred nodes.
    pub goodput_h: GoodputHours,
    /// Response times of best-effort jobs that ended.
    pub be_response_s: Brief,
}

/// Node-hours of jobs that ended: number of tasks times the work of the longest task, summed over stages and jobs.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GoodputHours {
    /// Node-hours of SLO jobs that ended by their deadline.
    pub slo: f64,
    /// Node-hours of SLO jobs that ended after their deadline.
    pub late: f64,
    /// Node-hours of best-effort jobs.
    pub be: f64,
    /// Node-hours of all jobs that ended.
    pub total: f64,
}
