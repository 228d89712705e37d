//! The recorder of a run: totals folded from notes, and closed at its end.

mod close;
mod deadlines;
mod fold;
mod so_far;

pub use close::Accounts;
pub use fold::{Recorder, Totals};
pub use so_far::SoFar;

#[cfg(test)]
mod tests;
