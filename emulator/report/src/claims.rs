//! The text of claims and their verdicts, and the claims of several experiments as one Markdown table.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;
use volary_engine::results::{ClaimResult, Tally, Tolerance, Unit, Verdict, in_words};
use volary_experiment::config::claims::NOT_RUN;
use volary_experiment::number::{UnitText, count};
use volary_experiment::storage::Study;

use crate::style::{TableStyle, wrapped};

/// The text of all claims, grouped by origin below a tally, with the `--set` changes of the experiment.
pub(super) fn text(claims: &[ClaimResult], changed: &str, how: &TableStyle) -> String {
    let mut out = String::new();
    for (origin, tally) in Tally::by_origin(claims) {
        let heading = format!("claims, {}: {tally}{changed}", origin.label());
        let _ = writeln!(out, "{}", wrapped(&heading, how.width, 2));
        for claim in claims.iter().filter(|claim| claim.origin == origin) {
            lines(&mut out, claim, how);
        }
    }
    out
}

/// A remark on a claim whose trace was replaced by the jobs of a generator, with the verdict on these jobs if the claim
/// itself was not tested. `None` if no trace was replaced.
pub(super) fn on_generated(claim: &ClaimResult) -> Option<String> {
    if let Some(verdict) = claim.on_generated() {
        return Some(format!("on the jobs of a generator, in place of the trace: {}", verdict.word()));
    }
    let is_whole = claim.measured.values().all(|numbers| numbers["stand_in"] == true);
    let said = match is_whole {
        true => "on the jobs of a generator: the trace was not found",
        false => "a generator replaces the trace in some cells",
    };
    claim.has_stand_in().then(|| said.to_owned())
}

/// The `--set` changes as a text after the tally of claims; empty without changes.
pub(super) fn changed(keys: &[&str]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    format!("; of the experiment as changed by --set {}", keys.join(" --set "))
}

/// Maximum number of findings shown per claim.
const FINDINGS: usize = 40;
/// Beginning of a finding without numbers.
const NOT_MEASURED: &str = "not measured";
/// Column in which the text of a claim begins, after its mark.
const SAYS: usize = 14;

/// Writes the claim with its mark and, unless the claim clearly holds, its numbers.
fn lines(out: &mut String, claim: &ClaimResult, how: &TableStyle) {
    let (mark, colour) = match claim.verdict {
        Verdict::Holds | Verdict::Fails if claim.is_within_noise() => ("~ noise     ", "33"),
        Verdict::Holds => ("✓ holds     ", "32"),
        Verdict::OtherSize => ("≈ other size", "33"),
        Verdict::Fails => ("✗ fails     ", "31"),
        Verdict::NotTested => ("? not tested", "33"),
    };
    let ours = match (claim.verdict, claim.tolerance) {
        (Verdict::Holds, Some(Tolerance::Ours)) => " (by our tolerance)",
        _ => "",
    };
    let noise = claim.is_within_noise().then(|| format!(" ({}, within noise)", claim.verdict.word()));
    let noise = noise.unwrap_or_default();
    let degraded = if claim.is_degraded() { " (measured on a degraded run)" } else { "" };
    let injected = if claim.is_injected() { " (measured with injected interference)" } else { "" };
    let generated = on_generated(claim).map_or_else(String::new, |said| format!(" ({said})"));
    let said = format!("{mark}  {}{ours}{noise}{degraded}{injected}{generated}", claim.says);
    let said = wrapped(&said, how.width, SAYS);
    let coloured = format!("\u{1b}[{colour}m{mark}\u{1b}[0m");
    // The mark is coloured after line breaking, since colours have no width.
    let said = if how.coloured { said.replacen(mark, &coloured, 1) } else { said };
    let _ = writeln!(out, "{said}");
    let mut finding_line = |text: &str| {
        let text = format!("{:1$}{text}", "", SAYS + 2);
        let _ = writeln!(out, "{}", wrapped(&text, how.width, SAYS + 4));
    };
    if claim.verdict == Verdict::NotTested && claim.measured.iter().next().is_none() {
        finding_line("the claim applies to no cell of this run");
    }
    if let Some(reasons) = absences(claim) {
        finding_line(&format!("{NOT_MEASURED}: {reasons}"));
        return;
    }
    let is_shown = |value: &Value| claim.verdict != Verdict::Holds || value["within_noise"] == true;
    let found = claim.measured.iter().filter(|(_, value)| is_shown(value));
    let found: Vec<(&str, String)> = found.map(|(what, value)| (what, finding(value))).collect();
    let mut groups = found.chunk_by(is_same_gap);
    for group in groups.by_ref().take(FINDINGS) {
        let (what, found) = &group[0];
        match group.len() {
            1 => finding_line(&format!("{what}: {found}")),
            cells => finding_line(&format!("{} in {} cells: {found}", check(what), count(cells as u64))),
        }
    }
    let more: usize = groups.map(<[_]>::len).sum();
    if more > 0 {
        finding_line(&format!("and {more} more, listed in claims.jsonl"));
    }
}

