//! The body of a cell's section: its tables and charts, including those about shared nodes.

use std::collections::BTreeSet;

use maud::{Markup, html};
use volary_engine::results::{Deadlines, Reading, SharedNodes, Summary, Unit};
use volary_experiment::number;
use volary_experiment::storage::run_record::{RunRecord, Sketch};
use volary_experiment::storage::study::{CellGroup, PolicyRuns};

use super::policy;
use super::table::{self, PolicyColumn, PolicyRow, number_tables};
use super::view::{View, grid, prose};
use crate::chart::bars::{self, Bar, BarPart, stacked};
use crate::chart::cdf::{coverage, distribution, tail};
use crate::chart::scale::TickUnit;
use crate::chart::svg::{Picture, Point, legend_of};
use crate::chart::theme::Hue;
use crate::figures::distribution::{curves, deliveries, responses};
use crate::figures::job::{JobChoice, courses};
use crate::figures::over_time;

/// The section of a cell below its title.
pub(super) fn body(group: &CellGroup, view: &View<'_>) -> Markup {
    html! {
        @if let Some(offered) = group.offered() { p.hint { (offered) } }
        (table::summary(group, view))
        @for said in group.measured().chain(group.unsettled()) { p.hint { (said) } }
        @if let Some(constant) = group.constant() { p.hint { (constant) } }
        @if let Some(central) = group.central() { p.hint { (central) } }
        @if let Some(binding) = view.binding { p.hint { (binding) } }
        @if has_deliveries(group) {
            @let coverage = coverage("Coverage", &curves(group, view.policies, deliveries), CHART);
            @let ages = over_time::cell_caches(group, "", view.policies, CHART);
            (grid([coverage].into_iter().chain(ages).collect(), &Markup::default()))
        }
        @if view.has_jobs {
            (grid(distributions(group, view), &html! {
                div.card { (core_time(group, view).in_page()) (messages(group, view).in_page()) }
                @if has_deadlines(group) { div.card { (misses(group, view)) (done(group, view).in_page()) } }
            }))
            (bands(group))
            (table::differences(group, view.policies))
        }
        (table::interference(group, view.policies))
        @if view.has_jobs { (timelines(group, view)) @if view.number == 0 { (slowest(group)) } }
        details.more { summary { "Accounts" } (table::accounts(group, view)) }
        (section(group, view))
        (policy::sections(group, view))
        (table::fidelity(group, view.policies))
        (notes(group))
    }
}

/// Whether updates of a run without jobs were delivered.
fn has_deliveries(group: &CellGroup) -> bool {
    group.policies.iter().flat_map(|runs| &runs.runs).any(|run| deliveries(run).is_some())
}

/// Size of the charts of a cell in px.
const CHART: Point = (520.0, 310.0);

/// Charts of response times (of all jobs and of each class), of their tails, and of slowdowns.
fn distributions(group: &CellGroup, view: &View<'_>) -> Vec<Picture> {
    let submitted = |record: &RunRecord| record.summary.jobs.submitted;
    let response = curves(group, view.policies, responses);
    let slowdown = curves(group, view.policies, |record| Some((&record.slowdown, submitted(record))));
    let work = "response time over longest task, or over the stated time";
    let mut charts = vec![
        distribution("Response time", "response time", TickUnit::Seconds, &response, CHART),
        tail("The slowest jobs", "response time", TickUnit::Seconds, &response, CHART),
        distribution("Slowdown", work, TickUnit::Number, &slowdown, CHART),
    ];
    charts.extend(group.classes().into_iter().map(|label| {
        let of_class = curves(group, view.policies, |record| class_of(record, label));
        let title = format!("Response time of class {label}");
        distribution(&title, "response time", TickUnit::Seconds, &of_class, CHART)
    }));
    charts
}

/// The response times of a class of jobs, and the number of its submitted jobs.
fn class_of<'a>(record: &'a RunRecord, label: &str) -> Option<(&'a Sketch, u64)> {
    Some((record.classes.get(label)?, record.summary.classes.get(label)?.jobs))
}

/// The explanation of the pale bands of the distributions.
fn bands(group: &CellGroup) -> Markup {
    let (single, repeated): (Vec<_>, Vec<_>) = group.policies.iter().partition(|runs| runs.runs.len() < 2);
    let of_single = if repeated.is_empty() { "Bands: " } else { " Of policies with one replication: " };
    html! {
        p.hint {
            @if !repeated.is_empty() { "Bands: 95 % over replications, quantile by quantile." }
            @if !single.is_empty() {
                (of_single) "95 % if the jobs of a run were independent. Jobs that meet in queues are not, so these \
                 bands are too narrow; " code { "--repeat 5" } " gives bands over replications, which are independent."
            }
        }
    }
}

