//! Jobs and their work: distributions, generators and parsers of traces.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | `[workload.…]` and `[service]` of an experiment file |
//! | `share` | shares of jobs, as those sections state them |
//! | `plan` | those sections after checks and defaults, ready to draw jobs under a seed |
//! | `drawn` | the jobs that are drawn |
//! | `jobs` | [`Workload`]: the jobs of a run, and those that are history |
//! | `slo` | SLO jobs: deadlines, and nodes that jobs prefer |
//! | `tasks` | numbers of tasks under a distribution |
//! | `work` | the four models of work under a distribution of demand |
//! | `mix` | jobs of several classes, each a chain of stages |
//! | `names` | users and names of the jobs of a mix, and the work that jobs of a name share |
//! | `usage` | use of shared nodes by tasks, and their requests |
//! | `generate` | generators with the distributions of published traces |
//! | `trace`, `columns` | traces in memory: jobs, and what else is known about them |
//! | `read` | one parser per format of traces |

mod columns;
mod config;
mod drawn;
mod error;
mod generate;
mod homes;
mod jobs;
mod mix;
mod names;
mod plan;
mod read;
mod share;
mod slo;
mod tasks;
mod trace;
mod usage;
mod work;

pub use columns::{Details, Outcome};
pub use config::{
    Estimate, Like, Mix, MixClass, MixStage, Model, Service, Synthetic, TraceSpec, WorkloadSpec,
};
pub use error::WorkloadError;
pub use jobs::Workload;
pub use plan::Site;
pub use read::{ColumnNames, GOOGLE, Part, Reading, TASKS_UNKNOWN, ZONE};
pub(crate) use read::{cells, other_separator};
pub use share::Share;
pub use slo::{PreferenceDraw, Slack, Slo};
pub use trace::{Format, NoTraces, Trace, TraceJob, TraceSource};
pub use usage::{LargestNode, Segment, UsageSection};

#[cfg(test)]
mod tests;
