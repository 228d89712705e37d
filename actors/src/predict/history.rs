//! The history of the jobs with one value of a feature, in constant memory.

use super::histogram::Histogram;

/// Number of recent run times from which the median is taken.
const MEDIAN_OF: usize = 25;
/// Number of recent run times of [`Estimator::Recent`].
const RECENT: usize = 10;
/// Weight of the newest run time in the rolling mean (thesis, section 4.3.1: α = 0.6).
const ROLLING: f64 = 0.6;

/// A way to estimate a run time from those of earlier jobs (thesis, section 4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// Mean of all.
    Mean,
    /// Median of the last 25, which stands for the median of all.
    Median,
    /// Exponentially weighted mean: 0.6 of the newest and 0.4 of the mean before it.
    Rolling,
    /// Mean of the last 10.
    Recent,
}

impl Estimator {
    /// All estimators, in the order of their indices; of equally good ones the first counts.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Median, Self::Rolling, Self::Recent];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
            Self::Rolling => "rolling",
            Self::Recent => "recent",
        }
    }
}

/// One estimate per estimator, s.
pub(super) type Estimates = [f64; 4];

/// Run times of jobs in the order in which they ended, and the errors of each estimator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    jobs: u32,
    /// Number of jobs whose run time was estimated from this history.
    estimated: u32,
    sum: f64,
    rolling: f64,
    /// The last [`MEDIAN_OF`] run times, oldest first; empty until there are two, since most values of a feature are
    /// seen once, and `sum` is the run time of a single job.
    recent: Vec<f64>,
    /// Sum of |estimate − run time| of each estimator.
    errors: Estimates,
    /// Sum of the run times that were estimated.
    actual: f64,
    histogram: Option<Box<Histogram>>,
}

impl History {
    /// An empty history, with a histogram of all run times if `distribution`.
    pub fn new(distribution: bool) -> Self {
        Self { histogram: distribution.then(Box::default), ..Self::default() }
    }

    /// The estimates from all run times so far; `None` without any.
    pub fn estimates(&self) -> Option<Estimates> {
        if self.jobs < 2 {
            return (self.jobs > 0).then_some([self.sum; 4]);
        }
        let newest = &self.recent[self.recent.len().saturating_sub(RECENT)..];
        let recent = newest.iter().sum::<f64>() / newest.len() as f64;
        Some([self.sum / f64::from(self.jobs), median(&self.recent), self.rolling, recent])
    }

    /// Adds the run time of a job that has ended, and the errors of the estimates that it was given when it was
    /// submitted.
    pub fn learn(&mut self, run: f64, estimates: Option<&Estimates>) {
        if let Some(estimates) = estimates {
            for (error, estimate) in self.errors.iter_mut().zip(estimates) {
                *error += (estimate - run).abs();
            }
            self.actual += run;
            self.estimated += 1;
        }
        self.rolling = if self.jobs == 0 { run } else { ROLLING * run + (1.0 - ROLLING) * self.rolling };
        if self.jobs == 1 {
            self.recent.push(self.sum);
        }
        if self.recent.len() == MEDIAN_OF {
            self.recent.remove(0);
        }
        if self.jobs > 0 {
            self.recent.push(run);
        }
        self.jobs += 1;
        self.sum += run;
        if let Some(histogram) = &mut self.histogram {
            histogram.add(run);
        }
    }

    /// The best estimator, and its normalised mean absolute error: Σ|estimate − run time| / Σ run time. An estimator
    /// that was never tried has an infinite one, and the median goes first.
    pub fn best(&self) -> (Estimator, f64) {
        if self.estimated == 0 {
            return (Estimator::Median, f64::INFINITY);
        }
        let mut best = (Estimator::Mean, self.errors[0]);
        for (estimator, &error) in Estimator::ALL.into_iter().zip(&self.errors) {
            if error < best.1 {
                best = (estimator, error);
            }
        }
        // Jobs that took no time have no relative error: an estimator is right about them or worthless.
        let score = if best.1 == 0.0 { 0.0 } else { best.1 / self.actual };
        (best.0, score)
    }

    /// All run times; `None` if the history keeps no distribution.
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_deref()
    }
}

/// Median of at most [`MEDIAN_OF`] values; of an even number the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let mut copy = [0.0; MEDIAN_OF];
    let copy = &mut copy[..values.len()];
    copy.copy_from_slice(values);
    let (lower, &mut middle, _) = copy.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    if values.len() % 2 == 1 {
        return middle;
    }
    f64::midpoint(lower.iter().copied().fold(0.0, f64::max), middle)
}
