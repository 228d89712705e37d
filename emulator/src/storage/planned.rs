//! The points of an experiment, as its manifest has them.

use serde_json::Value;
use volary_engine::results::Cell;

use super::manifest::Manifest;

/// A policy in a cell.
#[derive(Clone, Copy)]
pub struct PlannedPoint<'a>(&'a Value);

impl Manifest {
    /// The points in the order of the experiment, those of a cell adjacent; none if the experiment is missing.
    pub fn points(&self) -> impl Iterator<Item = PlannedPoint<'_>> {
        self.spec.get("points").and_then(Value::as_array).into_iter().flatten().map(PlannedPoint)
    }
}

impl<'a> PlannedPoint<'a> {
    /// The label of the policy; empty if it is missing.
    pub fn label(self) -> &'a str {
        self.0["label"].as_str().unwrap_or_default()
    }

    /// The kind of the policy and its parameters, the defaults among them.
    pub fn policy(self) -> Option<(&'a str, &'a Value)> {
        let (kind, parameters) = self.0["policy"].as_object()?.iter().next()?;
        Some((kind, parameters))
    }

    /// The values of the swept keys.
    pub fn cell(self) -> Cell {
        let values = self.0["cell"].as_object().into_iter().flatten();
        values.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// A key of the world, as a JSON pointer; `None` if it is missing.
    pub fn world(self, pointer: &str) -> Option<&'a Value> {
        self.0["resolved"].pointer(pointer)
    }

    /// Whether a generator stands in for a trace that was not found.
    pub fn has_stand_in(self) -> bool {
        self.world("/workload/trace").is_some() && self.world("/trace").is_none_or(Value::is_null)
    }
}
