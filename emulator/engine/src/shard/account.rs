//! What a shard tells of itself.

use volary_actors::base::{Endpoint, Time};
use volary_actors::layout::Layout;
use volary_netem::Fabric;

use super::{Observer, Outbox, Shard, Traffic};
use crate::cores::Cores;

impl<'a, O: Observer> Shard<'a, O> {
    /// What waits to go to other shards.
    pub const fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Events pending.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.queue.len()
    }

    /// The time of the last event.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events handled.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Hash of the order of events so far.
    #[must_use]
    pub const fn order_hash(&self) -> u64 {
        self.hash
    }

    /// Messages sent so far.
    #[must_use]
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The network, for its counters.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.parts.fabric
    }

    /// The cores, for their accounts and bursts.
    #[must_use]
    pub const fn cores(&self) -> &Cores {
        &self.parts.cores
    }

    /// Who is who.
    #[must_use]
    pub const fn layout(&self) -> &'a Layout {
        self.parts.layout
    }

    /// Whether an endpoint is up now.
    #[must_use]
    pub fn is_up(&self, endpoint: Endpoint) -> bool {
        self.residents[endpoint.index()].machine.is_some()
    }
}
