//! Rounding of a relaxed solution to a plan: greedy drafts, improved by ruin and recreate.
//!
//! Preferences among options come from the shares and duals of a relaxed solution. The search has its own generator,
//! seeded with the number of jobs, so that a plan is a function of its problem and the crate needs no dependency.

use crate::problem::{Choice, Plan, Problem};
use crate::simplex::{Relaxed, Work};

/// Largest number of jobs that a ruin drops.
const DROPPED: usize = 6;

/// Number of unplanned jobs that a recreation tries besides the dropped jobs.
const TRIED: usize = 5;

/// Number of options of a job that a recreation tries.
const OPTIONS: usize = 24;

/// Upper limit (exclusive) of the number of preferred options that one in four jobs of a recreation skips.
const PASSED: usize = 6;

/// Rounds a relaxed solution to a plan.
///
/// Jobs are taken in several orders. Each job gets its first option that fits: options with shares come first, then
/// options by utility less the price of their nodes. Its tasks are split over sets in proportion to its shares.
/// `work.ruins` attempts of ruin and recreate (Schrimpf et al. 2000) improve the best of these drafts. An attempt drops
/// a few jobs, and then plans these and some unplanned jobs again in a random order; one job in four skips its best
/// options. A result that is not worse is kept. The search ends early once the value is within `work.gap` of
/// `relaxed.bound`. No job of the plan starts later than it could at a gain, so jobs are not put off again and again
/// while nodes are idle. The same arguments give the same plan.
pub fn round(problem: &Problem, relaxed: &Relaxed, work: Work) -> Plan {
    let preferences = Preferences::new(problem, relaxed);
    let best = greedy(problem, &preferences);
    let mut search = Search {
        preferences: &preferences,
        random: SplitMix::new(problem.jobs().len() as u64),
        trial: Draft::new(problem),
        best,
        again: Vec::new(),
        planned: Vec::new(),
        unplanned: Vec::new(),
    };
    let enough = relaxed.bound - work.gap * relaxed.bound.abs();
    for _ in 0..work.ruins {
        if search.best.value >= enough || problem.jobs().is_empty() {
            break;
        }
        search.improve(problem);
    }
    improve_each(&mut search.best, problem, &preferences);
    search.best.finish()
}

/// The best draft of several orders and sets of preempted jobs.
fn greedy<'a>(problem: &'a Problem, preferences: &Preferences<'_>) -> Draft<'a> {
    let jobs = problem.jobs();
    let (shares, profits) = (&preferences.shares, &preferences.profits);
    let size = |job: usize| f64::from(jobs[job].tasks);
    let keys: [&dyn Fn(usize) -> f64; 4] = [
        &|job| shares[job] + 1e-3 * profits[job] / (1.0 + profits[job]),
        &|job| profits[job],
        &|job| profits[job] / size(job),
        &|job| shares[job] * size(job),
    ];
    let mut best = Draft::new(problem);
    for threshold in [0.5, 1e-6] {
        for key in keys {
            let mut order: Vec<usize> = (0..jobs.len()).collect();
            order.sort_by(|a, b| key(*b).total_cmp(&key(*a)).then(a.cmp(b)));
            let mut draft = Draft::new(problem);
            let shares = &preferences.relaxed.x[problem.variables() - problem.running().len()..];
            for running in (0..shares.len()).filter(|running| shares[*running] > threshold) {
                draft.preempt(running);
            }
            for job in order {
                draft.plan(job, preferences, 0, usize::MAX);
            }
            draft.spare_unneeded();
            improve_each(&mut draft, problem, preferences);
            if draft.value > best.value {
                best = draft;
            }
        }
        if problem.running().is_empty() {
            break;
        }
    }
    best
}

