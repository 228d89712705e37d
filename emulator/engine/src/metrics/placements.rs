//! Placement times: when the tasks of each job were bound to nodes, began and ended.
//!
//! Only policies whose schedulers bind tasks emit these notes; under other policies the metric costs nothing.

use volary_actors::base::{ActorId, CopyId, Time};
use volary_actors::catalog::Catalog;
use volary_actors::machine::{CacheNote, Note};

use super::PolicyMetric;
use super::gauge::Gauge;
use crate::results::{Placements, PolicyResults, Stage};
use crate::workload::{Window, Workload};

/// Folds notes about placements.
#[derive(Debug)]
pub struct Binder<'a> {
    workload: &'a Workload,
    /// The jobs whose placements are measured.
    window: Window,
    /// `None` until the first placement.
    state: Option<Box<PlacementState>>,
}

#[derive(Debug, Default)]
struct PlacementState {
    count: u64,
    /// The second of the last placement; notes arrive in order of time.
    second: u64,
    /// Number of placements in that second.
    within: u64,
    /// Largest number of placements in any second.
    peak: u64,
    last: Time,
    /// Jobs with a bound task that have not ended, by id.
    open: Vec<Option<Box<JobPlacement>>>,
    stages: [Gauges; 3],
}

/// A job in progress.
#[derive(Debug)]
struct JobPlacement {
    /// Time of the last binding of each of its tasks.
    bound: Vec<Time>,
    /// Bind, start and end times of the tasks that ended, relative to the job's arrival.
    stages: [Moments; 3],
}

impl JobPlacement {
    fn new(tasks: usize) -> Self {
        Self { bound: vec![Time::ZERO; tasks], stages: [Moments::default(); 3] }
    }
}

/// Running count, mean and squared deviation of a sequence of numbers.
#[derive(Clone, Copy, Default, Debug)]
struct Moments {
    count: f64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    max: f64,
}

impl Moments {
    /// Welford's update: accurate where the numbers are large and nearly equal.
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let apart = value - self.mean;
        self.mean += apart / self.count;
        self.squares += apart * (value - self.mean);
        self.max = self.max.max(value);
    }
}

#[derive(Debug, Default)]
struct Gauges {
    average: Gauge,
    tail: Gauge,
    deviation: Gauge,
}

impl Gauges {
    fn add(&mut self, job: Moments) {
        self.average.add(job.mean, 1);
        self.tail.add(job.max, 1);
        self.deviation.add((job.squares / job.count).sqrt(), 1);
    }

    fn stage(&self) -> Stage {
        Stage { average: self.average.spread(), tail: self.tail.spread(), deviation: self.deviation.spread() }
    }
}

impl<'a> Binder<'a> {
    /// Creates a binder without placements.
    pub const fn new(workload: &'a Workload, window: Window) -> Self {
        Self { workload, window, state: None }
    }

    /// A scheduler bound a copy to a node.
    fn bound(&mut self, now: Time, copy: CopyId) {
        let (job, index) = (copy.task.job, copy.task.index as usize);
        if !self.window.has(self.workload.chain(job)) {
            return;
        }
        let (jobs, tasks) = (self.workload.jobs(), self.workload.tasks(job) as usize);
        let state = self.state.get_or_insert_with(|| {
            let open = (0..jobs).map(|_| None).collect();
            Box::new(PlacementState { open, ..PlacementState::default() })
        });
        state.count(now);
        let job = state.open[job.index()].get_or_insert_with(|| Box::new(JobPlacement::new(tasks)));
        job.bound[index] = now;
    }
}

impl PolicyMetric for Binder<'_> {
    #[inline]
    fn note(&mut self, now: Time, _: ActorId, note: Note) {
        if let Note::Cache(CacheNote::Placed { copy, .. }) | Note::Bound { copy } = note {
            self.bound(now, copy);
        }
    }

    fn finished(&mut self, copy: CopyId, arrived: Time, start: Time, now: Time) {
        let Some(state) = &mut self.state else { return };
        let (id, index) = (copy.task.job, copy.task.index as usize);
        let Some(job) = &mut state.open[id.index()] else { return };
        for (stage, at) in job.stages.iter_mut().zip([job.bound[index], start, now]) {
            stage.add(at.since(arrived).as_secs_f64());
        }
        if job.stages[0].count as usize == job.bound.len() {
            let stages = job.stages;
            state.open[id.index()] = None;
            state.stages.iter_mut().zip(stages).for_each(|(gauges, job)| gauges.add(job));
        }
    }

    fn close(self, first: Time, _: Time, results: &mut PolicyResults) {
        results.sections.placements = self.state.map(|state| {
            let [scheduled_s, started_s, ended_s] = state.stages.each_ref().map(Gauges::stage);
            Placements {
                count: state.count,
                peak_per_s: state.peak,
                last_s: state.last.since(first).as_secs_f64(),
                scheduled_s,
                started_s,
                ended_s,
            }
        });
    }
}

impl PlacementState {
    fn count(&mut self, now: Time) {
        let second = now.0 / 1_000_000_000;
        self.within = if second == self.second { self.within + 1 } else { 1 };
        self.second = second;
        self.peak = self.peak.max(self.within);
        self.count += 1;
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{JobId, Span};

    use super::*;
    use crate::workload::{NoTraces, Service, Synthetic, WorkloadSpec};

    /// A job of two tasks arrives at 1 s. Its tasks are bound at 1.5 and 1.7 s, the second again at 3.5 s; they start
    /// at 2 and 4 s and end at 5 and 9 s.
    #[test]
    fn placement_times_are_summarised_per_job() {
        let jobs: Synthetic = toml::from_str("jobs = 2\ntasks = 2\ninterarrival = \"1s\"").unwrap();
        let service: Service = toml::from_str("demand = \"1s\"").unwrap();
        let spec = WorkloadSpec::Synthetic(jobs);
        let workload = Workload::build(&spec, &service, 1, 1, &NoTraces).unwrap();
        let arrival = workload.job(JobId(0)).arrival;
        let at = |tenths: u64| arrival + Span::from_millis(100 * tenths);
        let copy = |task| JobId(0).task(task).copy(0);
        let mut binder = Binder::new(&workload, Window::WHOLE);
        binder.finished(copy(0), arrival, at(0), at(1));
        for (time, task) in [(5, 0), (7, 1), (25, 1)] {
            binder.bound(at(time), copy(task));
        }
        binder.finished(copy(0), arrival, at(10), at(40));
        binder.finished(copy(1), arrival, at(30), at(80));
        assert!(binder.state.as_ref().unwrap().open.iter().all(Option::is_none));
        let close = |binder: Binder<'_>| {
            let mut results = PolicyResults::default();
            binder.close(arrival, at(80), &mut results);
            results.sections.placements
        };
        let found = close(binder).unwrap();
        assert_eq!((found.count, found.peak_per_s, found.last_s), (3, 2, 2.5));
        for (stage, average, tail, deviation) in [
            (found.scheduled_s, 1.5, 2.5, 1.0),
            (found.started_s, 2.0, 3.0, 1.0),
            (found.ended_s, 6.0, 8.0, 2.0),
        ] {
            assert_eq!(
                (stage.average.mean, stage.tail.max, stage.deviation.mean),
                (average, tail, deviation)
            );
        }
        assert_eq!(close(Binder::new(&workload, Window::WHOLE)), None);
    }
}
