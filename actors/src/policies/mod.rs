//! One file per scheduling system, and the registry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy and its parameters, as an experiment file names them: `sparrow = { probe_ratio = 2 }`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySpec {
    /// Placeholder until the registry lands.
    Random(Empty),
}

/// No parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {}
