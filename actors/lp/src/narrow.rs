//! Problems narrowed by the decisions of branch and bound.

use std::ops::Range;

use crate::jobs::{Block, Job, Running};
use crate::plan::{Choice, Plan};
use crate::problem::Problem;

/// One decision of branch and bound. Jobs are given by their places in the whole problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// The job is planned by one of these of its options, or not at all. They count among those that earlier
    /// decisions left, by block and then by start.
    Keep { job: usize, options: Range<usize> },
    /// The job's only option has this many tasks on the first of the sets that earlier decisions left.
    Place { job: usize, tasks: u32 },
    /// The running job is preempted, or it is not.
    Preempt { running: usize, yes: bool },
}

/// A job with a single option, some of whose tasks are placed.
#[derive(Clone, PartialEq, Debug)]
struct Placed {
    job: usize,
    block: u32,
    slot: u32,
    /// Tasks on each set.
    tasks: Vec<u32>,
    /// Whether none is left to place.
    complete: bool,
}

/// What remains of a problem after some decisions.
pub(crate) struct Narrowed {
    /// The rest: fixed tasks are taken off the capacity.
    pub(crate) problem: Problem,
    /// Value of what is fixed.
    pub(crate) constant: f64,
    /// Place in the whole problem of each job that is left.
    jobs: Vec<usize>,
    /// Place in the whole problem of each running job that is left.
    running: Vec<usize>,
    preempted: Vec<usize>,
    placed: Vec<Placed>,
}

/// The parts of a problem while decisions are applied.
struct Parts {
    slots: usize,
    capacity: Vec<f64>,
    jobs: Vec<Option<Job>>,
    running: Vec<Option<Running>>,
    placed: Vec<Placed>,
    preempted: Vec<usize>,
    constant: f64,
}

impl Narrowed {
    /// The problem after decisions, or nothing if no plan agrees with them.
    pub(crate) fn new(problem: &Problem, decisions: &[Decision]) -> Option<Self> {
        let mut parts = Parts {
            slots: problem.slots(),
            capacity: problem.capacity().to_vec(),
            jobs: problem.jobs().iter().cloned().map(worthwhile).map(Some).collect(),
            running: problem.running().iter().cloned().map(Some).collect(),
            placed: Vec::new(),
            preempted: Vec::new(),
            constant: 0.0,
        };
        for decision in decisions {
            parts.apply(decision)?;
        }
        let Parts { slots, mut capacity, jobs, running, placed, preempted, constant } = parts;
        let left = |at: usize| running[at].as_ref().map(|job| (at, job.clone()));
        let (at_running, running): (Vec<_>, Vec<_>) = (0..running.len()).filter_map(left).unzip();
        if !is_coverable(slots, &capacity, &running) {
            return None;
        }
        // Capacities below zero, which only preemption can cover, count as zero: the relaxation then allows more.
        capacity.iter_mut().for_each(|nodes| *nodes = nodes.max(0.0));
        let left = |(at, job): (usize, Option<Job>)| job.map(|job| (at, job));
        let (at_jobs, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().enumerate().filter_map(left).unzip();
        let problem = Problem::of_checked(slots, capacity, jobs, running);
        Some(Self { problem, constant, jobs: at_jobs, running: at_running, preempted, placed })
    }

    /// A plan of what is left, as a plan of the whole. A job of which only some tasks were placed is left out.
    pub(crate) fn widen(&self, whole: &Problem, plan: &Plan) -> Plan {
        let chosen = |at: usize| plan.choices.iter().find(|choice| self.jobs[choice.job] == at);
        let mut choices = Vec::new();
        for (at, job) in whole.jobs().iter().enumerate() {
            let placed = self.placed.iter().find(|placed| placed.job == at);
            let choice = match (placed, chosen(at)) {
                (Some(placed), rest) if placed.complete || rest.is_some() => {
                    let mut tasks = placed.tasks.clone();
                    let rest = rest.into_iter().flat_map(|choice| &choice.tasks);
                    tasks.iter_mut().zip(rest).for_each(|(tasks, more)| *tasks += more);
                    (placed.block, placed.slot, tasks)
                }
                (None, Some(choice)) => {
                    let block = &self.problem.jobs()[choice.job].blocks[choice.block];
                    (block.name, choice.slot, choice.tasks.clone())
                }
                _ => continue,
            };
            let (name, slot, tasks) = choice;
            let block = job.blocks.iter().position(|block| block.name == name).unwrap_or(0);
            choices.push(Choice { job: at, block, slot, tasks });
        }
        let running = plan.preempted.iter().map(|at| self.running[*at]);
        let mut preempted: Vec<usize> = self.preempted.iter().copied().chain(running).collect();
        preempted.sort_unstable();
        let plan = Plan { choices, preempted, value: 0.0 };
        Plan { value: plan.worth(whole), ..plan }
    }

    /// Decisions of which every plan agrees with one, for the variable that is least whole; none if all is decided.
    pub(crate) fn alternatives(&self, x: &[f64]) -> Vec<Decision> {
        let jobs = (0..self.jobs.len()).filter(|job| !self.problem.columns().of_job(*job).is_empty());
        let shares = &x[self.problem.variables() - self.running.len()..];
        let jobs = jobs.map(|job| (self.fraction(job, x), Some(job), 0));
        let running = shares.iter().enumerate().map(|(at, share)| (share.min(1.0 - share), None, at));
        let mut best: Option<(f64, Option<usize>, usize)> = None;
        for candidate in jobs.chain(running) {
            if best.is_none_or(|best| candidate.0 > best.0) {
                best = Some(candidate);
            }
        }
        match best {
            None => Vec::new(),
            Some((_, Some(job), _)) => self.split(job, x),
            Some((_, None, at)) => {
                let running = self.running[at];
                [false, true].map(|yes| Decision::Preempt { running, yes }).to_vec()
            }
        }
    }

    /// Share of each option of a job.
    fn shares<'x>(&'x self, job: usize, x: &'x [f64]) -> impl Iterator<Item = f64> + 'x {
        let blocks = &self.problem.jobs()[job].blocks;
        let columns = self.problem.columns();
        columns.options()[columns.of_job(job)].iter().map(move |option| {
            let sets = blocks[option.block as usize].sets.len();
            (0..sets).map(|place| x[option.column(place)]).sum()
        })
    }

    /// How far a job is from being planned by one option and in whole tasks, or left out: 0 to 1/2.
    fn fraction(&self, job: usize, x: &[f64]) -> f64 {
        let columns = self.problem.columns();
        let tasks = f64::from(self.problem.jobs()[job].tasks);
        let split = columns.of_group(job).map(|column| {
            let placed = tasks * x[column];
            let part = placed - f64::from(placed as u32);
            part.min(1.0 - part)
        });
        self.shares(job, x).map(|share| share.min(1.0 - share)).chain(split).fold(0.0, f64::max)
    }

    /// Alternatives for a job with some options.
    fn split(&self, job: usize, x: &[f64]) -> Vec<Decision> {
        let (at, count) = (self.jobs[job], self.shares(job, x).count());
        if count > 1 {
            let half = self.shares(job, x).sum::<f64>() / 2.0;
            let mut total = 0.0;
            let before = self.shares(job, x).take_while(|share| {
                total += share;
                total <= half
            });
            let middle = (before.count() + 1).min(count - 1);
            return [0..middle, middle..count].map(|options| Decision::Keep { job: at, options }).to_vec();
        }
        let pending = &self.problem.jobs()[job];
        let single =
            pending.blocks.iter().filter(|block| !block.starts.is_empty()).all(|block| block.sets.len() == 1);
        let least = if single { pending.tasks } else { 0 };
        let mut decisions: Vec<Decision> =
            (least..=pending.tasks).map(|tasks| Decision::Place { job: at, tasks }).collect();
        if self.placed.iter().all(|placed| placed.job != at) {
            decisions.push(Decision::Keep { job: at, options: 0..0 });
        }
        decisions
    }
}

impl Parts {
    /// Applies a decision; nothing if no plan agrees with it.
    fn apply(&mut self, decision: &Decision) -> Option<()> {
        match decision {
            Decision::Keep { job, options } => {
                let blocks = &mut self.jobs[*job].as_mut()?.blocks;
                let mut number = 0;
                for block in blocks {
                    block.starts.retain(|_| {
                        number += 1;
                        options.contains(&(number - 1))
                    });
                }
                Some(())
            }
            Decision::Place { job, tasks } => self.place(*job, *tasks),
            Decision::Preempt { running, yes } => {
                let job = self.running[*running].take()?;
                if *yes {
                    self.preempted.push(*running);
                    self.constant -= job.price;
                    for (tasks, rows) in job.tasks.iter().zip(self.capacity.chunks_exact_mut(self.slots)) {
                        add(rows, &job.demand, f64::from(*tasks));
                    }
                }
                Some(())
            }
        }
    }

