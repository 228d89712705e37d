//! Values in the syntax of an experiment file.

use serde::Serialize;
use serde_json::{Map, Value};
use toml::ser::ValueSerializer;
use volary_engine::scenario::Resolved;
use volary_netem::Network;
use volary_netem::topology::TopologyFile;

/// Length in characters beyond which a line is cut.
const LONGEST: usize = 300;

/// The keys of a table in one line: `jobs = 4000, interarrival = { exponential = { mean = "10ms" } }`. Other values
/// are written unchanged.
pub(super) fn line(value: &impl Serialize) -> String {
    let text = inline(value);
    let keys = text.strip_prefix("{ ").and_then(|text| text.strip_suffix(" }")).map(str::to_owned);
    cut(keys.unwrap_or(text))
}

/// The settings of the network, one line per key: the links of a topology, and the keys of `[network]` that are not
/// defaults.
pub(super) fn network(world: &Resolved) -> Vec<String> {
    let topology = world.cluster.topology.as_ref();
    let mut lines: Vec<String> = topology.map(links).unwrap_or_default();
    let defaults = serde_json::to_value(Network::default()).unwrap_or_default();
    for (key, value) in table(&world.network).iter().filter(|(key, value)| defaults.get(*key) != Some(*value))
    {
        let partly = topology.is_some() && ["loss", "rate", "buffer"].contains(&key.as_str());
        let limit = if partly { ", where a link of the topology has no other" } else { "" };
        lines.extend(each(key, value).map(|line| line + limit));
    }
    if lines.is_empty() {
        lines.push("none: messages arrive at once".to_owned());
    }
    lines.into_iter().map(cut).collect()
}

fn links(topology: &TopologyFile) -> Vec<String> {
    let shape = table(&topology.shape);
    let listed = shape.get("graph").and_then(|graph| graph.get("link"));
    let listed = listed.into_iter().flat_map(|links| each("shape.graph.link", links));
    let classes = table(&topology.link);
    let classes =
        classes.iter().flat_map(|(key, class)| each(&format!("link.{key}"), class).collect::<Vec<_>>());
    listed.chain(classes).collect()
}

/// `key = value`; a list of tables gives one line per table.
fn each<'a>(key: &'a str, value: &'a Value) -> impl Iterator<Item = String> + use<'a> {
    let tables = value.as_array().filter(|items| items.iter().all(Value::is_object));
    let all = tables.map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    all.iter().map(move |value| format!("{key} = {}", inline(value)))
}

fn table(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(table)) => table,
        Ok(_) | Err(_) => Map::new(),
    }
}

fn inline(value: &impl Serialize) -> String {
    let mut text = String::new();
    match value.serialize(ValueSerializer::new(&mut text)) {
        Ok(_) => text,
        // TOML has no null.
        Err(_) => serde_json::to_string(value).unwrap_or_default(),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_as_they_are_written() {
        let distribution = json!({ "jobs": 10, "tasks": { "normal": { "mean": 2.0 } }, "with": "a.tr" });
        assert_eq!(line(&distribution), "jobs = 10, tasks = { normal = { mean = 2.0 } }, with = \"a.tr\"");
        assert_eq!(line(&json!({ "file": null })), "{\"file\":null}");
        assert_eq!((line(&json!(1.5)), line(&json!({ "random": {} }))), ("1.5".into(), "random = {}".into()));
        let faults: Vec<_> = each("fault", &json!([{ "at": "1s" }, { "at": "2s" }])).collect();
        assert_eq!(faults, ["fault = { at = \"1s\" }", "fault = { at = \"2s\" }"]);
        let long = line(&json!("é".repeat(400)));
        assert!(long.ends_with("… (402 characters)"), "{long}");
    }
}
