//! The time that actors take for messages.
//!
//! An actor with handling times is a single server with a queue: it handles messages one after another in the order of
//! their arrival, and the effects of a message leave when it has been handled. Timers, and messages that take no time,
//! wait in the same queue. Messages between a node and its cores take no time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{DistributionSpec, Span};
use volary_actors::message::{kind_name, kinds};

/// The `[actors]` table: the time that actors take to handle messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorsSection {
    /// Time that an actor takes for a message, by its role (`client`, `scheduler`, `node`, `auxiliary`) or by the kind
    /// of the message, such as `launch.row`: the names in `messages.by_kind` of the results. If both are given,
    /// the time of the kind applies. Messages without an entry take no time.
    pub handling: BTreeMap<String, DistributionSpec<Span>>,
    /// The processor of an actor.
    #[serde(default)]
    pub on: Processor,
}

/// The processor of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// A healthy processor of its own.
    #[default]
    Own,
    /// The first core of a node, with its speed and interference. A node manager uses its own node; scheduler `i` and
    /// auxiliary `i` use node `i` modulo the number of nodes. Clients have processors of their own. Tasks on the core
    /// do not slow it down.
    Cores,
}

impl ActorsSection {
    /// Checks the names of the table.
    ///
    /// # Errors
    /// A name that is neither a role nor a kind.
    pub fn check(&self) -> Result<(), &str> {
        let unknown = self.handling.keys().find(|name| !Self::names().any(|known| known == *name));
        unknown.map_or(Ok(()), |name| Err(name))
    }

    /// Names that the table can have.
    pub fn names() -> impl Iterator<Item = &'static str> {
        // Messages between a node and its cores take no time.
        let kinds = kinds().map(|(kind, _)| kind).filter(|kind| !kind.starts_with("core."));
        ROLES.into_iter().chain(kinds)
    }

    /// The time for a message of a kind to an actor of a role.
    pub(crate) fn time(&self, role: &str, kind: u8) -> Option<&DistributionSpec<Span>> {
        self.handling.get(kind_name(kind)).or_else(|| self.handling.get(role))
    }
}

/// The roles of actors that take time.
pub const ROLES: [&str; 4] = ["client", "scheduler", "node", "auxiliary"];

/// Load of the actors of a role, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RoleLoad {
    /// Number of messages that took time and were handled.
    pub handled: u64,
    /// Sum of the waits of these messages before they were handled, or until the end of the run.
    pub waited: u64,
    /// The longest wait.
    pub longest_wait: u64,
    /// Sum of the times in which the actors were busy.
    pub busy: u64,
    /// The time in which the busiest actor was busy.
    pub busiest: u64,
    /// Largest number of inputs at an actor, including the one being handled.
    pub longest_queue: u32,
}

impl RoleLoad {
    /// Adds the load of further actors.
    pub fn add(&mut self, other: &Self) {
        self.handled = self.handled.saturating_add(other.handled);
        self.waited = self.waited.saturating_add(other.waited);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.busy = self.busy.saturating_add(other.busy);
        self.busiest = self.busiest.max(other.busiest);
        self.longest_queue = self.longest_queue.max(other.longest_queue);
    }
}
