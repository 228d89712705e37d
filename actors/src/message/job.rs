//! Client ↔ scheduler.

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use crate::base::{Class, JobId};
use crate::layout::Role;

/// Submission and completion of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Client → scheduler: run this job. `round` counts earlier submissions of it to schedulers that died.
    Submit {
        /// The job.
        job: JobId,
        /// Earlier submissions.
        round: u32,
    },
    /// Scheduler → client: every task has a finished copy.
    Finished {
        /// The job.
        job: JobId,
    },
}

impl Conversation for Job {
    const VARIANTS: &'static [(&'static str, Class)] =
        &[("job.submit", Class::Stream), ("job.finished", Class::Stream)];
    fn variant(&self) -> u8 {
        match self {
            Self::Submit { .. } => 0,
            Self::Finished { .. } => 1,
        }
    }

    fn allowed(&self, envelope: &Envelope<'_>) -> bool {
        match (*self, envelope.from, envelope.to) {
            (Self::Submit { job, .. }, Role::Client(client), Role::Scheduler(_))
            | (Self::Finished { job }, Role::Scheduler(_), Role::Client(client)) => {
                envelope.home(job, client)
            }
            _ => false,
        }
    }
}
