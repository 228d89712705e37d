//! The recorder of a run: totals folded from notes, and closed at its end.

mod close;
mod deadlines;
mod fold;

pub use close::Books;
pub use fold::Recorder;

#[cfg(test)]
mod tests;
