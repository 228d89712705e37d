//! Scheduler ↔ node: late binding and sampling (Sparrow; later Hawk and Eagle).
//!
//! Hawk's idle nodes take over reservations that wait behind long tasks on other nodes. Eagle's nodes with long work
//! reject probes; probes and answers carry the bitmap of these nodes.

use serde::{Deserialize, Serialize};

use super::launch::Row;
use super::protocol::protocol;
use crate::base::{JobId, TaskId, Time};

/// Reservations, claims and samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Probe {
    /// Scheduler → node: queue `count` reservations for tasks of this group of a job.
    Reserve {
        /// The job.
        job: JobId,
        /// The group of the job's tasks; 0 where the whole job is one group. Copies requested later can be further
        /// groups.
        group: u32,
        /// Number of reservations, at least one.
        count: u32,
        /// Whether the message repairs a loss; claims of its reservations are then repairs, too.
        repair: bool,
    },
    /// Node → scheduler: a core is free and held for a task of this group.
    Claim {
        /// The job.
        job: JobId,
        /// The group.
        group: u32,
        /// Whether the reservation or probe repaired a loss.
        repair: bool,
    },
    /// Scheduler → node: tasks for the held core.
    Grant {
        /// The tasks to run.
        row: Row,
        /// The group of the claim.
        group: u32,
    },
    /// Scheduler → node: no task of the group is left.
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
        /// Whether the message repairs a loss; its answer is then a repair, too.
        repair: bool,
    },
    /// Node → scheduler: number of waiting and running tasks; with free cores, minus the number of free cores.
    Length {
        /// The task to be placed.
        task: TaskId,
        /// The length of the queue; negative if cores are free.
        length: i32,
    },
}

// A node decrements the count, so it must not be zero.
protocol! {
    Probe in run;
    Reserve = "probe.reserve", Datagram, 21, Scheduler -> Node:
        Self::Reserve { job, count, .. } if count > 0 && run.has_job(job) => job,
    Claim = "probe.claim", Stream, 17, Node -> Scheduler:
        Self::Claim { job, .. } if run.has_job(job) => job,
    Grant = "probe.grant", Stream, 31, Scheduler -> Node:
        Self::Grant { row, .. } if row.fits(run) => row.job,
    Nothing = "probe.nothing", Stream, 16, Scheduler -> Node:
        Self::Nothing { job, .. } if run.has_job(job) => job,
    Cancel = "probe.cancel", Datagram, 16, Scheduler -> Node:
        Self::Cancel { job, .. } if run.has_job(job) => job,
    Sample = "probe.sample", Datagram, 17, Scheduler -> Node:
        Self::Sample { task, .. } if run.has_task(task) => task.job,
    Length = "probe.length", Datagram, 20, Node -> Scheduler:
        Self::Length { task, .. } if run.has_task(task) => task.job,
}

/// Stealing, between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Steal {
    /// Request for reservations.
    Ask,
    /// A reservation; an answer can consist of several.
    Loot {
        /// Number of the scheduler that made the reservation.
        scheduler: u32,
        /// The job.
        job: JobId,
        /// Number of reservations, at least one.
        count: u32,
        /// Whether the reservation repairs a loss.
        repair: bool,
    },
    /// The answer of a node without reservations to give.
    Nothing,
}

protocol! {
    Steal in run;
    Ask = "steal.ask", Datagram, 8, Node -> Node: Self::Ask,
    Loot = "steal.loot", Datagram, 21, Node -> Node: Self::Loot { scheduler, job, count, .. }
        if count > 0 && run.has_scheduler(scheduler) && run.has_job(job) => job,
    Nothing = "steal.nothing", Datagram, 8, Node -> Node: Self::Nothing,
}

/// A time in a compact form, which leaves room in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp([u32; 2]);

impl From<Time> for Stamp {
    fn from(time: Time) -> Self {
        Self([(time.0 >> 32) as u32, time.0 as u32])
    }
}

impl From<Stamp> for Time {
    fn from(Stamp([high, low]): Stamp) -> Self {
        Self(u64::from(high) << 32 | u64::from(low))
    }
}

/// A stretch of the bitmap: `len` blocks of [`Blocks::NODES`] nodes from block `first` on, all with the same bits. A
/// bitmap is longer than a message, so it travels in as few stretches as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blocks {
    /// The first block.
    pub first: u16,
    /// Number of blocks, at least one.
    pub len: u16,
    /// One bit for each node of a block, set if the node has long work.
    pub bits: [u32; 3],
    /// Time at which the central scheduler issued this bitmap.
    pub at: Stamp,
}

impl Blocks {
    /// Number of nodes in a block.
    pub const NODES: u32 = 96;
}

/// State sharing: probes that nodes can reject, and the bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Share {
    /// Scheduler → node: queue `count` reservations for tasks of this job, unless the node has long work.
    Probe {
        /// The job.
        job: JobId,
        /// Number of reservations, at least one.
        count: u32,
        /// Number of earlier rejections.
        round: u16,
        /// Whether the node must accept, as a last resort.
        last: bool,
        /// Whether the probe repairs a loss.
        repair: bool,
        /// Timestamp of the newest block of the bitmap that the scheduler has.
        known: Stamp,
    },
    /// Node → scheduler: the reservations are accepted.
    Accepted {
        /// The job.
        job: JobId,
    },
    /// Node → scheduler: the reservations are rejected, because long tasks wait or run on the node.
    Rejected {
        /// The job.
        job: JobId,
        /// Number of reservations that the probe requested.
        count: u32,
        /// The round of the probe.
        round: u16,
        /// Whether the probe repaired a loss.
        repair: bool,
    },
    /// Scheduler → node with a long task, node → scheduler with an answer: a part of the bitmap.
    Bits(Blocks),
}

protocol! {
    Share in run (fragments: Self::Bits(_));
    Probe = "share.probe", Datagram, 28, Scheduler -> Node:
        Self::Probe { job, count, .. } if count > 0 && run.has_job(job) => job,
    Accepted = "share.accepted", Datagram, 12, Node -> Scheduler:
        Self::Accepted { job } if run.has_job(job) => job,
    Rejected = "share.rejected", Datagram, 19, Node -> Scheduler:
        Self::Rejected { job, .. } if run.has_job(job) => job,
    Bits = "share.bits", Datagram, 32, Scheduler -> Node | Node -> Scheduler: Self::Bits(Blocks { first, len, .. })
        if len > 0 && u32::from(first) + u32::from(len) <= run.layout.nodes().div_ceil(Blocks::NODES),
}
