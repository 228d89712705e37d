//! JSON Schemas of the file formats.

use clap::ValueEnum;
use schemars::{Schema, schema_for};
use volary_engine::cores::Interference;
use volary_engine::results::Line;
use volary_netem::TopologyFile;

use super::file::File;

/// A file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum What {
    /// Experiment files.
    Experiment,
    /// Topology files.
    Topology,
    /// Interference profiles.
    Profile,
    /// Lines of results.
    Results,
}

/// Its JSON Schema.
pub fn schema(what: What) -> Schema {
    match what {
        What::Experiment => schema_for!(File),
        What::Topology => schema_for!(TopologyFile),
        What::Profile => schema_for!(Interference),
        What::Results => schema_for!(Line),
    }
}
