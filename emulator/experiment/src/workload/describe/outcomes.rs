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
    /// Share of the jobs that were successful: that finished, or exceeded their time, as jobs do that have done useful
    /// work (section 3.5).
    pub successful: f64,
    /// Share of the CPU time of these.
    pub successful_time: f64,
    /// Cores of successful jobs, or their tasks if the trace has no cores (Fig. 3.8).
    pub successful_size: Quantiles,
    /// The same of all others.
    pub unsuccessful_size: Quantiles,
    /// Share of the tenth of the jobs that took most CPU time that were successful.
    pub successful_of_longest: f64,
    /// Successful jobs by the CPU time that they took (Fig. 3.9).
    pub by_cpu_hours: Vec<SuccessByHours>,
}

/// The share of an outcome.
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
    /// Minimum CPU-hours of the group, a power of ten; zero for the first group.
    pub from_h: f64,
    pub jobs: u64,
    /// Share of them that were successful.
    pub successful: f64,
}

/// A job that has ended: its outcome, its size, its CPU time in seconds.
struct Ended {
    outcome: Outcome,
    size: f64,
    cpu_s: f64,
}

impl Ended {
    const fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Finished | Outcome::TimedOut)
    }
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
            let those = jobs.iter().filter(|job| job.is_success() == success);
            Quantiles::of(those.map(|job| job.size))
        };
        (!jobs.is_empty()).then(|| Self {
            shares: shares(&jobs),
            successful: share(jobs.iter(), |job| job.is_success()),
            successful_time: time_share(&jobs, Ended::is_success),
            successful_size: size(true),
            unsuccessful_size: size(false),
            successful_of_longest: successful_of_longest(&jobs),
            by_cpu_hours: by_cpu_hours(&jobs),
        })
    }

    /// Shares of the jobs and of the CPU time of jobs that were not successful.
    pub fn unsuccessful(&self) -> (f64, f64) {
        (1.0 - self.successful, 1.0 - self.successful_time)
    }
}

/// Share of the CPU time of the jobs for which `so` holds; all of it if no job took any.
fn time_share(jobs: &[Ended], so: impl Fn(&Ended) -> bool) -> f64 {
    let all: f64 = jobs.iter().map(|job| job.cpu_s).sum();
    let those: f64 = jobs.iter().filter(|job| so(job)).map(|job| job.cpu_s).sum();
    if all > 0.0 { those / all } else { 1.0 }
}

fn shares(jobs: &[Ended]) -> Vec<OutcomeShare> {
    let of = |outcome: Outcome| {
        let count = share(jobs.iter(), |job| job.outcome == outcome);
        let cpu_time = time_share(jobs, |job| job.outcome == outcome);
        (count > 0.0).then_some(OutcomeShare { outcome: outcome.name(), jobs: count, cpu_time })
    };
    Outcome::ALL.into_iter().filter_map(of).collect()
}

fn successful_of_longest(jobs: &[Ended]) -> f64 {
    let p90 = Quantiles::of(jobs.iter().map(|job| job.cpu_s)).p90;
    share(jobs.iter().filter(|job| job.cpu_s >= p90), |job| job.is_success())
}

fn by_cpu_hours(jobs: &[Ended]) -> Vec<SuccessByHours> {
    let starts: Vec<f64> = std::iter::once(0.0).chain(DECADES.map(|power| 10f64.powi(power))).collect();
    let group = |(at, &from_h): (usize, &f64)| {
        let until = starts.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let those = || jobs.iter().filter(move |job| (from_h..until).contains(&(job.cpu_s / 3600.0)));
        let count = those().count() as u64;
        let successful = share(those(), |job| job.is_success());
        (count > 0).then_some(SuccessByHours { from_h, jobs: count, successful })
    };
    starts.iter().enumerate().filter_map(group).collect()
}
