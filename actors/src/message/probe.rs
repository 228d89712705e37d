//! Scheduler ↔ node: late binding and sampling (Sparrow; later Hawk and Eagle).

use serde::{Deserialize, Serialize};

use super::launch::Row;
use super::protocol::protocol;
use crate::base::{JobId, TaskId};

/// Reservations, claims and samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Probe {
    /// Scheduler → node: reserve `count` places in the queue for tasks of this group of a job.
    Reserve {
        /// The job.
        job: JobId,
        /// The group of its tasks; 0 where the whole job is one group. Copies requested later can be further groups.
        group: u32,
        /// Reservations, at least one.
        count: u32,
        /// Whether it repairs a loss: then so do the claims it leads to.
        repair: bool,
    },
    /// Node → scheduler: a core is free and held for a task of this group.
    Claim {
        /// The job.
        job: JobId,
        /// The group.
        group: u32,
        /// Whether the reservation, or probe, repaired a loss.
        repair: bool,
    },
    /// Scheduler → node: tasks for the held core.
    Grant {
        /// The tasks to run.
        row: Row,
        /// The group that was claimed for.
        group: u32,
    },
    /// Scheduler → node: no task is left.
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
    /// Scheduler → node: request for the queue length.
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

// A count of zero would be decremented.
protocol! {
    Probe in run;
    Reserve = "probe.reserve", Datagram, Scheduler -> Node:
        Self::Reserve { job, count, .. } if count > 0 && run.has_job(job) => job,
    Claim = "probe.claim", Stream, Node -> Scheduler:
        Self::Claim { job, .. } if run.has_job(job) => job,
    Grant = "probe.grant", Stream, Scheduler -> Node:
        Self::Grant { row, .. } if row.fits(run) => row.job,
    Nothing = "probe.nothing", Stream, Scheduler -> Node:
        Self::Nothing { job, .. } if run.has_job(job) => job,
    Cancel = "probe.cancel", Datagram, Scheduler -> Node:
        Self::Cancel { job, .. } if run.has_job(job) => job,
    Sample = "probe.sample", Datagram, Scheduler -> Node:
        Self::Sample { task, .. } if run.has_task(task) => task.job,
    Length = "probe.length", Datagram, Node -> Scheduler:
        Self::Length { task, .. } if run.has_task(task) => task.job,
}
