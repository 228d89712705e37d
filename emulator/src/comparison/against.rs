//! The comparison of one policy in one runtime with the reference: counts, jobs, placement, metrics. It names likely
//! causes of a divergence, as far as the certificates of the runs explain it.

use std::collections::{BTreeMap, BTreeSet};

use volary_engine::results::{Certificate, CopyEnd, CopyRow, Injected, JobRow, Summary};
use volary_experiment::number;
use volary_experiment::storage::run_record::RunRecord;

use super::divergence::{self, MetricDivergence};
use super::metrics::{ENOUGH, split_class};
use super::validation::{Against, DrawsCompared, JobPlacement, ValidatedPoint};
use super::variant::{Error, VariantRuns};
use crate::runtime::StudyError;

/// Relative divergence from which a cause is searched for.
const NOTABLE: f64 = 0.01;

/// Function that runs the reference with cores as fast as a run found them; `None` if their speed is unknown.
type AsFound<'a> = dyn Fn(&RunRecord) -> Result<Option<Summary>, Error> + 'a;

/// Compares a runtime with the reference; `None` if the runtime or the reference did not run the point.
///
/// # Errors
/// When a file cannot be read, or the reference cannot be run again.
pub(super) fn against(
    point: &ValidatedPoint,
    reference: &VariantRuns,
    variant: &VariantRuns,
    as_found: &AsFound<'_>,
) -> Result<Option<Against>, Error> {
    let of_reference = format!("the reference {}", reference.variant);
    let (reference, runs) =
        (reference.of(&point.policy, &point.cell), variant.of(&point.policy, &point.cell));
    let (Some(base), false) = (reference.first(), runs.is_empty()) else {
        return Ok(None);
    };
    let read = |error| Error::Run(StudyError::StudyDir(error));
    let jobs = base.rows.read().map_err(read)?;
    let copies = base.rows.read().map_err(read)?;
    // Of all repetitions, the one with the largest difference is reported.
    let (mut different, mut moved) = (Vec::new(), Vec::new());
    for run in &runs {
        different.push(draws(&jobs, &run.rows.read().map_err(read)?));
        moved.extend(placement(&copies, &run.rows.read().map_err(read)?));
    }
    let accounts = accounts(&base.summary, &summaries(&runs));
    // Degraded or injected runs are left out, unless all runs are degraded or injected.
    let (bad, good): (Vec<_>, Vec<_>) = runs.iter().copied().partition(|run| run.summary.has_departed());
    let left_out = if good.is_empty() { 0 } else { bad.len() };
    let compared = if good.is_empty() { bad } else { good };
    let summaries = summaries(&compared);
    let is_judged = !base.summary.has_departed() && !summaries.iter().any(|run| run.has_departed());
    let again: Vec<Summary> =
        compared.iter().filter_map(|&run| as_found(run).transpose()).collect::<Result<_, _>>()?;
    let of_base = reasons(&[base]).into_iter().map(|why| format!("{of_reference}: {why}"));
    let mut found = Against {
        runtime: variant.variant.to_string(),
        runs: runs.len(),
        left_out,
        is_judged,
        is_certified: runs.iter().any(|run| run.summary.fidelity.is_some()),
        accounts,
        draws: different.into_iter().max_by_key(|draws| draws.different).unwrap_or_default(),
        placement: moved.into_iter().max_by_key(|placement| placement.moved),
        degraded: reasons(&runs).into_iter().chain(of_base).collect(),
        metrics: divergence::all((&base.summary, &again), &summaries),
        policy: divergence::of_policy(&base.summary, &summaries),
    };
    let placement = found.placement;
    for divergence in found.metrics.iter_mut().chain(found.policy.values_mut().flatten()) {
        if divergence.relative.is_some_and(|share| share.abs() > NOTABLE) {
            divergence.cause = Some(cause(divergence, &base.summary, &summaries, placement));
        }
    }
    Ok(Some(found))
}

