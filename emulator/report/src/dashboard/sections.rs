//! The page, and the sections of a snapshot, as HTML.
//!
//! The server draws the charts with the functions of the report; the page only puts the sections in place. The page is
//! one HTML file with its style and script, and loads nothing else. Every name of an experiment is escaped by `maud`.
//!
//! The grid of a sweep has a row for each cell and a column for each policy.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use volary_engine::results::{Cell, Unit, cell_name, point_name, run_name};
use volary_experiment::control::LateSoFar;
use volary_experiment::number::{self, UnitText, count, percent, plural, rough, seconds};
use volary_experiment::sanitize;

use super::snapshot::{
    CellView, Counts, CurveView, Disturbance, HistoryPoint, PageHeader, RunEntry, RunStage, RunView,
    ShardView, Snapshot,
};
use crate::chart::bars;
use crate::chart::cdf::{Curve, distribution};
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::chart::svg::{Picture, Point, legend_of};
use crate::chart::theme;
use crate::chart::timeline::{Tile, tiles};
use crate::figures::over_time::{CACHES, caches};

/// Ids and headings of the sections, in the order of the page.
pub(super) const SECTIONS: [(&str, &str); 9] = [
    ("progress", "Progress"),
    ("failures", "Failed runs"),
    ("grid", "Runs"),
    ("responses", "Response times"),
    ("disturbances", "Injections and faults"),
    ("cores", "Cores"),
    ("load", "Load and messages"),
    CACHES,
    ("shards", "Lateness and hosts"),
];

/// Size of a chart, px.
const CHART: Point = (520.0, 310.0);
/// Size of a smaller chart, px.
const SMALL: Point = (520.0, 220.0);
/// Size of a chart of the load under one policy, px.
const LOAD: Point = (520.0, 140.0);
/// Width of the picture of tiles, px.
const TILES: f64 = 520.0;
/// Maximum number of tiles of all policies together; each shows the same cores.
const MOST_TILES: usize = 1_200;
/// Maximum number of failures, and of injections from outside, that are listed.
const LISTED: usize = 50;

/// The HTML of every section, in the order of [`SECTIONS`]; empty for a section without data.
pub(super) fn render(snapshot: &Snapshot) -> Vec<String> {
    let of_cell = |section: fn(&Snapshot, &CellView) -> Markup| {
        snapshot.cell.as_ref().map_or_else(Markup::default, |cell| section(snapshot, cell))
    };
    let sections = [
        progress(snapshot),
        failures(snapshot),
        section(snapshot),
        of_cell(responses),
        disturbances(snapshot),
        of_cell(cores),
        of_cell(load),
        of_cell(caches_of_runs),
        of_cell(shards),
    ];
    sections.into_iter().map(|html| sanitize::document(html.into_string())).collect()
}

fn progress(snapshot: &Snapshot) -> Markup {
    let stage = |stage: RunStage| snapshot.runs.iter().filter(|run| run.stage == stage).count();
    let (ended, failed) = (stage(RunStage::Finished), stage(RunStage::Failed));
    let (all, class) = (snapshot.runs.len(), if failed > 0 { "bad" } else { "good" });
    html! {
        dl.facts {
            div { dt { "state" } dd class=(if snapshot.running { "" } else { class }) { (snapshot.state) } }
            div { dt { "runs" } dd { (count(ended as u64)) " of " (count(all as u64)) } }
            @if failed > 0 { div { dt { "failed" } dd.bad { (count(failed as u64)) } } }
            @if let Some(real) = snapshot.real_s { div { dt { "real time" } dd { (rough(real)) } } }
            @if let Some(left) = snapshot.real_left_s { div { dt { "left" } dd { "about " (rough(left)) } } }
        }
        progress max="1" value={ (format!("{:.3}", share(&snapshot.runs))) } aria-label="share of all jobs" {}
        @if let Some(why) = &snapshot.outdated { p.bad { "An earlier state is shown: " (why) } }
        @if let Some(cell) = snapshot.cell.as_ref().filter(|cell| !cell.runs.is_empty()) {
            (counts(&snapshot.header, cell))
        }
    }
}

