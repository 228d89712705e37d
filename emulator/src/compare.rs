//! `volary compare`: two runs side by side, policy by policy, cell by cell, metric by metric.
//!
//! Where both ran a point with the same seeds, both met the same world, and the difference gets a paired 95 %
//! interval; otherwise only means are compared, and the result says so.

use std::collections::BTreeMap;

use comfy_table::{Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};
use serde::{Deserialize, Serialize};

use crate::number;
use crate::record::cell::CellRecord;
use crate::report::table;
use crate::results::cell_name;
use crate::results::{Cell, Summary};
use crate::stats::Interval;
use crate::storage::Study;
use crate::storage::manifest::{Manifest, RunState};

/// Two studies, compared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// What the first was: experiment and runtime, and how it ended if not well.
    pub a: String,
    /// What the second was.
    pub b: String,
    /// One entry for each policy in each cell that both ran.
    pub points: Vec<Point>,
    /// Policies and cells that only one of them ran, in words.
    pub unmatched: Vec<String>,
}

/// A policy in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Its label.
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// Seeds both ran.
    pub paired_seeds: usize,
    /// Whether equal seeds gave equal event orders: the same run, not only the same world.
    pub identical: bool,
    /// Whether a run of the first did not do what was asked.
    #[serde(default)]
    pub a_degraded: bool,
    /// The same of the second.
    #[serde(default)]
    pub b_degraded: bool,
    /// Whether a run of the first was injected into.
    #[serde(default)]
    pub a_injected: bool,
    /// The same of the second.
    #[serde(default)]
    pub b_injected: bool,
    /// The metrics.
    pub metrics: Vec<Difference>,
}

/// A metric in both.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// Its name in the results, as `response_s.p50`.
    pub metric: String,
    /// Mean over the replications of the first that are compared.
    pub a: Option<f64>,
    /// The same of the second.
    pub b: Option<f64>,
    /// `b - a`.
    pub difference: Option<f64>,
    /// `(b - a) / a`.
    pub relative: Option<f64>,
    /// Half-width of the 95 % interval of the difference; absent with fewer than two paired seeds.
    pub half_width: Option<f64>,
    /// Whether the interval lies on one side of zero; absent without one.
    pub differs: Option<bool>,
}

/// A number of a summary.
pub struct Metric {
    /// Its name in the results.
    pub name: &'static str,
    /// The number.
    pub value: fn(&Summary) -> f64,
    /// How it reads.
    pub text: fn(f64) -> String,
}

/// What is compared.
pub const METRICS: [Metric; 13] = [
    Metric { name: "response_s.mean", value: |s| s.response_s.mean, text: number::seconds },
    Metric { name: "response_s.p50", value: |s| s.response_s.p50, text: number::seconds },
    Metric { name: "response_s.p90", value: |s| s.response_s.p90, text: number::seconds },
    Metric { name: "response_s.p95", value: |s| s.response_s.p95, text: number::seconds },
    Metric { name: "response_s.p99", value: |s| s.response_s.p99, text: number::seconds },
    Metric { name: "response_s.p999", value: |s| s.response_s.p999, text: number::seconds },
    Metric { name: "wait_s.mean", value: |s| s.wait_s.mean, text: number::seconds },
    Metric { name: "wait_s.p99", value: |s| s.wait_s.p99, text: number::seconds },
    Metric { name: "slowdown.mean", value: |s| s.slowdown.mean, text: number::short },
    Metric { name: "slowdown.p99", value: |s| s.slowdown.p99, text: number::short },
    Metric { name: "utilization", value: |s| s.utilization, text: number::percent },
    Metric { name: "copies.wasted_work_s", value: |s| s.copies.wasted_work_s, text: number::seconds },
    Metric { name: "messages.total / tasks", value: table::messages_per_task, text: number::short },
];

/// Compares what both studies ran.
#[must_use]
pub fn compare(a: &Study, b: &Study) -> Comparison {
    let (left, right) = (points(a), points(b));
    let matched = right.iter().filter_map(|(key, runs)| Some((key, left.get(key)?, runs)));
    let points = matched.map(|(key, left, right)| point(key, left, right)).collect();
    let missing = |here: &Points<'_>, there: &Points<'_>, which: &str| {
        let alone = here.keys().filter(|key| !there.contains_key(*key));
        alone.map(|key| format!("only {which} ran {}", key.name())).collect::<Vec<_>>()
    };
    let mut unmatched = missing(&left, &right, "the first");
    unmatched.extend(missing(&right, &left, "the second"));
    let name = |study: &Study| match &study.manifest {
        Manifest { experiment, runtime, state: RunState::Finished, .. } => {
            format!("{experiment} ({runtime})")
        }
        Manifest { experiment, runtime, state, .. } => format!("{experiment} ({runtime}, {state})"),
    };
    Comparison { a: name(a), b: name(b), points, unmatched }
}

/// A point of a sweep: ordered by cell, then policy, as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    cell: BTreeMap<String, String>,
    policy: String,
}

