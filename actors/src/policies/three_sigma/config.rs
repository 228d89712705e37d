//! Parameters of 3Sigma.

use crate::base::{Span, parameters};
use crate::roles::planning::{OverEstimates, Valuation};

parameters! {
    /// Parameters of 3Sigma. The thesis leaves most numbers open; those without a section are ours.
    struct ThreeSigma {
        /// Period at which the scheduler plans, if something has changed (section 4.3.3: every 1 to 2 s).
        cycle: Span = Span::from_secs(2),
        /// Slots of the window that is planned.
        slots: u32 = 20 => 1..=100,
        /// Length of a slot; the possible starts are now and multiples of it from now on.
        slot: Span = Span::from_secs(60),
        /// Kind of estimate of a job's run time (table 4.1: `distribution` is 3Sigma, `point` PointRealEst and NoDist,
        /// `perfect` PointPerfEst).
        estimates: RunTimeEstimates = RunTimeEstimates::Distribution,
        /// With `normal`: by how much the mean of the estimate exceeds the run time, relative to the run time; each
        /// job's shift is normal around it with a standard deviation of 0.1 (section 4.4.4).
        shift: f64 = 0.0 => -0.9..=10.0,
        /// With `normal`: standard deviation of the estimate relative to the run time; zero gives points.
        cov: f64 = 0.1 => 0.0..=2.0,
        /// With `distribution` and `point`: number of values drawn from the history to stand for it (figure 4.11); zero
        /// takes the whole history.
        samples: u32 = 0 => 0..=10000,
        /// Over-estimate handling: for which SLO jobs the utility falls gradually after the deadline (section 4.3.2).
        over: OverEstimates = OverEstimates::Adaptive,
        /// With `over = "adaptive"`: the utility falls gradually if the probability that the job's run time is at most
        /// the time from its submission to its deadline is below this.
        threshold: f64 = 0.05 => 0.0..=1.0,
        /// Time in which that utility falls to zero, relative to the time from submission to deadline.
        decay: f64 = 1.0 => 0.0..=1000.0,
        /// Utility of a best-effort job that starts now; it falls linearly to zero at the end of the window, or as
        /// `by_completion` says. An SLO job is worth 1.
        best_effort: f64 = 0.2 => 0.0001..=1.0,
        /// Whether the utility of a best-effort job falls with the time from its arrival to its completion, to a
        /// hundredth at `horizon`, instead of with the wait until its start. Section 4.2.1 and equation 4.1 have it by
        /// completion; the example of section 4.3.3 lets it fall with the start, and no section gives its slope.
        by_completion: bool = false,
        /// With `by_completion`: the time from arrival to completion at which a best-effort job is worth least.
        horizon: Span = Span::from_secs(3600),
        /// Whether best-effort jobs can be preempted; their work is lost. Each is preempted at most ten times: jobs
        /// that outlive their estimates would otherwise preempt each other for ever.
        preempt: bool = true,
        /// P: the price of preempting a best-effort job, relative to its utility (section 4.3.3). Below 1 equal jobs
        /// would preempt each other for ever; a thousandth is added to it.
        price: f64 = 1.0 => 1.0..=1000.0,
        /// Largest number of waiting jobs in a plan: SLO jobs by deadline, then best-effort jobs by age.
        consider: u32 = 128 => 1..=10000,
        /// Attempts to improve a plan by dropping some of its jobs and planning them again.
        ruins: u32 = 100 => 0..=100000,
        /// Emulated time that a decision takes, during which jobs arrive and end.
        decide: Span = Span::ZERO,
    }

    /// Kinds of estimates of a job's run time.
    enum RunTimeEstimates {
        /// The distribution of the best expert of 3σPredict.
        #[default]
        Distribution,
        /// The point estimate of the best expert.
        Point,
        /// The run time itself, by the workload's estimate of the longest task.
        Perfect,
        /// A normal distribution around the run time, with an error (figure 4.9).
        Normal,
    }
}

impl ThreeSigma {
    /// Parameters of the utility of jobs.
    pub(super) fn valuation(&self) -> Valuation {
        let Self { over, threshold, decay, best_effort, .. } = *self;
        let completion = self.by_completion.then(|| self.horizon.as_secs_f64());
        Valuation { over, threshold, decay, best_effort, completion }
    }
}