/// The policies that were not run, if this is the only reason why the checks of a claim were not measured.
fn absences(claim: &ClaimResult) -> Option<String> {
    let reasons =
        claim.measured.iter().map(|(_, value)| value["why"].as_array().filter(|why| !why.is_empty()));
    let reasons: Vec<&str> =
        reasons.collect::<Option<Vec<_>>>()?.into_iter().flatten().filter_map(Value::as_str).collect();
    if reasons.is_empty() || !reasons.iter().all(|why| why.ends_with(NOT_RUN)) {
        return None;
    }
    let unique: BTreeSet<&str> = reasons.into_iter().collect();
    Some(Vec::from_iter(unique).join(", "))
}

/// The check in the name of a finding, without the cell: `a < b` of `a < b [x=1]`.
pub(super) fn check(what: &str) -> &str {
    what.split(" [").next().unwrap_or(what)
}

/// Whether the same check was not measured in two cells, for the same reason.
fn is_same_gap(a: &(&str, String), b: &(&str, String)) -> bool {
    a.1.starts_with(NOT_MEASURED) && a.1 == b.1 && check(a.0) == check(b.0)
}

/// The numbers of a check as text, with its result or the reason why the result is unknown.
pub(super) fn finding(value: &Value) -> String {
    let numbers = numbers(value);
    let why: Vec<&str> = value["why"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let why = why.join(", ");
    let verdict = |holds| Verdict::of(Some(holds), value["size"] == true).word();
    let said = |key: &str, words| if value[key] == true { words } else { "" };
    let noise = said("within_noise", ", within noise");
    match value.get("holds").and_then(Value::as_bool) {
        Some(holds) => {
            let generated = said("stand_in", ", on the jobs of a generator");
            let degraded = said("degraded", ", on a degraded run");
            let injected = said("injected", ", with injected interference");
            format!("{}: {numbers}{noise}{generated}{degraded}{injected}", verdict(holds))
        }
        None if value["stand_in"] == true => format!(
            "{}{numbers}{noise}, but on the jobs of a generator, because the trace of the claim was not found: \
             name its folder in VOLARY_TRACES",
            value["on_generated"].as_bool().map_or_else(String::new, |holds| format!("{}: ", verdict(holds)))
        ),
        None if is_measured(value) && !why.is_empty() => format!("{numbers}, not comparable: {why}"),
        None if value.get("along").is_some() => {
            format!("{numbers} is no trend: at least two values of the key must be measured")
        }
        None => {
            let why = if why.is_empty() { "one side has no number" } else { &why };
            format!("{NOT_MEASURED}: {why}")
        }
    }
}

/// Whether a finding has numbers to compare.
fn is_measured(value: &Value) -> bool {
    value.get("along").is_some() || value["left"].is_number() && value["right"].is_number()
}

/// The compared numbers, with units: `1.24 s against 0.980 s (of 0.490 s)`, or the values along a swept key.
fn numbers(value: &Value) -> String {
    let unit = match value["unit"].as_str() {
        Some("s") => Unit::Seconds,
        Some(_) => Unit::Share,
        None => Unit::Plain,
    };
    if let Some(along) = value["along"].as_array() {
        let numbers = along.iter().map(|point| (point[1].as_f64().unwrap_or(f64::NAN), None));
        let column = unit.column(&numbers.collect::<Vec<_>>());
        let point = |(point, text): (&Value, String)| format!("{}: {text}", in_words(&point[0]));
        return along.iter().zip(column.texts()).map(point).collect::<Vec<_>>().join("; ");
    }
    let at = value["at"].as_str().map_or_else(String::new, |at| format!(" at {at}"));
    let number = |key: &str| value[key].as_f64().unwrap_or(f64::NAN);
    let half = value["half_width"].as_f64();
    let mut told = ["left", "right", "left_of", "right_of"].map(|key| (number(key), None)).to_vec();
    told.extend(half.map(|half| (number("left") - number("right"), Some(half))));
    let told: Vec<String> = unit.column(&told).texts().collect();
    let of = |key: &str, told: &str| value.get(key).map_or_else(String::new, |_| format!(" (of {told})"));
    let difference = told.get(4).map_or_else(String::new, |told| format!(", difference {told}"));
    let (left_of, right_of) = (of("left_of", &told[2]), of("right_of", &told[3]));
    format!("{}{left_of} against {}{right_of}{at}{difference}", told[0], told[1])
}

/// The tally of each origin, then a row for each claim in the order of `studies`. Experiments link to their files by
/// paths relative to `experiments/`.
pub fn claims_table(studies: &[Study]) -> String {
    let mut out =
        "| origin | claims | hold | of these by our tolerance | other size | fail | within noise | not tested | from one seed |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for (origin, tally) in Tally::by_origin(studies.iter().flat_map(|study| &study.claims)) {
        let Tally { holds, other_size, fails, within_noise, not_tested, our_tolerance, one_seed } = tally;
        let counts =
            [tally.claims(), holds, our_tolerance, other_size, fails, within_noise, not_tested, one_seed];
        let counts = counts.map(|count| count.to_string()).join(" | ");
        let _ = writeln!(out, "| {} | {counts} |", origin.label());
    }
    out.push_str("\n| experiment | runs | origin | claim | verdict |\n|---|--:|---|---|---|\n");
    for study in studies {
        let name = &study.manifest.experiment;
        let runs = match study.records().count() {
            done if done == study.manifest.runs.len() => done.to_string(),
            done => format!("{done} of {}", study.manifest.runs.len()),
        };
        let mut first = (format!("[`{name}`]({name}.toml)"), runs);
        for claim in &study.claims {
            let (experiment, runs) = std::mem::take(&mut first);
            let says = cell(&claim.says);
            let _ = writeln!(
                out,
                "| {experiment} | {runs} | {} | {says} | {} |",
                claim.origin.label(),
                verdict(claim) + &cell(&changed(&study.changed()))
            );
        }
    }
    out
}

