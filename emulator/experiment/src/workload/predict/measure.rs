//! The evaluation of a predictor on a trace.

use std::collections::BTreeMap;

use volary_actors::base::{Feature, JobId, Span, Time};
use volary_actors::predict::{Combination, Estimator, Histogram, Prediction, Predictor, PredictorKind};
use volary_engine::workload::{Outcome, Trace};

use super::evaluation::{Accuracy, DistributionFit, ErrorBucket, Evaluation, ExpertShare};

/// The options of an evaluation.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    pub predictor: PredictorKind,
    pub features: Vec<Feature>,
    /// Count only jobs that finished.
    pub only_finished: bool,
    /// Also count each week by itself.
    pub by_week: bool,
}

const WEEK: Span = Span::from_secs(7 * 86_400);

/// Predicts each job when it is submitted, from the jobs that had ended by then, and compares the estimate with its run
/// time, which is the duration of its longest task.
pub fn evaluate(trace: &Trace, question: &Question) -> Evaluation {
    let combinations = Combination::singles_and_pairs(&question.features);
    let mut predictor = Predictor::new(question.predictor, &combinations);
    let mut running: BTreeMap<(Time, JobId), Prediction> = BTreeMap::new();
    let mut count = Count::new(question, combinations.len());
    let first = trace.jobs().first().map_or(Time::ZERO, |job| job.arrival);
    for (job, submitted) in (0..).map(JobId).zip(trace.jobs().iter().map(|job| job.arrival)) {
        while let Some(entry) = running.first_entry().filter(|entry| entry.key().0 <= submitted) {
            let ((_, ended), prediction) = entry.remove_entry();
            predictor.learn(|feature| trace.feature(ended, feature), &prediction, run_s(trace, ended));
        }
        let prediction = predictor.predict(|feature| trace.feature(job, feature));
        if !question.only_finished || trace.outcome(job) == Some(Outcome::Finished) {
            let week = (submitted.since(first).0 / WEEK.0) as usize;
            count.add(week, &prediction, predictor.histogram(&prediction), run_s(trace, job));
        }
        let wait = trace.wait(job).unwrap_or(Span::ZERO);
        running.insert((submitted + wait + trace.run(job), job), prediction);
    }
    Evaluation {
        file: trace.file().to_owned(),
        predictor: question.predictor.name(),
        features: question.features.iter().map(|feature| feature.name()).collect(),
        only_finished: question.only_finished,
        experts: count.experts(&combinations),
        overall: count.all.accuracy(),
        weeks: count.weeks.iter().map(Tally::accuracy).collect(),
        values: predictor.values(),
        notes: notes(trace),
    }
}

/// The remarks of the reader, and one if jobs may be learnt from before they had ended.
fn notes(trace: &Trace) -> Vec<String> {
    let mut notes = trace.notes().to_vec();
    let unknown = trace.unknown_waits();
    if unknown > 0 {
        notes.push(format!(
            "{} not say how long they waited: they count as ended when they would have ended without a wait",
            if unknown == 1 { "1 job does".to_owned() } else { format!("{unknown} jobs do") }
        ));
    }
    notes
}

fn run_s(trace: &Trace, job: JobId) -> f64 {
    trace.run(job).as_secs_f64()
}

/// Counts over the jobs so far.
struct Count {
    by_week: bool,
    all: Tally,
    weeks: Vec<Tally>,
    /// Estimates by combination, and last those from all jobs, and by estimator.
    trusted: Vec<[u64; Estimator::ALL.len()]>,
}

impl Count {
    fn new(question: &Question, combinations: usize) -> Self {
        let trusted = vec![[0; Estimator::ALL.len()]; combinations + 1];
        Self { by_week: question.by_week, all: Tally::default(), weeks: Vec::new(), trusted }
    }

    fn add(&mut self, week: usize, prediction: &Prediction, histogram: Option<&Histogram>, run: f64) {
        self.all.add(prediction.point, histogram, run);
        if self.by_week && week < MOST_WEEKS {
            if self.weeks.len() <= week {
                self.weeks.resize_with(week + 1, Tally::default);
            }
            self.weeks[week].add(prediction.point, histogram, run);
        }
        if prediction.point.is_some() {
            let combination = prediction.combination.unwrap_or(self.trusted.len() - 1);
            self.trusted[combination][prediction.estimator as usize] += 1;
        }
    }

