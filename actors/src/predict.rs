//! Predictors of run times. A job is expected to last as long as similar jobs did (Park's thesis, sections 3.6.1 and
//! 4.3.1).
//!
//! An *expert* is a feature, one of its values and an estimator. The history of the jobs with one value of a feature
//! keeps four estimators and their errors; a predictor chooses the best expert. All times are in seconds. Memory is
//! bounded for each value of a feature. Predictions are a pure function of the learnt jobs and their order.

mod distribution;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use distribution::{BINS, Bin, Distribution, Histogram, Piece};

use crate::base::Feature;

/// A predictor of run times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PredictorKind {
    /// JVuPredict, the predictor of JamaisVu (Park's thesis, section 3.6.1): the point estimate of the best expert.
    JvuPredict,
    /// 3σPredict (section 4.3.1): the histogram of the best expert's feature value, in addition to its point estimate.
    ThreeSigma,
}

impl PredictorKind {
    /// All predictors.
    pub const ALL: [Self; 2] = [Self::JvuPredict, Self::ThreeSigma];

    /// Name of the predictor on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JvuPredict => "jvupredict",
            Self::ThreeSigma => "3sigma",
        }
    }
}

impl fmt::Display for PredictorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PredictorKind {
    type Err = ();

    /// Parses the name of a predictor.
    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(())
    }
}

/// A feature, or a pair such as user and class. Jobs are similar if they agree in all its features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Combination {
    /// The only or first feature.
    pub first: Feature,
    /// The second feature of a pair.
    pub second: Option<Feature>,
}

impl Combination {
    /// A combination of one feature.
    pub const fn single(feature: Feature) -> Self {
        Self { first: feature, second: None }
    }

    /// A combination of two features.
    pub const fn pair(first: Feature, second: Feature) -> Self {
        Self { first, second: Some(second) }
    }

    /// All single features, then all pairs of them.
    pub fn singles_and_pairs(features: &[Feature]) -> Vec<Self> {
        let singles = features.iter().copied().map(Self::single);
        let pairs = features
            .iter()
            .enumerate()
            .flat_map(|(at, &first)| features[at + 1..].iter().map(move |&second| Self::pair(first, second)));
        singles.chain(pairs).collect()
    }

    /// The values of a job, the second of them zero for a single feature; `None` if a value is unknown.
    fn key(self, value: &impl Fn(Feature) -> u32) -> Option<(u32, u32)> {
        let first = value(self.first);
        let second = self.second.map(value);
        (first > 0 && second != Some(0)).then(|| (first, second.unwrap_or(0)))
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.second {
            None => write!(f, "{}", self.first),
            Some(second) => write!(f, "{}+{second}", self.first),
        }
    }
}

/// The prediction for a job, to be returned to the predictor when the job ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    /// The expected run time, s; `None` before the first job has ended.
    pub point: Option<f64>,
    /// Index of the combination that was used; `None` if no similar job has ended, so that the estimate is from all
    /// jobs.
    pub combination: Option<usize>,
    /// The estimator that was used.
    pub estimator: Estimator,
    /// The estimates of each combination.
    candidates: Vec<Option<Candidate>>,
    population: Option<Estimates>,
}

/// The estimates from the history of a value of a combination.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Candidate {
    /// Index of the history among those of its combination.
    slot: u32,
    estimates: Estimates,
}

/// Learns run times and predicts those of similar jobs. Memory is constant for each value of a combination.
///
/// When a job ends, experts are scored by the estimates that they made at the job's submission, because the scheduler
/// used these. If no value of a job has a history, the history of all jobs is used.
#[derive(Clone, Debug)]
pub struct Predictor {
    kind: PredictorKind,
    tables: Vec<Table>,
    population: History,
}

impl Predictor {
    /// A predictor without history.
    pub fn new(kind: PredictorKind, combinations: &[Combination]) -> Self {
        let population = History::new(kind == PredictorKind::ThreeSigma);
        Self { kind, tables: combinations.iter().map(|&of| Table::new(of)).collect(), population }
    }

    /// Predicts the run time of a job with these values of its features.
    pub fn predict(&self, value: impl Fn(Feature) -> u32) -> Prediction {
        let population = self.population.estimates();
        let (mut estimator, _) = self.population.best();
        let mut point = population.map(|estimates| estimates[estimator as usize]);
        let (mut combination, mut least) = (None, f64::INFINITY);
        let mut candidates = Vec::with_capacity(self.tables.len());
        for (index, table) in self.tables.iter().enumerate() {
            let candidate = table.candidate(&value);
            candidates.push(candidate);
            let Some(Candidate { slot, estimates }) = candidate else { continue };
            let (best, score) = table.histories[slot as usize].best();
            if combination.is_none() || score < least {
                (combination, estimator, least) = (Some(index), best, score);
                point = Some(estimates[best as usize]);
            }
        }
        Prediction { point, combination, estimator, candidates, population }
    }