/// Share of all jobs that have finished, if all runs have the same number of jobs.
fn share(runs: &[RunEntry]) -> f64 {
    let done = |run: &RunEntry| match run.stage {
        RunStage::Finished | RunStage::Failed => 1.0,
        RunStage::Waiting => 0.0,
        RunStage::Running => run.finished as f64 / run.jobs.max(1) as f64,
    };
    runs.iter().map(done).sum::<f64>() / runs.len().max(1) as f64
}

/// A column of counts: its heading, and its number.
type CountColumn = (&'static str, fn(&RunView) -> u64);

/// Clocks and counts of the displayed runs, without columns that are zero throughout.
fn counts(header: &PageHeader, cell: &CellView) -> Markup {
    const COLUMNS: [CountColumn; 7] = [
        ("tasks", |run| run.counts.tasks_submitted),
        ("tasks finished", |run| run.counts.tasks_finished),
        ("copies", |run| run.counts.copies_started),
        ("stopped", |run| run.counts.copies_preempted),
        ("lost", |run| run.counts.copies_lost),
        ("messages", |run| run.messages.values().fold(0, |sum, sent| sum.saturating_add(*sent))),
        ("lost or returned", |run| run.dropped),
    ];
    let is_shown = |column: &CountColumn| cell.runs.iter().any(|run| column.1(run) > 0);
    let columns: Vec<CountColumn> = COLUMNS.into_iter().filter(is_shown).collect();
    html! {
        @if !cell.cell.is_empty() { p.hint { (cell_name(&cell.cell)) } }
        div.card { div.scroll tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "policy" } th scope="col" { "emulated time" } th scope="col" { "jobs finished" }
                    @for (name, _) in &columns { th scope="col" { (name) } }
                    th scope="col" { "seed" }
                } }
                tbody { @for run in &cell.runs {
                    @let Counts { jobs, jobs_finished, .. } = run.counts;
                    tr {
                        (policy_head(header.colour(&run.policy), &run.policy, "row"))
                        td { (seconds(run.at_s)) }
                        td { (count(jobs_finished)) " of " (count(jobs)) }
                        @for (_, number) in &columns { td { (count(number(run))) } }
                        td { (run.seed) }
                    }
                } }
            }
        } }
    }
}

/// A heading with the mark of a policy; `scope` is `row` or `col`.
fn policy_head(colour: usize, label: &str, scope: &str) -> Markup {
    html! { th scope=(scope) class=(theme::series(colour)) { i.swatch {} (label) } }
}

/// The name of a run, with its seed if that is known.
fn name(run: &RunEntry) -> String {
    match run.seed {
        Some(seed) => run_name(&run.policy, &run.cell, seed),
        None => point_name(&run.policy, &run.cell),
    }
}

fn failures(snapshot: &Snapshot) -> Markup {
    let failed = || snapshot.runs.iter().filter(|run| run.stage == RunStage::Failed);
    html! {
        @if failed().next().is_some() {
            ul {
                @for run in failed().take(LISTED) {
                    li.bad { (name(run)) ": " (run.why.as_deref().unwrap_or("no reason was kept")) }
                }
            }
            @let more = failed().count().saturating_sub(LISTED);
            @if more > 0 { p.hint { "and " (more) " more" } }
        }
    }
}

fn responses(snapshot: &Snapshot, cell: &CellView) -> Markup {
    let header = &snapshot.header;
    let curve = |view: &CurveView| (label(view), header.colour(&view.policy));
    let names: Vec<(String, usize)> = cell.curves.iter().map(curve).collect();
    let curves = cell.curves.iter().zip(&names).map(|(view, (label, colour))| Curve {
        label: label.clone(),
        colour: *colour,
        runs: view.runs.iter().map(|(sketch, jobs)| (sketch, *jobs)).collect(),
        running: view.running,
    });
    let curves: Vec<Curve<'_>> = curves.collect();
    let chart = distribution("Response time", "response time", TickUnit::Seconds, &curves, CHART);
    html! {
        @if !cell.curves.is_empty() {
            div.pair {
                (card(&[chart]))
                div.card { div.scroll tabindex="0" { (quantiles(&cell.curves, &names)) } }
            }
            @if cell.curves.iter().any(|curve| curve.running) {
                p.hint {
                    "A pale curve with a ring at its end is a run in progress. The curve ends at the share of jobs that have finished; short jobs \
                     finish first, and the curve moves to the right."
                }
            }
        }
    }
}

