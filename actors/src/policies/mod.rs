//! Scheduling systems, one file each, and their registry. The file of a large system has the policy; a folder of the
//! same name has further parts and tests.
//!
//! A policy is its parameters: a serde struct that experiment files name and that builds the machines of a run. To
//! add one: a file here (parameters with defaults, units, ranges and paper section; its variants for randomised
//! tests; its machines; step tests), its `mod` line, one line in the registry, a row in `hops` of
//! `emulator/engine/tests/sim/oracles.rs`, a row in the README's table of policies.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a machine handles a few messages; the others count as unexpected, or a comment says why they cannot occur"
)]

pub mod big_c;
pub mod central_queue;
pub mod distsched;
pub mod dolly;
pub mod eagle;
pub mod external;
pub mod full_repetition;
pub mod gang;
pub mod gossip;
pub mod hadoop2;
pub mod hawk;
pub mod hedged;
pub mod hopper;
pub mod kairos;
pub mod kubernetes;
pub mod las_sparrow;
pub mod late;
pub mod latin_square;
pub mod mantri;
pub mod murmuration;
pub mod naive;
pub mod peacock;
pub mod pigeon;
mod policy;
pub mod prio;
pub mod random;
mod registry;
pub mod round_robin;
pub mod sparrow;
mod spec;
pub mod three_sigma;
pub mod yaq_c;
pub mod yaq_d;
pub mod yarn_fifo;

pub use policy::{
    Auxiliaries, Binds, BuildContext, Caches, DynPolicy, Gossips, MachineContext, Policy, Traits, is_watched,
};
pub use registry::{Card, Registry, vocabulary};
pub use spec::PolicySpec;
