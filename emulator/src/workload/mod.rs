//! Jobs and their work: generators, trace readers, and what a trace is like.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | `[workload.…]` and `[service]` of an experiment file |
//! | `plan`, `jobs` | from those sections and a seed to the jobs of a run, [`Workload`] |
//! | `work` | the four models of work under a law of demand |
//! | `generate` | generators with the laws of published traces |
//! | `library`, `trace`, `read` | where traces are, what is kept of them, one reader per format |
//! | [`describe`], `convert` | `volary trace describe` and `volary trace convert` |

mod config;
mod convert;
pub mod describe;
mod error;
mod generate;
mod homes;
mod jobs;
mod library;
mod plan;
mod read;
mod trace;
mod work;

pub use config::{Estimate, Like, Model, Service, Share, Synthetic, TraceSpec, WorkloadSpec};
pub use describe::{Description, Reference};
pub use error::WorkloadError;
pub use jobs::Workload;
pub use library::Traces;
pub use trace::{Format, Trace, TraceJob};

#[cfg(test)]
mod real;
#[cfg(test)]
mod tests;
