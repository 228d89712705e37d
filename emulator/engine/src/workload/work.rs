//! The work of copies under `service.demand`: the four models of the latin-square paper.
//!
//! The draws of a job, of a task and of a copy have addresses of their own, so the work of a copy depends only on the
//! seed and its ids, not on the policy or the order of execution. The uncorrelated heterogeneous model takes the task's
//! draw as a *mean*; taken as a rate, as Table IV prints it, work would have no mean at all.

use volary_actors::base::{Address, DistributionSpec, JobId, Purpose, Span};

use super::share::Share;

/// Work that follows a distribution.
#[derive(Debug)]
pub(super) struct Demand {
    distribution: DistributionSpec<Span>,
    /// Mean of the distribution, s.
    mean: f64,
    homogeneous: Share,
    correlated: Share,
    work: Address,
    shape: Address,
}

/// The root of the draws of the stages with this number; jobs without stages draw as first stages. Addresses of jobs
/// are smaller than those of stages.
pub(super) const fn draws_of(stage: usize, seed: u64, purpose: Purpose) -> Address {
    let root = Address::new(seed, purpose);
    if stage == 0 { root } else { root.at((1 << 32) + stage as u64) }
}

/// Address of the draw of this trait of a job, below the job's own address of purpose `Shape`.
const CORRELATED: u64 = 1;
const HOMOGENEOUS: u64 = 2;

impl Demand {
    pub(super) fn new(
        distribution: DistributionSpec<Span>,
        homogeneous: Share,
        correlated: Share,
        seed: u64,
    ) -> Self {
        Self::of_stage(0, distribution, homogeneous, correlated, seed)
    }

    /// The work of the stages with this number in their chains, which has draws of its own. Jobs are numbered by chain.
    pub(super) fn of_stage(
        stage: usize,
        distribution: DistributionSpec<Span>,
        homogeneous: Share,
        correlated: Share,
        seed: u64,
    ) -> Self {
        let [work, shape] = [Purpose::Work, Purpose::Shape].map(|draws| draws_of(stage, seed, draws));
        Self { mean: distribution.mean(), distribution, homogeneous, correlated, work, shape }
    }

    /// The work of the job that is drawn under this number; `mean` is that of its name, if it has one.
    pub(super) const fn of_job(&self, job: JobId, mean: Option<Span>) -> JobDemand<'_> {
        JobDemand { demand: self, job, mean }
    }
}

/// Work of the copies of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobDemand<'a> {
    demand: &'a Demand,
    job: JobId,
    /// Mean work of a copy, in place of that of the distribution.
    mean: Option<Span>,
}

impl JobDemand<'_> {
    /// The work of a copy.
    pub(super) fn copy(&self, index: u32, attempt: u32) -> Span {
        if self.correlated() {
            return self.exact(index);
        }
        let (distribution, mean) = (&self.demand.distribution, self.demand.mean);
        let task = self.job_address().at(u64::from(index));
        let own = distribution.sample(&mut task.at(u64::from(attempt)).draw());
        if self.homogeneous() {
            return self.about_mean(own);
        }
        let of_task = distribution.sample(&mut task.draw());
        self.about_mean(if mean > 0.0 { of_task.scale(own.as_secs_f64() / mean) } else { Span::ZERO })
    }

    /// Work of a task as far as it is known before a copy of it runs.
    pub(super) fn exact(&self, index: u32) -> Span {
        let (distribution, job) = (&self.demand.distribution, self.job_address());
        match (self.correlated(), self.homogeneous()) {
            (true, true) => self.mean.unwrap_or_else(|| distribution.sample(&mut job.draw())),
            (false, true) => self.mean.unwrap_or_else(|| Span::from_secs_f64(self.demand.mean)),
            (_, false) => self.about_mean(distribution.sample(&mut job.at(u64::from(index)).draw())),
        }
    }

    /// Whether all tasks of the job have equal work.
    pub(super) fn homogeneous(&self) -> bool {
        self.includes(self.demand.homogeneous, HOMOGENEOUS)
    }

    /// Whether all copies of a task have equal work.
    fn correlated(&self) -> bool {
        self.includes(self.demand.correlated, CORRELATED)
    }

    fn includes(&self, share: Share, what: u64) -> bool {
        // Skips the draw in the common cases.
        share == Share::ALL
            || (share != Share::NONE
                && share.includes(self.demand.shape.at(u64::from(self.job.0)).at(what).unit()))
    }

    fn job_address(&self) -> Address {
        self.demand.work.at(u64::from(self.job.0))
    }

    /// A sample of the distribution, scaled to the mean of the job.
    fn about_mean(&self, sample: Span) -> Span {
        match self.mean {
            None => sample,
            Some(mean) if self.demand.mean > 0.0 => mean.scale(sample.as_secs_f64() / self.demand.mean),
            Some(_) => Span::ZERO,
        }
    }
}
