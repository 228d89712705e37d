//! Claims against results.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Check, Claim, Form, Metric, Side};
use crate::results::{Cell, ClaimResult, Summary, Verdict};

/// Judges claims. `cells` are those that were asked for: one without results leaves a claim untested, it does
/// not make it hold.
#[must_use]
pub fn judge(claims: &[Claim], cells: &[Cell], summaries: &[Summary]) -> Vec<ClaimResult> {
    let table = Table::new(cells, summaries);
    claims.iter().map(|claim| table.judge(claim)).collect()
}

/// Results by label, cell and seed.
struct Table<'a> {
    cells: &'a [Cell],
    numbers: BTreeMap<&'a str, BTreeMap<usize, BTreeMap<u64, Value>>>,
}

/// One comparison in one cell.
struct Finding {
    holds: Option<bool>,
    numbers: Value,
}

impl<'a> Table<'a> {
    fn new(cells: &'a [Cell], summaries: &'a [Summary]) -> Self {
        let mut numbers: BTreeMap<&str, BTreeMap<usize, BTreeMap<u64, Value>>> = BTreeMap::new();
        for summary in summaries {
            let Some(cell) = cells.iter().position(|cell| *cell == summary.cell) else { continue };
            let mut value = serde_json::to_value(summary).unwrap_or_default();
            if summary.jobs.unfinished + summary.jobs.failed > 0 {
                // Only finished jobs have times: a policy that strands its slow jobs must not win by it.
                for censored in ["response_s", "slowdown", "wait_s", "makespan_s"] {
                    value[censored] = Value::Null;
                }
            }
            numbers.entry(&summary.policy).or_default().entry(cell).or_default().insert(summary.seed, value);
        }
        Self { cells, numbers }
    }

    fn judge(&self, claim: &Claim) -> ClaimResult {
        let mut measured = BTreeMap::new();
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
        ClaimResult { says: claim.says.clone(), verdict, measured }
    }

    /// What a check says in every cell it applies to.
    fn findings(&self, claim: &Claim, check: &Check) -> Vec<(Cell, Finding)> {
        let mut cells = self.cells.iter().filter(|cell| applies(claim, cell)).cloned().collect::<Vec<_>>();
        match &check.form {
            Form::Compare { left, right, op } => {
                distinct(&mut cells, &pinned(check));
                let test = |l: f64, r: f64| op.holds(l, r);
                cells.into_iter().map(|cell| self.compare(check, cell, left, right, &test)).collect()
            }
            Form::Within { left, right, percent } => {
                distinct(&mut cells, &pinned(check));
                let test = |l: f64, r: f64| (l - r).abs() <= percent / 100.0 * r.abs();
                cells.into_iter().map(|cell| self.compare(check, cell, left, right, &test)).collect()
            }
            Form::Trend { side, rises, key } => self.trends(check, &cells, side, *rises, key),
        }
    }

    fn compare(
        &self,
        check: &Check,
        cell: Cell,
        left: &Side,
        right: &Side,
        test: &dyn Fn(f64, f64) -> bool,
    ) -> (Cell, Finding) {
        let seeds = self.seeds(check, &cell);
        let of = |metric: &Metric| self.mean(metric, &cell, &seeds);
        let (left, right) = (left.value(&of), right.value(&of));
        let holds = left.zip(right).map(|(l, r)| test(l, r));
        let numbers = json!({ "left": left, "right": right, "holds": holds });
        (cell, Finding { holds, numbers })
    }

