//! Client ↔ scheduler.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::JobId;

/// Submission and completion of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Client → scheduler: run this job. `round` counts earlier submissions of the job to schedulers that crashed.
    Submit {
        /// The job.
        job: JobId,
        /// Number of earlier submissions, without undelivered ones.
        round: u32,
    },
    /// Scheduler → client: every task has a finished copy, or the job was killed.
    Finished {
        /// The job.
        job: JobId,
        /// Whether it was killed.
        killed: bool,
    },
}

protocol! {
    Job in run;
    Submit = "job.submit", Stream, 16, Client -> Scheduler: Self::Submit { job, .. } if run.has_job(job) => job,
    Finished = "job.finished", Stream, 13, Scheduler -> Client: Self::Finished { job, .. } if run.has_job(job) => job,
}
