//! Tests of verdicts on synthetic results.

use volary_engine::results::{ClassResults, Distribution, JobTimes, Messages};

use super::*;

/// Judges claims on runs without generated jobs in place of a trace.
fn judge(claims: &[Claim], cells: &[Cell], summaries: &[Summary]) -> Vec<ClaimResult> {
    super::judge(claims, cells, &[], summaries)
}

/// A line of results whose median response time is `p50`.
fn line(policy: &str, cell_of: &Value, seed: u64, p50: f64) -> Summary {
    let by_kind = [("probe.claim".to_owned(), 7)].into();
    Summary {
        policy: policy.into(),
        cell: cell(cell_of),
        seed,
        times: JobTimes {
            response_s: Distribution { p50, ..Distribution::default() },
            ..JobTimes::default()
        },
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
        sizes: Vec::new(),
        tolerance: None,
    }
}

/// Results of two policies in four cells (k, l) under two seeds. The median of `a` is 1 + k and that of `b` is 2 + k,
/// each with noise that cancels over the seeds.
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

/// The median of `b` is 1.5 to 2 times that of `a`. With two seeds, the quotient varies with the noise.
#[test]
fn a_wrong_direction_fails_a_claim_before_sizes_are_compared() {
    let (cells, lines) = world();
    let here = json!({ "s.k": 0 });
    for (check, size, wanted) in [
        (
            "b.response_s.p50 > a.response_s.p50",
            "b.response_s.p50 / a.response_s.p50 within 10% of 2",
            Verdict::Holds,
        ),
        (
            "b.response_s.p50 > a.response_s.p50",
            "b.response_s.p50 / a.response_s.p50 within 10% of 3",
            Verdict::OtherSize,
        ),
        (
            "b.response_s.p50 < a.response_s.p50",
            "b.response_s.p50 / a.response_s.p50 within 10% of 2",
            Verdict::Fails,
        ),
        (
            "b.response_s.p50 < a.response_s.p50",
            "b.response_s.p50 / a.response_s.p50 within 10% of 3",
            Verdict::Fails,
        ),
        (
            "c.response_s.p50 < a.response_s.p50",
            "b.response_s.p50 / a.response_s.p50 within 10% of 3",
            Verdict::NotTested,
        ),
        ("b.response_s.p50 > a.response_s.p50", "c.response_s.p50 > 1", Verdict::NotTested),
    ] {
        let claim = Claim { sizes: vec![Check::parse(size).unwrap()], ..claim(&here, check) };
        let result = &judge(&[claim], &cells, &lines)[0];
        assert_eq!(result.verdict, wanted, "{check}, {size}");
        let is_size = |(what, numbers): (&str, &Value)| (numbers["size"] == true) == what.starts_with(size);
        assert!(result.measured.iter().all(is_size), "{:?}", result.measured);
    }
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
    // A failure in another cell still fails the claim.
    let claims = [claim(&json!({}), "a.response_s.p50 > b.response_s.p50")];
    assert_eq!(judge(&claims, &cells, &lines)[0].verdict, Verdict::Fails);
}

/// The medians are 127 and 166 s: each seed alone is far from 146 s, their mean is not.
#[test]
fn a_tolerance_check_is_within_noise_if_either_bound_is() {
    let here = json!({ "s.k": 0 });
    let lines = [(1, 127.0), (2, 166.0)].map(|(seed, p50)| line("a", &here, seed, p50));
    for (percent, verdict, unsure) in
        [(1, Verdict::Holds, true), (100, Verdict::Holds, true), (900, Verdict::Holds, false)]
    {
        let claims = [claim(&json!({}), &format!("a.response_s.p50 within {percent}% of 146s"))];
        let result = judge(&claims, &[cell(&here)], &lines).remove(0);
        assert_eq!((result.verdict, result.is_within_noise()), (verdict, unsure), "{percent} %");
    }
}

