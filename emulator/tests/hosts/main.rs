//! Agents and controllers over QUIC on loopback: the protocol with one side played by the test, and whole runs of
//! processes.

#![allow(unreachable_pub, clippy::unwrap_used, reason = "tests, of which no other crate uses anything")]

mod agents;
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod controllers;
mod flood;
mod inject;
mod kills;
mod net;
mod raw_quic;
mod runs;
mod transport;
