//! The sections of a cell about metrics that only some policies have: placement times, plans and the staleness of
//! caches.

use maud::{Markup, html};
use volary_engine::results::{Placements, Planning, PredictionErrors, Spread, Stage, Staleness};

use super::table::spreads;
use super::view::View;
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::number;
use crate::storage::cell::{CellRecord, Look};
use crate::storage::study::CellGroup;

/// The sections of a cell; empty if no policy has such a metric.
pub(super) fn sections(group: &CellGroup, view: &View<'_>) -> Markup {
    html! { (placements(group)) (planning(group)) (staleness(group, view)) }
}

/// Plans and estimates; empty if no policy decides in cycles.
fn planning(group: &CellGroup) -> Markup {
    let runs: Vec<&CellRecord> = group.policies.iter().flat_map(|runs| &runs.runs).collect();
    let plans: Vec<_> = runs.iter().filter_map(|run| Some((run, run.summary.planning?))).collect();
    let errors: Vec<_> = runs.iter().filter_map(|run| Some((run, run.summary.prediction?))).collect();
    html! {
        @if !plans.is_empty() {
            details.more {
                summary { "Plans" }
                table {
                    tr {
                        th { "run" } th { "cycles" } th { "solved" } th { "options" } th { "columns" } th { "pivots" }
                        th { "gap" } th { "gap p99" } th { "gap max" } th { "launched" } th { "revoked" }
                        th { "preempted" } th { "emulated time" } th { "CPU time" }
                    }
                    @for (run, plan) in plans { (plan_row(run, &plan)) }
                }
                p.hint {
                    "Cycles up to the last decision, and problems solved in them; options, columns of the linear \
                     program and pivots of a problem, on average; distances from a proven bound, relative to it; jobs \
                     launched, launches that were no longer possible when the decision was made, jobs preempted; \
                     emulated time of all decisions, and the CPU time that they took here."
                }
                @if !errors.is_empty() { (error_table(&errors)) }
            }
        }
    }
}

fn plan_row(run: &CellRecord, plan: &Planning) -> Markup {
    html! {
        tr {
            td { (run.summary.policy) ", seed " (run.summary.seed) }
            td { (number::count(plan.cycles)) }
            td { (number::count(plan.solved)) }
            @for mean in [plan.options, plan.columns, plan.pivots] { td { (number::short(mean)) } }
            @for gap in [plan.gap.mean, plan.gap.p99, plan.gap.max] { td { (number::percent(gap)) } }
            td { (number::count(plan.launched)) }
            td { (number::count(plan.revoked)) }
            td { (number::count(plan.preempted)) }
            td { (number::seconds(plan.emulated_s)) }
            td { (run.summary.engine.planning_cpu_s.map_or_else(|| "–".into(), number::seconds)) }
        }
    }
}

fn error_table(errors: &[(&&CellRecord, PredictionErrors)]) -> Markup {
    html! {
        table {
            tr {
                th { "run" } th { "estimates" } th { "within 2×" } th { "below half" } th { "above twice" }
                th { "mean error" }
            }
            @for (run, errors) in errors {
                tr {
                    td { (run.summary.policy) ", seed " (run.summary.seed) }
                    td { (number::count(errors.jobs)) }
                    td { (number::percent(errors.within_2x)) }
                    td { (number::percent(errors.under)) }
                    td { (number::percent(errors.over)) }
                    td { (number::percent(errors.error)) }
                }
            }
        }
        p.hint {
            "Run times expected when jobs were submitted, against those that were learnt; the mean error is relative \
             to the mean run time."
        }
    }
}

/// Times at which tasks were bound; empty if no policy records placements.
fn placements(group: &CellGroup) -> Markup {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs);
    let tables: Vec<_> =
        runs.filter_map(|run| Some(placement_table(run, &run.summary.placements?))).collect();
    html! {
        @if !tables.is_empty() {
            details.more {
                summary { "When tasks got their nodes" }
                @for table in tables { (table) }
                p.hint {
                    "Since the job's arrival, over jobs all of whose tasks ended: until its tasks were bound to a node \
                     for the last time, until they began to run, and until they ended."
                }
            }
        }
    }
}

