//! The result of predicting the jobs of a trace.

use std::path::PathBuf;

use serde::Serialize;

/// The accuracy of a predictor on the run times of a trace. Shares are of the jobs that were predicted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evaluation {
    pub file: PathBuf,
    pub predictor: &'static str,
    /// The features; each counts alone and in a pair with each other one.
    pub features: Vec<&'static str>,
    /// Whether only jobs that finished are counted; the history holds all jobs.
    pub only_finished: bool,
    /// All jobs.
    pub overall: Accuracy,
    /// The weeks of the trace, by when jobs were submitted; empty unless asked for.
    pub weeks: Vec<Accuracy>,
    /// The trusted experts, most frequent first.
    pub experts: Vec<ExpertShare>,
    /// Number of values of features and pairs that have a history.
    pub values: usize,
    /// Notes about the trace, such as the number of rows skipped.
    pub notes: Vec<String>,
}

/// Shares of jobs by the error of their estimates. The error is (estimate − run time) / run time.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Accuracy {
    /// Jobs with an estimate.
    pub jobs: u64,
    /// Jobs without one, because no job had ended before they were submitted.
    pub without_estimate: u64,
    /// Estimates between half of the run time and twice the run time.
    pub within_factor_two: f64,
    /// Estimates within 5 % of the run time.
    pub within_5_percent: f64,
    /// Estimates below the run time.
    pub under: f64,
    /// Estimates below half of the run time.
    pub under_half: f64,
    /// Estimates above the run time.
    pub over: f64,
    /// Estimates above twice the run time.
    pub over_twice: f64,
    /// Errors by the nearest multiple of 10 %, from −100 % to 90 %, and the tail of 95 % and more (thesis, Fig. 3.10
    /// and 4.2d).
    pub errors: Vec<ErrorBucket>,
    /// Fit of the predicted distributions; only for a predictor that gives some.
    pub distribution: Option<DistributionFit>,
}

/// Estimates with about the same error.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ErrorBucket {
    /// Error in per cent, the middle of the bucket; `None` for the tail of 95 % and more.
    pub percent: Option<i32>,
    /// Share of the jobs.
    pub share: f64,
}

/// Positions of run times in the distributions that were predicted for them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DistributionFit {
    /// Share of the run times above the largest one of the history: the under-estimates of a scheduler that uses
    /// distributions (thesis, section 4.3.2).
    pub above_maximum: f64,
    /// Share of the run times between the 10th and the 90th percentile; 80 % if distributions are right.
    pub in_middle_80: f64,
    /// Shares of the run times in each tenth of the distribution; 10 % each if distributions are right.
    pub tenths: [f64; 10],
}

/// Share of a feature and an estimator among the trusted ones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExpertShare {
    /// Feature or pair, such as `user+class`; `all jobs` if there was no similar job.
    pub feature: String,
    /// The estimator.
    pub estimator: &'static str,
    /// Share of the estimates.
    pub share: f64,
}
