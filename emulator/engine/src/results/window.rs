//! The measured window of a run, and the drift of response times in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The window of `run.measure`. Results count the jobs that arrive in it; utilization, staleness, messages, the use of
/// shared nodes and the load of actors cover its time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredWindow {
    /// Start, in emulated seconds.
    pub from_s: f64,
    /// End, in emulated seconds; at most the end of the run.
    pub until_s: f64,
    /// Whether MSER-5 chose the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto: bool,
    /// Jobs that arrived before it, which are the warm-up.
    pub warm_up: u64,
    /// Jobs that arrived after it.
    pub after: u64,
    /// Jobs before or after it that did not finish.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Mean response times of the first and of the last tenth of the measured jobs by arrival, if they differ by more than
/// a twentieth of the mean of all and by more than six standard errors. The standard error is estimated from the steps
/// between successive twentieths of the jobs in between.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Unsettled {
    /// Mean response time of the first tenth, s.
    pub first_s: f64,
    /// Mean response time of the last tenth, s.
    pub last_s: f64,
}

/// Smallest number of finished jobs whose tenths are compared.
const LEAST: usize = 1000;

impl Unsettled {
    /// The first and last tenth of response times, given in order of arrival; `None` if they do not differ beyond
    /// noise, or too few jobs finished.
    pub fn of(responses: &[f64]) -> Option<Self> {
        if responses.len() < LEAST {
            return None;
        }
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let parts: Vec<f64> = responses.chunks(responses.len().div_ceil(20)).map(mean).collect();
        let (first_s, last_s) = (mean(&parts[..2]), mean(&parts[parts.len() - 2..]));
        let steps = parts[2..parts.len() - 2].windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
        // A step is the difference of two parts, with twice the variance of a part. A tenth is the mean of two parts,
        // so the difference between two tenths has the variance of one part.
        let error = (steps.clone().sum::<f64>() / steps.count() as f64 / 2.0).sqrt();
        let apart = (last_s - first_s).abs();
        (apart > 6.0 * error && apart > mean(responses) / 20.0).then_some(Self { first_s, last_s })
    }
}