fn placement_table(run: &CellRecord, placements: &Placements) -> Markup {
    let stages = [
        ("scheduled", &placements.scheduled_s),
        ("began", &placements.started_s),
        ("ended", &placements.ended_s),
    ];
    type Part = (&'static str, fn(&Stage) -> &Spread);
    const PARTS: [Part; 3] = [
        ("average task", |stage| &stage.average),
        ("last task", |stage| &stage.tail),
        ("deviation within the job", |stage| &stage.deviation),
    ];
    let rows: Vec<_> = PARTS
        .iter()
        .flat_map(|(what, part)| {
            stages.map(|(when, stage)| {
                (format!("{what} {when}"), part(stage), number::seconds as fn(f64) -> String)
            })
        })
        .collect();
    let Placements { count, peak_per_s, last_s, .. } = *placements;
    html! {
        (spreads(&format!("{}, seed {}", run.summary.policy, run.summary.seed), &rows))
        p {
            (number::plural(count, "placement")) ", at most " (number::count(peak_per_s)) " in a second; the last after "
            (number::seconds(last_s)) "."
        }
    }
}

/// A table and three charts over time; empty if no policy has caches.
fn staleness(group: &CellGroup, view: &View<'_>) -> Markup {
    let runs: Vec<&CellRecord> = group.policies.iter().flat_map(|runs| &runs.runs).collect();
    let tables: Vec<_> =
        runs.iter().filter_map(|run| Some(staleness_table(run, &run.summary.staleness?))).collect();
    if tables.is_empty() {
        return Markup::default();
    }
    let charts = [
        plot("Age of synchronisation", "mean age", TickUnit::Seconds, &runs, view, |look| look.age),
        plot("Error of the caches", "mean size of the error", TickUnit::Seconds, &runs, view, |look| {
            look.error
        }),
        plot("Updates in flight", "updates that a scheduler lacks", TickUnit::Number, &runs, view, |look| {
            look.in_flight
        }),
    ];
    html! {
        details.more open {
            summary { "Staleness of caches" }
            div.grid { @for chart in charts.into_iter().flatten() { div.card { (chart) } } }
            @for table in tables { (table) }
            p.hint {
                "A cache keeps the work expected at every node. Its age of synchronisation is the age of the oldest \
                 update that it lacks, its version age the number of them. Its error is what it says less the truth, \
                 which is the work of what was placed and has not ended; regret is what a task will wait at the node \
                 that was chosen less the least it could have waited. Pictures: the first replication, mean over the \
                 receivers and sources that are looked at; " code { "staleness.parquet" } " has each receiver, "
                code { "decisions.parquet" } " a sample of decisions."
            }
        }
    }
}

/// A chart over time; `None` if no run has such numbers.
fn plot(
    title: &str,
    label: &str,
    unit: TickUnit,
    runs: &[&CellRecord],
    view: &View<'_>,
    value: fn(&Look) -> f64,
) -> Option<Markup> {
    let mut series: Vec<Series> = Vec::new();
    for run in runs.iter().filter(|run| !run.staleness.is_empty()) {
        let policy = &run.summary.policy;
        if series.iter().all(|known| known.label != *policy) {
            let points = run.staleness.iter().map(|look| (look.time, value(look)));
            let points: Vec<_> = points.filter(|(_, value)| value.is_finite()).collect();
            if points.is_empty() {
                continue;
            }
            let colour = view.colour(policy);
            series.push(Series { label: policy.clone(), colour, points, ..Series::default() });
        }
    }
    let x = PlotAxis::new("time", AxisScale::Linear, TickUnit::Seconds);
    let y = PlotAxis::new(label, AxisScale::Linear, unit);
    let plot = Plot { title: title.to_owned(), x, y, series, size: (520.0, 250.0) };
    (!plot.series.is_empty()).then(|| plot.svg())
}

fn staleness_table(run: &CellRecord, staleness: &Staleness) -> Markup {
    let name = format!("{}, seed {}", run.summary.policy, run.summary.seed);
    let row = |what: &str, spread, text: fn(f64) -> String| (what.to_owned(), spread, text);
    let rows = [
        row("age of synchronisation", &staleness.age_of_synchronisation_s, number::seconds),
        row("the same out of sync", &staleness.age_out_of_sync_s, number::seconds),
        row("version age", &staleness.version_age, number::short),
        row("age of information", &staleness.age_of_information_s, number::seconds),
        row("its peaks", &staleness.peak_age_of_information_s, number::seconds),
        row("error", &staleness.error_s, number::seconds),
        row("error at decisions", &staleness.decision_error_s, number::seconds),
        row("regret", &staleness.regret_s, number::seconds),
        row("in flight", &staleness.in_flight, number::short),
    ];
    let rows: Vec<_> = rows.into_iter().filter(|(_, spread, _)| spread.mean.is_finite()).collect();
    html! {
        (spreads(&name, &rows))
        p {
            (number::percent(staleness.out_of_sync)) " of the time and " (number::percent(staleness.decisions_out_of_sync))
            " of decisions out of sync; " (number::percent(staleness.conflicts)) " of decisions in conflict with another."
        }
    }
}
