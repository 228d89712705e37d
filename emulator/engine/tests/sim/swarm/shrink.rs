//! The shrinker, which turns an experiment that fails into a smaller experiment that fails as well.

use toml::{Table, Value};

/// Maximum number of experiments that are tried.
const MOST_TRIES: u32 = 2000;

/// The smallest failing experiment that is reached from `text` by leaving out keys, faults and digits, lowering whole
/// numbers, and replacing distributions by constants.
pub(crate) fn smallest(text: &str, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut best: Value = toml::from_str::<Table>(text).unwrap().into();
    let mut tries = 0;
    loop {
        let (before, mut at) = (best.clone(), 0);
        while let Some(smaller) = simpler(&best).into_iter().nth(at) {
            if tries == MOST_TRIES {
                return toml::to_string(&best).unwrap();
            }
            tries += 1;
            if fails(&toml::to_string(&smaller).unwrap()) {
                best = smaller;
            } else {
                at += 1;
            }
        }
        if best == before {
            return toml::to_string(&best).unwrap();
        }
    }
}

/// Values that are one step simpler, the simplest first. Most are not valid experiments.
fn simpler(value: &Value) -> Vec<Value> {
    match value {
        Value::Table(table) => simpler_tables(table),
        Value::Array(items) => {
            let without = (0..items.len()).map(|gone| {
                items.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, item)| item.clone()).collect()
            });
            let within = items.iter().enumerate().flat_map(|(at, item)| {
                simpler(item).into_iter().map(move |item| {
                    let mut items = items.clone();
                    items[at] = item;
                    items
                })
            });
            without.chain(within).map(Value::Array).collect()
        }
        Value::Integer(number) => {
            let mut less: Vec<_> =
                [0, 1, number / 2, number - 1].into_iter().filter(|less| less < number).collect();
            less.dedup();
            less.into_iter().map(Value::Integer).collect()
        }
        Value::Float(number) => short(*number).map(Value::Float).into_iter().collect(),
        Value::String(text) => simpler_text(text).map(Value::String).into_iter().collect(),
        Value::Boolean(_) | Value::Datetime(_) => Vec::new(),
    }
}

fn simpler_tables(table: &Table) -> Vec<Value> {
    // A file needs a title.
    let without = table.keys().filter(|key| *key != "title").map(|key| {
        let mut table = table.clone();
        table.remove(key);
        Value::Table(table)
    });
    // Tables of one key may be distributions.
    let constants = (table.len() == 1)
        .then(|| [Value::Integer(1), Value::String("1s".to_owned()), Value::String("10ms".to_owned())]);
    let within = table.iter().flat_map(|(key, value)| {
        simpler(value).into_iter().map(move |value| {
            let mut table = table.clone();
            table.insert(key.clone(), value);
            Value::Table(table)
        })
    });
    let nodes = table.contains_key("topology").then(|| {
        let mut table = table.clone();
        table.remove("topology");
        table.insert("nodes".to_owned(), Value::Integer(4));
        Value::Table(table)
    });
    without.chain(constants.into_iter().flatten()).chain(nodes).chain(within).collect()
}

/// A duration or another text that begins with a number, with fewer digits; or a range of nodes as its first node.
fn simpler_text(text: &str) -> Option<String> {
    if let Some((first, _)) = text.strip_prefix("nodes:").and_then(|range| range.split_once('-')) {
        return Some(format!("node:{first}"));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some(format!("{}{unit}", short(number.parse().ok()?)?))
}

/// The number with one significant digit; `None` if it has no further digits.
fn short(number: f64) -> Option<f64> {
    let rounded: f64 = format!("{number:.0e}").parse().unwrap();
    (rounded != number).then_some(rounded)
}

#[test]
fn the_smallest_experiment_keeps_only_what_makes_it_fail() {
    let text = "title = \"t\"\nseed = 3\n[cluster]\nnodes = 12\ncores = 3\n[workload.synthetic]\njobs = 59\n\
         tasks = { uniform = { low = 1, high = 7 } }\n[network]\nloss = 0.2\n\
         [[network.fault]]\npause = { who = [\"nodes:1-3\"], at = \"12.744s\", for = \"12.7s\" }\n\
         [[network.fault]]\ncrash = { who = [\"scheduler:1\", \"node:2\"], at = \"31.624s\" }\n\
         [[network.fault]]\ncrash = { who = [\"node:4\"], at = \"1s\" }\n";
    let fails = |text: &str| {
        let table: Table = toml::from_str(text).unwrap();
        let jobs =
            table.get("workload").and_then(|workload| workload.get("synthetic")?.get("jobs")?.as_integer());
        let faults = table.get("network").and_then(|network| network.get("fault")?.as_array());
        let scheduler =
            faults.is_some_and(|faults| faults.iter().any(|fault| fault.to_string().contains("scheduler:1")));
        jobs.is_some_and(|jobs| jobs > 4) && scheduler
    };
    let small = smallest(text, fails);
    let lines: Vec<_> = small.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "title = \"t\"",
            "[[network.fault]]",
            "[network.fault.crash]",
            "who = [\"scheduler:1\"]",
            "[workload.synthetic]",
            "jobs = 5"
        ],
        "{small}"
    );
}
