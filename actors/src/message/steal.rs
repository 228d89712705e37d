//! Hawk: an idle node takes over reservations that wait behind long tasks elsewhere.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::JobId;

/// Stealing, between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Steal {
    /// Request for reservations.
    Ask,
    /// A reservation; several of them are an answer.
    Loot {
        /// Number of the scheduler that made it.
        scheduler: u32,
        /// The job.
        job: JobId,
        /// Places, at least one.
        count: u32,
        /// Whether it repairs a loss.
        repair: bool,
    },
    /// An empty answer.
    Nothing,
}

protocol! {
    Steal in run;
    Ask = "steal.ask", Datagram, Node -> Node: Self::Ask,
    Loot = "steal.loot", Datagram, Node -> Node: Self::Loot { scheduler, job, count, .. }
        if count > 0 && run.has_scheduler(scheduler) && run.has_job(job) => job,
    Nothing = "steal.nothing", Datagram, Node -> Node: Self::Nothing,
}
