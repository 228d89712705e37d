//! volary emulates datacenter job schedulers as actors: one set of state machines, several runtimes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the experiment file: parsed, resolved, swept; claims |
//! | [`workload`] | traces of jobs on disk: their location, description, conversion |
//! | [`files`] | the files of an experiment, from the disk or bundled |
//! | [`codec`], [`cluster`] | messages between machines, as bytes; over QUIC |
//! | [`real_time`] | the event loop, clocks and mailboxes of real time |
//! | [`awake`] | processors kept from sleeping during a run in real time |
//! | [`executor`] | copies on real cores, and real interference |
//! | [`control`], [`cost`] | stop flag and observers of a study; CPU time and memory |
//! | [`dashboard`] | the live page |
//! | [`runtime`] | the clocks of runs, and parallel execution of cells |
//! | [`observer`] | what runtimes report of a study while it goes on |
//! | [`fidelity`] | how far a real run departed from what was asked |
//! | [`stats`], [`number`], `sanitize`, `parallel`, `atomic_file` | replications; numbers formatted for people; text of others made harmless; work on all processors; files replaced as a whole |
//! | [`chart`], [`report`] | charts and reports |
//! | [`comparison`] | two studies, or one experiment in several runtimes, compared |
//! | [`storage`] | the study directory and its files |
//! | [`cli`] | the command line |

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "public for the binary, tests and benches only")]

mod atomic_file;
pub mod awake;
pub mod chart;
pub mod cli;
pub mod cluster;
pub mod codec;
pub mod comparison;
pub mod config;
pub mod control;
pub mod cost;
pub mod dashboard;
pub mod executor;
pub mod fidelity;
pub mod files;
mod guard;
pub mod number;
pub mod observer;
mod parallel;
pub mod real_time;
pub mod report;
pub mod runtime;
mod sanitize;
mod shell;
pub mod stats;
pub mod storage;
pub mod workload;
