//! Jobs and their work: generators, trace readers, and what a trace is like.

mod config;

pub use config::{Estimate, Like, Model, Service, Share, Synthetic, TraceSpec, WorkloadSpec};
