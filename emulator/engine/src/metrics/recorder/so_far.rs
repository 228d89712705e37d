//! The state of a recorder during its run, for observers of the run.

use volary_actors::base::JobId;
use volary_actors::catalog::Catalog;

use super::Recorder;
use super::fold::Job;
use crate::results::{CacheRow, CopyCounts, JobCounts, TaskCounts};

/// Counts of a run in progress.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SoFar {
    /// Numbers of jobs, by outcome.
    pub jobs: JobCounts,
    /// Numbers of tasks, by outcome.
    pub tasks: TaskCounts,
    /// Numbers of copies that have started and that have ended.
    pub copies: CopyCounts,
    /// Number of running copies.
    pub running: u32,
    /// Submitted tasks that neither finished nor run.
    pub waiting: u64,
}

impl Recorder<'_> {
    /// The counts so far. Takes time in proportion to the number of cores.
    pub fn so_far(&self) -> SoFar {
        let open = self.open_tasks();
        SoFar {
            jobs: self.counts,
            tasks: self.tasks,
            copies: self.copies,
            running: self.busy,
            waiting: open.saturating_sub(self.tasks_in_service()),
        }
    }

    /// Number of unfinished tasks with a running copy.
    fn tasks_in_service(&self) -> u64 {
        let copies = self.running.iter().flatten().map(|running| running.copy().task);
        let needed = copies.filter(|task| match &self.jobs[task.job.index()] {
            Job::Open { done, .. } => !done.has(task.index),
            Job::Pending | Job::Finished(_) | Job::Killed => false,
        });
        let mut tasks: Vec<(u32, u32)> = needed.map(|task| (task.job.0, task.index)).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks.len() as u64
    }

    /// Response times of measured jobs that have finished, s, in the order of the jobs. Of more than `most` jobs only
    /// evenly spaced ones are included. The second result is the number of jobs that each of them represents.
    pub fn responses(&self, most: u32) -> (Vec<f64>, u32) {
        let chains = self.window.chains(self.workload.chains());
        let step = (chains.len() as u32).div_ceil(most.max(1)).max(1);
        let response = |chain: u32| {
            let first = JobId(self.workload.jobs_of(chain).start);
            Some(self.end_of(chain)?.since(self.workload.job(first).arrival).as_secs_f64())
        };
        (chains.step_by(step as usize).filter_map(response).collect(), step)
    }

    /// Whether a copy runs on a core.
    pub fn is_busy(&self, core: u32) -> bool {
        self.running[core as usize].is_some()
    }

    /// The samples of caches, of copies of a shared state, or of members so far; empty if the policy has none.
    pub fn cache_samples(&self) -> &[CacheRow] {
        let (caches, (_, (_, (spread, _)))) = &self.metrics;
        if caches.cache_samples().is_empty() { spread.samples() } else { caches.cache_samples() }
    }
}
