//! The evaluation of claims on results.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use volary_actors::message::KINDS;
use volary_engine::results::{Cell, ClaimResult, Findings, Summary, Verdict, same};

use super::check::{Check, Claim};
use super::form::{Form, Metric, Op, Side};
use crate::stats::Interval;

/// Judges claims. `cells` are the requested ones: a cell without results leaves a claim untested rather than
/// satisfied.
pub fn judge(claims: &[Claim], cells: &[Cell], summaries: &[Summary]) -> Vec<ClaimResult> {
    let table = Table::new(cells, summaries);
    claims.iter().map(|claim| table.judge(claim)).collect()
}

/// Results by label, cell and seed.
struct Table<'a> {
    cells: &'a [Cell],
    lines: BTreeMap<(&'a str, usize), BTreeMap<u64, Line>>,
}

/// One cell, policy and seed.
struct Line {
    /// The numbers that checks can compare.
    numbers: Value,
    /// Whether the run departed from what was asked, or had interference injected.
    degraded: bool,
}

/// One comparison in one cell.
struct Finding {
    holds: Option<bool>,
    numbers: Value,
}

/// A cell of a trend.
struct TrendPoint {
    /// The swept value as a number, if it is one.
    order: Option<f64>,
    at: Value,
    value: Option<f64>,
    each: BTreeMap<u64, Option<f64>>,
}

/// Half-width of the 95 % interval of a mean over seeds, from the value under each; `None` with fewer than two seeds,
/// or if a seed has no value.
fn half_width(each: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    Interval::new(&each.collect::<Option<Vec<f64>>>()?)?.half_width
}

/// Whether a mean of this size may be due to chance. A constant value is not noise.
fn within_noise(mean: f64, half_width: f64) -> bool {
    half_width > 0.0 && mean.abs() <= half_width
}

impl<'a> Table<'a> {
    fn new(cells: &'a [Cell], summaries: &'a [Summary]) -> Self {
        let mut lines: BTreeMap<_, BTreeMap<u64, Line>> = BTreeMap::new();
        for summary in summaries {
            let Some(cell) = cells.iter().position(|cell| *cell == summary.cell) else { continue };
            let mut numbers = serde_json::to_value(summary).unwrap_or_default();
            if summary.jobs.unfinished + summary.jobs.failed > 0 {
                // Only finished jobs have times. A policy that never finishes its slow jobs must not win because of
                // that.
                let censored =
                    ["response_s", "slowdown", "wait_s", "longest_s", "makespan_s", "drain_s", "unqueued"];
                censored.iter().for_each(|key| numbers[*key] = Value::Null);
                for class in numbers["classes"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
                    censored.iter().for_each(|key| class[*key] = Value::Null);
                }
            }
            // Results list only the kinds that were sent.
            if let Some(by_kind) = numbers["messages"]["by_kind"].as_object_mut() {
                for (kind, _) in KINDS {
                    by_kind.entry(kind).or_insert(json!(0));
                }
            }
            let degraded = summary.is_degraded() || !summary.injections.is_empty();
            let line = Line { numbers, degraded };
            lines.entry((summary.policy.as_str(), cell)).or_default().insert(summary.seed, line);
        }
        Self { cells, lines }
    }

