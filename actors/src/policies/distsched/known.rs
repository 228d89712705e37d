//! An open job as DistSched knows it: the estimate of its tasks' use at submission (DSPredict; thesis, section 5.3.1),
//! and the nodes' reports, which replace the estimate.

use std::sync::Arc;

use super::config::{DistSched, UsageEstimates, UsageStatistic};
use super::load::{NodeLoads, TaskUse};
use super::placement::LEAST_CPU;
use crate::base::Amount;
use crate::base::{CopyId, Feature, JobId, Span, Time};
use crate::catalog::{Catalog, JobSpec, Usage};
use crate::message::{Contention, UsageReport};
use crate::policies::policy::longest_task;
use crate::predict::{Combination, Distribution, Histogram, Prediction, Predictor, PredictorKind};
use crate::roles::planning::Utility;

/// The scheduler's knowledge of an open job.
#[derive(Clone, Debug)]
pub(super) struct ExpectedJob {
    pub(super) forecast: UsageForecast,
    /// Current expected use of each task.
    pub(super) tasks: Arc<TaskUse>,
    /// Current expected CPU-time of each task, core-seconds.
    pub(super) work: f64,
    /// Memory requested for each task, bytes.
    pub(super) requested_memory: f64,
    pub(super) utility: Utility,
    pub(super) observed: ObservedUse,
    /// Nodes that have evicted tasks of the job, by number.
    evicted: Vec<EvictedFrom>,
    /// Lower bound of the memory of a task, bytes: a node with this much evicted a task that ran there alone.
    needs_more_than: f64,
}

/// A node that has evicted tasks of a job.
#[derive(Clone, Debug)]
struct EvictedFrom {
    node: u32,
    /// Number of evictions.
    times: u32,
    /// Time at which the job stops avoiding the node.
    until: Time,
}

/// Time for which a job avoids a node that has evicted one of its tasks; each further eviction on the node doubles it.
/// In the thesis jobs avoid no nodes.
const AVOIDED: Span = Span::from_secs(60);

/// Largest number of doublings of [`AVOIDED`].
const MOST_DOUBLINGS: u32 = 10;

impl ExpectedJob {
    pub(super) fn new(
        config: &DistSched,
        spec: &JobSpec,
        forecast: UsageForecast,
        requested_memory: u64,
    ) -> Self {
        let run = run_time(&forecast.tasks.cpu, forecast.point);
        Self {
            tasks: Arc::new(forecast.tasks.clone()),
            work: forecast.point,
            requested_memory: requested_memory as f64,
            utility: Utility::of(spec, &run, &config.valuation()),
            observed: ObservedUse::default(),
            evicted: Vec::new(),
            needs_more_than: 0.0,
            forecast,
        }
    }

    /// The expected run time of a task that is not throttled, s.
    pub(super) fn run(&self) -> f64 {
        run_time(&self.forecast.tasks.cpu, self.forecast.point).mean()
    }

    /// Records a report of a node. Returns whether the expected use changes.
    pub(super) fn reported(&mut self, report: UsageReport, constantly: Option<Span>, period: Span) -> bool {
        let tasks = self.observed.report(report, (&self.tasks, constantly), period);
        let changed = tasks.is_some();
        if let Some(tasks) = tasks {
            self.tasks = Arc::new(tasks);
        }
        changed
    }

    /// Records that a copy was stopped: the task needs more CPU-time than the copy had used.
    pub(super) fn stopped(&mut self, copy: CopyId) {
        if self.observed.stopped(copy) {
            self.work = work_after(self.observed.lost, self.work, &self.forecast.work);
        }
    }

    /// Records that a node has evicted a task of the job. The job then avoids the node for a while.
    pub(super) fn evicted(&mut self, node: u32, now: Time) {
        let at = self.evicted.binary_search_by_key(&node, |from| from.node).unwrap_or_else(|at| {
            self.evicted.insert(at, EvictedFrom { node, times: 0, until: now });
            at
        });
        let from = &mut self.evicted[at];
        from.until = now + AVOIDED.scale(f64::from(1u32 << from.times.min(MOST_DOUBLINGS)));
        from.times += 1;
    }

    /// Records that a node with this memory (bytes) evicted a task of the job that ran there alone. Other tasks of the
    /// job probably need as much memory.
    pub(super) fn needs_more_than(&mut self, memory: f64) {
        self.needs_more_than = self.needs_more_than.max(memory);
    }

