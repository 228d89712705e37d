//! Differences between the experiment of a folder's earlier run and the one to run there.

use serde_json::Value;

use crate::storage::manifest::Manifest;

/// Keys of a resolved experiment that are derived from others, or do not affect results.
const FOLLOWS: [&str; 5] = ["file", "id", "digest", "warnings", "claims"];
/// Number of differences named in the message.
const NAMED: usize = 3;
/// Length in characters at which a value in the message is cut.
const SHOWN: usize = 40;

/// The differences, if the two experiments differ and have no cell in common. Shards of one experiment may share a
/// folder without sharing cells.
pub(super) fn another(old: &Manifest, new: &Manifest) -> Option<String> {
    if old.cells.is_empty() || old.cells.iter().any(|id| new.cells.contains(id)) {
        return None;
    }
    let mut found = Vec::new();
    differences("", &old.spec, &new.spec, &mut found);
    (!found.is_empty()).then(|| {
        let more = found.len().saturating_sub(NAMED);
        found.truncate(NAMED);
        let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
        found.join(", ") + &rest
    })
}

/// Leaves that differ, as `key: there A, here B`.
fn differences(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let only_new = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_new).filter(|key| !FOLLOWS.contains(&key.as_str())) {
                let side =
                    |table: &serde_json::Map<String, Value>| table.get(key).cloned().unwrap_or_default();
                differences(&below(key), &side(a), &side(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&below(&i.to_string()), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (Value::Array(a), Value::Array(b)) => {
            found.push(format!("{path}: there {} entries, here {}", a.len(), b.len()));
        }
        (a, b) => found.push(format!("{path}: there {}, here {}", brief(a), brief(b))),
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
