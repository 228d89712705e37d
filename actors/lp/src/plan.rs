//! Plans: which jobs start when and where, and which running ones are preempted.

use crate::problem::Problem;

/// A choice of at most one option for each pending job, with whole tasks, and of running jobs to preempt.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// The choices, by job; jobs without a choice are not planned.
    pub choices: Vec<Choice>,
    /// Places in [`Problem::running`] of the jobs to preempt, rising.
    pub preempted: Vec<usize>,
    /// Utilities less prices.
    pub value: f64,
}

/// The option that is chosen for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Place of the job in [`Problem::jobs`].
    pub job: usize,
    /// Place of the block in [`Job::blocks`](crate::Job::blocks).
    pub block: usize,
    /// Slot of the start.
    pub slot: u32,
    /// Tasks on each set of the problem.
    pub tasks: Vec<u32>,
}

impl Plan {
    /// Nodes by which the plan exceeds the capacity where it does so most; 0 or less if it keeps it everywhere.
    pub fn excess(&self, problem: &Problem) -> f64 {
        let slots = problem.slots();
        let mut load: Vec<f64> = problem.capacity().iter().map(|nodes| -nodes).collect();
        let mut add = |tasks: &[u32], demand: &[f64], slot: usize, sign: f64| {
            for (tasks, rows) in tasks.iter().zip(load.chunks_exact_mut(slots)) {
                for (row, nodes) in rows[slot..].iter_mut().zip(demand) {
                    *row += sign * f64::from(*tasks) * nodes;
                }
            }
        };
        for choice in &self.choices {
            let block = &problem.jobs()[choice.job].blocks[choice.block];
            add(&choice.tasks, &block.demand, choice.slot as usize, 1.0);
        }
        for &at in &self.preempted {
            let job = &problem.running()[at];
            add(&job.tasks, &job.demand, 0, -1.0);
        }
        load.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Utilities of the choices less the prices of the preempted jobs.
    pub(crate) fn worth(&self, problem: &Problem) -> f64 {
        let utility = |choice: &Choice| {
            let starts = &problem.jobs()[choice.job].blocks[choice.block].starts;
            starts.iter().find(|start| start.slot == choice.slot).map_or(0.0, |start| start.utility)
        };
        let price = |at: &usize| problem.running()[*at].price;
        self.choices.iter().map(utility).sum::<f64>() - self.preempted.iter().map(price).sum::<f64>()
    }
}
