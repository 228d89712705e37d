//! The text of claims and their verdicts.

use std::fmt::Write;

use serde_json::Value;
use volary_engine::results::{ClaimResult, Verdict, plain};

use super::style::Style;
use crate::number;

/// A line per claim, with its mark and, unless it clearly holds, the numbers.
pub(super) fn text(claims: &[ClaimResult], style: Style) -> String {
    let mut out = String::new();
    for claim in claims {
        let (mark, colour) = match claim.verdict {
            Verdict::Holds => ("✓ holds     ", "32"),
            Verdict::Fails => ("✗ fails     ", "31"),
            Verdict::NotTested => ("? not tested", "33"),
        };
        let mark =
            if style == Style::Terminal { format!("\u{1b}[{colour}m{mark}\u{1b}[0m") } else { mark.into() };
        let noise = if claim.is_within_noise() { " (within noise)" } else { "" };
        let degraded = if claim.is_degraded() { " (measured on a degraded run)" } else { "" };
        let _ = writeln!(out, "{mark}  {}{noise}{degraded}", claim.says);
        if claim.verdict == Verdict::NotTested && claim.measured.iter().next().is_none() {
            let _ = writeln!(out, "                no cell of this run is one that it speaks of");
        }
        for (what, value) in claim.measured.iter() {
            if claim.verdict != Verdict::Holds || value["within_noise"] == true {
                let _ = writeln!(out, "                {what}: {}", finding(value));
            }
        }
    }
    out
}

/// The result of a check, or why it has none.
fn finding(value: &Value) -> String {
    if value.get("holds") != Some(&Value::Null) {
        return words(value);
    }
    match value.get("along") {
        Some(along) => {
            format!("{} is no trend: it takes two measured values of the key or more", words(along))
        }
        None => {
            "not both sides were measured: a policy was not run, left jobs unfinished, or has no such number"
                .into()
        }
    }
}

/// A JSON value without its punctuation, numbers with three digits.
fn words(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} {}", words(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) if items.iter().any(Value::is_array) => {
            items.iter().map(words).collect::<Vec<_>>().join("; ")
        }
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(" "),
        Value::Number(number) => number::short(number.as_f64().unwrap_or(f64::NAN)),
        Value::Null => "–".to_owned(),
        Value::Bool(_) | Value::String(_) => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_tested_says_why() {
        let said = |numbers: &[Value]| {
            let measured = numbers.iter().map(|numbers| ("a < b".to_owned(), numbers.clone())).collect();
            let claim = ClaimResult { says: "s".into(), verdict: Verdict::NotTested, measured };
            text(&[claim], Style::Plain)
        };
        assert!(said(&[]).contains("no cell of this run is one that it speaks of"));
        let sides = said(&[json!({"left": null, "right": null, "holds": null})]);
        assert!(sides.contains("a < b: not both sides were measured: a policy was not run"), "{sides}");
        let alone = said(&[json!({"along": [["9ms", 1.5]], "holds": null})]);
        assert!(alone.contains("a < b: 9ms 1.50 is no trend"), "{alone}");
    }

    #[test]
    fn a_verdict_that_noise_could_turn_says_so() {
        let measured =
            |holds: bool, within: bool| json!({"left": 2.0, "holds": holds, "within_noise": within});
        let says = |verdict, numbers: &[(bool, bool)]| {
            let numbers = numbers.iter().enumerate();
            let measured = numbers.map(|(i, &(h, w))| (format!("check {i}"), measured(h, w))).collect();
            text(&[ClaimResult { says: "s".into(), verdict, measured }], Style::Plain)
        };
        let sure = says(Verdict::Holds, &[(true, false), (true, false)]);
        assert_eq!(sure, "✓ holds       s\n");
        let unsure = says(Verdict::Holds, &[(true, false), (true, true)]);
        assert!(unsure.contains("s (within noise)\n") && unsure.contains("check 1"), "{unsure}");
        assert!(!unsure.contains("check 0"), "only what is in doubt is shown: {unsure}");
        // A single failure beyond noise makes the claim fail.
        let fails = says(Verdict::Fails, &[(false, true), (false, false), (true, true)]);
        assert!(!fails.contains("(within noise)"), "{fails}");
        let barely = says(Verdict::Fails, &[(false, true), (true, false)]);
        assert!(barely.contains("(within noise)"), "{barely}");
        assert!(!says(Verdict::NotTested, &[(false, true)]).contains("(within noise)"));
    }

    #[test]
    fn a_verdict_on_a_degraded_run_says_so() {
        let measured =
            || [("check".to_owned(), json!({"left": 2.0, "holds": true, "degraded": true}))].into();
        let says = |verdict| {
            let claim = ClaimResult { says: "s".into(), verdict, measured: measured() };
            text(&[claim], Style::Plain)
        };
        assert_eq!(says(Verdict::Holds), "✓ holds       s (measured on a degraded run)\n");
        assert!(!says(Verdict::NotTested).contains("measured on"));
    }
}