#[test]
fn below_requires_smaller_values_at_every_percentile() {
    let (cells, mut lines) = world();
    let below = |lines: &[Summary]| {
        let found = judge(&[claim(&json!({}), "a.response_s below b.response_s")], &cells, lines).remove(0);
        let at = found.measured.values().next().map(|numbers| numbers["at"].clone());
        (found.verdict, at.unwrap_or_default())
    };
    for line in &mut lines {
        let mean = line.times.response_s.p50;
        line.times.response_s = Distribution::of([0.1, 1.0, 3.0].map(|factor| factor * mean));
    }
    assert_eq!(below(&lines).0, Verdict::Holds);
    for line in lines.iter_mut().filter(|line| line.policy == "a") {
        line.times.response_s.p25 = 9.0;
    }
    assert_eq!(below(&lines), (Verdict::Fails, json!("p25")));
    // The 10th percentile fails by more, but by chance; the failure at the 25th remains.
    for line in lines.iter_mut().filter(|line| line.policy == "a") {
        line.times.response_s.p10 = if line.seed == 1 { 1000.0 } else { 0.0 };
    }
    assert_eq!(below(&lines), (Verdict::Fails, json!("p10")));
    let claims = [claim(&json!({}), "a.response_s below b.response_s")];
    assert!(!judge(&claims, &cells, &lines)[0].is_within_noise());
    lines[0].jobs.unfinished = 1;
    assert_eq!(below(&lines[..2]).0, Verdict::NotTested);
}

#[test]
fn claims_on_times_are_not_tested_if_jobs_are_unfinished() {
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
fn claims_of_papers_on_a_trace_are_not_tested_on_generated_jobs() {
    let (cells, lines) = world();
    let judged = |origin, when: &Value, check: &str| {
        let claim = Claim { origin, ..claim(when, check) };
        super::judge(&[claim], &cells, &cells[2..], &lines).remove(0)
    };
    let (all, less) = (json!({}), "a.response_s.p50 < b.response_s.p50");
    for (origin, verdict) in [
        (Origin::Paper, Verdict::NotTested),
        (Origin::Outputs, Verdict::NotTested),
        (Origin::Ours, Verdict::Holds),
    ] {
        let found = judged(origin, &all, less);
        assert_eq!(found.verdict, verdict, "{origin:?}");
        let marks: Vec<_> = found.measured.values().map(|numbers| numbers["stand_in"] == true).collect();
        assert_eq!(marks, [false, false, true, true], "{origin:?}");
    }
    let there = |origin, check: &str| judged(origin, &json!({ "s.k": 1 }), check).on_generated();
    assert_eq!(there(Origin::Paper, less), Some(Verdict::Holds));
    assert_eq!(there(Origin::Paper, "a.response_s.p50 > b.response_s.p50"), Some(Verdict::Fails));
    assert_eq!(there(Origin::Ours, less), None, "the claim is tested");
    assert_eq!(judged(Origin::Paper, &all, less).on_generated(), None, "a part of the runs has the trace");
    let paper = |when: &Value, check: &str| judged(Origin::Paper, when, check).verdict;
    assert_eq!(paper(&json!({ "s.k": 0 }), less), Verdict::Holds, "the trace was there");
    assert_eq!(paper(&all, "a.response_s.p50 rises with s.k"), Verdict::NotTested);
    assert_eq!(paper(&json!({ "s.k": 0 }), "a.response_s.p50[s.k=1] > 0"), Verdict::NotTested);
    // A failure on the trace itself still fails the claim.
    assert_eq!(paper(&all, "a.response_s.p50 > b.response_s.p50"), Verdict::Fails);
}

#[test]
fn numbers_have_the_unit_of_the_compared_metrics() {
    let (cells, lines) = world();
    for (check, unit) in [
        ("a.response_s.p50 < 0.5 * b.wait_s.p50 + 1s", json!("s")),
        ("a.response_s.p50 / b.response_s.p50 < 2", Value::Null),
        ("2 > a.utilization", json!("share")),
        ("a.jobs.finished == 0", Value::Null),
        ("a.response_s below b.response_s", json!("s")),
        ("a.response_s.p50 rises with s.k", json!("s")),
    ] {
        let found = judge(&[claim(&json!({}), check)], &cells, &lines).remove(0);
        assert!(found.measured.values().all(|numbers| numbers["unit"] == unit), "{check}: {found:?}");
    }
}

#[test]
fn means_are_taken_over_common_seeds() {
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
        "a.response_s.p50 < b.response_s.p50 [s.k=0, s.l=9ms]"
    );
}

