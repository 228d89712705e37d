//! The ratio test: which basic variable leaves.

use super::state::{FEASIBLE, Leaving, PIVOT, State};

/// Distance below zero to which the first pass lets values fall.
const RELAXED: f64 = 1e-9;

/// Distance by which the entering variable can rise until a basic variable of this value reaches a bound. A value below
/// zero, which the first phase starts from, is bounded by zero from below as it rises and unbounded as it falls.
fn limit(value: f64, fall: f64, slack: f64) -> Option<f64> {
    if value < -FEASIBLE {
        (fall < -PIVOT).then(|| (value - slack) / fall)
    } else {
        (fall > PIVOT).then(|| (value.max(0.0) + slack) / fall)
    }
}

/// Values and rates of all basic variables: those at positions, then keys.
fn basics<'a>(state: &'a State<'_>) -> impl Iterator<Item = (Leaving, f64, f64)> + 'a {
    let working = state.values.iter().zip(&state.falls).enumerate();
    let keys = state.key_values.iter().zip(&state.key_falls).enumerate();
    working
        .map(|(at, (value, fall))| (Leaving::Position(at), *value, *fall))
        .chain(keys.map(|(at, (value, fall))| (Leaving::Key(at), *value, *fall)))
}

/// The leaving variable and the step, by two passes (Harris 1973): of the variables whose limit is below the smallest
/// relaxed one, that with the largest pivot element.
pub(super) fn two_pass(state: &State<'_>) -> Option<(Leaving, f64)> {
    let mut bound = f64::INFINITY;
    for (_, value, fall) in basics(state) {
        if let Some(limit) = limit(value, fall, RELAXED) {
            bound = bound.min(limit);
        }
    }
    let mut best: Option<(Leaving, f64, f64)> = None;
    for (leaving, value, fall) in basics(state) {
        if let Some(limit) = limit(value, fall, 0.0)
            && limit <= bound
            && best.is_none_or(|(_, _, largest)| fall.abs() > largest)
        {
            best = Some((leaving, limit, fall.abs()));
        }
    }
    best.map(|(leaving, step, _)| (leaving, step))
}

/// The leaving variable and the step by Bland's rule: of the variables with the smallest limit, that with the lowest
/// number.
pub(super) fn lowest(state: &State<'_>) -> Option<(Leaving, f64)> {
    let mut best: Option<(Leaving, f64, usize)> = None;
    for (leaving, value, fall) in basics(state) {
        let Some(limit) = limit(value, fall, 0.0) else { continue };
        let number = match leaving {
            Leaving::Position(at) => state.working[at],
            Leaving::Key(group) => state.keys[group],
        };
        if best.is_none_or(|(_, step, first)| limit < step || (limit <= step && number < first)) {
            best = Some((leaving, limit, number));
        }
    }
    best.map(|(leaving, step, _)| (leaving, step))
}
