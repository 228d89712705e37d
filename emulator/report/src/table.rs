//! The table at the end of a run.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::iter;

use volary_experiment::number::{self, elided, plural};
use volary_experiment::storage::study::{CellGroup, PolicyRuns, Study};

use super::columns::{PickedColumn, SummaryColumn};
use super::style::{TableStyle, missing, text_table, wrapped};
use super::{claims, fidelity};
use crate::choice;

/// The note on cells with missing runs.
pub(super) const PARTIAL: &str = "No best policy is named in cells with missing runs.";

/// The text of a study: a table per cell with a row per policy, where the best of each column is starred; then the
/// claims.
///
/// Replications are shown as their mean ± the 95 % half-width. Columns that do not fit the width are left out,
/// beginning with the least important one, and named below. Requested columns are always shown.
pub fn text(study: &Study, how: &TableStyle) -> String {
    let mut out = String::new();
    let mut legend = Legend::default();
    let (shown, others) = study.cells.split_at(choice::shown(study));
    for group in shown {
        if !group.cell.is_empty() {
            let _ = writeln!(out, "{}", wrapped(&group.name(), how.width, 2));
        }
        let _ = writeln!(out, "{}", cell_table(group, how, &mut legend));
        for said in group
            .offered()
            .into_iter()
            .chain(group.measured())
            .chain(group.unsettled())
            .chain(group.constant())
            .chain(group.central())
            .chain(group.overloads())
            .chain(fidelity::lines(group))
            .chain(injections(group))
            .chain(unequal(group))
            .chain(values(group))
        {
            let _ = writeln!(out, "{}", wrapped(&said, how.width, 2));
        }
    }
    if !others.is_empty() {
        out.push_str(&choice::text(study, others, how));
    }
    let said = legend
        .text(study)
        .into_iter()
        .chain(study.binding())
        .chain(how.unknown_classes(&study.cells.iter().flat_map(CellGroup::classes).collect()))
        .chain(executed_again(study))
        .chain(unfinished(study));
    for said in said {
        let _ = writeln!(out, "{}", wrapped(&said, how.width, 2));
    }
    out.push_str(&claims::text(&study.claims, &claims::changed(&study.changed()), how));
    out
}

/// A line for each run that lost a host and was executed again.
pub(super) fn executed_again(study: &Study) -> impl Iterator<Item = String> {
    study.records().filter_map(|run| {
        Some(format!("EXECUTED AGAIN: {}: {}", run.summary.name(), run.summary.executed_again.as_ref()?))
    })
}

/// A line for each failed run, and a line for all missing runs.
fn unfinished(study: &Study) -> Vec<String> {
    let mut lines = Vec::new();
    for failure in &study.failures {
        lines.push(format!("{}: {}: {}", failure.fate(), failure.name(), failure.reason()));
    }
    if let Some(share) = &study.manifest.slices {
        lines.push(format!("{} {PARTIAL}", share.says()));
    }
    if study.missing > 0 {
        let (state, missing) = (study.manifest.state, study.missing);
        let runs = plural(study.manifest.runs.len() as u64, "run");
        lines.push(format!("missing: {missing} of {runs}: {state}"));
    }
    if study.manifest.slices.is_none() && study.cells.iter().any(|group| group.partial) {
        lines.push(PARTIAL.to_owned());
    }
    lines
}

/// The warnings of a study, each on a line. `volary run` has printed them before the run.
pub fn warnings(study: &Study) -> String {
    study.warnings().map(|warning| format!("warning: {warning}\n")).collect()
}

/// A line for each injection into a run of a cell.
fn injections(group: &CellGroup) -> impl Iterator<Item = String> {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    runs.flat_map(|run| {
        let whose = run.name();
        run.injections.iter().map(move |injected| format!("INJECTED: {whose}: {}", injected.describe()))
    })
}

