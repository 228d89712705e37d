//! Comparisons of two studies by policy, cell and metric.
//!
//! If both studies ran a point with the same seeds, they ran in the same worlds, and the difference has a paired 95 %
//! interval. Otherwise only means are compared, and the result says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use volary_engine::results::{
    METRICS, Metric, Summary, canonical, is_censored, point_name, unequal_injections,
};
use volary_experiment::number::{count, plural};
use volary_experiment::stats::Interval;
use volary_experiment::storage::manifest::{Manifest, RunState};
use volary_experiment::storage::run_record::RunRecord;
use volary_experiment::storage::study::{CellGroup, measured_window};
use volary_experiment::storage::{Study, spec_diff};

use super::compared_table::{ComparedPoint, MetricDifference, point_table};
use super::metrics::{class_metric, mean, relative, values};

/// Limit on the named policies and cells that only one study ran.
const UNMATCHED: usize = 20;
/// Limit on the points that have a table in the text. With more points, points with identical runs have no table.
const TABLES: usize = 40;

/// The comparison of two studies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyComparison {
    /// Experiment and runtime of the first study, and its state if it did not finish.
    pub a: String,
    /// Experiment and runtime of the second study, and its state if it did not finish.
    pub b: String,
    /// Differences between the two experiments except claims, as `key: first A, second B`.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// Reasons why the studies are hardly comparable: different experiments, or different kinds of workloads.
    #[serde(default)]
    pub unrelated: Vec<String>,
    /// One entry for each policy in each cell that both studies ran.
    pub points: Vec<ComparedPoint>,
    /// Policies and cells that only one study ran, as text.
    pub unmatched: Vec<String>,
}

/// Compares the points that both studies ran.
pub fn compare(a: &Study, b: &Study) -> StudyComparison {
    let (left, right) = (points(a), points(b));
    let of_left: BTreeMap<&PointKey, &[RunRecord]> = left.iter().map(|(key, runs)| (key, *runs)).collect();
    let points =
        right.iter().filter_map(|(key, runs)| Some(point(&key.1, of_left.get(key)?, runs))).collect();
    let missing = |here: &Points<'_>, there: &Points<'_>, which: &str| {
        let known: BTreeSet<&PointKey> = there.iter().map(|(key, _)| key).collect();
        let alone = here.iter().map(|(key, _)| key).filter(|key| !known.contains(key));
        alone.map(|key| format!("only {which} ran {}", key_name(key))).collect::<Vec<_>>()
    };
    let mut unmatched = missing(&left, &right, "the first");
    unmatched.extend(missing(&right, &left, "the second"));
    let name = |study: &Study| {
        let Manifest { experiment, runtime, state, .. } = &study.manifest;
        let state = if *state == RunState::Finished { String::new() } else { format!(", {state}") };
        let folder =
            study.folders.first().map_or_else(String::new, |folder| format!(": {}", folder.display()));
        format!("{experiment} ({runtime}{state}){folder}")
    };
    let mut experiments = spec_diff::differences(&a.manifest, &b.manifest, ["first", "second"]);
    // Differences of names come last: they matter less than differences of settings.
    experiments.sort_by_key(|line| ["name: ", "source: ", "title: "].iter().any(|key| line.starts_with(key)));
    let unrelated = unrelated(&a.manifest, &b.manifest);
    StudyComparison { a: name(a), b: name(b), experiments, unrelated, points, unmatched }
}

fn unrelated(a: &Manifest, b: &Manifest) -> Vec<String> {
    let workload = |manifest: &Manifest| {
        let workload = manifest.points().next().and_then(|point| point.world("/workload")?.as_object());
        workload.and_then(|kinds| kinds.keys().next().cloned())
    };
    // A renamed file, or a copy with a changed key, is much the same experiment.
    let other = |key: &str| {
        let of = |manifest: &Manifest| manifest.points().next().and_then(|point| point.world(key).cloned());
        of(a) != of(b)
    };
    let is_other = a.experiment != b.experiment && other("/workload") && other("/cluster");
    let experiments = is_other.then(|| {
        format!(
            "{} and {} are experiments with different jobs on different clusters",
            a.experiment, b.experiment
        )
    });
    let workloads = workload(a).zip(workload(b)).filter(|(a, b)| a != b).map(|(a, b)| {
        format!("the jobs of the first come from workload.{a}, those of the second from workload.{b}")
    });
    experiments.into_iter().chain(workloads).collect()
}