impl Key {
    fn name(&self) -> String {
        let words = self.cell.iter().map(|(key, value)| format!(", {key} = {value}"));
        format!("{}{}", self.policy, words.collect::<String>())
    }
}

type Points<'a> = BTreeMap<Key, &'a [CellRecord]>;

fn points(study: &Study) -> Points<'_> {
    let of = |group: &crate::storage::study::CellGroup| -> BTreeMap<String, String> {
        group.cell.iter().map(|(key, value)| (key.clone(), value.to_string())).collect()
    };
    let groups = study.cells.iter().map(|group| (of(group), group));
    let runs = groups.flat_map(|(cell, group)| group.policies.iter().map(move |runs| (cell.clone(), runs)));
    runs.map(|(cell, runs)| (Key { cell, policy: runs.policy.clone() }, runs.runs.as_slice())).collect()
}

fn point(key: &Key, a: &[CellRecord], b: &[CellRecord]) -> Point {
    let same = |left: &&CellRecord, right: &CellRecord| left.summary.seed == right.summary.seed;
    let pairs: Vec<(&Summary, &Summary)> = b
        .iter()
        .filter_map(|right| Some((&a.iter().find(|left| same(left, right))?.summary, &right.summary)))
        .collect();
    let identical = !pairs.is_empty()
        && pairs
            .iter()
            .all(|(a, b)| a.engine.order_hash == b.engine.order_hash && a.response_s == b.response_s);
    Point {
        policy: key.policy.clone(),
        cell: b.first().map(|run| run.summary.cell.clone()).unwrap_or_default(),
        paired_seeds: pairs.len(),
        identical,
        a_degraded: a.iter().any(|run| run.summary.is_degraded()),
        b_degraded: b.iter().any(|run| run.summary.is_degraded()),
        a_injected: a.iter().any(|run| !run.summary.injections.is_empty()),
        b_injected: b.iter().any(|run| !run.summary.injections.is_empty()),
        metrics: METRICS.iter().map(|metric| difference(metric, &pairs, a, b)).collect(),
    }
}

/// Paired where seeds are shared; otherwise the means of either side.
fn difference(
    metric: &Metric,
    pairs: &[(&Summary, &Summary)],
    a: &[CellRecord],
    b: &[CellRecord],
) -> Difference {
    let pairs: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| ((metric.value)(a), (metric.value)(b))).collect();
    let finite: Vec<(f64, f64)> = pairs.into_iter().filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
    let mean = |runs: &[CellRecord]| -> Option<f64> {
        let values: Vec<f64> = runs.iter().map(|run| (metric.value)(&run.summary)).collect();
        Interval::new(&values).map(|interval| interval.mean)
    };
    let side = |pick: fn(&(f64, f64)) -> f64| Interval::new(&finite.iter().map(pick).collect::<Vec<_>>());
    let (left, right) = match (side(|pair| pair.0), side(|pair| pair.1)) {
        (Some(left), Some(right)) => (Some(left.mean), Some(right.mean)),
        (None, _) | (_, None) => (mean(a), mean(b)),
    };
    let paired = Interval::paired(&finite.iter().map(|&(a, b)| (b, a)).collect::<Vec<_>>());
    let difference = left.zip(right).map(|(a, b)| b - a);
    let half_width = paired.and_then(|interval| interval.half_width);
    Difference {
        metric: metric.name.to_owned(),
        a: left,
        b: right,
        difference,
        relative: difference.zip(left).filter(|(_, a)| *a != 0.0).map(|(difference, a)| difference / a),
        half_width,
        differs: half_width.and_then(|_| paired.map(|interval| interval.excludes_zero())),
    }
}

impl Comparison {
    /// A table a point, for people; what differs beyond its interval is starred.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("first:  {}\nsecond: {}\n", self.a, self.b);
        for point in &self.points {
            let cell = cell_name(&point.cell);
            let (comma, seeds) = (if cell.is_empty() { "" } else { ", " }, seeds(point));
            out.push_str(&format!("\n{}{comma}{cell}  ({seeds})\n{}\n", point.policy, point_table(point)));
            let sides = [("first", point.a_degraded), ("second", point.b_degraded)];
            for (which, _) in sides.iter().filter(|(_, degraded)| *degraded) {
                out.push_str(&format!(
                    "DEGRADED: the {which} did not do what was asked; `volary report` says why\n"
                ));
            }
            let sides = [("first", point.a_injected), ("second", point.b_injected)];
            for (which, _) in sides.iter().filter(|(_, injected)| *injected) {
                out.push_str(&format!("INJECTED: interference was injected into the {which}\n"));
            }
        }
        if self.points.is_empty() {
            out.push_str("\nthey have no policy and cell in common\n");
        }
        for line in &self.unmatched {
            out.push_str(&format!("{line}\n"));
        }
        out
    }
}

fn seeds(point: &Point) -> String {
    match point.paired_seeds {
        0 => "no seed in common: means only, not paired".to_owned(),
        _ if point.identical => "equal seeds, identical runs".to_owned(),
        1 => "one seed in common: no interval".to_owned(),
        n => format!("{n} seeds in common: paired 95 % intervals"),
    }
}

