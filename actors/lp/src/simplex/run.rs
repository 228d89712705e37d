//! A run of the simplex method from a given basis, with another from the slack basis where that fails.

use crate::basis::Basis;
use crate::certificate::Certificate;
use crate::problem::Problem;

use super::method::{Method, Stop};
use super::start;
use super::state::{Kind, State};

/// Perturbation of the right-hand sides, times one to two.
const PERTURBATION: f64 = 1e-6;

/// A basic solution, for the capacities as they are.
pub(crate) struct Vertex {
    /// Value of each column. Values may lie below zero by about the perturbation, or far if the first phase did not
    /// end.
    pub(crate) x: Vec<f64>,
    pub(crate) basis: Basis,
    pub(crate) pivots: u32,
}

/// Capacities, each perturbed by its number so that ties in the ratio test are rare.
fn perturbed(capacity: &[f64]) -> Vec<f64> {
    let share = |row: usize| f64::from((row as u32).wrapping_mul(0x9e37_79b9)) / 4_294_967_296.0;
    capacity.iter().enumerate().map(|(row, nodes)| nodes + PERTURBATION * (1.0 + share(row))).collect()
}

/// Maximizes the objective, from a basis of another problem or from the slacks.
pub(crate) fn maximize(
    problem: &Problem,
    warm: Option<&Basis>,
    (pivots, gap): (u32, f64),
    certificate: &mut Certificate<'_>,
) -> Vertex {
    let capacity = perturbed(problem.capacity());
    let mut state = State::new(problem.columns(), capacity.clone());
    if let Some(basis) = warm {
        start::adopt(problem, &mut state, basis);
    }
    let (stop, mut left) = Method::new(&mut state, pivots).run(gap, certificate);
    if stop == Stop::Stuck && warm.is_some() {
        state = State::new(problem.columns(), capacity);
        (_, left) = Method::new(&mut state, left).run(gap, certificate);
    }
    state.set_capacity(problem.capacity());
    Vertex { x: values(&state), basis: start::named(problem, &state), pivots: pivots - left }
}

/// Values of the columns.
fn values(state: &State<'_>) -> Vec<f64> {
    let mut x = vec![0.0; state.columns.len()];
    let working = state.working.iter().zip(&state.values);
    for (&variable, &value) in working.chain(state.keys.iter().zip(&state.key_values)) {
        if let Kind::Column(column) = state.kind(variable) {
            x[column] = value;
        }
    }
    x
}
