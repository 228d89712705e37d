//! The section of a cell: its tables and charts.

use std::collections::BTreeMap;

use super::view::{View, anchor, cell_title};
use super::{fidelity, placements, staleness, table};
use crate::chart::bars::{Bar, stacked};
use crate::chart::cdf::{Curve, distribution, tail};
use crate::chart::scale::TickUnit;
use crate::chart::svg::escape;
use crate::chart::{theme, timeline};
use crate::number;
use crate::record::cell::{CellRecord, Sketch};
use crate::report::table::{messages_per_task, wasted_share};
use crate::storage::study::{CellGroup, PolicyRuns};
use volary_engine::cores::CoreSet;
use volary_engine::results::Summary;

/// Number of message kinds drawn separately; the others are drawn as one part.
const KINDS: usize = 7;

/// The section of a cell.
pub(super) fn section(group: &CellGroup, view: &View<'_>) -> String {
    let open = if view.open { " open" } else { "" };
    let (id, title) = (anchor(view.number), escape(&cell_title(group)));
    let mut out = format!("<details class=\"cell\" id=\"{id}\"{open}><summary>{title}</summary>");
    out.push_str(&table::summary(group, view.policies));
    let mut charts = distributions(group, view);
    charts.push(core_time(group, view) + &messages(group, view));
    out.push_str(&cards(&charts));
    out.push_str(&bands(group));
    out.push_str(&table::differences(group, view.policies));
    out.push_str(&timelines(group, view));
    out.push_str("<details class=\"more\"><summary>Books</summary>");
    out.push_str(&table::books(group, view.policies));
    out.push_str("</details>");
    out.push_str(&placements::section(group));
    out.push_str(&staleness::section(group, view));
    out.push_str(&fidelity::section(group, view.policies));
    out.push_str(&notes(group));
    out.push_str("</details>");
    out
}

fn cards(charts: &[String]) -> String {
    let cards = charts.iter().map(|chart| format!("<div class=\"card\">{chart}</div>")).collect::<String>();
    format!("<div class=\"grid\">{cards}</div>")
}

/// Distributions of response times, their tails, and distributions of slowdown.
fn distributions(group: &CellGroup, view: &View<'_>) -> Vec<String> {
    const SIZE: (f64, f64) = (520.0, 310.0);
    let curves = |sketch: fn(&CellRecord) -> &Sketch| -> Vec<Curve<'_>> {
        group.policies.iter().map(|runs| curve(runs, view, sketch)).collect()
    };
    let response = curves(|record| &record.response);
    let slowdown = curves(|record| &record.slowdown);
    vec![
        distribution("Response time", "response time", TickUnit::Seconds, &response, SIZE),
        tail("The slowest jobs", "response time", TickUnit::Seconds, &response, SIZE),
        distribution(
            "Slowdown",
            "response time over the work of the longest task",
            TickUnit::Number,
            &slowdown,
            SIZE,
        ),
    ]
}

/// The meaning of the pale bands of the distributions.
fn bands(group: &CellGroup) -> String {
    let fewest = group.policies.iter().map(|runs| runs.runs.len()).min().unwrap_or(0);
    let text = if fewest > 1 {
        "Bands: 95 % over replications, quantile by quantile."
    } else {
        "Bands: 95 % if the jobs of a run were independent. Jobs that meet in queues are not, so these bands are \
         too narrow; <code>--repeat 5</code> gives bands over replications, which are independent."
    };
    format!("<p class=\"hint\">{text}</p>")
}

fn curve<'a>(runs: &'a PolicyRuns, view: &View<'_>, sketch: fn(&CellRecord) -> &Sketch) -> Curve<'a> {
    let sketches = runs.runs.iter().map(|run| (sketch(run), run.summary.jobs.submitted)).collect();
    Curve { label: &runs.policy, colour: view.colour(&runs.policy), runs: sketches }
}

/// Mean over the replications of a policy.
fn mean(runs: &PolicyRuns, metric: impl Fn(&Summary) -> f64) -> f64 {
    runs.runs.iter().map(|run| metric(&run.summary)).sum::<f64>() / runs.runs.len().max(1) as f64
}

/// Useful, wasted and idle core time.
fn core_time(group: &CellGroup, view: &View<'_>) -> String {
    let bar = |runs: &PolicyRuns| {
        let busy = mean(runs, |summary| summary.utilization);
        let wasted = mean(runs, wasted_share);
        let wasted = if wasted.is_finite() { busy * wasted } else { 0.0 };
        let part = |class: &str, size: f64, what: &str| {
            (class.to_owned(), size, format!("{}: {what} {}", runs.policy, number::percent(size)))
        };
        let parts = vec![
            part("fill", busy - wasted, "useful"),
            part("waste", wasted, "wasted"),
            part("idle", 1.0 - busy, "idle"),
        ];
        bar(runs, view, parts, number::percent(busy))
    };
    let bars: Vec<Bar> = group.policies.iter().map(bar).collect();
    stacked("Core time: useful, wasted (pale), idle (grey)", TickUnit::Share, &bars, Some(1.0), &[], 520.0)
}

