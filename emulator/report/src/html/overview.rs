//! The parts above the cells: warnings, verdicts, the sweep at a glance, the best policy of each cell, and the safest
//! policies over all cells.

use maud::{Markup, html};
use serde_json::Value;
use volary_engine::results::{Cell, ClaimResult, Summary, Tally, Verdict, in_words};
use volary_experiment::config::claims::Expression;
use volary_experiment::number::{self, count, plural};
use volary_experiment::storage::study::{CellGroup, Study};

use super::table::policy_row;
use super::view::{anchor, grid, prose, short_title};
use crate::chart::heat::{Heat, HeatRow, Shade};
use crate::chart::svg::Picture;
use crate::choice::{AIMS, CLOSE, Choice, Standing, choose, standings};
use crate::claims::{changed, check, finding, on_generated};
use crate::columns::ChartNumber;
use crate::figures::plot::usual_numbers;
use crate::figures::sweep::{AxisTitles, Sweep, heading, heat, outer_first};
use crate::table::{PARTIAL, executed_again};

/// Limit on the charts over swept keys, which keeps the cells below visible.
const SWEEP_CHARTS: usize = 12;

/// Maximum number of a claim's numbers that are shown.
const NUMBERS: usize = 100;

/// Limit on the runs that a warning names.
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
    lines.extend(executed_again(study).map(|said| html! { (said) "." }));
    let degraded: Vec<String> = summaries().filter(|run| run.is_degraded()).map(Summary::name).collect();
    if !degraded.is_empty() {
        lines.push(html! {
            (plural(degraded.len() as u64, "run")) " departed from the configuration by more than the limits of a \
            faithful run; their certificates state by how much: "
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
            "Policies did not meet the same conditions in " (plural(unequal.len() as u64, "cell")) ", so no best policy is named there, and \
            no claim compares their policies: " (named(&unequal)) "."
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

/// The first few of the runs as text, and the number of the others.
fn named(runs: &[String]) -> String {
    let more = runs.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", runs[..runs.len().min(NAMED)].join("; "))
}

/// The box with the verdicts on claims.
pub(super) fn claims(study: &Study) -> Markup {
    let claims = &study.claims;
    html! {
        @if !claims.is_empty() {
            section id="claims" {
                h2 { "Claims" }
                @for (origin, tally) in Tally::by_origin(claims) {
                    p.hint { (origin.label()) ": " (tally) (changed(&study.changed())) }
                    div.box { @for one in claims.iter().filter(|claim| claim.origin == origin) { (claim(one)) } }
                }
            }
        }
    }
}

fn claim(claim: &ClaimResult) -> Markup {
    let (class, verdict) = match claim.verdict {
        Verdict::Holds | Verdict::Fails if claim.is_within_noise() => ("warn", "~ within noise"),
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
                    " " span.hint { (claim.verdict.word()) ", within noise: other seeds could well give the other verdict; see --repeat" }
                }
                @if let Some(generated) = on_generated(claim) {
                    " " span.hint { (generated) }
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

/// The usual numbers of every cell, shaded, and curves over the swept keys. The table of a wide sweep opens on demand.
pub(super) fn sweep(study: &Study, policies: &[&str], wide: bool) -> Markup {
    if study.cells.len() < 2 {
        return Markup::default();
    }
    let (charts, left_out) = curves(study, policies);
    html! {
        section id="sweep" {
            h2 { "The sweep at a glance" }
            p.hint {
                @if study.has_jobs() { "Response times in every cell. " }
                "A stronger colour marks a policy that is worse than the best of the cell, by the factor after the \
                number; the strongest marks a factor of five, or the largest factor if that is larger."
                @if study.cells.iter().any(|group| group.unequal().is_some()) {
                    " † marks cells that are not shaded, because their policies did not meet the same conditions."
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
            @if !charts.is_empty() { (grid(charts, &Markup::default())) }
            @if left_out > 0 {
                p.hint { (plural(left_out as u64, "more chart")) " of this kind: " code { "volary plot RUN --what sweep --number NUMBER" } "." }
            }
        }
    }
}

/// The usual numbers of every cell, shaded, with links to the cells.
pub(super) fn all_cells(study: &Study, policies: &[&str]) -> Markup {
    let shaded = if study.has_jobs() { usual_numbers(study) } else { numbers(study) };
    html! {
        div.card.scroll tabindex="0" role="group" aria-label="The sweep at a glance" {
            (heat(study, policies, &shaded, anchor).html())
        }
    }
}

/// Maximum number of numbers of claims that are plotted over swept keys.
const CLAIMED: usize = 4;

/// The numbers that are plotted over swept keys: the numbers that the experiment names, else the numbers of its claims,
/// else the usual numbers.
fn numbers(study: &Study) -> Vec<ChartNumber> {
    let named = study.manifest.spec.pointer("/report/charts").and_then(Value::as_array);
    let named: Vec<ChartNumber> =
        named.into_iter().flatten().filter_map(|text| text.as_str()?.parse().ok()).collect();
    if !named.is_empty() {
        return named;
    }
    let checks = study.claims.iter().flat_map(|claim| claim.measured.iter()).map(|(what, _)| check(what));
    let claimed = Expression::of_checks(checks).into_iter().take(CLAIMED).map(ChartNumber::from);
    let claimed: Vec<ChartNumber> = claimed.collect();
    if claimed.is_empty() { usual_numbers(study) } else { claimed }
}

/// Charts over each key with three values or more, or with two values if it is the only swept key and not a flag. Also
/// returns the number of charts beyond the limit. Within the limit, each key and number has an equal share.
fn curves(study: &Study, policies: &[&str]) -> (Vec<Picture>, usize) {
    let is_drawn = |(_, values): &(&str, Vec<&Value>)| {
        let flags = values.iter().all(|value| value.is_boolean());
        values.len() >= 3 || !flags && study.swept().len() == 1
    };
    let keys: Vec<&str> = study.swept().into_iter().filter(is_drawn).map(|(key, _)| key).collect();
    let numbers = numbers(study);
    let most = (SWEEP_CHARTS / (keys.len() * numbers.len()).max(1)).max(1);
    let (mut charts, mut left_out) = (Vec::new(), 0);
    for (key, number) in keys.into_iter().flat_map(|key| numbers.iter().map(move |number| (key, number))) {
        let all = Sweep { key, number, size: (520.0, 300.0), titles: &AxisTitles::default() }
            .by_policy(study, policies);
        left_out += all.len().saturating_sub(most);
        charts.extend(all.into_iter().take(most));
    }
    (charts, left_out)
}

/// Number of ties named in a cell of the map; the number of further ties is shown.
const TIES_NAMED: usize = 2;
/// Factor between the worst and the best policy that has the strongest colour.
const HIGH: f64 = 10.0;

/// The section of the best policies; empty if there is no choice.
pub(super) fn best_policies(study: &Study, policies: &[&str]) -> Markup {
    if !is_worthwhile(study, policies) {
        return Markup::default();
    }
    let close = format!("{:.0}\u{202f}%", 100.0 * (CLOSE - 1.0));
    let headings = ["policy", "best", &format!("within {close}"), "core time", "worst"];
    html! {
        section id="choice" {
            h2 { "Which policy when" }
            p.hint {
                "The policy with the shortest response times in each cell, and a link to it; after ≈, policies \
                that do not differ significantly from it. The factor is the possible loss: how much slower the \
                worst policy is. Policies that left \
                 jobs unfinished are not considered."
            }
            div.card.scroll tabindex="0" role="group" aria-label="Which policy when" { (map(study, policies)) }
            h3 { "If the cell is not known in advance" }
            p.hint {
                "Over all cells: how often each policy is best or does not differ significantly from the best, \
                how often it is within "
                (close) " of it, its core time relative to the smallest, and its largest factor relative to the \
                best. The safest comes first."
            }
            div.grid {
                @for (aim, metric) in AIMS {
                    div.card.scroll tabindex="0" role="group" aria-label=(aim) {
                        table {
                            caption { (aim) }
                            thead {
                                tr { @for heading in &headings { th { (heading) } } th.left { "where" } }
                            }
                            tbody { @for standing in standings(study, policies, metric) { (row(study, policies, &standing)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the study has jobs, several policies, and several cells, at least one of which is complete.
pub(super) fn is_worthwhile(study: &Study, policies: &[&str]) -> bool {
    study.has_jobs()
        && study.cells.len() > 1
        && policies.len() > 1
        && study.cells.iter().any(|group| !group.partial)
}

fn row(study: &Study, policies: &[&str], standing: &Standing) -> Markup {
    let Standing { policy, cells, best, close, worst, worst_at, core_time } = *standing;
    policy_row(
        policies,
        policies[policy],
        &html! {
            td { (best) " of " (cells) }
            td { (close) }
            td { "×" (number::short(core_time)) }
            td { "×" (number::short(worst)) }
            td.left {
                @if worst > 1.0 {
                    a href={ "#" (anchor(worst_at)) } { (short_title(&study.cells[worst_at])) }
                } @else {
                    "–"
                }
            }
        },
    )
}

/// A cell of the sweep with its number; `None` if the cell has no runs.
type Place<'a> = Option<(usize, &'a CellGroup)>;

/// The cells of the sweep as a table: the key with the most values in columns, the other keys in rows.
fn map(study: &Study, policies: &[&str]) -> Markup {
    let swept = study.swept();
    let names = outer_first(study);
    let across = if names.len() < 2 { None } else { names.iter().max_by_key(|key| swept[**key].len()) };
    let values = across.map_or_else(|| vec![&Value::Null], |key| swept[key].clone());
    let down: Vec<&str> = names.iter().copied().filter(|name| Some(name) != across).collect();
    let mut rows: Vec<(Cell, Vec<Place<'_>>)> = Vec::new();
    for (number, group) in study.cells.iter().enumerate() {
        let mut rest = group.cell.clone();
        let value = across.and_then(|key| rest.remove(*key)).unwrap_or_default();
        let Some(column) = values.iter().position(|other| **other == value) else { continue };
        let at = rows.iter().position(|(other, _)| *other == rest).unwrap_or_else(|| {
            rows.push((rest, vec![None; values.len()]));
            rows.len() - 1
        });
        rows[at].1[column] = Some((number, group));
    }
    let column = |value: &Value| {
        across.map_or_else(
            || "best policy".to_owned(),
            |key| format!("{} = {}", heading(key, &names), in_words(value)),
        )
    };
    let columns: Vec<_> = values.iter().map(|value| (String::new(), column(value))).collect();
    let cell = |place: &Place<'_>, metric| {
        let (number, group) = (*place)?;
        let choice = choose(group, policies, metric)?;
        Some(Shade { link: anchor(number), ..shade(&choice, policies) })
    };
    let row = |(rest, places): &(Cell, Vec<Place<'_>>)| HeatRow {
        names: down.iter().map(|key| rest.get(*key).map(in_words).unwrap_or_default()).collect(),
        link: places.iter().flatten().next().map_or_else(String::new, |(number, _)| anchor(*number)),
        cells: AIMS.iter().flat_map(|(_, metric)| places.iter().map(|place| cell(place, *metric))).collect(),
    };
    Heat {
        keys: down.iter().map(|key| (heading(key, &names).to_owned(), (*key).to_owned())).collect(),
        groups: AIMS.iter().map(|(aim, _)| ((*aim).to_owned(), columns.clone())).collect(),
        rows: rows.iter().map(row).collect(),
    }
    .html()
}

fn shade(choice: &Choice, policies: &[&str]) -> Shade {
    let mut text = policies[choice.best].to_owned();
    let (named, more) = choice.ties.split_at(choice.ties.len().min(TIES_NAMED));
    text.extend(named.iter().map(|&tie| format!(" ≈ {}", policies[tie])));
    if !more.is_empty() {
        text.push_str(&format!(" ≈ {} more", more.len()));
    }
    let mut order: Vec<(f64, &str)> = choice
        .factors
        .iter()
        .zip(policies)
        .filter_map(|(factor, policy)| Some(((*factor)?, *policy)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let listed =
        order.iter().map(|(factor, policy)| format!("{policy} {}", number::seconds(factor * choice.mean)));
    let stake = choice.stake();
    Shade {
        depth: stake.ln() / HIGH.ln(),
        text,
        small: format!("×{}", number::short(stake)),
        title: listed.collect::<Vec<_>>().join(", "),
        series: Some(choice.best),
        link: String::new(),
    }
}
