//! The evaluation of claims on results.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use volary_actors::message::kinds;
use volary_engine::results::{
    Cell, ClaimResult, Findings, Origin, Summary, Verdict, censored_sections, in_words, is_censored, same,
    unequal_injections,
};

use super::check::{Check, Claim};
use super::form::{Form, MetricName, Op, Side};
use crate::parallel;
use crate::stats::Interval;

/// Judges claims. `cells` are the requested cells: a cell without results leaves a claim untested rather than
/// satisfied. In the cells `stand_ins`, a generator replaced a missing trace; only claims of origin `ours` are tested
/// there.
pub fn judge(
    claims: &[Claim],
    cells: &[Cell],
    stand_ins: &[Cell],
    summaries: &[Summary],
) -> Vec<ClaimResult> {
    if claims.is_empty() {
        return Vec::new();
    }
    let table = Table::new(cells, stand_ins, summaries);
    claims.iter().map(|claim| table.judge(claim)).collect()
}

/// The reason in a finding for a policy that has no results in a cell.
pub const NOT_RUN: &str = "was not run";

/// Results by label, cell and seed.
struct Table<'a> {
    cells: &'a [Cell],
    stand_ins: &'a [Cell],
    lines: BTreeMap<(&'a str, usize), BTreeMap<u64, Line<'a>>>,
}

/// The results of one cell, policy and seed.
struct Line<'a> {
    summary: &'a Summary,
    /// The numbers that checks can compare.
    numbers: Value,
    /// Whether the run left jobs unfinished.
    open: bool,
}

/// One comparison in one cell.
struct Finding {
    holds: Option<bool>,
    numbers: Value,
}

/// The value of a trend in one cell.
struct TrendPoint {
    /// The swept value as a number; `None` for other values.
    order: Option<f64>,
    at: Value,
    value: Option<f64>,
    each: BTreeMap<u64, Option<f64>>,
}

/// Half-width of the 95 % interval of a mean over seeds, from the value of each seed; `None` with fewer than two seeds,
/// or if a seed has no value.
fn half_width(each: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    Interval::new(&each.collect::<Option<Vec<f64>>>()?)?.half_width
}

/// Whether a mean may be due to chance, given its half-width. A constant value is not noise.
fn within_noise(mean: f64, half_width: f64) -> bool {
    half_width > 0.0 && mean.abs() <= half_width
}

impl<'a> Table<'a> {
    fn new(cells: &'a [Cell], stand_ins: &'a [Cell], summaries: &'a [Summary]) -> Self {
        let mut lines: BTreeMap<_, BTreeMap<u64, Line<'a>>> = BTreeMap::new();
        let places: HashMap<&Cell, usize> = cells.iter().enumerate().map(|(at, cell)| (cell, at)).collect();
        let numbers = parallel::map(0..summaries.len(), |at| numbers(&summaries[at]));
        for (summary, numbers) in summaries.iter().zip(numbers) {
            let Some(&cell) = places.get(&summary.cell) else { continue };
            let line = Line { summary, numbers, open: is_open(summary) };
            lines.entry((summary.policy.as_str(), cell)).or_default().insert(summary.seed, line);
        }
        Self { cells, stand_ins, lines }
    }

    fn judge(&self, claim: &Claim) -> ClaimResult {
        let mut measured = Findings::default();
        let mut verdict = if claim.checks.is_empty() { Verdict::NotTested } else { Verdict::Holds };
        for (at, check) in claim.comparisons().enumerate() {
            let is_size = at >= claim.checks.len();
            let findings = self.findings(claim, check);
            if findings.is_empty() {
                verdict = verdict.max(Verdict::NotTested);
            }
            for (cell, mut finding) in findings {
                if is_size {
                    finding.numbers["size"] = json!(true);
                }
                if claim.origin != Origin::Ours && finding.numbers["stand_in"] == true {
                    finding.numbers["on_generated"] = json!(finding.holds.take());
                    finding.numbers["holds"] = Value::Null;
                }
                verdict = verdict.max(Verdict::of(finding.holds, is_size));
                measured.insert(name(check, &cell), finding.numbers);
            }
        }
        let Claim { origin, tolerance, .. } = *claim;
        ClaimResult { says: claim.says.clone(), origin, tolerance, verdict, measured }
    }

