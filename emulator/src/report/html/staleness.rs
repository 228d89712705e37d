//! The staleness of caches: a table, and three charts over time.

use maud::{Markup, html};

use super::table::spreads;
use super::view::View;
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::number;
use crate::storage::cell::{CellRecord, Look};
use crate::storage::study::CellGroup;
use volary_engine::results::Staleness;

/// The section of a cell; empty if no policy has caches.
pub(super) fn section(group: &CellGroup, view: &View<'_>) -> Markup {
    let runs: Vec<&CellRecord> = group.policies.iter().flat_map(|runs| &runs.runs).collect();
    let tables: Vec<_> = runs.iter().filter_map(|run| Some(table(run, &run.summary.staleness?))).collect();
    if tables.is_empty() {
        return Markup::default();
    }
    let age = "Age of the oldest news not taken in";
    let charts = [
        plot(age, "mean age", TickUnit::Seconds, &runs, view, |look| look.age),
        plot("Error of the caches", "mean size of the error", TickUnit::Seconds, &runs, view, |look| {
            look.error
        }),
        plot("News in flight", "news not taken in", TickUnit::Number, &runs, view, |look| look.in_flight),
    ];
    html! {
        details.more open {
            summary { "Staleness of caches" }
            div.grid { @for chart in charts { div.card { (chart) } } }
            @for table in tables { (table) }
            p.hint {
                "A cache keeps the work expected at every node. Its error is what it says less the truth, which is the \
                 work of what was placed and has not ended; regret is the true wait at the node that was chosen less \
                 that of the best. Pictures: the first replication, mean over the schedulers and nodes that are looked \
                 at; " code { "staleness.parquet" } " has each scheduler."
            }
        }
    }
}

fn plot(
    title: &str,
    label: &str,
    unit: TickUnit,
    runs: &[&CellRecord],
    view: &View<'_>,
    value: fn(&Look) -> f64,
) -> Markup {
    let mut series: Vec<Series> = Vec::new();
    for run in runs.iter().filter(|run| !run.staleness.is_empty()) {
        let policy = &run.summary.policy;
        if series.iter().all(|known| known.label != *policy) {
            let points = run.staleness.iter().map(|look| (look.time, value(look))).collect();
            let colour = view.colour(policy);
            series.push(Series { label: policy.clone(), colour, points, ..Series::default() });
        }
    }
    let x = PlotAxis::new("time", AxisScale::Linear, TickUnit::Seconds);
    let y = PlotAxis::new(label, AxisScale::Linear, unit);
    Plot { title: title.to_owned(), x, y, series, size: (520.0, 250.0) }.svg()
}

fn table(run: &CellRecord, staleness: &Staleness) -> Markup {
    let name = format!("{}, seed {}", run.summary.policy, run.summary.seed);
    let row = |what: &str, spread, text: fn(f64) -> String| (what.to_owned(), spread, text);
    let rows = [
        row("age", &staleness.age_s, number::seconds),
        row("error", &staleness.error_s, number::seconds),
        row("error at decisions", &staleness.decision_error_s, number::seconds),
        row("regret", &staleness.regret_s, number::seconds),
        row("in flight", &staleness.in_flight, number::short),
    ];
    spreads(&name, &rows)
}
