//! Load of actors that take time for messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::NanIsNull;
use crate::handling::RoleLoad;

/// Wait, as a share of the run, and length of a queue above which an actor was overloaded.
const OVERLOADED: (f64, u32) = (0.01, 20);

/// Load of the actors of a role that take time for messages, as single servers with a queue. `handled`, `wait_s` and
/// `queue` cover only messages that take time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ActorLoad {
    /// Number of messages that took time.
    pub handled: u64,
    /// Mean share of the run in which an actor was busy.
    #[serde(with = "NanIsNull")]
    pub utilization: f64,
    /// Share of the run in which the busiest actor was busy.
    #[serde(with = "NanIsNull")]
    pub busiest: f64,
    /// Mean wait of a message before it was handled, seconds.
    #[serde(with = "NanIsNull")]
    pub wait_s: f64,
    /// Longest wait, seconds.
    #[serde(with = "NanIsNull")]
    pub longest_wait_s: f64,
    /// Mean number of messages that wait at an actor.
    #[serde(with = "NanIsNull")]
    pub queue: f64,
    /// Largest number of inputs at an actor, including the one being handled.
    pub longest_queue: u32,
}

impl ActorLoad {
    /// The load of `actors` actors of a role in a run of `seconds`.
    pub fn new(load: &RoleLoad, actors: u32, seconds: f64) -> Self {
        let time = seconds * f64::from(actors);
        let waited = load.waited as f64 * 1e-9;
        Self {
            handled: load.handled,
            utilization: load.busy as f64 * 1e-9 / time,
            busiest: load.busiest as f64 * 1e-9 / seconds,
            wait_s: waited / load.handled as f64,
            longest_wait_s: load.longest_wait as f64 * 1e-9,
            queue: waited / time,
            longest_queue: load.longest_queue,
        }
    }

    /// A note if an actor of the role was overloaded in a run of `seconds`, all the time or for a while.
    pub fn overload(&self, role: &str, seconds: f64) -> Option<String> {
        let Self { busiest, longest_wait_s, longest_queue, .. } = self;
        let (wait, queue) = (OVERLOADED.0 * seconds, OVERLOADED.1);
        (*longest_wait_s > wait && *longest_queue > queue).then(|| {
            format!(
                "the busiest {role} was busy for {:.1} % of the time; messages waited for up to {longest_wait_s:.3} s, \
                 {longest_queue} at a time: lower actors.handling or the rate of messages",
                busiest * 100.0
            )
        })
    }
}
