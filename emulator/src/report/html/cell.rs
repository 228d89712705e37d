//! The section of a cell: its tables and charts.

use std::collections::BTreeMap;

use maud::{Markup, html};
use volary_engine::cores::CoreSet;
use volary_engine::results::{Deadlines, Summary};

use super::view::{View, anchor, cell_title};
use super::{fidelity, policy, table};
use crate::chart::bars::{Bar, stacked};
use crate::chart::cdf::{Curve, distribution, tail};
use crate::chart::scale::TickUnit;
use crate::chart::{theme, timeline};
use crate::number;
use crate::report::columns::{in_progress_share, messages_per_task, miss_rate, of_deadlines, wasted_share};
use crate::storage::cell::{CellRecord, Sketch};
use crate::storage::study::{CellGroup, Metric, PolicyRuns};

/// Number of message kinds drawn separately; the others are drawn as one part.
const KINDS: usize = 7;

/// The section of a cell.
pub(super) fn section(group: &CellGroup, view: &View<'_>) -> Markup {
    html! {
        details.cell id=(anchor(view.number)) open[view.open] {
            summary { (cell_title(group)) }
            (table::summary(group, view.policies))
            @if let Some(constant) = group.constant() { p.hint { (constant) } }
            div.grid {
                @for chart in distributions(group, view) { div.card { (chart) } }
                div.card { (core_time(group, view)) (messages(group, view)) }
                @if has_deadlines(group) { div.card { (misses(group, view)) (done(group, view)) } }
            }
            (bands(group))
            (table::differences(group, view.policies))
            (table::interference(group, view.policies))
            (timelines(group, view))
            details.more { summary { "Accounts" } (table::books(group, view.policies)) }
            (policy::sections(group, view))
            (fidelity::section(group, view.policies))
            (notes(group))
        }
    }
}

/// Distributions of response times, of all jobs and of each class, their tails, and distributions of slowdown.
fn distributions(group: &CellGroup, view: &View<'_>) -> Vec<Markup> {
    let submitted = |record: &CellRecord| record.summary.jobs.submitted;
    let response = curves(group, view, |record| Some((&record.response, submitted(record))));
    let slowdown = curves(group, view, |record| Some((&record.slowdown, submitted(record))));
    let work = "response time over the work of the longest task, or over `alone`";
    let mut charts = vec![
        distribution("Response time", "response time", TickUnit::Seconds, &response),
        tail("The slowest jobs", "response time", TickUnit::Seconds, &response),
        distribution("Slowdown", work, TickUnit::Number, &slowdown),
    ];
    charts.extend(group.classes().into_iter().map(|label| {
        let of_class = |record| class_of(record, label);
        let title = format!("Response time of class {label}");
        distribution(&title, "response time", TickUnit::Seconds, &curves(group, view, of_class))
    }));
    charts
}

/// The response times of a class of jobs, and how many arrived.
fn class_of<'a>(record: &'a CellRecord, label: &str) -> Option<(&'a Sketch, u64)> {
    Some((record.classes.get(label)?, record.summary.classes.get(label)?.jobs))
}

/// One curve a policy, of the sketches of its replications.
fn curves<'a>(
    group: &'a CellGroup,
    view: &View<'_>,
    sketch: impl Fn(&'a CellRecord) -> Option<(&'a Sketch, u64)>,
) -> Vec<Curve<'a>> {
    let curve = |runs: &'a PolicyRuns| Curve {
        label: &runs.policy,
        colour: view.colour(&runs.policy),
        runs: runs.runs.iter().filter_map(&sketch).collect(),
    };
    group.policies.iter().map(curve).collect()
}

/// The meaning of the pale bands of the distributions.
fn bands(group: &CellGroup) -> Markup {
    let fewest = group.policies.iter().map(|runs| runs.runs.len()).min().unwrap_or(0);
    html! {
        p.hint {
            @if fewest > 1 {
                "Bands: 95 % over replications, quantile by quantile."
            } @else {
                "Bands: 95 % if the jobs of a run were independent. Jobs that meet in queues are not, so these bands \
                 are too narrow; " code { "--repeat 5" } " gives bands over replications, which are independent."
            }
        }
    }
}