    /// The findings of a check in every cell it applies to.
    fn findings(&self, claim: &Claim, check: &Check) -> Vec<(Cell, Finding)> {
        let mut cells = self.cells.iter().filter(|cell| applies(claim, cell)).cloned().collect::<Vec<_>>();
        match &check.form {
            Form::Compare { left, op, right } => {
                distinct(&mut cells, &pinned(check));
                cells.into_iter().map(|cell| self.compare(check, cell, left, *op, right)).collect()
            }
            Form::Trend { side, rises, key } => self.trends(check, &cells, side, *rises, key),
            Form::Below { left, right } => {
                distinct(&mut cells, &pinned(check));
                cells.into_iter().map(|cell| self.below(check, cell, left, right)).collect()
            }
        }
    }

    /// The comparison at the percentile where the left distribution is largest relative to the right one. A comparison
    /// that holds is within noise if any percentile is; a comparison that fails, if every failing percentile is.
    fn below(&self, check: &Check, cell: Cell, left: &MetricName, right: &MetricName) -> (Cell, Finding) {
        let whole =
            self.lines(left, &cell).and_then(|lines| at_path(&lines.values().next()?.numbers, &left.path));
        let names = whole.and_then(Value::as_object).into_iter().flat_map(|numbers| numbers.keys());
        let at = |metric: &MetricName, name: &String| {
            let path = metric.path.iter().chain([name]).cloned().collect();
            Side::Metric(MetricName { path, ..metric.clone() })
        };
        let findings = names.filter(|name| name.starts_with('p')).map(|name| {
            let (left, right) = (at(left, name), at(right, name));
            let (_, mut finding) = self.compare(check, cell.clone(), &left, Op::Sign("<"), &right);
            finding.numbers["at"] = json!(name);
            finding
        });
        let findings: Vec<Finding> = findings.collect();
        let unsure = |finding: &Finding| finding.numbers["within_noise"] == true;
        let mut failed = findings.iter().filter(|finding| finding.holds == Some(false)).peekable();
        let is_noise = if failed.peek().is_some() { failed.all(unsure) } else { findings.iter().any(unsure) };
        let ratio = |finding: &Finding| {
            let side = |side| finding.numbers[side].as_f64();
            side("left").zip(side("right")).map_or(f64::INFINITY, |(left, right)| left / right)
        };
        let mut worst = findings.into_iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        if let Some(worst) = &mut worst
            && worst.numbers.get("within_noise").is_some()
        {
            worst.numbers["within_noise"] = json!(is_noise);
        }
        let untested = || {
            let why = self.why(check, &cell, &self.seeds(check, &cell));
            Finding { holds: None, numbers: json!({ "holds": null, "why": why }) }
        };
        (cell.clone(), worst.unwrap_or_else(untested))
    }