/// A chart of useful, unfinished, wasted and idle core time.
fn core_time(group: &CellGroup, view: &View<'_>) -> Picture {
    let bar = |runs: &PolicyRuns| {
        let busy = runs.mean(|summary| summary.utilization);
        // Without busy time the share is NaN, and its part is zero.
        let part_of = |summary: &Summary, share: Reading| {
            Some(summary.utilization * share(summary)).filter(|size| size.is_finite()).unwrap_or(0.0)
        };
        let wasted = runs.mean(|summary| part_of(summary, Summary::wasted_share));
        let open = runs.mean(|summary| part_of(summary, Summary::in_progress_share));
        let part = |class, size: f64, what: &str| {
            let title = format!("{}: {what} {}", runs.policy, number::percent(size));
            BarPart { class, hue: None, size, title }
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
    let mut runs = group.policies.iter().flat_map(|runs| &runs.runs);
    let time = if runs.any(|run| run.summary.shared.is_some()) { "Time of pods" } else { "Core time" };
    let title = if group.policies.iter().any(|runs| runs.mean(Summary::in_progress_share) > 0.0) {
        format!("{time}: useful, in progress (pale), wasted (paler), idle (grey)")
    } else {
        format!("{time}: useful, wasted (pale), idle (grey)")
    };
    stacked(&title, TickUnit::Share, &bars, &[])
}

fn bar(runs: &PolicyRuns, view: &View<'_>, parts: Vec<BarPart>, total: String) -> Bar {
    Bar { label: runs.label(), hue: Hue::Policy(view.colour(&runs.policy)), parts, total }
}

/// A part of a bar in a colour of its own.
const fn coloured(hue: Hue, size: f64, title: String) -> BarPart {
    BarPart { class: "fill", hue: Some(hue), size, title }
}

fn has_deadlines(group: &CellGroup) -> bool {
    group.policies.iter().flat_map(|runs| &runs.runs).any(|run| run.summary.deadlines.is_some())
}

/// A chart of the shares of missed deadlines. Policies under which no deadline was due have no bar.
fn misses(group: &CellGroup, view: &View<'_>) -> Markup {
    let bar = |runs: &PolicyRuns| {
        let missed = Some(runs.mean(Summary::miss_rate)).filter(|missed| missed.is_finite())?;
        let title = format!("{}: {} missed", runs.policy, number::percent(missed));
        let part = BarPart { class: "fill", hue: None, size: missed, title };
        Some(bar(runs, view, vec![part], number::percent(missed)))
    };
    let bars: Vec<Bar> = group.policies.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return Markup::default();
    }
    stacked("Deadlines missed", TickUnit::Share, &bars, &[]).in_page()
}

/// A chart of the node-hours of ended jobs: ended by their deadline, ended after it, and best-effort.
fn done(group: &CellGroup, view: &View<'_>) -> Picture {
    type Part = (&'static str, fn(&Deadlines) -> f64);
    const PARTS: [Part; 3] = [
        ("by their deadline", |deadlines| deadlines.goodput_h.slo),
        ("after it", |deadlines| deadlines.goodput_h.late),
        ("best-effort", |deadlines| deadlines.goodput_h.be),
    ];
    let bar = |runs: &PolicyRuns| {
        let of = |number: fn(&Deadlines) -> f64| {
            runs.mean(|summary| summary.deadlines.as_ref().map_or(f64::NAN, number))
        };
        let part = |(i, (what, number)): (usize, Part)| {
            let hours = of(number);
            let title = format!("{}: {} node-hours {what}", runs.policy, number::short(hours));
            coloured(Hue::Kind(i), hours, title)
        };
        let total = number::short(of(|deadlines| deadlines.goodput_h.total));
        bar(runs, view, PARTS.into_iter().enumerate().map(part).collect(), total)
    };
    let bars: Vec<Bar> = group.policies.iter().map(bar).collect();
    let legend: Vec<_> = PARTS.iter().enumerate().map(|(i, (what, _))| (Hue::Kind(i), *what)).collect();
    stacked("Node-hours of jobs that ended", TickUnit::Number, &bars, &legend)
}

/// A chart of messages per task, by kind.
fn messages(group: &CellGroup, view: &View<'_>) -> Picture {
    let bars = group.policies.iter().map(|runs| {
        let kinds = runs.runs.iter().flat_map(|run| run.summary.messages.by_kind.keys());
        let kinds: BTreeSet<&String> = kinds.collect();
        let sent = kinds.into_iter().map(|kind| (kind.as_str(), per_task(runs, kind))).collect();
        (runs.label(), view.colour(&runs.policy), sent)
    });
    let bars: Vec<_> = bars.collect();
    bars::messages("Messages for each task, by kind", " a task", number::short, &bars)
}

fn per_task(runs: &PolicyRuns, kind: &str) -> f64 {
    runs.mean(|summary| {
        let sent = summary.messages.by_kind.get(kind).copied().unwrap_or(0);
        sent as f64 / summary.tasks.submitted.max(1) as f64
    })
}

/// The timelines of the first cores, a chart per policy. On the page, only the chart of the first policy of the first
/// cell is open.
fn timelines(group: &CellGroup, view: &View<'_>) -> Markup {
    let (charts, window) = over_time::timelines(group, view.policies, view.blocks, None, 1_060.0);
    let (policies, charts): (Vec<usize>, Vec<Picture>) = charts.into_iter().unzip();
    let (charts, legend) = Picture::apart(charts);
    html! {
        @if !charts.is_empty() {
            h3 { "Activity and slowdown of cores" }
            p.hint {
                "The first " (number::seconds(window)) " on the first cores; interference is the same under one seed. \
                 A block is a copy of a task; its colour shows how it ended. Shading behind it is interference, darker \
                 for a larger slowdown. Copies that began after " code { "run.record.timeline" } " are not recorded; → \
                 marks copies that continue beyond the edge. " code { "timeline.perfetto-trace" } " has more, for ui.perfetto.dev."
            }
            (legend_of(&legend))
            @for (at, (policy, chart)) in policies.iter().zip(&charts).enumerate() {
                details class={ "more p" (policy) } open[view.number == 0 && at == 0] {
                    summary { (view.policies[*policy]) }
                    div.card.scroll tabindex="0" role="group" aria-label={ "Timeline of " (view.policies[*policy]) } {
                        (chart.in_page())
                    }
                }
            }
        } @else {
            p.hint {
                "No copy started on the first cores within " code { "run.record.timeline" }
                ": a larger value records more."
            }
        }
    }
}

/// Number of jobs above which the report draws no single job, since that requires reading all rows of the run.
const MOST_JOBS: u64 = 100_000;

/// The slowest job of the first policy under every policy; empty for many jobs.
fn slowest(group: &CellGroup) -> Markup {
    let jobs = group.policies.iter().flat_map(|policy| &policy.runs).map(|run| run.summary.jobs.submitted);
    if jobs.max().unwrap_or(0) > MOST_JOBS {
        return html! { p.hint { code { "volary plot --what job" } " draws the slowest job under each policy." } };
    }
    let charts = match courses(group, JobChoice::Slowest, 1_060.0) {
        Ok(charts) => charts,
        Err(why) => return html! { p.hint { "No picture of the slowest job: " (prose(&why)) "." } },
    };
    let (charts, legend) = Picture::apart(charts);
    html! {
        @if !charts.is_empty() {
            details.more {
                summary { "The slowest job, policy by policy" }
                p.hint {
                    "A row is a task on a core, from the arrival of the job on. " code { "volary plot --what job" }
                    " draws any recorded job."
                }
                (legend_of(&legend))
                @for chart in &charts {
                    div.card.scroll tabindex="0" role="group" aria-label="The slowest job" { (chart.in_page()) }
                }
            }
        }
    }
}

/// Notes of all runs without duplicates, each with the policies to which it belongs.
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
                ul { @for (note, by) in &notes { li { (prose(note)) " " small { "(" (by.join(", ")) ")" } } } }
            }
        }
    }
}

