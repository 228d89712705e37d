//! Tables of the times at which tasks were bound, for policies that report them.

use super::table::spreads;
use crate::chart::svg::escape;
use crate::number;
use crate::record::cell::CellRecord;
use crate::storage::study::CellGroup;
use volary_engine::results::{Placements, Spread, Stage};

/// The section of a cell; empty if no policy records placements.
pub(super) fn section(group: &CellGroup) -> String {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs);
    let noted: String = runs.filter_map(|run| Some(table(run, &run.summary.placements?))).collect();
    if noted.is_empty() {
        return String::new();
    }
    format!(
        "<details class=\"more\"><summary>When tasks got their nodes</summary>{noted}\
         <p class=\"hint\">Since the job's arrival, over jobs all of whose tasks ended: until its tasks were bound to \
         a node for the last time, until they began to run, and until they ended.</p></details>"
    )
}

fn table(run: &CellRecord, placements: &Placements) -> String {
    let name = escape(&format!("{}, seed {}", run.summary.policy, run.summary.seed));
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
    let (count, peak) = (number::plural(placements.count, "placement"), number::count(placements.peak_per_s));
    let last = number::seconds(placements.last_s);
    format!("{}<p>{count}, at most {peak} in a second; the last after {last}.</p>", spreads(&name, &rows))
}
