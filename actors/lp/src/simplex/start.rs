//! Bases to start from, and the names of the basis at the end.

use crate::basis::{Basis, Variable};
use crate::problem::Problem;

use super::state::{Kind, State};

/// Number of the variable of a name, if the problem has it.
fn find(problem: &Problem, state: &State<'_>, name: Variable) -> Option<usize> {
    let (columns, groups) = (problem.columns(), state.keys.len());
    match name {
        Variable::Share { .. } | Variable::Preempted { .. } => columns.find(name, problem.jobs()),
        Variable::Unplanned { job } => Some(columns.len() + columns.find_group(job)?),
        Variable::Idle { set, slot } => {
            let (set, slot) = (set as usize, slot as usize);
            let inside = set < problem.sets() && slot < problem.slots();
            inside.then(|| columns.len() + groups + set * problem.slots() + slot)
        }
    }
}

/// Puts the state at a basis of another problem, as far as this one has its variables. The solution may be
/// infeasible.
pub(super) fn adopt(problem: &Problem, state: &mut State<'_>, basis: &Basis) {
    for &name in &basis.keys {
        if let Some(variable) = find(problem, state, name) {
            let group = state.group_of(variable);
            state.keys[group] = variable;
        }
    }
    let known = basis.working.iter().filter_map(|name| find(problem, state, *name));
    let working = known.filter(|variable| state.keys.iter().all(|key| key != variable)).collect();
    state.working = working;
    state.reinvert();
}

/// Name of a variable.
fn name(problem: &Problem, state: &State<'_>, variable: usize) -> Variable {
    match state.kind(variable) {
        Kind::Column(column) => problem.columns().name(column, problem.jobs(), problem.running()),
        Kind::GroupSlack(group) => {
            let jobs = problem.jobs();
            let job =
                jobs.get(group).map_or_else(|| problem.running()[group - jobs.len()].name, |job| job.name);
            Variable::Unplanned { job }
        }
        Kind::RowSlack(row) => {
            Variable::Idle { set: (row / problem.slots()) as u32, slot: (row % problem.slots()) as u32 }
        }
    }
}

/// The basis of a state by names.
pub(super) fn named(problem: &Problem, state: &State<'_>) -> Basis {
    let columns = |key: &&usize| matches!(state.kind(**key), Kind::Column(_));
    Basis {
        keys: state.keys.iter().filter(columns).map(|key| name(problem, state, *key)).collect(),
        working: state.working.iter().map(|variable| name(problem, state, *variable)).collect(),
    }
}
