//! Tests of experiment files, of the binary's commands, and of their outputs and files. No test depends on the
//! machine's speed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod bundle;
mod claims;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod disk_full;
mod docs;
mod eagle;
mod experiments;
mod figures;
mod live;
mod papers;
mod plan;
mod programs;
mod refusals;
mod reports;
mod resume;
mod schedule;
mod schema;
mod yardstick;
