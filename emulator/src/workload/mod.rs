//! Jobs and their work: generators, trace readers, and what a trace is like.

mod config;
mod error;
mod generate;
mod jobs;
mod library;
mod plan;
mod read;
mod trace;
mod work;

pub use config::{Estimate, Like, Model, Service, Share, Synthetic, TraceSpec, WorkloadSpec};
pub use error::WorkloadError;
pub use jobs::Workload;
pub use library::Traces;
pub use trace::{Format, Trace, TraceJob};

#[cfg(test)]
mod tests;