    fn judge(&self, claim: &Claim) -> ClaimResult {
        let mut measured = Findings::default();
        let (mut failed, mut missing) = (false, claim.checks.is_empty());
        for check in &claim.checks {
            let findings = self.findings(claim, check);
            missing |= findings.is_empty();
            for (cell, finding) in findings {
                failed |= finding.holds == Some(false);
                missing |= finding.holds.is_none();
                measured.insert(name(check, &cell), finding.numbers);
            }
        }
        let verdict = match (failed, missing) {
            (true, _) => Verdict::Fails,
            (false, true) => Verdict::NotTested,
            (false, false) => Verdict::Holds,
        };
        ClaimResult { says: claim.says.clone(), origin: claim.origin, verdict, measured }
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

    /// The comparison at the percentile where the left one is largest relative to the right one.
    fn below(&self, check: &Check, cell: Cell, left: &Metric, right: &Metric) -> (Cell, Finding) {
        let whole =
            self.lines(left, &cell).and_then(|lines| at_path(&lines.values().next()?.numbers, &left.path));
        let names = whole.and_then(Value::as_object).into_iter().flat_map(|numbers| numbers.keys());
        let at = |metric: &Metric, name: &String| {
            let path = metric.path.iter().chain([name]).cloned().collect();
            Side::Metric(Metric { path, ..metric.clone() })
        };
        let findings = names.filter(|name| name.starts_with('p')).map(|name| {
            let (left, right) = (at(left, name), at(right, name));
            let (_, mut finding) = self.compare(check, cell.clone(), &left, Op::Sign("<"), &right);
            finding.numbers["at"] = json!(name);
            finding
        });
        let ratio = |finding: &Finding| {
            let side = |side| finding.numbers[side].as_f64();
            side("left").zip(side("right")).map_or(f64::INFINITY, |(left, right)| left / right)
        };
        let worst = findings.max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let untested = || Finding { holds: None, numbers: json!({ "holds": null }) };
        (cell.clone(), worst.unwrap_or_else(untested))
    }

    fn compare(&self, check: &Check, cell: Cell, left: &Side, op: Op, right: &Side) -> (Cell, Finding) {
        let seeds = self.seeds(check, &cell);
        let at = |seeds: &BTreeSet<u64>| {
            let of = |metric: &Metric| self.mean(metric, &cell, seeds);
            left.value(&of).zip(right.value(&of))
        };
        let means = at(&seeds);
        let holds = means.map(|(l, r)| op.holds(l, r));
        let mut numbers = json!({ "left": means.map(|m| m.0), "right": means.map(|m| m.1), "holds": holds });
        let each = seeds.iter().map(|&seed| at(&[seed].into()).map(|(l, r)| op.margin(l, r)));
        if let Some(((l, r), half_width)) = means.zip(half_width(each)) {
            numbers["half_width"] = json!(half_width);
            numbers["within_noise"] = json!(within_noise(op.margin(l, r), half_width));
        }
        if self.degraded(check, &cell, &seeds) {
            numbers["degraded"] = json!(true);
        }
        (cell, Finding { holds, numbers })
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
        let degraded = line.iter().any(|cell| self.degraded(check, cell, &self.seeds(check, cell)));
        let mut points: Vec<TrendPoint> =
            line.into_iter().map(|cell| self.trend_point(check, cell, side, key)).collect();
        // Numbers and durations are sorted; other values keep the written order.
        if points.iter().all(|point| point.order.is_some()) {
            points.sort_by(|a, b| a.order.partial_cmp(&b.order).unwrap_or(std::cmp::Ordering::Equal));
        }
        let shown: Vec<Value> = points.iter().map(|point| json!([point.at, point.value])).collect();
        let pairs =
            || points.windows(2).map(|pair| if rises { (&pair[1], &pair[0]) } else { (&pair[0], &pair[1]) });
        let steps = pairs().map(|(a, b)| Some(a.value? - b.value?)).collect::<Option<Vec<f64>>>();
        let steps = steps.filter(|_| points.len() > 1);
        let holds = steps.as_ref().map(|steps| steps.iter().all(|&step| step >= 0.0));
        let mut numbers = json!({ "along": shown, "holds": holds });
        // Half-widths over the seeds measured for both cells of a step.
        let noise = pairs().map(|(a, b)| {
            let common = a.each.iter().filter_map(|(seed, value)| Some((*value, *b.each.get(seed)?)));
            half_width(common.map(|(a, b)| Some(a? - b?)))
        });
        if let Some((steps, noise)) = steps.zip(noise.collect::<Option<Vec<f64>>>()) {
            // If the trend holds, every step decides; if not, only the steps against it do.
            let deciding =
                steps.into_iter().zip(noise).filter(|(step, _)| holds == Some(true) || *step < 0.0);
            let mut unsure = deciding.map(|(step, half_width)| within_noise(step, half_width));
            let within = if holds == Some(true) { unsure.any(|u| u) } else { unsure.all(|u| u) };
            numbers["within_noise"] = json!(within);
        }
        if degraded {
            numbers["degraded"] = json!(true);
        }
        Finding { holds, numbers }
    }

    fn trend_point(&self, check: &Check, cell: &Cell, side: &Side, key: &str) -> TrendPoint {
        let seeds = self.seeds(check, cell);
        let value = |seeds: &BTreeSet<u64>| side.value(&|metric| self.mean(metric, cell, seeds));
        let at = cell.get(key).cloned().unwrap_or_default();
        let each = seeds.iter().map(|&seed| (seed, value(&[seed].into()))).collect();
        TrendPoint { order: quantity(&at), at, value: value(&seeds), each }
    }

    /// Seeds under which every metric of the check was measured, so that all means are over the same worlds.
    fn seeds(&self, check: &Check, cell: &Cell) -> BTreeSet<u64> {
        let sets = check.metrics().into_iter().map(|metric| {
            self.lines(metric, cell).map(|lines| lines.keys().copied().collect()).unwrap_or_default()
        });
        sets.reduce(|a: BTreeSet<u64>, b| &a & &b).unwrap_or_default()
    }

    /// Whether a run that the check uses departed from what was asked.
    fn degraded(&self, check: &Check, cell: &Cell, seeds: &BTreeSet<u64>) -> bool {
        let lines = check.metrics().into_iter().filter_map(|metric| self.lines(metric, cell)).flatten();
        lines.filter(|(seed, _)| seeds.contains(seed)).any(|(_, line)| line.degraded)
    }

    fn lines<'b>(&'b self, metric: &'b Metric, cell: &Cell) -> Option<&'b BTreeMap<u64, Line>> {
        self.lines.get(&(metric.label.as_str(), metric.place(cell, self.cells)?))
    }

    fn mean(&self, metric: &Metric, cell: &Cell, seeds: &BTreeSet<u64>) -> Option<f64> {
        let lines = self.lines(metric, cell)?;
        let number = |line: &Line| at_path(&line.numbers, &metric.path)?.as_f64();
        let values: Vec<f64> = seeds.iter().map(|seed| number(lines.get(seed)?)).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// The value at a path. Names of message kinds contain dots.
fn at_path<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    let Some((part, rest)) = path.split_first() else { return Some(value) };
    match value.get(part) {
        Some(below) => at_path(below, rest),
        None => value.get(path.join(".")),
    }
}

/// Whether the claim is about this cell.
fn applies(claim: &Claim, cell: &Cell) -> bool {
    claim.when.iter().all(|(key, wanted)| match (cell.get(key), wanted) {
        (Some(value), Value::Array(any)) => any.iter().any(|one| same(one, value)),
        (Some(value), one) => same(one, value),
        (None, _) => false,
    })
}

/// Keys that every metric of the check takes from its own brackets: cells that differ only in these give the same
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
    let values: Vec<String> = cell.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{} [{}]", check.text, values.join(", "))
}

#[cfg(test)]
mod tests {
    use volary_engine::results::{ClassResults, Distribution, Messages, Origin};

