//! The state of the simplex method: a basis, its inverse (dense and explicit), and the solution that it determines.

use crate::columns::{Columns, dot};

/// Smallest absolute value of a pivot element.
pub(super) const PIVOT: f64 = 1e-7;

/// Distance below zero at which a value still counts as feasible.
pub(super) const FEASIBLE: f64 = 1e-7;

/// Group of the slacks of capacity rows, which belong to none.
pub(super) const NO_GROUP: usize = usize::MAX;

/// Variables by number: the columns, then the slack of each group, then the slack of each capacity row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A column of the problem.
    Column(usize),
    /// The slack of a group row.
    GroupSlack(usize),
    /// The slack of a capacity row.
    RowSlack(usize),
}

/// The basic variable that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaving {
    /// The variable at a position of the working basis.
    Position(usize),
    /// The key of a group.
    Key(usize),
}

/// A basis with key variables, and its solution.
pub(super) struct State<'a> {
    pub(super) columns: &'a Columns,
    /// Right-hand sides of the capacity rows.
    pub(super) capacity: Vec<f64>,
    pub(super) inverse: Inverse,
    /// Variables at the positions of the working basis.
    pub(super) working: Vec<usize>,
    /// Groups of the variables at the positions, or [`NO_GROUP`].
    pub(super) groups: Vec<usize>,
    /// Values of the variables at the positions.
    pub(super) values: Vec<f64>,
    /// Key variable of each group.
    pub(super) keys: Vec<usize>,
    /// Values of the keys.
    pub(super) key_values: Vec<f64>,
    /// Rates at which the variables at the positions fall as the entering one rises.
    pub(super) falls: Vec<f64>,
    /// Rates at which the keys fall as the entering variable rises.
    pub(super) key_falls: Vec<f64>,
    /// A vector over the rows, for intermediate results.
    scratch: Vec<f64>,
}

impl<'a> State<'a> {
    /// The basis of all slacks, where nothing is planned.
    pub(super) fn new(columns: &'a Columns, capacity: Vec<f64>) -> Self {
        let (rows, groups) = (capacity.len(), columns.groups());
        let first_row_slack = columns.len() + groups;
        Self {
            columns,
            inverse: Inverse::new(rows),
            working: (first_row_slack..first_row_slack + rows).collect(),
            groups: vec![NO_GROUP; rows],
            values: capacity.clone(),
            keys: (columns.len()..first_row_slack).collect(),
            key_values: vec![1.0; groups],
            falls: vec![0.0; rows],
            key_falls: vec![0.0; groups],
            scratch: vec![0.0; rows],
            capacity,
        }
    }

    /// Number of variables.
    pub(super) fn variables(&self) -> usize {
        self.columns.len() + self.keys.len() + self.working.len()
    }

    /// The kind of a variable.
    pub(super) fn kind(&self, variable: usize) -> Kind {
        let columns = self.columns.len();
        if variable < columns {
            Kind::Column(variable)
        } else if variable < columns + self.keys.len() {
            Kind::GroupSlack(variable - columns)
        } else {
            Kind::RowSlack(variable - columns - self.keys.len())
        }
    }

    /// Group of a variable, or [`NO_GROUP`].
    pub(super) fn group_of(&self, variable: usize) -> usize {
        match self.kind(variable) {
            Kind::Column(column) => self.columns.group(column),
            Kind::GroupSlack(group) => group,
            Kind::RowSlack(_) => NO_GROUP,
        }
    }

    /// Objective coefficient of a variable.
    pub(super) fn cost(&self, variable: usize) -> f64 {
        if variable < self.columns.len() { self.columns.cost(variable) } else { 0.0 }
    }

    /// Inner product of a variable's column with a vector over the rows.
    pub(super) fn dot(&self, variable: usize, rows: &[f64]) -> f64 {
        match self.kind(variable) {
            Kind::Column(column) => self.columns.dot(column, rows),
            Kind::GroupSlack(_) => 0.0,
            Kind::RowSlack(row) => rows[row],
        }
    }

    /// Objective of the solution.
    pub(super) fn objective(&self) -> f64 {
        let working: f64 = self.working.iter().zip(&self.values).map(|(of, x)| self.cost(*of) * x).sum();
        let keys: f64 = self.keys.iter().zip(&self.key_values).map(|(of, x)| self.cost(*of) * x).sum();
        working + keys
    }

