//! 3Sigma: a central scheduler plans the starts of jobs from distributions of their run times.
//!
//! When a job is submitted, the distribution of its run time is estimated. Each cycle the planner formulates a problem
//! from the options of waiting jobs, the expected free cores by slot, and the running jobs that can be preempted. It
//! solves the problem and launches the jobs that start now.

use volary_lp::{Basis, Block, Job, Plan, Problem, Running, Start, Work, relax, round};

use crate::base::{Feature, JobId, Rng, Span, Time, parameters};
use crate::catalog::{Catalog, JobSpec, Preference};
use crate::layout::Layout;
use crate::machine::{Effects, Machine, Note, Stored};
use crate::policies::policy::{Binds, BuildContext, Policy, Traits, longest_task};
use crate::predict::{Combination, Distribution, Histogram, Prediction, Predictor, PredictorKind};
use crate::roles::job_table::JobTable;
use crate::roles::planning::{
    Decision, JobRun, LaunchOrder, OverEstimates, PlannedJob, Planner, PlanningScheduler, Situation,
    TaskPlaces, Utility, Valuation,
};

parameters! {
    /// Parameters of 3Sigma. The thesis leaves most numbers open; numbers without a section are ours.
    struct ThreeSigma {
        /// Period at which the scheduler plans, if something has changed (section 4.3.3: every 1 to 2 s).
        cycle: Span = Span::from_secs(2) => period,
        /// Length of the planning window, in slots.
        slots: u32 = 20 => 1..=100,
        /// Length of a slot. Possible starts are now and at multiples of this length from now on.
        slot: Span = Span::from_secs(60) => period,
        /// Kind of estimate of a job's run time (table 4.1: `distribution` is 3Sigma, `point` PointRealEst and NoDist,
        /// `perfect` PointPerfEst).
        estimates: RunTimeEstimates = RunTimeEstimates::Distribution,
        /// With `normal`: mean excess of the estimate over the run time, relative to the run time. The excess of each
        /// job is normal around this mean with a standard deviation of 0.1 (section 4.4.4).
        shift: f64 = 0.0 => -0.9..=10.0,
        /// With `normal`: standard deviation of the estimate relative to the run time; zero gives points.
        cov: f64 = 0.1 => 0.0..=2.0,
        /// With `distribution` and `point`: number of values sampled from the history to represent it (figure 4.11).
        /// Zero takes the whole history.
        samples: u32 = 0 => 0..=10000,
        /// Over-estimate handling: the SLO jobs whose utility falls gradually after the deadline (section 4.3.2).
        over: OverEstimates = OverEstimates::Adaptive,
        /// With `over = "adaptive"`: the utility falls gradually if P(run time ≤ time from submission to deadline) is
        /// below this limit.
        threshold: f64 = 0.05 => 0.0..=1.0,
        /// Time in which the utility falls to zero after the deadline, relative to the time from submission to
        /// deadline.
        decay: f64 = 1.0 => 0.0..=1000.0,
        /// Utility of a best-effort job that starts now. It falls linearly to zero at the end of the window, or as
        /// `by_completion` says. An SLO job is worth 1.
        best_effort: f64 = 0.2 => 0.0001..=1.0,
        /// Whether the utility of a best-effort job falls with the time from its arrival to its completion, to a
        /// hundredth at `horizon`, instead of with the wait until its start. Section 4.2.1 and equation 4.1 use the
        /// completion. The example of section 4.3.3 uses the start, and no section gives its slope.
        by_completion: bool = false,
        /// With `by_completion`: the time from arrival to completion at which a best-effort job reaches its least
        /// utility.
        horizon: Span = Span::from_secs(3600),
        /// Whether best-effort jobs can be preempted; their work is then lost. A job is preempted at most ten times,
        /// because jobs that outlive their estimates could otherwise preempt each other for ever.
        preempt: bool = true,
        /// P: the price of preempting a best-effort job, relative to its utility (section 4.3.3). Below 1 equal jobs
        /// would preempt each other for ever. A thousandth is added to the price.
        price: f64 = 1.0 => 1.0..=1000.0,
        /// Largest number of waiting jobs in a plan: SLO jobs by deadline, then best-effort jobs by age.
        consider: u32 = 128 => 1..=10000,
        /// Number of attempts to improve a plan by dropping some of its jobs and planning them again.
        ruins: u32 = 100 => 0..=100000,
        /// Emulated time that a decision takes, during which jobs arrive and end.
        decide: Span = Span::ZERO,
    }

    /// Kinds of estimates of a job's run time.
    enum RunTimeEstimates {
        /// The distribution of the best expert of 3σPredict.
        #[default]
        Distribution,
        /// The point estimate of the best expert.
        Point,
        /// The run time itself, by the workload's estimate of the longest task.
        Perfect,
        /// A normal distribution around the run time, with an error (figure 4.9).
        Normal,
    }
}