    /// The nodes that the job avoids at `now`, by number, and the earliest time at which it may use one of them again.
    /// The job avoids nodes that are too small for one of its tasks while it can use larger nodes.
    pub(super) fn avoided(&self, now: Time, loads: &NodeLoads) -> (Vec<u32>, Option<Time>) {
        let (nodes, limit) = (loads.nodes(), self.needs_more_than);
        let is_known = limit > 0.0 && limit < loads.largest_memory();
        let too_small = |node: u32| is_known && nodes[node as usize].room.memory <= limit;
        let evicted = || self.evicted.iter().filter(|from| from.until > now && !too_small(from.node));
        let mut avoided: Vec<_> = evicted().map(|from| from.node).collect();
        if is_known {
            avoided.extend((0..nodes.len() as u32).filter(|node| too_small(*node)));
            avoided.sort_unstable();
        }
        (avoided, evicted().map(|from| from.until).min())
    }

    /// The CPU demand of a copy in cores, as reported, or as expected before the first report.
    pub(super) fn demand(&self, copy: CopyId) -> f64 {
        self.observed.of(copy).and_then(|seen| seen.demand()).unwrap_or_else(|| self.tasks.cpu.mean())
    }
}

/// The distribution of the run time of `work` core-seconds without throttling, s.
fn run_time(cpu: &Distribution, work: f64) -> Distribution {
    cpu.dividing(work, LEAST_CPU)
}

// Reports of nodes about the tasks of a job: their use and their CPU-time so far.

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;

/// The last known state of a copy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CopyUse {
    copy: CopyId,
    /// CPU given to the copy, cores; `None` before the first report.
    cpu: Option<f64>,
    /// Memory of the copy, bytes.
    pub(super) memory: f64,
    /// The fraction of the copy's CPU demand that it is given.
    pub(super) rate: f64,
    /// Time to which `rate` refers.
    rate_at: Time,
    /// CPU-time of the copy by its reports, core-seconds.
    done: f64,
    /// Time of the newest report.
    at: Time,
    /// Time since which every report of CPU and of memory has been above the largest expected value.
    above: [Option<Time>; 2],
}

/// Reported values of CPU or of memory.
#[derive(Clone, PartialEq, Debug, Default)]
struct SeenAmount {
    values: Histogram,
    /// Whether the reported values have replaced the expected ones.
    replaces: bool,
}

/// The reported use of a job.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ObservedUse {
    cpu: SeenAmount,
    memory: SeenAmount,
    /// The reported use, by task.
    copies: Vec<CopyUse>,
    /// Largest CPU-time of a stopped copy, in core-seconds; a task needs more.
    pub(super) lost: f64,
}

impl SeenAmount {
    /// Counts a value of a copy, reported at a time, and updates `above`, the time since which all values of the copy
    /// have been above `expected`. Once that has lasted for `constantly`, returns the distribution of all values,
    /// which replaces `expected`; before, `None`.
    fn count(
        &mut self,
        (value, at): (f64, Time),
        above: &mut Option<Time>,
        expected: &Distribution,
        constantly: Span,
    ) -> Option<Distribution> {
        self.values.add(value);
        if !self.replaces {
            *above = (value > expected.max()).then(|| above.unwrap_or(at));
            self.replaces = above.is_some_and(|since| at.since(since) >= constantly);
        }
        if self.replaces { Distribution::of(&self.values) } else { None }
    }
}

