//! Predictors of run times: a job is expected to last as long as jobs like it did (Park's thesis, sections 3.6.1 and
//! 4.3.1).
//!
//! | module | what it holds |
//! |---|---|
//! | `histogram` | the streaming histogram of Ben-Haim and Tom-Tov |
//! | `distribution` | distributions of run times as schedulers use them |
//! | `history` | the history of the jobs with one value of a feature: four estimators, their errors |
//! | `predictor` | the choice of the best expert, and the registry of predictors |
//!
//! An *expert* is a feature, one of its values and an estimator. All times are in seconds. Memory is bounded for each
//! value of a feature, and everything is a pure function of the jobs in the order in which they were learnt.

mod distribution;
mod histogram;
mod history;
mod predictor;

pub use distribution::{Distribution, Piece};
pub use histogram::{BINS, Bin, Histogram};
pub use history::{Estimator, History};
pub use predictor::{Combination, Prediction, Predictor, PredictorKind};

#[cfg(test)]
mod tests;
