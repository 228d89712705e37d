//! Branch and bound: a plan that is proven to be the best, for problems that are small enough.

use crate::basis::Basis;
use crate::narrow::{Decision, Narrowed};
use crate::plan::Plan;
use crate::problem::Problem;
use crate::relax::{Work, relax};
use crate::round::round;

/// A plan, and an upper bound on the value of every plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Solved {
    /// The best plan found.
    pub plan: Plan,
    /// What no plan exceeds, up to rounding errors. At least the plan's value.
    pub bound: f64,
    /// Nodes whose relaxation was solved.
    pub nodes: u32,
    /// Pivots over all nodes.
    pub pivots: u32,
}

/// A part of the tree that is still open.
struct Node {
    /// What no plan below it exceeds.
    bound: f64,
    decisions: Vec<Decision>,
    /// The basis of its parent.
    basis: Basis,
}

/// Differences of value that count as none, relative to the value.
const TIE: f64 = 1e-9;

/// Nodes by which rounding errors may make a plan exceed the capacity.
const FEASIBLE: f64 = 1e-6;

/// Finds the best plan by branch and bound on the linear relaxation.
///
/// The open node with the highest bound comes first. A node's relaxation is rounded to a plan, and the node is split
/// at the job whose share is the least whole: its options are halved; once one is left, the job is left out or the
/// number of its tasks on one set is fixed. A running job is preempted or not. It ends once the plan is within
/// `work.gap` of the bound, or after `work.nodes` or `work.pivots`; with a gap of 0 and limits that suffice the plan
/// is the best one. The number of nodes grows exponentially in the number of jobs.
pub fn solve(problem: &Problem, work: Work) -> Solved {
    let root = Node { bound: f64::INFINITY, decisions: Vec::new(), basis: Basis::default() };
    let mut tree =
        Tree { problem, work, open: vec![root], plan: Plan::default(), closed: 0.0, nodes: 0, pivots: 0 };
    while let Some(node) = tree.next() {
        tree.visit(&node);
    }
    let open = tree.open.iter().fold(tree.closed, |bound, node| bound.max(node.bound));
    Solved { bound: open.max(tree.plan.value), plan: tree.plan, nodes: tree.nodes, pivots: tree.pivots }
}

/// The state of the search.
struct Tree<'a> {
    problem: &'a Problem,
    work: Work,
    open: Vec<Node>,
    plan: Plan,
    /// What no plan exceeds in the parts that were given up as not better than the plan then was.
    closed: f64,
    nodes: u32,
    pivots: u32,
}

impl Tree<'_> {
    /// Removes the open node of highest bound, of several the last, unless the search is over.
    fn next(&mut self) -> Option<Node> {
        let over = self.nodes >= self.work.nodes.max(1) || self.pivots >= self.work.pivots && self.nodes > 0;
        let best = (0..self.open.len()).max_by(|a, b| self.open[*a].bound.total_cmp(&self.open[*b].bound))?;
        if over || self.is_hopeless(self.open[best].bound) {
            return None;
        }
        Some(self.open.swap_remove(best))
    }

    /// Whether a bound promises nothing beyond the plan.
    fn is_hopeless(&self, bound: f64) -> bool {
        bound <= self.plan.value + self.work.gap.max(TIE) * self.plan.value.abs()
    }

    /// Solves a node's relaxation, rounds it, and opens its children.
    fn visit(&mut self, node: &Node) {
        let Some(narrowed) = Narrowed::new(self.problem, &node.decisions) else { return };
        self.nodes += 1;
        let root = node.decisions.is_empty();
        let work = Work {
            pivots: self.work.pivots - self.pivots,
            ruins: if root { self.work.ruins } else { 0 },
            gap: 0.0,
            ..self.work
        };
        let relaxed = relax(&narrowed.problem, Some(&node.basis), work);
        self.pivots += relaxed.pivots;
        let plan = narrowed.widen(self.problem, &round(&narrowed.problem, &relaxed, work));
        // What is narrowed may allow more than the whole: see `Narrowed`.
        if plan.value > self.plan.value && plan.excess(self.problem) <= FEASIBLE {
            self.plan = plan;
        }
        let bound = node.bound.min(narrowed.constant + relaxed.bound);
        if self.is_hopeless(bound) {
            self.closed = self.closed.max(bound);
            return;
        }
        // There are no alternatives if everything is decided.
        for decision in narrowed.alternatives(&relaxed.x) {
            let mut decisions = node.decisions.clone();
            decisions.push(decision);
            self.open.push(Node { bound, decisions, basis: relaxed.basis.clone() });
        }
    }
}
