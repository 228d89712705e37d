//! The policy 3Sigma, and its planner: each cycle it solves a problem, and launches what starts now.

use volary_lp::{Basis, Plan, Problem, Work, relax, round};

use super::config::{RunTimeEstimates, ThreeSigma};
use super::estimate::RunTimeSource;
use super::problem::{Formulated, KnownJob, formulate};
use crate::base::{JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::layout::Layout;
use crate::machine::{Effects, Machine, Note, Stored};
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::predict::Predictor;
use crate::roles::job_table::JobTable;
use crate::roles::planning::{
    Decision, JobRun, LaunchOrder, Planner, PlanningScheduler, Situation, TaskPlaces,
};

impl Policy for ThreeSigma {
    const ABOUT: &'static str = "3Sigma (Park, Tumanov, Jiang, Kozuch and Ganger, EuroSys 2018; Park's thesis, \
        chapter 4)\n\
        A central scheduler expects a distribution of run times of each job, from the jobs like it that have ended. \
        Each cycle it plans the starts of waiting jobs over a window of slots so that their expected utility is \
        largest: an SLO job is worth something until its deadline, a best-effort job less the later it starts. A job \
        counts on each slot by the probability that it still runs then. What starts now is launched, all tasks \
        together on free cores; the rest is planned again. Best-effort jobs are preempted where that pays.\n\
        PointPerfEst is { estimates = \"perfect\", over = \"never\" }, PointRealEst { estimates = \"point\", over = \
        \"never\" }, NoDist { estimates = \"point\" }, NoOE { over = \"never\" }, NoAdapt { over = \"always\" }. A \
        job with more tasks than there are cores alive runs as many at a time as there are.";

    const VARIANTS: &'static [&'static str] = &[
        "{}",
        r#"{ cycle = "100ms", slot = "500ms" }"#,
        r#"{ cycle = "200ms", slot = "500ms", slots = 8, estimates = "point", samples = 5, over = "never" }"#,
        r#"{ cycle = "100ms", slot = "250ms", estimates = "perfect", decide = "50ms" }"#,
        r#"{ cycle = "250ms", slot = "1s", estimates = "normal", shift = 0.3, cov = 0.5, over = "always" }"#,
        r#"{ cycle = "500ms", slot = "500ms", slots = 10, samples = 10, preempt = false }"#,
        r#"{ cycle = "500ms", slot = "1s", slots = 6, consider = 2, price = 3.0 }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, plans: true, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("cycle", self.cycle)?;
        check_period("slot", self.slot)?;
        let window = self.slot.0.saturating_mul(u64::from(self.slots));
        if window < self.cycle.0 {
            return Err(format!(
                "slots: {} slots of {} are shorter than the cycle of {}; plan at least one cycle ahead",
                self.slots, self.slot, self.cycle
            ));
        }
        Ok(())
    }

    fn remarks(&self, _: &Layout, _: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        let normal = self.estimates == RunTimeEstimates::Normal;
        if self.samples > 0 && (normal || self.estimates == RunTimeEstimates::Perfect) {
            remarks.push("samples has no effect: nothing is taken from the history".to_owned());
        }
        let default = Self::default();
        for (key, given) in [("shift", self.shift != default.shift), ("cov", self.cov != default.cov)] {
            if given && !normal {
                remarks.push(format!("{key} has no effect without estimates = \"normal\""));
            }
        }
        remarks
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PlanningScheduler::new(self.cycle, SigmaPlanner::new(self), context.layout))
    }
}

/// The planner.
pub(super) struct SigmaPlanner {
    config: ThreeSigma,
    source: RunTimeSource,
    known: JobTable<KnownJob>,
    /// The basis from which the next solve starts.
    basis: Basis,
    /// Whether the history is that of a predecessor.
    restored: bool,
}

/// A plan, its bound, and the pivots that it took.
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

/// The decision of a plan: starts, the jobs that may be preempted for them, and the time of the next planned start.
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
