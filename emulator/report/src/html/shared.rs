//! The section of a cell about shared nodes.

use maud::{Markup, html};
use volary_engine::results::{SharedNodes, Summary};
use volary_experiment::number;
use volary_experiment::storage::study::{CellGroup, PolicyRuns};

use super::table::{policy_row, table};
use super::view::View;

/// A measure of shared nodes: heading, definition, and its number in the results.
type SharedMeasure = (&'static str, &'static str, fn(&SharedNodes) -> f64, fn(f64) -> String);

const MEASURES: [SharedMeasure; 6] = [
    (
        "CPU used",
        "CPU-time of all copies over the CPU of all nodes times the makespan",
        |s| s.cpu,
        number::percent,
    ),
    (
        "throttled",
        "share of the time of copies in which they were given less CPU than they would have used",
        |s| s.throttled,
        number::percent,
    ),
    (
        "throttles",
        "how often a copy was given less CPU than it would have used, per node and hour",
        |s| 3600.0 * s.throttle_rate,
        number::short,
    ),
    (
        "evictions",
        "copies that a node stopped because memory was short",
        |s| s.evictions as f64,
        number::short,
    ),
    ("CPU-time", "core-hours that all copies used", |s| s.used_core_h, number::short),
    (
        "lost",
        "core-hours that copies used which did not run to their end",
        |s| s.wasted_core_h,
        number::short,
    ),
];

/// Use of shared nodes by copies, policies side by side; empty if nodes are not shared.
pub(super) fn section(group: &CellGroup, view: &View<'_>) -> Markup {
    let on_shared = |runs: &&PolicyRuns| runs.runs.iter().any(|run| run.summary.shared.is_some());
    let policies: Vec<&PolicyRuns> = group.policies.iter().filter(on_shared).collect();
    let mean = |runs: &PolicyRuns, measure: &SharedMeasure| {
        let of = |summary: &Summary| summary.shared.as_ref().map_or(f64::NAN, measure.2);
        runs.mean(of)
    };
    let explained: Vec<_> = MEASURES.iter().map(|measure| (measure.0, measure.1)).collect();
    let rows = html! {
        @for runs in &policies {
            (policy_row(view.policies, &runs.policy, &html! {
                @for measure in &MEASURES { td { (measure.3(mean(runs, measure))) } }
            }))
        }
    };
    html! {
        @if !policies.is_empty() {
            details.more open {
                summary { "Shared nodes" }
                p.hint {
                    "A copy is throttled while the other copies on its node leave it less CPU than it would use, and may be \
                     evicted when the memory that its node uses passes the threshold, which loses its work. Throttles \
                     are counted per node and hour; CPU-time and what is lost of it are in core-hours of a healthy \
                     reference core. Means over replications."
                }
                (table("Shared nodes", &["policy"], &explained, &rows))
            }
        }
    }
}
