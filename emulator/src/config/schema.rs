//! JSON Schemas of the file formats.

use clap::ValueEnum;
use schemars::{Schema, schema_for};
use volary_netem::TopologyFile;

use super::file::File;
use volary_engine::cores::Interference;
use volary_engine::results::Line;

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
#[must_use]
pub fn schema(what: What) -> Schema {
    match what {
        What::Experiment => schema_for!(File),
        What::Topology => schema_for!(TopologyFile),
        What::Profile => schema_for!(Interference),
        What::Results => schema_for!(Line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_know_their_keys() {
        for (what, key) in [
            (What::Experiment, "interarrival"),
            (What::Experiment, "probe_ratio"),
            (What::Topology, "leaf-spine"),
            (What::Profile, "bernoulli"),
            (What::Results, "order_hash"),
        ] {
            let text = serde_json::to_string(&schema(what)).unwrap();
            assert!(text.contains(&format!("\"{key}\"")), "{what:?} lacks {key}");
        }
        let schema = serde_json::to_value(schema(What::Experiment)).unwrap();
        let speed = &schema["$defs"]["RunSection"]["properties"]["speed"];
        assert_eq!((&speed["minimum"], &speed["maximum"]), (&1e-6.into(), &1e6.into()), "{speed}");
    }
}
