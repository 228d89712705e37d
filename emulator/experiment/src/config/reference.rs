//! JSON Schemas of the file formats, and their descriptions for readers, from the same schemas that editors use.
//!
//! A schema is generated from the types that parse the file and from their comments. The description therefore always
//! matches the accepted files.

use std::fmt::Write as _;

use clap::ValueEnum;
use schemars::{Schema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;
use volary_actors::base::{DistributionSpec, Span};
use volary_actors::message::{KINDS, kinds};
use volary_engine::cores::Interference;
use volary_engine::results::Line;
use volary_netem::TopologyFile;

use super::claims;
use super::explain::backticked;
use super::file::File;

/// A key and its accepted values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The dotted key, with `[]` after a list.
    pub key: String,
    /// The kind of value, in words.
    pub kind: String,
    /// Whether the key is required in the file.
    pub needed: bool,
    /// Default of the key, as JSON.
    pub default: Option<String>,
    /// Meaning of the key, its unit, and the effect of leaving it out.
    pub about: String,
    /// The accepted words with their meanings, if the value is a word.
    pub words: Vec<(String, String)>,
}

/// The description of a file format: every key with its meaning, then the rules common to several keys.
pub fn text(what: What) -> String {
    let schema = schema(what).to_value();
    let mut out = String::new();
    if let Some(about) = about(&schema) {
        let _ = writeln!(out, "{about}\n");
    }
    let keys: Vec<Entry> = match what {
        What::Experiment => entries(&schema, &declared::<File>),
        What::Topology => entries(&schema, &declared::<TopologyFile>),
        What::Profile => entries(&schema, &declared::<Interference>),
        What::Results => numbers(&schema, |_| true, true),
    };
    list(&mut out, "", &keys);
    if let Some(unit) = about(&schema["$defs"][DURATION]) {
        let _ = writeln!(out, "\nA duration is {unit}, in quotes: \"10ms\".");
    }
    distributions(&mut out, &schema);
    if what == What::Experiment {
        let results = self::schema(What::Results).to_value();
        out.push_str("\nNumbers that claims can compare, each after the label of a policy and a dot\n\n");
        list(&mut out, "  ", &numbers(&results, |path| claims::is_comparable(path, NAME), false));
        let _ = writeln!(
            out,
            "\n  KIND is one of {}.",
            kinds().map(|(kind, _)| kind).collect::<Vec<_>>().join(", ")
        );
        out.push_str("\nThe grammar of claims\n\n");
        indented(&mut out, "  ", claims::GRAMMAR);
    }
    out
}

/// The keys of a policy's parameters, in the order of its struct.
pub fn parameters(policy: &str, schema: &Value) -> Vec<Entry> {
    entries(schema, &|key| {
        let dot = if key.is_empty() { "" } else { "." };
        declared::<File>(&format!("policy[].{policy}{dot}{key}"))
    })
}

/// The keys of a schema; the keys of a table follow the table. `order` gives the order of a table's keys.
fn entries(schema: &Value, order: Order<'_>) -> Vec<Entry> {
    let mut walk = Walk { root: schema, order, found: Vec::new() };
    walk.below("", schema);
    walk.found
}

/// Writes entries, each with its description below it.
pub fn list(out: &mut String, indent: &str, entries: &[Entry]) {
    for entry in entries {
        let default = entry.default.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
        let needed = if entry.needed { ", needed" } else { "" };
        let _ = writeln!(out, "{indent}{}{default}  ({}{needed})", entry.key, entry.kind);
        indented(out, &format!("{indent}    "), &entry.about);
        for (word, about) in &entry.words {
            let _ = writeln!(out, "{indent}    \"{word}\": {}", about.replace('\n', " "));
        }
    }
}

fn indented(out: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "{indent}{line}");
    }
}

/// The numbers of a line of results whose path `wanted` accepts; with `tables`, also the descriptions of the tables
/// that contain them.
fn numbers(schema: &Value, wanted: impl Fn(&[&str]) -> bool, tables: bool) -> Vec<Entry> {
    let mut all = entries(schema, &|_| Vec::new());
    let number = |entry: &Entry| {
        let mut path: Vec<&str> = entry.key.split('.').collect();
        if path == claims::BY_KIND {
            path.push(KINDS[0].0); // any kind
        }
        if entry.kind == TABLE { tables && !entry.about.is_empty() } else { wanted(&path) }
    };
    all.retain(number);
    let by_kind = claims::BY_KIND.join(".");
    all.iter_mut().filter(|entry| entry.key == by_kind).for_each(|entry| entry.key.push_str(".KIND"));
    // All numbers are always present.
    all.iter_mut().for_each(|entry| entry.needed = false);
    all
}

