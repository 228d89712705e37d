//! Tests of the schema of `volary schema results` against the lines that runs print.

use std::fs;

use crate::common::binary::{EXPERIMENT, expect, folder, lines};
use serde_json::{Value, json};

/// The errors of a value against a schema, with their places. Only the keywords in volary's schemas are checked; others
/// panic.
fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == &json!(false) { vec![format!("{at}: no value is allowed")] } else { Vec::new() };
    };
    let mut found = Vec::new();
    let mut fault = |why: String| found.push(format!("{at}: {why}"));
    let mut below: Vec<(&Value, &Value, String)> = Vec::new();
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().trim_start_matches("#/$defs/").replace("%20", " ");
                below.push((&root["$defs"][name.as_str()], value, at.to_owned()));
            }
            "anyOf" | "oneOf" => {
                let choices = rule.as_array().unwrap().iter();
                let whys: Vec<_> = choices.map(|choice| faults(root, choice, value, at)).collect();
                if !whys.iter().any(Vec::is_empty) {
                    fault(format!("fits none of the choices: {whys:?}"));
                }
            }
            "type" => {
                let types = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !types.iter().any(|kind| is_a(value, kind.as_str().unwrap())) {
                    fault(format!("{value} is not {rule}"));
                }
            }
            "const" if value != rule => fault(format!("{value} is not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                fault(format!("{value} is none of {rule}"))
            }
            "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                fault(format!("{value} is too small"))
            }
            "maximum" if value.as_f64() > rule.as_f64() && value.is_number() => {
                fault(format!("{value} is too large"))
            }
            "const" | "enum" | "minimum" | "maximum" => {}
            "required" => {
                for key in rule.as_array().unwrap().iter().filter_map(Value::as_str) {
                    if value.is_object() && value.get(key).is_none() {
                        fault(format!("lacks {key}"));
                    }
                }
            }
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    below.extend(value.get(key).map(|value| (rule, value, format!("{at}.{key}"))));
                }
            }
            "additionalProperties" => {
                let listed = |key: &String| schema["properties"].get(key).is_some();
                let others = value.as_object().into_iter().flatten().filter(|(key, _)| !listed(key));
                below.extend(others.map(|(key, value)| (rule, value, format!("{at}.{key}"))));
            }
            "items" => {
                let items = value.as_array().into_iter().flatten();
                below.extend(items.map(|item| (rule, item, format!("{at}[]"))));
            }
            other => panic!("the test does not know the keyword {other}"),
        }
    }
    found.extend(below.iter().flat_map(|(rule, value, at)| faults(root, rule, value, at)));
    found
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the test does not know the type {other}"),
    }
}

#[test]
fn every_line_of_results_fits_the_schema() {
    let folder = folder();
    let here = folder.path();
    let schema: Value = serde_json::from_str(&expect(here, "schema results", 0).0).unwrap();
    let swept = "[sweep]\n\"service.correlated\" = [true, false]\n[[claim]]\nsays = \"along\"\n\
                 check = [\"random.makespan_s rises with service.correlated\"]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}{swept}")).unwrap();
    let run = |out: &str| expect(here, &format!("run e.toml --json --out {out}"), 0).0;
    // The runs: finished, with noise; cut off before a job finished; in real time, with a certificate.
    let mut all = run("a --repeat 2") + &run("b --set run.until=1ns");
    all += &run("c --runtime local --set run.speed=100");
    let stored = |name: &str| fs::read_to_string(here.join("a").join(name)).unwrap();
    let (runs, claims) = (stored("summary.jsonl"), stored("claims.jsonl"));
    assert!(lines(&runs).iter().all(|line| line["run"].is_string() && line["sampled_one_in"] == 1));
    assert!(lines(&claims).iter().all(|line| line["verdict"].is_string()));
    let all = lines(&(all + &runs + &claims));
    assert_eq!(all.iter().filter(|line| line.get("claims").is_some()).count(), 3);
    for line in &all {
        assert_eq!(faults(&schema, &schema, line, ""), Vec::<String>::new(), "{line}");
    }
    // The check must detect errors: a wrong type, a missing key, an invalid verdict, an unknown key.
    let claims = all.iter().find(|line| line.get("claims").is_some()).unwrap();
    type Damage = fn(&mut Value);
    let damages: [(&Value, Damage); 4] = [
        (&all[0], |line| line["jobs"]["finished"] = json!("all")),
        (&all[0], |line| drop(line.as_object_mut().unwrap().remove("response_s"))),
        (claims, |line| line["claims"][0]["verdict"] = json!("perhaps")),
        (claims, |line| line["more"] = json!(1)),
    ];
    for (line, damage) in damages {
        let mut line = line.clone();
        damage(&mut line);
        assert_ne!(faults(&schema, &schema, &line, ""), Vec::<String>::new(), "{line}");
    }
}
