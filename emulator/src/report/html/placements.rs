//! Tables of the times at which tasks were bound, for policies that report them.

use maud::{Markup, html};

use super::table::spreads;
use crate::number;
use crate::storage::cell::CellRecord;
use crate::storage::study::CellGroup;
use volary_engine::results::{Placements, Spread, Stage};

/// The section of a cell; empty if no policy records placements.
pub(super) fn section(group: &CellGroup) -> Markup {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs);
    let tables: Vec<_> = runs.filter_map(|run| Some(table(run, &run.summary.placements?))).collect();
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

fn table(run: &CellRecord, placements: &Placements) -> Markup {
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