    /// All run times of the jobs on which the prediction rests, as of now; `None` before the first job has ended, and
    /// for a predictor of points.
    pub fn histogram(&self, prediction: &Prediction) -> Option<&Histogram> {
        let history = match prediction.combination {
            None => &self.population,
            Some(index) => {
                let slot = prediction.candidates[index]?.slot;
                &self.tables[index].histories[slot as usize]
            }
        };
        history.histogram().filter(|histogram| !histogram.bins().is_empty())
    }

    /// Adds a job that has ended: the values of its features, its prediction, and its run time in seconds, which is
    /// finite and at least zero.
    pub fn learn(&mut self, value: impl Fn(Feature) -> u32, prediction: &Prediction, run: f64) {
        let distribution = self.kind == PredictorKind::ThreeSigma;
        for (table, candidate) in self.tables.iter_mut().zip(&prediction.candidates) {
            let slot = candidate.map(|candidate| candidate.slot).or_else(|| table.slot(&value, distribution));
            if let Some(slot) = slot {
                table.histories[slot as usize].learn(run, candidate.as_ref().map(|known| &known.estimates));
            }
        }
        self.population.learn(run, prediction.population.as_ref());
    }

    /// Number of values with a history, over all combinations.
    pub fn values(&self) -> usize {
        self.tables.iter().map(|table| table.histories.len()).sum()
    }
}

/// The histories of a combination, by value.
#[derive(Clone, Debug)]
struct Table {
    combination: Combination,
    /// Indices of histories, by value.
    slots: BTreeMap<(u32, u32), u32>,
    histories: Vec<History>,
}

impl Table {
    const fn new(combination: Combination) -> Self {
        Self { combination, slots: BTreeMap::new(), histories: Vec::new() }
    }

    fn candidate(&self, value: &impl Fn(Feature) -> u32) -> Option<Candidate> {
        let slot = *self.slots.get(&self.combination.key(value)?)?;
        let estimates = self.histories[slot as usize].estimates()?;
        Some(Candidate { slot, estimates })
    }

    /// The index of the history of these values, created if absent; `None` if a value is unknown.
    fn slot(&mut self, value: &impl Fn(Feature) -> u32, distribution: bool) -> Option<u32> {
        let next = self.histories.len() as u32;
        let slot = *self.slots.entry(self.combination.key(value)?).or_insert(next);
        if slot == next {
            self.histories.push(History::new(distribution));
        }
        Some(slot)
    }
}

/// Number of recent run times from which the median is taken; the thesis states no number.
const MEDIAN_OF: usize = 25;
/// Number of recent run times of [`Estimator::Recent`]; the thesis does not state this number, X.
const RECENT: usize = 10;
/// Weight of the newest run time in the rolling mean (thesis, section 4.3.1: α = 0.6).
const ROLLING: f64 = 0.6;

/// A way to estimate a run time from earlier run times (thesis, section 4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// Mean of all run times.
    Mean,
    /// Median of the last 25 run times, which approximates the median of all.
    Median,
    /// Exponentially weighted mean: 0.6 of the newest run time and 0.4 of the mean before it.
    Rolling,
    /// Mean of the last 10 run times.
    Recent,
}

impl Estimator {
    /// All estimators, in the order of their indices; the first of equally good estimators is used.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Median, Self::Rolling, Self::Recent];

    /// Name of the estimator in reports.
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
type Estimates = [f64; 4];

/// Run times of jobs in the order in which they ended, and the errors of each estimator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    jobs: u32,
    /// Number of jobs whose run time was estimated from this history.
    estimated: u32,
    sum: f64,
    rolling: f64,
    /// The last [`MEDIAN_OF`] run times, oldest first. Empty until there are two, since most values of a feature are
    /// seen once, and `sum` is then the run time of the single job.
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

    /// Adds the run time of a job that has ended, and the errors of the estimates made at its submission.
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

    /// The best estimator, and its normalised mean absolute error: Σ|estimate − run time| / Σ run time. Before any
    /// estimate was made, this is the median with an infinite error.
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
        // If all run times are zero, the relative error is zero for an exact estimator and infinite for any other.
        let score = if best.1 == 0.0 { 0.0 } else { best.1 / self.actual };
        (best.0, score)
    }

    /// All run times; `None` if the history keeps no distribution.
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_deref()
    }
}

/// Median of at most [`MEDIAN_OF`] values; for an even number, the mean of the two middle values.
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

#[cfg(test)]
mod tests;