/// The distributions that a value may follow, if the format has any.
fn distributions(out: &mut String, schema: &Value) {
    let defs = schema["$defs"].as_object();
    let Some((name, distribution)) =
        defs.and_then(|defs| defs.iter().find(|(name, _)| name.starts_with(DISTRIBUTION)))
    else {
        return;
    };
    let _ = writeln!(
        out,
        "\nDistributions: instead of a value, a one-key table such as {{ exponential = {{ mean = \"1s\" }} }}\n\
         (here of a {}; others are alike)\n",
        name.trim_start_matches(DISTRIBUTION).to_lowercase(),
    );
    let mut walk = Walk { root: schema, order: &declared::<DistributionSpec<Span>>, found: Vec::new() };
    walk.alternatives("", distribution);
    list(out, "  ", &walk.found);
}

const DISTRIBUTION: &str = "Distribution of ";
const DURATION: &str = "Duration";
const TABLE: &str = "table";
/// Placeholder for any key of a table of tables.
const NAME: &str = "NAME";
const OPEN: &str = "table of names";

/// Gives the keys of the table at a key, in the order of declaration.
type Order<'a> = &'a dyn Fn(&str) -> Vec<String>;

struct Walk<'a> {
    root: &'a Value,
    order: Order<'a>,
    found: Vec<Entry>,
}

impl<'a> Walk<'a> {
    /// The schema behind references and without `null`, and its name; the name is `None` for an inline schema.
    fn resolve(&self, mut schema: &'a Value) -> (&'a Value, Option<String>) {
        let mut name = None;
        loop {
            if let Some(reference) = schema["$ref"].as_str() {
                let last = reference.trim_start_matches("#/$defs/").replace("%20", " ");
                schema = &self.root["$defs"][last.as_str()];
                name = Some(last);
                continue;
            }
            let choices = schema["anyOf"].as_array().map(Vec::as_slice);
            match choices {
                Some([one, null]) if null["type"] == "null" => schema = one,
                Some(_) | None => return (schema, name),
            }
        }
    }

    /// The keys below a table, a list of tables, or a choice of tables.
    fn below(&mut self, key: &str, schema: &'a Value) {
        let (schema, name) = self.resolve(schema);
        if name.is_some_and(|name| name.starts_with(DISTRIBUTION)) {
            return;
        }
        if schema["items"].is_object() {
            self.below(&format!("{key}[]"), &schema["items"]);
        }
        if schema["additionalProperties"].is_object() {
            self.below(&format!("{key}.{NAME}"), &schema["additionalProperties"]);
        }
        self.properties(key, schema, None);
        self.alternatives(key, schema);
    }

    fn alternatives(&mut self, key: &str, schema: &'a Value) {
        for choice in ["oneOf", "anyOf"].iter().filter_map(|choice| schema[*choice].as_array()).flatten() {
            let (table, _) = self.resolve(choice);
            self.properties(key, table, about(table));
            self.alternatives(key, table);
        }
    }

