//! Preferences among options, from the shares and duals of a relaxed solution.

use crate::problem::Problem;
use crate::relax::Relaxed;

/// Shares up to this count as zero.
const SHARE: f64 = 1e-6;

/// Preferences among options and jobs by the relaxed solution.
pub(super) struct Preferences<'a> {
    pub(super) relaxed: &'a Relaxed,
    /// Price of the nodes of each column at the duals.
    pub(super) rents: Vec<f64>,
    /// Options by job, each job's best first: those with shares, the largest first, then by utility less rent.
    options: Vec<u32>,
    /// Where the options of each job begin, and the end.
    first: Vec<u32>,
    /// Share of each job that the relaxed solution plans.
    pub(super) shares: Vec<f64>,
    /// Largest utility less rent of each job.
    pub(super) profits: Vec<f64>,
}

impl<'a> Preferences<'a> {
    /// The preferences that follow from a relaxed solution.
    pub(super) fn new(problem: &Problem, relaxed: &'a Relaxed) -> Self {
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
            let range = columns.of_job(job);
            first.push(range.start as u32);
            options[range].sort_by(|&a, &b| {
                let (a, b) = (a as usize, b as usize);
                share[b].total_cmp(&share[a]).then(profit[b].total_cmp(&profit[a])).then(a.cmp(&b))
            });
        }
        first.push(options.len() as u32);
        let of_jobs = || (0..problem.jobs().len()).map(|job| columns.of_job(job));
        let shares = of_jobs().map(|range| share[range].iter().sum()).collect();
        let profits =
            of_jobs().map(|range| profit[range].iter().fold(0.0, |most, value| value.max(most))).collect();
        Self { relaxed, rents, options, first, shares, profits }
    }

    /// Options of a job, the best first.
    pub(super) fn of_job(&self, job: usize) -> &[u32] {
        &self.options[self.first[job] as usize..self.first[job + 1] as usize]
    }
}