/// Moves each planned job to the best option that fits, in the order of their starts.
fn improve_each(draft: &mut Draft<'_>, problem: &Problem, preferences: &Preferences<'_>) {
    let mut order: Vec<(u32, usize)> =
        (0..problem.jobs().len()).filter_map(|job| Some((draft.start(job)?, job))).collect();
    order.sort_unstable();
    for (_, job) in order {
        draft.improve(job, preferences);
    }
}

/// The state of ruin and recreate: the best plan so far, and a trial that may replace it.
struct Search<'p, 'a> {
    preferences: &'a Preferences<'a>,
    random: SplitMix,
    best: Draft<'p>,
    trial: Draft<'p>,
    /// Jobs to plan again.
    again: Vec<usize>,
    planned: Vec<usize>,
    unplanned: Vec<usize>,
}

impl Search<'_, '_> {
    /// Ruins and recreates the best plan. A result that is not worse replaces it.
    fn improve(&mut self, problem: &Problem) {
        self.trial.copy_from(&self.best);
        let jobs = 0..problem.jobs().len();
        let best = &self.best;
        self.planned.clear();
        self.planned.extend(jobs.clone().filter(|job| best.is_planned(*job)));
        self.unplanned.clear();
        self.unplanned.extend(jobs.filter(|job| !best.is_planned(*job)));
        self.again.clear();
        self.turn_running(problem.running().len());
        for _ in 0..1 + self.random.below(DROPPED) {
            self.drop_one();
        }
        for _ in 0..TRIED.min(self.unplanned.len()) {
            let at = self.random.below(self.unplanned.len());
            self.again.push(self.unplanned.swap_remove(at));
        }
        while !self.again.is_empty() {
            let at = self.random.below(self.again.len());
            let job = self.again.swap_remove(at);
            let from = if self.random.below(4) == 0 { self.random.below(PASSED) } else { 0 };
            self.trial.plan(job, self.preferences, from, OPTIONS);
        }
        self.trial.spare_unneeded();
        if self.trial.value >= self.best.value {
            std::mem::swap(&mut self.trial, &mut self.best);
        }
    }

    /// Drops a random planned job.
    fn drop_one(&mut self) {
        if !self.planned.is_empty() {
            let at = self.random.below(self.planned.len());
            let job = self.planned.swap_remove(at);
            self.trial.drop(job);
            self.again.push(job);
        }
    }

    /// In every second call, preempts a random running job; if it is preempted already, spares it and drops jobs until
    /// the rest fits.
    fn turn_running(&mut self, running: usize) {
        if running == 0 || self.random.below(2) == 0 {
            return;
        }
        let at = self.random.below(running);
        if self.trial.is_preempted(at) {
            self.trial.spare(at);
            while !self.trial.is_feasible() && !self.planned.is_empty() {
                self.drop_one();
            }
        } else {
            self.trial.preempt(at);
        }
    }
}

/// Number of nodes by which rounding errors may exceed the room.
const SLACK: f64 = 1e-9;

/// A plan that is being changed. It always keeps the capacities.
struct Draft<'a> {
    problem: &'a Problem,
    /// Number of free nodes in each set and slot.
    room: Vec<f64>,
    /// The option of each planned job.
    chosen: Vec<Option<u32>>,
    /// Number of tasks of each job on each set.
    tasks: Vec<u32>,
    preempted: Vec<bool>,
    value: f64,
    /// Number of a job's tasks that fit on each set (`limits`), and number placed on each set (`split`).
    limits: Vec<u32>,
    split: Vec<u32>,
}

impl<'a> Draft<'a> {
    /// The empty plan.
    fn new(problem: &'a Problem) -> Self {
        let (jobs, sets) = (problem.jobs().len(), problem.sets());
        Self {
            problem,
            room: problem.capacity().to_vec(),
            chosen: vec![None; jobs],
            tasks: vec![0; jobs * sets],
            preempted: vec![false; problem.running().len()],
            value: 0.0,
            limits: vec![0; sets],
            split: vec![0; sets],
        }
    }

