//! The planner of 3Sigma: each cycle it solves a problem, and launches what starts now.

use volary_lp::{Basis, Plan, Problem, Work, relax, round};

use super::config::ThreeSigma;
use super::estimate::RunTimeSource;
use super::problem::{Formulated, KnownJob, formulate};
use crate::base::{JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::machine::{Effects, Note, Stored};
use crate::predict::Predictor;
use crate::roles::job_table::JobTable;
use crate::roles::planning::{Decision, JobRun, LaunchOrder, Planner, Situation, TaskPlaces};

/// The planner.
pub(super) struct SigmaPlanner {
    config: ThreeSigma,
    source: RunTimeSource,
    known: JobTable<KnownJob>,
    /// Where the next solve starts from.
    basis: Basis,
    /// Whether the history is that of a predecessor.
    restored: bool,
}

/// A plan and what it took.
struct PlannedCycle {
    plan: Plan,
    bound: f64,
    pivots: u32,
}

impl SigmaPlanner {
    pub(super) fn new(config: &ThreeSigma) -> Self {
        Self {
            config: config.clone(),
            source: RunTimeSource::new(config),
            known: JobTable::default(),
            basis: Basis::default(),
            restored: false,
        }
    }

    /// Solves a problem.
    fn solve(&mut self, problem: &Problem) -> PlannedCycle {
        let work = Work { ruins: self.config.ruins, ..Work::default() };
        let relaxed = relax(problem, Some(&self.basis), work);
        let plan = round(problem, &relaxed, work);
        self.basis = relaxed.basis;
        PlannedCycle { plan, bound: relaxed.bound, pivots: relaxed.pivots }
    }
}

impl Planner for SigmaPlanner {
    fn started(&mut self, fx: &mut Effects<'_>) {
        if !self.restored {
            self.source.study(fx.catalog());
        }
    }

    fn submitted(&mut self, job: JobId, spec: &JobSpec, fx: &mut Effects<'_>) {
        let forecast = self.source.estimate(job, fx);
        let preference = (fx.catalog().preference(job), fx.layout().kinds());
        self.known.open(job, KnownJob::new(&self.config, spec, forecast, preference));
    }

    fn decide(&mut self, situation: Situation<'_>, fx: &mut Effects<'_>) -> Decision {
        let now = fx.now();
        let formulated = formulate(&self.config, &mut self.known, situation, now);
        let problem = &formulated.problem;
        let planned = self.solve(problem);
        fx.note(Note::Planned {
            options: problem.options() as u32,
            columns: problem.variables() as u32,
            pivots: planned.pivots,
            gap: gap(planned.plan.value, planned.bound),
        });
        decision(&formulated, &planned.plan, self.config.decide, (now, self.config.slot))
    }

    fn ended(&mut self, job: JobId, run: Option<JobRun>, fx: &mut Effects<'_>) {
        let Some(known) = self.known.close(job) else { return };
        let Some(JobRun { length, elsewhere }) = run else { return };
        let run = if elsewhere { length.scale(1.0 / known.preference.slowdown) } else { length };
        self.source.learn(job, &known.forecast, run, fx.catalog());
        let expected = Span::from_secs_f64(known.forecast.point);
        fx.note(Note::Predicted { job, expected, run });
    }

    fn stored(&mut self) -> Option<Stored> {
        Some(Box::new(self.source.take_history()))
    }

    fn restore(&mut self, stored: Stored) {
        if let Ok(history) = stored.downcast::<Predictor>() {
            self.source.restore(*history);
            self.restored = true;
        }
    }
}

/// The relative distance between a plan and its bound, in millionths.
fn gap(value: f64, bound: f64) -> u32 {
    if bound > 0.0 { ((bound - value).max(0.0) / bound * 1e6) as u32 } else { 0 }
}

/// What starts now in a plan, what may give way to it, and when it wants to start something else.
fn decision(formulated: &Formulated, plan: &Plan, takes: Span, (now, slot): (Time, Span)) -> Decision {
    let mut due = formulated.due;
    let mut launches = Vec::new();
    for choice in &plan.choices {
        if choice.slot == 0 {
            let job = formulated.waiting[choice.job];
            launches.push(LaunchOrder { job, places: TaskPlaces::Kinds(choice.tasks.clone()) });
        } else {
            let at = now + Span(slot.0.saturating_mul(u64::from(choice.slot)));
            due = Some(due.map_or(at, |due| due.min(at)));
        }
    }
    let victims = plan.preempted.iter().map(|at| formulated.running[*at]).collect();
    Decision { launches, victims, due, takes, ..Decision::default() }
}
