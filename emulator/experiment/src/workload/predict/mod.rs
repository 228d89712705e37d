//! Evaluation of predictors of run times: a predictor processes the jobs of a trace as a scheduler would (Park's
//! thesis, section 3.6).

mod evaluation;
mod measure;
mod render;

pub use evaluation::{Accuracy, DistributionFit, ErrorBucket, Evaluation, ExpertShare};
pub use measure::{Question, evaluate};

#[cfg(test)]
mod tests;
