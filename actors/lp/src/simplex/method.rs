//! The primal simplex method: pivots until the optimum, a certified gap, or a limit.

use crate::certificate::Certificate;

use super::price::{Entering, Phase, Prices};
use super::ratio;
use super::state::{Leaving, State};

/// Pivots between inversions of the working basis from its columns, which bound the rounding errors of its updates.
const REINVERT: u32 = 100;

/// Pivots in a row without progress after which Bland's rule applies.
const STALL: u32 = 50;

/// Pivots after which the gap is determined, with the next scan.
const CHECK: u32 = 20;

/// Why the method stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// No variable is worth entering.
    Optimal,
    /// The bound is as near as asked for.
    Gap,
    /// The limit of pivots is reached.
    Limit,
    /// The first phase found no feasible solution from its basis, or rounding errors left no pivot element.
    Stuck,
}

/// A run of the method from a basis.
pub(super) struct Method<'s, 'p> {
    state: &'s mut State<'p>,
    prices: Prices,
    /// Pivots that remain.
    left: u32,
    /// Pivots since the working basis was last inverted anew.
    age: u32,
    /// Pivots in a row without progress.
    stalled: u32,
    /// Number of those at which Bland's rule applies.
    patience: u32,
    /// Pivots since the gap was last determined.
    unchecked: u32,
}

impl<'s, 'p> Method<'s, 'p> {
    /// A run of at most `pivots` pivots.
    pub(super) fn new(state: &'s mut State<'p>, pivots: u32) -> Self {
        let prices = Prices::new(state);
        Self { state, prices, left: pivots, age: 0, stalled: 0, patience: STALL, unchecked: CHECK }
    }

    /// Runs until the certificate's gap is at most `gap`, or as far as possible. Returns why it stopped, and the
    /// pivots that remain.
    pub(super) fn run(mut self, gap: f64, certificate: &mut Certificate<'_>) -> (Stop, u32) {
        self.prices.compute(self.state);
        let stop = loop {
            let entering = match self.entering(gap, certificate) {
                Ok(entering) => entering,
                // Optimal as of the inverse at hand: once more with a fresh one.
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

    /// The variable to enter, or the reason why none is.
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
        if self.stalled >= self.patience { ratio::lowest(self.state) } else { ratio::two_pass(self.state) }
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

    /// Inverts the working basis anew.
    fn refresh(&mut self) {
        self.state.reinvert();
        self.prices.compute(self.state);
        self.age = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Block, Job, Running, Start};
    use crate::problem::Problem;

    /// Jobs on whole capacities, where ratio tests tie and many right-hand sides are zero.
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

    /// Objective and pivots on capacities that are not perturbed.
    fn run(problem: &Problem, patience: u32) -> (f64, u32) {
        let mut state = State::new(problem.columns(), problem.capacity().to_vec());
        let mut certificate = Certificate::new(problem.columns(), problem.capacity());
        let method = Method { patience, ..Method::new(&mut state, 20_000) };
        let (stop, left) = method.run(0.0, &mut certificate);
        assert_eq!(stop, Stop::Optimal);
        let (bound, value) = (certificate.into_best().0, state.objective());
        assert!((bound - value).abs() < 1e-6, "{value} of {bound}");
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
