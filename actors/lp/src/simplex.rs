//! The linear relaxation, in which jobs can be planned in shares. The primal simplex method with generalised upper
//! bounding solves it and keeps group rows implicit.
//!
//! A run pivots from a given basis until the optimum, a certified gap, or a limit. If it fails, it begins again from
//! the slack basis. Pricing decides which nonbasic variable enters, and the ratio test which basic variable leaves.

mod state;

use state::{FEASIBLE, Kind, Leaving, NO_GROUP, PIVOT, State};

use crate::columns::{Basis, Certificate, Columns, Profits, Variable};
use crate::problem::Problem;

/// Limits of a solve. They count steps and never seconds, so equal problems have equal answers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Work {
    /// Maximum number of pivots of the simplex method.
    pub pivots: u32,
    /// Maximum number of attempts of [`round`](crate::round()) to improve its plan.
    pub ruins: u32,
    /// Relative distance between value and bound at which a solve stops; 0 continues to the optimum.
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
    /// Share of each variable, between 0 and 1: first options of positive utility, in the order of jobs, blocks, sets
    /// and starts; then running jobs. The shares satisfy every row up to rounding errors.
    pub x: Vec<f64>,
    /// Price of a node in each set and slot, in the unit of utilities: duals that prove `bound`. Not negative.
    pub duals: Vec<f64>,
    /// Utilities times shares, less prices times preempted shares.
    pub value: f64,
    /// Upper bound on the values of all solutions and plans, up to rounding errors; at least `value`.
    pub bound: f64,
    /// Number of pivots.
    pub pivots: u32,
    /// The basis from which the next problem can start.
    pub basis: Basis,
}

/// Solves the linear relaxation of a problem.
///
/// The solve starts from `basis`, which may belong to another problem, or from the empty plan. It stops at the optimum,
/// at `work.gap`, or after `work.pivots`; `x` is then feasible and `bound` holds. During the solve capacities are
/// larger by up to 2e-6 nodes. At the end the shares are scaled back to the true capacities, so at the optimum `value`
/// may lie below `bound` by about 2e-6 times the duals.
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

/// Clips shares at zero. Then scales the shares of groups that exceed one, and of options on rows that exceed their
/// capacity.
fn make_feasible(columns: &Columns, jobs: usize, capacity: &[f64], x: &mut [f64]) {
    let mut excess = vec![0.0; capacity.len()];
    excess.iter_mut().zip(capacity).for_each(|(excess, nodes)| *excess = -nodes);
    let mut load = vec![0.0; capacity.len()];
    for group in 0..columns.groups() {
        let shares = &mut x[columns.group_columns(group)];
        shares.iter_mut().for_each(|share| *share = share.max(0.0));
        let total: f64 = shares.iter().sum();
        if total > 1.0 {
            shares.iter_mut().for_each(|share| *share /= total);
        }
        for column in columns.group_columns(group).filter(|column| x[*column] > 0.0) {
            let rows = if group < jobs { &mut load } else { &mut excess };
            columns.add_to(column, x[column], rows);
        }
    }
    // Fraction of each row's load that fits.
    let fits: Vec<f64> = load
        .iter()
        .zip(&excess)
        .map(|(load, excess)| if *load > -excess { (-excess / load).max(0.0) } else { 1.0 })
        .collect();
    for column in (0..jobs).flat_map(|job| columns.group_columns(job)) {
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

/// Smallest perturbation of a right-hand side, in nodes; the largest is twice as large.
const PERTURBATION: f64 = 1e-6;

/// A basic solution for the unperturbed capacities.
pub(crate) struct Vertex {
    /// Value of each column. Values may lie below zero by about the perturbation, or by more if the first phase did not
    /// end.
    pub(crate) x: Vec<f64>,
    pub(crate) basis: Basis,
    pub(crate) pivots: u32,
}

/// Capacities, each increased by an amount that depends on its index, which makes ties in the ratio test rare.
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
        adopt_basis(problem, &mut state, basis);
    }
    let (stop, mut left) = Method::new(&mut state, pivots).run(gap, certificate);
    if stop == Stop::Stuck && warm.is_some() {
        state = State::new(problem.columns(), capacity);
        (_, left) = Method::new(&mut state, left).run(gap, certificate);
    }
    state.set_capacity(problem.capacity());
    Vertex { x: values(&state), basis: named_basis(problem, &state), pivots: pivots - left }
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

/// Number of pivots after which the working basis is inverted from its columns, to bound rounding errors.
const REINVERT: u32 = 100;

/// Number of consecutive pivots without progress after which Bland's rule applies.
const STALL: u32 = 50;

/// Number of pivots after which the next scan determines the gap.
const CHECK: u32 = 20;

/// Reason why the method stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// No variable is worth entering.
    Optimal,
    /// The gap between value and bound is small enough.
    Gap,
    /// The limit of pivots is reached.
    Limit,
    /// The first phase found no feasible solution from its basis, or rounding errors left no pivot element.
    Stuck,
}