/// Counts that differ, as text.
fn accounts(reference: &Summary, runs: &[&Summary]) -> Vec<String> {
    type Count = (&'static str, fn(&Summary) -> u64);
    const COUNTS: [Count; 5] = [
        ("jobs submitted", |s| s.jobs.submitted),
        ("jobs finished", |s| s.jobs.finished),
        ("jobs failed", |s| s.jobs.failed),
        ("tasks submitted", |s| s.tasks.submitted),
        ("tasks finished", |s| s.tasks.finished),
    ];
    let differ = COUNTS.iter().flat_map(|(name, count)| {
        let other = runs.iter().map(|run| count(run)).find(|other| *other != count(reference));
        other.map(|other| format!("{name}: {} against {other}", count(reference)))
    });
    differ.collect()
}

fn draws(a: &[JobRow], b: &[JobRow]) -> DrawsCompared {
    let drawn = |rows: &[JobRow]| -> BTreeMap<u32, (u64, u64, u32)> {
        rows.iter().map(|row| (row.job, (row.arrival.to_bits(), row.longest.to_bits(), row.tasks))).collect()
    };
    let (a, b) = (drawn(a), drawn(b));
    let same = a.iter().filter(|(job, draws)| b.get(job) == Some(draws)).count();
    let all = a.len() + b.keys().filter(|job| !a.contains_key(job)).count();
    DrawsCompared { jobs: all as u64, different: (all - same) as u64 }
}

fn placement(a: &[CopyRow], b: &[CopyRow]) -> Option<JobPlacement> {
    let placed = |rows: &[CopyRow]| {
        let mut jobs: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.end_kind == CopyEnd::First) {
            jobs.entry(row.job).or_default().insert(row.task, row.core);
        }
        jobs
    };
    let (a, b) = (placed(a), placed(b));
    let both: Vec<_> = a.iter().filter_map(|(job, tasks)| Some((tasks, b.get(job)?))).collect();
    let moved = both.iter().filter(|(a, b)| a != b).count();
    (!both.is_empty()).then_some(JobPlacement { jobs: both.len() as u64, moved: moved as u64 })
}

fn summaries<'a>(records: &[&'a RunRecord]) -> Vec<&'a Summary> {
    records.iter().map(|record| &record.summary).collect()
}

/// Reasons and injections of degraded runs, without duplicates.
fn reasons(runs: &[&RunRecord]) -> Vec<String> {
    let certificates = runs.iter().filter_map(|run| run.summary.fidelity.as_ref());
    let says: BTreeSet<_> = certificates.flat_map(|c| &c.reasons).map(|reason| reason.says.clone()).collect();
    let injected = runs.iter().flat_map(|run| &run.summary.injections).map(Injected::describe);
    says.into_iter().chain(injected.collect::<BTreeSet<_>>()).collect()
}

/// Share of a difference that a cause must explain.
const MOST: f64 = 0.5;
/// Share of moved jobs from which the moves are named as a possible cause of the difference.
const MOVED: f64 = 0.05;

/// The likely cause as text: the first cause that explains most of the difference.
fn cause(
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

/// The departures that the certificates report. Their effect on a metric is unknown.
fn degraded(certificates: &[&Certificate]) -> Option<String> {
    let mut departures: Vec<_> =
        certificates.iter().flat_map(|c| &c.reasons).map(|reason| reason.what).collect();
    departures.sort_unstable();
    departures.dedup();
    let words: Vec<String> = departures.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| format!("the run is degraded: {}", words.join(", ")))
}

/// Lateness as a cause: every message that a task waits for adds its lateness, and the end of its copy adds its own.
fn late(apart: f64, run: &Summary, certificates: &[&Certificate]) -> Option<String> {
    let lateness = |of: fn(&Certificate) -> f64| mean(certificates, of);
    let (delivery, work) = (lateness(|c| c.lateness.deliveries.mean_s), lateness(|c| c.lateness.work.mean_s));
    let hops = run.messages_per_task();
    let expected = hops * delivery + work;
    (apart > 0.0 && expected >= MOST * apart).then(|| {
        format!(
            "lateness: {} messages per task, each {} late, and ends of copies, {} late: {} together; the difference is {}",
            number::short(hops),
            number::seconds(delivery),
            number::seconds(work),
            number::seconds(expected),
            number::seconds(apart)
        )
    })
}

