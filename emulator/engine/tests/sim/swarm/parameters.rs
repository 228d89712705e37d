//! Parameters of a policy drawn from the ranges that its schema states.

use serde_json::{Map, Value};
use volary_actors::layout::Layout;
use volary_actors::policies::{Card, PolicySpec};
use volary_engine::scenario::PolicyEntry;

use super::draw::Dice;

/// A policy with some of its parameters drawn, as a TOML table entry. Combinations that the policy refuses on `layout`
/// are drawn again.
pub(crate) fn parameters(dice: &mut Dice, card: &Card, layout: &Layout) -> String {
    let schema = card.schema.as_value();
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    loop {
        let drawn = properties.iter().filter(|_| dice.chance(40)).collect::<Vec<_>>();
        let drawn: Vec<String> = drawn
            .iter()
            .map(|(name, property)| format!("{name} = {}", value(dice, property, schema)))
            .collect();
        let text = format!("{} = {{ {} }}", card.name, drawn.join(", "));
        if policy(&text).is_some_and(|spec| spec.check(layout).is_ok()) {
            return text;
        }
    }
}

fn policy(text: &str) -> Option<PolicySpec> {
    toml::from_str::<PolicyEntry>(text).ok().map(|entry| entry.spec)
}

/// A value for a property, as TOML.
fn value(dice: &mut Dice, property: &Value, schema: &Value) -> String {
    if let Some(choices) = property["oneOf"].as_array() {
        return choices[dice.below(choices.len() as u32) as usize]["const"].to_string();
    }
    if let Some(name) = property["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        let definition = &schema["$defs"][name];
        return if name == "Duration" {
            duration(dice, &property["default"])
        } else {
            value(dice, definition, schema)
        };
    }
    let stated = |key: &str| property[key].as_f64();
    let least = stated("minimum").or_else(|| Some(stated("exclusiveMinimum")? + 1e-3)).unwrap_or_default();
    let range = (least, stated("maximum").unwrap_or(1e9));
    let default = stated("default").unwrap_or(1.0);
    match property["type"].as_str() {
        Some("boolean") => dice.chance(50).to_string(),
        Some("number") => format!("{:?}", number(dice, default, range)),
        Some("array") => format!("{:?}", (0..dice.below(4)).map(|_| 0.1 + dice.unit()).collect::<Vec<_>>()),
        Some("object") => {
            let keys = property["properties"].as_object().into_iter().flatten();
            let drawn: Vec<_> =
                keys.map(|(name, property)| format!("{name} = {}", value(dice, property, schema))).collect();
            format!("{{ {} }}", drawn.join(", "))
        }
        Some("string") => panic!("no way to draw {property}"),
        // Also of an optional integer, whose type is a list.
        _ => (number(dice, default, range).round() as u64).to_string(),
    }
}

/// A number: sometimes an end of the range, otherwise a number around the default.
fn number(dice: &mut Dice, default: f64, (least, most): (f64, f64)) -> f64 {
    let around = default.max(1e-3) * dice.scale(0.05, 20.0);
    let drawn = match dice.below(10) {
        0 if least >= default / 1000.0 || least == 0.0 => least,
        1 if most <= 1e5 => most.min(100.0),
        2..6 if most - least <= 1.0 => least + (most - least) * dice.unit(),
        _ => around,
    };
    drawn.clamp(least, most)
}

fn duration(dice: &mut Dice, default: &Value) -> String {
    let shown = default.as_str().unwrap_or("0ns");
    let at = shown.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(shown.len());
    let (amount, unit) = shown.split_at(at);
    match amount.parse::<f64>() {
        Ok(amount) if amount > 0.0 => format!("\"{}{unit}\"", amount * dice.scale(0.05, 20.0)),
        _ => dice.pick(&["\"0ns\"", "\"1ms\"", "\"100ms\"", "\"2s\""]).to_owned(),
    }
}
