//! The table at the end of a run.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use volary_engine::results::cell_name;

use super::columns::{SummaryColumn, TERMINAL};
use super::style::Style;
use super::{claims, fidelity};
use crate::number::plural;
use crate::storage::study::{CellGroup, PolicyRuns, Study};

/// What follows from missing shares.
pub(super) const PARTIAL: &str = "Cells without some of their runs name no best policy.";

/// The table of a study: a block per cell, a row per policy, the best of each column starred; then the claims.
///
/// Replications are shown as their mean ± the 95 % half-width.
pub fn text(study: &Study, style: Style) -> String {
    let mut out = String::new();
    for group in &study.cells {
        if !group.cell.is_empty() {
            let _ = writeln!(out, "{}", group.name());
        }
        let _ = writeln!(out, "{}", cell_table(group));
        for line in group.constant().into_iter().chain(fidelity::lines(group)).chain(injections(group)) {
            let _ = writeln!(out, "{line}");
        }
    }
    for failure in &study.failures {
        let at = [failure.policy.clone(), cell_name(&failure.cell), format!("seed {}", failure.seed)];
        let at = at.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "failed: {at}: {}", failure.log.lines().next().unwrap_or("no log"));
    }
    if let Some(share) = &study.manifest.share {
        let _ = writeln!(out, "{} {PARTIAL}", share.says());
    }
    if study.missing > 0 {
        let (state, missing) = (study.manifest.state, study.missing);
        let runs = plural(study.manifest.runs.len() as u64, "run");
        let _ = writeln!(out, "missing: {missing} of {runs}: {state}");
    }
    out.push_str(&claims::text(&study.claims, &claims::changed(&study.changed()), style));
    out
}

/// The warnings of a study, a line each. `volary run` has printed them before the run.
pub fn warnings(study: &Study) -> String {
    study.warnings().map(|warning| format!("warning: {warning}\n")).collect()
}

/// A line for each injection into a run of a cell.
fn injections(group: &CellGroup) -> impl Iterator<Item = String> {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    runs.flat_map(|run| {
        let whose = format!("INJECTED: {}, seed {}: ", run.policy, run.seed);
        run.injections.iter().map(move |injected| format!("{whose}{}", injected.says()))
    })
}

fn cell_table(group: &CellGroup) -> Table {
    let shown: Vec<&SummaryColumn> = TERMINAL.iter().filter(|column| is_worth(column, group)).collect();
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(std::iter::once("policy").chain(shown.iter().map(|column| column.heading)));
    let classes: Vec<_> = std::iter::once(None).chain(group.classes().into_iter().map(Some)).collect();
    for runs in &group.policies {
        for &class in &classes {
            let name = class.map_or_else(|| runs.policy.clone(), |label| format!("  {label}"));
            let best = |column: &SummaryColumn| {
                column.best(group, class).map(|best| (best, column.is_comparable(runs)))
            };
            let entries = shown.iter().map(|column| entry(column, runs, class, best(column)));
            table.add_row(std::iter::once(Cell::new(name)).chain(entries));
        }
    }
    table
}

/// Whether a column is informative: columns without any open jobs, repairs or waste are left out.
fn is_worth(column: &SummaryColumn, group: &CellGroup) -> bool {
    let mut runs = group.policies.iter().flat_map(|runs| &runs.runs);
    if column.heading == "goodput" {
        return runs.any(|run| run.summary.copies.wasted_work_s + run.summary.copies.in_progress_s > 0.0);
    }
    let mut values = runs.map(|run| (column.value)(&run.summary));
    let telling = ["unfinished", "repairs/task", "in progress"].contains(&column.heading);
    if telling { values.any(|value| value > 0.0) } else { values.any(f64::is_finite) }
}