    use super::*;

    /// A line of results whose median response time is `p50`.
    fn line(policy: &str, cell_of: &Value, seed: u64, p50: f64) -> Summary {
        let by_kind = [("probe.claim".to_owned(), 7)].into();
        Summary {
            policy: policy.into(),
            cell: cell(cell_of),
            seed,
            response_s: Distribution { p50, ..Distribution::default() },
            messages: Messages { by_kind, ..Messages::default() },
            ..Summary::default()
        }
    }

    fn cell(value: &Value) -> Cell {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn claim(when: &Value, check: &str) -> Claim {
        Claim {
            says: "s".into(),
            origin: Origin::Paper,
            when: cell(when),
            checks: vec![Check::parse(check).unwrap()],
        }
    }

    /// Two policies in four cells (k, l) under two seeds: a is 1 + k, b is 2 + k, noise that cancels.
    fn world() -> (Vec<Cell>, Vec<Summary>) {
        let (mut cells, mut lines) = (Vec::new(), Vec::new());
        for k in [0, 1] {
            for l in ["10ms", "9ms"] {
                let here = json!({ "s.k": k, "s.l": l });
                cells.push(cell(&here));
                for (seed, noise) in [(1, -0.25), (2, 0.25)] {
                    lines.push(line("a", &here, seed, 1.0 + f64::from(k) + noise));
                    lines.push(line("b", &here, seed, 2.0 + f64::from(k) + noise));
                }
            }
        }
        (cells, lines)
    }

    fn verdict(when: &Value, check: &str) -> Verdict {
        let (cells, lines) = world();
        judge(&[claim(when, check)], &cells, &lines)[0].verdict
    }

    #[test]
    fn comparisons_hold_or_fail_in_every_cell_they_apply_to() {
        let all = json!({});
        for (when, check, wanted) in [
            (&all, "a.response_s.p50 < b.response_s.p50", Verdict::Holds),
            (&all, "a.response_s.p50 < 0.6 * b.response_s.p50", Verdict::Fails),
            (&json!({ "s.k": 0 }), "a.response_s.p50 < 0.6 * b.response_s.p50", Verdict::Holds),
            (&json!({ "s.k": [0, 1] }), "b.response_s.p50 - a.response_s.p50 == 1s", Verdict::Holds),
            (&json!({ "s.k": 7 }), "a.response_s.p50 < 9", Verdict::NotTested),
            (&all, "a.response_s.p50 within 50% of b.response_s.p50", Verdict::Holds),
            (&all, "a.response_s.p50 within 40% of b.response_s.p50", Verdict::Fails),
            (&all, "a.response_s.p50[s.k=1] == b.response_s.p50[s.k=0]", Verdict::Holds),
            (&all, "a.response_s.p50[s.k=0] < b.response_s.p50", Verdict::Holds),
            (&all, "a.response_s.p50 / a.tasks.finished < 1", Verdict::NotTested),
            (&all, "a.response_s.p50 rises with s.k", Verdict::Holds),
            (&all, "a.response_s.p50 falls with s.k", Verdict::Fails),
            (&all, "a.messages.by_kind.probe.claim == 7", Verdict::Holds),
            (&all, "a.messages.by_kind.claim == 7", Verdict::NotTested),
            (&all, "a.messages.by_kind.probe.reserve == 0", Verdict::Holds),
            (&all, "c.response_s.p50 < 1", Verdict::NotTested),
        ] {
            assert_eq!(verdict(when, check), wanted, "{check} when {when}");
        }
    }

    #[test]
    fn a_cell_without_results_is_not_tested() {
        let (cells, mut lines) = world();
        lines.retain(|line| line.cell != cells[2] || line.policy != "b");
        let claims = [claim(&json!({}), "a.response_s.p50 < b.response_s.p50")];
        assert_eq!(judge(&claims, &cells, &lines)[0].verdict, Verdict::NotTested);
        // A failure elsewhere is still a failure.
        let claims = [claim(&json!({}), "a.response_s.p50 > b.response_s.p50")];
        assert_eq!(judge(&claims, &cells, &lines)[0].verdict, Verdict::Fails);
    }

    #[test]
    fn a_distribution_is_below_another_at_every_percentile() {
        let (cells, mut lines) = world();
        let below = |lines: &[Summary]| {
            let found =
                judge(&[claim(&json!({}), "a.response_s below b.response_s")], &cells, lines).remove(0);
            let at = found.measured.values().next().map(|numbers| numbers["at"].clone());
            (found.verdict, at.unwrap_or_default())
        };
        for line in &mut lines {
            let mean = line.response_s.p50;
            line.response_s = Distribution::of([0.1, 1.0, 3.0].map(|factor| factor * mean));
        }
        assert_eq!(below(&lines).0, Verdict::Holds);
        for line in lines.iter_mut().filter(|line| line.policy == "a") {
            line.response_s.p25 = 9.0;
        }
        assert_eq!(below(&lines), (Verdict::Fails, json!("p25")));
        lines[0].jobs.unfinished = 1;
        assert_eq!(below(&lines[..2]).0, Verdict::NotTested);
    }

    #[test]
    fn unfinished_jobs_leave_times_untested() {
        let (cells, mut lines) = world();
        let class = ClassResults { jobs: 3, ..ClassResults::default() };
        lines.iter_mut().for_each(|line| _ = line.classes.insert("short".into(), class));
        let judged =
            |lines: &[Summary], check: &str| judge(&[claim(&json!({}), check)], &cells, lines)[0].verdict;
        let (times, jobs) = ("a.classes.short.response_s.p99 == 0", "a.classes.short.jobs == 3");
        assert_eq!(judged(&lines, times), Verdict::Holds);
        lines[0].jobs.unfinished = 1;
        assert_eq!((judged(&lines, times), judged(&lines, jobs)), (Verdict::NotTested, Verdict::Holds));
    }

    #[test]
    fn means_are_over_common_seeds() {
        let (cells, mut lines) = world();
        lines.retain(|line| line.policy == "b" || line.seed == 1);
        let found = &judge(
            &[claim(&json!({ "s.k": 0, "s.l": "9ms" }), "a.response_s.p50 < b.response_s.p50")],
            &cells,
            &lines,
        )[0];
        let numbers = found.measured.values().next().unwrap();
        assert_eq!((&numbers["left"], &numbers["right"]), (&json!(0.75), &json!(1.75)));
        assert_eq!(
            found.measured.iter().next().unwrap().0,
            "a.response_s.p50 < b.response_s.p50 [s.k=0, s.l=\"9ms\"]"
        );
    }

    /// Two policies in two cells under four common seeds: `b` is `a` plus `gap`, with noise of size `spread`.
    fn noisy(gap: f64, spread: f64) -> (Vec<Cell>, Vec<Summary>) {
        let mut lines = Vec::new();
        let cells = [0, 1].map(|k| json!({ "s.k": k }));
        for (k, here) in cells.iter().enumerate() {
            for (seed, (shared, own)) in
                [(10.0, 1.0), (-30.0, -1.0), (0.0, 2.0), (20.0, -2.0)].iter().enumerate()
            {
                let a = 100.0 + shared + if k == 1 { gap - spread * own } else { 0.0 };
                lines.push(line("a", here, seed as u64, a));
                lines.push(line("b", here, seed as u64, a + gap + spread * own));
            }
        }
        (cells.iter().map(cell).collect(), lines)
    }

    /// Whether the only comparison is within noise, with its half-width.
    fn noise(check: &str, (cells, lines): &(Vec<Cell>, Vec<Summary>)) -> (Value, Value) {
        let numbers = judge(&[claim(&json!({ "s.k": 0 }), check)], cells, lines)[0].measured.clone();
        let numbers = numbers.values().next().unwrap();
        (numbers["within_noise"].clone(), numbers["half_width"].clone())
    }

    #[test]
    fn a_difference_smaller_than_its_spread_is_within_noise() {
        let less = "a.response_s.p50 < b.response_s.p50";
        // Standard deviation sqrt(10 / 3) of four values: half-width 3.18245 × 1.82574 / 2, independent of what the
        // seeds share.
        let (within, half) = noise(less, &noisy(1.0, 1.0));
        assert!((half.as_f64().unwrap() - 2.905_1).abs() < 1e-3, "{half}");
        assert_eq!(within, json!(true));
        assert_eq!(noise(less, &noisy(3.0, 1.0)).0, json!(false));
        assert_eq!(noise(less, &noisy(-1.0, 1.0)).0, json!(true), "it fails, but barely");
        assert_eq!(noise(less, &noisy(1.0, 0.0)), (json!(false), json!(0.0)), "nothing varies");
        assert_eq!(noise("a.jobs.finished == 0", &noisy(1.0, 1.0)).0, json!(false), "counts are sure");
        // Within 2 % of about 100: the margin is 2 less the difference.
        let near = "b.response_s.p50 within 2% of a.response_s.p50";
        assert_eq!(noise(near, &noisy(1.0, 1.0)).0, json!(true));
        assert_eq!(noise(near, &noisy(20.0, 1.0)).0, json!(false));
        // One seed says nothing about noise.
        let (cells, mut lines) = noisy(1.0, 1.0);
        lines.retain(|line| line.seed == 0);
        assert_eq!(noise(less, &(cells, lines)), (Value::Null, Value::Null));
    }

    #[test]
    fn a_trend_is_as_sure_as_its_least_sure_step() {
        let found = |check: &str, gap| {
            let (cells, lines) = noisy(gap, 1.0);
            judge(&[claim(&json!({}), check)], &cells, &lines)[0].clone()
        };
        for (check, gap, verdict, within) in [
            ("a.response_s.p50 rises with s.k", 1.0, Verdict::Holds, true),
            ("a.response_s.p50 rises with s.k", 9.0, Verdict::Holds, false),
            ("a.response_s.p50 falls with s.k", 1.0, Verdict::Fails, true),
            ("a.response_s.p50 falls with s.k", 9.0, Verdict::Fails, false),
        ] {
            let found = found(check, gap);
            assert_eq!((found.verdict, found.is_within_noise()), (verdict, within), "{check}, {gap}");
        }
    }

    #[test]
    fn durations_are_put_in_order() {
        let (cells, lines) = world();
        let found =
            &judge(&[claim(&json!({ "s.k": 0 }), "a.response_s.p50 rises with s.l")], &cells, &lines)[0];
        assert_eq!(found.measured.values().next().unwrap()["along"][0][0], json!("9ms"));
    }

    #[test]
    fn what_was_measured_on_degraded_runs_is_marked() {
        let (cells, mut lines) = world();
        let at = lines.iter().position(|line| line.policy == "b" && line.seed == 2).unwrap();
        lines[at].fidelity = Some(crate::fidelity::fixture::degraded());
        let judged = |check: &str| judge(&[claim(&json!({}), check)], &cells, &lines).remove(0);
        let found = judged("a.response_s.p50 < b.response_s.p50");
        let marks: Vec<_> = found.measured.values().map(|numbers| numbers["degraded"] == true).collect();
        assert_eq!((found.verdict, found.is_degraded()), (Verdict::Holds, true));
        assert_eq!(marks, [true, false, false, false], "only where it was");
        assert!(judged("b.response_s.p50 rises with s.k").is_degraded());
        assert!(!judged("a.response_s.p50 < 9").is_degraded(), "it looks at other runs");
        assert!(!judged("c.response_s.p50 < b.response_s.p50").is_degraded(), "it was not tested");
        (lines[at].fidelity, lines[at].injections) = (None, vec![crate::storage::fixture::injected()]);
        let found =
            judge(&[claim(&json!({}), "a.response_s.p50 < b.response_s.p50")], &cells, &lines).remove(0);
        assert!(found.is_degraded(), "interference was injected");
    }
}
