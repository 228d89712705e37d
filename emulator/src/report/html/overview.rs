//! The parts above the cells: warnings, verdicts, and the sweep at a glance.

use super::view::{anchor, short_key, value};
use crate::chart::heat::{Heat, HeatRow, Shade};
use crate::chart::line::{Band, Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::chart::svg::escape;
use crate::number::{self, plural};
use crate::report::table::not_finished;
use crate::stats::Interval;
use crate::storage::study::{CellGroup, Metric, Study};
use volary_engine::results::{Cell, ClaimResult, Summary, Verdict};
use volary_engine::results::{cell_name, plain};

/// Limit on the charts over swept keys, so that the cells below stay visible.
const SWEEP_CHARTS: usize = 12;

/// Limit on the runs named, per kind.
const NAMED: usize = 8;

/// Warnings about the reliability of the numbers; empty if there are none.
pub(super) fn warnings(study: &Study) -> String {
    let mut lines: Vec<String> = study.warnings().map(escape).collect();
    if study.missing > 0 {
        let of = plural(study.manifest.cells.len() as u64, "run");
        lines.push(format!("Missing: {} of {of}; run again with <code>--resume</code>.", study.missing));
    }
    for failure in &study.failures {
        let at = format!("{} {} seed {}", failure.policy, cell_name(&failure.cell), failure.seed);
        let log = escape(&failure.log);
        lines.push(format!(
            "Failed: {}<details><summary>log</summary><pre>{log}</pre></details>",
            escape(&at)
        ));
    }
    let open: Vec<&Summary> = study.records().map(|r| &r.summary).filter(|s| not_finished(s) > 0).collect();
    if !open.is_empty() {
        let jobs: u64 = open.iter().map(|summary| not_finished(summary)).sum();
        let (jobs, runs) = (plural(jobs, "job"), plural(open.len() as u64, "run"));
        lines.push(format!(
            "{jobs} in {runs} did not finish: percentiles are of finished jobs, and curves that stop short of 100 % show the rest."
        ));
    }
    let degraded = study.records().filter(|record| record.summary.is_degraded());
    let names: Vec<String> = degraded.map(|record| name(&record.summary)).collect();
    if !names.is_empty() {
        let (runs, more) = (names.len(), names.len().saturating_sub(NAMED));
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = escape(&names[..runs.min(NAMED)].join("; "));
        let runs = plural(runs as u64, "run");
        lines.push(format!("{runs} did not do what was asked; see their fidelity: {named}{more}."));
    }
    let injected = study.records().filter(|record| !record.summary.injections.is_empty());
    let names: Vec<String> = injected.map(|record| name(&record.summary)).collect();
    if !names.is_empty() {
        let runs = plural(names.len() as u64, "run");
        let named = escape(&names[..names.len().min(NAMED)].join("; "));
        lines.push(format!("Interference was injected into {runs} while going on; see the notes: {named}."));
    }
    if lines.is_empty() {
        return String::new();
    }
    let items = lines.iter().map(|line| format!("<li>{line}</li>")).collect::<String>();
    format!(
        "<div class=\"box warns\" role=\"note\"><strong>Before you read on</strong><ul>{items}</ul></div>"
    )
}

/// A run in words.
fn name(summary: &Summary) -> String {
    let cell = cell_name(&summary.cell);
    let comma = if cell.is_empty() { "" } else { ", " };
    format!("{}{comma}{cell}, seed {}", summary.policy, summary.seed)
}

/// Shown beside a verdict that is within the noise of the replications.
const WITHIN_NOISE: &str =
    " <span class=\"hint\">within noise: other seeds could well give the other verdict; see --repeat</span>";

/// Shown beside a verdict on degraded runs.
const DEGRADED: &str = " <span class=\"hint\">measured on a degraded run, which did not do what was asked, or was injected into; see its fidelity and its notes</span>";

/// The verdict box.
pub(super) fn claims(claims: &[ClaimResult]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let tally = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let (holds, fails, open) = (tally(Verdict::Holds), tally(Verdict::Fails), tally(Verdict::NotTested));
    let mut out = format!(
        "<section id=\"claims\"><h2>Claims</h2><p class=\"hint\">{holds} of {} hold, {fails} fail, {open} not tested</p><div class=\"box\">",
        claims.len()
    );
    for claim in claims {
        let (class, mark, word) = match claim.verdict {
            Verdict::Holds => ("good", "✓", "holds"),
            Verdict::Fails => ("bad", "✗", "fails"),
            Verdict::NotTested => ("warn", "?", "not tested"),
        };
        out.push_str(&format!(
            "<div class=\"claim\"><span class=\"badge {class}\">{mark} {word}</span><div>{}{}{}</div>",
            escape(&claim.says),
            if claim.is_within_noise() { WITHIN_NOISE } else { "" },
            if claim.is_degraded() { DEGRADED } else { "" }
        ));
        if !claim.measured.is_empty() {
            let open = if claim.verdict == Verdict::Fails { " open" } else { "" };
            out.push_str(&format!("<details{open}><summary>the numbers</summary><table><tbody>"));
            for (what, measured) in claim.measured.iter() {
                out.push_str(&format!(
                    "<tr><th scope=\"row\">{}</th><td class=\"left\">{}</td></tr>",
                    escape(what),
                    value(measured)
                ));
            }
            out.push_str("</tbody></table></details>");
        }
        out.push_str("</div>");
    }
    out.push_str("</div></section>");
    out
}

/// Median and tail of every cell, shaded, and curves over keys that were swept with numbers.
pub(super) fn sweep(study: &Study, policies: &[&str]) -> String {
    if study.cells.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<section id=\"sweep\"><h2>The sweep at a glance</h2><div class=\"card\">");
    out.push_str(&heat(study, policies));
    out.push_str("</div><p class=\"hint\">Response times; darker is slower than the fastest policy of the cell, by the factor behind the number.</p>");
    let charts = curves(study, policies);
    if !charts.is_empty() {
        let cards =
            charts.iter().map(|chart| format!("<div class=\"card\">{chart}</div>")).collect::<String>();
        out.push_str(&format!("<div class=\"grid\">{cards}</div>"));
    }
    out.push_str("</section>");
    out
}