/// Key of a point: the values of the swept keys in canonical form, and the policy.
type PointKey = (BTreeMap<String, String>, String);
/// Points in the order of the experiment.
type Points<'a> = Vec<(PointKey, &'a [RunRecord])>;

fn key_name((cell, policy): &PointKey) -> String {
    let words = cell.iter().map(|(key, value)| format!(", {key} = {value}"));
    format!("{policy}{}", words.collect::<String>())
}

fn points(study: &Study) -> Points<'_> {
    let cell = |group: &CellGroup| -> BTreeMap<String, String> {
        group.cell.iter().map(|(key, value)| (key.clone(), canonical(value))).collect()
    };
    let runs = study
        .cells
        .iter()
        .flat_map(|group| group.policies.iter().map(move |runs| ((cell(group), runs.policy.clone()), runs)));
    runs.map(|(key, runs)| (key, runs.runs.as_slice())).collect()
}

fn point(policy: &str, a: &[RunRecord], b: &[RunRecord]) -> ComparedPoint {
    let same = |left: &&RunRecord, right: &RunRecord| left.summary.seed == right.summary.seed;
    let pairs: Vec<(&Summary, &Summary)> = b
        .iter()
        .filter_map(|right| Some((&a.iter().find(|left| same(left, right))?.summary, &right.summary)))
        .collect();
    let equal = |(a, b): &(&Summary, &Summary)| {
        a.engine.order_hash == b.engine.order_hash && a.times.response_s == b.times.response_s
    };
    let degraded = |runs: &[RunRecord]| runs.iter().any(|run| run.summary.is_degraded());
    let injected = |runs: &[RunRecord]| runs.iter().any(|run| !run.summary.injections.is_empty());
    let unfinished = |runs: &[RunRecord]| runs.iter().map(|run| run.summary.not_finished()).sum();
    let unfinished = [unfinished(a), unfinished(b)];
    let mut metrics = differences(&pairs, a, b);
    let unequal = pairs.iter().any(|(a, b)| unequal_injections([*a, *b]).is_some());
    if unequal {
        metrics.iter_mut().for_each(|row| row.differs = None);
    }
    if unfinished != [0, 0] {
        let censored = metrics.iter_mut().filter(|row| is_censored(row.metric.split('.')));
        censored.for_each(|row| row.differs = None);
    }
    ComparedPoint {
        policy: policy.to_owned(),
        cell: b.first().map(|run| run.summary.cell.clone()).unwrap_or_default(),
        paired_seeds: pairs.len(),
        identical: !pairs.is_empty() && pairs.iter().all(equal),
        a_degraded: degraded(a),
        b_degraded: degraded(b),
        a_injected: injected(a),
        b_injected: injected(b),
        unequal,
        runs: [a.len(), b.len()],
        unfinished,
        windows: [a, b].map(|runs| measured_window(&runs.first()?.summary)),
        metrics,
    }
}

/// The differences over all jobs, then the differences over each class that both studies have.
fn differences(pairs: &[(&Summary, &Summary)], a: &[RunRecord], b: &[RunRecord]) -> Vec<MetricDifference> {
    let summaries = |runs: &[RunRecord]| runs.iter().map(|run| run.summary.clone()).collect::<Vec<_>>();
    let (a, b) = (summaries(a), summaries(b));
    let compared = METRICS.iter().filter(|metric| metric.compared);
    let mut all: Vec<_> = compared.clone().map(|metric| difference(metric, pairs, &a, &b)).collect();
    let labels = b.first().map_or_else(Vec::new, |run| run.classes.keys().collect());
    for label in labels {
        let of = |run: &Summary| run.for_class(label);
        let of_class = |runs: &[Summary]| runs.iter().filter_map(of).collect::<Vec<_>>();
        let (a, b) = (of_class(&a), of_class(&b));
        if a.is_empty() {
            continue;
        }
        let pairs: Vec<_> = pairs.iter().filter_map(|(a, b)| of(a).zip(of(b))).collect();
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a, b)).collect();
        all.extend(compared.clone().filter(|metric| metric.by_class).map(|metric| MetricDifference {
            metric: class_metric(label, metric.key),
            ..difference(metric, &pairs, &a, &b)
        }));
    }
    // Not every run measures every metric.
    all.retain(|row| row.a.is_some() || row.b.is_some());
    all
}

