//! The results of one experiment, from one study directory or from the directories of its slices.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use volary_engine::results::{
    ActorLoad, Cell, ClaimResult, ClaimsLine, MeasuredWindow, Summary, Tally, Unit, Unsettled, cell_name,
    unequal_injections,
};

use crate::number::{self, UnitText};
use crate::stats::Interval;
use crate::storage::manifest::{BINDING, Failure, Manifest, PlannedPoint};
use crate::storage::run_record::RunRecord;

/// One experiment's results.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// The manifest; for several slices the manifest of the first slice, with the runs of all.
    pub manifest: Manifest,
    /// The study directories from which the results were loaded.
    pub folders: Vec<PathBuf>,
    /// Cells in the manifest's order.
    pub cells: Vec<CellGroup>,
    pub claims: Vec<ClaimResult>,
    /// Runs that could not finish.
    pub failures: Vec<Failure>,
    /// Runs of the plan that neither finished nor failed.
    pub missing: usize,
}

/// One point of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct CellGroup {
    /// Values of the swept keys.
    pub cell: Cell,
    /// Policies in the order of the experiment.
    pub policies: Vec<PolicyRuns>,
    /// Labels of the classes of jobs in the order of the experiment, if the experiment orders them.
    pub order: Vec<String>,
    /// Whether the cell lacks runs, because another slice has them, or they failed or are missing. The policies of a
    /// partial cell cannot be ranked.
    pub partial: bool,
}

/// A policy in one cell.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyRuns {
    pub policy: String,
    /// One run per seed, in order of seed.
    pub runs: Vec<RunRecord>,
}

impl Study {
    /// Groups records by cell and policy.
    pub fn assemble(
        manifest: Manifest,
        folders: Vec<PathBuf>,
        records: Vec<RunRecord>,
        claims: Vec<ClaimResult>,
        failures: Vec<Failure>,
    ) -> Self {
        let missing = manifest.runs.len().saturating_sub(records.len() + failures.len());
        let order = order_of_classes(&manifest);
        let mut cells: Vec<CellGroup> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for record in records {
            let cell = &record.summary.cell;
            let key = cell_key(cell);
            let at = *places.entry(key).or_insert_with(|| {
                let order = order.clone();
                cells.push(CellGroup { cell: cell.clone(), policies: Vec::new(), order, partial: false });
                cells.len() - 1
            });
            cells[at].add(record);
        }
        for runs in cells.iter_mut().flat_map(|group| &mut group.policies) {
            runs.runs.sort_by_key(|run| run.summary.seed);
        }
        if let Some(slices) = &manifest.slices {
            let whole = slices.runs / planned_cells(&manifest).max(1);
            for group in &mut cells {
                group.partial = whole > group.policies.iter().map(|runs| runs.runs.len() as u64).sum();
            }
        }
        if missing > 0 || !failures.is_empty() {
            mark_partial(&mut cells, &manifest);
        }
        Self { manifest, folders, cells, claims, failures, missing }
    }

