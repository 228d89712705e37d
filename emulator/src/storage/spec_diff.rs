//! Differences between the experiments of two runs.

use serde_json::Value;

use crate::storage::manifest::Manifest;

/// Keys of a resolved experiment that are derived from others, or do not affect results.
const FOLLOWS: [&str; 5] = ["file", "id", "digest", "warnings", "claims"];
/// Number of differences named in a message.
const NAMED: usize = 3;
/// Length in characters at which a value in the message is cut.
const SHOWN: usize = 40;

/// The differences, if the two experiments differ and have no cell in common. Shards of one experiment may share a
/// folder without sharing cells.
pub(super) fn another(old: &Manifest, new: &Manifest) -> Option<String> {
    if old.cells.is_empty() || old.cells.iter().any(|id| new.cells.contains(id)) {
        return None;
    }
    let found = differences(old, new, ["there", "here"]);
    (!found.is_empty()).then(|| summary(&found))
}

/// The first differences, and how many there are beyond.
pub fn summary(found: &[String]) -> String {
    let named = found.len().min(NAMED);
    let rest =
        if found.len() > named { format!(", and {} more", found.len() - named) } else { String::new() };
    found[..named].join(", ") + &rest
}

/// Every difference between the resolved experiments of two runs, as `key: there A, here B` with these two names.
pub fn differences(old: &Manifest, new: &Manifest, names: [&str; 2]) -> Vec<String> {
    let mut found = Vec::new();
    leaves("", (&old.spec, &new.spec), names, &mut found);
    found
}

/// Adds the leaves that differ.
fn leaves(path: &str, (old, new): (&Value, &Value), names: [&str; 2], found: &mut Vec<String>) {
    let [there, here] = names;
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let only_new = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_new).filter(|key| !FOLLOWS.contains(&key.as_str())) {
                let side =
                    |table: &serde_json::Map<String, Value>| table.get(key).cloned().unwrap_or_default();
                leaves(&below(key), (&side(a), &side(b)), names, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                leaves(&below(&i.to_string()), (a, b), names, found);
            }
        }
        (a, b) if a == b => {}
        (Value::Array(a), Value::Array(b)) => {
            found.push(format!("{path}: {there} {} entries, {here} {}", a.len(), b.len()));
        }
        (a, b) => found.push(format!("{path}: {there} {}, {here} {}", brief(a), brief(b))),
    }
}

fn brief(value: &Value) -> String {
    let text = if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    if text.chars().count() <= SHOWN { text } else { text.chars().take(SHOWN).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::fixture::manifest;

    #[test]
    fn only_another_experiment_without_a_common_cell_is_refused() {
        let with = |cells: &[&str], spec: Value| Manifest { spec, ..manifest(cells) };
        let old = with(&["a", "b"], json!({"seed": 1, "file": "x.toml", "run": {"speed": 1.0}}));
        let same = with(&["c"], json!({"seed": 1, "file": "./x.toml", "run": {"speed": 1.0}}));
        assert_eq!(another(&old, &same), None, "another shard");
        let other = json!({"seed": 2, "file": "x.toml", "run": {}});
        assert_eq!(another(&old, &with(&["b", "c"], other.clone())), None, "more cells");
        assert_eq!(another(&with(&[], json!(null)), &with(&["c"], other.clone())), None, "nothing to lose");
        let differs = another(&old, &with(&["c"], other)).unwrap();
        assert_eq!(differs, "run.speed: there 1.0, here nothing, seed: there 1, here 2");
    }
}