    fn compare(&self, check: &Check, cell: Cell, left: &Side, op: Op, right: &Side) -> (Cell, Finding) {
        let seeds = self.seeds(check, &cell);
        let at = |seeds: &BTreeSet<u64>| {
            let of = |metric: &MetricName| self.mean(metric, &cell, seeds);
            left.value(&of).zip(right.value(&of))
        };
        let means = at(&seeds);
        let unequal = self.unequal(check, &[&cell]);
        // One replication that differs refutes an equality.
        let exact = op == Op::Sign("==");
        let each_holds = || seeds.iter().all(|&seed| at(&[seed].into()).is_some_and(|(l, r)| op.holds(l, r)));
        let holds = means
            .filter(|_| unequal.is_none())
            .map(|(l, r)| if exact { each_holds() } else { op.holds(l, r) });
        let mut numbers = json!({ "left": means.map(|m| m.0), "right": means.map(|m| m.1), "holds": holds });
        for (name, side) in [("left_of", left), ("right_of", right)] {
            if let Some(of) = side.scaled().and_then(|metric| self.mean(metric, &cell, &seeds)) {
                numbers[name] = json!(of);
            }
        }
        let each = seeds.iter().map(|&seed| at(&[seed].into()).map(|(l, r)| l - r));
        if let Some(((l, r), half_width)) = means.zip(half_width(each)) {
            numbers["half_width"] = json!(half_width);
            let mut edges = [-1.0, 1.0].map(|side| l - r - side * op.band(r)).into_iter();
            numbers["within_noise"] =
                json!(!exact && edges.any(|distance| within_noise(distance, half_width)));
        }
        if holds.is_none() {
            numbers["why"] = json!(unequal.map_or_else(|| self.why(check, &cell, &seeds), |why| vec![why]));
        }
        self.mark(check, &[&cell], &mut numbers);
        (cell, Finding { holds, numbers })
    }

    /// The reasons why a comparison has no numbers: the first reason of each metric without a number.
    fn why(&self, check: &Check, cell: &Cell, seeds: &BTreeSet<u64>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for metric in check.metrics() {
            let why = self.lacks(metric, cell, seeds);
            found.extend(why.filter(|why| !found.contains(why)));
        }
        if found.is_empty() {
            let seeds = if seeds.is_empty() {
                "no seed was run with all of its policies"
            } else {
                "a side is not finite"
            };
            found.push(seeds.to_owned());
        }
        found
    }

    /// The reason why a metric has no number in a cell: its policy was not run, left jobs unfinished, has no such
    /// number, or has the number without a value.
    fn lacks(&self, metric: &MetricName, cell: &Cell, seeds: &BTreeSet<u64>) -> Option<String> {
        let MetricName { label, path, .. } = metric;
        let Some(lines) = self.lines(metric, cell) else {
            let elsewhere = self.lines.keys().any(|(known, _)| known == label);
            let place = if elsewhere { "in a cell of the check " } else { "" };
            return Some(format!("{place}`{label}` {NOT_RUN}"));
        };
        let name = path.join(".");
        lines.iter().filter(|(seed, _)| seeds.contains(seed)).find_map(|(_, line)| {
            match at_path(&line.numbers, path) {
                Some(Value::Number(_)) => None,
                _ if line.open && is_censored(path.iter().map(String::as_str)) => {
                    Some(format!("`{label}` left jobs unfinished"))
                }
                None => Some(format!("the results of `{label}` have no `{name}`")),
                Some(_) => Some(format!("`{name}` of `{label}` has no value: nothing was counted")),
            }
        })
    }

    /// One finding for each group of cells that differ only in `key`.
    fn trends(
        &self,
        check: &Check,
        cells: &[Cell],
        side: &Side,
        rises: bool,
        key: &str,
    ) -> Vec<(Cell, Finding)> {
        let mut lines: Vec<(Cell, Vec<&Cell>)> = Vec::new();
        for cell in cells {
            let mut rest = cell.clone();
            rest.remove(key);
            match lines.iter_mut().find(|(other, _)| *other == rest) {
                Some((_, line)) => line.push(cell),
                None => lines.push((rest, vec![cell])),
            }
        }
        lines.into_iter().map(|(rest, line)| (rest, self.trend(check, line, side, rises, key))).collect()
    }

