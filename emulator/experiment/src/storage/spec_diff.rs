//! Differences between the experiments of two runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use volary_engine::results::{canonical, plain, same};

use crate::number::plural;
use crate::storage::manifest::Manifest;

/// Keys of a resolved experiment that are derived from other keys, or do not affect results.
const FOLLOWS: [&str; 6] = ["file", "id", "digest", "warnings", "claims", "changed"];
/// Number of differences named in a message.
const NAMED: usize = 3;
/// Number of characters at which a value in the message is cut.
const SHOWN: usize = 40;

/// The differences between two experiments; `None` if there are none, they share a run, or the older experiment has no
/// runs. Slices of one experiment have no differences, and may share a folder without sharing a run.
pub(super) fn another(old: &Manifest, new: &Manifest) -> Option<String> {
    if old.runs.is_empty() || old.runs.iter().any(|id| new.runs.contains(id)) {
        return None;
    }
    let found = differences(old, new, ["there", "here"]);
    (!found.is_empty()).then(|| summary(&found))
}

/// The first differences, and the number of further ones.
pub fn summary(found: &[String]) -> String {
    let named = found.len().min(NAMED);
    let rest =
        if found.len() > named { format!(", and {} more", found.len() - named) } else { String::new() };
    found[..named].join(", ") + &rest
}

/// Every difference between the resolved experiments of two runs, as `key: there A, here B`, where `names` replaces
/// "there" and "here".
pub fn differences(old: &Manifest, new: &Manifest, names: [&str; 2]) -> Vec<String> {
    let mut leaves = Vec::new();
    add_leaves(&mut Vec::new(), (&old.spec, &new.spec), &mut leaves);
    let [there, here] = names;
    let mut found: Vec<String> = Vec::new();
    for Leaf { path, old: a, new: b } in leaves {
        let line = format!("{}: {there} {a}, {here} {b}", written(&path, &old.spec));
        // The cells of a sweep share most of their world.
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// A value that differs: its path in the resolved experiment, and both values as text.
struct Leaf {
    path: Vec<String>,
    old: String,
    new: String,
}

/// Adds the leaves that differ.
fn add_leaves(path: &mut Vec<String>, (old, new): (&Value, &Value), found: &mut Vec<Leaf>) {
    let below = |path: &mut Vec<String>, key: String, values: (&Value, &Value), found: &mut Vec<Leaf>| {
        path.push(key);
        add_leaves(path, values, found);
        path.pop();
    };
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let only_new = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_new).filter(|key| !FOLLOWS.contains(&key.as_str())) {
                let side =
                    |table: &serde_json::Map<String, Value>| table.get(key).cloned().unwrap_or_default();
                below(path, key.clone(), (&side(a), &side(b)), found);
            }
        }
        (a, b) if a == b || !(a.is_array() || a.is_object()) && same(a, b) => {}
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                let [old, new] = [a, b].map(|list| plural(list.len() as u64, "element"));
                found.push(Leaf { path: path.clone(), old, new });
            }
            for (i, j) in pairs(path, a, b) {
                below(path, i.to_string(), (&a[i], &b[j]), found);
            }
        }
        (a, b) => found.push(Leaf { path: path.clone(), old: brief(a), new: brief(b) }),
    }
}

/// Indices of corresponding elements of two lists: points of the same policy and cell, then the rest by position if the
/// lists have equal length.
fn pairs(path: &[String], a: &[Value], b: &[Value]) -> Vec<(usize, usize)> {
    let name = |point: &Value| format!("{} {}", point["label"], canonical(&point["cell"]));
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    if path == ["points"] {
        for (j, point) in b.iter().enumerate() {
            named.entry(name(point)).or_insert(j);
        }
    }
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    for (i, point) in a.iter().enumerate() {
        let same = if named.is_empty() { None } else { named.remove(&name(point)) };
        same.map_or_else(|| left.push(i), |j| pairs.push((i, j)));
    }
    if a.len() == b.len() {
        let taken: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
        pairs.extend(left.into_iter().zip((0..b.len()).filter(|j| !taken.contains(j))));
    }
    pairs
}

/// The key in an experiment file that corresponds to a path in the resolved experiment.
fn written(path: &[String], spec: &Value) -> String {
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let of_point = |point: &str, key: &str| &spec["points"][point.parse().unwrap_or(0)][key];
    let kinds = |point| of_point(point, "resolved")["cluster"]["nodes"].as_array().map_or(0, Vec::len);
    match parts.as_slice() {
        ["points"] => "policies times cells".to_owned(),
        ["points", point, "resolved", "cluster", "nodes", kind, column] => {
            let key = if *column == "0" { "nodes" } else { "cores" };
            if kinds(point) > 1 { format!("cluster.kind.{kind}.{key}") } else { format!("cluster.{key}") }
        }
        ["points", _, "resolved", "trace"] => "the trace that was found".to_owned(),
        ["points", _, "resolved", "measure", ..] => format!("run.{}", parts[3..].join(".")),
        ["points", point, "resolved", rest @ ..] => dotted(rest, of_point(point, "resolved")),
        ["points", point, "policy", _, rest @ ..] => {
            let label = plain(of_point(point, "label"));
            format!("policy.{label}{}{}", if rest.is_empty() { "" } else { "." }, rest.join("."))
        }
        ["points", _, "label"] => "policy.label".to_owned(),
        ["points", _, "cell", key @ ..] => key.join("."),
        ["sweep", axis, ..] => {
            let key = plain(&spec["sweep"][axis.parse().unwrap_or(0)][0]);
            format!("sweep.\"{key}\"")
        }
        _ => parts.join("."),
    }
}