    /// Takes the plan of another draft of the same problem.
    fn copy_from(&mut self, other: &Self) {
        self.room.copy_from_slice(&other.room);
        self.chosen.copy_from_slice(&other.chosen);
        self.tasks.copy_from_slice(&other.tasks);
        self.preempted.copy_from_slice(&other.preempted);
        self.value = other.value;
    }

    /// Whether a job is planned.
    fn is_planned(&self, job: usize) -> bool {
        self.chosen[job].is_some()
    }

    /// Whether a running job is preempted.
    fn is_preempted(&self, running: usize) -> bool {
        self.preempted[running]
    }

    /// Plans a job by the first preferred option that fits. Tries at most `tries` options, from index `from` on.
    fn plan(&mut self, job: usize, preferences: &Preferences<'_>, from: usize, tries: usize) {
        let mut options = preferences.job_options(job).iter().skip(from).take(tries);
        if let Some(&option) = options.find(|option| self.fits(**option as usize)) {
            self.divide(option as usize, preferences);
            self.choose(job, option);
        }
    }

    /// Moves a planned job to the best option that fits, if that is worth more than the job's own.
    fn improve(&mut self, job: usize, preferences: &Preferences<'_>) {
        let Some(own) = self.chosen[job] else { return };
        let options = self.problem.columns().options();
        let utility = |option: u32| options[option as usize].utility;
        self.drop(job);
        let mut best = own;
        for &option in preferences.job_options(job) {
            if utility(option) > utility(best) && self.fits(option as usize) {
                best = option;
            }
        }
        if best != own {
            self.fits(best as usize);
            self.divide(best as usize, preferences);
            self.choose(job, best);
        } else {
            self.put(job, own);
        }
    }

    /// The slot in which a planned job starts.
    fn start(&self, job: usize) -> Option<u32> {
        self.chosen[job].map(|option| self.problem.columns().options()[option as usize].slot)
    }

    /// Determines how many tasks of an option fit on each set, and returns whether all tasks fit. Stops as soon as they
    /// do not: three quarters of the options that the search tries fail in their first slot, and rounding is 1.6 times
    /// faster for it.
    fn fits(&mut self, option: usize) -> bool {
        let option = self.problem.columns().options()[option];
        let job = &self.problem.jobs()[option.job as usize];
        let block = &job.blocks[option.block as usize];
        let (sets, demand) = (&block.sets, &block.demand);
        let (slots, slot) = (self.problem.slots(), option.slot as usize);
        let room = |set: u32| &self.room[set as usize * slots..][slot..slots];
        let mut total = 0;
        for &set in sets {
            let limit = limit(room(set), &demand[..demand.len().min(1)], job.tasks);
            self.limits[set as usize] = limit;
            total += u64::from(limit);
        }
        for &set in sets {
            if total < u64::from(job.tasks) {
                return false;
            }
            let first = self.limits[set as usize];
            let limit = limit(room(set), demand, first);
            self.limits[set as usize] = limit;
            total -= u64::from(first - limit);
        }
        total >= u64::from(job.tasks)
    }

    /// Divides the tasks of a fitting option among its sets, in the shares of the relaxed solution. The rest goes to
    /// the sets with the lowest rents.
    fn divide(&mut self, option: usize, preferences: &Preferences<'_>) {
        let option = self.problem.columns().options()[option];
        let job = &self.problem.jobs()[option.job as usize];
        let sets = &job.blocks[option.block as usize].sets;
        let share = |at: usize| preferences.relaxed.x[option.column(at)];
        let rent = |at: usize| preferences.rents[option.column(at)];
        self.split.fill(0);
        let (mut left, total) = (job.tasks, (0..sets.len()).map(share).sum::<f64>());
        if total > 0.0 {
            let wanted = |at: usize| f64::from(job.tasks) * share(at) / total;
            for (at, &set) in sets.iter().enumerate() {
                // The addition absorbs rounding errors of the relaxed solution.
                let tasks = ((wanted(at) + 1e-6) as u32).min(self.limits[set as usize]).min(left);
                self.split[set as usize] = tasks;
                left -= tasks;
            }
            while left > 0 {
                let missing = |at: &usize| wanted(*at) - f64::from(self.split[sets[*at] as usize]);
                let open = (0..sets.len()).filter(|at| missing(at) > 1e-6 && self.has_room(sets[*at]));
                let Some(at) = open.max_by(|a, b| missing(a).total_cmp(&missing(b))) else { break };
                self.split[sets[at] as usize] += 1;
                left -= 1;
            }
        }
        while left > 0 {
            let open = (0..sets.len()).filter(|at| self.has_room(sets[*at]));
            let Some(at) = open.min_by(|a, b| rent(*a).total_cmp(&rent(*b))) else { break };
            let set = sets[at] as usize;
            let tasks = (self.limits[set] - self.split[set]).min(left);
            self.split[set] += tasks;
            left -= tasks;
        }
    }