fn bar(runs: &PolicyRuns, view: &View<'_>, parts: Vec<(String, f64, String)>, total: String) -> Bar {
    let colour = view.colour(&runs.policy);
    let class = format!("p{colour} {}", theme::series(colour));
    Bar { label: runs.policy.clone(), class, parts, total }
}

/// Messages per task, by kind.
fn messages(group: &CellGroup, view: &View<'_>) -> String {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for runs in &group.policies {
        for kind in runs.runs.iter().flat_map(|run| run.summary.messages.by_kind.keys()) {
            *all.entry(kind).or_default() += per_task(runs, kind);
        }
    }
    let mut kinds: Vec<(&str, f64)> = all.into_iter().collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let shown: Vec<&str> = kinds.iter().take(KINDS).map(|kind| kind.0).collect();
    let rest: Vec<&str> = kinds.iter().skip(KINDS).map(|kind| kind.0).collect();
    let bars: Vec<Bar> = group
        .policies
        .iter()
        .map(|runs| {
            let part = |i: usize, size: f64, kind: &str| {
                let title = format!("{}: {} {kind} a task", runs.policy, number::short(size));
                (format!("fill s{}", i % theme::COLOURS), size, title)
            };
            let mut parts: Vec<_> =
                shown.iter().enumerate().map(|(i, kind)| part(i, per_task(runs, kind), kind)).collect();
            parts.push(part(KINDS, rest.iter().map(|kind| per_task(runs, kind)).sum(), "other"));
            bar(runs, view, parts, number::short(mean(runs, messages_per_task)))
        })
        .collect();
    let mut legend: Vec<(String, String)> =
        shown.iter().enumerate().map(|(i, kind)| (format!("s{i}"), (*kind).to_owned())).collect();
    if !rest.is_empty() {
        legend.push((format!("s{KINDS}"), "other".to_owned()));
    }
    stacked("Messages for each task, by kind", TickUnit::Number, &bars, None, &legend, 520.0)
}

fn per_task(runs: &PolicyRuns, kind: &str) -> f64 {
    mean(runs, |summary| {
        let sent = summary.messages.by_kind.get(kind).copied().unwrap_or(0);
        sent as f64 / summary.tasks.submitted.max(1) as f64
    })
}

/// The timelines of the first cores, a chart per policy over the same window, from the first replication.
fn timelines(group: &CellGroup, view: &View<'_>) -> String {
    let first =
        || group.policies.iter().filter_map(|runs| runs.runs.first()).filter(|run| !run.timeline.is_empty());
    let windows = first().map(|run| timeline::window(&run.timeline, &run.bursts, view.blocks));
    let window = windows.fold(f64::INFINITY, f64::min);
    let charts = first().filter_map(|run| {
        let summary = &run.summary;
        let title = format!("{}, seed {}", summary.policy, summary.seed);
        let chart = timeline::timeline(&title, &run.timeline, &run.bursts, &injected(run), window, 1_060.0)?;
        Some(format!(
            "<div class=\"card p{}\" style=\"margin-top:12px\">{chart}</div>",
            view.colour(&summary.policy)
        ))
    });
    let charts = charts.collect::<String>();
    if charts.is_empty() {
        return String::new();
    }
    format!(
        "<details class=\"more\"{}><summary>What the cores did, and how they were slowed down</summary>{charts}<p class=\"hint\">The first {} on the first cores; <code>timeline.perfetto-trace</code> has more, for ui.perfetto.dev.</p></details>",
        if view.number == 0 { " open" } else { "" },
        number::seconds(window)
    )
}

/// The times at which interference was injected into cores of a timeline.
fn injected(run: &CellRecord) -> Vec<(u32, f64, f64)> {
    let mut drawn: Vec<u32> = run.timeline.iter().map(|slice| slice.0.core).collect();
    drawn.dedup();
    let applied = run.summary.injections.iter().flat_map(|injected| &injected.hosts);
    let bands = applied.flat_map(|applied| {
        let cores: CoreSet = applied.cores.parse().unwrap_or_default();
        let hit = drawn.iter().filter(move |core| cores.contains(**core));
        hit.map(|core| (*core, applied.from_s, applied.until_s))
    });
    bands.collect()
}

/// Notes of all runs, without duplicates, with the policies they belong to.
fn notes(group: &CellGroup) -> String {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in group.policies.iter().flat_map(|runs| &runs.runs) {
        let policy = run.summary.policy.as_str();
        for note in &run.notes {
            match notes.iter_mut().find(|(text, _)| text == note) {
                Some((_, by)) if by.contains(&policy) => {}
                Some((_, by)) => by.push(policy),
                None => notes.push((note, vec![policy])),
            }
        }
    }
    if notes.is_empty() {
        return String::new();
    }
    let items = notes
        .iter()
        .map(|(note, by)| format!("<li>{} <small>({})</small></li>", escape(note), escape(&by.join(", "))));
    format!(
        "<details class=\"more\" open><summary>Notes</summary><ul>{}</ul></details>",
        items.collect::<String>()
    )
}