    /// Adds the keys of a table. `chosen` is the meaning of this table if the table is one of several alternatives.
    fn properties(&mut self, key: &str, table: &'a Value, chosen: Option<&'a str>) {
        let order = (self.order)(key);
        let mut properties: Vec<_> = table["properties"].as_object().into_iter().flatten().collect();
        properties
            .sort_by_key(|(name, _)| order.iter().position(|known| known == *name).unwrap_or(order.len()));
        for (name, schema) in properties {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            if self.found.iter().any(|entry| entry.key == key) {
                continue;
            }
            let required =
                || table["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            let (inner, of) = self.resolve(schema);
            let words = words(inner);
            let kind = self.kind(inner, of.as_deref());
            let own = about(schema).or(chosen).or_else(|| about(inner)).unwrap_or_default();
            self.found.push(Entry {
                needed: chosen.is_none() && required(),
                default: Some(&schema["default"])
                    .filter(|d| !d.is_null() && !d.is_object())
                    .map(Value::to_string),
                about: if own == kind { String::new() } else { own.to_owned() },
                key: key.clone(),
                words,
                kind,
            });
            self.below(&key, schema);
        }
    }

    /// A value's kind in words.
    fn kind(&self, schema: &'a Value, name: Option<&str>) -> String {
        if let Some(of) = name.and_then(|name| name.strip_prefix(DISTRIBUTION)) {
            return if of == DURATION {
                "duration, or a distribution of one"
            } else {
                "number, or a distribution of one"
            }
            .into();
        }
        if name == Some(DURATION) {
            return "duration".into();
        }
        if !words(schema).is_empty() {
            let tables =
                schema["oneOf"].as_array().is_some_and(|all| all.iter().any(|one| one["const"].is_null()));
            return if tables { "a word, or a table" } else { "a word" }.into();
        }
        let types =
            schema["type"].as_array().and_then(|types| types.first()).unwrap_or_else(|| &schema["type"]);
        match types.as_str() {
            Some("array") => {
                let (item, of) = self.resolve(&schema["items"]);
                format!("list: {}", self.kind(item, of.as_deref()))
            }
            Some("object") if schema["properties"].is_object() => TABLE.into(),
            Some("object") => OPEN.into(),
            None if schema["oneOf"].is_array() => TABLE.into(),
            _ if name.is_some() && about(schema).is_some() => about(schema).unwrap_or_default().into(),
            Some("boolean") => "true or false".into(),
            Some("integer") => format!("whole number{}", range(schema)),
            Some("number") => format!("number{}", range(schema)),
            Some("string") => "text".into(),
            Some(_) | None => "any value".into(),
        }
    }
}

/// The range of a number, if both ends are known.
fn range(schema: &Value) -> String {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(low), Value::Number(high)) => format!(" from {low} to {high}"),
        _ => String::new(),
    }
}

/// The words of a choice, with their meanings.
fn words(schema: &Value) -> Vec<(String, String)> {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let word =
        |one: &Value| Some((one["const"].as_str()?.to_owned(), about(one).unwrap_or_default().to_owned()));
    let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    choices.filter_map(word).chain(plain.map(|word| (word.to_owned(), String::new()))).collect()
}

fn about(schema: &Value) -> Option<&str> {
    schema["description"].as_str()
}

/// The keys of the table at `key` of a file that is read as a `T`, in the order of declaration; empty if any key is
/// accepted. JSON Schemas do not preserve this order, but serde's error for an unknown key lists the keys in it.
fn declared<T: DeserializeOwned>(key: &str) -> Vec<String> {
    let Err(error) = toml::from_str::<T>(&stray(key)) else { return Vec::new() };
    let message = error.message();
    let known = ["unknown field", "unknown variant"].iter().find_map(|what| {
        // An error within a parameter of a policy begins with the name of the parameter.
        let (name, known) = message.split_once(what)?.1.split_once(',')?;
        name.contains(STRAY).then_some(known)
    });
    known.map(backticked).unwrap_or_default().into_iter().map(str::to_owned).collect()
}

/// A key that no table has.
const STRAY: &str = "?";

/// A file that contains only [`STRAY`] in the table at `key`.
fn stray(key: &str) -> String {
    let (mut text, mut path) = (String::new(), String::new());
    for part in key.split('.') {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(part.trim_end_matches("[]"));
        if part.ends_with("[]") {
            text.push_str(&format!("[[{path}]]\n"));
        }
    }
    if !key.is_empty() && !key.ends_with("[]") {
        text.push_str(&format!("[{path}]\n"));
    }
    format!("{text}\"{STRAY}\" = 0\n")
}

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

/// The JSON Schema of a file format.
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
    fn every_key_of_every_format_is_explained() {
        for what in [What::Experiment, What::Topology, What::Profile, What::Results] {
            for entry in entries(&schema(what).to_value(), &|_| Vec::new()) {
                let said = !entry.about.is_empty() || entry.kind.contains(' ');
                assert!(
                    said && entry.kind != "any value" || entry.key.ends_with("staleness"),
                    "{what:?}: {entry:?}"
                );
            }
        }
    }
}
