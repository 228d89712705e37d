//! The text of claims and their verdicts.

use std::fmt::Write;

use serde_json::Value;
use volary_engine::results::{ClaimResult, Tally, Verdict, plain};

use super::style::Style;
use crate::number;

/// The claims of each origin under their tally.
pub(super) fn text(claims: &[ClaimResult], style: Style) -> String {
    let mut out = String::new();
    for (origin, tally) in Tally::by_origin(claims) {
        let _ = writeln!(out, "claims, {}: {tally}", origin.whose());
        for claim in claims.iter().filter(|claim| claim.origin == origin) {
            line(&mut out, claim, style);
        }
    }
    out
}

/// A line with the claim's mark and, unless it clearly holds, the numbers.
fn line(out: &mut String, claim: &ClaimResult, style: Style) {
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
    use volary_engine::results::Origin;

    use super::*;

    fn claim<N>(verdict: Verdict, measured: N) -> ClaimResult
    where
        N: IntoIterator<Item = (String, Value)>,
    {
        let measured = measured.into_iter().collect();
        ClaimResult { says: "s".into(), origin: Origin::Paper, verdict, measured }
    }

    #[test]
    fn origins_are_counted_apart() {
        let checked = || [("a < b".to_owned(), json!({"holds": true, "within_noise": true}))];
        let ours = ClaimResult { origin: Origin::Ours, ..claim(Verdict::Fails, []) };
        let claims = [ours, claim(Verdict::Holds, checked()), claim(Verdict::NotTested, [])];
        let text = text(&claims, Style::Plain);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("claims")).collect();
        assert_eq!(
            lines,
            [
                "claims, paper's text: 1 of 2 hold, 0 fail, 1 not tested; 1 within noise",
                "claims, ours: 0 of 1 hold, 1 fail, 0 not tested",
            ]
        );
        assert!(text.ends_with("✗ fails       s\n"), "{text}");
    }

    #[test]
    fn what_was_not_tested_says_why() {
        let said = |numbers: &[Value]| {
            let measured = numbers.iter().map(|numbers| ("a < b".to_owned(), numbers.clone()));
            text(&[claim(Verdict::NotTested, measured)], Style::Plain)
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
            let measured = numbers.map(|(i, &(h, w))| (format!("check {i}"), measured(h, w)));
            text(&[claim(verdict, measured)], Style::Plain)
        };
        let sure = says(Verdict::Holds, &[(true, false), (true, false)]);
        assert!(sure.ends_with("\n✓ holds       s\n"), "{sure}");
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
        let measured = || [("check".to_owned(), json!({"left": 2.0, "holds": true, "degraded": true}))];
        let says = |verdict| text(&[claim(verdict, measured())], Style::Plain);
        assert!(says(Verdict::Holds).ends_with("✓ holds       s (measured on a degraded run)\n"));
        assert!(!says(Verdict::NotTested).contains("measured on"));
    }
}
