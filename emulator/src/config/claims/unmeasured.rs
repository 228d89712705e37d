//! Numbers in checks that the policies of an experiment never have.

use volary_actors::base::Span;
use volary_actors::policies::{Caches, PolicySpec};
use volary_engine::scenario::Point;

use super::check::{Check, Claim};
use super::form::Metric;

/// Warnings about claims on numbers that no run has, because policies of that kind do not produce them.
pub(in crate::config) fn unmeasured(claims: &[Claim], points: &[Point], observed: Span) -> Vec<String> {
    let of_claim = |claim: &Claim| {
        let metrics = claim.checks.iter().flat_map(Check::metrics);
        let mut why: Vec<String> = metrics.filter_map(|metric| lacks(metric, points, observed)).collect();
        why.dedup();
        (!why.is_empty()).then(|| format!("the claim `{}` cannot be tested: {}", claim.says, why.join("; ")))
    };
    claims.iter().filter_map(of_claim).collect()
}

/// Why no run has the number. A policy that is left out of the run may have it. Caches are observed every `observed`.
fn lacks(metric: &Metric, points: &[Point], observed: Span) -> Option<String> {
    let path: Vec<&str> = metric.path.iter().map(String::as_str).collect();
    let (has, why): (fn(&PolicySpec) -> bool, _) = match path[..] {
        ["staleness", ..] if observed == Span::ZERO => {
            return Some("run.record.staleness = \"0s\" leaves caches unobserved".to_owned());
        }
        ["staleness", number, ..] => return lacks_staleness(metric, number, points),
        ["planning" | "prediction", ..] | ["engine", "planning_cpu_s"] => {
            (|policy| policy.plans(), "does not plan")
        }
        _ => return None,
    };
    never(metric, points, has).then(|| says(metric, why))
}

/// Why no run has this number of the staleness of caches.
fn lacks_staleness(metric: &Metric, number: &str, points: &[Point]) -> Option<String> {
    let why = if never(metric, points, |policy| policy.caches() != Caches::None) {
        "keeps no caches"
    } else {
        match number {
            "age_of_information_s" | "peak_age_of_information_s" => "sends updates and no snapshots",
            "error_s" | "bias_s" | "decision_error_s" => {
                "sends snapshots, which have no error by this measure"
            }
            _ => "keeps one state of the whole cluster, not of single nodes",
        }
    };
    never(metric, points, |policy| policy.caches().measures(number)).then(|| says(metric, why))
}

/// Whether the policy is among the points, and none of them has the number.
fn never(metric: &Metric, points: &[Point], has: impl Fn(&PolicySpec) -> bool) -> bool {
    let mut of_label = points.iter().filter(|point| point.label == metric.label).peekable();
    of_label.peek().is_some() && of_label.all(|point| !has(&point.policy))
}

fn says(metric: &Metric, why: &str) -> String {
    format!("`{}` {why}, so its results have no `{}`", metric.label, metric.path.join("."))
}