    /// Whether every value is feasible.
    pub(super) fn is_feasible(&self) -> bool {
        self.values.iter().chain(&self.key_values).all(|value| *value >= -FEASIBLE)
    }

    /// Computes the rates at which basic variables fall as a variable enters.
    pub(super) fn direct(&mut self, entering: usize) {
        self.falls.fill(0.0);
        self.key_falls.fill(0.0);
        match self.kind(entering) {
            Kind::Column(column) => self.inverse.add_product(self.columns, column, 1.0, &mut self.falls),
            Kind::RowSlack(row) => self.inverse.add_unit(row, &mut self.falls),
            Kind::GroupSlack(_) => {}
        }
        let group = self.group_of(entering);
        if group != NO_GROUP {
            self.key_falls[group] = 1.0;
            if let Kind::Column(key) = self.kind(self.keys[group]) {
                self.inverse.add_product(self.columns, key, -1.0, &mut self.falls);
            }
        }
        for (fall, &group) in self.falls.iter().zip(&self.groups) {
            if group != NO_GROUP {
                self.key_falls[group] -= fall;
            }
        }
    }

    /// Changes the basis after [`State::direct`]: `entering` rises by `step`, and `leaving` has become zero. Returns
    /// the position that `entering` takes, or `None` if it becomes a key.
    pub(super) fn pivot(&mut self, entering: usize, leaving: Leaving, step: f64) -> Option<usize> {
        for (value, fall) in self.values.iter_mut().zip(&self.falls) {
            *value -= step * fall;
        }
        for (value, fall) in self.key_values.iter_mut().zip(&self.key_falls) {
            *value -= step * fall;
        }
        let position = match leaving {
            Leaving::Position(position) => position,
            Leaving::Key(group) => {
                let Some(position) = self.replace_key(group) else {
                    self.keys[group] = entering;
                    self.key_values[group] = step;
                    return None;
                };
                // The old key keeps its rate of fall at its new position.
                self.falls[position] = self.key_falls[group];
                position
            }
        };
        self.inverse.exchange(position, &self.falls);
        self.working[position] = entering;
        self.groups[position] = self.group_of(entering);
        self.values[position] = step;
        Some(position)
    }

    /// Makes another basic variable of a group its key. Returns the position of that variable, which the old key takes.
    fn replace_key(&mut self, group: usize) -> Option<usize> {
        let in_group = |position: &usize| self.groups[*position] == group;
        let rows = self.working.len();
        let mut chosen: Option<usize> = None;
        for position in (0..rows).filter(in_group) {
            if chosen.is_none_or(|best| self.values[position] > self.values[best]) {
                chosen = Some(position);
            }
        }
        let position = chosen?;
        let groups = &self.groups;
        self.inverse.negate_sum(position, (0..rows).filter(|other| groups[*other] == group));
        std::mem::swap(&mut self.working[position], &mut self.keys[group]);
        std::mem::swap(&mut self.values[position], &mut self.key_values[group]);
        Some(position)
    }

    /// Inverts the working basis from scratch and computes the solution. Variables that depend on others are dropped,
    /// and the slacks of the rows that remain take their place.
    pub(super) fn reinvert(&mut self) {
        let wanted = std::mem::take(&mut self.working);
        let (rows, first) = (self.capacity.len(), self.columns.len() + self.keys.len());
        self.working = (first..first + rows).collect();
        self.groups.fill(NO_GROUP);
        self.inverse.reset();
        // Rows whose slack may leave the basis.
        let mut open = vec![true; rows];
        for slack in wanted.iter().filter(|variable| **variable >= first) {
            open[slack - first] = false;
        }
        for &variable in wanted.iter().filter(|variable| **variable < first) {
            self.direct(variable);
            let falls = &self.falls;
            let mut best = None;
            for row in (0..rows).filter(|row| open[*row] && falls[*row].abs() > PIVOT) {
                if best.is_none_or(|best: usize| falls[row].abs() > falls[best].abs()) {
                    best = Some(row);
                }
            }
            let Some(position) = best else { continue };
            open[position] = false;
            self.inverse.exchange(position, &self.falls);
            self.working[position] = variable;
            self.groups[position] = self.group_of(variable);
        }
        self.solve();
    }