/// Charts in a box, which scrolls on a narrow screen.
fn card(charts: &[Picture]) -> Markup {
    html! { div.card.scroll tabindex="0" { @for chart in charts { (chart.in_page()) } } }
}

fn label(view: &CurveView) -> String {
    if view.running { format!("{} (running)", view.policy) } else { view.policy.clone() }
}

fn quantiles(curves: &[CurveView], names: &[(String, usize)]) -> Markup {
    const SHOWN: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
    let mean = |view: &CurveView, p: f64| {
        let values: Vec<f64> = view.runs.iter().filter_map(|(sketch, _)| sketch.quantile(p)).collect();
        (values.iter().sum::<f64>() / values.len() as f64, None)
    };
    let columns = SHOWN.map(|(_, p)| {
        let numbers: Vec<_> = curves.iter().map(|view| mean(view, p)).collect();
        Unit::Seconds.column(&numbers).texts().collect::<Vec<_>>()
    });
    html! {
        table {
            thead { tr { th scope="col" { "policy" } th scope="col" { "jobs" }
                @for (name, _) in SHOWN { th scope="col" { (name) } } } }
            tbody {
                @for (at, (view, (label, colour))) in curves.iter().zip(names).enumerate() {
                    @let jobs: u64 = view.runs.iter().map(|(sketch, _)| sketch.count * u64::from(view.each)).sum();
                    tr {
                        (policy_head(*colour, label, "row"))
                        td { (count(jobs)) }
                        @for column in &columns { td { (column[at]) } }
                    }
                }
            }
        }
    }
}

/// The injections from outside into any run, then the faults and injections of the displayed cell, which are the same
/// under all policies. Within each run, and within the cell, the latest comes first.
fn disturbances<'a>(snapshot: &'a Snapshot) -> Markup {
    let latest_first = |all: &'a [Disturbance]| {
        let mut all: Vec<&Disturbance> = all.iter().rev().collect();
        all.sort_by(|a, b| b.at_s.total_cmp(&a.at_s));
        all
    };
    let of_cell = latest_first(snapshot.cell.as_ref().map_or(&[], |cell| &cell.disturbances));
    let named = |run: &'a RunEntry| latest_first(&run.injections).into_iter().map(move |one| (run, one));
    let injected = snapshot.runs.iter().rev().flat_map(named).take(LISTED);
    let all: usize = snapshot.runs.iter().map(|run| run.injections.len()).sum();
    html! {
        @if all > 0 || !of_cell.is_empty() {
            ul.news tabindex="0" {
                @for (run, one) in injected { (disturbance(one, &format!(", {}", name(run)))) }
                @for one in of_cell { (disturbance(one, "")) }
            }
            @let more = all.saturating_sub(LISTED);
            @if more > 0 { p.hint { "and " (count(more as u64)) " more injections from outside" } }
        }
    }
}

fn disturbance(one: &Disturbance, into: &str) -> Markup {
    html! {
        li {
            b { (one.kind) } " at " (seconds(one.at_s))
            @match one.until_s {
                Some(until) => { " until " (seconds(until)) }
                None => { ", without an end so far" }
            }
            (into) ": " (one.says)
        }
    }
}

fn cores(snapshot: &Snapshot, cell: &CellView) -> Markup {
    let runs: Vec<&RunView> = cell.runs.iter().filter(|run| !run.cores.listed.is_empty()).collect();
    let listed: usize = runs.iter().map(|run| run.cores.listed.len()).sum();
    let every = listed.div_ceil(MOST_TILES).max(1);
    let picture = |run: &&RunView| {
        // The last sample was taken before the run ended.
        let busy = |tile: &Tile| Tile { busy: tile.busy && run.running, ..tile.clone() };
        let shown: Vec<Tile> = run.cores.listed.iter().step_by(every).map(busy).collect();
        let total = u64::from(run.cores.total);
        let which = match run.cores.step.max(1) as usize * every {
            1 => plural(total, "core"),
            step => format!("one in {step} of {} cores", count(total)),
        };
        let when = if run.running { " at" } else { ", ended at" };
        let title = format!("{}: {which}{when} {}", run.policy, seconds(run.at_s));
        tiles(&title, &shown, snapshot.header.colour(&run.policy), TILES)
    };
    let (pictures, legend) = Picture::apart(runs.iter().map(picture).collect());
    html! {
        @if !pictures.is_empty() {
            div.pair { @for picture in pictures { (card(&[picture])) } }
            (legend_of(&legend))
        }
    }
}

