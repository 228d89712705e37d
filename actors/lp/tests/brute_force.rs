//! Comparison of the relaxation's bound and the rounded plan with all plans, on random small instances.

mod common;

use common::{Random, Shape, random};
use volary_lp::{Problem, Work, relax, round};

/// Enumeration of plans, job by job.
struct Enumeration<'a> {
    problem: &'a Problem,
    room: Vec<f64>,
    /// For each job, an upper bound on the value of the jobs from it on.
    rest: Vec<f64>,
    best: f64,
}

impl Enumeration<'_> {
    /// The value of the best plan, if it is more than `floor`.
    fn run(problem: &Problem, floor: f64) -> f64 {
        let worth = |at: usize| -> f64 {
            let starts = problem.jobs()[at].blocks.iter().flat_map(|block| &block.starts);
            starts.map(|start| start.utility).fold(0.0, f64::max)
        };
        let rest =
            (0..=problem.jobs().len()).map(|from| (from..problem.jobs().len()).map(worth).sum()).collect();
        let mut enumeration = Enumeration { problem, room: problem.capacity().to_vec(), rest, best: floor };
        enumeration.running(0, 0.0);
        enumeration.best
    }

    fn add(&mut self, set: usize, slot: usize, demand: &[f64], nodes: f64) {
        let slots = self.problem.slots();
        let rows = &mut self.room[set * slots..][slot..slots];
        rows.iter_mut().zip(demand).for_each(|(room, demand)| *room += nodes * demand);
    }

    /// Enumerates the choices of preempted jobs, from running job `at` on.
    fn running(&mut self, at: usize, value: f64) {
        let Some(job) = self.problem.running().get(at) else { return self.job(0, value) };
        self.running(at + 1, value);
        let turn = |enumeration: &mut Self, sign: f64| {
            for (set, &tasks) in job.tasks.iter().enumerate() {
                enumeration.add(set, 0, &job.demand, sign * f64::from(tasks));
            }
        };
        turn(self, 1.0);
        self.running(at + 1, value - job.price);
        turn(self, -1.0);
    }

    /// Enumerates the plans of the pending jobs, from job `at` on.
    fn job(&mut self, at: usize, value: f64) {
        if value + self.rest[at] <= self.best {
            return;
        }
        let Some(job) = self.problem.jobs().get(at) else {
            self.best = value;
            return;
        };
        for block in &job.blocks {
            for start in &block.starts {
                let place = Place { demand: &block.demand, slot: start.slot as usize, job: at };
                self.split(&block.sets, job.tasks, &place, value + start.utility);
            }
        }
        self.job(at + 1, value);
    }

    /// Enumerates the splits of a job's tasks over sets.
    fn split(&mut self, sets: &[u32], tasks: u32, place: &Place<'_>, value: f64) {
        let Some((&set, others)) = sets.split_first() else {
            if tasks == 0 {
                self.job(place.job + 1, value);
            }
            return;
        };
        let set = set as usize;
        for here in 0..=tasks {
            self.add(set, place.slot, place.demand, -f64::from(here));
            if self.room.iter().all(|room| *room >= -1e-9) {
                self.split(others, tasks - here, place, value);
            }
            self.add(set, place.slot, place.demand, f64::from(here));
        }
    }
}

/// Placement of the tasks of a job.
struct Place<'a> {
    demand: &'a [f64],
    slot: usize,
    job: usize,
}

#[test]
fn the_bound_holds_and_rounding_finds_most_best_plans() {
    let mut numbers = Random(1);
    let (mut fractional, mut best_plans) = (0, 0);
    for case in 0..2_000 {
        let values = [4, 40, 1_000][case % 3];
        let shape = Shape { jobs: 6, running: 2, slots: 4, sets: 2, starts: 2, tasks: 3, values };
        let problem = random(&mut numbers, &shape);
        let work = Work { gap: 0.0, pivots: 1_000_000, ruins: 100 };
        let relaxed = relax(&problem, None, work);
        let plan = round(&problem, &relaxed, work);
        assert!(plan.excess(&problem) <= 1e-6, "case {case}");
        // Enumeration begins just below the plan, so that it finds a plan that is at least as good.
        let best = Enumeration::run(&problem, (plan.value - 1e-6).max(0.0) - 1e-9);
        assert!(relaxed.bound >= best - 1e-9, "case {case}: {} is below {best}", relaxed.bound);
        assert!(plan.value <= best + 1e-9, "case {case}: {} is above {best}", plan.value);
        fractional += u32::from(relaxed.bound > best + 1e-6);
        best_plans += u32::from(plan.value >= best - 1e-6);
    }
    assert!(fractional > 300, "only {fractional} relaxed solutions are fractional");
    assert!(best_plans > 1_900, "only {best_plans} of 2,000 plans are the best");
}
