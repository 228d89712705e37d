//! Estimates of the use of a job's tasks when it is submitted: DSPredict (thesis, section 5.3.1).

use super::config::{DistSched, UsageEstimates, UsageStatistic};
use super::load::TaskUse;
use crate::base::{Feature, JobId};
use crate::catalog::{Catalog, Usage};
use crate::layout::Amount;
use crate::policies::shared::longest_task;
use crate::predict::{Combination, Distribution, Prediction, Predictor, PredictorKind};

/// Run time that is expected without any history, s.
const UNKNOWN_RUN: f64 = 60.0;

/// A predictor each of CPU (cores), memory (bytes) and CPU-time (core-seconds) of a task.
#[derive(Clone, Debug)]
pub(super) struct UsageHistory {
    kind: PredictorKind,
    cpu: Predictor,
    memory: Predictor,
    work: Predictor,
}

/// The estimate of a job's use, kept to be compared with the measured use when the job has ended.
#[derive(Clone, Debug)]
pub(super) struct UsageForecast {
    predictions: [Prediction; 3],
    /// Expected use of each task.
    pub(super) tasks: TaskUse,
    /// CPU-time of the longest task, core-seconds.
    pub(super) work: Distribution,
    /// The point estimate of `work`.
    pub(super) point: f64,
}

/// Use of a task, in the units of the predictors.
#[derive(Clone, Copy, PartialEq, Debug)]
struct MeasuredUse {
    cpu: f64,
    memory: f64,
    work: f64,
}

/// Estimates the use of jobs, and learns it.
pub(super) struct UsageSource {
    estimates: UsageEstimates,
    of: UsageStatistic,
    history: UsageHistory,
}

impl UsageSource {
    pub(super) fn new(config: &DistSched) -> Self {
        let kind = match config.estimates {
            UsageEstimates::Dist => PredictorKind::ThreeSigma,
            _ => PredictorKind::JvuPredict,
        };
        Self { estimates: config.estimates, of: config.of, history: UsageHistory::new(kind) }
    }

    /// Learns the jobs of the past, one after the other.
    pub(super) fn study(&mut self, catalog: &dyn Catalog) {
        for number in 0..catalog.past() {
            let past = catalog.past_job(number);
            let value = |feature| past.feature(feature);
            let predictions = self.history.predict(value);
            let measured = self.measured(&past.usage, past.run.as_secs_f64());
            self.history.learn(value, &predictions, measured);
        }
    }

    /// Estimates the use of a job that is submitted now. Without any history that is the request, for a minute.
    pub(super) fn estimate(&self, job: JobId, catalog: &dyn Catalog) -> UsageForecast {
        let predictions = self.history.predict(|feature| catalog.feature(job, feature));
        let requested = catalog.request(job);
        let request = cores(requested);
        let point = |at: usize, default: f64| predictions[at].point.unwrap_or(default);
        let points = MeasuredUse {
            cpu: point(0, request),
            memory: point(1, requested.memory as f64),
            work: point(2, request * UNKNOWN_RUN),
        };
        let points = match self.estimates {
            UsageEstimates::Actual => {
                self.measured(&catalog.usage(job), longest_task(job, catalog).as_secs_f64())
            }
            UsageEstimates::Request => {
                MeasuredUse { cpu: request, memory: requested.memory as f64, ..points }
            }
            UsageEstimates::Dist | UsageEstimates::Point => points,
        };
        let [cpu, memory, work] = self.distributions(&predictions, points);
        UsageForecast { tasks: TaskUse { cpu, memory, request }, point: points.work, work, predictions }
    }

    /// The distributions of the best experts, or points.
    fn distributions(&self, predictions: &[Prediction; 3], points: MeasuredUse) -> [Distribution; 3] {
        let points = [points.cpu, points.memory, points.work].map(Distribution::point);
        if self.estimates != UsageEstimates::Dist {
            return points;
        }
        let experts = [&self.history.cpu, &self.history.memory, &self.history.work];
        let of = |at: usize| experts[at].histogram(&predictions[at]).and_then(Distribution::of);
        let [cpu, memory, work] = points;
        [of(0).unwrap_or(cpu), of(1).unwrap_or(memory), of(2).unwrap_or(work)]
    }

    /// The resources that a task uses whose execution takes `run` seconds without throttling.
    fn measured(&self, usage: &Usage, run: f64) -> MeasuredUse {
        let amount = match self.of {
            UsageStatistic::Mean => usage.mean,
            UsageStatistic::Max => usage.max,
        };
        MeasuredUse { cpu: cores(amount), memory: amount.memory as f64, work: cores(usage.mean) * run }
    }

    /// Learns the use of a job as measured by its nodes.
    pub(super) fn learn(&mut self, job: JobId, forecast: &UsageForecast, catalog: &dyn Catalog) {
        let measured = self.measured(&catalog.usage(job), longest_task(job, catalog).as_secs_f64());
        self.history.learn(|feature| catalog.feature(job, feature), &forecast.predictions, measured);
    }

    /// Takes out the history and leaves an empty one.
    pub(super) fn take_history(&mut self) -> UsageHistory {
        let empty = UsageHistory::new(self.history.kind);
        std::mem::replace(&mut self.history, empty)
    }

    /// Replaces the history.
    pub(super) fn restore(&mut self, history: UsageHistory) {
        self.history = history;
    }
}

impl UsageHistory {
    fn new(kind: PredictorKind) -> Self {
        let combinations = Combination::singles_and_pairs(&Feature::ALL);
        let predictor = || Predictor::new(kind, &combinations);
        Self { kind, cpu: predictor(), memory: predictor(), work: predictor() }
    }

    fn predict(&self, value: impl Fn(Feature) -> u32) -> [Prediction; 3] {
        [&self.cpu, &self.memory, &self.work].map(|predictor| predictor.predict(&value))
    }

    fn learn(&mut self, value: impl Fn(Feature) -> u32, predictions: &[Prediction; 3], used: MeasuredUse) {
        let [cpu, memory, work] = predictions;
        self.cpu.learn(&value, cpu, used.cpu);
        self.memory.learn(&value, memory, used.memory);
        self.work.learn(&value, work, used.work);
    }
}

/// The CPU of an amount, cores.
fn cores(amount: Amount) -> f64 {
    amount.cpu as f64 / 1000.0
}
