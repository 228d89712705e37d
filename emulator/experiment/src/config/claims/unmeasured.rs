//! Numbers in checks that no run of an experiment can have.

use volary_engine::results::PolicySections;
use volary_engine::scenario::{Point, Resolved, Room};
use volary_engine::workload::WorkloadSpec;

use super::check::{Check, Claim};
use super::form::MetricName;
use crate::config::file::Record;

/// Warnings about claims on numbers that no run can have, because of its workload, its policy or the recorded data.
pub(in crate::config) fn unmeasured(claims: &[Claim], points: &[Point], record: &Record) -> Vec<String> {
    let of_claim = |claim: &Claim| {
        let metrics = claim.comparisons().flat_map(Check::metrics);
        let mut why: Vec<String> = metrics.filter_map(|metric| lacks(metric, points, record)).collect();
        why.dedup();
        (!why.is_empty()).then(|| format!("the claim `{}` cannot be tested: {}", claim.says, why.join("; ")))
    };
    claims.iter().filter_map(of_claim).collect()
}

/// The reason why no run has the number; `None` if a run may have it, or if the policy is not run here.
fn lacks(metric: &MetricName, points: &[Point], record: &Record) -> Option<String> {
    let path: Vec<&str> = metric.path.iter().map(String::as_str).collect();
    if let Some(why) = record.lacks(&path) {
        return Some(why.to_owned());
    }
    match path[..] {
        ["deadlines", ..] => {
            let why = "no job has a deadline: set `slo` or `deadline_slack` of the workload".to_owned();
            points.iter().all(|point| has_no_deadlines(&point.resolved)).then_some(why)
        }
        ["graphs", ..] => {
            let is_off = |point: &Point| matches!(&point.resolved.workload, WorkloadSpec::Trace(spec) if !spec.dependencies);
            let remedy = if points.iter().any(is_off) {
                "leave out `dependencies = false`"
            } else {
                "give jobs steps by `synchronous`, or a class of a mix several stages, one of which waits for another"
            };
            let never = |point: &Point| match &point.resolved.workload {
                WorkloadSpec::Trace(spec) => !spec.dependencies,
                WorkloadSpec::Mix(mix) => mix
                    .class
                    .iter()
                    .flat_map(|class| class.stages.iter().skip(1))
                    .all(|stage| stage.after.as_ref().is_some_and(Vec::is_empty)),
                WorkloadSpec::Synthetic(_)
                | WorkloadSpec::YahooLike(_)
                | WorkloadSpec::ClouderaLike(_)
                | WorkloadSpec::Gossip(_) => true,
            };
            let is_stepped = |point: &Point| point.resolved.workload.steps() > 1;
            let never = |point: &Point| never(point) && !is_stepped(point);
            points.iter().all(never).then(|| format!("no job has stages that wait for others: {remedy}"))
        }
        ["shared", ..] => {
            let is_shared = |point: &Point| point.resolved.cluster.room.as_ref().is_some_and(Room::is_shared);
            (!points.iter().any(is_shared)).then(|| "nodes are not shared: set cluster.shared".to_owned())
        }
        _ => {
            let of_label = points.iter().filter(|point| point.label == metric.label);
            let why = of_label.map(|point| PolicySections::lacks(&path, &point.policy.traits()));
            // The longest reason of several is the most specific one.
            let why = why.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(|why| why.len())?;
            Some(format!("`{}` {why}, so its results have no `{}`", metric.label, metric.path.join(".")))
        }
    }
}

/// Whether no job can have a deadline; false for a trace, whose jobs may have deadlines.
fn has_no_deadlines(resolved: &Resolved) -> bool {
    let without = match &resolved.workload {
        WorkloadSpec::Synthetic(_) | WorkloadSpec::Mix(_) | WorkloadSpec::Gossip(_) => true,
        WorkloadSpec::YahooLike(spec) | WorkloadSpec::ClouderaLike(spec) => spec.deadline_slack.is_none(),
        WorkloadSpec::Trace(_) => false,
    };
    without && resolved.workload.slo().is_none()
}
