//! Yaq-d: nodes that say from time to time how long one would wait there.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;
use crate::base::{Span, Time};

/// State as of a time; the newest wins, a lost one is made good by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Heartbeat {
    /// Node → scheduler.
    Wait {
        /// How long a new task would wait for a core.
        wait: Span,
        /// How much of that passes by itself: what is left of the task that runs, a core.
        passing: Span,
        /// When it was so.
        at: Time,
    },
}

protocol! {
    Heartbeat in run;
    Wait = "heartbeat.wait", Datagram, Node -> Scheduler: Self::Wait { .. },
}