/// Mean over the replications of a policy.
fn mean(runs: &PolicyRuns, metric: impl Fn(&Summary) -> f64) -> f64 {
    runs.runs.iter().map(|run| metric(&run.summary)).sum::<f64>() / runs.runs.len().max(1) as f64
}

/// Useful, unfinished, wasted and idle core time.
fn core_time(group: &CellGroup, view: &View<'_>) -> Markup {
    let bar = |runs: &PolicyRuns| {
        let busy = mean(runs, |summary| summary.utilization);
        let of_busy = |share: Metric| Some(busy * mean(runs, share)).filter(|size| size.is_finite());
        let wasted = of_busy(wasted_share).unwrap_or(0.0);
        let open = of_busy(in_progress_share).unwrap_or(0.0);
        let part = |class: &str, size: f64, what: &str| {
            (class.to_owned(), size, format!("{}: {what} {}", runs.policy, number::percent(size)))
        };
        let parts = vec![
            part("fill", busy - wasted - open, "useful"),
            part("progress", open, "in progress"),
            part("waste", wasted, "wasted"),
            part("idle", 1.0 - busy, "idle"),
        ];
        bar(runs, view, parts, number::percent(busy))
    };
    let bars: Vec<Bar> = group.policies.iter().map(bar).collect();
    let title = if group.policies.iter().any(|runs| mean(runs, in_progress_share) > 0.0) {
        "Core time: useful, in progress (pale), wasted (paler), idle (grey)"
    } else {
        "Core time: useful, wasted (pale), idle (grey)"
    };
    stacked(title, TickUnit::Share, &bars, &[])
}

fn bar(runs: &PolicyRuns, view: &View<'_>, parts: Vec<(String, f64, String)>, total: String) -> Bar {
    Bar { label: runs.policy.clone(), class: theme::policy(view.colour(&runs.policy)), parts, total }
}

fn has_deadlines(group: &CellGroup) -> bool {
    group.policies.iter().flat_map(|runs| &runs.runs).any(|run| run.summary.deadlines.is_some())
}

/// Shares of missed deadlines; without the policies none of whose deadlines was due.
fn misses(group: &CellGroup, view: &View<'_>) -> Markup {
    let bar = |runs: &PolicyRuns| {
        let missed = Some(mean(runs, miss_rate)).filter(|missed| missed.is_finite())?;
        let title = format!("{}: {} missed", runs.policy, number::percent(missed));
        Some(bar(runs, view, vec![("fill".to_owned(), missed, title)], number::percent(missed)))
    };
    let bars: Vec<Bar> = group.policies.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return Markup::default();
    }
    stacked("Deadlines missed", TickUnit::Share, &bars, &[])
}

