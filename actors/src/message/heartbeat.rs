//! Periodic reports of nodes: their wait, attained service or room.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{Span, Time};

/// The state at a given time. The newest one wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Heartbeat {
    /// Node → scheduler.
    Wait {
        /// Time for which a new task would wait for a core.
        wait: Span,
        /// The part of it that passes by itself: the remaining estimate of the running tasks, per core.
        passing: Span,
        /// Time of the observation.
        at: Time,
    },
}

protocol! {
    Heartbeat in run;
    Wait = "heartbeat.wait", Datagram, Node -> Scheduler: Self::Wait { .. },
}

/// The state of a node for a central scheduler. The newest one wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NodeReport {
    /// Node → scheduler: attained service of the copies that run or are suspended here (Kairos, algorithm 1).
    Service {
        /// Number of copies.
        tasks: u32,
        /// The sum of their attained service, ms.
        attained_ms: u32,
        /// Its standard deviation, ms.
        spread_ms: u32,
        /// Time of the observation.
        at: Time,
    },
    /// Node → scheduler: containers that fit beside those that run here (YARN).
    Room {
        /// Number of containers.
        slots: u32,
        /// Time of the observation.
        at: Time,
    },
}

protocol! {
    NodeReport in run;
    Service = "heartbeat.service", Datagram, Node -> Scheduler: Self::Service { .. },
    Room = "heartbeat.room", Datagram, Node -> Scheduler: Self::Room { .. },
}