impl ObservedUse {
    /// Records a report about a copy; each copy is reported every `period`. All reports of a job have equal weight,
    /// whereas the thesis weights the use of one task by time. Returns the expected use of tasks if it changes.
    /// `constantly` is the time for which reports must stay above the expected maximum before they replace it; `None`
    /// if they never do.
    pub(super) fn report(
        &mut self,
        report: UsageReport,
        (expected, constantly): (&TaskUse, Option<Span>),
        period: Span,
    ) -> Option<TaskUse> {
        let UsageReport::Report { copy, cpu, memory, at } = report;
        let (cpu, memory, at) = (f64::from(cpu) / 1000.0, f64::from(memory) * MIB, Time::from(at));
        let known = self.copy(copy);
        if known.cpu.is_some() && at <= known.at {
            return None;
        }
        // The time for which the copy had run before its first report is not known.
        let since = if known.cpu.is_some() { at.since(known.at).min(period) } else { Span::ZERO };
        let done = known.done + cpu * since.as_secs_f64();
        *known = CopyUse { cpu: Some(cpu), memory, done, at, ..*known };
        // The demand of a throttled copy is higher than the CPU given to it.
        let demand = known.demand().unwrap_or(cpu);
        let [mut cpu_above, mut memory_above] = known.above;
        let constantly = constantly?;
        let cpu = self.cpu.count((demand, at), &mut cpu_above, &expected.cpu, constantly);
        let memory = self.memory.count((memory, at), &mut memory_above, &expected.memory, constantly);
        self.copy(copy).above = [cpu_above, memory_above];
        if cpu.is_none() && memory.is_none() {
            return None;
        }
        Some(TaskUse {
            cpu: cpu.unwrap_or_else(|| expected.cpu.clone()),
            memory: memory.unwrap_or_else(|| expected.memory.clone()),
            request: expected.request,
        })
    }

    /// Records that at time `at` a copy was given `rate` millionths of its CPU demand.
    pub(super) fn throttled(&mut self, copy: CopyId, rate: u32, at: Time) {
        let known = self.copy(copy);
        if at >= known.rate_at {
            (known.rate, known.rate_at) = (f64::from(rate) / f64::from(Contention::ALL), at);
        }
    }

    /// Records that a copy was stopped. Returns whether the job's tasks need more CPU-time than was known.
    pub(super) fn stopped(&mut self, copy: CopyId) -> bool {
        let done = self.of(copy).map_or(0.0, |known| known.done);
        let more = done > self.lost;
        self.lost = self.lost.max(done);
        more
    }

    /// The known state of a copy.
    pub(super) fn of(&self, copy: CopyId) -> Option<&CopyUse> {
        let at = self.copies.binary_search_by_key(&copy.task.index, |known| known.copy.task.index).ok()?;
        Some(&self.copies[at]).filter(|known| known.copy == copy)
    }

    /// The known state of a copy, created if absent. The state of an earlier copy of the task is dropped.
    fn copy(&mut self, copy: CopyId) -> &mut CopyUse {
        let new = CopyUse {
            copy,
            cpu: None,
            memory: 0.0,
            rate: 1.0,
            rate_at: Time::ZERO,
            done: 0.0,
            at: Time::ZERO,
            above: [None; 2],
        };
        let at = match self.copies.binary_search_by_key(&copy.task.index, |known| known.copy.task.index) {
            Ok(at) if self.copies[at].copy == copy => at,
            Ok(at) => {
                self.copies[at] = new;
                at
            }
            Err(at) => {
                self.copies.insert(at, new);
                at
            }
        };
        &mut self.copies[at]
    }
}

impl CopyUse {
    /// The CPU demand of the copy, cores; `None` before the first report.
    pub(super) fn demand(&self) -> Option<f64> {
        self.cpu.map(|cpu| if self.rate > 0.0 { cpu / self.rate } else { cpu })
    }
}

/// The expected CPU-time of a task whose copy was stopped after it had done `lost`: `before` if `lost` is not above the
/// least expected value, else the mean of the expected values above `lost`. If there are no such values it is twice
/// `lost` (thesis, section 5.3.2).
pub(super) fn work_after(lost: f64, before: f64, expected: &Distribution) -> f64 {
    let least = expected.pieces().first().map_or(0.0, |piece| piece.low);
    if lost <= least {
        return before;
    }
    expected.given(lost).map_or(2.0 * lost, |rest| rest.mean())
}

/// Expected run time without any history, s.
const UNKNOWN_RUN: f64 = 60.0;

/// One predictor each for CPU (cores), memory (bytes) and CPU-time (core-seconds) of a task.
#[derive(Clone, Debug)]
pub(super) struct UsageHistory {
    kind: PredictorKind,
    cpu: Predictor,
    memory: Predictor,
    work: Predictor,
}

/// The estimate of a job's use, kept for the comparison with the measured use after the job has ended.
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

