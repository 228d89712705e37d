//! The stored form of one cell: its summary, and data for its charts.

pub mod cell;
#[cfg(test)]
pub(crate) mod fixture;
