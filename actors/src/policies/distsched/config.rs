//! Parameters of DistSched.

use crate::base::{Span, parameters};
use crate::roles::planning::{OverEstimates, Valuation};

parameters! {
    /// Parameters of DistSched. The thesis leaves most numbers open; numbers without a section are ours.
    struct DistSched {
        /// Period at which the scheduler decides, if something has changed (section 5.3: every 15 s).
        cycle: Span = Span::from_secs(15) => period,
        /// Kind of estimate of a task's CPU, memory and CPU-time (section 5.4.1: `dist` is Dist, `actual` Actual,
        /// `point` Point and NoDist, `request` Request).
        estimates: UsageEstimates = UsageEstimates::Dist,
        /// The statistic of a job's use over time that is estimated (DistMax, ActualMax and PointMax have `max`).
        of: UsageStatistic = UsageStatistic::Mean,
        /// A node takes a task only if the probabilities that the task over-allocates the node's CPU and its memory
        /// are both below this limit; 0 accepts no risk (section 5.2.3: optimistic over-packing; NoPack has 0).
        risk: f64 = 0.1 => 0.0..=1.0,
        /// Over-estimate handling: the SLO jobs whose utility falls gradually after the deadline. Section 5.3.2
        /// always uses the slope of Fig. 4.3(d); the adaptive choice is 3Sigma's (section 4.3.2). NoOver has `never`.
        over: OverEstimates = OverEstimates::Always,
        /// With `over = "adaptive"`: the utility falls gradually if P(run time ≤ time from submission to deadline) is
        /// below this limit.
        threshold: f64 = 0.05 => 0.0..=1.0,
        /// Time in which the utility falls to zero after the deadline, relative to the time from submission to
        /// deadline.
        decay: f64 = 10.0 => 0.0..=1000.0,
        /// Utility of a best-effort job that takes no time. It falls linearly to a hundredth of this value for a job
        /// that takes `horizon`. An SLO job is worth 1.
        best_effort: f64 = 0.2 => 0.0001..=1.0,
        /// Run time (with `by_completion`: arrival to completion) from which on a best-effort job has its least
        /// utility.
        horizon: Span = Span::from_secs(3600) => period,
        /// Whether the utility of a best-effort job falls with the time from its arrival to its completion, as the
        /// utility of section 4.2.1 and equation 4.1 does, instead of with its run time.
        by_completion: bool = false,
        /// Whether the observed use replaces the expected use once it has constantly been above the largest expected
        /// value (section 5.3.2; NoObs has `false`).
        observe: bool = true,
        /// Time for which reports of a copy must stay above the expected maximum before they replace the expected use.
        constantly: Span = Span::from_secs(60),
        /// Whether best-effort tasks are preempted on throttling nodes that also run SLO tasks, until the remaining
        /// tasks demand no more CPU than the node has. The work of preempted tasks is lost (section 5.3.2; NoPreempt
        /// has `false`).
        preempt: bool = true,
    }

    /// Kinds of estimates of a task's use.
    enum UsageEstimates {
        /// The distributions of the best experts of DSPredict.
        #[default]
        Dist,
        /// The actual use of the task.
        Actual,
        /// The point estimates of the best experts.
        Point,
        /// The user's request. For CPU-time, which users do not state, the point estimate.
        Request,
    }

    /// The statistic of a job's use over time that the scheduler plans with.
    enum UsageStatistic {
        /// Mean over time.
        #[default]
        Mean,
        /// Largest value over time.
        Max,
    }
}

impl DistSched {
    /// Parameters of the utility of jobs.
    pub(super) fn valuation(&self) -> Valuation {
        let Self { over, threshold, decay, best_effort, .. } = *self;
        let completion = self.by_completion.then(|| self.horizon.as_secs_f64());
        Valuation { over, threshold, decay, best_effort, completion }
    }
}