    fn experts(&self, combinations: &[Combination]) -> Vec<ExpertShare> {
        let total = self.trusted.iter().flatten().sum::<u64>().max(1) as f64;
        let name =
            |at: usize| combinations.get(at).map_or_else(|| "all jobs".to_owned(), ToString::to_string);
        let mut shares: Vec<ExpertShare> = (self.trusted.iter().enumerate())
            .flat_map(|(at, counts)| Estimator::ALL.into_iter().zip(counts).map(move |expert| (at, expert)))
            .filter(|(_, (_, count))| **count > 0)
            .map(|(at, (estimator, &count))| ExpertShare {
                feature: name(at),
                estimator: estimator.name(),
                share: count as f64 / total,
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }
}

/// Limit on weeks that are counted by themselves: a single wrong time must not fill the memory.
const MOST_WEEKS: usize = 53 * 30;

/// Buckets of errors from −100 % to 90 % in steps of 10 %, and the tail.
const BUCKETS: usize = 21;

/// Counts of jobs by the error of their estimates.
#[derive(Clone, Default)]
struct Tally {
    jobs: u64,
    without: u64,
    factor_two: u64,
    five_percent: u64,
    under: u64,
    under_half: u64,
    over: u64,
    over_twice: u64,
    buckets: [u64; BUCKETS],
    distributions: u64,
    above: u64,
    middle: f64,
    tenths: [f64; 10],
}

impl Tally {
    fn add(&mut self, estimate: Option<f64>, histogram: Option<&Histogram>, run: f64) {
        let Some(estimate) = estimate else {
            self.without += 1;
            return;
        };
        self.jobs += 1;
        self.factor_two += u64::from(run / 2.0 <= estimate && estimate <= 2.0 * run);
        self.five_percent += u64::from((estimate - run).abs() <= 0.05 * run);
        self.under += u64::from(estimate < run);
        self.under_half += u64::from(estimate < run / 2.0);
        self.over += u64::from(estimate > run);
        self.over_twice += u64::from(estimate > 2.0 * run);
        self.buckets[bucket(estimate, run)] += 1;
        if let Some(histogram) = histogram {
            self.place(histogram, run);
        }
    }

    /// Counts where the run time lies in the predicted distribution. One that the distribution gives a probability of
    /// its own lies in all tenths which that covers, in parts.
    fn place(&mut self, histogram: &Histogram, run: f64) {
        self.distributions += 1;
        self.above += u64::from(histogram.range().is_some_and(|(_, most)| run > most));
        let (low, high) = (histogram.cdf(run.next_down()), histogram.cdf(run));
        self.middle += part(low, high, 0.1, 0.9);
        for (at, tenth) in (0u8..).zip(&mut self.tenths) {
            let from = f64::from(at) / 10.0;
            *tenth += part(low, high, from, from + 0.1);
        }
    }

    fn accuracy(&self) -> Accuracy {
        let share = |count: u64| count as f64 / self.jobs.max(1) as f64;
        let of_distributions = |count: f64| count / self.distributions as f64;
        let percent = |at: usize| (at + 1 < BUCKETS).then(|| 10 * at as i32 - 100);
        let bucket = |(at, &count): (usize, &u64)| ErrorBucket { percent: percent(at), share: share(count) };
        Accuracy {
            jobs: self.jobs,
            without_estimate: self.without,
            within_factor_two: share(self.factor_two),
            within_5_percent: share(self.five_percent),
            under: share(self.under),
            under_half: share(self.under_half),
            over: share(self.over),
            over_twice: share(self.over_twice),
            errors: self.buckets.iter().enumerate().map(bucket).collect(),
            distribution: (self.distributions > 0).then(|| DistributionFit {
                above_maximum: of_distributions(self.above as f64),
                in_middle_80: of_distributions(self.middle),
                tenths: self.tenths.map(of_distributions),
            }),
        }
    }
}

/// The part of the interval from `low` to `high` within a window of [0, 1]; of a single point all or nothing, where the
/// last window includes its end.
fn part(low: f64, high: f64, from: f64, to: f64) -> f64 {
    if high > low {
        return (high.min(to) - low.max(from)).max(0.0) / (high - low);
    }
    let is_last = to > 1.0 - 1e-9;
    f64::from(from <= low && (low < to || is_last))
}

/// The bucket of an estimate's error: the nearest multiple of 10 %.
fn bucket(estimate: f64, run: f64) -> usize {
    if estimate == run {
        return 10;
    }
    // Infinite for a job that took no time, which is the tail.
    let error = 100.0 * (estimate - run) / run;
    if error >= 95.0 { BUCKETS - 1 } else { ((error + 100.0) / 10.0).round().min(19.0) as usize }
}