    fn trend(&self, check: &Check, line: Vec<&Cell>, side: &Side, rises: bool, key: &str) -> Finding {
        let mut points: Vec<TrendPoint> =
            line.iter().map(|cell| self.trend_point(check, cell, side, key)).collect();
        // Numbers and durations are sorted; other values keep the written order.
        if points.iter().all(|point| point.order.is_some()) {
            points.sort_by(|a, b| a.order.partial_cmp(&b.order).unwrap_or(std::cmp::Ordering::Equal));
        }
        let shown: Vec<Value> = points.iter().map(|point| json!([point.at, point.value])).collect();
        let pairs =
            || points.windows(2).map(|pair| if rises { (&pair[1], &pair[0]) } else { (&pair[0], &pair[1]) });
        let steps = pairs().map(|(a, b)| Some(a.value? - b.value?)).collect::<Option<Vec<f64>>>();
        let steps = steps.filter(|_| points.len() > 1);
        let unequal = self.unequal(check, &line);
        let steps = steps.filter(|_| unequal.is_none());
        let holds = steps.as_ref().map(|steps| steps.iter().all(|&step| step >= 0.0));
        let mut numbers = json!({ "along": shown, "holds": holds });
        if let Some(why) = unequal {
            numbers["why"] = json!([why]);
        }
        // Half-widths over the seeds measured for both cells of a step.
        let noise = pairs().map(|(a, b)| {
            let common = a.each.iter().filter_map(|(seed, value)| Some((*value, *b.each.get(seed)?)));
            half_width(common.map(|(a, b)| Some(a? - b?)))
        });
        if let Some((steps, noise)) = steps.zip(noise.collect::<Option<Vec<f64>>>()) {
            // If the trend holds, every step decides. If the trend fails, only the steps against it decide.
            let deciding =
                steps.into_iter().zip(noise).filter(|(step, _)| holds == Some(true) || *step < 0.0);
            let mut unsure = deciding.map(|(step, half_width)| within_noise(step, half_width));
            let within = if holds == Some(true) { unsure.any(|u| u) } else { unsure.all(|u| u) };
            numbers["within_noise"] = json!(within);
        }
        self.mark(check, &line, &mut numbers);
        Finding { holds, numbers }
    }

    /// Adds the unit of the numbers, and marks for degraded runs, for injections and for generated jobs.
    fn mark(&self, check: &Check, cells: &[&Cell], numbers: &mut Value) {
        if let Some(unit) = check.unit() {
            numbers["unit"] = json!(unit);
        }
        if self.runs(check, cells).any(Summary::is_degraded) {
            numbers["degraded"] = json!(true);
        }
        if self.runs(check, cells).any(|run| !run.injections.is_empty()) {
            numbers["injected"] = json!(true);
        }
        if cells.iter().any(|cell| self.uses_stand_in(check, cell)) {
            numbers["stand_in"] = json!(true);
        }
    }

    /// Whether the check uses runs with generated jobs in place of a missing trace.
    fn uses_stand_in(&self, check: &Check, cell: &Cell) -> bool {
        let mut places = check.metrics().into_iter().filter_map(|metric| metric.place(cell, self.cells));
        places.any(|place| self.stand_ins.contains(&self.cells[place]))
    }

    fn trend_point(&self, check: &Check, cell: &Cell, side: &Side, key: &str) -> TrendPoint {
        let seeds = self.seeds(check, cell);
        let value = |seeds: &BTreeSet<u64>| side.value(&|metric| self.mean(metric, cell, seeds));
        let at = cell.get(key).cloned().unwrap_or_default();
        let each = seeds.iter().map(|&seed| (seed, value(&[seed].into()))).collect();
        TrendPoint { order: quantity(&at), at, value: value(&seeds), each }
    }

    /// Seeds under which every metric of the check was measured. All means are over these seeds, and thus over the same
    /// worlds.
    fn seeds(&self, check: &Check, cell: &Cell) -> BTreeSet<u64> {
        let sets = check.metrics().into_iter().map(|metric| {
            self.lines(metric, cell).map(|lines| lines.keys().copied().collect()).unwrap_or_default()
        });
        sets.reduce(|a: BTreeSet<u64>, b| &a & &b).unwrap_or_default()
    }

