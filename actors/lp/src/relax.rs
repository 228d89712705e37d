//! The linear relaxation, in which jobs can be planned in shares.

use crate::basis::Basis;
use crate::certificate::Certificate;
use crate::columns::Columns;
use crate::problem::Problem;
use crate::simplex::{Vertex, maximize};

/// Limits of a solve. They count steps and never seconds, so equal problems have equal answers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Work {
    /// Pivots of the simplex method.
    pub pivots: u32,
    /// Attempts of [`round`](crate::round()) to improve its plan.
    pub ruins: u32,
    /// A relative distance between value and bound at which a solve stops; 0 goes on to the optimum.
    pub gap: f64,
}

impl Default for Work {
    /// Enough for 400 jobs over 48 slots, with a gap of 0.1 %.
    fn default() -> Self {
        Self { pivots: 20_000, ruins: 500, gap: 0.001 }
    }
}

/// A solution of the linear relaxation, and an upper bound on the optimum that its duals prove.
#[derive(Clone, PartialEq, Debug)]
pub struct Relaxed {
    /// Share of each variable, between 0 and 1, in the order of jobs, blocks, sets and starts (options that are worth
    /// nothing have none), then running jobs. They satisfy every row up to rounding errors.
    pub x: Vec<f64>,
    /// Price of a node in each set and slot, in the unit of utilities: duals that prove `bound`. Not negative.
    pub duals: Vec<f64>,
    /// Utilities times shares, less the prices of preempted shares.
    pub value: f64,
    /// Upper bound of all solutions and plans, up to rounding errors. At least `value`.
    pub bound: f64,
    /// Pivots made.
    pub pivots: u32,
    /// The basis from which the next problem can start.
    pub basis: Basis,
}

/// Solves the linear relaxation of a problem.
///
/// It starts from `basis`, which another problem may have left, or else from the empty plan, and stops at the
/// optimum, at `work.gap`, or after `work.pivots`. Wherever it stops, `x` is feasible and `bound` holds. Capacities
/// count as larger by up to 2e-6 nodes while it runs, and the shares are scaled back to the true ones at the end, so
/// that at the optimum `value` may lie below `bound` by about that times the duals.
pub fn relax(problem: &Problem, basis: Option<&Basis>, work: Work) -> Relaxed {
    let columns = problem.columns();
    let mut certificate = Certificate::new(columns, problem.capacity());
    let vertex = maximize(problem, basis, (work.pivots, work.gap), &mut certificate);
    let Vertex { mut x, basis, pivots } = vertex;
    make_feasible(columns, problem.jobs().len(), problem.capacity(), &mut x);
    let value = columns.costs().iter().zip(&x).map(|(cost, share)| cost * share).sum();
    let (bound, duals) = certificate.into_best();
    Relaxed { x, duals, value, bound, pivots, basis }
}

/// Clips shares at zero, then scales those of groups that exceed one, and of options on rows that exceed the
/// capacity.
fn make_feasible(columns: &Columns, jobs: usize, capacity: &[f64], x: &mut [f64]) {
    let mut excess = vec![0.0; capacity.len()];
    excess.iter_mut().zip(capacity).for_each(|(excess, nodes)| *excess = -nodes);
    let mut load = vec![0.0; capacity.len()];
    for group in 0..columns.groups() {
        let shares = &mut x[columns.of_group(group)];
        shares.iter_mut().for_each(|share| *share = share.max(0.0));
        let total: f64 = shares.iter().sum();
        if total > 1.0 {
            shares.iter_mut().for_each(|share| *share /= total);
        }
        for column in columns.of_group(group).filter(|column| x[*column] > 0.0) {
            let rows = if group < jobs { &mut load } else { &mut excess };
            columns.add_to(column, x[column], rows);
        }
    }
    // Of each row, the part of the load that fits.
    let fits: Vec<f64> = load
        .iter()
        .zip(&excess)
        .map(|(load, excess)| if *load > -excess { (-excess / load).max(0.0) } else { 1.0 })
        .collect();
    for column in (0..jobs).flat_map(|job| columns.of_group(job)) {
        if x[column] <= 0.0 {
            continue;
        }
        let mut factor = 1.0_f64;
        for (row, values) in columns.runs(column) {
            for (fit, value) in fits[row..].iter().zip(values) {
                if *value > 0.0 {
                    factor = factor.min(*fit);
                }
            }
        }
        x[column] *= factor;
    }
}