/// Clock errors as a cause: the bound of the hosts' clock errors may explain the difference.
fn clocks(apart: f64, seconds: bool, runs: &[&Summary], certificates: &[&Certificate]) -> Option<String> {
    let bound = certificates.iter().map(|c| c.clock_bound_s()).fold(0.0, f64::max);
    let hops = runs.first().map_or(0.0, |run| run.messages_per_task());
    (seconds && bound > 0.0 && hops * bound >= MOST * apart.abs()).then(|| {
        format!(
            "clocks of hosts: {} messages per task, each timed to within {}: up to {} together; the difference is {}",
            number::short(hops),
            number::seconds(bound),
            number::seconds(hops * bound),
            number::seconds(apart.abs())
        )
    })
}

/// Real cores as a cause: copies took longer or shorter than the interference explains, and queues amplify this. The
/// reference with cores as they were found shows how much.
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
        format!(
            "real cores: copies occupied cores {excess} beyond the requested time{}",
            so.unwrap_or_default()
        )
    })
}

/// Order as a cause: messages that are due at nearly the same time arrive in another order, which changes choices. Only
/// repeated runs of the same world show the size of the effect. If the run is `degraded`, the text also says so, since
/// the degradation may have changed the order.
fn other_servers(
    apart: f64,
    spread: Option<f64>,
    placement: Option<JobPlacement>,
    degraded: Option<String>,
) -> Option<String> {
    let notable = |placement: &JobPlacement| placement.moved as f64 >= MOVED * placement.jobs as f64;
    let placement = placement.filter(|placement| placement.moved > 0 && notable(placement))?;
    let (moved, jobs) = (number::count(placement.moved), number::count(placement.jobs));
    let moved = format!("{moved} of {jobs} sampled jobs ran on other servers");
    let noise = match spread {
        None => format!(
            "may be ordering noise: {moved}; --repeat {ENOUGH} or more shows how much runs of one runtime differ"
        ),
        Some(spread) if apart.abs() <= spread => {
            format!("ordering noise: {moved}, and repeated runs of one runtime differ by as much")
        }
        Some(_) => return None,
    };
    Some(match degraded {
        Some(degraded) => format!("{noise}; {degraded}"),
        None => noise,
    })
}

