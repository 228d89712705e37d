//! Whether caches are as stale in one runtime as in another.
//!
//! How old news is and how wrong caches are depends on delays alone, whichever node a task went to: these two are
//! judged. They may be off by the bar, by what the certificate knows of late deliveries and clocks, and by chance,
//! as caches are only looked at now and then. What wrong caches lead to depends on every choice made before, and is
//! only shown.

use super::BAR;
use super::against::{Divergence, divergence};
use crate::compare::Metric;
use crate::number;
use crate::results::{Staleness, Summary};

/// Figures of staleness; the first two are judged.
pub(super) const METRICS: [Metric; 4] = [
    Metric { name: "staleness.age_s.mean", value: |s| of(s, |s| s.age_s.mean), text: number::seconds },
    Metric { name: "staleness.error_s.mean", value: |s| of(s, |s| s.error_s.mean), text: number::seconds },
    Metric {
        name: "staleness.decision_error_s.mean",
        value: |s| of(s, |s| s.decision_error_s.mean),
        text: number::seconds,
    },
    Metric { name: "staleness.regret_s.mean", value: |s| of(s, |s| s.regret_s.mean), text: number::seconds },
];
const JUDGED: usize = 2;

/// How many standard deviations of the looks at both runs chance is given.
const PATIENCE: f64 = 5.0;

fn of(summary: &Summary, value: fn(&Staleness) -> f64) -> f64 {
    summary.staleness.as_ref().map_or(f64::NAN, value)
}

/// The figures in both; none for a policy without caches.
pub(super) fn compared(reference: &Summary, runs: &[&Summary]) -> Vec<Divergence> {
    let Some(stale) = &reference.staleness else { return Vec::new() };
    let allowed = tolerance(reference, stale, runs);
    let row = |(i, metric): (usize, &Metric)| {
        let mut row = divergence(metric, false, (reference, &[]), runs);
        if let (Some(allowed), Some(relative), true) = (allowed, row.relative, i < JUDGED) {
            row.within = Some(relative.abs() <= allowed);
        }
        row
    };
    METRICS.iter().enumerate().map(row).collect()
}

/// By which share of the reference a figure may be off; nothing if by as much as itself.
fn tolerance(reference: &Summary, stale: &Staleness, runs: &[&Summary]) -> Option<f64> {
    let certificates: Vec<_> = runs.iter().filter_map(|run| run.fidelity.as_ref()).collect();
    let late = certificates.iter().map(|certificate| {
        let asked = certificate.network.delay.asked.mean_s;
        (certificate.lateness.deliveries.mean_s + certificate.clock_bound_s()) / asked
    });
    let late = late.fold(0.0, f64::max);
    // News of one job comes and goes together, at all schedulers.
    let tasks = reference.tasks.submitted as f64 / reference.jobs.submitted as f64;
    let looks = reference.makespan_s / stale.every_s;
    // What was lost is seen at every look, and which it was decides.
    let lost = if reference.messages.dropped > 0 { reference.messages.dropped as f64 } else { f64::INFINITY };
    let chance = PATIENCE / (looks * stale.in_flight.mean / tasks).min(lost).sqrt();
    // News that stays longer is older, and there is more of it.
    let allowed = BAR + (1.0 + late).powi(2) - 1.0 + chance;
    (allowed < 1.0).then_some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::fixture::faithful;
    use crate::record::fixture::measured;
    use crate::results::Spread;

    /// Jobs of ten tasks for a day, 10 ms of news at each look.
    fn run(age: f64) -> Summary {
        let mut run = measured("a", &[], 1, 1.0, 400).summary;
        let spread = |mean| Spread { mean, ..Spread::default() };
        run.makespan_s = 86_400.0;
        run.messages.dropped = 0;
        run.tasks.submitted = 10 * run.jobs.submitted;
        run.staleness = Some(Staleness {
            age_s: spread(age),
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
        compared(reference, &[run]).iter().map(|row| row.within).collect()
    }

    #[test]
    fn ages_and_errors_are_judged_where_there_are_enough_of_them() {
        let reference = run(0.01);
        let allowed = tolerance(&reference, &reference.staleness.unwrap(), &[&real(0.01)]).unwrap();
        assert!((BAR..0.5).contains(&allowed), "{allowed}");
        let off = |share: f64| judged(&reference, &real(0.01 * (1.0 + share)));
        assert_eq!(off(0.99 * allowed), [Some(true), Some(true), None, None]);
        assert_eq!(off(1.01 * allowed)[..2], [Some(false), Some(true)]);
        assert_eq!(off(-1.01 * allowed)[..2], [Some(false), Some(true)]);
        let short = Summary { makespan_s: 10.0, ..run(0.01) };
        assert_eq!(judged(&short, &real(0.02)), [None; 4], "ten looks say nothing");
        let mut lossy = run(0.01);
        lossy.messages.dropped = 20;
        assert_eq!(judged(&lossy, &real(0.02)), [None; 4], "nor do twenty that were lost");
        assert!(compared(&measured("a", &[], 1, 1.0, 400).summary, &[]).is_empty());
    }
}