    /// Whether another task of the option that is being divided fits on a set.
    fn has_room(&self, set: u32) -> bool {
        self.split[set as usize] < self.limits[set as usize]
    }

    /// Plans a job by an option, split over sets as in `split`.
    fn choose(&mut self, job: usize, option: u32) {
        let sets = self.problem.sets();
        self.tasks[job * sets..][..sets].copy_from_slice(&self.split);
        self.put(job, option);
    }

    /// Plans a job by an option, with the tasks on each set that `tasks` already holds.
    fn put(&mut self, job: usize, option: u32) {
        self.chosen[job] = Some(option);
        self.value += self.problem.columns().options()[option as usize].utility;
        self.add_room(job, option, -1.0);
    }

    /// Drops a job from the plan.
    fn drop(&mut self, job: usize) {
        if let Some(option) = self.chosen[job].take() {
            self.value -= self.problem.columns().options()[option as usize].utility;
            self.add_room(job, option, 1.0);
        }
    }

    fn add_room(&mut self, job: usize, option: u32, sign: f64) {
        let option = self.problem.columns().options()[option as usize];
        let block = &self.problem.jobs()[job].blocks[option.block as usize];
        let (sets, slots) = (self.problem.sets(), self.problem.slots());
        for &set in &block.sets {
            let tasks = self.tasks[job * sets + set as usize];
            if tasks > 0 {
                let nodes = sign * f64::from(tasks);
                let rows = &mut self.room[set as usize * slots..][option.slot as usize..slots];
                rows.iter_mut().zip(&block.demand).for_each(|(room, demand)| *room += nodes * demand);
            }
        }
    }

    /// Preempts a running job.
    fn preempt(&mut self, running: usize) {
        if !self.preempted[running] {
            self.preempted[running] = true;
            self.value -= self.problem.running()[running].price;
            self.add_running(running, 1.0);
        }
    }

    /// Spares a preempted job, even if the plan then exceeds the room.
    fn spare(&mut self, running: usize) {
        if self.preempted[running] {
            self.preempted[running] = false;
            self.value += self.problem.running()[running].price;
            self.add_running(running, -1.0);
        }
    }

    fn add_running(&mut self, running: usize, sign: f64) {
        let (job, slots) = (&self.problem.running()[running], self.problem.slots());
        for (&tasks, rows) in job.tasks.iter().zip(self.room.chunks_exact_mut(slots)) {
            let nodes = sign * f64::from(tasks);
            rows.iter_mut().zip(&job.demand).for_each(|(room, demand)| *room += nodes * demand);
        }
    }

    /// Whether the plan keeps the capacities.
    fn is_feasible(&self) -> bool {
        self.room.iter().all(|room| *room >= -SLACK)
    }

    /// Spares preempted jobs whose nodes the plan does not need.
    fn spare_unneeded(&mut self) {
        for running in 0..self.preempted.len() {
            if self.preempted[running] {
                self.spare(running);
                if !self.is_feasible() {
                    self.preempt(running);
                }
            }
        }
    }