/// Few jobs as a cause: a quantile far in the tail depends on only a few jobs.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_engine::results::{CopyEnd, Measured, RealWork};
    use volary_experiment::config::RuntimeKind;
    use volary_experiment::fidelity::fixture;
    use volary_experiment::storage::fixture::{manifest, measured};
    use volary_experiment::storage::manifest::RunState;
    use volary_experiment::storage::run_record::RunRecord;
    use volary_experiment::storage::{RenderedReport, Study, StudyDir};

    use super::*;
    use crate::comparison::divergence::MetricDivergence;
    use crate::comparison::validation::{Against, DrawsCompared, SkippedRuntime, ValidatedPoint, Validation};
    use crate::comparison::variant::{RunVariant, VariantRuns};

    /// Runs of one policy in study directories, each changed by the function at its place.
    fn ran(folder: &Path, runtime: RuntimeKind, runs: &[&dyn Fn(&mut Measured)]) -> VariantRuns {
        let run = |(number, change): (usize, &&dyn Fn(&mut Measured))| -> Study {
            let root = folder.join(format!("{runtime}-{number}"));
            let id = format!("{runtime}{number}");
            let mut measured = measured("a", &[], 1, 1.0, 400);
            change(&mut measured);
            let dir = StudyDir::create(&root, manifest(&[&id])).unwrap();
            dir.store(&id, &measured).unwrap();
            dir.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap()
        };
        VariantRuns {
            variant: RunVariant { runtime, real: None },
            runs: runs.iter().enumerate().map(run).collect(),
        }
    }

    fn compared(runs: &[&dyn Fn(&mut Measured)]) -> Against {
        compared_with(&|_| (), runs)
    }

    /// Compares runs with a reference that is changed by a function.
    fn compared_with(reference: &dyn Fn(&mut Measured), runs: &[&dyn Fn(&mut Measured)]) -> Against {
        let folder = tempfile::tempdir().unwrap();
        let point = ValidatedPoint {
            policy: "a".into(),
            cell: volary_engine::results::Cell::new(),
            window: None,
            against: Vec::new(),
        };
        let reference = ran(folder.path(), RuntimeKind::Virtual, &[reference]);
        // Cores that are slower by 1 % make responses longer by 2 %.
        let as_found = |run: &RunRecord| {
            let certificate = run.summary.fidelity.as_ref().filter(|certificate| certificate.cores.is_some());
            Ok(certificate.map(|certificate| {
                let mut slower = measured("a", &[], 1, 1.0, 400).summary;
                slower.times.response_s.p50 *= 1.0 + 2.0 * certificate.core_s.excess();
                slower
            }))
        };
        against(&point, &reference, &ran(folder.path(), RuntimeKind::Local, runs), &as_found)
            .unwrap()
            .unwrap()
    }

    fn metric<'a>(against: &'a Against, name: &str) -> &'a MetricDivergence {
        against.metrics.iter().find(|divergence| divergence.metric == name).unwrap()
    }

    /// Lengthens all response times by this share.
    fn slower(by: f64) -> impl Fn(&mut Measured) {
        move |run| {
            run.summary.fidelity = Some(fixture::faithful());
            for value in [
                &mut run.summary.times.response_s.p50,
                &mut run.summary.times.response_s.p90,
                &mut run.summary.times.response_s.p99,
            ] {
                *value *= 1.0 + by;
            }
        }
    }

    #[test]
    fn a_run_agrees_with_itself_in_every_metric() {
        let found = compared(&[&|run| run.summary.fidelity = Some(fixture::faithful())]);
        assert_eq!((found.accounts.len(), found.draws), (0, DrawsCompared { jobs: 400, different: 0 }));
        assert_eq!(found.placement.map(|p| p.moved), Some(0));
        assert!(found.metrics.iter().all(|m| m.relative == Some(0.0) && m.cause.is_none()), "{found:?}");
        assert!(found.holds() && found.degraded.is_empty());
    }

    #[test]
    fn only_faithful_runs_are_judged_by_their_quantiles() {
        assert!(compared(&[&slower(0.04)]).holds());
        let found = compared(&[&slower(0.06)]);
        assert!(!found.holds());
        assert_eq!(found.beyond().count(), 3);
        assert!((metric(&found, "response_s.p99").relative.unwrap() - 0.06).abs() < 1e-9);
        let degraded = compared(&[&|run| {
            slower(0.06)(run);
            run.summary.fidelity = Some(fixture::degraded());
        }]);
        assert!(degraded.holds() && !degraded.is_judged && degraded.beyond().count() == 3);
        let injected = compared(&[&|run| {
            slower(0.06)(run);
            run.summary.injections = vec![volary_experiment::storage::fixture::injected()];
        }]);
        assert!(
            injected.holds() && injected.degraded[0].starts_with("interference was injected from 2.000 s")
        );
        let cause = metric(&degraded, "response_s.p99").cause.clone().unwrap();
        assert!(cause.contains("degraded") && cause.contains("busy processor"), "{cause}");
    }

    /// A degraded repetition is left out; the verdict is on the other repetitions.
    #[test]
    fn degraded_repetitions_are_left_out_of_the_verdict() {
        let late = |run: &mut Measured| {
            slower(0.5)(run);
            run.summary.fidelity = Some(fixture::degraded());
        };
        let good = compared(&[&slower(0.0), &late, &slower(0.0)]);
        assert!(good.holds() && good.is_judged && good.beyond().next().is_none(), "{good:?}");
        assert_eq!((good.runs, good.left_out, good.degraded.is_empty()), (3, 1, false));
        let bad = compared(&[&slower(0.06), &late]);
        assert!(!bad.holds() && bad.beyond().count() == 3, "{bad:?}");
    }

    #[test]
    fn runs_are_not_judged_against_a_degraded_reference() {
        let late = |run: &mut Measured| run.summary.fidelity = Some(fixture::degraded());
        let found = compared_with(&late, &[&slower(0.06)]);
        assert!(!found.is_judged && found.holds());
        assert!(found.degraded[0].starts_with("the reference virtual: "), "{:?}", found.degraded);
    }

    /// If copies take 4 % longer on real cores, medians may differ by 5 % from the reference, or from the reference
    /// with such cores, which is 8 % above the plain reference. Other quantiles have their usual limits.
    #[test]
    fn slower_real_cores_widen_the_limit_of_medians() {
        let burnt = |by: f64| {
            let found = compared(&[&|run: &mut Measured| {
                slower(by)(run);
                let certificate = run.summary.fidelity.as_mut().unwrap();
                certificate.cores = Some(RealWork::default());
                certificate.core_s.achieved = 1.04 * certificate.core_s.asked;
            }]);
            let within = |name| {
                let metric = metric(&found, name);
                (metric.within.unwrap(), metric.within_found.unwrap())
            };
            (
                within("response_s.p50"),
                within("response_s.p90"),
                metric(&found, "response_s.p50").cause.clone(),
            )
        };
        assert_eq!(burnt(-0.04).2.as_deref(), Some("not explained by the certificate"));
        let (p50, p90, cause) = burnt(0.12);
        assert_eq!((p50, p90), ((false, true), (false, false)));
        let cause = cause.unwrap();
        assert!(
            cause.contains("beyond the requested time; with cores as found virtual time has +8.0")
                && cause.starts_with("real cores"),
            "{cause}"
        );
        let p50 = [0.14, -0.06, -0.04, 0.03].map(|by| burnt(by).0);
        assert_eq!(p50, [(false, false), (false, false), (true, false), (true, true)]);
        assert_eq!(metric(&compared(&[&slower(0.1)]), "response_s.p50").found, None, "no core was burnt");
    }

    #[test]
    fn a_divergence_within_the_spread_of_the_runs_is_accepted() {
        let found = compared(&[&slower(0.02), &slower(0.15), &slower(0.06)]);
        assert!(found.holds() && metric(&found, "response_s.p50").spread.is_some(), "{found:?}");
        let sure = compared(&[&slower(0.060), &slower(0.061), &slower(0.062)]);
        assert!(!sure.holds(), "three runs agree on a difference of 6 %");
        assert_eq!(
            metric(&compared(&[&slower(0.0), &slower(0.2)]), "response_s.p50").spread,
            None,
            "two runs give no estimate of the spread"
        );
    }

    #[test]
    fn different_jobs_or_counts_fail_the_validation() {
        let found = compared(&[&|run| run.jobs[7].arrival += 1e-9]);
        assert_eq!(found.draws, DrawsCompared { jobs: 400, different: 1 });
        assert!(!found.holds());
        let later = compared(&[&|_| (), &|run| run.jobs[7].arrival += 1e-9, &|_| ()]);
        assert_eq!(later.draws, found.draws, "differences in any repetition count");
        let found = compared(&[&|run| run.jobs.truncate(399)]);
        assert_eq!(found.draws, DrawsCompared { jobs: 400, different: 1 });
        let found = compared(&[&|_| (), &|run| run.summary.jobs.finished -= 3]);
        assert_eq!(found.accounts, ["jobs finished: 400 against 397"], "differences in any repetition count");
        assert!(!found.holds());
    }

    #[test]
    fn a_comparison_names_the_likely_cause_of_a_divergence() {
        let cause = |change: &dyn Fn(&mut Measured)| {
            metric(&compared(&[change]), "response_s.p50").cause.clone().unwrap()
        };
        let late = cause(&|run| {
            slower(0.02)(run);
            let certificate = run.summary.fidelity.as_mut().unwrap();
            certificate.lateness.deliveries.mean_s = 0.01;
        });
        assert!(late.starts_with("lateness: 6.40 messages per task, each 10.0\u{202f}ms late"), "{late}");
        let clocks = cause(&|run| {
            slower(0.02)(run);
            run.summary.fidelity.as_mut().unwrap().hosts[0].clock.bound_s = 0.01;
        });
        assert!(clocks.starts_with("clocks of hosts"), "{clocks}");
        let order = cause(&|run| {
            slower(0.5)(run);
            run.copies.iter_mut().filter(|row| row.end_kind == CopyEnd::First).for_each(|row| row.core += 1);
        });
        assert!(order.starts_with("may be ordering noise: ") && order.contains("--repeat 3"), "{order}");
        assert_eq!(cause(&slower(0.5)), "not explained by the certificate");
    }

    /// Lateness is named as the cause only if it explains most of the difference.
    #[test]
    fn ordering_noise_is_not_attributed_to_small_lateness() {
        let elsewhere = |run: &mut Measured| {
            run.copies.iter_mut().filter(|row| row.end_kind == CopyEnd::First).for_each(|row| row.core += 1);
        };
        let late = |by: f64, each_s: f64| {
            move |run: &mut Measured| {
                slower(by)(run);
                elsewhere(run);
                run.summary.fidelity = Some(fixture::degraded());
                run.summary.fidelity.as_mut().unwrap().lateness.deliveries.mean_s = each_s;
                run.summary.fidelity.as_mut().unwrap().lateness.work.mean_s = 0.0;
            }
        };
        let cause = |runs: &[&dyn Fn(&mut Measured)]| {
            metric(&compared(runs), "response_s.p50").cause.clone().unwrap_or_default()
        };
        let little = cause(&[&late(0.5, 1e-6)]);
        assert!(
            little.starts_with("may be ordering noise: ") && little.contains("the run is degraded: "),
            "{little}"
        );
        let much = cause(&[&late(0.02, 0.01)]);
        assert!(much.starts_with("lateness: "), "{much}");
        let apart = cause(&[&late(0.0, 1e-6), &late(0.9, 1e-6), &late(0.3, 1e-6)]);
        assert!(apart.starts_with("ordering noise: "), "{apart}");
        let alike = cause(&[&late(0.50, 1e-6), &late(0.51, 1e-6), &late(0.52, 1e-6)]);
        assert!(alike.starts_with("the run is degraded: "), "{alike}");
    }

    /// A single job that ran on another server does not change a median.
    #[test]
    fn a_few_moved_jobs_are_not_named_as_the_cause() {
        let cause = |degraded: bool| {
            let found = compared(&[&|run: &mut Measured| {
                slower(0.5)(run);
                run.copies.iter_mut().rfind(|row| row.end_kind == CopyEnd::First).unwrap().core += 1;
                if degraded {
                    run.summary.fidelity = Some(fixture::degraded());
                    run.summary.fidelity.as_mut().unwrap().lateness.deliveries.mean_s = 0.0;
                    run.summary.fidelity.as_mut().unwrap().lateness.work.mean_s = 0.0;
                }
            }]);
            assert_eq!(found.placement.unwrap().moved, 1, "{found:?}");
            metric(&found, "response_s.p50").cause.clone().unwrap()
        };
        assert_eq!(cause(false), "not explained by the certificate");
        assert!(cause(true).starts_with("the run is degraded: "), "{}", cause(true));
    }

    #[test]
    fn tables_show_every_runtime_and_the_verdict() {
        let mut local = compared(&[&slower(0.06)]);
        let mut hosts = local.clone();
        (local.runtime, hosts.runtime) = ("local".into(), "hosts".into());
        (hosts.degraded, hosts.is_judged) = (vec!["too late".into()], false);
        let cell = volary_engine::results::Cell::new();
        let validation = Validation {
            experiment: "e".into(),
            seed: 1,
            reference: "virtual".into(),
            skipped: vec![SkippedRuntime { runtime: "hosts".into(), why: "no hosts".into() }],
            points: vec![ValidatedPoint {
                policy: "a".into(),
                cell,
                window: None,
                against: vec![local, hosts],
            }],
        };
        assert!(!validation.holds());
        let text = validation.text();
        for words in [
            "+6.00\u{202f}% ✗",
            "local: equal accounts; 400 jobs with equal arrivals and demands",
            "DEGRADED: too late",
            "hosts was left out: no hosts",
            "0 of 3 quantiles",
            "1 of 2 are degraded",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
        let json = serde_json::to_string(&validation).unwrap();
        assert_eq!(serde_json::from_str::<Validation>(&json).unwrap(), validation);
        let mut gossip = validation;
        let local = &mut gossip.points[0].against[0];
        local.draws.jobs = 0;
        local.metrics.iter_mut().for_each(|divergence| divergence.within = None);
        for words in ["local: equal accounts; no jobs", "there are no response times to judge"] {
            assert!(gossip.text().contains(words), "{words}");
        }
    }
}