/// A measure of shared nodes: heading, definition, its number in the results, and its unit.
type SharedMeasure = (&'static str, &'static str, fn(&SharedNodes) -> f64, Unit);

const MEASURES: [SharedMeasure; 6] = [
    (
        "CPU used",
        "CPU-time of all copies over the CPU of all nodes times the makespan",
        |s| s.cpu,
        Unit::Share,
    ),
    (
        "throttled",
        "share of the time of copies in which they were given less CPU than they would have used",
        |s| s.throttled,
        Unit::Share,
    ),
    (
        "throttles",
        "how often a copy was given less CPU than it would have used, per node and hour",
        |s| 3600.0 * s.throttle_rate,
        Unit::Plain,
    ),
    ("evictions", "copies that a node stopped because memory was short", |s| s.evictions as f64, Unit::Plain),
    ("CPU-time", "core-hours that all copies used", |s| s.used_core_h, Unit::Plain),
    ("lost", "core-hours used by copies that did not run to their end", |s| s.wasted_core_h, Unit::Plain),
];

/// The use of shared nodes by copies, side by side for all policies; empty if nodes are not shared.
fn section(group: &CellGroup, view: &View<'_>) -> Markup {
    let on_shared = |runs: &&PolicyRuns| runs.runs.iter().any(|run| run.summary.shared.is_some());
    let policies: Vec<&PolicyRuns> = group.policies.iter().filter(on_shared).collect();
    let rows: Vec<PolicyRow<'_>> = policies.iter().map(|runs| (runs.policy.as_str(), None)).collect();
    let column = |&(heading, meaning, number, unit): &SharedMeasure| {
        let of = |summary: &Summary| summary.shared.as_ref().map_or(f64::NAN, number);
        PolicyColumn::new(heading, meaning, unit, policies.iter().map(|runs| (runs.mean(of), None)))
    };
    let columns: Vec<PolicyColumn<'_>> = MEASURES.iter().map(column).collect();
    html! {
        @if !policies.is_empty() {
            details.more open {
                summary { "Shared nodes" }
                p.hint {
                    "A copy is throttled while the other copies on its node leave it less CPU than it would use, and may be \
                     evicted, and lose its work, when the memory use of its node passes the threshold. Throttles \
                     are counted per node and hour; used and lost CPU-time are in core-hours of a healthy \
                     reference core. Means over replications."
                }
                (number_tables("Shared nodes", &rows, &columns, view.policies))
            }
        }
    }
}