/// Compares pairs if the studies share seeds, and means otherwise.
fn difference(
    metric: &Metric,
    pairs: &[(&Summary, &Summary)],
    a: &[Summary],
    b: &[Summary],
) -> MetricDifference {
    let pairs = pairs.iter().map(|(a, b)| ((metric.value)(a), (metric.value)(b)));
    let pairs: Vec<(f64, f64)> = pairs.filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
    let all = |runs: &[Summary]| mean(&values(metric, runs));
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (left, right) = match (mean(&left), mean(&right)) {
        (Some(left), Some(right)) => (Some(left), Some(right)),
        (None, _) | (_, None) => (all(a), all(b)),
    };
    let paired = Interval::paired(&pairs.iter().map(|&(a, b)| (b, a)).collect::<Vec<_>>());
    let half_width = paired.and_then(|interval| interval.half_width);
    MetricDifference {
        metric: metric.key.to_owned(),
        pairs: pairs.len(),
        a: left,
        b: right,
        difference: left.zip(right).map(|(a, b)| b - a),
        relative: relative(left, right),
        half_width,
        differs: half_width.and_then(|_| paired.map(|interval| interval.excludes_zero())),
    }
}

impl StudyComparison {
    /// A table for each point, up to a limit. Metrics that differ beyond their interval are marked with a star. Columns
    /// that do not fit the width are left out, and long names of metrics are wrapped.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut out = format!("first:  {}\nsecond: {}\n", self.a, self.b);
        if !self.unrelated.is_empty() {
            out.push_str(&format!("UNRELATED: {}\n", self.unrelated.join("; ")));
        }
        if !self.unrelated.is_empty() || !self.unmatched.is_empty() {
            let common = plural(self.points.len() as u64, "pair");
            out.push_str(&format!("in common: {common} of a policy and a cell\n"));
        }
        if !self.experiments.is_empty() {
            out.push_str(&format!("the experiments differ: {}\n", spec_diff::summary(&self.experiments)));
        }
        let is_wide = self.points.len() > TABLES;
        let (same, others): (Vec<_>, Vec<_>) =
            self.points.iter().partition(|point| is_wide && point.is_same());
        for point in others.iter().take(TABLES) {
            let name = point_name(&point.policy, &point.cell);
            out.push_str(&format!("\n{name}  ({})\n{}\n", seeds(point), point_table(point, width)));
            out.push_str(&remarks(point));
        }
        if others.len() > TABLES {
            let more = count((others.len() - TABLES) as u64);
            out.push_str(&format!("\n{more} more points are not shown: select some with --policy and --at, or print all with --json\n"));
        }
        if others.iter().flat_map(|point| &point.metrics).any(|row| row.differs == Some(true)) {
            out.push_str("* marks differences whose paired 95 % interval does not contain zero\n");
        }
        if !same.is_empty() {
            let pairs = plural(same.len() as u64, "pair");
            out.push_str(&format!("\nequal seeds, identical runs: {pairs} of a policy and a cell\n"));
        }
        for line in self.unmatched.iter().take(UNMATCHED) {
            out.push_str(&format!("{line}\n"));
        }
        if self.unmatched.len() > UNMATCHED {
            out.push_str(&format!("and {} more\n", self.unmatched.len() - UNMATCHED));
        }
        out
    }
}

/// The number of compared seeds, and of the seeds of each study.
fn seeds(point: &ComparedPoint) -> String {
    let [a, b] = point.runs;
    let common = match point.paired_seeds {
        0 => return "no seed in common: means only, not paired".to_owned(),
        _ if point.identical && point.has_all_seeds() => return "equal seeds, identical runs".to_owned(),
        n if point.has_all_seeds() => plural(n as u64, "seed"),
        n => format!("{n} of {a} and {b} seeds"),
    };
    let compared = match point.paired_seeds {
        _ if point.identical => "identical runs",
        1 => "no interval",
        _ => "paired 95 % intervals",
    };
    format!("{common} in common: {compared}")
}

