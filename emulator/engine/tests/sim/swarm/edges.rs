//! The edges of ranges: one experiment in five has some of its values at the ends of the allowed ranges, such as
//! periods of hours, thousands of probes, and links that lose nearly all messages or have a very low rate.

use toml::{Table, Value};
use volary_actors::base::{Rng, Span};

use super::checks::valid;
use super::draw::{Dice, experiment};

/// The experiment of a seed. One experiment in five has up to three values at edges. Edges at which it cannot be run
/// are skipped.
pub(crate) fn at_edges(seed: u64) -> String {
    let text = experiment(seed);
    let mut dice = Dice(Rng::new(seed, 0, 2));
    if !dice.chance(20) {
        return text;
    }
    let mut found = text;
    for _ in 0..1 + dice.below(3) {
        let mut table: Table = toml::from_str(&found).expect("it is drawn");
        edge(&mut dice, &mut table);
        let text = toml::to_string(&table).expect("it is a table");
        if valid(&text).is_ok() {
            found = text;
        }
    }
    found
}

/// Sets one value to an edge.
fn edge(dice: &mut Dice, file: &mut Table) {
    let topology = at(file, "cluster").contains_key("topology");
    let few = at(file, "network").contains_key("rate");
    match dice.below(10) {
        0 => {
            let hours = dice.scale(1.0, 50.0).round();
            one_of(dice, policy(file), &is_duration, &Value::String(format!("{hours}h")));
        }
        1 => {
            for (key, most) in [("probe_ratio", 1000.0), ("min_probes", 2000.0), ("choices", 64.0)] {
                let most = dice.scale(most / 50.0, most);
                if let Some(value) = policy(file).get_mut(key) {
                    *value = like(value, most);
                }
            }
        }
        2 if !topology => set(file, "loss", Value::Float(dice.scale(0.3, 0.99))),
        3 if !topology => {
            let mean = dice.scale(1.0, 60.0).round();
            set(file, "one_way", distribution(&format!("{mean}s")));
            set(file, "peer_timeout", Value::String(format!("{}s", 200.0 * mean)));
        }
        4 => set(file, "duplicate", Value::Float(1.0)),
        5 => {
            set(file, "reorder", Value::Float(1.0));
            set(file, "reorder_by", distribution(&format!("{}ms", dice.scale(1.0, 60_000.0).round())));
        }
        6 if !topology && !few => {
            // Heartbeats, reports and orders to switch would fill a link of such a low rate, so messages of these
            // periods are sent only every two seconds.
            for key in ["repair", "quantum"] {
                if let Some(period) =
                    policy(file).get_mut(key).filter(|period| period.as_str() != Some("0ns"))
                {
                    *period = Value::String("2s".to_owned());
                }
            }
            let bits = dice.scale(20_000.0, 200_000.0).round();
            set(file, "rate", Value::String(format!("{bits} bit/s")));
            set(file, "peer_timeout", Value::String("3000s".to_owned()));
        }
        7 if !topology => {
            let cluster = at(file, "cluster");
            cluster.remove("kind");
            cluster.insert("nodes".to_owned(), Value::Integer(1));
        }
        8 => {
            at(file, "service").insert("demand".to_owned(), Value::String("0s".to_owned()));
        }
        _ => {
            let slowdown = dice.scale(100.0, 1000.0).round();
            let burst: Table = toml::from_str(&format!(
                "bernoulli = {{ slot = \"10s\", probability = 0.3, slowdown = {slowdown} }}"
            ))
            .expect("it is a table");
            file.insert("interference".to_owned(), burst.into());
        }
    }
}

/// A section of the file, which is made if it is missing.
fn at<'a>(file: &'a mut Table, section: &str) -> &'a mut Table {
    let entry = file.entry(section).or_insert_with(|| Table::new().into());
    entry.as_table_mut().expect("sections are tables")
}

fn set(file: &mut Table, key: &str, value: Value) {
    at(file, "network").insert(key.to_owned(), value);
}

/// All parameters of the only policy.
fn policy(file: &mut Table) -> &mut Table {
    let entry = file["policy"].as_array_mut().and_then(|all| all[0].as_table_mut()).expect("there is one");
    let name = entry.keys().find(|key| *key != "label").cloned().expect("it has a name");
    let spec = volary_actors::policies::PolicySpec::named(&name).expect("it is registered");
    let drawn = entry[&name].clone();
    let spec = serde::de::DeserializeSeed::deserialize(spec, drawn).expect("it was drawn");
    let whole = Value::try_from(&spec).expect("parameters are values");
    entry.insert(name.clone(), whole[&name].clone());
    entry[&name].as_table_mut().expect("parameters are a table")
}

fn is_duration(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<Span>().is_ok())
}

/// Replaces one of the values for which `which` holds.
fn one_of(dice: &mut Dice, table: &mut Table, which: &dyn Fn(&Value) -> bool, by: &Value) {
    let keys: Vec<String> =
        table.iter().filter(|(_, value)| which(value)).map(|(key, _)| key.clone()).collect();
    if !keys.is_empty() {
        let key = &keys[dice.below(keys.len() as u32) as usize];
        table.insert(key.clone(), by.clone());
    }
}

/// A number of the same type as `value`.
fn like(value: &Value, number: f64) -> Value {
    if value.is_integer() { Value::Integer(number as i64) } else { Value::Float(number) }
}

fn distribution(mean: &str) -> Value {
    let text = format!("exponential = {{ mean = \"{mean}\" }}");
    toml::from_str::<Table>(&text).expect("it is a distribution").into()
}