/// Two policies in two cells under four common seeds: `b` is `a` plus `gap`, with noise of size `spread`.
fn noisy(gap: f64, spread: f64) -> (Vec<Cell>, Vec<Summary>) {
    let mut lines = Vec::new();
    let cells = [0, 1].map(|k| json!({ "s.k": k }));
    for (k, here) in cells.iter().enumerate() {
        for (seed, (shared, own)) in [(10.0, 1.0), (-30.0, -1.0), (0.0, 2.0), (20.0, -2.0)].iter().enumerate()
        {
            let a = 100.0 + shared + if k == 1 { gap - spread * own } else { 0.0 };
            lines.push(line("a", here, seed as u64, a));
            lines.push(line("b", here, seed as u64, a + gap + spread * own));
        }
    }
    (cells.iter().map(cell).collect(), lines)
}

/// The fields `within_noise` and `half_width` of the only comparison of a check.
fn noise(check: &str, (cells, lines): &(Vec<Cell>, Vec<Summary>)) -> (Value, Value) {
    let numbers = judge(&[claim(&json!({ "s.k": 0 }), check)], cells, lines)[0].measured.clone();
    let numbers = numbers.values().next().unwrap();
    (numbers["within_noise"].clone(), numbers["half_width"].clone())
}

#[test]
fn a_difference_smaller_than_its_spread_is_within_noise() {
    let less = "a.response_s.p50 < b.response_s.p50";
    // Standard deviation sqrt(10 / 3) of four values: half-width 3.18245 × 1.82574 / 2, independent of the variation
    // that the seeds share.
    let (within, half) = noise(less, &noisy(1.0, 1.0));
    assert!((half.as_f64().unwrap() - 2.905_1).abs() < 1e-3, "{half}");
    assert_eq!(within, json!(true));
    assert_eq!(noise(less, &noisy(3.0, 1.0)).0, json!(false));
    assert_eq!(noise(less, &noisy(-1.0, 1.0)).0, json!(true), "the failure is within noise");
    assert_eq!(noise(less, &noisy(1.0, 0.0)), (json!(false), json!(0.0)), "nothing varies");
    let equal = less.replace('<', "==");
    assert_eq!(noise(&equal, &noisy(1.0, 1.0)).0, json!(false), "an equality is exact");
    let (cells, lines) = noisy(0.0, 1.0);
    let claims = [claim(&json!({ "s.k": 0 }), &equal)];
    assert_eq!(judge(&claims, &cells, &lines)[0].verdict, Verdict::Fails, "no replication has equal values");
    assert_eq!(noise("a.jobs.finished == 0", &noisy(1.0, 1.0)).0, json!(false), "a count has no noise");
    // Within 2 % of about 100: the margin is 2 less the difference.
    let near = "b.response_s.p50 within 2% of a.response_s.p50";
    assert_eq!(noise(near, &noisy(1.0, 1.0)).0, json!(true));
    assert_eq!(noise(near, &noisy(20.0, 1.0)).0, json!(false));
    // A single seed gives no estimate of noise.
    let (cells, mut lines) = noisy(1.0, 1.0);
    lines.retain(|line| line.seed == 0);
    assert_eq!(noise(less, &(cells, lines)), (Value::Null, Value::Null));
}