/// A run of the method from a basis.
struct Method<'s, 'p> {
    state: &'s mut State<'p>,
    prices: Prices,
    /// Pivots that remain.
    left: u32,
    /// Pivots since the working basis was last inverted from scratch.
    age: u32,
    /// Pivots in a row without progress.
    stalled: u32,
    /// Number of pivots in a row without progress from which on Bland's rule applies.
    patience: u32,
    /// Pivots since the gap was last determined.
    unchecked: u32,
}

impl<'s, 'p> Method<'s, 'p> {
    /// A run of at most `pivots` pivots.
    fn new(state: &'s mut State<'p>, pivots: u32) -> Self {
        let prices = Prices::new(state);
        Self { state, prices, left: pivots, age: 0, stalled: 0, patience: STALL, unchecked: CHECK }
    }

    /// Runs until the certificate's gap is at most `gap`, or as far as possible. Returns why it stopped, and the
    /// pivots that remain.
    fn run(mut self, gap: f64, certificate: &mut Certificate<'_>) -> (Stop, u32) {
        self.prices.compute(self.state);
        let stop = loop {
            let entering = match self.entering(gap, certificate) {
                Ok(entering) => entering,
                // Optimal by the updated inverse: check once more with a fresh inverse.
                Err(Stop::Optimal | Stop::Stuck) if self.age > 0 => {
                    self.refresh();
                    continue;
                }
                Err(stop) => break stop,
            };
            if self.left == 0 {
                break Stop::Limit;
            }
            self.state.direct(entering.variable);
            match self.leaving() {
                Some((leaving, step)) => self.pivot(entering, leaving, step),
                None if self.age > 0 => self.refresh(),
                None => break Stop::Stuck,
            }
        };
        if self.prices.phase == Phase::Optimality {
            certificate.offer(&self.prices.duals);
        }
        (stop, self.left)
    }

    /// The entering variable, or the reason why there is none.
    fn entering(&mut self, gap: f64, certificate: &mut Certificate<'_>) -> Result<Entering, Stop> {
        let done = match self.prices.phase {
            Phase::Feasibility => Stop::Stuck,
            Phase::Optimality => Stop::Optimal,
        };
        if self.stalled >= self.patience {
            return self.prices.lowest(self.state).ok_or(done);
        }
        if let Some(entering) = self.prices.best_candidate(self.state) {
            return Ok(entering);
        }
        let best = self.prices.scan(self.state).ok_or(done)?;
        if gap > 0.0 && done == Stop::Optimal && self.unchecked >= CHECK {
            self.unchecked = 0;
            let (value, bound) = (self.state.objective(), certificate.offer(&self.prices.duals));
            if bound - value <= gap * bound {
                return Err(Stop::Gap);
            }
        }
        Ok(best)
    }

    /// The variable that leaves, and the step.
    fn leaving(&self) -> Option<(Leaving, f64)> {
        if self.stalled >= self.patience { lowest_ratio(self.state) } else { two_pass_ratio(self.state) }
    }

