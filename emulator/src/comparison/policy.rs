//! The compared metrics that only policies with caches have: those of the section `staleness` of the summary.

use volary_engine::results::Summary;

use super::metrics::BAR;

/// Number of metrics, from the first, that are judged; other metrics are only shown. Ages and errors depend only on
/// delays, not on the chosen node. The other metrics depend on all previous choices.
pub(super) const JUDGED: usize = 3;

/// The metrics of policies whose schedulers keep caches.
pub(super) const STALENESS: [&str; 7] = [
    "staleness.age_of_synchronisation_s.mean",
    "staleness.version_age.mean",
    "staleness.error_s.mean",
    "staleness.out_of_sync",
    "staleness.age_of_information_s.mean",
    "staleness.decision_error_s.mean",
    "staleness.regret_s.mean",
];

/// Number of standard deviations by which samples of caches may differ by chance.
const CHANCE: f64 = 5.0;

/// The tolerance of the judged metrics, relative to the reference: the bar, the lateness of deliveries and the clock
/// error in the certificate, and chance, since caches are only sampled. `Some(None)` accepts any difference; `None`
/// means that the reference has no caches.
pub(super) fn tolerance(reference: &Summary, runs: &[&Summary]) -> Option<Option<f64>> {
    let stale = reference.sections.staleness.as_ref()?;
    let certificates = runs.iter().filter_map(|run| run.fidelity.as_ref());
    let late = certificates.map(|certificate| {
        let asked = certificate.network.delay.asked.mean_s;
        (certificate.lateness.deliveries.mean_s + certificate.clock_bound_s()) / asked
    });
    let late = late.fold(0.0, f64::max);
    // Updates about one job are correlated: they are sent and arrive together at all schedulers.
    let tasks = reference.tasks.submitted as f64 / reference.jobs.submitted as f64;
    let samples = reference.length_s() / stale.every_s;
    // A shared state has few copies, which are in sync when nothing happens.
    let in_flight = Some(stale.in_flight.mean).filter(|mean| mean.is_finite()).unwrap_or_default();
    // A lost update affects every later sample, so the number of losses bounds the number of independent samples.
    let lost = if reference.messages.dropped > 0 { reference.messages.dropped as f64 } else { f64::INFINITY };
    let chance = CHANCE / (samples * in_flight / tasks).min(lost).sqrt();
    // Updates that take longer are older, and more updates are in flight.
    let allowed = BAR + (1.0 + late).powi(2) - 1.0 + chance;
    Some((allowed < 1.0).then_some(allowed))
}

#[cfg(test)]
mod tests {
    use volary_engine::results::{Spread, Staleness};
    use volary_experiment::fidelity::fixture::faithful;
    use volary_experiment::storage::fixture::measured;

    use super::super::divergence::of_policy;
    use super::*;

    /// The summary of a run of a day with jobs of ten tasks, and updates of 10 ms in flight at each sample.
    fn run(age: f64) -> Summary {
        let mut run = measured("a", &[], 1, 1.0, 400).summary;
        let spread = |mean| Spread { mean, ..Spread::default() };
        run.makespan_s = 86_400.0;
        run.messages.dropped = 0;
        run.tasks.submitted = 10 * run.jobs.submitted;
        run.sections.staleness = Some(Staleness {
            age_of_synchronisation_s: spread(age),
            version_age: spread(1.0),
            error_s: spread(1.0),
            in_flight: spread(10.0),
            every_s: 1.0,
            ..Staleness::default()
        });
        run
    }

    fn real(age: f64) -> Summary {
        Summary { fidelity: Some(faithful()), ..run(age) }
    }

    fn judged(reference: &Summary, run: &Summary) -> Vec<Option<bool>> {
        of_policy(reference, &[run])["staleness"].iter().map(|row| row.within).collect()
    }

    #[test]
    fn ages_and_errors_are_judged_only_with_enough_samples() {
        let reference = run(0.01);
        let allowed = tolerance(&reference, &[&real(0.01)]).unwrap().unwrap();
        assert!((BAR..0.5).contains(&allowed), "{allowed}");
        let off = |share: f64| judged(&reference, &real(0.01 * (1.0 + share)));
        assert_eq!(off(0.99 * allowed), [Some(true), Some(true), Some(true), None, None, None, None]);
        assert_eq!(off(1.01 * allowed)[..2], [Some(false), Some(true)]);
        assert_eq!(off(-1.01 * allowed)[..2], [Some(false), Some(true)]);
        let short = Summary { makespan_s: 10.0, ..run(0.01) };
        assert_eq!(judged(&short, &real(0.02)), [None; 7], "ten samples are too few to judge");
        let mut lossy = run(0.01);
        lossy.messages.dropped = 20;
        assert_eq!(judged(&lossy, &real(0.02)), [None; 7], "twenty lost updates are too few to judge");
        assert!(of_policy(&measured("a", &[], 1, 1.0, 400).summary, &[])["staleness"].is_empty());
    }
}
