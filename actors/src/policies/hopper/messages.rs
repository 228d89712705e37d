//! The messages of Hopper: reservations that carry the virtual sizes of jobs, and offers of cores that schedulers may
//! refuse. A part of `crate::message`.
//!
//! As under Sparrow, an offer that must not be refused is a `probe.claim`, its answer without a copy a
//! `probe.nothing`, and the cancellation of reservations a `probe.cancel`.

use serde::{Deserialize, Serialize};

use crate::base::{CopyId, JobId};
use crate::message::protocol::{Run, protocol};

/// A job as nodes know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SizedJob {
    /// The job.
    pub job: JobId,
    /// The group of the job's reservations: the first copies of a job form one group, each later copy a group of its
    /// own.
    pub group: u32,
    /// The job's virtual size, thousandths of a core.
    pub size: u32,
}

impl SizedJob {
    fn fits(self, run: &Run<'_>) -> bool {
        run.has_job(self.job)
    }
}

/// Reservations, offers and refusals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Offer {
    /// Scheduler → node: queue `count` reservations for copies of this job.
    Reserve {
        /// The job.
        of: SizedJob,
        /// Number of reservations, at least one.
        count: u32,
        /// Whether the message repairs a loss; offers for its reservations are then repairs, too.
        repair: bool,
    },
    /// Node → scheduler: a core is free and held for a copy of this job, unless the scheduler refuses it.
    Core {
        /// The job.
        job: JobId,
        /// The group of the reservation.
        group: u32,
        /// Whether the reservation repaired a loss.
        repair: bool,
    },
    /// Scheduler → node: a copy for the held core.
    Grant {
        /// The copy.
        copy: CopyId,
        /// The group of the offer.
        group: u32,
        /// The job's present virtual size, thousandths of a core.
        size: u32,
    },
    /// Scheduler → node: the offered core is refused.
    Refuse {
        /// The job to which the core was offered.
        job: SizedJob,
        /// The smallest other job of the scheduler that has fewer cores than its virtual size and has a copy for the
        /// node; the node then has a reservation of it. It is `job` itself if there is no other such job.
        smallest: SizedJob,
    },
}

// A node decrements the count, so it must not be zero.
protocol! {
    Offer in run;
    Reserve = "offer.reserve", Datagram, 25, Scheduler -> Node:
        Self::Reserve { of, count, .. } if count > 0 && of.fits(run) => of.job,
    Core = "offer.core", Stream, 17, Node -> Scheduler:
        Self::Core { job, .. } if run.has_job(job) => job,
    Grant = "offer.grant", Stream, 28, Scheduler -> Node:
        Self::Grant { copy, .. } if run.has_task(copy.task) => copy.task.job,
    Refuse = "offer.refuse", Stream, 32, Scheduler -> Node:
        Self::Refuse { job, smallest } if job.fits(run) && smallest.fits(run) => job.job,
}