    /// Exchanges two variables.
    fn pivot(&mut self, entering: Entering, leaving: Leaving, step: f64) {
        let gain = step * entering.reduced;
        self.stalled = if gain > 1e-12 { 0 } else { self.stalled + 1 };
        let position = self.state.pivot(entering.variable, leaving, step);
        self.left -= 1;
        self.age += 1;
        self.unchecked += 1;
        if self.age >= REINVERT {
            self.refresh();
        } else if self.prices.phase == Phase::Feasibility || !self.state.is_feasible() {
            self.prices.compute(self.state);
        } else if let Some(position) = position {
            self.prices.follow(self.state.inverse.row(position), entering.reduced);
        }
    }

    /// Inverts the working basis from scratch.
    fn refresh(&mut self) {
        self.state.reinvert();
        self.prices.compute(self.state);
        self.age = 0;
    }
}

/// Number of the variable with a name, if the problem has it.
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

/// Puts the state at a basis of another problem, without the variables that this problem lacks. The solution may be
/// infeasible.
fn adopt_basis(problem: &Problem, state: &mut State<'_>, basis: &Basis) {
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

/// The basis of a state, with its variables by name.
fn named_basis(problem: &Problem, state: &State<'_>) -> Basis {
    let columns = |key: &&usize| matches!(state.kind(**key), Kind::Column(_));
    Basis {
        keys: state.keys.iter().filter(columns).map(|key| name(problem, state, *key)).collect(),
        working: state.working.iter().map(|variable| name(problem, state, *variable)).collect(),
    }
}

/// The quantity that the method maximizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The sum of the negative values, until no value is negative.
    Feasibility,
    /// The objective.
    Optimality,
}

/// Duals of a basis, and variables that are worth entering.
struct Prices {
    phase: Phase,
    /// Duals of the capacity rows.
    duals: Vec<f64>,
    /// The variable of largest reduced cost of each group, and slacks of capacity rows, as of the last scan.
    candidates: Vec<usize>,
    profits: Profits,
    /// Largest reduced cost of the last scan.
    largest: f64,
    /// Group with which the next scan begins.
    next: usize,
    /// Largest reduced cost that counts as zero.
    tolerance: f64,
}

/// A variable to enter, with its reduced cost.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Entering {
    variable: usize,
    reduced: f64,
}

/// A new scan begins when the best candidate falls below this fraction of the best of the last scan.
const WORTHWHILE: f64 = 0.3;

/// Number of candidates at which a scan ends.
const LIST: usize = 16;

impl Prices {
    /// Prices for a state.
    fn new(state: &State<'_>) -> Self {
        let largest = state.columns.costs().iter().fold(0.0_f64, |most, cost| most.max(cost.abs()));
        Self {
            phase: Phase::Optimality,
            duals: vec![0.0; state.working.len()],
            candidates: Vec::with_capacity(state.keys.len() + state.working.len()),
            profits: Profits::default(),
            largest: 0.0,
            next: 0,
            tolerance: 1e-9 * largest,
        }
    }