/// Estimates the use of jobs, and learns the measured use.
#[derive(Clone, Debug)]
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

    /// Trains the predictors with the past jobs, one after the other.
    pub(super) fn study(&mut self, catalog: &dyn Catalog) {
        for number in 0..catalog.past() {
            let past = catalog.past_job(number);
            let value = |feature| past.feature(feature);
            let predictions = self.history.predict(value);
            let measured = self.measured(&past.usage, past.run.as_secs_f64());
            self.history.learn(value, &predictions, measured);
        }
    }

    /// Estimates the use of a job that is submitted now. Without any history the estimate is the request, and a run
    /// time of one minute.
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

    /// The distributions, or points, of the best experts.
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

    /// The resources that a task uses if its execution takes `run` seconds without throttling.
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

#[cfg(test)]
mod tests {
    use super::super::load::tests::of;
    use super::*;
    use crate::base::JobId;

    const PERIOD: Span = Span::from_secs(15);

    fn copy(task: u32, attempt: u32) -> CopyId {
        JobId(3).task(task).copy(attempt)
    }

    fn report(copy: CopyId, cpu: u32, memory: u32, at: u64) -> UsageReport {
        UsageReport::Report { copy, cpu, memory, at: (Time::ZERO + Span::from_secs(at)).into() }
    }

    fn expected() -> TaskUse {
        TaskUse { cpu: of(&[(1.0, 1.0), (2.0, 1.0)]), memory: of(&[(100.0 * MIB, 1.0)]), request: 2.0 }
    }

    /// In this test the CPU use is above the largest expected value for a minute, and the memory only at times.
    #[test]
    fn use_above_the_expectation_for_a_minute_replaces_it() {
        let (expected, mut seen) = (expected(), ObservedUse::default());
        let minute = Some(Span::from_secs(60));
        let mut count =
            |cpu, memory, at| seen.report(report(copy(0, 0), cpu, memory, at), (&expected, minute), PERIOD);
        assert_eq!(count(1500, 90, 15), None);
        for (at, memory) in [(30, 110), (45, 110), (60, 90), (75, 110)] {
            assert_eq!(count(3000, memory, at), None);
        }
        let now = count(4000, 110, 90).expect("a minute has passed");
        assert_eq!(now.memory, expected.memory);
        assert_eq!(now.cpu, of(&[(1.5, 1.0), (3.0, 4.0), (4.0, 1.0)]));
        let later = count(3000, 90, 105).expect("reports count from now on");
        assert_eq!(later.cpu, of(&[(1.5, 1.0), (3.0, 5.0), (4.0, 1.0)]));
        assert_eq!(count(9000, 90, 105), None, "a report older than the last is ignored");
        assert_eq!(seen.report(report(copy(0, 0), 9000, 1, 120), (&expected, None), PERIOD), None);
    }

    #[test]
    fn expected_work_is_conditioned_on_lost_work() {
        let work = of(&[(100.0, 1.0), (200.0, 1.0), (400.0, 1.0)]);
        let found = [0.0, 150.0, 300.0, 400.0].map(|lost| work_after(lost, 555.0, &work).round());
        assert_eq!(found, [555.0, 300.0, 400.0, 800.0]);
    }

    #[test]
    fn reports_of_different_copies_are_kept_apart() {
        let (expected, mut seen) = (expected(), ObservedUse::default());
        seen.report(report(copy(4, 0), 2000, 1, 15), (&expected, None), PERIOD);
        seen.report(report(copy(4, 0), 4000, 1, 30), (&expected, None), PERIOD);
        let at = |s| Time::ZERO + Span::from_secs(s);
        seen.throttled(copy(4, 0), Contention::ALL / 4, at(20));
        seen.throttled(copy(4, 0), Contention::ALL, at(19));
        seen.throttled(copy(2, 0), Contention::ALL / 2, at(20));
        assert_eq!(seen.of(copy(4, 0)).and_then(CopyUse::demand), Some(16.0));
        assert_eq!(seen.of(copy(2, 0)).and_then(CopyUse::demand), None);
        assert!(seen.stopped(copy(4, 0)) && !seen.stopped(copy(2, 0)));
        assert!((seen.lost - 4.0 * 15.0).abs() < 1e-9, "the run time before the first report is not known");
        seen.report(report(copy(4, 1), 1000, 1, 45), (&expected, None), PERIOD);
        assert_eq!(seen.of(copy(4, 0)), None);
        assert!(!seen.stopped(copy(4, 1)), "this copy has done less work");
    }
}