    /// One finding for each line of cells that differ in `key` alone.
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
        let found = lines.into_iter().map(|(rest, line)| {
            let mut points: Vec<(Option<f64>, Value, Option<f64>)> = line
                .into_iter()
                .map(|cell| {
                    let seeds = self.seeds(check, cell);
                    let value = side.value(&|metric| self.mean(metric, cell, &seeds));
                    let at = cell.get(key).cloned().unwrap_or_default();
                    (quantity(&at), at, value)
                })
                .collect();
            // Values that are numbers or durations are put in order; others stay as written.
            if points.iter().all(|(at, ..)| at.is_some()) {
                points.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
            }
            let values: Option<Vec<f64>> = points.iter().map(|(.., value)| *value).collect();
            let ordered = |pair: &[f64]| if rises { pair[0] <= pair[1] } else { pair[0] >= pair[1] };
            let holds = values.filter(|v| v.len() > 1).map(|v| v.windows(2).all(ordered));
            let along: Vec<Value> = points.into_iter().map(|(_, at, value)| json!([at, value])).collect();
            (rest, Finding { holds, numbers: json!({ "along": along, "holds": holds }) })
        });
        found.collect()
    }

    /// Seeds that every metric of the check was measured under, so that means are over the same worlds.
    fn seeds(&self, check: &Check, cell: &Cell) -> BTreeSet<u64> {
        let sets = check.metrics().into_iter().map(|metric| {
            self.lines(metric, cell).map(|lines| lines.keys().copied().collect()).unwrap_or_default()
        });
        sets.reduce(|a: BTreeSet<u64>, b| &a & &b).unwrap_or_default()
    }

    fn lines(&self, metric: &Metric, cell: &Cell) -> Option<&BTreeMap<u64, Value>> {
        let place = metric.place(cell, self.cells)?;
        let index = self.cells.iter().position(|other| other == place)?;
        self.numbers.get(metric.label.as_str())?.get(&index)
    }

    fn mean(&self, metric: &Metric, cell: &Cell, seeds: &BTreeSet<u64>) -> Option<f64> {
        let lines = self.lines(metric, cell)?;
        let number = |line: &Value| {
            metric.path.iter().try_fold(line, |value, part| value.get(part)).and_then(Value::as_f64)
        };
        let values: Option<Vec<f64>> = seeds.iter().map(|seed| number(lines.get(seed)?)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// Whether the claim is about this cell.
fn applies(claim: &Claim, cell: &Cell) -> bool {
    claim.when.iter().all(|(key, wanted)| match (cell.get(key), wanted) {
        (Some(value), Value::Array(any)) => any.contains(value),
        (Some(value), one) => value == one,
        (None, _) => false,
    })
}

/// Keys that every metric of the check takes from its own brackets: the cells differ in them for nothing.
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

/// A swept value as a number: itself, or a duration in seconds.
fn quantity(value: &Value) -> Option<f64> {
    let span = |text: &str| text.parse::<volary_actors::base::Span>().ok().map(|s| s.as_secs_f64());
    value.as_f64().or_else(|| value.as_str().and_then(span))
}

/// The check with the cell it was made in.
fn name(check: &Check, cell: &Cell) -> String {
    if cell.is_empty() {
        return check.text.clone();
    }
    let values: Vec<String> = cell.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{} [{}]", check.text, values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of results whose median response time is `p50`.
    fn line(policy: &str, cell: &Value, seed: u64, p50: f64) -> Summary {
        let zeros = |keys: &[&str]| keys.iter().map(|k| ((*k).to_owned(), json!(0))).collect::<Value>();
        let mut response = zeros(&["mean", "std", "p50", "p90", "p95", "p99", "p999", "max"]);
        response["p50"] = json!(p50);
        let mut copies = zeros(&["started", "finished", "preempted", "lost"]);
        copies["wasted_work_s"] = json!(0.0);
        serde_json::from_value(json!({
            "experiment": "e", "policy": policy, "cell": cell, "runtime": "virtual", "seed": seed,
            "jobs": zeros(&["submitted", "finished", "failed", "unfinished"]),
            "tasks": zeros(&["submitted", "finished"]), "copies": copies, "response_s": response,
            "wait_s": zeros(&["mean", "p50", "p99"]), "slowdown": zeros(&["mean", "p50", "p99"]),
            "makespan_s": 0.0, "utilization": 0.0,
            "messages": { "total": 0, "dropped": 0, "recovery": 0, "by_kind": { "probe": 7 } },
            "staleness": null, "fidelity": null,
            "engine": { "events": 0, "order_hash": "", "cpu_s": 0.0, "wall_s": 0.0, "peak_rss_bytes": 0 }
        }))
        .unwrap()
    }

    fn cell(value: &Value) -> Cell {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn claim(when: &Value, check: &str) -> Claim {
        Claim { says: "s".into(), when: cell(when), checks: vec![Check::parse(check).unwrap()] }
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
            (&all, "a.messages.by_kind.probe == 7", Verdict::Holds),
            (&all, "a.messages.by_kind.claim == 7", Verdict::NotTested),
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
            found.measured.keys().next().unwrap(),
            "a.response_s.p50 < b.response_s.p50 [s.k=0, s.l=\"9ms\"]"
        );
    }

    #[test]
    fn durations_are_put_in_order() {
        let (cells, lines) = world();
        let found =
            &judge(&[claim(&json!({ "s.k": 0 }), "a.response_s.p50 rises with s.l")], &cells, &lines)[0];
        assert_eq!(found.measured.values().next().unwrap()["along"][0][0], json!("9ms"));
    }
}
