//! Simulations with the engine alone: closed forms, faults, sharding, injections, and worlds drawn from seeds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod common;
mod distsched;
mod exact_cores;
mod faults;
mod handling;
mod injections;
mod kairos;
mod mix;
mod murmuration;
mod oracles;
mod pigeon;
mod programs;
mod regressions;
mod sharding;
mod shared;
mod slo;
mod speculation;
mod swarm;
mod three_sigma;
mod timeline;
mod window;
mod world;