    /// The runs that the check uses.
    fn runs<'b>(&'b self, check: &'b Check, cells: &'b [&Cell]) -> impl Iterator<Item = &'a Summary> {
        cells.iter().flat_map(move |cell| {
            let seeds = self.seeds(check, cell);
            let lines =
                check.metrics().into_iter().filter_map(move |metric| self.lines(metric, cell)).flatten();
            lines.filter(move |(seed, _)| seeds.contains(seed)).map(|(_, line)| line.summary)
        })
    }

    /// The reason why runs are not compared: their injections differ; `None` if all injections are equal.
    fn unequal(&self, check: &Check, cells: &[&Cell]) -> Option<String> {
        unequal_injections(self.runs(check, cells))
    }

    fn lines<'b>(&'b self, metric: &'b MetricName, cell: &Cell) -> Option<&'b BTreeMap<u64, Line<'a>>> {
        self.lines.get(&(metric.label.as_str(), metric.place(cell, self.cells)?))
    }

    fn mean(&self, metric: &MetricName, cell: &Cell, seeds: &BTreeSet<u64>) -> Option<f64> {
        let lines = self.lines(metric, cell)?;
        let number = |line: &Line<'_>| at_path(&line.numbers, &metric.path)?.as_f64();
        let values: Vec<f64> = seeds.iter().map(|seed| number(lines.get(seed)?)).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// Whether jobs of a run have not finished.
const fn is_open(summary: &Summary) -> bool {
    summary.jobs.unfinished + summary.jobs.failed > 0
}

/// The numbers of a run by name. Kinds of messages that were not sent are added with 0, since results omit them.
/// Numbers that unfinished jobs would change are null.
pub(super) fn numbers(summary: &Summary) -> Value {
    let mut numbers = serde_json::to_value(summary).unwrap_or_default();
    if is_open(summary) {
        censored_sections().for_each(|key| numbers[key] = Value::Null);
        for class in numbers["classes"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            censored_sections().for_each(|key| class[key] = Value::Null);
        }
    }
    if let Some(by_kind) = numbers["messages"]["by_kind"].as_object_mut() {
        for (kind, _) in kinds() {
            by_kind.entry(kind).or_insert(json!(0));
        }
    }
    numbers
}

/// The value at a path. Names of message kinds contain dots.
pub(super) fn at_path<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    let Some((part, rest)) = path.split_first() else { return Some(value) };
    match value.get(part) {
        Some(below) => at_path(below, rest),
        None => value.get(path.join(".")),
    }
}

/// Whether the claim applies to this cell.
fn applies(claim: &Claim, cell: &Cell) -> bool {
    claim.when.iter().all(|(key, wanted)| match (cell.get(key), wanted) {
        (Some(value), Value::Array(any)) => any.iter().any(|one| same(one, value)),
        (Some(value), one) => same(one, value),
        (None, _) => false,
    })
}

/// Keys that every metric of the check sets in its own brackets. Cells that differ only in these keys give the same
/// finding.
fn pinned(check: &Check) -> BTreeSet<String> {
    let sets = check.metrics().into_iter().map(|m| m.at.iter().map(|(key, _)| key.clone()).collect());
    sets.reduce(|a: BTreeSet<String>, b| &a & &b).unwrap_or_default()
}

fn distinct(cells: &mut Vec<Cell>, pinned: &BTreeSet<String>) {
    if pinned.is_empty() {
        return;
    }
    let mut seen: Vec<Cell> = Vec::new();
    for mut cell in cells.drain(..) {
        cell.retain(|key, _| !pinned.contains(key));
        if !seen.contains(&cell) {
            seen.push(cell);
        }
    }
    *cells = seen;
}

/// A swept value as a number; a duration is converted to seconds.
fn quantity(value: &Value) -> Option<f64> {
    let span = |text: &str| text.parse::<volary_actors::base::Span>().ok().map(|s| s.as_secs_f64());
    value.as_f64().or_else(|| value.as_str().and_then(span))
}

/// The text of the check with its cell.
fn name(check: &Check, cell: &Cell) -> String {
    if cell.is_empty() {
        return check.text.clone();
    }
    let values: Vec<String> = cell.iter().map(|(key, value)| format!("{key}={}", in_words(value))).collect();
    format!("{} [{}]", check.text, values.join(", "))
}

#[cfg(test)]
mod tests;
