//! Pricing: which nonbasic variable enters.

use super::state::{FEASIBLE, NO_GROUP, State};

/// The quantity that the method maximizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The sum of the values below zero, until there is none.
    Feasibility,
    /// The objective.
    Optimality,
}

/// Duals of a basis, and variables that are worth entering.
pub(super) struct Prices {
    pub(super) phase: Phase,
    /// Duals of the capacity rows.
    pub(super) duals: Vec<f64>,
    /// The variable of largest reduced cost of each group, and slacks of capacity rows, as of the last scan.
    candidates: Vec<usize>,
    /// Profits of a group's columns, for intermediate results.
    profits: Vec<f64>,
    /// Largest reduced cost of the last scan.
    largest: f64,
    /// Group with which the next scan begins.
    next: usize,
    /// Reduced costs up to this count as zero.
    tolerance: f64,
}

/// A variable to enter, with its reduced cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Entering {
    pub(super) variable: usize,
    pub(super) reduced: f64,
}

/// Candidates serve until the best of them falls below this share of the best of the last scan.
const WORTHWHILE: f64 = 0.3;

/// Candidates with which a scan ends.
const LIST: usize = 16;

impl Prices {
    /// Prices for a state.
    pub(super) fn new(state: &State<'_>) -> Self {
        let largest = state.columns.costs().iter().fold(0.0_f64, |most, cost| most.max(cost.abs()));
        Self {
            phase: Phase::Optimality,
            duals: vec![0.0; state.working.len()],
            candidates: Vec::with_capacity(state.keys.len() + state.working.len()),
            profits: Vec::new(),
            largest: 0.0,
            next: 0,
            tolerance: 1e-9 * largest,
        }
    }

    /// Determines the phase and computes the duals of a basis anew.
    pub(super) fn compute(&mut self, state: &State<'_>) {
        self.phase = if state.is_feasible() { Phase::Optimality } else { Phase::Feasibility };
        let phase = self.phase;
        let cost = |position: usize| {
            let group = state.groups[position];
            let own = basic_cost(phase, state, state.working[position], state.values[position]);
            if group == NO_GROUP { own } else { own - key_cost(phase, state, group) }
        };
        state.duals(cost, &mut self.duals);
        self.candidates.clear();
    }

    /// Follows an exchange after which row `position` of the inverse belongs to the variable that entered.
    pub(super) fn follow(&mut self, row: &[f64], reduced: f64) {
        for (dual, entry) in self.duals.iter_mut().zip(row) {
            *dual += reduced * entry;
        }
    }

    /// Dual of a group row.
    fn group_dual(&self, state: &State<'_>, group: usize) -> f64 {
        key_cost(self.phase, state, group) - state.dot(state.keys[group], &self.duals)
    }

    /// Objective coefficient of a nonbasic variable.
    fn cost(&self, state: &State<'_>, variable: usize) -> f64 {
        match self.phase {
            Phase::Feasibility => 0.0,
            Phase::Optimality => state.cost(variable),
        }
    }

    /// Reduced cost of a variable.
    fn reduced(&self, state: &State<'_>, variable: usize) -> f64 {
        let group = state.group_of(variable);
        let dual = if group == NO_GROUP { 0.0 } else { self.group_dual(state, group) };
        self.cost(state, variable) - state.dot(variable, &self.duals) - dual
    }

    /// The best of the candidates, unless a scan promises better ones.
    pub(super) fn best_candidate(&mut self, state: &State<'_>) -> Option<Entering> {
        let best = self.best(state)?;
        (best.reduced >= WORTHWHILE * self.largest).then_some(best)
    }

    fn best(&self, state: &State<'_>) -> Option<Entering> {
        let mut best: Option<Entering> = None;
        for &variable in &self.candidates {
            let reduced = self.reduced(state, variable);
            if reduced > self.tolerance && best.is_none_or(|best| reduced > best.reduced) {
                best = Some(Entering { variable, reduced });
            }
        }
        best
    }

    /// Prices groups in turn until there are enough candidates or no more groups. Returns the best one.
    pub(super) fn scan(&mut self, state: &State<'_>) -> Option<Entering> {
        let columns = state.columns;
        let feasible = self.phase == Phase::Optimality;
        self.candidates.clear();
        let groups = state.keys.len();
        let mut seen = 0;
        while seen < groups && self.candidates.len() < LIST {
            let group = self.next;
            self.next = if group + 1 < groups { group + 1 } else { 0 };
            seen += 1;
            let dual = self.group_dual(state, group);
            let mut best = Entering { variable: columns.len() + group, reduced: 0.0 };
            columns.profits(group, &self.duals, &mut self.profits);
            for (column, &profit) in columns.of_group(group).zip(&self.profits) {
                let value = if feasible { profit } else { profit - columns.cost(column) };
                if value > best.reduced {
                    best = Entering { variable: column, reduced: value };
                }
            }
            if best.reduced - dual > self.tolerance {
                self.candidates.push(best.variable);
            }
        }
        let slacks = state.variables() - state.working.len();
        for (row, dual) in self.duals.iter().enumerate() {
            if *dual < -self.tolerance {
                self.candidates.push(slacks + row);
            }
        }
        let best = self.best(state);
        self.largest = best.map_or(0.0, |best| best.reduced);
        best
    }

    /// The variable of lowest number that is worth entering.
    pub(super) fn lowest(&self, state: &State<'_>) -> Option<Entering> {
        let entering = |variable| Entering { variable, reduced: self.reduced(state, variable) };
        (0..state.variables()).map(entering).find(|entering| entering.reduced > self.tolerance)
    }
}

/// Objective coefficient of a basic variable.
fn basic_cost(phase: Phase, state: &State<'_>, variable: usize, value: f64) -> f64 {
    match phase {
        Phase::Feasibility => f64::from(u8::from(value < -FEASIBLE)),
        Phase::Optimality => state.cost(variable),
    }
}

/// Objective coefficient of a group's key.
fn key_cost(phase: Phase, state: &State<'_>, group: usize) -> f64 {
    basic_cost(phase, state, state.keys[group], state.key_values[group])
}
