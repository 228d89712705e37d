//! `route(now, src, dst, class, bytes) -> Verdict`: all that the emulated network decides.
//!
//! Delay and loss of the n-th message from one endpoint to another are pure functions of (seed, purpose,
//! source, destination, n): no other link, no time and no policy changes them. Only a rate makes messages
//! depend on each other, through the moment until which their link is busy.
//!
//! **Datagrams** are transmitted once. **Stream messages** are transmitted until one transmission gets
//! through: the second follows the first after the retransmission timeout, each further one after twice the
//! span before it. Retransmissions of a message count as attempts 1, 2, … of message n, with delays and
//! losses of their own. If none has got through when the peer timeout has passed, the message is
//! *unreachable*; loss alone can bring that about only if it defeats every attempt in that time. Messages
//! don't wait for each other's repetitions, as those of separate QUIC streams don't.
//!
//! **Faults** are known in advance, so one that begins while a message is under way is taken into account
//! when it is sent:
//! - A transmission is lost if a partition stands at any moment between its departure and its arrival.
//! - A transmission that arrives while its destination is down is lost. What was sent to an incarnation that
//!   has crashed since never reaches the next: a datagram is gone, a stream message is reset, and its sender
//!   learns so when it arrives or when the destination is back, whichever is later, and not later than the
//!   peer timeout. What is sent while the destination is down may reach its next incarnation.
//! - Deliveries to a paused host wait until it goes on, however long; its own repetitions too.
//! - Acknowledgements are not modelled: a one-way partition stops messages in its direction only.

mod transmit;

use volary_actors::base::{Address, Class, Endpoint, Purpose, Span, Time};

use crate::config::{Loss, Network};
use crate::error::Error;
use crate::faults::Faults;
use crate::links::Links;
use crate::model::{self, Limit, Model};
use crate::state::{LinkState, States, Table};
use crate::verdict::{Stats, Verdict};

/// The emulated network of a run.
#[derive(Clone, Debug)]
pub struct Fabric {
    world: World,
    states: States,
    stats: Stats,
}

/// What never changes during a run.
#[derive(Clone, Debug)]
struct World {
    links: Links,
    models: Vec<Model>,
    faults: Faults,
    /// No faults: constant links need no further look.
    calm: bool,
    peer_timeout: Span,
    correlation: f64,
    delay: Address,
    loss: Address,
    duplicate: Address,
    reorder: Address,
}

/// A message on its way through the rules.
struct Passage<'a> {
    world: &'a World,
    model: &'a Model,
    stats: &'a mut Stats,
    /// What its link remembers; `count` is its number on the link.
    link: LinkState,
    now: Time,
    src: Endpoint,
    dst: Endpoint,
    class: Class,
    bytes: u32,
}

impl Fabric {
    /// A network for endpoints `0..endpoints`, of which the first `hubs` talk to most others (clients and
    /// schedulers do): links from and to them are found without a search.
    ///
    /// # Errors
    /// A combination of settings that cannot be meant, or `links` or `faults` for another number of endpoints;
    /// keys start at
    /// `network` or `link`.
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

    /// Looks at what [`route`](Self::route) will need for that link: of several links, all before the first message, so
    /// that their cache misses overlap. Changes nothing.
    #[inline]
    pub fn touch(&self, src: Endpoint, dst: Endpoint) {
        self.states.touch(src, dst);
    }

    /// What happens to a message of that many bytes sent now. Calls for one link must come in the order of
    /// sending; the sender must be up.
    #[inline]
    pub fn route(&mut self, now: Time, src: Endpoint, dst: Endpoint, class: Class, bytes: u32) -> Verdict {
        let world = &self.world;
        let model = &world.models[world.links.class(src, dst)];
        // What most runs ask for must cost no more than its draw.
        if !(model.only_delay && world.calm) {
            return self.judge(now, src, dst, class, bytes);
        }
        let after = model.fixed.unwrap_or_else(|| {
            let count = self.states.next(src, dst).count;
            model.delay.sample(|| Trail { src, dst, count }.within(world.delay))
        });
        let books = self.stats.of_mut(class);
        books.sent += 1;
        books.delivered += 1;
        books.propagation_ns += after.0;
        Verdict::Deliver { after, retransmissions: 0 }
    }