/// The metrics in the shaded table.
const SHADED: [(&str, Metric); 2] =
    [("median", |s| s.response_s.p50), ("99th percentile", |s| s.response_s.p99)];

fn heat(study: &Study, policies: &[&str]) -> String {
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
fn curves(study: &Study, policies: &[&str]) -> Vec<String> {
    let mut charts = Vec::new();
    for (key, values) in study.swept() {
        if values.len() < 3 || !values.iter().all(|value| value.is_number()) {
            continue;
        }
        let rest = |group: &CellGroup| {
            let mut rest = group.cell.clone();
            rest.remove(key);
            rest
        };
        let mut others: Vec<Cell> = Vec::new();
        for group in &study.cells {
            if !others.contains(&rest(group)) {
                others.push(rest(group));
            }
        }
        for other in others {
            let cells: Vec<&CellGroup> = study.cells.iter().filter(|group| rest(group) == other).collect();
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
) -> String {
    let series = policies.iter().enumerate().map(|(colour, policy)| {
        let mut series = Series { label: (*policy).to_owned(), colour, dots: true, ..Series::default() };
        let mut points: Vec<(f64, Interval)> = cells
            .iter()
            .filter_map(|group| Some((group.cell.get(key)?.as_f64()?, group.of(policy)?.interval(metric)?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut band = Band::default();
        for (x, interval) in points {
            series.points.push((x, interval.mean));
            if let Some(half) = interval.half_width {
                band.low.push((x, (interval.mean - half).max(interval.mean / 1e3)));
                band.high.push((x, interval.mean + half));
            }
        }
        series.band = band;
        series
    });
    let series: Vec<Series> = series.collect();
    let xs: Vec<f64> = series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
    let (low, high) = xs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    // A margin, so that the outermost dots are not cut.
    let (spread, range) = if low > 0.0 && high / low >= 20.0 {
        (AxisScale::Log, (low / 1.1, high * 1.1))
    } else {
        (AxisScale::Linear, (low - 0.04 * (high - low), high + 0.04 * (high - low)))
    };
    let at =
        other.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", ");
    let title = if at.is_empty() { format!("Response, {name}") } else { format!("Response, {name} ({at})") };
    let x = PlotAxis { label: key.to_owned(), spread, unit: TickUnit::Number, range: Some(range) };
    let y = PlotAxis {
        label: format!("response time, {name}"),
        spread: AxisScale::Log,
        unit: TickUnit::Seconds,
        range: None,
    };
    Plot { title, x, y, series, size: (520.0, 300.0), legend: true }.svg()
}