/// A measure of the load: its name, and its value.
type LoadMeasure = (&'static str, fn(&HistoryPoint) -> u64);

/// The load under each policy, on common scales, and messages by kind.
fn load(snapshot: &Snapshot, cell: &CellView) -> Markup {
    const LOADS: [LoadMeasure; 2] =
        [("running copies", |point| point.copies_running), ("tasks that wait", |point| point.tasks_waiting)];
    let runs = || cell.runs.iter().filter(|run| run.history.len() > 1);
    let end = runs().map(|run| run.at_s).fold(0.0, f64::max);
    let most =
        LOADS.map(|(_, of)| runs().flat_map(|run| &run.history).map(of).max().unwrap_or(0).max(1) as f64);
    let of_run =
        |run| LOADS.iter().zip(most).map(move |(load, most)| over_time(snapshot, run, *load, (end, most)));
    let charts: Vec<Picture> = runs().flat_map(of_run).collect();
    let sent = cell.runs.iter().filter(|run| !run.messages.is_empty()).map(|run| {
        let kinds = run.messages.iter().map(|(kind, sent)| (kind.as_str(), *sent as f64)).collect();
        (run.policy.clone(), snapshot.header.colour(&run.policy), kinds)
    });
    let sent: Vec<_> = sent.collect();
    html! {
        @if !charts.is_empty() {
            div.pair { @for chart in &charts { (card(std::slice::from_ref(chart))) } }
            p.hint {
                "Over emulated time, on the same scales."
                @if runs().any(|run| snapshot.disturbances(run).next().is_some()) {
                    " Shaded: injections and faults, which are listed above."
                }
            }
        }
        @if !sent.is_empty() {
            (card(&[bars::messages("Messages by kind", "", |sent| count(sent as u64), &sent)]))
        }
    }
}

/// A chart of the load of a run until `end`, with the highest value of all runs.
fn over_time(
    snapshot: &Snapshot,
    run: &RunView,
    (title, of): LoadMeasure,
    (end, most): (f64, f64),
) -> Picture {
    let points = run.history.iter().map(|point| (point.at_s, of(point) as f64)).collect();
    let colour = snapshot.header.colour(&run.policy);
    let series = vec![Series { colour, points, ..Series::default() }];
    let axis =
        |unit, most| PlotAxis { range: Some((0.0, most)), ..PlotAxis::new("", AxisScale::Linear, unit) };
    let shades = snapshot
        .disturbances(run)
        .map(|one| (one.at_s, one.until_s.unwrap_or(f64::INFINITY), format!("{}: {}", one.kind, one.says)));
    let title = format!("{}: {title}", run.policy);
    let (x, y) = (axis(TickUnit::Seconds, end), axis(TickUnit::Number, most));
    Plot { title, x, y, series, size: LOAD }.picture_over(&shades.collect::<Vec<_>>())
}

fn caches_of_runs(snapshot: &Snapshot, cell: &CellView) -> Markup {
    let looks = cell.runs.iter().filter(|run| run.looks.len() > 1);
    let looks = looks.map(|run| (snapshot.header.colour(&run.policy), run.policy.as_str(), &run.looks[..]));
    let charts = caches(&looks.collect::<Vec<_>>(), SMALL);
    html! {
        @if !charts.is_empty() {
            div.pair { @for chart in charts { (card(&[chart])) } }
        }
    }
}

fn shards(snapshot: &Snapshot, cell: &CellView) -> Markup {
    let runs = || cell.runs.iter().filter(|run| !run.shards.is_empty());
    html! {
        @if runs().next().is_some() {
            div.card { div.scroll tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "policy, shard or host" }
                        th scope="col" { "messages late: p50 / p99 / max" }
                        th scope="col" { "timers late" }
                        th scope="col" { "CPU of the process" }
                        th scope="col" { "of the machine" }
                        th scope="col" { "steal" }
                        th scope="col" { "memory" }
                    } }
                    tbody { @for run in runs() { @for shard in &run.shards {
                        @let label = format!("{}, {}", run.policy, shard.name);
                        tr { (policy_head(snapshot.header.colour(&run.policy), &label, "row")) (of_shard(shard)) }
                    } } }
                }
            } }
            p.hint {
                "Lateness since the start of the run, in emulated time; CPU over the last second, or over the whole run \
                 once it has ended."
            }
        }
    }
}