/// A path as a dotted key. List elements with names are written by name.
fn dotted(path: &[&str], mut value: &Value) -> String {
    let mut key = Vec::new();
    for &part in path {
        value = part.parse::<usize>().map_or_else(|_| &value[part], |index| &value[index]);
        key.push(value["name"].as_str().filter(|_| part.parse::<usize>().is_ok()).unwrap_or(part));
    }
    key.join(".")
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
    fn differences_have_the_keys_of_experiment_files() {
        let point = |weight: f64, nodes: u32, probes: u32, load: f64| {
            let mix = json!({"class": [{"name": "batch", "weight": 1.0}, {"name": "web", "weight": weight}]});
            let fault = json!([{"crash": {"at": format!("{nodes}s")}}]);
            let resolved = json!({
                "cluster": {"nodes": [[nodes, 2]]}, "workload": {"mix": mix}, "network": {"fault": fault},
                "trace": null, "digest": "x", "measure": {"from": nodes},
            });
            json!({"label": "s", "policy": {"sparrow": {"probe_ratio": probes}}, "resolved": resolved,
                "cell": {"workload.mix.load": load}})
        };
        let spec = |weight, nodes, probes, load: f64| {
            let point = point(weight, nodes, probes, load);
            json!({"points": [point, point], "sweep": [["workload.mix.load", [load]]], "seed": 1,
                "run": {"measure": {"from": nodes}}})
        };
        let with = |spec| Manifest { spec, ..manifest(&[]) };
        let found =
            differences(&with(spec(2.0, 5, 2, 0.5)), &with(spec(3.0, 6, 4, 0.7)), ["first", "second"]);
        let keys: Vec<&str> =
            found.iter().filter_map(|line| line.split_once(": ")).map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            [
                "workload.mix.load",
                "policy.s.probe_ratio",
                "cluster.nodes",
                "run.measure.from",
                "network.fault.0.crash.at",
                "workload.mix.class.web.weight",
                "sweep.\"workload.mix.load\"",
            ],
            "each difference is listed once: {found:?}"
        );
        assert_eq!(found[1], "policy.s.probe_ratio: first 2, second 4");
        let more = json!({"points": [1, 2, 3]});
        let found = differences(&with(json!({"points": [1]})), &with(more), ["first", "second"]);
        assert_eq!(found, ["policies times cells: first 1 element, second 3 elements"]);
    }

    #[test]
    fn points_are_compared_by_policy_and_cell() {
        let point =
            |label: &str, jobs: u32| json!({"label": label, "resolved": {"workload": {"jobs": jobs}}});
        let with = |points: &[Value]| Manifest { spec: json!({"points": points}), ..manifest(&[]) };
        let found = |a: &[Value], b: &[Value]| differences(&with(a), &with(b), ["first", "second"]);
        let (a, b) = (point("a", 1), point("b", 2));
        assert_eq!(found(&[a.clone(), b.clone()], &[b.clone(), a.clone()]), [""; 0], "order is ignored");
        assert_eq!(
            found(&[a.clone(), b.clone()], &[point("b", 3)]),
            ["policies times cells: first 2 elements, second 1 element", "workload.jobs: first 2, second 3"]
        );
        assert!(found(&[a], &[b])[0].starts_with("policy.label: first \"a\", second \"b\""));
    }

    #[test]
    fn experiments_without_a_common_run_are_different_experiments() {
        let with = |cells: &[&str], spec: Value| Manifest { spec, ..manifest(cells) };
        let old = with(&["a", "b"], json!({"seed": 1, "file": "x.toml", "run": {"speed": 1.0}}));
        let same = with(&["c"], json!({"seed": 1, "file": "./x.toml", "run": {"speed": 1.0}}));
        assert_eq!(another(&old, &same), None, "another slice");
        let other = json!({"seed": 2, "file": "x.toml", "run": {}});
        assert_eq!(another(&old, &with(&["b", "c"], other.clone())), None, "more cells");
        assert_eq!(another(&with(&[], json!(null)), &with(&["c"], other.clone())), None, "there is no run");
        let differs = another(&old, &with(&["c"], other)).unwrap();
        assert_eq!(differs, "run.speed: there 1.0, here nothing, seed: there 1, here 2");
    }
}
