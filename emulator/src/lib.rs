//! volary emulates datacenter job schedulers as actors: one set of state machines, several runtimes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`runtime`] | runs in virtual time, and the execution of whole experiments |
//! | [`hosts`] | runs in real time, if the feature `hosts` is enabled |
//! | [`comparison`] | comparisons of two studies, and of one experiment in several runtimes |

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "public for the binary, tests and benches only")]

pub mod cli;
pub mod comparison;
pub mod hosts;
pub mod runtime;