/// The entry of a policy in a column, of one class of jobs or of all; empty if classes do not have the number. `best`
/// is the best of the column, and whether that of this policy can be it.
fn entry(column: &SummaryColumn, runs: &PolicyRuns, class: Option<&str>, best: Option<(f64, bool)>) -> Cell {
    let missing = if class.is_some() && !column.by_class { "" } else { "–" };
    let text = runs.interval(column.of(class)).map_or_else(
        || missing.to_owned(),
        |interval| {
            let is_best = |(best, comparable)| comparable && best == interval.mean;
            let mark = best.map_or("", |best| if is_best(best) { " *" } else { "  " });
            format!("{}{mark}", column.quantity.interval(interval.mean, interval.half_width))
        },
    );
    Cell::new(text).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::cell::CellRecord;
    use crate::storage::fixture::manifest;
    use crate::storage::fixture::measured;
    use crate::storage::manifest::Failure;
    use volary_engine::results::{Brief, ClaimResult, ClassResults, Origin, Summary, Verdict};

    fn study(seeds: u64) -> Study {
        let cell = [("load", json!(0.8))];
        let runs = [("slow", 2.0), ("fast", 1.0)]
            .into_iter()
            .flat_map(|run| (0..seeds).map(move |seed| (run, seed)));
        let record = |((policy, scale), seed)| {
            CellRecord::new(&format!("{policy}{seed}"), &measured(policy, &cell, seed, scale, 100))
        };
        Study::assemble(manifest(&[]), Vec::new(), runs.map(record).collect(), Vec::new(), Vec::new())
    }

    fn line<'a>(text: &'a str, of: &str) -> &'a str {
        text.lines().find(|line| line.contains(of)).unwrap()
    }

    #[test]
    fn unqueued_jobs_have_a_column_where_they_are_counted() {
        let mut counted = measured("fast", &[], 1, 1.0, 100);
        counted.summary.unqueued = Some(0.875);
        let records = vec![CellRecord::new("fast1", &counted)];
        let counted = Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new());
        let shown = text(&counted, Style::Plain);
        assert!(
            line(&shown, "policy").contains("unqueued") && line(&shown, "fast").contains("87.5"),
            "{shown}"
        );
        assert!(!text(&study(1), Style::Plain).contains("unqueued"));
    }

    #[test]
    fn work_in_progress_has_a_column_where_there_is_some() {
        let mut cut = measured("fast", &[], 1, 1.0, 100);
        cut.summary.copies.wasted_work_s = 0.0;
        cut.summary.copies.in_progress_s = 0.25 * cut.summary.copies.busy_s;
        let records = vec![CellRecord::new("fast1", &cut)];
        let cut = Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new());
        let shown = text(&cut, Style::Plain);
        assert!(
            line(&shown, "policy").contains("in progress") && line(&shown, "fast").contains("25.0"),
            "{shown}"
        );
        assert!(line(&shown, "policy").contains("goodput"), "it is not the utilization: {shown}");
        assert!(!text(&study(1), Style::Plain).contains("in progress"));
    }

    #[test]
    fn the_best_is_starred() {
        let text = text(&study(1), Style::Plain);
        assert!(text.starts_with("load = 0.8\n"), "{text}");
        assert_eq!(line(&text, "fast").matches('*').count(), 3, "p50, p99 and mean: {text}");
        assert_eq!(line(&text, "slow").matches('*').count(), 0, "{text}");
        assert!(line(&text, "fast").contains("9.09") && line(&text, "fast").contains("6.40"), "{text}");
        assert!(!text.contains("unfinished") && !text.contains('±'), "{text}");
    }

    #[test]
    fn classes_have_rows_of_their_own() {
        let mut study = study(1);
        for run in study.cells[0].policies.iter_mut().flat_map(|policy| &mut policy.runs) {
            let Summary { response_s, wait_s, slowdown, longest_s, unqueued, .. } = run.summary;
            let class = |longest| ClassResults {
                jobs: 50,
                response_s,
                wait_s,
                slowdown,
                longest_s: Brief { p50: longest, ..longest_s },
                unqueued,
            };
            run.summary.classes =
                [("batch".to_owned(), class(9.0)), ("serving".to_owned(), class(0.1))].into();
        }
        let text = text(&study, Style::Plain);
        let rows: Vec<&str> =
            text.lines().filter_map(|line| line.split(['│', '┆']).nth(1)).map(str::trim).collect();
        assert_eq!(rows, ["policy", "slow", "serving", "batch", "fast", "serving", "batch"], "{text}");
        let of_class = text.lines().filter(|line| line.contains("serving")).nth(1).unwrap();
        assert_eq!(of_class.matches('*').count(), 3, "p50, p99 and mean: {text}");
        assert!(
            line(&text, "fast").contains("60.0") && !of_class.contains("60.0"),
            "goodput is not of a class: {text}"
        );
    }

    #[test]
    fn what_left_jobs_unfinished_is_not_the_best() {
        let mut study = study(1);
        study.cells[0].policies[1].runs[0].summary.jobs.unfinished = 9;
        let shown = text(&study, Style::Plain);
        assert_eq!(line(&shown, "fast").matches('*').count(), 0, "its slow jobs are missing: {shown}");
        assert_eq!(line(&shown, "slow").matches('*').count(), 0, "nothing is compared with it: {shown}");
    }

    #[test]
    fn classes_are_in_the_order_of_the_experiment() {
        let mut run = measured("fast", &[], 1, 1.0, 100);
        let Summary { response_s, wait_s, slowdown, longest_s, unqueued, .. } = run.summary;
        let class = ClassResults { jobs: 50, response_s, wait_s, slowdown, longest_s, unqueued };
        run.summary.classes = ["a", "be", "other", "slo", "z"].map(|label| (label.to_owned(), class)).into();
        let mut manifest = manifest(&[]);
        let mix = json!({ "mix": { "class": [{ "name": "z" }, { "name": "a" }] } });
        manifest.spec = json!({ "points": [{ "resolved": { "workload": mix } }] });
        let records = vec![CellRecord::new("fast1", &run)];
        let study = Study::assemble(manifest, Vec::new(), records, Vec::new(), Vec::new());
        assert_eq!(study.cells[0].classes(), ["z", "a", "slo", "be", "other"]);
    }

    #[test]
    fn replications_have_intervals_and_open_jobs_a_column() {
        let mut study = study(3);
        study.cells[0].policies[0].runs[1].summary.jobs.unfinished = 9;
        let text = text(&study, Style::Plain);
        assert!(line(&text, "fast").contains('±') && text.contains("unfinished"), "{text}");
    }

    #[test]
    fn seeds_that_change_nothing_are_said() {
        let mut study = study(3);
        assert!(!text(&study, Style::Plain).contains("seeds change nothing"));
        let slow = &mut study.cells[0].policies[0];
        let first = slow.runs[0].summary.clone();
        for run in &mut slow.runs {
            run.summary = Summary { seed: run.summary.seed, ..first.clone() };
        }
        let text = text(&study, Style::Plain);
        assert!(text.contains("seeds change nothing here to slow: 3 replications"), "{text}");
        assert!(!line(&text, "│ slow").contains('±') && line(&text, "│ fast").contains('±'), "{text}");
    }

    #[test]
    fn what_was_injected_into_is_marked() {
        let mut study = study(1);
        assert!(!text(&study, Style::Plain).contains("INJECTED"));
        study.cells[0].policies[0].runs[0].summary.injections = vec![crate::storage::fixture::injected()];
        let text = text(&study, Style::Plain);
        let said = "INJECTED: slow, seed 0: interference was injected from 2.000 s to 4.500 s: \
                    cores 0-1,3 on h1, 4-5 on h2\n";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn failures_missing_runs_and_claims_follow() {
        let mut study = study(1);
        study.missing = 2;
        let cell = volary_engine::results::Cell::new();
        let log = "out of memory\nmore".to_owned();
        study.failures.push(Failure {
            id: "x".into(),
            policy: "slow".into(),
            cell,
            seed: 7,
            log,
            summary: None,
        });
        let claim = |says: &str, verdict| ClaimResult {
            says: says.into(),
            origin: Origin::Ours,
            verdict,
            measured: [("a < b".to_owned(), json!({"holds": false, "along": [["9ms", 1], ["12ms", null]]}))]
                .into(),
        };
        study.claims = vec![
            claim("one", Verdict::Holds),
            claim("two", Verdict::Fails),
            claim("three", Verdict::NotTested),
        ];
        let plain = text(&study, Style::Plain);
        assert!(
            plain.contains("failed: slow, seed 7: out of memory\n") && plain.contains("missing: 2 of 0 runs")
        );
        assert!(
            plain.contains(
                "✓ holds       one\n✗ fails       two\n                a < b: fails: 9ms: 1.00; 12ms: –\n"
            ),
            "{plain}"
        );
        assert!(!plain.contains('\u{1b}') && text(&study, Style::Terminal).contains("\u{1b}[31m✗ fails"));
    }
}