    /// Places tasks of a job with one option on the first set that is left.
    fn place(&mut self, at: usize, tasks: u32) -> Option<()> {
        let sets = self.capacity.len() / self.slots;
        let job = self.jobs[at].as_mut()?;
        let block = job.blocks.iter_mut().find(|block| !block.starts.is_empty())?;
        let start = block.starts[0];
        let set = block.sets.remove(0) as usize;
        let rows = &mut self.capacity[set * self.slots..][start.slot as usize..self.slots];
        add(rows, &block.demand, -f64::from(tasks));
        job.tasks -= tasks;
        let (block_name, exhausted, complete) = (block.name, block.sets.is_empty(), job.tasks == 0);
        if exhausted && !complete {
            return None;
        }
        let known = self.placed.iter().position(|placed| placed.job == at).unwrap_or_else(|| {
            let (slot, tasks) = (start.slot, vec![0; sets]);
            self.placed.push(Placed { job: at, block: block_name, slot, tasks, complete: false });
            self.placed.len() - 1
        });
        self.placed[known].tasks[set] = tasks;
        if complete {
            self.placed[known].complete = true;
            self.constant += start.utility;
            self.jobs[at] = None;
        }
        Some(())
    }
}

/// Adds a multiple of a demand to rows.
fn add(rows: &mut [f64], demand: &[f64], factor: f64) {
    rows.iter_mut().zip(demand).for_each(|(row, nodes)| *row += factor * nodes);
}

/// A job without the starts that are worth nothing or have no set to run on.
fn worthwhile(mut job: Job) -> Job {
    let drop = |block: &mut Block| {
        let sets = !block.sets.is_empty();
        block.starts.retain(|start| sets && start.utility > 0.0);
    };
    job.blocks.iter_mut().for_each(drop);
    job
}

/// Whether preempting all running jobs leaves no capacity below zero.
fn is_coverable(slots: usize, capacity: &[f64], running: &[Running]) -> bool {
    let mut most = capacity.to_vec();
    for job in running {
        for (tasks, rows) in job.tasks.iter().zip(most.chunks_exact_mut(slots)) {
            add(rows, &job.demand, f64::from(*tasks));
        }
    }
    most.iter().all(|nodes| *nodes >= -1e-9)
}