fn point_table(point: &Point) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["metric", "first", "second", "difference", "change", ""]);
    for (difference, metric) in point.metrics.iter().zip(&METRICS) {
        let text = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), metric.text);
        let gap = match difference.half_width {
            Some(half) => format!("{} ± {}", text(difference.difference), (metric.text)(half)),
            None => text(difference.difference),
        };
        let change = difference.relative.map_or_else(|| "–".to_owned(), number::change);
        let mark = if difference.differs == Some(true) { "*" } else { "" };
        let numbers = [text(difference.a), text(difference.b), gap, change, mark.to_owned()];
        let right = |text| TableCell::new(text).set_alignment(CellAlignment::Right);
        table.add_row(std::iter::once(TableCell::new(&difference.metric)).chain(numbers.map(right)));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::fixture::measured;
    use crate::storage::fixture::manifest;

    fn study(seeds: &[u64], scale: f64, policies: &[&str]) -> Study {
        let cell = [("load", json!(0.8))];
        let record = |policy: &str, seed| {
            CellRecord::new(&format!("{policy}{seed}"), &measured(policy, &cell, seed, scale, 200))
        };
        let runs = policies.iter().flat_map(|policy| seeds.iter().map(move |&seed| (*policy, seed)));
        let records = runs.map(|(policy, seed)| record(policy, seed)).collect();
        Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new())
    }

    fn metric<'a>(point: &'a Point, name: &str) -> &'a Difference {
        point.metrics.iter().find(|difference| difference.metric == name).unwrap()
    }

    #[test]
    fn shared_seeds_give_paired_intervals() {
        let comparison = compare(&study(&[1, 2, 3, 4], 1.0, &["a"]), &study(&[2, 3, 4, 5], 1.5, &["a", "b"]));
        assert_eq!(comparison.points.len(), 1);
        let point = &comparison.points[0];
        assert_eq!(point.paired_seeds, 3);
        let p50 = metric(point, "response_s.p50");
        assert!((p50.relative.unwrap() - 0.5).abs() < 1e-9, "{p50:?}");
        assert_eq!(p50.differs, Some(true), "{p50:?}");
        assert!(
            p50.half_width.unwrap() < 0.2 * p50.difference.unwrap(),
            "the pairing removes what seeds share"
        );
        assert_eq!(metric(point, "utilization").differs, Some(false));
        assert_eq!(comparison.unmatched, ["only the second ran b, load = 0.8"]);
        let text = comparison.text();
        assert!(text.contains("+50.0\u{202f}%") && text.contains("3 seeds in common"), "{text}");
    }

    #[test]
    fn without_shared_seeds_means_are_compared() {
        let comparison = compare(&study(&[1, 2], 1.0, &["a"]), &study(&[3, 4], 1.0, &["a"]));
        let point = &comparison.points[0];
        assert_eq!((point.paired_seeds, point.identical), (0, false));
        let p50 = metric(point, "response_s.p50");
        assert!(p50.difference.is_some() && p50.half_width.is_none() && p50.differs.is_none(), "{p50:?}");
    }

    #[test]
    fn a_degraded_side_is_marked() {
        let (good, mut bad) = (study(&[1, 2], 1.0, &["a"]), study(&[1, 2], 1.0, &["a"]));
        bad.cells[0].policies[0].runs[1].summary.fidelity = Some(crate::fidelity::fixture::degraded());
        let marks = |a, b| {
            let comparison = compare(a, b);
            let text = comparison.text();
            let point = &comparison.points[0];
            let said = ["first", "second"].map(|which| text.contains(&format!("DEGRADED: the {which} ")));
            assert_eq!(said, [point.a_degraded, point.b_degraded], "{text}");
            said
        };
        assert_eq!(marks(&good, &good), [false, false]);
        assert_eq!(marks(&good, &bad), [false, true]);
        assert_eq!(marks(&bad, &good), [true, false]);
    }

    #[test]
    fn a_side_that_was_injected_into_is_marked() {
        let (good, mut bad) = (study(&[1, 2], 1.0, &["a"]), study(&[1, 2], 1.0, &["a"]));
        bad.cells[0].policies[0].runs[1].summary.injections = vec![crate::record::fixture::injected()];
        let comparison = compare(&good, &bad);
        assert!(!comparison.points[0].a_injected && comparison.points[0].b_injected);
        let text = comparison.text();
        assert!(text.contains("INJECTED: interference was injected into the second\n"), "{text}");
        assert!(!text.contains("into the first"), "{text}");
    }

    #[test]
    fn equal_runs_are_identical_and_json_comes_back() {
        let one = study(&[1], 1.0, &["a"]);
        let comparison = compare(&one, &one);
        assert!(comparison.points[0].identical);
        assert_eq!(metric(&comparison.points[0], "response_s.p99").difference, Some(0.0));
        let json = serde_json::to_string(&comparison).unwrap();
        assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), comparison);
    }
}
