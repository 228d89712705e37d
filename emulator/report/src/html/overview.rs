//! The parts above the cells: warnings, verdicts, and the sweep at a glance.

use maud::{Markup, html};
use serde_json::Value;
use volary_engine::results::{ClaimResult, Summary, Tally, Verdict};
use volary_experiment::number::{count, plural};
use volary_experiment::storage::study::{CellGroup, Study};

use super::view::{anchor, prose};
use crate::chart::svg::Picture;
use crate::claims::{changed, finding, is_of_generator};
use crate::columns::PickedColumn;
use crate::figures::sweep::{Sweep, heat};
use crate::table::PARTIAL;

/// Limit on the charts over swept keys, so that the cells below stay visible.
const SWEEP_CHARTS: usize = 12;

/// Limit on the numbers shown of a claim.
const NUMBERS: usize = 100;

/// Limit on the runs named, per kind.
const NAMED: usize = 8;

/// Warnings about the reliability of the numbers; empty if there are none.
pub(super) fn warnings(study: &Study) -> Markup {
    let mut lines: Vec<Markup> = study.warnings().map(prose).collect();
    if let Some(share) = &study.manifest.slices {
        lines.push(html! { (share.says()) " " (PARTIAL) });
    }
    if study.missing > 0 {
        let of = plural(study.manifest.runs.len() as u64, "run");
        lines.push(
            html! { "Missing: " (study.missing) " of " (of) "; run again with " code { "--resume" } "." },
        );
    }
    if study.manifest.slices.is_none() && study.cells.iter().any(|group| group.partial) {
        lines.push(html! { (PARTIAL) });
    }
    lines.extend(study.failures.iter().take(NAMED).map(|failure| {
        html! {
            (failure.name()) " " (failure.fate()) ":"
            details { summary { "log" } pre { (failure.log) } }
        }
    }));
    let unnamed = study.failures.len().saturating_sub(NAMED);
    if unnamed > 0 {
        lines.push(html! { (plural(unnamed as u64, "more run")) " failed; " code { "failed/*.json" } " have their logs." });
    }
    let summaries = || study.records().map(|record| &record.summary);
    let open = summaries().map(Summary::not_finished).filter(|jobs| *jobs > 0);
    let (runs, jobs) = open.fold((0, 0), |(runs, sum), jobs| (runs + 1, sum + jobs));
    if jobs > 0 {
        lines.push(html! {
            (plural(jobs, "job")) " in " (plural(runs, "run")) " did not finish: percentiles are of finished jobs, and \
            curves that stop short of 100 % show the rest."
        });
    }
    let degraded: Vec<String> = summaries().filter(|run| run.is_degraded()).map(Summary::name).collect();
    if !degraded.is_empty() {
        lines.push(html! {
            (plural(degraded.len() as u64, "run")) " departed from what was asked by more than the limits of a faithful run; their fidelity says by how much: "
            (named(&degraded)) "."
        });
    }
    let injected: Vec<String> =
        summaries().filter(|run| !run.injections.is_empty()).map(Summary::name).collect();
    if !injected.is_empty() {
        lines.push(html! {
            "Interference was injected into " (plural(injected.len() as u64, "run")) "; see the notes: "
            (named(&injected)) "."
        });
    }
    let unequal: Vec<String> = study.cells.iter().filter_map(CellGroup::unequal).collect();
    if !unequal.is_empty() {
        lines.push(html! {
            "Policies did not meet the same conditions in " (plural(unequal.len() as u64, "cell")) ", which name no best policy, and \
            whose policies no claim compares: " (named(&unequal)) "."
        });
    }
    html! {
        @if !lines.is_empty() {
            div.box.warns role="note" {
                strong { "Before you read on" }
                ul { @for line in lines { li { (line) } } }
            }
        }
    }
}

/// The first few of the runs, and the number of further ones.
fn named(runs: &[String]) -> String {
    let more = runs.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", runs[..runs.len().min(NAMED)].join("; "))
}

/// The verdict box.
pub(super) fn claims(study: &Study) -> Markup {
    let claims = &study.claims;
    html! {
        @if !claims.is_empty() {
            section id="claims" {
                h2 { "Claims" }
                @for (origin, tally) in Tally::by_origin(claims) {
                    p.hint { (origin.whose()) ": " (tally) (changed(&study.changed())) }
                    div.box { @for one in claims.iter().filter(|claim| claim.origin == origin) { (claim(one)) } }
                }
            }
        }
    }
}

