//! The grid of a sweep: a row for each cell, a column for each policy.

use std::collections::BTreeMap;

use maud::{Markup, html};
use volary_engine::results::{Cell, cell_name};
use volary_experiment::number::{percent, plural, rough, seconds};

use super::snapshot::{RunEntry, RunStage, Snapshot};
use crate::chart::theme;

/// Cells that are shown at most: those around the one that is looked at.
const ROWS: usize = 60;

/// The runs of the plan by cell and policy.
struct Grid<'a> {
    /// Cells in the order in which they appear.
    cells: Vec<&'a Cell>,
    /// Runs by the place of their cell and their policy.
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
            // Runs of a cell mostly follow each other.
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
pub(super) fn section(snapshot: &Snapshot) -> Markup {
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
                            th scope="col" class=(theme::series(snapshot.header.colour(policy))) {
                                i.swatch {} (policy)
                            }
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
                p.hint { (shown.len()) " of " (grid.cells.len()) " cells, around the one that is looked at" }
            }
        }
        @if grid.unknown > 0 {
            p.hint { "and " (plural(grid.unknown as u64, "run")) " of which nothing is stored yet" }
        }
    }
}

fn row_name(cell: &Cell) -> String {
    if cell.is_empty() { "all runs".to_owned() } else { cell_name(cell) }
}

/// The replications of a policy in a cell.
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

/// Median and 99th percentile, mean over the replications.
fn result(runs: &[&RunEntry]) -> Markup {
    let both: Vec<(f64, f64)> = runs.iter().filter_map(|run| run.response_s).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
    html! {
        @if both.is_empty() { "no job finished" }
        @else { (seconds(mean(|both| both.0))) small { " p99 " (seconds(mean(|both| both.1))) } }
    }
}
