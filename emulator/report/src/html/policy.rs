//! The sections of a cell about metrics that only some policies have: placement times, plans and the staleness of
//! caches.

use maud::{Markup, html};
use volary_engine::results::{Placements, Planning, PredictionErrors, Spread, Staleness, Summary, Unit};
use volary_experiment::number;
use volary_experiment::storage::run_record::RunRecord;
use volary_experiment::storage::study::{CellGroup, PolicyRuns};

use super::table::{PolicyColumn, PolicyRow, class_row, number_tables, table};
use super::view::{View, grid};
use crate::figures::over_time;

/// The sections of a cell; empty if no policy has one of these metrics.
pub(super) fn sections(group: &CellGroup, view: &View<'_>) -> Markup {
    html! { (placements(group, view)) (planning(group, view.policies)) (staleness(group, view)) }
}

/// Plans and estimates; empty if no policy decides in cycles.
fn planning(group: &CellGroup, policies: &[&str]) -> Markup {
    let runs: Vec<&RunRecord> = group.policies.iter().flat_map(|runs| &runs.runs).collect();
    let plans: Vec<_> = runs.iter().filter_map(|run| Some((run, run.summary.sections.planning?))).collect();
    let errors: Vec<_> =
        runs.iter().filter_map(|run| Some((run, run.summary.sections.prediction?))).collect();
    html! {
        @if !plans.is_empty() {
            details.more {
                summary { "Plans" }
                p.hint {
                    "Cycles up to the last decision, and problems solved in them. Options, columns of the linear \
                     program and pivots: means over problems. Gap: distance from a proven bound, as a share of the bound. \
                     Launched: jobs, in whole or in part; revoked: launches that were no longer possible when the \
                     decision took effect. Emulated time of all decisions, and the CPU time that they took on this \
                     machine."
                }
                (table("Plans", &PLAN_HEADINGS, &[], &html! { @for (run, plan) in plans { (run_row(policies, run, &plan_cells(run, &plan))) } }))
                @if !errors.is_empty() { (error_table(&errors, policies)) }
            }
        }
    }
}

const PLAN_HEADINGS: [&str; 14] = [
    "run",
    "cycles",
    "solved",
    "options",
    "columns",
    "pivots",
    "gap",
    "gap p99",
    "gap max",
    "launched",
    "revoked",
    "preempted",
    "emulated time",
    "CPU time",
];

/// The table row of one run of a policy.
fn run_row(policies: &[&str], run: &RunRecord, cells: &Markup) -> Markup {
    class_row(policies, &run.summary.policy, Some(&format!("seed {}", run.summary.seed)), cells)
}