fn claim(claim: &ClaimResult) -> Markup {
    let (class, verdict) = match claim.verdict {
        Verdict::Holds => ("good", "✓ holds"),
        Verdict::OtherSize => ("warn", "≈ right direction, other size"),
        Verdict::Fails => ("bad", "✗ fails"),
        Verdict::NotTested => ("warn", "? not tested"),
    };
    html! {
        div.claim {
            span class={ "badge " (class) } { (verdict) }
            div {
                (prose(&claim.says))
                @if claim.is_within_noise() {
                    " " span.hint { "within noise: other seeds could well give the other verdict; see --repeat" }
                }
                @if is_of_generator(claim) {
                    " " span.hint { "on the jobs of a generator: the trace was not found" }
                }
                @if claim.is_degraded() {
                    " " span.hint {
                        "measured on a degraded run, see its fidelity"
                    }
                }
                @if claim.is_injected() {
                    " " span.hint { "measured with injected interference, the same in all runs that are compared" }
                }
            }
            @if !claim.measured.is_empty() {
                details open[matches!(claim.verdict, Verdict::Fails | Verdict::OtherSize)] {
                    summary { "the numbers" }
                    dl.numbers {
                        @for (what, measured) in claim.measured.iter().take(NUMBERS) {
                            dt { (what) } dd { (prose(&finding(measured))) }
                        }
                    }
                    @let more = claim.measured.iter().skip(NUMBERS).count();
                    @if more > 0 { p.hint { (more) " more are in claims.jsonl." } }
                }
            }
        }
    }
}

/// The id of the section with the table of all cells of a wide sweep.
pub(super) const ALL_CELLS: &str = "all-cells";

/// Median and tail of every cell, shaded, and curves over the swept keys. The table of a wide sweep is shown on demand.
pub(super) fn sweep(study: &Study, policies: &[&str], wide: bool) -> Markup {
    if study.cells.len() < 2 {
        return Markup::default();
    }
    let (charts, left_out) = curves(study, policies);
    html! {
        section id="sweep" {
            h2 { "The sweep at a glance" }
            p.hint {
                "Response times in every cell. The stronger the colour, the slower the policy is than the fastest of the \
                 cell, by the factor behind the number; five times as slow or more has the strongest."
                @if study.cells.iter().any(|group| group.unequal().is_some()) {
                    " † marks the cells whose policies did not meet the same conditions, which are not shaded."
                }
            }
            @if wide {
                details.cell id=(ALL_CELLS) data-file="" {
                    summary { h3 { "All " (count(study.cells.len() as u64)) " cells" } }
                    p.hint role="status" { "…" }
                }
            } @else {
                (all_cells(study, policies))
            }
            @if !charts.is_empty() { div.grid { @for chart in charts { div.card { (chart.in_page()) } } } }
            @if left_out > 0 {
                p.hint { (plural(left_out as u64, "more chart")) " of this kind: " code { "volary plot RUN --what sweep" } "." }
            }
        }
    }
}

/// Median and tail of every cell, shaded, with links to the cells.
pub(super) fn all_cells(study: &Study, policies: &[&str]) -> Markup {
    html! {
        div.card.scroll tabindex="0" role="group" aria-label="The sweep at a glance" {
            (heat(study, policies, &numbers(), anchor).html())
        }
    }
}

/// The numbers that the sweep is shown by.
fn numbers() -> Vec<PickedColumn> {
    ["p50", "p99"].into_iter().filter_map(|name| name.parse().ok()).collect()
}

/// Charts over each key with three values or more, or with two if it is the only swept key and not a flag; and the
/// number of those beyond the limit, of which each key and number has an equal share.
fn curves(study: &Study, policies: &[&str]) -> (Vec<Picture>, usize) {
    let is_drawn = |(_, values): &(&str, Vec<&Value>)| {
        let flags = values.iter().all(|value| value.is_boolean());
        values.len() >= 3 || !flags && study.swept().len() == 1
    };
    let keys: Vec<&str> = study.swept().into_iter().filter(is_drawn).map(|(key, _)| key).collect();
    let numbers = numbers();
    let most = (SWEEP_CHARTS / (keys.len() * numbers.len()).max(1)).max(1);
    let (mut charts, mut left_out) = (Vec::new(), 0);
    for (key, number) in keys.into_iter().flat_map(|key| numbers.iter().map(move |number| (key, number))) {
        let all = Sweep { key, number, size: (520.0, 300.0) }.by_policy(study, policies);
        left_out += all.len().saturating_sub(most);
        charts.extend(all.into_iter().take(most));
    }
    (charts, left_out)
}
