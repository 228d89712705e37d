//! Upper bounds that any duals prove.
//!
//! For every y ≥ 0, Σ y b + Σ_g max(0, max_{j ∈ g} (c_j − y·a_j)) is at least the optimum: each feasible x has c·x ≤
//! c·x + y·(b − A x) = y·b + Σ_g Σ_{j ∈ g} (c_j − y·a_j) x_j, and the x_j of a group are not negative and add up to
//! at most one. So the bound holds however the duals came about, and wherever a run stopped.

use crate::columns::Columns;

/// The best bound so far, with the duals that prove it.
pub(crate) struct Certificate<'a> {
    columns: &'a Columns,
    capacity: &'a [f64],
    bound: f64,
    duals: Vec<f64>,
    offered: Vec<f64>,
    profits: Vec<f64>,
}

impl<'a> Certificate<'a> {
    /// The bound of the duals zero: every job gets its best option.
    pub(crate) fn new(columns: &'a Columns, capacity: &'a [f64]) -> Self {
        let duals = vec![0.0; capacity.len()];
        let offered = duals.clone();
        let mut profits = Vec::new();
        let bound = bound(columns, capacity, &duals, &mut profits);
        Self { columns, capacity, bound, duals, offered, profits }
    }

    /// The bound of given duals, of which negative ones count as zero. The better one is kept.
    pub(crate) fn offer(&mut self, duals: &[f64]) -> f64 {
        for (offered, dual) in self.offered.iter_mut().zip(duals) {
            *offered = dual.max(0.0);
        }
        let bound = bound(self.columns, self.capacity, &self.offered, &mut self.profits);
        if bound < self.bound {
            self.bound = bound;
            std::mem::swap(&mut self.duals, &mut self.offered);
        }
        bound
    }

    /// The best bound and its duals.
    pub(crate) fn into_best(self) -> (f64, Vec<f64>) {
        (self.bound, self.duals)
    }
}

/// The bound of duals that are not negative.
fn bound(columns: &Columns, capacity: &[f64], duals: &[f64], profits: &mut Vec<f64>) -> f64 {
    let rows: f64 = capacity.iter().zip(duals).map(|(nodes, dual)| nodes * dual).sum();
    let best = |group: usize| {
        columns.profits(group, duals, profits);
        profits.iter().fold(0.0, |best: f64, profit| best.max(*profit))
    };
    rows + (0..columns.groups()).map(best).sum::<f64>()
}