    /// All runs by cell, policy and seed.
    pub fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.cells.iter().flat_map(|group| group.policies.iter().flat_map(|runs| &runs.runs))
    }

    /// Warnings known before the run.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        let listed = self.manifest.spec.get("warnings").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The `--set` texts that change the experiment, as written.
    pub fn changed(&self) -> Vec<&str> {
        let listed = self.manifest.spec.get("changed").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether a run had jobs; groups that gossip have none.
    pub fn has_jobs(&self) -> bool {
        self.records().any(|record| record.summary.jobs.submitted > 0)
    }

    /// The ways in which policies bind tasks to nodes, in words; `None` if all bind in the same way.
    pub fn binding(&self) -> Option<String> {
        self.records().next()?;
        let (_, said) = self.manifest.world.iter().find(|(name, _)| name == BINDING)?;
        Some(format!("tasks are bound {said}"))
    }

    /// Labels of all policies that have runs, in the order of the experiment.
    pub fn policies(&self) -> Vec<&str> {
        let found = || self.cells.iter().flat_map(|group| &group.policies).map(|runs| runs.policy.as_str());
        let known: BTreeSet<&str> = found().collect();
        let planned = self.manifest.points().map(PlannedPoint::label).filter(|label| known.contains(label));
        let mut seen = BTreeSet::new();
        planned.chain(found()).filter(|label| seen.insert(*label)).collect()
    }

    /// The swept keys with the values that occur, in order of first appearance.
    pub fn swept(&self) -> BTreeMap<&str, Vec<&Value>> {
        let mut keys: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for (key, value) in self.cells.iter().flat_map(|group| &group.cell) {
            let values = keys.entry(key).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        keys
    }

    /// Largest number of replications of a policy in a cell.
    pub fn replications(&self) -> usize {
        let policies = self.cells.iter().flat_map(|group| &group.policies);
        policies.map(|runs| runs.runs.len()).max().unwrap_or(0)
    }
}

/// Marks the cells with fewer runs than planned, and the cells in which a policy lacks a seed that another policy has.
fn mark_partial(cells: &mut [CellGroup], manifest: &Manifest) {
    let mut planned: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for point in manifest.points() {
        planned.entry(cell_key(&point.cell())).or_default().push(point.label());
    }
    let whole = manifest.runs.len() / planned.len().max(1);
    for group in cells {
        let runs = || group.policies.iter().flat_map(|runs| &runs.runs);
        let seeds: BTreeSet<u64> = runs().map(|run| run.summary.seed).collect();
        let is_whole = |label: &str| {
            let runs = group.policies.iter().find(|runs| runs.policy == label);
            runs.is_some_and(|runs| runs.runs.len() == seeds.len())
        };
        let labels = planned.get(&cell_key(&group.cell));
        let lacks_seeds = labels.is_some_and(|labels| !labels.iter().all(|label| is_whole(label)));
        group.partial |= lacks_seeds || runs().count() < whole;
    }
}

/// The values of a cell as a key.
pub(super) fn cell_key(cell: &Cell) -> String {
    serde_json::to_string(cell).unwrap_or_default()
}

/// Number of cells of an experiment.
fn planned_cells(manifest: &Manifest) -> u64 {
    let mut cells: Vec<Cell> = manifest.points().map(PlannedPoint::cell).collect();
    cells.dedup();
    cells.len() as u64
}

/// Labels of classes of jobs: the classes of the experiment's mix in its order, then those that result from deadlines
/// and cutoffs.
fn order_of_classes(manifest: &Manifest) -> Vec<String> {
    let classes = manifest.points().next().and_then(|point| point.world("/workload/mix/class")?.as_array());
    let named = classes.into_iter().flatten().filter_map(|class| class.get("name")?.as_str());
    named.chain(["slo", "be", "short", "long"]).map(str::to_owned).collect()
}

/// The mark of a policy in charts if interference was injected into some of its runs.
pub const INJECTED: &str = " (injected)";

impl PolicyRuns {
    /// Whether interference was injected into a run of the policy in this cell.
    pub fn is_injected(&self) -> bool {
        self.runs.iter().any(|run| !run.summary.injections.is_empty())
    }

    /// The name of the policy in charts.
    pub fn label(&self) -> String {
        format!("{}{}", self.policy, if self.is_injected() { INJECTED } else { "" })
    }

    /// Whether several seeds gave the same times, because nothing random depends on the seed.
    pub fn seeds_change_nothing(&self) -> bool {
        let times = |run: &Summary| {
            (run.times.response_s, run.times.wait_s, run.times.slowdown, run.makespan_s, run.utilization)
        };
        let runs = || self.runs.iter().map(|run| times(&run.summary));
        self.runs.len() > 1 && runs().zip(runs().skip(1)).all(|(one, next)| one == next)
    }

    /// Mean and interval of a number over the runs; `None` if no run has the number.
    pub fn interval(&self, metric: impl Fn(&Summary) -> f64) -> Option<Interval> {
        Interval::new(&self.runs.iter().map(|run| metric(&run.summary)).collect::<Vec<_>>())
    }

    /// Mean of a number over the runs that have it; NaN if no run has it.
    pub fn mean(&self, metric: impl Fn(&Summary) -> f64) -> f64 {
        self.interval(metric).map_or(f64::NAN, |interval| interval.mean)
    }

    /// The numbers of two policies under each seed for which both policies have a number.
    pub fn pairs(&self, other: &Self, metric: impl Fn(&Summary) -> f64) -> Vec<(f64, f64)> {
        let of_seed = |seed| other.runs.binary_search_by_key(&seed, |run| run.summary.seed).ok();
        let pair = |run: &Summary| Some((metric(run), metric(&other.runs[of_seed(run.seed)?].summary)));
        let pairs = self.runs.iter().filter_map(|run| pair(&run.summary));
        pairs.filter(|(a, b)| a.is_finite() && b.is_finite()).collect()
    }
}

/// The measured window of a run in words; `None` if the run is measured whole.
pub fn measured_window(run: &Summary) -> Option<String> {
    let MeasuredWindow { from_s, until_s, auto, warm_up, after, unfinished } = run.window?;
    let bounds = Unit::Seconds.column(&[(from_s, None), (until_s, None)]);
    let said: Vec<String> = bounds.texts().collect();
    let by = if auto { " (by MSER-5)" } else { "" };
    let open = match unfinished {
        0 => String::new(),
        unfinished => format!("; {} of these did not finish", number::count(unfinished)),
    };
    Some(format!(
        "measured: {} that arrived from {}{by} to {}; {} before them are the warm-up, and {} came after them{open}",
        number::plural(run.jobs.submitted, "job"),
        said[0],
        said[1],
        number::count(warm_up),
        number::count(after),
    ))
}

impl CellGroup {
    /// The policies to which seeds make no difference, in words; `None` if there is none.
    pub fn constant(&self) -> Option<String> {
        let constant: Vec<_> = self.policies.iter().filter(|runs| runs.seeds_change_nothing()).collect();
        let seeds = constant.first()?.runs.len();
        let all = constant.len() == self.policies.len();
        let names: Vec<&str> = constant.iter().map(|runs| runs.policy.as_str()).collect();
        let of = if all { String::new() } else { format!(" to {}", names.join(", ")) };
        Some(format!(
            "seeds make no difference{of}: {seeds} replications have the same results, so there is no interval, and \
             further replications would add nothing"
        ))
    }

    /// The policies with one central scheduler in a cell with several schedulers, in words; `None` if there is none.
    pub fn central(&self) -> Option<String> {
        let unused = |runs: &PolicyRuns| runs.runs.first().and_then(|run| run.summary.unused_schedulers);
        let all = self.policies.iter().find_map(unused)? + 1;
        let central = self.policies.iter().filter(|runs| unused(runs).is_some());
        let names: Vec<&str> = central.map(|runs| runs.policy.as_str()).collect();
        Some(format!("one central scheduler instead of {all}: {}", names.join(", ")))
    }

    /// The measured windows in words, by the first run of each policy.
    pub fn measured(&self) -> impl Iterator<Item = String> {
        let mut said: Vec<(String, Vec<&str>)> = Vec::new();
        for runs in &self.policies {
            let Some(first) = runs.runs.first() else { continue };
            let Some(text) = measured_window(&first.summary) else { continue };
            match said.iter_mut().find(|(known, _)| *known == text) {
                Some((_, policies)) => policies.push(&runs.policy),
                None => said.push((text, vec![&runs.policy])),
            }
        }
        let seeds = self.policies.iter().any(|runs| runs.runs.len() > 1);
        let seed = if seeds { ", under the first seed" } else { "" };
        let one = said.len() == 1;
        said.into_iter().map(move |(text, policies)| {
            let whose = if one { String::new() } else { format!(" ({})", policies.join(", ")) };
            format!("{text}{seed}{whose}")
        })
    }

    /// The policies under which most runs had not settled, in words.
    pub fn unsettled(&self) -> impl Iterator<Item = String> {
        self.policies.iter().filter_map(|runs| {
            let found: Vec<Unsettled> = runs.runs.iter().filter_map(|run| run.summary.unsettled).collect();
            let mean = |of: fn(&Unsettled) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
            let [first, last] = [mean(|run| run.first_s), mean(|run| run.last_s)].map(number::seconds);
            (2 * found.len() > runs.runs.len()).then(|| {
                format!(
                    "UNSETTLED: {}: the first tenth of the jobs took {first} in the mean, and the last tenth {last}: the run \
                     warms up, or its load changes; see run.measure",
                    runs.policy
                )
            })
        })
    }

    /// The policies whose actors were overloaded by messages in the first run, in words.
    pub fn overloads(&self) -> impl Iterator<Item = String> {
        self.policies.iter().filter_map(|runs| runs.runs.first()).flat_map(|run| {
            let Summary { policy, actors, .. } = &run.summary;
            let length = run.summary.length_s();
            let of = move |(role, load): (&String, &ActorLoad)| load.overload(role, length);
            actors.iter().filter_map(of).map(move |said| format!("OVERLOAD: {policy}: {said}"))
        })
    }

    /// The offered load in words; `None` if it is not known.
    pub fn offered(&self) -> Option<String> {
        let mut runs = self.policies.iter().flat_map(|runs| &runs.runs);
        let load = runs.find_map(|run| run.load)?;
        Some(format!("offered load: ρ = {}", number::load(load)))
    }

    /// The reason why the policies met different conditions: interference was injected into some of the runs, or
    /// unequally. `None` if the conditions were equal.
    pub fn unequal(&self) -> Option<String> {
        unequal_injections(self.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary))
    }

    /// Whether the policies can be ranked: no run is missing, and all runs met the same conditions.
    pub fn is_ranked(&self) -> bool {
        !self.partial && self.unequal().is_none()
    }

    /// The runs of a policy.
    pub fn of(&self, policy: &str) -> Option<&PolicyRuns> {
        self.policies.iter().find(|runs| runs.policy == policy)
    }

    /// Labels of the classes of jobs in the order of the experiment; empty if there is one class. Labels that the
    /// experiment does not name, such as users, follow in descending order of their numbers of jobs; `other` is last.
    pub fn classes(&self) -> Vec<&str> {
        let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
        for run in self.policies.iter().flat_map(|runs| &runs.runs) {
            for (label, class) in &run.summary.classes {
                classes.entry(label).or_insert(class.jobs);
            }
        }
        let mut classes: Vec<_> = classes.into_iter().collect();
        let place =
            |label: &str| self.order.iter().position(|known| known == label).unwrap_or(self.order.len());
        classes.sort_by_key(|&(label, jobs)| {
            (place(label), label == volary_engine::workload::OTHER, Reverse(jobs))
        });
        classes.into_iter().map(|class| class.0).collect()
    }

    fn add(&mut self, record: RunRecord) {
        let policy = &record.summary.policy;
        if let Some(runs) = self.policies.iter_mut().find(|runs| runs.policy == *policy) {
            runs.runs.push(record);
        } else {
            self.policies.push(PolicyRuns { policy: policy.clone(), runs: vec![record] });
        }
    }

    /// The swept values as text, such as `load = 0.8, order = 2`; empty if nothing is swept.
    pub fn name(&self) -> String {
        cell_name(&self.cell)
    }
}

