//! Observations folded into results, and the files of a run directory.
//!
//! | module | what it writes |
//! |---|---|
//! | [`cell`] | `cells/<id>.json`: one cell's summary and enough of its shape to draw it again |
//! | [`fold`] | (nothing: it folds notes into one run's results) |
//! | [`staleness`] | (nothing: it folds notes about caches) |
//! | [`placements`] | (nothing: it folds notes about placements) |

pub mod cell;
#[cfg(test)]
pub(crate) mod fixture;
pub mod fold;
mod gauge;
pub mod placements;
pub mod staleness;