fn plan_cells(run: &RunRecord, plan: &Planning) -> Markup {
    html! {
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

fn error_table(errors: &[(&&RunRecord, PredictionErrors)], policies: &[&str]) -> Markup {
    let headings = ["run", "estimates", "within 2×", "below half", "above twice", "mean error"];
    let rows = html! {
        @for (run, errors) in errors {
            (run_row(policies, run, &html! {
                td { (number::count(errors.jobs)) }
                td { (number::percent(errors.within_2x)) }
                td { (number::percent(errors.under)) }
                td { (number::percent(errors.over)) }
                td { (number::percent(errors.error)) }
            }))
        }
    };
    html! {
        p.hint {
            "Run times expected when jobs were submitted, against the observed run times; the mean error is relative \
             to the mean run time."
        }
        (table("Errors of estimates", &headings, &[], &rows))
    }
}

/// A time since the arrival of a job: its name, and its spread in the results.
type PlacementTime = (&'static str, fn(&Placements) -> &Spread);

const PLACEMENTS: [PlacementTime; 9] = [
    ("average task scheduled", |p| &p.scheduled_s.average),
    ("average task began", |p| &p.started_s.average),
    ("average task ended", |p| &p.ended_s.average),
    ("last task scheduled", |p| &p.scheduled_s.tail),
    ("last task began", |p| &p.started_s.tail),
    ("last task ended", |p| &p.ended_s.tail),
    ("deviation within the job, scheduled", |p| &p.scheduled_s.deviation),
    ("deviation within the job, began", |p| &p.started_s.deviation),
    ("deviation within the job, ended", |p| &p.ended_s.deviation),
];

/// The times at which tasks were bound, side by side for all policies; empty if no policy records placements.
fn placements(group: &CellGroup, view: &View<'_>) -> Markup {
    let noted = |runs: &&PolicyRuns| runs.runs.iter().any(|run| run.summary.sections.placements.is_some());
    let policies: Vec<&PolicyRuns> = group.policies.iter().filter(noted).collect();
    let mean = |runs: &PolicyRuns, number: &dyn Fn(&Placements) -> f64| {
        let of = |summary: &Summary| summary.sections.placements.as_ref().map_or(f64::NAN, number);
        runs.mean(of)
    };
    let measured: Vec<(&PlacementTime, &PolicyRuns)> =
        PLACEMENTS.iter().flat_map(|time| policies.iter().map(move |runs| (time, *runs))).collect();
    let rows: Vec<PolicyRow<'_>> =
        measured.iter().map(|((what, _), runs)| (runs.policy.as_str(), Some(*what))).collect();
    let column = |heading, part: fn(&Spread) -> f64| {
        let numbers = measured.iter().map(|((_, spread), runs)| (mean(runs, &|p| part(spread(p))), None));
        PolicyColumn::new(heading, "since the arrival of the job", Unit::Seconds, numbers)
    };
    let columns = [column("mean", |s| s.mean), column("p99", |s| s.p99)];
    html! {
        @if !policies.is_empty() {
            details.more {
                summary { "Times at which tasks were placed" }
                p.hint {
                    "Times since the arrival of the job, over jobs whose tasks all ended: until tasks were bound to a node \
                     for the last time, until they began to run, and until they ended. Means over replications."
                }
                (number_tables("Placements", &rows, &columns, view.policies))
                @for runs in &policies {
                    p class={ "p" (view.colour(&runs.policy)) } {
                        (runs.policy) ": " (number::count(mean(runs, &|p| p.count as f64).round() as u64)) " placements, at most "
                        (number::count(mean(runs, &|p| p.peak_per_s as f64).round() as u64)) " in a second; the last after "
                        (number::seconds(mean(runs, &|p| p.last_s))) "."
                    }
                }
            }
        }
    }
}

/// A measure of caches: heading, definition, its spread in the results, and its unit.
type CacheMeasure = (&'static str, &'static str, fn(&Staleness) -> &Spread, Unit);

const CACHES: [CacheMeasure; 9] = [
    (
        "age of synchronisation",
        "the age of the oldest update about a node that a scheduler lacks; 0 if it lacks none",
        |s| &s.age_of_synchronisation_s,
        Unit::Seconds,
    ),
    ("age out of sync", "age of synchronisation while out of sync", |s| &s.age_out_of_sync_s, Unit::Seconds),
    ("version age", "number of updates about a node that a scheduler lacks", |s| &s.version_age, Unit::Plain),
    (
        "age of information",
        "age of the newest snapshot that a receiver has of a source",
        |s| &s.age_of_information_s,
        Unit::Seconds,
    ),
    ("peak age", "age of information before a new snapshot", |s| &s.peak_age_of_information_s, Unit::Seconds),
    (
        "error",
        "absolute difference between the cached and the true load; the load is the unfinished work placed at the node",
        |s| &s.error_s,
        Unit::Seconds,
    ),
    ("error at decisions", "error about the node that was chosen", |s| &s.decision_error_s, Unit::Seconds),
    (
        "regret",
        "wait of a task at the chosen node minus its shortest wait at any node",
        |s| &s.regret_s,
        Unit::Seconds,
    ),
    ("in flight", "updates that a scheduler lacks, about all nodes", |s| &s.in_flight, Unit::Plain),
];

/// Further measures beside [`CACHES`], with one number per policy.
type CacheNumber = (&'static str, &'static str, fn(&Staleness) -> f64, Unit);

const SHARES: [CacheNumber; 4] = [
    ("bias", "mean of the cached minus the true load", |s| s.bias_s, Unit::Seconds),
    (
        "out of sync",
        "share of time that a scheduler lacks an update about a node",
        |s| s.out_of_sync,
        Unit::Share,
    ),
    (
        "decisions out of sync",
        "share of decisions whose scheduler lacked an update about the node that it chose",
        |s| s.decisions_out_of_sync,
        Unit::Share,
    ),
    (
        "conflicts",
        "share of decisions for a node to which another scheduler had sent a task that the deciding scheduler's cache lacked",
        |s| s.conflicts,
        Unit::Share,
    ),
];

/// The staleness of the policies' caches side by side, and charts over time; empty if no policy has caches.
fn staleness(group: &CellGroup, view: &View<'_>) -> Markup {
    let with_caches =
        |runs: &&PolicyRuns| runs.runs.iter().any(|run| run.summary.sections.staleness.is_some());
    let policies: Vec<&PolicyRuns> = group.policies.iter().filter(with_caches).collect();
    if policies.is_empty() {
        return Markup::default();
    }
    html! {
        details.more open {
            summary { "Staleness of caches" }
            p.hint {
                "A cache keeps the work expected at every node. Means over time, over the receivers and sources that are \
                 observed, and over replications; regret and error at decisions are over a sample of decisions. "
                code { "staleness.parquet" } " has each receiver, " code { "decisions.parquet" } " the decisions."
            }
            (cache_table(&policies, view))
            details.more {
                summary { "All measures: definitions, means and percentiles" }
                @for measure in &CACHES { (spread_table(measure, &policies, view)) }
            }
            (grid(over_time::cell_caches(group, "", view.policies, (520.0, 250.0)), &Markup::default()))
            p.hint { "Charts show the first replication, as means over the receivers; more than a hundred \
            observations are averaged over equal windows." }
        }
    }
}

/// The mean over replications of a number about caches.
fn of_caches(runs: &PolicyRuns, number: impl Fn(&Staleness) -> f64) -> f64 {
    let of = |summary: &Summary| summary.sections.staleness.as_ref().map_or(f64::NAN, &number);
    runs.mean(of)
}

/// A table of means, with a row per policy and a column per measure.
fn cache_table(policies: &[&PolicyRuns], view: &View<'_>) -> Markup {
    let column = |heading, meaning, unit, number: &dyn Fn(&Staleness) -> f64| {
        let means: Vec<_> = policies.iter().map(|runs| (of_caches(runs, number), None)).collect();
        let shown = means.iter().any(|(mean, _)| mean.is_finite());
        shown.then(|| PolicyColumn::new(heading, meaning, unit, means))
    };
    let measures = CACHES
        .iter()
        .filter_map(|&(heading, meaning, spread, unit)| column(heading, meaning, unit, &|s| spread(s).mean));
    let shares =
        SHARES.iter().filter_map(|&(heading, meaning, number, unit)| column(heading, meaning, unit, &number));
    let columns: Vec<PolicyColumn<'_>> = measures.chain(shares).collect();
    number_tables("Caches of schedulers", &rows_of(policies), &columns, view.policies)
}

/// A row for each policy.
fn rows_of<'a>(policies: &[&'a PolicyRuns]) -> Vec<PolicyRow<'a>> {
    policies.iter().map(|runs| (runs.policy.as_str(), None)).collect()
}

/// The spread of a measure under each policy; empty if no policy has it.
fn spread_table(measure: &CacheMeasure, policies: &[&PolicyRuns], view: &View<'_>) -> Markup {
    type Part = (&'static str, fn(&Spread) -> f64);
    const PARTS: [Part; 5] = [
        ("mean", |s| s.mean),
        ("p50", |s| s.p50),
        ("p90", |s| s.p90),
        ("p99", |s| s.p99),
        ("max", |s| s.max),
    ];
    let (heading, meaning, spread, unit) = *measure;
    let of = |runs: &PolicyRuns, part: fn(&Spread) -> f64| of_caches(runs, |s| part(spread(s)));
    let has = |runs: &&PolicyRuns| of(runs, PARTS[0].1).is_finite();
    let policies: Vec<&PolicyRuns> = policies.iter().copied().filter(has).collect();
    let column = |(heading, part): Part| {
        PolicyColumn::new(heading, "", unit, policies.iter().map(|runs| (of(runs, part), None)))
    };
    html! {
        @if !policies.is_empty() {
            h3 { (heading) }
            p.hint { (meaning) "." }
            (number_tables(heading, &rows_of(&policies), &PARTS.map(column), view.policies))
        }
    }
}