    /// Determines the phase of a basis and computes its duals from scratch.
    fn compute(&mut self, state: &State<'_>) {
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

    /// Updates the duals after an exchange: `row` is the row of the inverse that belongs to the entering variable.
    fn follow(&mut self, row: &[f64], reduced: f64) {
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

    /// The best candidate; `None` if a new scan is likely to find a better one.
    fn best_candidate(&mut self, state: &State<'_>) -> Option<Entering> {
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
    fn scan(&mut self, state: &State<'_>) -> Option<Entering> {
        let columns = state.columns;
        let feasible = self.phase == Phase::Optimality;
        self.candidates.clear();
        self.profits.take(columns, &self.duals);
        let groups = state.keys.len();
        let mut seen = 0;
        while seen < groups && self.candidates.len() < LIST {
            let group = self.next;
            self.next = if group + 1 < groups { group + 1 } else { 0 };
            seen += 1;
            let dual = self.group_dual(state, group);
            let mut best = Entering { variable: columns.len() + group, reduced: 0.0 };
            let profits = self.profits.of(columns, group);
            for (column, &profit) in columns.group_columns(group).zip(profits) {
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
    fn lowest(&self, state: &State<'_>) -> Option<Entering> {
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

/// Distance below zero to which the first pass lets values fall.
const RELAXED: f64 = 1e-9;

/// Distance by which the entering variable can rise until a basic variable of this value reaches a bound. A value below
/// zero, as in the first phase, can rise to zero and fall without limit.
fn limit(value: f64, fall: f64, slack: f64) -> Option<f64> {
    if value < -FEASIBLE {
        (fall < -PIVOT).then(|| (value - slack) / fall)
    } else {
        (fall > PIVOT).then(|| (value.max(0.0) + slack) / fall)
    }
}

/// Values and rates of all basic variables: first the variables at positions of the working basis, then the keys.
fn basics<'a>(state: &'a State<'_>) -> impl Iterator<Item = (Leaving, f64, f64)> + 'a {
    let working = state.values.iter().zip(&state.falls).enumerate();
    let keys = state.key_values.iter().zip(&state.key_falls).enumerate();
    working
        .map(|(at, (value, fall))| (Leaving::Position(at), *value, *fall))
        .chain(keys.map(|(at, (value, fall))| (Leaving::Key(at), *value, *fall)))
}

/// The leaving variable and the step, by two passes (Harris 1973). Among the variables whose limit is below the
/// smallest relaxed limit, the one with the largest pivot element leaves.
fn two_pass_ratio(state: &State<'_>) -> Option<(Leaving, f64)> {
    let mut bound = f64::INFINITY;
    for (_, value, fall) in basics(state) {
        if let Some(limit) = limit(value, fall, RELAXED) {
            bound = bound.min(limit);
        }
    }
    let (mut best, mut largest) = (None, 0.0);
    for (leaving, value, fall) in basics(state) {
        if fall.abs() > largest
            && let Some(limit) = limit(value, fall, 0.0)
            && limit <= bound
        {
            (best, largest) = (Some((leaving, limit)), fall.abs());
        }
    }
    best
}

/// The leaving variable and the step by Bland's rule: the variable with the lowest number among those of smallest
/// limit.
fn lowest_ratio(state: &State<'_>) -> Option<(Leaving, f64)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Block, Job, Running, Start};
    use crate::problem::Problem;

    /// A problem with integral capacities, in which ratio tests tie and many right-hand sides are zero.
    fn degenerate(jobs: u64, slots: u32) -> Problem {
        let starts = || (0..slots).map(|slot| Start { slot, utility: 1.0 });
        let block = |name: u64| Block {
            name: 0,
            sets: vec![0, 1],
            demand: vec![1.0; 1 + name as usize % 3],
            starts: starts().collect(),
        };
        let job = |name| Job { name, tasks: 1 + name as u32 % 2, blocks: vec![block(name)] };
        let running = Running { name: jobs, tasks: vec![2, 1], demand: vec![1.0; 2], price: 0.5 };
        let capacity = (0..2 * slots).map(|row| f64::from(row % 3)).collect();
        let problem = Problem::new(slots as usize, capacity, (0..jobs).map(job).collect(), vec![running]);
        problem.unwrap()
    }

    /// Objective and number of pivots with unperturbed capacities.
    fn run(problem: &Problem, patience: u32) -> (f64, u32) {
        let mut state = State::new(problem.columns(), problem.capacity().to_vec());
        let mut certificate = Certificate::new(problem.columns(), problem.capacity());
        let method = Method { patience, ..Method::new(&mut state, 20_000) };
        let (stop, left) = method.run(0.0, &mut certificate);
        assert_eq!(stop, Stop::Optimal);
        let (bound, value) = (certificate.into_best().0, state.objective());
        assert!((bound - value).abs() < 1e-6, "the value is {value}, the bound {bound}");
        (value, 20_000 - left)
    }

    #[test]
    fn blands_rule_reaches_the_optimum_of_degenerate_problems() {
        for (jobs, slots) in [(3, 2), (10, 4), (20, 6), (40, 5)] {
            let problem = degenerate(jobs, slots);
            let (value, pivots) = run(&problem, 0);
            assert!(pivots > 0 && value > 0.0);
            for patience in [1, STALL] {
                assert!((run(&problem, patience).0 - value).abs() < 1e-6);
            }
        }
    }
}