/// Escapes text for a cell of a Markdown table. Markdown renders HTML tags: `<` and `&` are escaped as well, except in
/// code between backticks, which shows entities literally.
fn cell(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    let escaped = parts.iter().enumerate().map(|(i, part)| {
        let is_code = i % 2 == 1 && i < last;
        if is_code { (*part).to_owned() } else { part.replace('&', "&amp;").replace('<', "&lt;") }
    });
    escaped.collect::<Vec<_>>().join("`").replace('|', "\\|").replace('\n', " ")
}

fn verdict(claim: &ClaimResult) -> String {
    let decide = |size: bool| claim.measured.values().filter(move |found| (found["size"] == true) == size);
    let failed = |size: bool| {
        let (failed, all) = (decide(size).filter(|found| found["holds"] == false), decide(size));
        format!("{} of {}", failed.count(), all.filter(|found| found["holds"].is_boolean()).count())
    };
    let mut words = match claim.verdict {
        Verdict::Holds if claim.tolerance == Some(Tolerance::Ours) => "holds, by our tolerance".to_owned(),
        Verdict::Holds => "holds".to_owned(),
        Verdict::OtherSize => format!("right direction, **other size** in {} numbers", failed(true)),
        Verdict::Fails => format!("**fails** in {} checks", failed(false)),
        Verdict::NotTested => "not tested".to_owned(),
    };
    if claim.is_within_noise() {
        words.push_str(", within noise");
    }
    if let Some(generated) = on_generated(claim) {
        let _ = write!(words, "; {generated}");
    }
    if claim.is_degraded() {
        words.push_str(", on a degraded run");
    }
    if claim.is_injected() {
        words.push_str(", with injected interference");
    }
    words
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
        ClaimResult { says: "s".into(), origin: Origin::Paper, tolerance: None, verdict, measured }
    }

    #[test]
    fn a_verdict_states_that_interference_was_injected() {
        let equal = json!({"left": 1.0, "right": 2.0, "holds": true, "injected": true});
        let said = text(&[claim(Verdict::Holds, [("a < b".to_owned(), equal)])], "", &TableStyle::default());
        assert!(said.contains("✓ holds       s (measured with injected interference)"), "{said}");
        let why = "interference was injected into a and not into b";
        let unequal = json!({"left": 1.0, "right": 2.0, "holds": null, "injected": true, "why": [why]});
        let said =
            text(&[claim(Verdict::NotTested, [("a < b".to_owned(), unequal)])], "", &TableStyle::default());
        assert!(said.contains(&format!("a < b: 1.00 against 2.00, not comparable: {why}")), "{said}");
    }

    #[test]
    fn claims_are_counted_by_origin() {
        let checked = || [("a < b".to_owned(), json!({"holds": true, "within_noise": true}))];
        let ours = ClaimResult { origin: Origin::Ours, ..claim(Verdict::Fails, []) };
        let claims = [ours, claim(Verdict::Holds, checked()), claim(Verdict::NotTested, [])];
        let text = text(&claims, "", &TableStyle::default());
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("claims")).collect();
        assert_eq!(
            lines,
            [
                "claims, the paper: 0 of 2 hold, 0 fail, 1 within noise, 1 not tested",
                "claims, ours: 0 of 1 hold, 1 fail, 0 not tested",
            ]
        );
        assert!(text.ends_with("✗ fails       s\n"), "{text}");
    }

    #[test]
    fn cells_with_the_same_missing_runs_share_a_line() {
        let gap =
            |cell| (format!("a < b [x={cell}]"), json!({"holds": null, "why": ["`a` left jobs unfinished"]}));
        let text = text(&[claim(Verdict::NotTested, (1..=2_000).map(gap))], "", &TableStyle::default());
        assert!(
            text.ends_with("a < b in 2\u{202f}000 cells: not measured: `a` left jobs unfinished\n"),
            "{text}"
        );
    }

    #[test]
    fn policies_that_were_not_run_are_named_once() {
        let gap = |check: &str, why| (check.to_owned(), json!({"holds": null, "why": why}));
        let absent = |label| json!([format!("`{label}` {NOT_RUN}")]);
        let gaps = [gap("a < b", absent("b")), gap("a < c", absent("c")), gap("c < d", absent("c"))];
        let text = text(&[claim(Verdict::NotTested, gaps)], "", &TableStyle::default());
        assert!(text.ends_with("  not measured: `b` was not run, `c` was not run\n"), "{text}");
    }

    #[test]
    fn untested_claims_state_the_reason() {
        let said = |numbers: &[Value]| {
            let measured = numbers.iter().map(|numbers| ("a < b".to_owned(), numbers.clone()));
            text(&[claim(Verdict::NotTested, measured)], "", &TableStyle::default())
        };
        assert!(said(&[]).contains("the claim applies to no cell of this run"));
        let sides = said(&[json!({"left": null, "right": null, "holds": null})]);
        assert!(sides.contains("a < b: not measured: one side has no number"), "{sides}");
        let why =
            said(&[json!({"left": null, "right": null, "holds": null, "why": ["`c` was not run", "x"]})]);
        assert!(why.contains("a < b: not measured: `c` was not run, x"), "{why}");
        let alone = said(&[json!({"along": [["9ms", 1.5]], "holds": null})]);
        assert!(alone.contains("a < b: 9ms: 1.50 is no trend"), "{alone}");
    }

    #[test]
    fn numbers_are_shown_with_their_units() {
        let plain = finding(&json!({"left": 2.0, "right": 40, "holds": false}));
        assert_eq!(plain, "fails: 2.00 against 40.00");
        let times = json!({"left": 1.24, "right": 0.98, "holds": false, "half_width": 0.03, "within_noise": true,
            "unit": "s", "at": "p99"});
        let said = "fails: 1240 ms against 980 ms at p99, difference 260 ± 30 ms, within noise";
        assert_eq!(finding(&times).replace('\u{202f}', " "), said);
        let scaled = json!({"left": 0.633, "right": 0.452, "right_of": 0.602, "holds": false, "unit": "s"});
        assert_eq!(finding(&scaled).replace('\u{202f}', " "), "fails: 633 ms against 452 ms (of 602 ms)");
        let trend = json!({"along": [[1, 0.5], [2, null]], "holds": true, "unit": "share", "degraded": true});
        assert_eq!(finding(&trend).replace('\u{202f}', " "), "holds: 1: 50.0 %; 2: –, on a degraded run");
        let generated = json!({"left": 1.0, "right": 2.0, "holds": null, "stand_in": true});
        assert!(finding(&generated).contains("but on the jobs of a generator"));
    }

    #[test]
    fn a_verdict_within_noise_is_marked() {
        let measured =
            |holds: bool, within: bool| json!({"left": 2.0, "holds": holds, "within_noise": within});
        let says = |verdict, numbers: &[(bool, bool)]| {
            let numbers = numbers.iter().enumerate();
            let measured = numbers.map(|(i, &(h, w))| (format!("check {i}"), measured(h, w)));
            text(&[claim(verdict, measured)], "", &TableStyle::default())
        };
        let sure = says(Verdict::Holds, &[(true, false), (true, false)]);
        assert!(sure.ends_with("\n✓ holds       s\n"), "{sure}");
        let unsure = says(Verdict::Holds, &[(true, false), (true, true)]);
        assert!(
            unsure.contains("~ noise       s (holds, within noise)\n") && unsure.contains("check 1"),
            "{unsure}"
        );
        assert!(!unsure.contains("check 0"), "checks beyond noise are not shown: {unsure}");
        // A single failure beyond noise makes the claim fail.
        let fails = says(Verdict::Fails, &[(false, true), (false, false), (true, true)]);
        assert!(!fails.contains("within noise)"), "{fails}");
        let barely = says(Verdict::Fails, &[(false, true), (true, false)]);
        assert!(barely.contains("~ noise       s (fails, within noise)"), "{barely}");
        assert!(!says(Verdict::NotTested, &[(false, true)]).contains("within noise)"));
    }

    #[test]
    fn a_verdict_on_a_degraded_run_is_marked() {
        let measured = || [("check".to_owned(), json!({"left": 2.0, "holds": true, "degraded": true}))];
        let says = |verdict| text(&[claim(verdict, measured())], "", &TableStyle::default());
        assert!(says(Verdict::Holds).ends_with("✓ holds       s (measured on a degraded run)\n"));
        assert!(!says(Verdict::NotTested).contains("measured on"));
    }

    #[test]
    fn a_verdict_on_another_workload_or_experiment_is_marked() {
        let measured = || [("check".to_owned(), json!({"left": 2.0, "holds": true, "stand_in": true}))];
        let ours = |verdict| ClaimResult { origin: Origin::Ours, ..claim(verdict, measured()) };
        let said = text(&[ours(Verdict::Holds)], &changed(&["service.demand=1s"]), &TableStyle::default());
        assert_eq!(
            said,
            "claims, ours: 1 of 1 hold, 0 fail, 0 not tested; of the experiment as changed by --set service.demand=1s\n\
             ✓ holds       s (on the jobs of a generator: the trace was not found)\n"
        );
        assert_eq!(changed(&[]), "");
    }

    #[test]
    fn code_between_backticks_is_not_escaped() {
        assert_eq!(cell("`a < b | c` & <i>"), "`a < b \\| c` &amp; &lt;i>");
        assert_eq!(cell("a ` lone <b"), "a ` lone &lt;b");
        assert_eq!(cell("two\nlines | of it"), "two lines \\| of it");
    }
}