    /// How long every message takes, if that is the same for all, nothing is lost and nobody fails.
    #[must_use]
    pub fn common_delay(&self) -> Option<Span> {
        let world = &self.world;
        let first = world.models.first()?.fixed?;
        let alike = |model: &Model| model.only_delay && model.fixed == Some(first);
        (world.calm && world.models.iter().all(alike)).then_some(first)
    }

    /// Enters so many messages into the books that take the [`common_delay`](Self::common_delay).
    pub fn told(&mut self, class: Class, count: u64, after: Span) {
        let books = self.stats.of_mut(class);
        books.sent += count;
        books.delivered += count;
        books.propagation_ns += count * after.0;
    }

    fn judge(&mut self, now: Time, src: Endpoint, dst: Endpoint, class: Class, bytes: u32) -> Verdict {
        let world = &self.world;
        let model = &world.models[world.links.class(src, dst)];
        let link = self.states.next(src, dst);
        self.stats.of_mut(class).sent += 1;
        let mut passage = Passage { world, model, stats: &mut self.stats, link, now, src, dst, class, bytes };
        passage.step_chain();
        let verdict = match class {
            Class::Datagram => passage.datagram(),
            Class::Stream => passage.stream(),
        };
        let link = passage.link;
        if model.remembers() {
            self.states.store(src, dst, link);
        }
        verdict
    }

    /// What the network did so far.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The fault schedule.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        &self.world.faults
    }

    /// The link classes.
    #[must_use]
    pub const fn links(&self) -> &Links {
        &self.world.links
    }

    /// Whether a datagram can be lost at all: repairs that cost messages are worth arming only then.
    #[must_use]
    pub fn loses_datagrams(&self) -> bool {
        !self.world.calm
            || self
                .world
                .models
                .iter()
                .any(|model| !model.loss.is_none() || model.limit.is_some_and(Limit::drops))
    }

    /// Mean one-way delay of a class of links without faults, in seconds.
    ///
    /// # Panics
    /// There is no such class.
    #[must_use]
    pub fn mean_delay(&self, class: usize) -> f64 {
        self.world.models[class].delay.mean()
    }
}

/// Refuses links or faults made for another number of endpoints.
fn check_size(key: &str, known: Option<u32>, endpoints: u32) -> Result<(), Error> {
    known.filter(|&known| known != endpoints).map_or(Ok(()), |known| {
        Err(Error::at(
            key,
            format!("it is about {known} endpoints, the run has {endpoints}"),
            "resolve it for the run's layout",
        ))
    })
}

/// Which message it is: the `count`-th from `src` to `dst`.
#[derive(Clone, Copy)]
struct Trail {
    src: Endpoint,
    dst: Endpoint,
    count: u32,
}

impl Trail {
    /// The address of this message within a family of draws.
    #[inline]
    const fn within(self, family: Address) -> Address {
        family.at(self.src.0 as u64).at(self.dst.0 as u64).at(self.count as u64)
    }
}

impl Passage<'_> {
    #[inline]
    const fn trail(&self) -> Trail {
        Trail { src: self.src, dst: self.dst, count: self.link.count }
    }

    /// Lets the loss chain of the link make its step for this message.
    fn step_chain(&mut self) {
        let Loss::GilbertElliott(ge) = self.model.loss else { return };
        if self.link.count == 0 {
            // The state before the first message: the stationary law, or short-lived links would lose less.
            let start = self.world.loss.at(u64::from(self.src.0)).at(u64::from(self.dst.0)).unit();
            self.link.bad = start < ge.share_bad();
        }
        self.link.bad = step(ge, self.link.bad, self.trail().within(self.world.loss).unit());
    }
}

/// The state after one step of the chain.
fn step(ge: crate::config::GilbertElliott, bad: bool, draw: f64) -> bool {
    if bad { draw >= ge.r.get() } else { draw < ge.p.get() }
}
