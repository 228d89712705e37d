//! An open job as DistSched knows it.

use std::sync::Arc;

use super::config::DistSched;
use super::estimate::UsageForecast;
use super::load::{NodeLoads, TaskUse};
use super::observed::{ObservedUse, work_after};
use super::value::LEAST_CPU;
use crate::base::{CopyId, Span, Time};
use crate::catalog::JobSpec;
use crate::message::UsageReport;
use crate::predict::Distribution;
use crate::roles::planning::Utility;

/// What is known of an open job.
pub(super) struct ExpectedJob {
    pub(super) forecast: UsageForecast,
    /// What is expected of each task by now.
    pub(super) tasks: Arc<TaskUse>,
    /// CPU-time that is expected of each task by now, core-seconds.
    pub(super) work: f64,
    /// Memory that was requested for each, bytes.
    pub(super) requested_memory: f64,
    pub(super) utility: Utility,
    pub(super) observed: ObservedUse,
    /// Nodes that have evicted tasks of it, by number.
    evicted: Vec<EvictedFrom>,
    /// A task needs more memory than this, bytes: a node that has as much has evicted it when it ran there alone.
    needs_more_than: f64,
}

/// A node that has evicted tasks of a job.
struct EvictedFrom {
    node: u32,
    /// How often.
    times: u32,
    /// Until when the job avoids it.
    until: Time,
}

/// How long a job avoids a node that has evicted one of its tasks, twice as long after each further eviction there.
const AVOIDED: Span = Span::from_secs(60);

/// Doublings of that time, at most.
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

    /// The run time that is expected of a task that is not throttled, s.
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

    /// Records that a copy was stopped: a task needs more CPU-time than the copy had done.
    pub(super) fn stopped(&mut self, copy: CopyId) {
        if self.observed.stopped(copy) {
            self.work = work_after(self.observed.lost, self.work, &self.forecast.work);
        }
    }

    /// Records that a node has evicted a task of the job, which then avoids it for a while.
    pub(super) fn evicted(&mut self, node: u32, now: Time) {
        let at = self.evicted.binary_search_by_key(&node, |from| from.node).unwrap_or_else(|at| {
            self.evicted.insert(at, EvictedFrom { node, times: 0, until: now });
            at
        });
        let from = &mut self.evicted[at];
        from.until = now + AVOIDED.scale(f64::from(1u32 << from.times.min(MOST_DOUBLINGS)));
        from.times += 1;
    }

    /// Records that a node with this memory (bytes) has evicted a task of the job that ran there alone. Other tasks of
    /// the job probably need as much.
    pub(super) fn needs_more_than(&mut self, memory: f64) {
        self.needs_more_than = self.needs_more_than.max(memory);
    }

    /// The nodes that the job avoids at `now`, by number, and when it may use the first of them again. It avoids those
    /// that are too small for one of its tasks while larger ones can be used.
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

    /// The CPU that a copy would use, as reported or else as expected, cores.
    pub(super) fn demand(&self, copy: CopyId) -> f64 {
        self.observed.of(copy).and_then(|seen| seen.demand()).unwrap_or_else(|| self.tasks.cpu.mean())
    }
}

/// The distribution of the run time of work that gets all the CPU that it would use, s.
fn run_time(cpu: &Distribution, work: f64) -> Distribution {
    cpu.dividing(work, LEAST_CPU)
}
