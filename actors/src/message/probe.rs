//! Scheduler ↔ node: late binding and sampling (Sparrow; later Hawk and Eagle).

use serde::{Deserialize, Serialize};

use super::Conversation;
use super::check::Envelope;
use super::launch::Row;
use crate::base::{Class, JobId, TaskId};

/// Reservations, claims and samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Probe {
    /// Scheduler → node: `count` places in your queue for tasks of this group of a job.
    Reserve {
        /// The job.
        job: JobId,
        /// Which group of its tasks; 0 where the whole job is one group.
        group: u32,
        /// Reservations, at least one.
        count: u32,
        /// Whether it repairs a loss: then so do the claims it leads to.
        repair: bool,
    },
    /// Node → scheduler: a core is free and held for you; which task?
    Claim {
        /// The job.
        job: JobId,
        /// The group.
        group: u32,
        /// Whether the reservation, or probe, repaired a loss.
        repair: bool,
    },
    /// Scheduler → node: these.
    Grant {
        /// What to run on the core that was held.
        row: Row,
        /// The group that was claimed for.
        group: u32,
    },
    /// Scheduler → node: none is left.
    Nothing {
        /// The job.
        job: JobId,
        /// The group.
        group: u32,
    },
    /// Scheduler → node: the group needs no reservation any more.
    Cancel {
        /// The job.
        job: JobId,
        /// The group.
        group: u32,
    },
    /// Scheduler → node: how long is your queue?
    Sample {
        /// The task to be placed.
        task: TaskId,
        /// Whether it repairs a loss: then so does the answer.
        repair: bool,
    },
    /// Node → scheduler: waiting and running tasks; with free cores, minus their number.
    Length {
        /// The task to be placed.
        task: TaskId,
        /// The queue-length metric.
        length: i32,
    },
}

impl Conversation for Probe {
    const VARIANTS: &'static [(&'static str, Class)] = &[
        ("probe.reserve", Class::Datagram),
        ("probe.claim", Class::Stream),
        ("probe.grant", Class::Stream),
        ("probe.nothing", Class::Stream),
        ("probe.cancel", Class::Datagram),
        ("probe.sample", Class::Datagram),
        ("probe.length", Class::Datagram),
    ];
    fn variant(&self) -> u8 {
        match self {
            Self::Reserve { .. } => 0,
            Self::Claim { .. } => 1,
            Self::Grant { .. } => 2,
            Self::Nothing { .. } => 3,
            Self::Cancel { .. } => 4,
            Self::Sample { .. } => 5,
            Self::Length { .. } => 6,
        }
    }

    fn allowed(&self, envelope: &Envelope<'_>) -> bool {
        // A job has no more groups than tasks.
        match *self {
            Self::Reserve { job, group, count, .. } => {
                envelope.downwards() && count > 0 && envelope.has_task(job.task(group))
            }
            Self::Nothing { job, group } | Self::Cancel { job, group } => {
                envelope.downwards() && envelope.has_task(job.task(group))
            }
            Self::Grant { row, group } => {
                envelope.downwards() && envelope.has_row(&row) && envelope.has_task(row.job.task(group))
            }
            Self::Sample { task, .. } => envelope.downwards() && envelope.has_task(task),
            Self::Claim { job, group, .. } => envelope.upwards() && envelope.has_task(job.task(group)),
            Self::Length { task, .. } => envelope.upwards() && envelope.has_task(task),
        }
    }
}
