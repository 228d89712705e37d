//! A synthetic manifest for tests.

use serde_json::json;

use super::manifest::{Manifest, RunState};
use volary_engine::results::SCHEMA;

/// A manifest for these cells.
pub(crate) fn manifest(cells: &[&str]) -> Manifest {
    Manifest {
        schema: SCHEMA,
        version: "0.1.0".into(),
        experiment: "paper/fig6".into(),
        title: "Latin square against Sparrow under interference".into(),
        source: Some("the paper, section VI, Fig. 6".into()),
        runtime: "virtual".into(),
        seed: 12_345,
        spec: json!({"title": "Latin square", "cluster": {"nodes": 100}}),
        argv: vec!["volary".into(), "run".into(), "fig6.toml".into()],
        hosts: None,
        clock_error_s: None,
        injections: [].into(),
        cells: cells.iter().map(|&id| id.to_owned()).collect(),
        state: RunState::Running,
        started: "2024-01-01T00:00:00Z".into(),
        ended: None,
    }
}
