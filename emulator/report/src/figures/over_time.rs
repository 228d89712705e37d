//! Measures over time: staleness of caches, and executions on cores.

use std::collections::BTreeMap;

use volary_actors::base::CoreSet;
use volary_engine::results::Summary;
use volary_experiment::number;
use volary_experiment::storage::run_record::{Look, RunRecord};
use volary_experiment::storage::study::CellGroup;

use super::distribution::colour;
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::chart::svg::{Picture, Point};
use crate::chart::timeline::{Extent, Shades, Window, cores, timeline};

/// A measure of caches over time: title, label of the axis, unit, and value.
type LookMeasure = (&'static str, &'static str, TickUnit, fn(&Look) -> f64);

const MEASURES: [LookMeasure; 5] = [
    ("Age of synchronisation", "mean age", TickUnit::Seconds, |look| look.age),
    ("Error of the caches", "mean size of the error", TickUnit::Seconds, |look| look.error),
    ("Updates in flight", "updates that a receiver lacks", TickUnit::Number, |look| look.in_flight),
    ("Version age", "updates of a source that it lacks", TickUnit::Number, |look| look.versions),
    ("Age of information", "mean age", TickUnit::Seconds, |look| look.information),
];

/// Name of figures of caches: id and heading of their section on the live page.
pub(crate) const CACHES: (&str, &str) = ("staleness", "Staleness");

/// The reason why a study has no figure of caches.
pub(super) const NO_CACHES: &str = "no policy of the run has observed caches, and no member has updates; \
    `run.record.staleness` sets how often caches are observed, and `volary policies` states which policies have caches";

/// The charts of a cell's caches, from the first replication of each policy; `at` follows their titles. Empty if no
/// policy has caches.
pub(crate) fn cell_caches(group: &CellGroup, at: &str, policies: &[&str], size: Point) -> Vec<Picture> {
    let first = group.policies.iter().filter_map(|runs| runs.runs.first());
    let looks: Vec<CacheLooks<'_>> = first
        .map(|run| (colour(policies, &run.summary.policy), run.summary.policy.as_str(), &run.looks[..]))
        .collect();
    titled_caches(&looks, at, size)
}

/// The observations of the caches of a policy, with its colour and label.
pub(crate) type CacheLooks<'a> = (usize, &'a str, &'a [Look]);

