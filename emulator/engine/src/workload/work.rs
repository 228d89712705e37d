//! The work of copies under `service.demand`: the four models of the latin-square paper.
//!
//! The draws of a job, of a task and of a copy have addresses of their own, so the work of a copy depends only on the
//! seed and its ids, not on the policy or the order of execution. The uncorrelated heterogeneous model takes the task's
//! draw as a *mean*; taken as a rate, as Table IV prints it, work would have no mean at all.

use volary_actors::base::{Address, CopyId, JobId, Law, Purpose, Span, TaskId};

use super::config::Share;

/// Work that follows a law.
#[derive(Debug)]
pub(super) struct Demand {
    law: Law<Span>,
    /// Mean of the law, s.
    mean: f64,
    homogeneous: Share,
    correlated: Share,
    work: Address,
    shape: Address,
}

/// The root of the draws of the stages with this number; jobs without stages draw as first ones. Addresses of jobs are
/// smaller than those of stages.
pub(super) const fn draws_of(stage: usize, seed: u64, purpose: Purpose) -> Address {
    let root = Address::new(seed, purpose);
    if stage == 0 { root } else { root.at((1 << 32) + stage as u64) }
}

/// Address of the draw of this trait of a job, below the job's own address of purpose `Shape`.
const CORRELATED: u64 = 1;
const HOMOGENEOUS: u64 = 2;

impl Demand {
    pub(super) fn new(law: Law<Span>, homogeneous: Share, correlated: Share, seed: u64) -> Self {
        Self::of_stage(0, law, homogeneous, correlated, seed)
    }

    /// The work of the stages with this number in their chains, which has draws of its own. Jobs are numbered by chain.
    pub(super) fn of_stage(
        stage: usize,
        law: Law<Span>,
        homogeneous: Share,
        correlated: Share,
        seed: u64,
    ) -> Self {
        let [work, shape] = [Purpose::Work, Purpose::Shape].map(|draws| draws_of(stage, seed, draws));
        Self { mean: law.mean(), law, homogeneous, correlated, work, shape }
    }

    /// The work of a copy.
    pub(super) fn copy(&self, copy: CopyId) -> Span {
        let (job, index) = (copy.task.job, copy.task.index);
        if self.correlated(job) {
            return self.exact(copy.task);
        }
        let task = self.work.at(u64::from(job.0)).at(u64::from(index));
        let own = self.law.sample(&mut task.at(u64::from(copy.attempt)).draw());
        if self.homogeneous(job) {
            return own;
        }
        let mean = self.law.sample(&mut task.draw());
        if self.mean > 0.0 { mean.scale(own.as_secs_f64() / self.mean) } else { Span::ZERO }
    }

    /// Work of a task as far as it is known before a copy of it runs.
    pub(super) fn exact(&self, task: TaskId) -> Span {
        let job = self.work.at(u64::from(task.job.0));
        match (self.correlated(task.job), self.homogeneous(task.job)) {
            (true, true) => self.law.sample(&mut job.draw()),
            (false, true) => Span::from_secs_f64(self.mean),
            (_, false) => self.law.sample(&mut job.at(u64::from(task.index)).draw()),
        }
    }

    /// Whether all copies of a task of this job have equal work.
    pub(super) fn correlated(&self, job: JobId) -> bool {
        self.includes(self.correlated, job, CORRELATED)
    }

    /// Whether all tasks of this job have equal work.
    pub(super) fn homogeneous(&self, job: JobId) -> bool {
        self.includes(self.homogeneous, job, HOMOGENEOUS)
    }

    fn includes(&self, share: Share, job: JobId, what: u64) -> bool {
        // Skips the draw in the common cases.
        share == Share::ALL
            || (share != Share::NONE && share.includes(self.shape.at(u64::from(job.0)).at(what).unit()))
    }
}
