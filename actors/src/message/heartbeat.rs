//! Yaq-d: periodic reports of the wait at a node.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{Span, Time};

/// The state at a given time. The newest one wins; a lost one is superseded by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Heartbeat {
    /// Node → scheduler.
    Wait {
        /// How long a new task would wait for a core.
        wait: Span,
        /// The part of it that passes without further completions: what is left of the running tasks, per core.
        passing: Span,
        /// When it was so.
        at: Time,
    },
}

protocol! {
    Heartbeat in run;
    Wait = "heartbeat.wait", Datagram, Node -> Scheduler: Self::Wait { .. },
}
