//! volary emulates datacenter job schedulers as actors: one set of state machines, several runtimes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`runtime`] | runs in virtual time, and the execution of whole experiments |
//! | [`hosts`] | runs in real time, unless they were left out |
//! | [`comparison`] | two studies, or one experiment in several runtimes, compared |

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "public for the binary, tests and benches only")]

pub mod cli;
pub mod comparison;
pub mod hosts;
pub mod runtime;