impl ThreeSigma {
    /// Parameters of the utility of jobs.
    fn valuation(&self) -> Valuation {
        let Self { over, threshold, decay, best_effort, .. } = *self;
        let completion = self.by_completion.then(|| self.horizon.as_secs_f64());
        Valuation { over, threshold, decay, best_effort, completion }
    }
}

impl Policy for ThreeSigma {
    const ABOUT: &'static str = "3Sigma (Park, Tumanov, Jiang, Kozuch and Ganger, EuroSys 2018; Park's thesis, chapter \
        4)\n\
        A central scheduler estimates a distribution of run times of each job from similar jobs that have ended. \
        Each cycle it plans the starts of waiting jobs over a window of slots so that their expected utility is \
        largest: an SLO job is worth something until its deadline, a best-effort job less the later it starts. In each \
        slot the cores of a job count with the probability that it still runs then. Jobs that start now are launched, \
        all tasks together on free cores; the other jobs are planned again. Best-effort jobs are preempted if it pays.\n\
        PointPerfEst is { estimates = \"perfect\", over = \"never\" }, PointRealEst { estimates = \"point\", over = \
        \"never\" }, NoDist { estimates = \"point\" }, NoOE { over = \"never\" }, NoAdapt { over = \"always\" }. A job \
        with more tasks than there are live cores runs as many tasks at a time as there are cores.";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Plans, one_scheduler: true, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
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
            remarks.push("samples has no effect: the estimates do not use the history".to_owned());
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

/// Plans the cycles of 3Sigma: estimates run times from the history, and solves each cycle from the last basis.
#[derive(Clone, Debug)]
struct SigmaPlanner {
    config: ThreeSigma,
    source: RunTimeSource,
    known: JobTable<KnownJob>,
    /// The basis from which the next solve starts.
    basis: Basis,
    /// Whether the history was restored after a crash.
    restored: bool,
}

/// A plan, its bound, and the pivots of its solve.
struct PlannedCycle {
    plan: Plan,
    bound: f64,
    pivots: u32,
}

impl SigmaPlanner {
    fn new(config: &ThreeSigma) -> Self {
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

/// The decision of a plan: starts, the jobs that may be preempted for these starts, and the time of the next planned
/// start.
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

/// Standard deviation of the shifts of `normal` (thesis, section 4.4.4).
const SHIFT_STD: f64 = 0.1;

/// Lower bound of a sampled run-time estimate, relative to the true run time.
const LEAST: f64 = 0.01;

/// The estimate of a job's run time.
#[derive(Clone, Debug)]
struct Forecast {
    /// Returned to the predictor when the job ends.
    prediction: Prediction,
    /// The expected run time, s.
    point: f64,
    /// The run time on nodes that the job prefers, s.
    distribution: Distribution,
}

#[cfg(test)]
impl Forecast {
    /// An estimate from a given distribution, without a prediction.
    fn expecting(distribution: Distribution) -> Self {
        let prediction = Predictor::new(PredictorKind::JvuPredict, &[]).predict(|_| 0);
        Self { prediction, point: distribution.mean(), distribution }
    }
}

/// Estimates run times, and learns the actual ones.
#[derive(Clone, Debug)]
struct RunTimeSource {
    config: ThreeSigma,
    predictor: Predictor,
}

impl RunTimeSource {
    fn new(config: &ThreeSigma) -> Self {
        let kind = match config.estimates {
            RunTimeEstimates::Distribution => PredictorKind::ThreeSigma,
            RunTimeEstimates::Point if config.samples > 0 => PredictorKind::ThreeSigma,
            _ => PredictorKind::JvuPredict,
        };
        let combinations = Combination::singles_and_pairs(&Feature::ALL);
        Self { config: config.clone(), predictor: Predictor::new(kind, &combinations) }
    }

    /// Trains the predictor with the past jobs, one after the other.
    fn study(&mut self, catalog: &dyn Catalog) {
        for job in 0..catalog.past() {
            let past = catalog.past_job(job);
            let prediction = self.predictor.predict(|feature| past.feature(feature));
            self.predictor.learn(|feature| past.feature(feature), &prediction, past.run.as_secs_f64());
        }
    }

    /// Estimates a job that is submitted now. Without any history its expected run time is one slot.
    fn estimate(&self, job: JobId, fx: &mut Effects<'_>) -> Forecast {
        let catalog = fx.catalog();
        let prediction = self.predictor.predict(|feature| catalog.feature(job, feature));
        let default = self.config.slot.as_secs_f64();
        let point = prediction.point.unwrap_or(default);
        let history = || self.predictor.histogram(&prediction).and_then(Distribution::of);
        let distribution = match self.config.estimates {
            RunTimeEstimates::Perfect => Distribution::point(longest_task(job, catalog).as_secs_f64()),
            RunTimeEstimates::Normal => self.normal(longest_task(job, catalog).as_secs_f64(), fx.rng()),
            RunTimeEstimates::Distribution => self.sampled(history(), point, fx.rng()),
            RunTimeEstimates::Point if self.config.samples == 0 => Distribution::point(point),
            RunTimeEstimates::Point => Distribution::point(self.sampled(history(), point, fx.rng()).mean()),
        };
        let point = match self.config.estimates {
            RunTimeEstimates::Distribution if self.config.samples == 0 => point,
            _ => distribution.mean(),
        };
        Forecast { prediction, point, distribution }
    }

    /// A normal distribution with a random error.
    fn normal(&self, run: f64, rng: &mut Rng) -> Distribution {
        let ThreeSigma { shift, cov, .. } = self.config;
        let shift = shift + SHIFT_STD * normal_deviate(rng);
        let mean = run * (1.0 + shift).max(LEAST);
        Distribution::normal(mean, run * cov, run * LEAST)
    }

    /// The whole history or values sampled from it; without a history, the point estimate.
    fn sampled(&self, history: Option<Distribution>, point: f64, rng: &mut Rng) -> Distribution {
        let Some(history) = history else { return Distribution::point(point) };
        if self.config.samples == 0 {
            return history;
        }
        let mut drawn = Histogram::default();
        (0..self.config.samples).for_each(|_| drawn.add(history.quantile(rng.unit())));
        Distribution::of(&drawn).unwrap_or(history)
    }

    /// Learns the run time of a job on nodes that it prefers.
    fn learn(&mut self, job: JobId, forecast: &Forecast, run: Span, catalog: &dyn Catalog) {
        let value = |feature| catalog.feature(job, feature);
        self.predictor.learn(value, &forecast.prediction, run.as_secs_f64());
    }

    /// Takes out the history and leaves an empty one.
    fn take_history(&mut self) -> Predictor {
        let empty = Self::new(&self.config).predictor;
        std::mem::replace(&mut self.predictor, empty)
    }

    /// Replaces the history.
    fn restore(&mut self, history: Predictor) {
        self.predictor = history;
    }
}

/// A draw from the standard normal distribution: the sum of twelve uniform draws less its mean.
fn normal_deviate(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// The scheduler's knowledge of an open job.
#[derive(Clone, Debug)]
struct KnownJob {
    forecast: Forecast,
    preference: Preference,
    utility: Utility,
    ways: Vec<Way>,
}

/// A way to run a job: on the kinds of nodes that it prefers, or on any kind.
#[derive(Clone, Debug)]
struct Way {
    sets: Vec<u32>,
    run: Distribution,
    /// The largest value of `run`.
    longest: f64,
    demand: Vec<f64>,
}

impl KnownJob {
    fn new(
        config: &ThreeSigma,
        spec: &JobSpec,
        forecast: Forecast,
        (preference, kinds): (Preference, u8),
    ) -> Self {
        let slot = config.slot.as_secs_f64();
        let way = |sets: Vec<u32>, run: Distribution| {
            let demand = demand(&run, slot, config.slots);
            Way { sets, longest: run.max(), run, demand }
        };
        let all = || 0..u32::from(kinds);
        let preferred: Vec<u32> = all().filter(|kind| preference.includes(*kind as u8)).collect();
        let run = &forecast.distribution;
        let mut ways = Vec::new();
        if !preferred.is_empty() && preferred.len() < usize::from(kinds) {
            ways.push(way(preferred, run.clone()));
            ways.push(way(all().collect(), run.scaled(preference.slowdown)));
        } else {
            ways.push(way(all().collect(), run.clone()));
        }
        let utility = Utility::of(spec, run, &config.valuation());
        Self { preference, utility, ways, forecast }
    }

    /// The distribution of the run time of a job on nodes of its preferred kinds, or on others if `elsewhere`.
    fn run(&self, elsewhere: bool) -> Distribution {
        let run = &self.forecast.distribution;
        if elsewhere { run.scaled(self.preference.slowdown) } else { run.clone() }
    }
}

/// A problem and its jobs.
struct Formulated {
    problem: Problem,
    /// The jobs of [`Problem::jobs`], in their order.
    waiting: Vec<JobId>,
    /// The jobs of [`Problem::running`], in their order.
    running: Vec<JobId>,
    /// Next time at which an estimate is exceeded or a utility function changes, if nothing else happens.
    due: Option<Time>,
}

/// A problem under construction.
struct Formulation<'a> {
    config: &'a ThreeSigma,
    now: Time,
    slot: f64,
    capacity: Vec<f64>,
    due: Option<Time>,
}

/// Formulates the problem of a cycle at `now`.
fn formulate(
    config: &ThreeSigma,
    known: &mut JobTable<KnownJob>,
    situation: Situation<'_>,
    now: Time,
) -> Formulated {
    let slots = config.slots as usize;
    let usable = situation.pool.usable();
    let capacity = usable.iter().flat_map(|cores| std::iter::repeat_n(f64::from(*cores), slots)).collect();
    let mut form = Formulation { config, now, slot: config.slot.as_secs_f64(), capacity, due: None };
    let (mut candidates, mut running, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (id, job) in situation.jobs.iter_mut() {
        let Some(known) = known.get_mut(id) else { continue };
        if !job.held.is_empty() {
            let held = job.held_by_kind(situation.pool);
            let demand = form.subtract(job, known, &held);
            let preemptible = config.preempt && job.preemptions < MOST_PREEMPTIONS;
            if preemptible && job.open.spec.deadline.is_none() {
                let price = config.price * config.best_effort * PREMIUM;
                running.push(Running { name: name(id) + 1, tasks: held, demand, price });
                runs.push(id);
            }
        }
        if !job.waiting.is_empty() {
            candidates.push((rank(&job.open.spec, known.utility.at(now)), id));
        }
    }
    form.capacity.iter_mut().for_each(|cores| *cores = cores.max(0.0));
    candidates.sort_unstable();
    let up = situation.pool.up_cores();
    let (mut jobs, mut waiting) = (Vec::new(), Vec::new());
    for (_, id) in candidates {
        let (Some(job), Some(known)) = (situation.jobs.get_mut(id), known.get_mut(id)) else { continue };
        let tasks = up.min(job.waiting.len() as u32);
        let blocks = form.blocks(known, tasks, &usable);
        if tasks > 0 && !blocks.is_empty() {
            jobs.push(Job { name: name(id), tasks, blocks });
            waiting.push(id);
        }
        if jobs.len() == config.consider as usize {
            break;
        }
    }
    let due = form.due;
    let problem = Problem::new(slots, form.capacity, jobs, running)
        .unwrap_or_else(|error| unreachable!("a cycle's problem: {error}"));
    Formulated { problem, waiting, running: runs, due }
}

/// Largest utility that is treated as a rounding error.
const NOTHING: f64 = 1e-9;

/// Largest number of preemptions of a job. The price of a preemption is that of one job, and a plan may gain more by
/// starting several jobs with shorter estimates instead. If jobs outlive their estimates, they could preempt each other
/// without end.
const MOST_PREEMPTIONS: u32 = 10;

/// Factor on the price of preemption, above 1 so that no plan preempts a job for another job of the same utility.
const PREMIUM: f64 = 1.001;

/// The name of a waiting job in the problem. A running job has the next number as its name.
fn name(job: JobId) -> u64 {
    2 * u64::from(job.0)
}

/// The order in which jobs are considered: SLO jobs by deadline, best-effort jobs by age, then late SLO jobs by age.
fn rank(spec: &JobSpec, utility: Utility) -> (u8, Time) {
    match (spec.deadline, utility) {
        (Some(deadline), Utility::Slo { .. }) => (0, deadline),
        (None, _) => (1, spec.arrival),
        (Some(_), Utility::BestEffort { .. }) => (2, spec.arrival),
    }
}

impl Formulation<'_> {
    fn wake(&mut self, at: f64) {
        let at = Time::ZERO + Span::from_secs_f64(at);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Subtracts the expected use of a running job from the capacity. Returns the expected use of one task.
    fn subtract(&mut self, job: &PlannedJob, known: &KnownJob, held: &[u32]) -> Vec<f64> {
        let elapsed = self.now.since(job.began).as_secs_f64();
        let run = given(&known.run(job.elsewhere), elapsed, self.config.cycle.as_secs_f64());
        self.wake(job.began.as_secs_f64() + run.max());
        let demand = remaining(&run, elapsed, self.slot, self.config.slots);
        for (tasks, rows) in held.iter().zip(self.capacity.chunks_exact_mut(self.config.slots as usize)) {
            for (cores, demand) in rows.iter_mut().zip(&demand) {
                *cores -= f64::from(*tasks) * demand;
            }
        }
        demand
    }

    /// The options of a waiting job that have a utility above zero, on kinds of nodes with a core for each of its
    /// tasks.
    fn blocks(&mut self, known: &KnownJob, tasks: u32, usable: &[u32]) -> Vec<Block> {
        let utility = known.utility.at(self.now);
        if let Utility::Slo { zero, .. } = utility {
            self.wake(zero);
        }
        let block = |(name, way): (u32, &Way)| {
            let starts = self.starts(utility, way);
            let (sets, demand) = (way.sets.clone(), way.demand.clone());
            (!starts.is_empty()).then_some(Block { name, sets, demand, starts })
        };
        let is_large_enough =
            |way: &Way| way.sets.iter().map(|set| usable[*set as usize]).sum::<u32>() >= tasks;
        (0..).zip(&known.ways).filter(|(_, way)| is_large_enough(way)).filter_map(block).collect()
    }

    /// The starts at which running the job in this way has a utility above zero.
    fn starts(&self, utility: Utility, way: &Way) -> Vec<Start> {
        let window = f64::from(self.config.slots) * self.slot;
        let of_slot = |slot: u32| {
            let wait = f64::from(slot) * self.slot;
            let start = self.now.as_secs_f64() + wait;
            let utility = match utility {
                Utility::Slo { deadline, .. } if start + way.longest <= deadline => 1.0,
                _ => utility.expected_for_start(start, (wait, window), &way.run),
            };
            Start { slot, utility }
        };
        (0..self.config.slots).map(of_slot).filter(|start| start.utility > NOTHING).collect()
    }
}

// Expected use of cores: the probability that a task still runs, by slots from now on.

/// Largest probability that is treated as zero.
const NONE: f64 = 1e-9;

/// Expected cores of a task by slots of `slot` seconds after its start (thesis, section 4.2.2): 1 − CDF at the start of
/// each slot, without trailing zeros. In the first slot a task always holds its core.
fn demand(run: &Distribution, slot: f64, slots: u32) -> Vec<f64> {
    remaining(run, 0.0, slot, slots)
}

/// Expected cores of a task that has run for `elapsed` seconds, by slots from now on; `run` is its total run time.
fn remaining(run: &Distribution, elapsed: f64, slot: f64, slots: u32) -> Vec<f64> {
    let mut demand = vec![1.0];
    for at in 1..slots {
        let left = 1.0 - run.cdf(elapsed + f64::from(at) * slot);
        if left < NONE {
            break;
        }
        demand.push(left);
    }
    demand
}

/// The total run time of a job that has run for `elapsed` seconds: the rest of the distribution (equation 4.2). A job
/// that has run longer than every value is expected to end at the next of a series of times, whose first step is one
/// `cycle`, in seconds (section 4.3.2).
fn given(run: &Distribution, elapsed: f64, cycle: f64) -> Distribution {
    run.given(elapsed).unwrap_or_else(|| Distribution::point(extended(run.max(), elapsed, cycle)))
}

/// The expected run time of a job that has run for `elapsed`, longer than its longest expected run time. The
/// expectation exceeds the longest run time by one cycle at first. Whenever it is reached, it grows by two more cycles,
/// then by four more, and so on.
fn extended(longest: f64, elapsed: f64, cycle: f64) -> f64 {
    let (mut end, mut step) = (longest + cycle, cycle);
    while end <= elapsed {
        step *= 2.0;
        end += step;
    }
    end
}

#[cfg(test)]
mod tests;
