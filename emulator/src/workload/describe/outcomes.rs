//! Outcomes of jobs (Park's thesis, section 3.5).

use serde::Serialize;
use volary_actors::base::JobId;
use volary_engine::workload::{Outcome, Trace};

use super::quantiles::{Quantiles, share};

/// Outcomes of the jobs of a trace that states them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcomes {
    /// Share of each outcome (Fig. 3.7).
    pub shares: Vec<OutcomeShare>,
    /// Cores of jobs that finished or timed out, or their tasks if the trace has no cores (Fig. 3.8).
    pub successful_size: Quantiles,
    /// The same of all others.
    pub unsuccessful_size: Quantiles,
    /// Share of the jobs that finished.
    pub finished: f64,
    /// Share of those that finished of the tenth of the jobs that took most CPU time.
    pub finished_of_longest: f64,
    /// Share of the jobs that finished, by the CPU time that they took (Fig. 3.9).
    pub by_cpu_hours: Vec<SuccessByHours>,
}

/// How many jobs ended in one way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct OutcomeShare {
    pub outcome: &'static str,
    /// Share of the jobs.
    pub jobs: f64,
    /// Share of the CPU time: run time times cores, or times tasks.
    pub cpu_time: f64,
}

/// Jobs that took about the same CPU time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SuccessByHours {
    /// They took at least so many CPU-hours, a power of ten; zero for the first group.
    pub from_h: f64,
    pub jobs: u64,
    /// Share of them that finished.
    pub finished: f64,
}

/// A job that has ended: how, its size, its CPU time in seconds.
struct Ended {
    outcome: Outcome,
    size: f64,
    cpu_s: f64,
}

/// Powers of ten of CPU-hours that begin a group.
const DECADES: std::ops::RangeInclusive<i32> = -3..=4;

impl Outcomes {
    pub(super) fn of(trace: &Trace, works: &[f64]) -> Option<Self> {
        let ended = |(job, &work): (JobId, &f64)| {
            let tasks = f64::from(trace.jobs()[job.index()].tasks);
            let cores = trace.cores(job).map(f64::from);
            // Work counts a core a task.
            let cpu_s = cores.map_or(work, |cores| work * cores / tasks);
            Some(Ended { outcome: trace.outcome(job)?, size: cores.unwrap_or(tasks), cpu_s })
        };
        let jobs: Vec<Ended> = (0..).map(JobId).zip(works).filter_map(ended).collect();
        let size = |success| {
            let those = jobs.iter().filter(|job| is_success(job.outcome) == success);
            Quantiles::of(those.map(|job| job.size))
        };
        (!jobs.is_empty()).then(|| Self {
            shares: shares(&jobs),
            successful_size: size(true),
            unsuccessful_size: size(false),
            finished: share(jobs.iter(), |job| job.outcome == Outcome::Finished),
            finished_of_longest: finished_of_longest(&jobs),
            by_cpu_hours: by_cpu_hours(&jobs),
        })
    }

    /// Shares of the jobs and of the CPU time of jobs that neither finished nor exceeded their time.
    pub fn unsuccessful(&self) -> (f64, f64) {
        let success = [Outcome::Finished.name(), Outcome::TimedOut.name()];
        let those = self.shares.iter().filter(|share| !success.contains(&share.outcome));
        those.fold((0.0, 0.0), |sum, share| (sum.0 + share.jobs, sum.1 + share.cpu_time))
    }
}

/// Whether a job may have done useful work: jobs that exceed their time often do (thesis, section 3.5).
const fn is_success(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Finished | Outcome::TimedOut)
}

fn shares(jobs: &[Ended]) -> Vec<OutcomeShare> {
    let all: f64 = jobs.iter().map(|job| job.cpu_s).sum();
    let of = |outcome: Outcome| {
        let cpu: f64 = jobs.iter().filter(|job| job.outcome == outcome).map(|job| job.cpu_s).sum();
        let count = share(jobs.iter(), |job| job.outcome == outcome);
        let cpu_time = if all > 0.0 { cpu / all } else { 0.0 };
        (count > 0.0).then_some(OutcomeShare { outcome: outcome.name(), jobs: count, cpu_time })
    };
    Outcome::ALL.into_iter().filter_map(of).collect()
}

fn finished_of_longest(jobs: &[Ended]) -> f64 {
    let p90 = Quantiles::of(jobs.iter().map(|job| job.cpu_s)).p90;
    share(jobs.iter().filter(|job| job.cpu_s >= p90), |job| job.outcome == Outcome::Finished)
}

fn by_cpu_hours(jobs: &[Ended]) -> Vec<SuccessByHours> {
    let starts: Vec<f64> = std::iter::once(0.0).chain(DECADES.map(|power| 10f64.powi(power))).collect();
    let group = |(at, &from_h): (usize, &f64)| {
        let until = starts.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let those = || jobs.iter().filter(move |job| (from_h..until).contains(&(job.cpu_s / 3600.0)));
        let count = those().count() as u64;
        let finished = share(those(), |job| job.outcome == Outcome::Finished);
        (count > 0).then_some(SuccessByHours { from_h, jobs: count, finished })
    };
    starts.iter().enumerate().filter_map(group).collect()
}
