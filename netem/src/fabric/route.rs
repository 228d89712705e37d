//! The emulated network: the route of a message, with a fast path for links of constant distribution.

use volary_actors::base::{Address, Class, Endpoint, Purpose, Span, Time};

use super::transmit::{Trail, Transmission, World};
use crate::config::Network;
use crate::error::Error;
use crate::faults::Faults;
use crate::links::Links;
use crate::model::{self, Limit, Model};
use crate::state::{States, Table};
use crate::verdict::{Stats, Verdict};

/// The emulated network of a run.
#[derive(Clone, Debug)]
pub struct Fabric {
    world: World,
    states: States,
    stats: Stats,
}

impl Fabric {
    /// A network for endpoints `0..endpoints`. The first `hubs` of them (clients and schedulers) communicate with most
    /// others: the state of their links is found without a search.
    ///
    /// # Errors
    /// Contradictory settings, or `links` or `faults` for another number of endpoints; keys start at `network` or
    /// `link`.
    pub fn new(
        network: &Network,
        links: Links,
        endpoints: u32,
        hubs: u32,
        faults: Faults,
        seed: u64,
    ) -> Result<Self, Error> {
        check_size("topology", links.endpoints(), endpoints)?;
        check_size("network.fault", faults.endpoints(), endpoints)?;
        let models = model::build(network, &links, !faults.is_empty())?;
        let states = if models.iter().any(Model::remembers) {
            States::Full(Table::new(hubs, endpoints))
        } else if faults.draws() || models.iter().any(|model| model.fixed.is_none()) {
            States::Counts(Table::new(hubs, endpoints))
        } else {
            States::None
        };
        let world = World {
            links,
            models,
            calm: faults.is_empty(),
            faults,
            peer_timeout: network.peer_timeout,
            correlation: network.correlation.get(),
            delay: Address::new(seed, Purpose::Delay),
            loss: Address::new(seed, Purpose::Loss),
            duplicate: Address::new(seed, Purpose::Duplicate),
            reorder: Address::new(seed, Purpose::Reorder),
        };
        Ok(Self { world, states, stats: Stats::default() })
    }

    /// Prefetches the state that [`route`](Self::route) needs for that link. Called for several links before the first
    /// message, so that their cache misses overlap.
    #[inline]
    pub fn touch(&self, src: Endpoint, dst: Endpoint) {
        self.states.touch(src, dst);
    }

    /// The verdict on a message of that many bytes sent now. Calls for one link must come in the order of sending; the
    /// sender must be up.
    #[inline]
    pub fn route(&mut self, now: Time, src: Endpoint, dst: Endpoint, class: Class, bytes: u32) -> Verdict {
        let world = &self.world;
        let model = &world.models[world.links.class(src, dst)];
        // Fast path of most runs: it costs no more than the draw.
        if !(model.only_delay && world.calm) {
            return self.judge(now, src, dst, class, bytes);
        }
        let after = model.fixed.unwrap_or_else(|| {
            let count = self.states.next(src, dst).count;
            model.delay.sample(|| Trail { src, dst, count }.within(world.delay))
        });
        let counts = self.stats.of_mut(class);
        counts.sent += 1;
        counts.delivered += 1;
        counts.propagation_ns += after.0;
        Verdict::Deliver { after, retransmissions: 0 }
    }

    /// The delay of every message, if it is the same for all and there are no losses and no faults.
    pub fn common_delay(&self) -> Option<Span> {
        let world = &self.world;
        let first = world.models.first()?.fixed?;
        let alike = |model: &Model| model.only_delay && model.fixed == Some(first);
        (world.calm && world.models.iter().all(alike)).then_some(first)
    }

    /// Counts `count` messages that take the [`common_delay`](Self::common_delay).
    #[inline]
    pub fn count_delivered(&mut self, class: Class, count: u64, after: Span) {
        let counts = self.stats.of_mut(class);
        counts.sent += count;
        counts.delivered += count;
        counts.propagation_ns += count * after.0;
    }

    fn judge(&mut self, now: Time, src: Endpoint, dst: Endpoint, class: Class, bytes: u32) -> Verdict {
        let world = &self.world;
        let model = &world.models[world.links.class(src, dst)];
        let link = self.states.next(src, dst);
        self.stats.of_mut(class).sent += 1;
        let mut transmission =
            Transmission { world, model, stats: &mut self.stats, link, now, src, dst, class, bytes };
        transmission.step_chain();
        let verdict = match class {
            Class::Datagram => transmission.datagram(),
            Class::Stream => transmission.stream(),
        };
        let link = transmission.link;
        if model.remembers() {
            self.states.store(src, dst, link);
        }
        verdict
    }

    /// The counts so far.
    #[inline]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The fault schedule.
    #[inline]
    pub const fn faults(&self) -> &Faults {
        &self.world.faults
    }

    /// The link classes.
    pub const fn links(&self) -> &Links {
        &self.world.links
    }

    /// Whether a datagram can be lost. If not, policies need not send repair messages.
    pub fn loses_datagrams(&self) -> bool {
        !self.world.calm
            || self
                .world
                .models
                .iter()
                .any(|model| !model.loss.is_none() || model.limit.is_some_and(Limit::drops))
    }
}

/// Rejects links or faults made for another number of endpoints.
fn check_size(key: &str, known: Option<u32>, endpoints: u32) -> Result<(), Error> {
    known.filter(|&known| known != endpoints).map_or(Ok(()), |known| {
        Err(Error::at(
            key,
            format!("it is for {known} endpoints, the run has {endpoints}"),
            "resolve it for the run's layout",
        ))
    })
}