/// The JSON lines of the runs of a study.
pub(super) fn summary_lines(study: &Study) -> String {
    let mut out = String::new();
    for record in study.records() {
        push_line(&mut out, &record.line());
    }
    out
}

/// The output of `--json`: a line per run, then the claims if there are any.
pub fn json_lines(study: &Study) -> String {
    let mut out = summary_lines(study);
    if !study.claims.is_empty() {
        let claims = study.claims.clone();
        push_line(&mut out, &ClaimsLine { tallies: Tally::by_origin(&claims), claims });
    }
    out
}

/// Appends a value as a line of JSON. Serialization fails only for maps with keys that are not strings; results have
/// none.
fn push_line<T: Serialize>(out: &mut String, value: &T) {
    if let Ok(line) = serde_json::to_string(value) {
        out.push_str(&line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::fixture::manifest;
    use crate::storage::fixture::measured;
    use volary_engine::results::{Origin, Verdict};

    /// A cell with a missing run, or with different seeds, does not rank its two policies.
    #[test]
    fn cells_that_lack_runs_are_partial() {
        let partial = |found: &[(&str, u64)]| {
            let mut manifest = manifest(&["1", "2", "3", "4"]);
            let point = |label: &str| json!({"label": label, "cell": {}});
            manifest.spec = json!({"points": [point("a"), point("b")]});
            let record = |&(policy, seed): &(&str, u64)| {
                RunRecord::new(&format!("{policy}{seed}"), &measured(policy, &[], seed, 1.0, 2))
            };
            let records = found.iter().map(record).collect();
            Study::assemble(manifest, Vec::new(), records, Vec::new(), Vec::new()).cells[0].partial
        };
        assert!(!partial(&[("a", 1), ("a", 2), ("b", 1), ("b", 2)]));
        assert!(partial(&[("a", 1), ("a", 2), ("b", 1)]));
        assert!(partial(&[("a", 1), ("b", 2)]), "the policies ran under different seeds");
        assert!(partial(&[("a", 1), ("b", 1)]), "the second seed is missing");
        assert!(partial(&[("a", 1), ("a", 2)]), "a policy is missing");
    }

    #[test]
    fn json_lines_parse_one_by_one() {
        let record = |seed| RunRecord::new(&format!("a{seed}"), &measured("a", &[], seed, 1.0, 100));
        let claim = ClaimResult {
            says: "s".into(),
            origin: Origin::Paper,
            tolerance: None,
            verdict: Verdict::NotTested,
            measured: [].into(),
        };
        let records = (0..4).map(record).collect();
        let study = Study::assemble(manifest(&[]), Vec::new(), records, vec![claim], Vec::new());
        let lines = json_lines(&study);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 5);
        let first: Summary = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(first, study.cells[0].policies[0].runs[0].summary);
        assert_eq!(
            lines[4],
            concat!(
                r#"{"claims":[{"says":"s","origin":"paper","verdict":"not-tested","measured":{}}],"#,
                r#""tallies":{"paper":{"holds":0,"other_size":0,"fails":0,"within_noise":0,"not_tested":1,"our_tolerance":0,"#,
                r#""one_seed":0}}}"#,
            )
        );
    }
}
