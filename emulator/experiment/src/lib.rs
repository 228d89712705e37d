//! Experiments and their results: the experiment file, its claims, traces, and the study directory.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the experiment file: parsed, resolved, swept; claims |
//! | [`workload`] | traces of jobs on disk: their location, description, conversion |
//! | [`files`] | the files of an experiment, from the disk or bundled |
//! | [`storage`] | the study directory and its files |
//! | [`program`] | programs of policies in other languages, as child processes |
//! | [`fit`] | models of recorded interference |
//! | [`control`] | stop flag and observers of a study |
//! | [`fidelity`] | how far a run in real time departed from the configuration |
//! | [`codec`] | messages and records as bytes |
//! | [`stats`], [`number`], [`sanitize`] | statistics over replications; numbers formatted for people; foreign text made safe |
//! | [`cost`], [`parallel`], [`guard`], [`atomic_file`] | CPU time and memory; work on all processors; locks; files replaced as a whole |

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "public for the program only")]

pub mod atomic_file;
pub mod codec;
pub mod config;
pub mod control;
pub mod cost;
pub mod fidelity;
pub mod files;
pub mod fit;
pub mod guard;
pub mod number;
pub mod parallel;
pub mod program;
pub mod sanitize;
pub mod stats;
pub mod storage;
pub mod workload;
