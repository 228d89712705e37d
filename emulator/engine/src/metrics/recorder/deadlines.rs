//! Deadlines that jobs met or missed, and the work of the jobs that ended.

use volary_actors::base::{JobId, Time};
use volary_actors::catalog::Catalog;

use super::Recorder;
use super::fold::Job;
use crate::results::{Brief, Deadlines, GoodputHours};

impl Recorder<'_> {
    /// Outcomes of jobs with and without deadlines in a run that lasted until `end`; `None` if no job has a deadline.
    pub(super) fn deadlines(&self, end: Time) -> Option<Deadlines> {
        if !self.workload.has_deadlines() {
            return None;
        }
        // Once a run has finished, all its deadlines are decided, even those after its end.
        let until = if self.all_finished() { Time::MAX } else { end };
        let mut found = Deadlines { miss_rate: f64::NAN, ..Deadlines::default() };
        let mut responses = Vec::new();
        for chain in self.window.chains(self.workload.chains()) {
            let Some((arrival, ended)) = self.fate(chain) else { continue };
            let hours = ended.map_or(0.0, |_| self.node_hours(chain));
            let GoodputHours { slo, late, be, .. } = &mut found.goodput_h;
            let Some(deadline) = self.workload.deadline(chain) else {
                *be += hours;
                responses.extend(ended.map(|at| at.since(arrival).as_secs_f64()));
                continue;
            };
            let met = ended.is_some_and(|at| at <= deadline);
            *if met { slo } else { late } += hours;
            found.slo += 1;
            found.value += u64::from(met);
            *match (deadline > until, met) {
                (true, _) => &mut found.open,
                (false, true) => &mut found.met,
                (false, false) => &mut found.missed,
            } += 1;
        }
        let GoodputHours { slo, late, be, .. } = found.goodput_h;
        found.goodput_h.total = slo + late + be;
        if found.met + found.missed > 0 {
            found.miss_rate = found.missed as f64 / (found.met + found.missed) as f64;
        }
        Some(Deadlines { be_response_s: Brief::of(responses), ..found })
    }

    /// Arrival of a chain, and the time at which its client was notified of its end, if it was; `None` before the chain
    /// has arrived.
    fn fate(&self, chain: u32) -> Option<(Time, Option<Time>)> {
        let jobs = self.workload.jobs_of(chain);
        if matches!(self.jobs[jobs.start as usize], Job::Pending) {
            return None;
        }
        Some((self.workload.job(JobId(jobs.start)).arrival, self.end_of(chain)))
    }

    /// Number of tasks times the work of the longest task, summed over stages, in hours.
    fn node_hours(&self, chain: u32) -> f64 {
        let hours =
            |job| f64::from(self.workload.tasks(job)) * self.workload.longest(job).as_secs_f64() / 3600.0;
        self.workload.jobs_of(chain).map(JobId).map(hours).sum()
    }
}