/// The charts of the caches of policies; empty if no policy has caches.
pub(crate) fn caches(policies: &[CacheLooks<'_>], size: Point) -> Vec<Picture> {
    titled_caches(policies, "", size)
}

fn titled_caches(policies: &[CacheLooks<'_>], at: &str, size: Point) -> Vec<Picture> {
    MEASURES.iter().filter_map(|measure| of_caches(policies, measure, at, size)).collect()
}

fn of_caches(
    policies: &[CacheLooks<'_>],
    (title, label, unit, value): &LookMeasure,
    at: &str,
    size: Point,
) -> Option<Picture> {
    let curve = |&(colour, policy, looks): &CacheLooks<'_>| {
        let points = looks.iter().map(|look| (look.time, value(look)));
        let points = averaged(&points.filter(|(_, value)| value.is_finite()).collect::<Vec<_>>());
        let label = policy.to_owned();
        (!points.is_empty()).then(|| Series { label, colour, points, ..Series::default() })
    };
    let series: Vec<Series> = policies.iter().filter_map(curve).collect();
    // On a linear axis, a curve that is decades below another one would coincide with the zero line.
    let highest = |series: &Series| series.points.iter().map(|point| point.1).fold(0.0, f64::max);
    let spread = AxisScale::suited(series.iter().map(highest));
    let x = PlotAxis::new("time", AxisScale::Linear, TickUnit::Seconds);
    let y = PlotAxis::new(label, spread, *unit);
    let plot = Plot { title: format!("{title}{at}"), x, y, series, size };
    (!plot.series.is_empty()).then(|| plot.picture())
}

/// Maximum number of points of a curve over time. The error of a cache drops to zero at each synchronisation: a curve
/// of all observations would alternate between zero and its mean, and hide the curves of other policies.
const POINTS: usize = 100;

/// Means over at most [`POINTS`] windows with equal numbers of points.
fn averaged(points: &[Point]) -> Vec<Point> {
    let windows = points.chunks(points.len().div_ceil(POINTS).max(1));
    let mean = |window: &[Point]| {
        let (x, y) = window.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (x / window.len() as f64, y / window.len() as f64)
    };
    windows.map(mean).collect()
}

/// The timelines of the first cores in the first replication of each policy, with the colour of the policy; also the
/// common end of the timelines, s. The timelines show `window` (from, until; s), or without a window the beginning of
/// the runs with at most `blocks` executions and bursts.
pub(crate) fn timelines(
    group: &CellGroup,
    policies: &[&str],
    blocks: usize,
    window: Option<(f64, f64)>,
    wide: f64,
) -> (Vec<(usize, Picture)>, f64) {
    let first = || {
        let runs = group.policies.iter().filter_map(|runs| runs.runs.first());
        runs.filter(|run| !run.timeline.is_empty())
    };
    let shared = shared_bursts(first());
    let cores = cores(first().map(|run| &run.timeline[..]));
    let extent = |run: &RunRecord| {
        Extent::of(&run.timeline, bursts(run, &shared), &cores, (run.summary.makespan_s, blocks))
    };
    let time = match window {
        // The timeline ends with the latest recorded start, because executions that began later are not recorded.
        Some((from, until)) => (from, first().map(|run| extent(run).begun).fold(0.0, f64::max).min(until)),
        None => (0.0, Extent::common(first().map(extent))),
    };
    let begins =
        |run: &RunRecord| run.timeline.iter().any(|slice| slice.0.start < time.1 && slice.0.end > time.0);
    if cores.is_empty() || !first().any(begins) {
        return (Vec::new(), time.1);
    }
    let window = Window { cores: &cores, time, wide };
    let charts = first().map(|run| {
        let cut = run.cut_at().map(|at| format!(", record cut at {}", number::seconds(at)));
        let Summary { policy, seed, .. } = &run.summary;
        let title = format!("{policy}, seed {seed}{}", cut.unwrap_or_default());
        let shades = Shades { bursts: bursts(run, &shared), injected: &injected(run) };
        (colour(policies, &run.summary.policy), timeline(&title, &run.timeline, shades, window))
    });
    (charts.collect(), time.1)
}

/// Bursts as (core, from s, until s, slowdown), by the seed of their runs.
type BurstsBySeed = BTreeMap<u64, Vec<(u32, f64, f64, f64)>>;

/// The bursts of each seed, from runs without injections. All policies meet the same bursts under one seed. The end of
/// a burst is the latest end that a run recorded.
fn shared_bursts<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> BurstsBySeed {
    let mut known: BTreeMap<(u64, u32, u64), (f64, f64)> = BTreeMap::new();
    for run in runs.filter(|run| run.summary.injections.is_empty()) {
        for &(core, from, until, slowdown) in &run.bursts {
            let longest = known.entry((run.summary.seed, core, from.to_bits())).or_insert((until, slowdown));
            longest.0 = longest.0.max(until);
        }
    }
    let mut shared = BurstsBySeed::new();
    for ((seed, core, from), (until, slowdown)) in known {
        shared.entry(seed).or_default().push((core, f64::from_bits(from), until, slowdown));
    }
    shared
}

/// The bursts that are drawn for a run: the common bursts of its seed, or its own if bursts were injected.
fn bursts<'a>(run: &'a RunRecord, shared: &'a BurstsBySeed) -> &'a [(u32, f64, f64, f64)] {
    let shared = shared.get(&run.summary.seed).filter(|_| run.summary.injections.is_empty());
    shared.unwrap_or(&run.bursts)
}

/// The times at which interference was injected into cores of a timeline.
fn injected(run: &RunRecord) -> Vec<(u32, f64, f64)> {
    let mut drawn: Vec<u32> = run.timeline.iter().map(|slice| slice.0.core).collect();
    drawn.dedup();
    let applied = run.summary.injections.iter().flat_map(|injected| &injected.hosts);
    let applied = applied.map(|applied| (&applied.cores, applied.from_s, applied.until_s));
    let scheduled = run.summary.scheduled.iter().map(|span| (&span.cores, span.from_s, span.until_s));
    let bands = applied.chain(scheduled).flat_map(|(cores, from, until)| {
        let cores: CoreSet = cores.parse().unwrap_or_default();
        drawn.iter().filter(move |core| cores.contains(**core)).map(move |core| (*core, from, until))
    });
    bands.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use volary_engine::results::{CopyRow, Measured};
    use volary_experiment::storage::Study;
    use volary_experiment::storage::fixture::{manifest, measured};
    use volary_experiment::storage::run_record::TIMELINE_ROWS;

    use super::*;

    #[test]
    fn a_curve_of_many_points_is_averaged() {
        let few = [(0.0, 1.0), (1.0, 3.0)];
        assert_eq!(averaged(&few), few);
        assert!(averaged(&[]).is_empty());
        let many: Vec<Point> = (0..250).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let drawn = averaged(&many);
        assert_eq!((drawn.len(), drawn[0], drawn[83]), (84, (1.0, 1.0 / 3.0), (249.0, 1.0)));
    }

    #[test]
    fn the_title_of_a_timeline_states_where_its_record_was_cut() {
        let mut cell = measured("a", &[("load", json!(1))], 1, 1.0, 10);
        let first = cell.timeline[0];
        let titles = |rows: usize, cell: &mut Measured| {
            let row = |at| CopyRow { start: at, end: at + 1.0, ..first };
            cell.timeline = (0..rows).map(|at| row(at as f64)).collect();
            let record = RunRecord::new("a", cell);
            let study = Study::assemble(manifest(&[]), Vec::new(), vec![record], Vec::new(), Vec::new());
            let (charts, _) = timelines(&study.cells[0], &["a"], 700, None, 500.0);
            charts[0].1.in_page().into_string()
        };
        assert!(!titles(TIMELINE_ROWS, &mut cell).contains("cut at"));
        assert!(titles(TIMELINE_ROWS + 1, &mut cell).contains("a, seed 1, record cut at "));
    }
}
