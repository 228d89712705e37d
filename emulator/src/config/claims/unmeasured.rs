//! Numbers in checks that the policies of an experiment never have.

use volary_actors::policies::PolicySpec;
use volary_engine::scenario::Point;

use super::check::{Check, Claim};
use super::form::Metric;

/// Warnings about claims on numbers that no run has, because policies of that kind do not produce them.
pub(in crate::config) fn unmeasured(claims: &[Claim], points: &[Point]) -> Vec<String> {
    let of_claim = |claim: &Claim| {
        let metrics = claim.checks.iter().flat_map(Check::metrics);
        let why = metrics.filter_map(|metric| lacks(metric, points)).next()?;
        Some(format!("the claim `{}` cannot be tested: {why}", claim.says))
    };
    claims.iter().filter_map(of_claim).collect()
}

/// Why no run has the number. A policy that is left out of the run may have it.
fn lacks(metric: &Metric, points: &[Point]) -> Option<String> {
    let path: Vec<&str> = metric.path.iter().map(String::as_str).collect();
    let (has, why): (fn(&PolicySpec) -> bool, _) = match path[..] {
        ["staleness", ..] => (|policy| policy.caches(), "keeps no caches"),
        ["planning" | "prediction", ..] | ["engine", "planning_cpu_s"] => {
            (|policy| policy.plans(), "does not plan")
        }
        _ => return None,
    };
    let mut of_label = points.iter().filter(|point| point.label == metric.label).peekable();
    of_label.peek()?;
    let is_missing = of_label.all(|point| !has(&point.policy));
    is_missing.then(|| format!("`{}` {why}, so its results have no `{}`", metric.label, path.join(".")))
}