/// A line for each policy whose program recorded values: the means over its runs.
fn values(group: &CellGroup) -> impl Iterator<Item = String> {
    group.policies.iter().filter_map(|runs| {
        let summaries = || runs.runs.iter().map(|run| &run.summary);
        let names: BTreeSet<&String> = summaries().flat_map(|summary| summary.values.keys()).collect();
        let said = |name: &String| {
            let means: Vec<f64> =
                summaries().filter_map(|summary| Some(summary.values.get(name)?.mean)).collect();
            format!("{name} {}", number::short(means.iter().sum::<f64>() / means.len() as f64))
        };
        let all: Vec<String> = names.into_iter().map(said).collect();
        (!all.is_empty()).then(|| format!("means that {} recorded: {}", runs.policy, all.join(", ")))
    })
}

/// The reason why a cell without missing runs names no best policy.
fn unequal(group: &CellGroup) -> Option<String> {
    let why = group.unequal()?;
    Some(format!("UNEQUAL: {why}: no policy is marked as the best here, and no claim compares these runs"))
}

/// The explanations below all tables.
#[derive(Debug, Default)]
struct Legend {
    /// Headings of columns of response times.
    times: Vec<&'static str>,
    /// Whether a number in a table is starred.
    starred: bool,
    /// Names of the columns that did not fit.
    left_out: Vec<String>,
    /// Headings of the columns without a number.
    empty: Vec<String>,
}

impl Legend {
    fn text(&self, study: &Study) -> Option<String> {
        let mut says = Vec::new();
        if let Some((last, others)) = self.times.split_last() {
            let (others, are) = (others.join(", "), if others.is_empty() { "is the" } else { "are" });
            let and = if others.is_empty() { "" } else { " and " };
            says.push(format!(
                "{others}{and}{last} {are} response time{} of jobs",
                if others.is_empty() { "" } else { "s" }
            ));
        }
        if study.replications() > 1 {
            says.push("± is the 95 % half-width".to_owned());
        }
        if self.starred {
            let condition = if study.replications() > 1 {
                ", where it differs significantly from the others"
            } else {
                ""
            };
            says.push(format!("* marks the best of a column{condition}"));
        }
        if !self.left_out.is_empty() {
            says.push(format!(
                "too wide for this terminal: {} (see --columns help)",
                self.left_out.join(", ")
            ));
        }
        if !self.empty.is_empty() {
            says.push(format!("no run measured {}", self.empty.join(", ")));
        }
        (!says.is_empty()).then(|| says.join("; "))
    }
}

/// A column of a table on the terminal: its heading, and its entries with their marks.
struct TerminalColumn {
    picked: PickedColumn,
    heading: String,
    entries: Vec<String>,
    starred: bool,
}

