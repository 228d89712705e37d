//! The inverse of the working basis, dense and explicit.

use crate::columns::{Columns, dot};

/// The inverse of a square matrix whose columns are exchanged one at a time. Row `i` belongs to the matrix's column
/// at position `i`.
pub(super) struct Inverse {
    size: usize,
    /// Row by row.
    entries: Vec<f64>,
}

impl Inverse {
    /// The identity.
    pub(super) fn new(size: usize) -> Self {
        let mut inverse = Self { size, entries: vec![0.0; size * size] };
        inverse.reset();
        inverse
    }

    /// Makes this the identity again.
    pub(super) fn reset(&mut self) {
        self.entries.fill(0.0);
        for at in 0..self.size {
            self.entries[at * self.size + at] = 1.0;
        }
    }

    /// One row.
    pub(super) fn row(&self, at: usize) -> &[f64] {
        &self.entries[at * self.size..][..self.size]
    }

    /// All rows.
    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        // Without rows there is nothing to divide.
        self.entries.chunks_exact(self.size.max(1))
    }

    /// Adds the product with a column to `product`, times a factor.
    pub(super) fn add_product(&self, columns: &Columns, column: usize, factor: f64, product: &mut [f64]) {
        for (first, values) in columns.runs(column) {
            for (row, total) in self.rows().zip(product.iter_mut()) {
                *total += factor * dot(&row[first..first + values.len()], values);
            }
        }
    }

    /// Adds the product with the unit column of a row to `product`.
    pub(super) fn add_unit(&self, unit: usize, product: &mut [f64]) {
        for (row, total) in self.rows().zip(product) {
            *total += row[unit];
        }
    }

    /// The product with a dense vector.
    pub(super) fn multiply(&self, vector: &[f64], product: &mut [f64]) {
        for (row, total) in self.rows().zip(product) {
            *total = dot(row, vector);
        }
    }

    /// Exchanges the column at a position for the one whose product with the inverse is `direction`, by which the
    /// inverse is multiplied with an elementary matrix. `direction[position]` is the pivot element.
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