/// Remarks on the reliability of the numbers of a point, each on a line.
fn remarks(point: &ComparedPoint) -> String {
    let mut out = String::new();
    let sides = ["the first", "the second"];
    match &point.windows {
        [None, None] => {}
        [Some(a), Some(b)] if a == b => out.push_str(&format!("{a}\n")),
        windows => {
            for (side, window) in sides.iter().zip(windows) {
                let window = window.as_deref().unwrap_or("measured: all jobs");
                out.push_str(&format!("{side}, {window}\n"));
            }
        }
    }
    for (side, degraded) in sides.iter().zip([point.a_degraded, point.b_degraded]) {
        if degraded {
            out.push_str(&format!("DEGRADED: {side} departed from the experiment, see `volary report`\n"));
        }
    }
    for (side, injected) in sides.iter().zip([point.a_injected, point.b_injected]) {
        if injected {
            out.push_str(&format!("INJECTED: interference was injected into {side}\n"));
        }
    }
    if point.unequal {
        out.push_str("UNEQUAL: the studies had different injections: no difference is marked\n");
    }
    for (side, unfinished) in sides.iter().zip(point.unfinished) {
        if unfinished > 0 {
            out.push_str(&format!(
                "UNFINISHED: {} of {side} did not finish: times are of finished jobs, which are mostly the \
                fast ones\n",
                plural(unfinished, "job")
            ));
        }
    }
    let fewest = point.metrics.iter().map(|row| row.pairs).filter(|pairs| *pairs > 0).min();
    if let Some(fewest) = fewest.filter(|fewest| *fewest < point.paired_seeds) {
        out.push_str(&format!(
            "some metrics have values under fewer of these seeds, at least {fewest}; --json states how many\n"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use volary_engine::results::{Deadlines, MeasuredWindow, Planning, PredictionErrors};
    use volary_experiment::storage::fixture::{manifest, measured};

    use super::*;

    fn study(seeds: &[u64], scale: f64, policies: &[&str]) -> Study {
        let cell = [("load", json!(0.8))];
        let record = |policy: &str, seed| {
            RunRecord::new(&format!("{policy}{seed}"), &measured(policy, &cell, seed, scale, 200))
        };
        let runs = policies.iter().flat_map(|policy| seeds.iter().map(move |&seed| (*policy, seed)));
        let records = runs.map(|(policy, seed)| record(policy, seed)).collect();
        Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new())
    }

    fn metric<'a>(point: &'a ComparedPoint, name: &str) -> &'a MetricDifference {
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
            "pairing removes the variation that the studies share"
        );
        assert_eq!(metric(point, "utilization").differs, Some(false));
        assert_eq!(comparison.unmatched, ["only the second ran b, load = 0.8"]);
        let text = comparison.text(None);
        assert!(text.contains("+50.0\u{202f}%") && text.contains("3 of 4 and 4 seeds in common"), "{text}");
    }

    #[test]
    fn different_experiments_are_reported_with_their_keys() {
        let with = |jobs: u32| {
            let mut study = study(&[1], 1.0, &["a"]);
            study.manifest.spec = json!({"workload": {"jobs": jobs}, "claims": [jobs]});
            study
        };
        assert!(!compare(&with(5), &with(5)).text(None).contains("differ:"));
        let text = compare(&with(5), &with(6)).text(None);
        assert!(text.contains("the experiments differ: workload.jobs: first 5, second 6\n"), "{text}");
    }

    #[test]
    fn unrelated_runs_list_their_common_points() {
        let with = |experiment: &str, workload: &str, policies: &[&str]| {
            let mut study = study(&[1], 1.0, policies);
            study.manifest.experiment = experiment.to_owned();
            let point = json!({"label": "a", "resolved": {"workload": {workload: {}}}});
            study.manifest.spec = json!({"name": experiment, "points": [point]});
            study
        };
        let related = compare(&with("e", "trace", &["a"]), &with("e", "trace", &["a"])).text(None);
        assert!(!related.contains("UNRELATED") && !related.contains("in common"), "{related}");
        let renamed = compare(&with("e", "trace", &["a"]), &with("f", "trace", &["a"])).text(None);
        assert!(!renamed.contains("UNRELATED"), "a renamed file does not make runs unrelated: {renamed}");
        let text = compare(&with("e", "trace", &["a", "b"]), &with("f", "mix", &["a"])).text(None);
        let said = "UNRELATED: the jobs of the first come from \
                    workload.trace, those of the second from workload.mix\nin common: 1 pair of a policy and a cell\n\
                    the experiments differ: workload.trace: first {}, second nothing, workload.mix: ";
        assert!(text.contains(said) && text.contains("only the first ran b, load = 0.8\n"), "{text}");
        let mut other = with("f", "trace", &["a"]);
        other.manifest.spec["points"][0]["resolved"] =
            json!({"workload": {"trace": {"file": "x.tr"}}, "cluster": 1});
        let text = compare(&with("e", "trace", &["a"]), &other).text(None);
        assert!(
            text.contains("UNRELATED: e and f are experiments with different jobs on different clusters"),
            "{text}"
        );
    }

    #[test]
    fn means_are_compared_if_no_seed_is_shared() {
        let comparison = compare(&study(&[1, 2], 1.0, &["a"]), &study(&[3, 4], 1.0, &["a"]));
        let point = &comparison.points[0];
        assert_eq!((point.paired_seeds, point.identical), (0, false));
        let p50 = metric(point, "response_s.p50");
        assert!(p50.difference.is_some() && p50.half_width.is_none() && p50.differs.is_none(), "{p50:?}");
    }

    #[test]
    fn metrics_of_deadlines_plans_and_estimates_are_compared() {
        let with = |found: Option<u64>| {
            let mut study = study(&[1], 1.0, &["a"]);
            let summary = &mut study.cells[0].policies[0].runs[0].summary;
            summary.deadlines = found.map(|value| Deadlines { value, ..Deadlines::default() });
            summary.sections.planning = found.map(|preempted| Planning { preempted, ..Planning::default() });
            let estimates = PredictionErrors::default();
            summary.sections.prediction =
                found.map(|jobs| PredictionErrors { error: jobs as f64 / 10.0, ..estimates });
            study
        };
        let compared = |a, b| compare(&with(a), &with(b)).points.remove(0);
        let point = compared(Some(4), Some(6));
        for (name, difference) in
            [("deadlines.value", 2.0), ("planning.preempted", 2.0), ("prediction.error", 0.2)]
        {
            let found = metric(&point, name).difference.unwrap();
            assert!((found - difference).abs() < 1e-12, "{name}: {found}");
        }
        let sections = ["deadlines.", "planning.", "prediction."];
        let named = |row: &MetricDifference| sections.iter().any(|section| row.metric.starts_with(section));
        assert!(!compared(None, None).metrics.iter().any(named), "metrics without values are left out");
    }

    #[test]
    fn a_comparison_marks_a_study_with_degraded_runs() {
        let (good, mut bad) = (study(&[1, 2], 1.0, &["a"]), study(&[1, 2], 1.0, &["a"]));
        bad.cells[0].policies[0].runs[1].summary.fidelity =
            Some(volary_experiment::fidelity::fixture::degraded());
        let marks = |a, b| {
            let comparison = compare(a, b);
            let text = comparison.text(None);
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
    fn a_comparison_marks_a_study_with_injections() {
        let (good, mut bad) = (study(&[1, 2], 1.0, &["a"]), study(&[1, 2], 1.0, &["a"]));
        bad.cells[0].policies[0].runs[1].summary.injections =
            vec![volary_experiment::storage::fixture::injected()];
        let comparison = compare(&good, &bad);
        assert!(!comparison.points[0].a_injected && comparison.points[0].b_injected);
        let text = comparison.text(None);
        assert!(text.contains("INJECTED: interference was injected into the second\n"), "{text}");
        assert!(!text.contains("into the first"), "{text}");
    }

    #[test]
    fn a_comparison_states_the_measured_windows() {
        let with = |until_s: Option<f64>| {
            let mut study = study(&[1], 1.0, &["a"]);
            study.cells[0].policies[0].runs[0].summary.window = until_s.map(|until_s| MeasuredWindow {
                from_s: 2.0,
                until_s,
                auto: false,
                warm_up: 3,
                after: 4,
                unfinished: 0,
            });
            study
        };
        let text = |a, b| compare(&with(a), &with(b)).text(None);
        assert!(!text(None, None).contains("measured"));
        let equal = text(Some(8.0), Some(8.0));
        assert_eq!(equal.matches("\nmeasured: ").count(), 1, "{equal}");
        let other = text(None, Some(8.0));
        assert!(other.contains("\nthe first, measured: all jobs\nthe second, measured: "), "{other}");
        assert!(other.contains("that arrived from 2.00\u{202f}s to 8.00\u{202f}s; 3 before them"), "{other}");
    }

    #[test]
    fn studies_with_unequal_injections_are_not_compared() {
        let seeds = [1, 2, 3, 4];
        let (mut one, mut other) = (study(&seeds, 1.0, &["a"]), study(&seeds, 0.5, &["a"]));
        let differs = |a: &Study, b: &Study| metric(&compare(a, b).points[0], "response_s.p50").differs;
        assert_eq!(differs(&one, &other), Some(true));
        let injected = || vec![volary_experiment::storage::fixture::injected()];
        other.cells[0].policies[0].runs[1].summary.injections = injected();
        assert_eq!(differs(&one, &other), None);
        let text = compare(&one, &other).text(None);
        assert!(text.contains("UNEQUAL: the studies had different injections"), "{text}");
        one.cells[0].policies[0].runs[1].summary.injections = injected();
        assert_eq!(differs(&one, &other), Some(true), "both studies have the injection under the same seed");
    }

    /// Unfinished jobs are mostly slow: times of finished jobs are not comparable.
    #[test]
    fn times_of_a_study_with_unfinished_jobs_are_not_judged() {
        let seeds = [1, 2, 3, 4];
        let (good, mut bad) = (study(&seeds, 1.0, &["a"]), study(&seeds, 0.5, &["a"]));
        let p50 = "response_s.p50";
        assert_eq!(metric(&compare(&good, &bad).points[0], p50).differs, Some(true));
        bad.cells[0].policies[0].runs[1].summary.jobs.unfinished = 4;
        let comparison = compare(&good, &bad);
        let point = &comparison.points[0];
        assert_eq!((point.unfinished, metric(point, p50).differs), ([0, 4], None));
        assert_eq!(metric(point, "utilization").differs, Some(false));
        assert!(comparison.text(None).contains("UNFINISHED: 4 jobs of the second did not finish"));
        assert!(!compare(&bad, &bad).points[0].is_same());
    }

    #[test]
    fn cells_are_matched_by_value() {
        let with = |load: Value, patience: &str| {
            let mut study = study(&[1], 1.0, &["a"]);
            study.cells[0].cell = [("load".into(), load), ("patience".into(), json!(patience))].into();
            study
        };
        let comparison = compare(&with(json!(2), "10ms"), &with(json!(2.0), "10000us"));
        assert_eq!((comparison.points.len(), comparison.unmatched.len()), (1, 0));
        assert_eq!(compare(&with(json!(2), "10ms"), &with(json!(2), "11ms")).points.len(), 0);
    }

    #[test]
    fn seeds_that_are_left_out_are_counted() {
        let text = |a: &[u64], b: &[u64], scale| {
            compare(&study(a, 1.0, &["a"]), &study(b, scale, &["a"])).text(None)
        };
        let some = text(&[1, 2, 3], &[3, 4, 5], 1.0);
        assert!(some.contains("(1 of 3 and 3 seeds in common: identical runs)"), "{some}");
        assert!(text(&[1, 2], &[2], 2.0).contains("(1 of 2 and 1 seeds in common: no interval)"));
        assert!(text(&[1, 2], &[1, 2], 2.0).contains("(2 seeds in common: paired 95 % intervals)"));
    }

    #[test]
    fn equal_runs_are_identical_and_json_round_trips() {
        let one = study(&[1], 1.0, &["a"]);
        let comparison = compare(&one, &one);
        assert!(comparison.points[0].identical);
        assert_eq!(metric(&comparison.points[0], "response_s.p99").difference, Some(0.0));
        assert!(comparison.text(None).contains("(equal seeds, identical runs)\n┌"));
        let json = serde_json::to_string(&comparison).unwrap();
        assert_eq!(serde_json::from_str::<StudyComparison>(&json).unwrap(), comparison);
    }

    #[test]
    fn a_comparison_of_many_points_prints_few_tables() {
        let names: Vec<String> = (0..100).map(|i| format!("p{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let [one, other] = [1.0, 2.0].map(|scale| study(&[1], scale, &names));
        let same = compare(&one, &one).text(None);
        assert!(
            same.contains("equal seeds, identical runs: 100 pairs") && same.lines().count() < 10,
            "{same}"
        );
        let differ = compare(&one, &other).text(None);
        assert_eq!(differ.matches("┌").count(), TABLES);
        assert!(differ.contains("60 more points are not shown: select some with --policy"), "{differ}");
    }
}
