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
mod lossy;
mod net;
mod programs;
mod raw_quic;
mod runs;
mod transport;

/// The experiments that the engine's swarm draws.
#[path = "../../engine/tests/sim/swarm"]
mod drawn {
    mod draw;
    mod faults;
    mod parameters;
    pub(crate) mod seeds;
    mod survivors;

    pub(crate) use draw::experiment;
    use volary_experiment::config::{Experiment, Overrides};

    /// The folder from which topologies are drawn.
    const TOPOLOGIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/engine/tests/sim/swarm/topologies");

    /// Checks that an experiment can be run, and that a scheduler and a node survive.
    fn valid(text: &str) -> Result<(), String> {
        let planned = Experiment::plan("drawn.toml", text, &Overrides::default());
        let experiment = planned.map_err(|error| error.to_string())?;
        survivors::survivors(&experiment.points[0], experiment.seed).map(drop)
    }
}
