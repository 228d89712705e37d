//! Execution in real time: in one process, on real cores, and across hosts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`real_time`] | the event loop, clocks and mailboxes of real time |
//! | [`local`] | one run in real time, in one process |
//! | [`cluster`] | runs across hosts, over QUIC |
//! | [`executor`] | copies on real cores, and real interference |
//! | [`awake`] | processors kept from sleeping during a run in real time |

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "public for the program only")]

pub mod awake;
pub mod cluster;
pub mod executor;
pub mod local;
pub mod real_time;
