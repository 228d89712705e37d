//! Jobs and their work: distributions, generators and parsers of traces.
//!
//! | module | what it holds |
//! |---|---|
//! | `by` | classes of the jobs of a trace by a feature, such as their user |
//! | `config` | `[workload.…]` and `[service]` of an experiment file |
//! | `plan` | these sections after checks and defaults, ready to draw jobs under a seed |
//! | `gossip` | `[workload.gossip]`: updates in place of jobs |
//! | `drawn` | the jobs that are drawn, also from the distributions of published traces |
//! | `jobs` | [`Workload`]: the jobs of a run, and the jobs of history |
//! | `slo` | SLO jobs: deadlines, and nodes that jobs prefer |
//! | `work` | the four models of work under a distribution of demand; numbers of tasks; shares of jobs |
//! | `mix` | jobs of several classes, each of several stages |
//! | `graph` | dependencies between the stages of a job, and the stages of a run |
//! | `names` | users and names of the jobs of a mix, and the work that jobs of a name share |
//! | `usage` | use of shared nodes by tasks, and their requests |
//! | `trace` | traces in memory: jobs and errors |
//! | `details` | features, outcomes, waits and requests of the jobs of a trace |
//! | `read` | one parser per format of traces |
//! | `window` | `run.measure`: the jobs that results count, and the time over which they average |

mod by;
mod config;
mod details;
mod drawn;
mod gossip;
mod graph;
mod jobs;
mod mix;
mod names;
mod plan;
mod read;
mod slo;
mod trace;
mod usage;
mod window;
mod work;

pub use by::{By, OTHER};
pub use config::{
    Estimate, Kinds, Like, Mix, MixClass, MixStage, Model, Service, Synthetic, TraceSpec, WorkloadSpec,
};
pub use details::{Details, Outcome};
pub use gossip::{Edges, Gossip, Graph, MeasuredPart, UpdateOrigin, Updates};
pub use jobs::Workload;
pub use plan::Site;
pub use read::{
    ColumnNames, Features, GOOGLE, NoTraces, Part, Reading, SizeBy, TASKS_UNKNOWN, TraceSource, ZONE, Zone,
};
pub(crate) use read::{cells, separator};
pub use slo::{PreferenceDraw, Slack, Slo};
pub use trace::{Format, Trace, TraceJob, WorkloadError};
pub use usage::{LargestNode, Segment, UsageSection};
pub use window::{Bound, Measure, MeasureBounds, NoWindow, Window};
pub use work::Share;

#[cfg(test)]
mod tests;
