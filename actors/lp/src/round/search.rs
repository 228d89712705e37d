//! The search for a plan: greedy drafts from a relaxed solution, improved by ruin and recreate.

use crate::plan::Plan;
use crate::problem::Problem;
use crate::random::SplitMix;
use crate::relax::{Relaxed, Work};

use super::draft::Draft;
use super::preference::Preferences;

/// Largest number of jobs that a ruin drops.
const DROPPED: usize = 6;

/// Jobs without a plan that a recreation tries besides those dropped.
const TRIED: usize = 5;

/// Options of a job that a recreation tries.
const OPTIONS: usize = 24;

/// Every fourth job passes over fewer than this many of its preferred options, so that others are tried.
const PASSED: usize = 6;

/// Rounds a relaxed solution to a plan.
///
/// Jobs are taken in several orders; each gets the first option that fits, those of its own shares first and then by
/// utility less the price of its nodes, split over sets as its shares are. The best of these drafts is improved by
/// `work.ruins` attempts of ruin and recreate (Schrimpf et al. 2000): a few jobs are dropped, and they and some that
/// were not planned are planned again in a random order, every fourth by a later option than its first; what is not
/// worse is kept. It ends early once the value is within `work.gap` of `relaxed.bound`. In the plan no job is left to
/// start later than it could at a gain, so that a job is not put off again and again while nodes are idle. The same
/// arguments give the same plan.
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

/// Moves each planned job to the best option that fits, those that start first before the others.
fn improve_each(draft: &mut Draft<'_>, problem: &Problem, preferences: &Preferences<'_>) {
    let mut order: Vec<(u32, usize)> =
        (0..problem.jobs().len()).filter_map(|job| Some((draft.start(job)?, job))).collect();
    order.sort_unstable();
    for (_, job) in order {
        draft.improve(job, preferences);
    }
}

/// A plan, and what is needed to improve it.
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
    /// Ruins and recreates the best plan, and keeps what is not worse.
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

    /// Every second time, preempts a random running job, or spares it and drops jobs until the rest fits.
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
