//! What is kept of one cell: its summary, and enough of its shape to draw it again.

pub mod cell;
#[cfg(test)]
pub(crate) mod fixture;