impl TerminalColumn {
    fn new(picked: &PickedColumn, group: &CellGroup, rows: &[LabelledRow<'_>]) -> Self {
        let column = picked.column;
        let rows: Vec<LabelledRow<'_>> =
            rows.iter().map(|(runs, class)| (*runs, class.or(picked.class.as_deref()))).collect();
        let (numbers, best) = column.numbers(group, &rows);
        let starred = best.contains(&Some(true));
        let entry = |((text, best), (_, class)): ((String, Option<bool>), &LabelledRow<'_>)| match best {
            _ if text == missing() && class.is_some() && !column.metric.by_class => String::new(),
            _ if text == missing() => text,
            Some(is_best) => format!("{text}{}", if is_best { " *" } else { "  " }),
            None => text,
        };
        let entries = numbers.texts().zip(best).zip(&rows).map(entry).collect();
        let heading = picked
            .class
            .as_ref()
            .map_or_else(|| column.heading.to_owned(), |class| format!("{class}.{}", column.name()));
        Self { picked: picked.clone(), heading, entries, starred }
    }

    /// Characters of the widest entry, the space around it, and a border.
    fn width(&self) -> usize {
        let widest = self.entries.iter().chain([&self.heading]).map(|text| text.chars().count()).max();
        widest.unwrap_or(0) + 3
    }
}

/// A row of a table: a policy, and the class of its jobs; the class is `None` for all jobs.
type LabelledRow<'a> = (&'a PolicyRuns, Option<&'a str>);

/// Minimum width of a column of names that keeps names distinguishable.
const NAME: usize = 16;

fn cell_table(group: &CellGroup, how: &TableStyle, legend: &mut Legend) -> String {
    let asked = !how.columns.is_empty();
    let picked = if asked { how.columns.clone() } else { unasked(group) };
    let mut classes: Vec<Option<&str>> = vec![None];
    // Each class has a row, unless a requested column shows a single class.
    if picked.iter().all(|picked| picked.class.is_none()) {
        classes.extend(group.classes().into_iter().map(Some));
    }
    let rows: Vec<LabelledRow<'_>> =
        group.policies.iter().flat_map(|runs| classes.iter().map(move |class| (runs, *class))).collect();
    let most = how.width.map_or(usize::MAX, |width| NAME.max(width / 3));
    let name = |(runs, class): &LabelledRow<'_>| {
        elided(&class.map_or_else(|| runs.policy.clone(), |label| format!("  {label}")), most)
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let mut columns: Vec<_> = picked.iter().map(|picked| TerminalColumn::new(picked, group, &rows)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("policy".len());
    if let (false, Some(width)) = (asked, how.width) {
        legend.leave_out(&mut columns, width.saturating_sub(widest + 4));
    }
    legend.add(&columns);
    let header = iter::once("policy").chain(columns.iter().map(|column| column.heading.as_str()));
    let rows = names.into_iter().enumerate().map(|(row, name)| {
        iter::once(name).chain(columns.iter().map(|column| column.entries[row].clone())).collect()
    });
    text_table(header, rows).to_string()
}

/// The default columns in order, limited to those with information about the cell.
fn unasked(group: &CellGroup) -> Vec<PickedColumn> {
    let runs = || group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    let shown = SummaryColumn::all().filter(|column| column.rank.is_some() && column.is_worth(runs()));
    shown.map(|column| PickedColumn { class: None, column }).collect()
}

impl Legend {
    /// Leaves out the least important columns until the others fit into `room` characters; keeps at least one.
    fn leave_out(&mut self, columns: &mut Vec<TerminalColumn>, room: usize) {
        while columns.len() > 1 && columns.iter().map(TerminalColumn::width).sum::<usize>() > room {
            let last = columns.iter().enumerate().max_by_key(|(_, column)| column.picked.column.rank);
            let Some(at) = last.map(|(at, _)| at) else { return };
            let name = columns.remove(at).picked.column.name();
            if !self.left_out.contains(&name) {
                self.left_out.push(name);
            }
        }
    }

    /// Records the shown columns in the legend.
    fn add(&mut self, columns: &[TerminalColumn]) {
        for column in columns {
            let shown = column.picked.column;
            self.starred |= column.starred;
            if column.entries.iter().all(|entry| *entry == missing()) && !self.empty.contains(&column.heading)
            {
                self.empty.push(column.heading.clone());
            }
            if shown.is_response_time() && !self.times.contains(&shown.heading) {
                self.times.push(shown.heading);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use volary_engine::results::{ClaimResult, ClassResults, Origin, Staleness, Summary, Verdict};
    use volary_experiment::storage::fixture::{manifest, measured};
    use volary_experiment::storage::manifest::Failure;
    use volary_experiment::storage::run_record::RunRecord;

    use super::*;

    fn study(seeds: u64) -> Study {
        let cell = [("load", json!(0.8))];
        let runs = [("slow", 2.0), ("fast", 1.0)]
            .into_iter()
            .flat_map(|run| (0..seeds).map(move |seed| (run, seed)));
        let record = |((policy, scale), seed)| {
            RunRecord::new(&format!("{policy}{seed}"), &measured(policy, &cell, seed, scale, 100))
        };
        Study::assemble(manifest(&[]), Vec::new(), runs.map(record).collect(), Vec::new(), Vec::new())
    }

    fn line<'a>(text: &'a str, of: &str) -> &'a str {
        text.lines().find(|line| line.contains(of)).unwrap()
    }

    #[test]
    fn unqueued_jobs_have_a_column_if_they_are_counted() {
        let mut counted = measured("fast", &[], 1, 1.0, 100);
        counted.summary.times.unqueued = Some(0.875);
        let records = vec![RunRecord::new("fast1", &counted)];
        let counted = Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new());
        let shown = text(&counted, &TableStyle::default());
        assert!(
            line(&shown, "policy").contains("unqueued") && line(&shown, "fast").contains("87.5"),
            "{shown}"
        );
        assert!(!text(&study(1), &TableStyle::default()).contains("unqueued"));
    }

    #[test]
    fn work_in_progress_has_a_column_unless_it_is_zero() {
        let mut cut = measured("fast", &[], 1, 1.0, 100);
        cut.summary.copies.wasted_work_s = 0.0;
        cut.summary.copies.in_progress_s = 0.25 * cut.summary.copies.busy_s;
        let records = vec![RunRecord::new("fast1", &cut)];
        let cut = Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new());
        let shown = text(&cut, &TableStyle::default());
        assert!(
            line(&shown, "policy").contains("in progress") && line(&shown, "fast").contains("25.0"),
            "{shown}"
        );
        assert!(line(&shown, "policy").contains("goodput"), "goodput has no column: {shown}");
        assert!(!text(&study(1), &TableStyle::default()).contains("in progress"));
    }

    #[test]
    fn the_best_number_of_a_column_is_starred() {
        let text = text(&study(1), &TableStyle::default());
        assert!(text.starts_with("load = 0.8\n"), "{text}");
        assert_eq!(line(&text, "fast").matches('*').count(), 3, "p50, p99 and mean are starred: {text}");
        assert_eq!(line(&text, "slow").matches('*').count(), 0, "{text}");
        assert!(line(&text, "fast").contains("9.09") && line(&text, "fast").contains("6.40"), "{text}");
        assert!(!text.contains("unfinished") && !text.contains('±'), "{text}");
    }

    #[test]
    fn classes_have_rows_of_their_own() {
        let mut study = study(1);
        for run in study.cells[0].policies.iter_mut().flat_map(|policy| &mut policy.runs) {
            let class = |jobs| ClassResults { jobs, not_finished: Some(3), times: run.summary.times };
            run.summary.classes = [("batch".to_owned(), class(40)), ("serving".to_owned(), class(60))].into();
        }
        let text = text(&study, &TableStyle::default());
        let rows: Vec<&str> =
            text.lines().filter_map(|line| line.split(['│', '┆']).nth(1)).map(str::trim).collect();
        assert_eq!(rows, ["policy", "slow", "serving", "batch", "fast", "serving", "batch"], "{text}");
        let of_class = text.lines().filter(|line| line.contains("serving")).nth(1).unwrap();
        assert_eq!(of_class.matches('*').count(), 3, "p50, p99 and mean are starred: {text}");
        assert!(
            line(&text, "fast").contains("60.0") && !of_class.contains("60.0"),
            "goodput does not exist for classes: {text}"
        );
    }

    #[test]
    fn unfinished_jobs_are_counted_by_class() {
        let mut study = study(1);
        for (i, run) in
            study.cells[0].policies.iter_mut().map(|policy| &mut policy.runs[0].summary).enumerate()
        {
            let class = |not_finished| ClassResults { jobs: 50, not_finished, ..ClassResults::default() };
            run.jobs.unfinished = 9;
            // The second record is of an older version, which did not count unfinished jobs by class.
            run.classes = [("batch".to_owned(), class([Some(3), None][i]))].into();
        }
        let columns = ["unfinished", "batch.unfinished"].map(|name| name.parse().unwrap()).to_vec();
        let text = text(&study, &TableStyle { columns, ..TableStyle::default() });
        let entries = |policy| -> Vec<String> {
            line(&text, policy).split(['│', '┆']).skip(2).map(|entry| entry.trim().to_owned()).collect()
        };
        assert_eq!(
            (&entries("slow")[..2], &entries("fast")[..2]),
            (&["9", "3"].map(String::from)[..], &["9", "–"].map(String::from)[..]),
            "{text}"
        );
    }

    #[test]
    fn a_policy_with_unfinished_jobs_is_not_the_best() {
        let mut study = study(1);
        study.cells[0].policies[1].runs[0].summary.jobs.unfinished = 9;
        let shown = text(&study, &TableStyle::default());
        assert_eq!(line(&shown, "fast").matches('*').count(), 0, "slow jobs are missing: {shown}");
        assert_eq!(line(&shown, "slow").matches('*').count(), 0, "no policy is comparable: {shown}");
    }

    #[test]
    fn classes_are_in_the_order_of_the_experiment() {
        let mut run = measured("fast", &[], 1, 1.0, 100);
        let class = ClassResults { jobs: 50, not_finished: None, times: run.summary.times };
        run.summary.classes = ["a", "be", "other", "slo", "z"].map(|label| (label.to_owned(), class)).into();
        let mut manifest = manifest(&[]);
        let mix = json!({ "mix": { "class": [{ "name": "z" }, { "name": "a" }] } });
        manifest.spec = json!({ "points": [{ "resolved": { "workload": mix } }] });
        let records = vec![RunRecord::new("fast1", &run)];
        let study = Study::assemble(manifest, Vec::new(), records, Vec::new(), Vec::new());
        assert_eq!(study.cells[0].classes(), ["z", "a", "slo", "be", "other"]);
    }

    #[test]
    fn tables_of_replications_show_intervals_and_unfinished_jobs() {
        let mut study = study(3);
        study.cells[0].policies[0].runs[1].summary.jobs.unfinished = 9;
        let text = text(&study, &TableStyle::default());
        assert!(line(&text, "fast").contains('±') && text.contains("unfinished"), "{text}");
    }

    #[test]
    fn the_table_reports_seeds_that_change_nothing() {
        let mut study = study(3);
        assert!(!text(&study, &TableStyle::default()).contains("seeds make no difference"));
        let slow = &mut study.cells[0].policies[0];
        let first = slow.runs[0].summary.clone();
        for run in &mut slow.runs {
            run.summary = Summary { seed: run.summary.seed, ..first.clone() };
        }
        let text = text(&study, &TableStyle::default());
        assert!(text.contains("seeds make no difference to slow: 3 replications"), "{text}");
        assert!(!line(&text, "│ slow").contains('±') && line(&text, "│ fast").contains('±'), "{text}");
    }

    #[test]
    fn runs_with_injections_are_marked() {
        let mut study = study(1);
        assert!(!text(&study, &TableStyle::default()).contains("INJECTED"));
        study.cells[0].policies[0].runs[0].summary.injections =
            vec![volary_experiment::storage::fixture::injected()];
        let text = text(&study, &TableStyle::default());
        let said = "INJECTED: slow, load = 0.8, seed 0: interference was injected from 2.000 s to 4.500 s: \
                    cores 0-1,3 on h1, 4-5 on h2\n";
        assert!(text.contains(said), "{text}");
    }

    /// A policy is not starred as best if other policies met more disturbances.
    #[test]
    fn policies_under_unequal_conditions_have_no_star() {
        let mut study = study(1);
        let inject = |study: &mut Study, policy: usize| {
            study.cells[0].policies[policy].runs[0].summary.injections =
                vec![volary_experiment::storage::fixture::injected()];
        };
        inject(&mut study, 0);
        let unequal = text(&study, &TableStyle::default());
        assert!(!unequal.contains('*'), "{unequal}");
        let why = "UNEQUAL: interference was injected into slow, load = 0.8, seed 0 and not into fast, load = 0.8, seed 0";
        assert!(unequal.contains(why), "{unequal}");
        let metric = |summary: &Summary| summary.times.response_s.p50;
        let choose = |study: &Study| choice::choose(&study.cells[0], &study.policies(), metric);
        assert_eq!(choose(&study), None);
        assert_eq!(study.cells[0].policies[0].label(), "slow (injected)", "in charts");
        inject(&mut study, 1);
        let equal = text(&study, &TableStyle::default());
        assert!(line(&equal, "fast").contains('*') && !equal.contains("UNEQUAL"), "{equal}");
        assert!(choose(&study).is_some());
    }

    #[test]
    fn failures_missing_runs_and_claims_follow_the_tables() {
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
            interrupted: false,
        });
        let claim = |says: &str, verdict| ClaimResult {
            says: says.into(),
            origin: Origin::Ours,
            tolerance: None,
            verdict,
            measured: [("a < b".to_owned(), json!({"holds": false, "along": [["9ms", 1], ["12ms", null]]}))]
                .into(),
        };
        study.claims = vec![
            claim("one", Verdict::Holds),
            claim("two", Verdict::Fails),
            claim("three", Verdict::NotTested),
        ];
        let plain = text(&study, &TableStyle::default());
        let coloured = TableStyle { coloured: true, ..TableStyle::default() };
        assert!(
            plain.contains("failed: slow, seed 7: out of memory\n") && plain.contains("missing: 2 of 0 runs")
        );
        assert!(
            plain.contains(
                "✓ holds       one\n✗ fails       two\n                a < b: fails: 9ms: 1.00; 12ms: –\n"
            ),
            "{plain}"
        );
        assert!(!plain.contains('\u{1b}') && text(&study, &coloured).contains("\u{1b}[31m✗ fails"));
    }

    /// A study in which the same policy is the fastest under all seeds except one.
    fn noisy() -> Study {
        let mut study = study(4);
        for (run, other) in (0..4).map(|i| (i, if i == 0 { 3.0 } else { 0.9 })) {
            let quick = study.cells[0].policies[1].runs[run].summary.clone();
            let slow = &mut study.cells[0].policies[0].runs[run].summary;
            slow.times.response_s = quick.times.response_s;
            slow.times.response_s.p99 *= other;
            slow.times.response_s.p50 *= 1.5;
        }
        study
    }

    #[test]
    fn an_insignificant_best_has_no_star() {
        let shown = text(&noisy(), &TableStyle { columns: picked("p50,p99"), ..TableStyle::default() });
        let stars = line(&shown, "│ fast").split('┆').map(|entry| entry.contains('*')).collect::<Vec<_>>();
        assert_eq!(stars, [false, true, false], "{shown}");
        assert!(!line(&shown, "│ slow").contains('*'), "{shown}");
        assert!(shown.contains("* marks the best of a column, where it differs significantly"), "{shown}");
    }

    fn picked(list: &str) -> Vec<PickedColumn> {
        list.split(',').map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn the_table_fits_the_requested_width() {
        let mut study = study(3);
        study.cells[0].policies[1].policy =
            "a policy with a label that goes on and on, to the very end".into();
        for width in [60, 80, 160, 400] {
            let shown = text(&study, &TableStyle { width: Some(width), ..TableStyle::default() });
            let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= width, "{width}: {longest}\n{shown}");
            assert!(shown.contains("p50") && shown.contains("ry end"), "{shown}");
            let said = shown.replace("\n  ", " ");
            assert_eq!(said.contains("too wide for this terminal"), width < 400, "{width}: {shown}");
        }
    }

    #[test]
    fn requested_columns_are_always_shown() {
        let mut study = study(1);
        study.cells[0].policies[1].runs[0].summary.sections.staleness =
            Some(Staleness { bias_s: -0.25, ..Staleness::UNMEASURED });
        let columns = picked("P99.9,bias,SLO node-h,short.p99");
        let shown = text(&study, &TableStyle { width: Some(20), columns, ..TableStyle::default() });
        let heading = line(&shown, "policy").replace(' ', "");
        assert_eq!(heading, "│policy┆p99.9┆bias┆SLOnode-h┆short.p99│");
        assert!(line(&shown, "fast").contains("−250") && line(&shown, "slow").contains('–'), "{shown}");
        let said = shown.replace("\n  ", " ");
        assert!(said.contains("--columns: the run has no class short; it has none"), "{shown}");
        assert!(said.contains("no run measured SLO node-h"), "{shown}");
    }

    #[test]
    fn an_unknown_column_is_refused_and_the_nearest_name_suggested() {
        let error = |name: &str| name.parse::<PickedColumn>().unwrap_err();
        assert!(error("regrett").contains("did you mean `regret`?"), "{}", error("regrett"));
        assert!(error("xyz").contains("no column is named `xyz`: `help` instead"), "{}", error("xyz"));
        assert!(error("values.queue.mean").contains("claims can use it"), "{}", error("values.queue.mean"));
        assert!(error("short.wasted").contains("classes of jobs have no column `wasted`"));
        let tail: PickedColumn = "my.class.p99.9".parse().unwrap();
        assert_eq!((tail.class.as_deref(), tail.column.heading), (Some("my.class"), "p99.9"));
    }

    #[test]
    fn tables_fit_80_and_160_columns() {
        let shown = |width| text(&study(3), &TableStyle { width: Some(width), ..TableStyle::default() });
        insta::assert_snapshot!(shown(80), @r"
        load = 0.8
        ┌────────┬─────────────────┬─────────────────┬─────────────────┬────────┐
        │ policy ┆ p50             ┆ p99             ┆ mean            ┆ wasted │
        ╞════════╪═════════════════╪═════════════════╪═════════════════╪════════╡
        │ slow   ┆ 2.21 ± 0.55 s   ┆ 25.4 ± 12.4 s   ┆ 3.36 ± 1.46 s   ┆ 9.09 % │
        │ fast   ┆ 1.11 ± 0.28 s * ┆  12.7 ± 6.2 s * ┆ 1.68 ± 0.73 s * ┆ 9.09 % │
        └────────┴─────────────────┴─────────────────┴─────────────────┴────────┘
        p50, p99 and mean are response times of jobs; ± is the 95 % half-width; * marks
          the best of a column, where it differs significantly from the others; too wide
          for this terminal: repairs/task, suspended/task, goodput, utilization,
          slowdown, msgs/task (see --columns help)
        ");
        insta::assert_snapshot!(shown(160), @r"
        load = 0.8
        ┌────────┬─────────────────┬─────────────────┬─────────────────┬──────────┬─────────────┬─────────┬────────┬────────────────┬───────────┬──────────────┐
        │ policy ┆ p50             ┆ p99             ┆ mean            ┆ slowdown ┆ utilization ┆ goodput ┆ wasted ┆ suspended/task ┆ msgs/task ┆ repairs/task │
        ╞════════╪═════════════════╪═════════════════╪═════════════════╪══════════╪═════════════╪═════════╪════════╪════════════════╪═══════════╪══════════════╡
        │ slow   ┆ 2.21 ± 0.55 s   ┆ 25.4 ± 12.4 s   ┆ 3.36 ± 1.46 s   ┆     1.20 ┆      70.0 % ┆  60.0 % ┆ 9.09 % ┆          0.300 ┆      6.40 ┆      0.00100 │
        │ fast   ┆ 1.11 ± 0.28 s * ┆  12.7 ± 6.2 s * ┆ 1.68 ± 0.73 s * ┆     1.20 ┆      70.0 % ┆  60.0 % ┆ 9.09 % ┆          0.300 ┆      6.40 ┆      0.00100 │
        └────────┴─────────────────┴─────────────────┴─────────────────┴──────────┴─────────────┴─────────┴────────┴────────────────┴───────────┴──────────────┘
        p50, p99 and mean are response times of jobs; ± is the 95 % half-width; * marks the best of a column, where it differs significantly from the others
        ");
    }
}