#[test]
fn a_trend_is_within_noise_if_any_step_is() {
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
fn a_trend_over_durations_begins_with_the_shortest() {
    let (cells, lines) = world();
    let found = &judge(&[claim(&json!({ "s.k": 0 }), "a.response_s.p50 rises with s.l")], &cells, &lines)[0];
    assert_eq!(found.measured.values().next().unwrap()["along"][0][0], json!("9ms"));
}

#[test]
fn comparisons_of_degraded_runs_are_marked() {
    let (cells, mut lines) = world();
    let at = lines.iter().position(|line| line.policy == "b" && line.seed == 2).unwrap();
    lines[at].fidelity = Some(crate::fidelity::fixture::degraded());
    let judged = |check: &str| judge(&[claim(&json!({}), check)], &cells, &lines).remove(0);
    let found = judged("a.response_s.p50 < b.response_s.p50");
    let marks: Vec<_> = found.measured.values().map(|numbers| numbers["degraded"] == true).collect();
    assert_eq!((found.verdict, found.is_degraded()), (Verdict::Holds, true));
    assert_eq!(marks, [true, false, false, false], "only the cell with the degraded run is marked");
    assert!(judged("b.response_s.p50 rises with s.k").is_degraded());
    assert!(!judged("a.response_s.p50 < 9").is_degraded(), "the check uses other runs");
    assert!(!judged("c.response_s.p50 < b.response_s.p50").is_degraded(), "the check was not tested");
}

/// A claim compares policies only if their injections are equal; `claims.jsonl` names the run that has other
/// injections.
#[test]
fn runs_with_unequal_injections_are_not_compared() {
    let (cells, mut lines) = world();
    let at = lines.iter().position(|line| line.policy == "b" && line.seed == 2).unwrap();
    lines[at].injections = vec![crate::storage::fixture::injected()];
    let judged = |check: &str, lines: &[Summary]| judge(&[claim(&json!({}), check)], &cells, lines).remove(0);
    let found = judged("a.response_s.p50 < b.response_s.p50", &lines);
    assert_eq!((found.verdict, found.is_injected()), (Verdict::NotTested, false));
    let numbers = found.measured.values().next().unwrap();
    assert_eq!((&numbers["holds"], &numbers["injected"]), (&Value::Null, &json!(true)));
    assert!(numbers["left"].is_number() && numbers["right"].is_number(), "{numbers}");
    let why = numbers["why"][0].as_str().unwrap();
    assert!(why.contains("injected into b, ") && why.contains(" and not into a, "), "{why}");
    let others: Vec<_> = found.measured.values().skip(1).map(|numbers| &numbers["holds"]).collect();
    assert!(others.iter().all(|holds| **holds == true), "other cells are compared: {others:?}");
    let trend = judged("b.response_s.p50 rises with s.k", &lines);
    assert_eq!(trend.verdict, Verdict::NotTested);
    assert!(trend.measured.values().any(|numbers| numbers["why"][0].is_string()), "{trend:?}");
    let alone = judged("b.response_s.p50 < 9000", &lines);
    assert!(
        alone.verdict == Verdict::Holds && alone.is_injected() && !alone.is_degraded(),
        "a check of one policy compares no injections"
    );
    assert!(!judged("a.response_s.p50 < 9", &lines).is_injected(), "the check uses other runs");
    let (cell, injections) = (lines[at].cell.clone(), lines[at].injections.clone());
    for line in lines.iter_mut().filter(|line| line.cell == cell && line.seed == 2) {
        line.injections.clone_from(&injections);
    }
    let found = judged("a.response_s.p50 < b.response_s.p50", &lines);
    assert!(found.verdict == Verdict::Holds && found.is_injected() && !found.is_degraded());
}

#[test]
fn untested_comparisons_state_the_reason() {
    let (cells, mut lines) = world();
    let why = |check: &str, lines: &[Summary]| {
        let found = judge(&[claim(&json!({ "s.k": 0, "s.l": "9ms" }), check)], &cells, lines).remove(0);
        assert_eq!(found.verdict, Verdict::NotTested, "{check}");
        found.measured.values().next().unwrap()["why"].clone()
    };
    let of = |check: &str| why(check, &lines);
    assert_eq!(of("c.response_s.p50 < d.response_s.p50"), json!(["`c` was not run", "`d` was not run"]));
    assert_eq!(of("a.response_s below c.response_s"), json!(["`c` was not run"]));
    let one =
        lines.iter().filter(|line| line.policy == "b" || line.cell["s.k"] == 0).cloned().collect::<Vec<_>>();
    let other = why("a.response_s.p50[s.k=1] < b.response_s.p50", &one);
    assert_eq!(other, json!(["in a cell of the check `a` was not run"]));
    let absent = json!(["the results of `a` have no `classes.x.jobs`"]);
    assert_eq!(of("a.classes.x.jobs < b.response_s.p50"), absent);
    assert_eq!(of("a.response_s.p50 / a.tasks.finished < 1"), json!(["a side is not finite"]));
    let seed = lines.iter().filter(|line| line.policy == "a" || line.seed == 1).cloned().collect::<Vec<_>>();
    let apart: Vec<_> = seed.into_iter().filter(|line| line.policy != "a" || line.seed == 2).collect();
    let none = json!(["no seed was run with all of its policies"]);
    assert_eq!(why("a.response_s.p50 < b.response_s.p50", &apart), none);
    lines.iter_mut().for_each(|line| line.times.response_s.p50 = f64::NAN);
    let empty = json!(["`response_s.p50` of `a` has no value: nothing was counted"]);
    assert_eq!(why("a.response_s.p50 < 1", &lines), empty);
    lines.iter_mut().for_each(|line| line.jobs.unfinished = 1);
    assert_eq!(why("a.response_s.p50 < 1", &lines), json!(["`a` left jobs unfinished"]));
}
