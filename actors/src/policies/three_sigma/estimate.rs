//! The distribution of run times that is expected of a job when it is submitted.

use super::config::{RunTimeEstimates, ThreeSigma};
use crate::base::{Feature, JobId, Rng, Span};
use crate::catalog::Catalog;
use crate::machine::Effects;
use crate::policies::shared::longest_task;
use crate::predict::{Combination, Distribution, Histogram, Prediction, Predictor, PredictorKind};

/// Standard deviation of the shifts of `normal` (thesis, section 4.4.4).
const SHIFT_STD: f64 = 0.1;

/// Lower bound of a drawn run-time estimate, relative to the true run time.
const LEAST: f64 = 0.01;

/// The estimate of a job's run time.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    /// To be given back to the predictor when the job ends.
    prediction: Prediction,
    /// The expected run time, s.
    pub(super) point: f64,
    /// The run time on nodes that the job prefers, s.
    pub(super) distribution: Distribution,
}

#[cfg(test)]
impl Forecast {
    /// An estimate from a given distribution, without a prediction.
    pub(super) fn expecting(distribution: Distribution) -> Self {
        let prediction = Predictor::new(PredictorKind::JvuPredict, &[]).predict(|_| 0);
        Self { prediction, point: distribution.mean(), distribution }
    }
}

/// Estimates run times, and learns them.
pub(super) struct RunTimeSource {
    config: ThreeSigma,
    predictor: Predictor,
}

impl RunTimeSource {
    pub(super) fn new(config: &ThreeSigma) -> Self {
        let kind = match config.estimates {
            RunTimeEstimates::Distribution => PredictorKind::ThreeSigma,
            RunTimeEstimates::Point if config.samples > 0 => PredictorKind::ThreeSigma,
            _ => PredictorKind::JvuPredict,
        };
        let combinations = Combination::singles_and_pairs(&Feature::ALL);
        Self { config: config.clone(), predictor: Predictor::new(kind, &combinations) }
    }

    /// Learns the jobs of the past, one after the other.
    pub(super) fn study(&mut self, catalog: &dyn Catalog) {
        for job in 0..catalog.past() {
            let past = catalog.past_job(job);
            let prediction = self.predictor.predict(|feature| past.feature(feature));
            self.predictor.learn(|feature| past.feature(feature), &prediction, past.run.as_secs_f64());
        }
    }

    /// Estimates a job that is submitted now. Without any history it is expected to take a slot.
    pub(super) fn estimate(&self, job: JobId, fx: &mut Effects<'_>) -> Forecast {
        let catalog = fx.catalog();
        let prediction = self.predictor.predict(|feature| catalog.feature(job, feature));
        let default = self.config.slot.as_secs_f64();
        let point = prediction.point.unwrap_or(default);
        let history = || self.predictor.histogram(&prediction).and_then(Distribution::of);
        let distribution = match self.config.estimates {
            RunTimeEstimates::Perfect => Distribution::point(longest_task(job, catalog).as_secs_f64()),
            RunTimeEstimates::Normal => self.normal(longest_task(job, catalog).as_secs_f64(), fx.rng()),
            RunTimeEstimates::Distribution => self.sampled(history(), point, fx.rng()),
            RunTimeEstimates::Point if self.config.samples == 0 => Distribution::point(point),
            RunTimeEstimates::Point => Distribution::point(self.sampled(history(), point, fx.rng()).mean()),
        };
        let point = match self.config.estimates {
            RunTimeEstimates::Distribution if self.config.samples == 0 => point,
            _ => distribution.mean(),
        };
        Forecast { prediction, point, distribution }
    }

    /// A normal distribution with an error of its own.
    fn normal(&self, run: f64, rng: &mut Rng) -> Distribution {
        let ThreeSigma { shift, cov, .. } = self.config;
        let shift = shift + SHIFT_STD * normal_deviate(rng);
        let mean = run * (1.0 + shift).max(LEAST);
        Distribution::normal(mean, run * cov, run * LEAST)
    }

    /// Values drawn from a history, or all of it; the point estimate if there is none.
    fn sampled(&self, history: Option<Distribution>, point: f64, rng: &mut Rng) -> Distribution {
        let Some(history) = history else { return Distribution::point(point) };
        if self.config.samples == 0 {
            return history;
        }
        let mut drawn = Histogram::default();
        (0..self.config.samples).for_each(|_| drawn.add(history.quantile(rng.unit())));
        Distribution::of(&drawn).unwrap_or(history)
    }

    /// Learns the run time of a job on nodes that it prefers.
    pub(super) fn learn(&mut self, job: JobId, forecast: &Forecast, run: Span, catalog: &dyn Catalog) {
        let value = |feature| catalog.feature(job, feature);
        self.predictor.learn(value, &forecast.prediction, run.as_secs_f64());
    }

    /// Takes out the history and leaves an empty one.
    pub(super) fn take_history(&mut self) -> Predictor {
        let empty = Self::new(&self.config).predictor;
        std::mem::replace(&mut self.predictor, empty)
    }

    /// Replaces the history.
    pub(super) fn restore(&mut self, history: Predictor) {
        self.predictor = history;
    }
}

/// A draw from the standard normal distribution, as the sum of twelve uniform ones less their mean.
fn normal_deviate(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}
