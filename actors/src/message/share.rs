//! Eagle: probes that nodes with long work reject, and the bitmap of these nodes.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{JobId, Time};

/// A time in a form that leaves room in a message.
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

/// A stretch of the bitmap: `len` blocks of [`Blocks::NODES`] nodes from block `first` on, all with these bits.
/// A bitmap is longer than a message, so it travels in as few of these as it can.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blocks {
    /// The first block.
    pub first: u16,
    /// Number of blocks, at least one.
    pub len: u16,
    /// One bit for each node of a block, set if the node has long work.
    pub bits: [u32; 3],
    /// Time at which the central scheduler stated it.
    pub at: Stamp,
}

impl Blocks {
    /// Nodes of a block.
    pub const NODES: u32 = 96;
}

/// State sharing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Share {
    /// Scheduler → node: `count` places in your queue for tasks of this job, unless you have long work.
    Probe {
        /// The job.
        job: JobId,
        /// Places, at least one.
        count: u32,
        /// Number of earlier rejections.
        round: u16,
        /// Whether the node must accept, as a last resort.
        last: bool,
        /// Whether it repairs a loss.
        repair: bool,
        /// Timestamp of the newest block of the bitmap that the scheduler has.
        known: Stamp,
    },
    /// Node → scheduler: the places are accepted.
    Accepted {
        /// The job.
        job: JobId,
    },
    /// Node → scheduler: the places are rejected, because long tasks wait or run here.
    Rejected {
        /// The job.
        job: JobId,
        /// Places asked for.
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
    Probe = "share.probe", Datagram, Scheduler -> Node:
        Self::Probe { job, count, .. } if count > 0 && run.has_job(job) => job,
    Accepted = "share.accepted", Datagram, Node -> Scheduler:
        Self::Accepted { job } if run.has_job(job) => job,
    Rejected = "share.rejected", Datagram, Node -> Scheduler:
        Self::Rejected { job, .. } if run.has_job(job) => job,
    Bits = "share.bits", Datagram, Scheduler -> Node | Node -> Scheduler: Self::Bits(Blocks { first, len, .. })
        if len > 0 && u32::from(first) + u32::from(len) <= run.layout.nodes().div_ceil(Blocks::NODES),
}
