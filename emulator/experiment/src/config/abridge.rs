//! The points of an experiment as its manifest has them: without the long lists of their worlds.
//!
//! A trace of interference or an empirical distribution may have a million values, which each point would repeat. They
//! are in a file whose checksum the manifest records.

use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use volary_actors::policies::PolicySpec;
use volary_engine::fingerprint::Fingerprint;
use volary_engine::results::Cell;
use volary_engine::scenario::{Point, Resolved};

/// Longest list that is written out.
const LONGEST: usize = 256;

#[derive(Serialize)]
struct AbridgedPoint<'a> {
    cell: &'a Cell,
    policy: &'a PolicySpec,
    label: &'a str,
    resolved: Value,
    id: &'a str,
}

/// Serializes points. A list of more than [`LONGEST`] elements in a world is replaced by its length and a fingerprint,
/// so that experiments with different lists still differ.
pub(super) fn points<S: Serializer>(points: &[Point], serializer: S) -> Result<S::Ok, S::Error> {
    let mut known: Option<(&Arc<Resolved>, Value)> = None;
    let mut abridged = Vec::with_capacity(points.len());
    for point in points {
        // The policies of a cell have one world.
        let resolved = match &known {
            Some((world, value)) if Arc::ptr_eq(world, &point.resolved) => value.clone(),
            _ => {
                let mut value = serde_json::to_value(point.resolved.as_ref()).map_err(S::Error::custom)?;
                abridge("", &mut value);
                known = Some((&point.resolved, value.clone()));
                value
            }
        };
        let Point { cell, policy, label, id, .. } = point;
        abridged.push(AbridgedPoint { cell, policy, label, resolved, id });
    }
    serializer.collect_seq(abridged)
}

/// Names of the abridged lists. Others, such as faults and classes, are read back from manifests.
const ABRIDGED: [&str; 2] = ["rows", "values"];

fn abridge(name: &str, value: &mut Value) {
    match value {
        Value::Array(list) if list.len() > LONGEST && ABRIDGED.contains(&name) => {
            let mut fingerprint = Fingerprint::default();
            for element in &*list {
                fingerprint.update(element.to_string().as_bytes());
                fingerprint.update(b",");
            }
            *value = json!({"elements": list.len(), "fingerprint": fingerprint.to_string()});
        }
        Value::Array(list) => list.iter_mut().for_each(|element| abridge("", element)),
        Value::Object(table) => table.iter_mut().for_each(|(name, value)| abridge(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Experiment, Overrides};

    fn written(bursts: usize) -> Value {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.toml");
        let rows: String = (0..bursts).map(|i| format!("0 {i} {i}.5 2\n")).collect();
        std::fs::write(dir.path().join("b.txt"), rows).unwrap();
        let text = "title = \"t\"\ncluster.nodes = 2\ninterference.trace.file = \"b.txt\"\nservice.demand = \"1s\"\n\
                    workload.synthetic = { jobs = 2, tasks = 1, interarrival = \"1s\" }\n\
                    [[policy]]\nrandom = {}\n[[policy]]\nsparrow = {}\n";
        std::fs::write(&file, text).unwrap();
        serde_json::to_value(Experiment::load(&file, &Overrides::default()).unwrap()).unwrap()
    }

    #[test]
    fn long_lists_are_counted_and_short_ones_written() {
        let rows = |spec: &Value, point: usize| {
            spec["points"][point]["resolved"]["interference"]["trace"]["rows"].clone()
        };
        let (short, long, longer) = (written(200), written(20_000), written(20_001));
        assert_eq!(rows(&short, 1).as_array().unwrap().len(), 200);
        assert_eq!(rows(&long, 1)["elements"], 20_000);
        assert_eq!(rows(&long, 0), rows(&long, 1));
        assert_ne!(rows(&long, 0)["fingerprint"], rows(&longer, 0)["fingerprint"]);
        let mut faults = json!({"fault": vec![json!({"crash": {}}); 300]});
        abridge("", &mut faults);
        assert_eq!(faults["fault"].as_array().unwrap().len(), 300, "a list that is read again");
        assert!(long.to_string().len() < 10_000, "{}", long.to_string().len());
    }
}