    /// Sets capacities and computes the solution of the basis for them.
    pub(super) fn set_capacity(&mut self, capacity: &[f64]) {
        self.capacity.copy_from_slice(capacity);
        self.solve();
    }

    /// Computes the values of the basic variables.
    fn solve(&mut self) {
        self.scratch.copy_from_slice(&self.capacity);
        for &key in &self.keys {
            if key < self.columns.len() {
                self.columns.add_to(key, -1.0, &mut self.scratch);
            }
        }
        self.inverse.multiply(&self.scratch, &mut self.values);
        self.key_values.fill(1.0);
        for (value, &group) in self.values.iter().zip(&self.groups) {
            if group != NO_GROUP {
                self.key_values[group] -= value;
            }
        }
    }

    /// Duals of the capacity rows. The cost of a position is that of its variable minus that of its group's key.
    pub(super) fn duals(&self, cost: impl Fn(usize) -> f64, duals: &mut [f64]) {
        duals.fill(0.0);
        for position in 0..self.working.len() {
            let cost = cost(position);
            if cost != 0.0 {
                for (dual, entry) in duals.iter_mut().zip(self.inverse.row(position)) {
                    *dual += cost * entry;
                }
            }
        }
    }
}

/// The inverse of a square matrix whose columns are exchanged one at a time. Row `i` belongs to the matrix's column
/// at position `i`.
pub(super) struct Inverse {
    size: usize,
    /// The entries, row by row.
    entries: Vec<f64>,
}

impl Inverse {
    /// The identity.
    pub(super) fn new(size: usize) -> Self {
        let mut inverse = Self { size, entries: vec![0.0; size * size] };
        inverse.reset();
        inverse
    }

    /// Resets the inverse to the identity.
    pub(super) fn reset(&mut self) {
        self.entries.fill(0.0);
        for at in 0..self.size {
            self.entries[at * self.size + at] = 1.0;
        }
    }

    /// The row at an index.
    pub(super) fn row(&self, at: usize) -> &[f64] {
        &self.entries[at * self.size..][..self.size]
    }

    /// All rows.
    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        // An empty inverse has no rows, and a chunk has at least one element.
        self.entries.chunks_exact(self.size.max(1))
    }

    /// Adds the inverse's product with a column to `product`, times a factor.
    pub(super) fn add_product(&self, columns: &Columns, column: usize, factor: f64, product: &mut [f64]) {
        for (first, values) in columns.runs(column) {
            for (row, total) in self.rows().zip(product.iter_mut()) {
                *total += factor * dot(&row[first..first + values.len()], values);
            }
        }
    }

    /// Adds the inverse's product with the unit column of a row to `product`.
    pub(super) fn add_unit(&self, unit: usize, product: &mut [f64]) {
        for (row, total) in self.rows().zip(product) {
            *total += row[unit];
        }
    }

    /// Computes the inverse's product with a dense vector.
    pub(super) fn multiply(&self, vector: &[f64], product: &mut [f64]) {
        for (row, total) in self.rows().zip(product) {
            *total = dot(row, vector);
        }
    }

    /// Exchanges the column at a position for a new one. `direction` is the product of the inverse with the new column,
    /// and `direction[position]` is the pivot element.
    pub(super) fn exchange(&mut self, position: usize, direction: &[f64]) {
        let (before, rest) = self.entries.split_at_mut(position * self.size);
        let (pivot_row, after) = rest.split_at_mut(self.size);
        let pivot = direction[position];
        pivot_row.iter_mut().for_each(|entry| *entry /= pivot);
        let (above, below) = (&direction[..position], &direction[position + 1..]);
        let rows = before.chunks_exact_mut(self.size).zip(above);
        for (row, &factor) in rows.chain(after.chunks_exact_mut(self.size).zip(below)) {
            if factor != 0.0 {
                for (entry, value) in row.iter_mut().zip(&*pivot_row) {
                    *entry -= factor * value;
                }
            }
        }
    }

    /// Replaces a row by minus the sum of the rows at `positions`, which include it.
    pub(super) fn negate_sum(&mut self, row: usize, positions: impl Iterator<Item = usize>) {
        let (size, start) = (self.size, row * self.size);
        for other in positions.filter(|other| *other != row) {
            for column in 0..size {
                self.entries[start + column] += self.entries[other * size + column];
            }
        }
        self.entries[start..start + size].iter_mut().for_each(|entry| *entry = -*entry);
    }
}