/// Node-hours of jobs that ended, by whether they had a deadline and met it.
fn done(group: &CellGroup, view: &View<'_>) -> Markup {
    type Part = (&'static str, fn(&Deadlines) -> f64);
    const PARTS: [Part; 3] = [
        ("by their deadline", |deadlines| deadlines.goodput_h.slo),
        ("after it", |deadlines| deadlines.goodput_h.late),
        ("best-effort", |deadlines| deadlines.goodput_h.be),
    ];
    let bar = |runs: &PolicyRuns| {
        let of = |number| mean(runs, |summary| of_deadlines(summary, number));
        let part = |(i, (what, number)): (usize, Part)| {
            let hours = of(number);
            (
                format!("fill s{i}"),
                hours,
                format!("{}: {} node-hours {what}", runs.policy, number::short(hours)),
            )
        };
        let total = number::short(of(|deadlines| deadlines.goodput_h.total));
        bar(runs, view, PARTS.into_iter().enumerate().map(part).collect(), total)
    };
    let bars: Vec<Bar> = group.policies.iter().map(bar).collect();
    let legend: Vec<_> = PARTS.iter().enumerate().map(|(i, (what, _))| (format!("s{i}"), *what)).collect();
    stacked("Node-hours of jobs that ended", TickUnit::Number, &bars, &legend)
}

/// Messages per task, by kind.
fn messages(group: &CellGroup, view: &View<'_>) -> Markup {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for runs in &group.policies {
        for kind in runs.runs.iter().flat_map(|run| run.summary.messages.by_kind.keys()) {
            *all.entry(kind).or_default() += per_task(runs, kind);
        }
    }
    let mut kinds: Vec<(&str, f64)> = all.into_iter().collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let kinds: Vec<&str> = kinds.into_iter().map(|kind| kind.0).collect();
    let (shown, rest) = kinds.split_at(kinds.len().min(KINDS));
    let bar = |runs: &PolicyRuns| {
        let part = |(i, (kind, size)): (usize, (&str, f64))| {
            let title = format!("{}: {} {kind} a task", runs.policy, number::short(size));
            (format!("fill s{}", i % theme::COLOURS), size, title)
        };
        let other = rest.iter().map(|kind| per_task(runs, kind)).sum();
        let sizes = shown.iter().map(|kind| (*kind, per_task(runs, kind)));
        // The rest comes last, in the colour behind those of the kinds.
        let sizes = sizes.enumerate().chain([(KINDS, ("other", other))]);
        bar(runs, view, sizes.map(part).collect(), number::short(mean(runs, messages_per_task)))
    };
    let bars: Vec<Bar> = group.policies.iter().map(bar).collect();
    let other = (!rest.is_empty()).then_some("other");
    let legend = shown.iter().copied().chain(other).enumerate();
    let legend: Vec<_> = legend.map(|(i, kind)| (format!("s{i}"), kind)).collect();
    stacked("Messages for each task, by kind", TickUnit::Number, &bars, &legend)
}

fn per_task(runs: &PolicyRuns, kind: &str) -> f64 {
    mean(runs, |summary| {
        let sent = summary.messages.by_kind.get(kind).copied().unwrap_or(0);
        sent as f64 / summary.tasks.submitted.max(1) as f64
    })
}

/// The timelines of the first cores, a chart per policy over the same window, from the first replication.
fn timelines(group: &CellGroup, view: &View<'_>) -> Markup {
    let first =
        || group.policies.iter().filter_map(|runs| runs.runs.first()).filter(|run| !run.timeline.is_empty());
    let windows = first().map(|run| timeline::window(&run.timeline, &run.bursts, view.blocks));
    let window = windows.fold(f64::INFINITY, f64::min);
    let charts = first().filter_map(|run| {
        let title = format!("{}, seed {}", run.summary.policy, run.summary.seed);
        let chart = timeline::timeline(&title, &run.timeline, &run.bursts, &injected(run), window)?;
        Some((view.colour(&run.summary.policy), chart))
    });
    let charts: Vec<_> = charts.collect();
    html! {
        @if !charts.is_empty() {
            details.more open[view.number == 0] {
                summary { "What the cores did, and how they were slowed down" }
                @for (policy, chart) in charts {
                    div class={ "card p" (policy) } style="margin-top:12px" { (chart) }
                }
                p.hint {
                    "The first " (number::seconds(window)) " on the first cores; "
                    code { "timeline.perfetto-trace" } " has more, for ui.perfetto.dev."
                }
            }
        } @else {
            p.hint {
                "No copy started on the first cores within " code { "run.record.timeline" }
                ": a longer one shows what the cores did."
            }
        }
    }
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
fn notes(group: &CellGroup) -> Markup {
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
    html! {
        @if !notes.is_empty() {
            details.more open {
                summary { "Notes" }
                ul { @for (note, by) in &notes { li { (note) " " small { "(" (by.join(", ")) ")" } } } }
            }
        }
    }
}
