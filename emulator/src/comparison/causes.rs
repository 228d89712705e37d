//! Likely causes of a divergence, as far as the certificates of the runs explain it.

use volary_engine::results::{Certificate, Summary};
use volary_experiment::number;

use super::divergence::MetricDivergence;
use super::metrics::{ENOUGH, split_class};
use super::validation::JobPlacement;

/// The part of a difference that a cause must explain.
const MOST: f64 = 0.5;
/// The share of moved jobs from which on the moves may cause the difference.
const MOVED: f64 = 0.05;

/// The likely cause, in words: the first that explains most of it.
pub(super) fn cause(
    divergence: &MetricDivergence,
    reference: &Summary,
    runs: &[&Summary],
    placement: Option<JobPlacement>,
) -> String {
    let certificates: Vec<&Certificate> = runs.iter().filter_map(|run| run.fidelity.as_ref()).collect();
    let seconds = divergence.metric.contains("_s.");
    let apart =
        divergence.value.zip(divergence.reference).map_or(0.0, |(value, reference)| value - reference);
    let causes = [
        runs.first().filter(|_| seconds).and_then(|run| late(apart, run, &certificates)),
        clocks(apart, seconds, runs, &certificates),
        real_cores(divergence, &certificates),
        other_servers(apart, divergence.spread, placement, degraded(&certificates)),
        degraded(&certificates),
        few_jobs(&divergence.metric, reference),
    ];
    causes.into_iter().flatten().next().unwrap_or_else(|| "not explained by the certificate".to_owned())
}

/// The departures that the certificates report; their effect on a metric is not known.
fn degraded(certificates: &[&Certificate]) -> Option<String> {
    let mut departures: Vec<_> =
        certificates.iter().flat_map(|c| &c.reasons).map(|reason| reason.what).collect();
    departures.sort_unstable();
    departures.dedup();
    let words: Vec<String> = departures.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| format!("the run is degraded: {}", words.join(", ")))
}

/// Every message that a task waits for adds its lateness, and so does the end of its copy.
fn late(apart: f64, run: &Summary, certificates: &[&Certificate]) -> Option<String> {
    let lateness = |of: fn(&Certificate) -> f64| mean(certificates, of);
    let (delivery, work) = (lateness(|c| c.lateness.deliveries.mean_s), lateness(|c| c.lateness.work.mean_s));
    let hops = run.messages_per_task();
    let expected = hops * delivery + work;
    (apart > 0.0 && expected >= MOST * apart).then(|| {
        format!(
            "lateness: {} messages a task, {} late each, and ends of copies {}, make {} of {}",
            number::short(hops),
            number::seconds(delivery),
            number::seconds(work),
            number::seconds(expected),
            number::seconds(apart)
        )
    })
}

/// The error of the hosts' clocks, which may be as large as the difference.
fn clocks(apart: f64, seconds: bool, runs: &[&Summary], certificates: &[&Certificate]) -> Option<String> {
    let bound = certificates.iter().map(|c| c.clock_bound_s()).fold(0.0, f64::max);
    let hops = runs.first().map_or(0.0, |run| run.messages_per_task());
    (seconds && bound > 0.0 && hops * bound >= MOST * apart.abs()).then(|| {
        format!(
            "clocks of hosts: {} messages a task, each timed to within {}, make up to {} of {}",
            number::short(hops),
            number::seconds(bound),
            number::seconds(hops * bound),
            number::seconds(apart.abs())
        )
    })
}

/// Copies on real cores took longer or shorter than the interference they met explains, and queues amplify it: by as
/// much as in the reference with cores as they were found.
fn real_cores(divergence: &MetricDivergence, certificates: &[&Certificate]) -> Option<String> {
    let burnt: Vec<f64> =
        certificates.iter().filter(|c| c.cores.is_some()).map(|c| c.core_s.excess()).collect();
    let excess = burnt.iter().sum::<f64>() / burnt.len() as f64;
    let (relative, reference) = divergence.relative.zip(divergence.reference)?;
    let found = divergence.found.map(|found| found / reference - 1.0);
    let makes = found.unwrap_or(excess);
    let so = found.map(|found| format!("; with cores as found virtual time has {}", number::change(found)));
    (makes * relative > 0.0 && makes.abs() >= MOST * relative.abs()).then(|| {
        let excess = number::change(excess);
        format!("real cores: copies kept them {excess} against what was asked{}", so.unwrap_or_default())
    })
}

/// Messages that are due at nearly the same time arrive in another order, and choices that depend on the order differ.
/// The size of that effect is known only from repeated runs of the same world. If the run is also `degraded`, that may
/// have changed the order, so it is named as well.
fn other_servers(
    apart: f64,
    spread: Option<f64>,
    placement: Option<JobPlacement>,
    degraded: Option<String>,
) -> Option<String> {
    let notable = |placement: &JobPlacement| placement.moved as f64 >= MOVED * placement.jobs as f64;
    let placement = placement.filter(|placement| placement.moved > 0 && notable(placement))?;
    let (moved, jobs) = (number::count(placement.moved), number::count(placement.jobs));
    let moved = format!("{moved} of {jobs} sampled jobs on other servers");
    let noise = match spread {
        None => format!(
            "may be ordering noise: {moved}; --repeat {ENOUGH} or more says what runs differ by themselves"
        ),
        Some(spread) if apart.abs() <= spread => {
            format!("ordering noise: {moved}, and runs differ as much by themselves")
        }
        Some(_) => return None,
    };
    Some(match degraded {
        Some(degraded) => format!("{noise}; {degraded}"),
        None => noise,
    })
}

/// A far quantile is determined by few jobs.
fn few_jobs(metric: &str, reference: &Summary) -> Option<String> {
    let (class, metric) = split_class(metric);
    let beyond = match metric {
        "response_s.p99" => 0.01,
        "response_s.p90" => 0.1,
        _ => return None,
    };
    let class = class.and_then(|label| reference.classes.get(label));
    let jobs = class.map_or(reference.jobs.finished, |class| class.jobs) as f64 * beyond;
    (jobs < 30.0).then(|| format!("chance: only {} jobs are beyond this quantile", jobs.ceil()))
}

fn mean(certificates: &[&Certificate], of: fn(&Certificate) -> f64) -> f64 {
    certificates.iter().map(|c| of(c)).sum::<f64>() / certificates.len().max(1) as f64
}
