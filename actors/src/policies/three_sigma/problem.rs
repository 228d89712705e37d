//! The problem of a cycle: the options of waiting jobs, what running ones leave free, and which of these can be
//! preempted.

use volary_lp::{Block, Job, Problem, Running, Start};

use super::config::ThreeSigma;
use super::estimate::Forecast;
use crate::base::{JobId, Span, Time};
use crate::catalog::{JobSpec, Preference};
use crate::predict::Distribution;
use crate::roles::job_table::JobTable;
use crate::roles::planning::{PlannedJob, Situation, Utility};

/// The scheduler's knowledge of an open job.
pub(super) struct KnownJob {
    pub(super) forecast: Forecast,
    pub(super) preference: Preference,
    utility: Utility,
    ways: Vec<Way>,
}

/// A way to run a job: on the kinds of nodes that it prefers, or on any.
struct Way {
    sets: Vec<u32>,
    run: Distribution,
    /// The largest value of `run`.
    longest: f64,
    demand: Vec<f64>,
}

impl KnownJob {
    pub(super) fn new(
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

    /// The distribution of the run time of a job that runs on nodes of its kinds, or elsewhere.
    fn run(&self, elsewhere: bool) -> Distribution {
        let run = &self.forecast.distribution;
        if elsewhere { run.scaled(self.preference.slowdown) } else { run.clone() }
    }
}

/// A problem and its jobs.
pub(super) struct Formulated {
    pub(super) problem: Problem,
    /// The jobs of [`Problem::jobs`].
    pub(super) waiting: Vec<JobId>,
    /// The jobs of [`Problem::running`].
    pub(super) running: Vec<JobId>,
    /// When the next estimate is passed or a utility changes its form, if nothing else happens.
    pub(super) due: Option<Time>,
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
pub(super) fn formulate(
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

/// Utilities below this are rounding errors.
const NOTHING: f64 = 1e-9;

/// Largest number of preemptions of a job. The price of a preemption is that of one job, and a plan may gain more by
/// starting several of which less is expected. If all of them outlive their estimates, none would ever finish.
const MOST_PREEMPTIONS: u32 = 10;

/// Factor that makes the price of preempting a job higher than the gain of an equal one.
const PREMIUM: f64 = 1.001;

/// The name of a waiting job; as a running one it has the next.
fn name(job: JobId) -> u64 {
    2 * u64::from(job.0)
}

/// The order in which jobs are considered: SLO jobs by deadline, best-effort jobs by age, then late ones by age.
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

    /// Subtracts the expected use of a running job from the capacity; returns it for one task.
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

    /// The options of a waiting job that are worth something, on kinds of nodes that have a core for each of its tasks.
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

    /// The starts of a way that are worth something.
    fn starts(&self, utility: Utility, way: &Way) -> Vec<Start> {
        let window = f64::from(self.config.slots) * self.slot;
        let of_slot = |slot: u32| {
            let wait = f64::from(slot) * self.slot;
            let start = self.now.as_secs_f64() + wait;
            let utility = match utility {
                Utility::Slo { deadline, .. } if start + way.longest <= deadline => 1.0,
                _ => utility.of_start(start, (wait, window), &way.run),
            };
            Start { slot, utility }
        };
        (0..self.config.slots).map(of_slot).filter(|start| start.utility > NOTHING).collect()
    }
}

// Expected use of cores: the probability that a task still runs, by slots from now on.

/// Probabilities below this count as none.
const NONE: f64 = 1e-9;

/// Expected cores of a task by slots of `slot` seconds after its start (thesis, section 4.2.2): 1 − CDF at the start of
/// each slot, without the zeros at the end. It holds its core in the first one anyway.
pub(super) fn demand(run: &Distribution, slot: f64, slots: u32) -> Vec<f64> {
    remaining(run, 0.0, slot, slots)
}

/// The same for a task that has run for `elapsed` seconds, by slots from now on; `run` is its total run time.
pub(super) fn remaining(run: &Distribution, elapsed: f64, slot: f64, slots: u32) -> Vec<f64> {
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

/// The total run time of a job that has run for `elapsed` seconds, in cycles of `cycle` seconds: what is left of the
/// distribution (equation 4.2), or, where the job has run longer than any value of it, the next of the times at which
/// it is then expected to end (section 4.3.2).
pub(super) fn given(run: &Distribution, elapsed: f64, cycle: f64) -> Distribution {
    run.given(elapsed).unwrap_or_else(|| Distribution::point(extended(run.max(), elapsed, cycle)))
}

/// The expected run time of a job that has run for `elapsed`, longer than its longest expected one: that was exceeded
/// by one cycle at first, then by two more, by four more, and so on whenever it was reached.
fn extended(longest: f64, elapsed: f64, cycle: f64) -> f64 {
    let (mut end, mut step) = (longest + cycle, cycle);
    while end <= elapsed {
        step *= 2.0;
        end += step;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected cores at ages of multiples of 2.5, from the thesis's example (O-T1).
    #[test]
    fn demand_is_the_probability_that_a_task_still_runs() {
        assert_eq!(demand(&Distribution::uniform(0.0, 10.0), 2.5, 8), [1.0, 0.75, 0.5, 0.25]);
        assert_eq!(demand(&Distribution::uniform(2.5, 7.5), 2.5, 8), [1.0, 1.0, 0.5]);
        assert_eq!(demand(&Distribution::point(5.0), 2.5, 8), [1.0, 1.0], "it has ended after two slots");
        assert_eq!(demand(&Distribution::point(50.0), 2.5, 3), [1.0; 3]);
    }

    /// O-T2: U(0, 10) after 5.
    #[test]
    fn run_times_are_conditioned_on_the_elapsed_time() {
        let left = given(&Distribution::uniform(0.0, 10.0), 5.0, 2.0);
        assert_eq!([5.0, 7.5, 10.0].map(|t| 1.0 - left.cdf(t)), [1.0, 0.5, 0.0]);
    }

    /// O-T3: a job that outlives its estimate is expected to end 1, 2, 4, 8 cycles later.
    #[test]
    fn underestimates_are_extended_exponentially() {
        let run = Distribution::point(10.0);
        let (mut elapsed, mut extensions) = (10.0, Vec::new());
        for _ in 0..5 {
            let end = given(&run, elapsed, 2.0).max();
            extensions.push((end - elapsed) / 2.0);
            elapsed = end;
        }
        assert_eq!(extensions, [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(given(&run, 15.5, 2.0).max(), 16.0, "between two of them the next one counts");
    }
}