    /// The finished plan.
    fn finish(&self) -> Plan {
        let sets = self.problem.sets();
        let choice = |(job, option): (usize, &Option<u32>)| {
            let option = self.problem.columns().options()[(*option)? as usize];
            let tasks = self.tasks[job * sets..][..sets].to_vec();
            Some(Choice { job, block: option.block as usize, slot: option.slot, tasks })
        };
        let choices = self.chosen.iter().enumerate().filter_map(choice).collect();
        let preempted = (0..self.preempted.len()).filter(|running| self.preempted[*running]).collect();
        let plan = Plan { choices, preempted, value: 0.0 };
        Plan { value: plan.worth(self.problem), ..plan }
    }
}

/// Largest number of tasks, at most `tasks`, that fit into the room of a set from a slot on.
fn limit(room: &[f64], demand: &[f64], tasks: u32) -> u32 {
    let mut limit = tasks;
    for (room, demand) in room.iter().zip(demand) {
        if f64::from(limit) * demand > room + SLACK {
            limit = ((room + SLACK).max(0.0) / demand) as u32;
            if limit == 0 {
                break;
            }
        }
    }
    limit
}

/// Largest share that is treated as zero.
const SHARE: f64 = 1e-6;

/// Preferences among options and jobs by the relaxed solution.
struct Preferences<'a> {
    relaxed: &'a Relaxed,
    /// Price of the nodes of each column at the duals.
    rents: Vec<f64>,
    /// Options by job, each job's best first: options with shares by their shares, then the others by utility less
    /// rent.
    options: Vec<u32>,
    /// Index of each job's first option; the last entry is the number of options.
    first: Vec<u32>,
    /// Share of each job that the relaxed solution plans.
    shares: Vec<f64>,
    /// Largest utility less rent of each job.
    profits: Vec<f64>,
}

impl<'a> Preferences<'a> {
    /// The preferences that follow from a relaxed solution.
    fn new(problem: &Problem, relaxed: &'a Relaxed) -> Self {
        let columns = problem.columns();
        let rents: Vec<f64> = (0..columns.len()).map(|column| columns.dot(column, &relaxed.duals)).collect();
        let (mut share, mut profit) = (Vec::new(), Vec::new());
        for option in columns.options() {
            let sets = problem.jobs()[option.job as usize].blocks[option.block as usize].sets.len();
            let columns = || (0..sets).map(|place| option.column(place));
            let total: f64 = columns().map(|column| relaxed.x[column]).sum();
            let rent = columns().map(|column| rents[column]).fold(f64::INFINITY, f64::min);
            share.push(if total > SHARE { total } else { 0.0 });
            profit.push(option.utility - rent);
        }
        let mut options: Vec<u32> = (0..share.len() as u32).collect();
        let mut first = Vec::with_capacity(problem.jobs().len() + 1);
        for job in 0..problem.jobs().len() {
            let range = columns.job_options(job);
            first.push(range.start as u32);
            options[range].sort_by(|&a, &b| {
                let (a, b) = (a as usize, b as usize);
                share[b].total_cmp(&share[a]).then(profit[b].total_cmp(&profit[a])).then(a.cmp(&b))
            });
        }
        first.push(options.len() as u32);
        let ranges = || (0..problem.jobs().len()).map(|job| columns.job_options(job));
        let shares = ranges().map(|range| share[range].iter().sum()).collect();
        let profits =
            ranges().map(|range| profit[range].iter().fold(0.0, |most, value| value.max(most))).collect();
        Self { relaxed, rents, options, first, shares, profits }
    }

    /// Options of a job, the best first.
    fn job_options(&self, job: usize) -> &[u32] {
        &self.options[self.first[job] as usize..self.first[job + 1] as usize]
    }
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct SplitMix(u64);

impl SplitMix {
    /// A generator from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (((self.bits() >> 32) * end as u64) >> 32) as usize
    }
}
