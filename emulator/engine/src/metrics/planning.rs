//! Plans of schedulers that plan in cycles, and the errors of their estimates of run times.

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::machine::Note;

use super::PolicyMetric;
use super::gauge::Gauge;
use crate::results::{PlanGap, Planning, PolicyResults, PredictionErrors};

/// Folds notes about plans and estimates.
#[derive(Debug, Default)]
pub struct PlanCounter {
    /// `None` until the first plan is carried out.
    plans: Option<Box<Plans>>,
    estimates: Estimated,
}

#[derive(Debug, Default)]
struct Plans {
    cycles: u64,
    solved: u64,
    options: u64,
    columns: u64,
    pivots: u64,
    gaps: Gauge,
    launched: u64,
    revoked: u64,
    preempted: u64,
    took: Span,
}

impl Plans {
    fn results(&self) -> Planning {
        let mean = |sum: u64| sum as f64 / self.solved as f64;
        let gaps = self.gaps.spread();
        Planning {
            cycles: self.cycles,
            solved: self.solved,
            options: mean(self.options),
            columns: mean(self.columns),
            pivots: mean(self.pivots),
            gap: PlanGap { mean: gaps.mean, p99: gaps.p99, max: gaps.max },
            launched: self.launched,
            revoked: self.revoked,
            preempted: self.preempted,
            emulated_s: self.took.as_secs_f64(),
        }
    }
}

#[derive(Debug, Default)]
struct Estimated {
    jobs: u64,
    under: u64,
    over: u64,
    errors: f64,
    runs: f64,
}

impl Estimated {
    fn add(&mut self, expected: Span, run: Span) {
        let (expected, run) = (expected.as_secs_f64(), run.as_secs_f64());
        self.jobs += 1;
        self.under += u64::from(expected < run / 2.0);
        self.over += u64::from(expected > run * 2.0);
        self.errors += (expected - run).abs();
        self.runs += run;
    }

    fn results(&self) -> PredictionErrors {
        let share = |jobs: u64| jobs as f64 / self.jobs as f64;
        let (under, over) = (share(self.under), share(self.over));
        let within_2x = share(self.jobs - self.under - self.over);
        PredictionErrors { jobs: self.jobs, within_2x, under, over, error: self.errors / self.runs }
    }
}

impl PolicyMetric for PlanCounter {
    #[inline]
    fn note(&mut self, _: Time, _: ActorId, note: Note) {
        if let Note::Planned { options, columns, pivots, gap } = note {
            let plans = self.plans.get_or_insert_default();
            plans.solved += 1;
            plans.options += u64::from(options);
            plans.columns += u64::from(columns);
            plans.pivots += u64::from(pivots);
            plans.gaps.add(f64::from(gap) * 1e-6, 1);
        } else if let Note::Enacted { cycles, launched, revoked, preempted, took } = note {
            let plans = self.plans.get_or_insert_default();
            plans.cycles += u64::from(cycles);
            plans.launched += u64::from(launched);
            plans.revoked += u64::from(revoked);
            plans.preempted += u64::from(preempted);
            plans.took += took;
        } else if let Note::Predicted { expected, run, .. } = note {
            self.estimates.add(expected, run);
        }
    }

    fn close(self, _: Time, _: Time, results: &mut PolicyResults) {
        results.sections.planning = self.plans.map(|plans| plans.results());
        results.sections.prediction = (self.estimates.jobs > 0).then(|| self.estimates.results());
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::JobId;

    use super::*;

    fn fold(notes: &[Note]) -> PolicyResults {
        let mut counter = PlanCounter::default();
        notes.iter().for_each(|note| counter.note(Time::ZERO, ActorId(0), *note));
        let mut results = PolicyResults::default();
        counter.close(Time::ZERO, Time::ZERO, &mut results);
        results
    }

    #[test]
    fn plans_are_counted() {
        assert_eq!(fold(&[]).sections.planning, None);
        let planned = |pivots, gap| Note::Planned { options: 10, columns: 20, pivots, gap };
        let enacted =
            Note::Enacted { cycles: 4, launched: 3, revoked: 1, preempted: 2, took: Span::from_secs(1) };
        let planning = fold(&[planned(4, 0), enacted, planned(8, 20_000)]).sections.planning.unwrap();
        assert_eq!((planning.cycles, planning.solved), (4, 2));
        assert_eq!((planning.options, planning.columns, planning.pivots), (10.0, 20.0, 6.0));
        assert!((planning.gap.mean - 0.01).abs() < 1e-9 && (planning.gap.max - 0.02).abs() < 1e-9);
        assert_eq!((planning.launched, planning.revoked, planning.preempted), (3, 1, 2));
        assert_eq!(planning.emulated_s, 1.0);
    }

    /// Four jobs of 4, 5, 20 and 21 s each have an estimate of 10 s.
    #[test]
    fn estimates_within_a_factor_of_two_are_counted() {
        assert_eq!(fold(&[]).sections.prediction, None);
        let learnt =
            |run| Note::Predicted { job: JobId(0), expected: Span::from_secs(10), run: Span::from_secs(run) };
        let errors = fold(&[4, 5, 20, 21].map(learnt)).sections.prediction.unwrap();
        assert_eq!((errors.jobs, errors.within_2x, errors.under, errors.over), (4, 0.5, 0.25, 0.25));
        assert_eq!(errors.error, (6.0 + 5.0 + 10.0 + 11.0) / 50.0);
    }
}
