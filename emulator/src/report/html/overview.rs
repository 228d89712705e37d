//! The parts above the cells: warnings, verdicts, and the sweep at a glance.

use maud::{Markup, html};
use volary_engine::results::{Cell, ClaimResult, Summary, Tally, Verdict, cell_name, plain};

use super::view::{anchor, short_key};
use crate::chart::heat::{Heat, HeatRow, Shade};
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::number::{self, plural};
use crate::report::claims::{changed, finding, is_of_generator};
use crate::report::columns::not_finished;
use crate::report::table::PARTIAL;
use crate::stats::Interval;
use crate::storage::study::{CellGroup, Metric, Study};

/// Limit on the charts over swept keys, so that the cells below stay visible.
const SWEEP_CHARTS: usize = 12;

/// Limit on the runs named, per kind.
const NAMED: usize = 8;

/// Warnings about the reliability of the numbers; empty if there are none.
pub(super) fn warnings(study: &Study) -> Markup {
    let mut lines: Vec<Markup> = study.warnings().map(|warning| html! { (warning) }).collect();
    if let Some(share) = &study.manifest.share {
        lines.push(html! { (share.says()) " " (PARTIAL) });
    }
    if study.missing > 0 {
        let of = plural(study.manifest.runs.len() as u64, "run");
        lines.push(
            html! { "Missing: " (study.missing) " of " (of) "; run again with " code { "--resume" } "." },
        );
    }
    lines.extend(study.failures.iter().map(|failure| {
        html! {
            "Failed: " (failure.policy) " " (cell_name(&failure.cell)) " seed " (failure.seed)
            details { summary { "log" } pre { (failure.log) } }
        }
    }));
    let summaries = || study.records().map(|record| &record.summary);
    let open = summaries().map(not_finished).filter(|jobs| *jobs > 0);
    let (runs, jobs) = open.fold((0, 0), |(runs, sum), jobs| (runs + 1, sum + jobs));
    if jobs > 0 {
        lines.push(html! {
            (plural(jobs, "job")) " in " (plural(runs, "run")) " did not finish: percentiles are of finished jobs, and \
            curves that stop short of 100 % show the rest."
        });
    }
    let degraded: Vec<String> = summaries().filter(|run| run.is_degraded()).map(name).collect();
    if !degraded.is_empty() {
        let more = degraded.len().saturating_sub(NAMED);
        lines.push(html! {
            (plural(degraded.len() as u64, "run")) " did not do what was asked; see their fidelity: "
            (named(&degraded)) @if more > 0 { " and " (more) " more" } "."
        });
    }
    let injected: Vec<String> = summaries().filter(|run| !run.injections.is_empty()).map(name).collect();
    if !injected.is_empty() {
        lines.push(html! {
            "Interference was injected into " (plural(injected.len() as u64, "run")) " while going on; see the notes: "
            (named(&injected)) "."
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

/// The first few of the runs.
fn named(runs: &[String]) -> String {
    runs[..runs.len().min(NAMED)].join("; ")
}

/// A run in words.
fn name(summary: &Summary) -> String {
    let cell = cell_name(&summary.cell);
    let comma = if cell.is_empty() { "" } else { ", " };
    format!("{}{comma}{cell}, seed {}", summary.policy, summary.seed)
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
        Verdict::Fails => ("bad", "✗ fails"),
        Verdict::NotTested => ("warn", "? not tested"),
    };
    html! {
        div.claim {
            span class={ "badge " (class) } { (verdict) }
            div {
                (claim.says)
                @if claim.is_within_noise() {
                    " " span.hint { "within noise: other seeds could well give the other verdict; see --repeat" }
                }
                @if is_of_generator(claim) {
                    " " span.hint { "on the jobs of a generator: the trace was not found" }
                }
                @if claim.is_degraded() {
                    " " span.hint {
                        "measured on a degraded run, which did not do what was asked, or was injected into; see its \
                         fidelity and its notes"
                    }
                }
            }
            @if !claim.measured.is_empty() {
                details open[claim.verdict == Verdict::Fails] {
                    summary { "the numbers" }
                    table {
                        tbody {
                            @for (what, measured) in claim.measured.iter() {
                                tr { th scope="row" { (what) } td.left { (finding(measured)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Median and tail of every cell, shaded, and curves over keys that were swept with numbers.
pub(super) fn sweep(study: &Study, policies: &[&str]) -> Markup {
    if study.cells.len() < 2 {
        return Markup::default();
    }
    let charts = curves(study, policies);
    html! {
        section id="sweep" {
            h2 { "The sweep at a glance" }
            div.card { (heat(study, policies)) }
            p.hint {
                "Response times; darker is slower than the fastest policy of the cell, by the factor behind the number."
            }
            @if !charts.is_empty() { div.grid { @for chart in charts { div.card { (chart) } } } }
        }
    }
}

/// The metrics in the shaded table.
const SHADED: [(&str, Metric); 2] =
    [("median", |s| s.response_s.p50), ("99th percentile", |s| s.response_s.p99)];

fn heat(study: &Study, policies: &[&str]) -> Markup {
    let names: Vec<&str> = study.swept().into_keys().collect();
    let columns = policies.iter().enumerate().map(|(i, policy)| (format!("p{i}"), (*policy).to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    let row = |(i, group): (usize, &CellGroup)| {
        let value = |key: &&str| group.cell.get(*key).map(plain).unwrap_or_default();
        let cells = SHADED.iter().flat_map(|(_, metric)| shades(group, policies, *metric)).collect();
        HeatRow { names: names.iter().map(value).collect(), link: anchor(i), cells }
    };
    Heat {
        keys: names.iter().map(|key| (short_key(key, &names).to_owned(), (*key).to_owned())).collect(),
        groups: SHADED.iter().map(|(heading, _)| ((*heading).to_owned(), columns.clone())).collect(),
        rows: study.cells.iter().enumerate().map(row).collect(),
    }
    .html()
}

/// One shade per policy.
fn shades(group: &CellGroup, policies: &[&str], metric: Metric) -> Vec<Option<Shade>> {
    let mean = |policy: &&str| group.of(policy)?.interval(metric).map(|interval| interval.mean);
    let means: Vec<Option<f64>> = policies.iter().map(mean).collect();
    let best = means.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    means.iter().zip(policies).map(|(mean, policy)| mean.map(|mean| shade(mean, best, policy))).collect()
}

/// The shade of a value; five times the best or more is the darkest.
fn shade(mean: f64, best: f64, policy: &str) -> Shade {
    let factor = mean / best;
    let small = if factor > 1.0 { format!("×{}", number::short(factor)) } else { String::new() };
    let depth = if factor.is_finite() { factor.ln() / 5f64.ln() } else { 0.0 };
    let text = number::seconds(mean);
    Shade { depth, title: format!("{policy}: {text} {small}"), text, small, series: None }
}

/// For each key swept with at least three numbers: median and tail over it, a chart for each combination of the other
/// keys.
fn curves(study: &Study, policies: &[&str]) -> Vec<Markup> {
    let mut charts = Vec::new();
    for (key, values) in study.swept() {
        if values.len() < 3 || !values.iter().all(|value| value.is_number()) {
            continue;
        }
        let mut others: Vec<(Cell, Vec<&CellGroup>)> = Vec::new();
        for group in &study.cells {
            let mut rest = group.cell.clone();
            rest.remove(key);
            match others.iter_mut().find(|(other, _)| *other == rest) {
                Some((_, groups)) => groups.push(group),
                None => others.push((rest, vec![group])),
            }
        }
        for (other, cells) in others {
            charts.push(curve(key, &other, &cells, policies, ("median", |s| s.response_s.p50)));
            charts.push(curve(key, &other, &cells, policies, ("p99", |s| s.response_s.p99)));
        }
    }
    charts.truncate(SWEEP_CHARTS);
    charts
}

fn curve(
    key: &str,
    other: &Cell,
    cells: &[&CellGroup],
    policies: &[&str],
    (name, metric): (&str, Metric),
) -> Markup {
    let series = policies.iter().enumerate().map(|(colour, policy)| {
        let mut series = Series { label: (*policy).to_owned(), colour, dots: true, ..Series::default() };
        let point =
            |group: &&CellGroup| Some((group.cell.get(key)?.as_f64()?, group.of(policy)?.interval(metric)?));
        let mut points: Vec<(f64, Interval)> = cells.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (x, interval) in points {
            series.points.push((x, interval.mean));
            if let Some(half) = interval.half_width {
                series.band.low.push((x, (interval.mean - half).max(interval.mean / 1e3)));
                series.band.high.push((x, interval.mean + half));
            }
        }
        series
    });
    let series: Vec<Series> = series.collect();
    let xs = series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
    let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    // A margin, so that the outermost dots are not cut.
    let (spread, range) = if low > 0.0 && high / low >= 20.0 {
        (AxisScale::Log, (low / 1.1, high * 1.1))
    } else {
        (AxisScale::Linear, (low - 0.04 * (high - low), high + 0.04 * (high - low)))
    };
    let at = cell_name(other);
    let title = if at.is_empty() { format!("Response, {name}") } else { format!("Response, {name} ({at})") };
    let x = PlotAxis { range: Some(range), ..PlotAxis::new(key, spread, TickUnit::Number) };
    let y = PlotAxis::new(&format!("response time, {name}"), AxisScale::Log, TickUnit::Seconds);
    Plot { title, x, y, series, size: (520.0, 300.0) }.svg()
}