fn of_shard(shard: &ShardView) -> Markup {
    let late = |late: Option<LateSoFar>| match late {
        Some(LateSoFar { p50_s, p99_s, max_s }) => {
            format!("{} / {} / {}", seconds(p50_s), seconds(p99_s), seconds(max_s))
        }
        None => "–".to_owned(),
    };
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    let vitals = shard.vitals.as_ref();
    html! {
        td { (late(shard.deliveries)) }
        td { (late(shard.timers)) }
        td { (share(vitals.map(|vitals| vitals.cpu_share))) }
        td { (share(vitals.and_then(|vitals| vitals.machine_share))) }
        td { (share(vitals.and_then(|vitals| vitals.steal_share))) }
        td { (vitals.map_or_else(|| "–".to_owned(), |vitals| number::bytes(vitals.peak_rss_bytes))) }
    }
}

/// The page of an experiment. Its sections are empty and arrive as events.
pub(super) fn html(header: &PageHeader, nonce: &str) -> String {
    let title = if header.title.is_empty() { &header.experiment } else { &header.title };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) " – volary" }
                // Without this link browsers request /favicon.ico.
                link rel="icon" href="data:,";
                style nonce=(nonce) { (PreEscaped(theme::css())) (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { (title) }
                    div.tools {
                        button type="button" id="pause" aria-pressed="false" { "pause" }
                        button type="button" id="theme" aria-label="dark or light" { "◐" }
                    }
                    p.about {
                        (header.experiment) ", runtime " (header.runtime)
                        @if !header.folder.is_empty() { ", results in " (header.folder) }
                    }
                    p id="link" role="status" { "connecting" }
                }
                main {
                    @for (id, heading) in SECTIONS {
                        section id=(id) hidden aria-labelledby={ "of-" (id) } {
                            h2 id={ "of-" (id) } { (heading) }
                            div {}
                        }
                    }
                    noscript { p { "The page needs JavaScript to follow the run." } }
                }
                footer { "volary " (env!("CARGO_PKG_VERSION")) "; the same as JSON: " a href="snapshot.json" { "snapshot.json" } }
                script nonce=(nonce) { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    sanitize::document(page.into_string())
}

/// The content security policy of an answer. A page may load its own style and script, which carry its nonce, and
/// events of this server. Other answers may load nothing.
pub(super) fn policy(nonce: Option<&str>) -> String {
    let page = nonce.map_or_else(String::new, |nonce| {
        format!("script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; ")
    });
    format!("default-src 'none'; {page}base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
}

/// Maximum number of cells shown in the grid, around the displayed cell.
const ROWS: usize = 60;

/// The runs of the plan by cell and policy.
struct Grid<'a> {
    /// Cells in order of first appearance.
    cells: Vec<&'a Cell>,
    /// Runs by the index of their cell and their policy.
    runs: BTreeMap<(usize, &'a str), Vec<&'a RunEntry>>,
    /// Number of runs whose cell and policy are not known.
    unknown: usize,
}

impl<'a> Grid<'a> {
    fn of(runs: &'a [RunEntry]) -> Self {
        let mut grid = Self { cells: Vec::new(), runs: BTreeMap::new(), unknown: 0 };
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for run in runs {
            if run.policy.is_empty() {
                grid.unknown += 1;
                continue;
            }
            // Runs of a cell are mostly consecutive.
            let last = grid.cells.last().filter(|cell| **cell == &run.cell);
            let place = match last {
                Some(_) => grid.cells.len() - 1,
                None => *places.entry(cell_name(&run.cell)).or_insert_with(|| {
                    grid.cells.push(&run.cell);
                    grid.cells.len() - 1
                }),
            };
            grid.runs.entry((place, run.policy.as_str())).or_default().push(run);
        }
        grid
    }

    fn at(&self, place: usize, policy: &'a str) -> &[&'a RunEntry] {
        self.runs.get(&(place, policy)).map_or(&[], Vec::as_slice)
    }
}

/// The grid of all runs whose cell and policy are known.
fn section(snapshot: &Snapshot) -> Markup {
    let grid = Grid::of(&snapshot.runs);
    let looked_at = snapshot.cell.as_ref().map(|view| &view.cell);
    let middle = grid.cells.iter().position(|cell| Some(*cell) == looked_at).unwrap_or(0);
    let first = middle.saturating_sub(ROWS / 2).min(grid.cells.len().saturating_sub(ROWS));
    let shown = first..grid.cells.len().min(first + ROWS);
    let policies = &snapshot.header.policies;
    html! {
        @if !grid.cells.is_empty() {
            div.card { div.scroll tabindex="0" {
                table.grid {
                    thead { tr {
                        td {}
                        @for policy in policies {
                            (policy_head(snapshot.header.colour(policy), policy, "col"))
                        }
                    } }
                    tbody {
                        @for place in shown.clone() {
                            @let cell = grid.cells[place];
                            tr aria-current=[(Some(cell) == looked_at).then_some("true")] {
                                th scope="row" { (row_name(cell)) }
                                @for policy in policies { (tile(grid.at(place, policy))) }
                            }
                        }
                    }
                }
            } }
            @if shown.len() < grid.cells.len() {
                p.hint { (shown.len()) " of " (grid.cells.len()) " cells, around the displayed one" }
            }
        }
        @if grid.unknown > 0 {
            p.hint { "and " (plural(grid.unknown as u64, "run")) " of an unknown cell and policy" }
        }
    }
}

fn row_name(cell: &Cell) -> String {
    if cell.is_empty() { "all runs".to_owned() } else { cell_name(cell) }
}

/// A field of the grid: the replications of a policy in a cell.
fn tile(runs: &[&RunEntry]) -> Markup {
    let stage = |stage: RunStage| runs.iter().filter(move |run| run.stage == stage).count();
    let (ended, failed, running) =
        (stage(RunStage::Finished), stage(RunStage::Failed), stage(RunStage::Running));
    let class = match (failed, running) {
        (0, 0) if runs.is_empty() => "none",
        (0, 0) if ended == runs.len() => "done",
        (0, 0) => "waiting",
        (0, _) => "now",
        _ => "bad",
    };
    html! {
        td class=(class) {
            @if failed > 0 { "✗ " (if runs.len() > 1 { plural(failed as u64, "run") } else { String::new() }) " failed" }
            @else if running > 0 { (goes_on(runs)) }
            @else if runs.is_empty() { "" }
            @else if ended == runs.len() { "✓ " (result(runs)) }
            @else if ended > 0 { (ended) " of " (runs.len()) }
            @else { "waits" }
        }
    }
}

fn goes_on(runs: &[&RunEntry]) -> Markup {
    let (jobs, finished) =
        runs.iter().fold((0, 0), |(jobs, finished), run| (jobs + run.jobs, finished + run.finished));
    let ended = runs.iter().filter(|run| run.stage == RunStage::Finished).count();
    let left = runs.iter().filter_map(|run| run.real_left_s).reduce(f64::max);
    html! {
        @if runs.len() > 1 { (ended) " of " (runs.len()) ", " }
        progress max=(jobs.max(1)) value=(finished) aria-label="finished jobs" {}
        " " (percent(finished as f64 / jobs.max(1) as f64))
        @if let Some(left) = left { small { " " (rough(left)) " left" } }
    }
}

/// Median and 99th percentile of response times, each the mean over replications.
fn result(runs: &[&RunEntry]) -> Markup {
    let both: Vec<(f64, f64)> = runs.iter().filter_map(|run| run.response_s).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
    html! {
        @if both.is_empty() { "no job finished" }
        @else { (seconds(mean(|both| both.0))) small { " p99 " (seconds(mean(|both| both.1))) } }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
