//! The actors of volary as pure state machines.
//!
//! Nothing here reads a clock, does I/O, spawns a thread or draws ambient randomness. A machine is stepped
//! with an [`Input`](machine::Input) and pushes [`Effect`](machine::Effect)s into a buffer; a runtime
//! (virtual time, one process, many hosts) carries them out. The same compiled code runs in all of them.
//!
//! | module | contents |
//! |---|---|
//! | [`base`] | time, ids, addressed randomness, distributions |
//! | [`machine`] | `Machine`, `Input`, `Effects`, timers, notes |
//! | [`message`] | the messages, in files of related protocols |
//! | [`layout`] | roles and endpoints of actors; the members of a gossip group |
//! | [`catalog`] | descriptions of jobs |
//! | [`predict`] | predictors of run times |
//! | [`roles`] | client, worker, the standard node manager, job tables |
//! | [`policies`] | scheduling systems, and their registry |
//! | [`program`] | programs outside of volary that decide for actors |
//! | [`harness`] | tests that step one machine |
//!
//! Arrows point one way: `policies → roles → machine → message → layout, catalog → base`.

#![forbid(unsafe_code)]

pub mod base;
pub mod catalog;
pub mod harness;
pub mod layout;
pub mod machine;
pub mod message;
pub mod policies;
pub mod predict;
pub mod program;
pub mod roles;
