//! The network's decisions: `route(now, src, dst, class, bytes) -> Verdict`.
//!
//! Messages on links that only delay them take a fast path. Any other message is a sequence of transmissions, from
//! which its class derives the verdict.
//!
//! Delay and loss of the n-th message from one endpoint to another are pure functions of (seed, purpose, source,
//! destination, n). They do not depend on other links, on time or on the policy. Only messages of a link with a rate
//! depend on each other, through the time until which the link is busy.
//!
//! **Datagrams** are transmitted once, or twice if the network duplicates them. **Stream messages** are transmitted
//! until one transmission arrives. The second transmission follows the first after the retransmission timeout, and each
//! further one after twice the previous span. Retransmissions of message n are its attempts 1, 2, …, each with its own
//! delay and loss. If no attempt has arrived when the peer timeout has passed, the message is *unreachable*; loss alone
//! causes this only if it defeats every attempt in that time. As on separate QUIC streams, messages do not wait for
//! each other's retransmissions. Every transmission occupies a link with a rate, even if it is lost on the way, so loss
//! makes no link faster.
//!
//! **Faults** are known in advance. A fault that begins while a message is in flight is therefore taken into account
//! when the message is sent:
//! - A transmission is lost if a partition exists at any moment between its departure and its arrival.
//! - A transmission that arrives while its destination is down is lost.
//! - If the destination crashes between sending and arrival, its next incarnation never gets the message. A datagram is
//!   gone. A stream message is reset: its sender is notified when the message arrives or when the destination is back,
//!   whichever is later, but not later than the peer timeout.
//! - A datagram that is sent while the destination is down may reach its next incarnation; a stream message is reset.
//! - Deliveries to a paused host wait until the host resumes, however long. Retransmissions of a paused host wait too.

use volary_actors::base::{Address, Class, Endpoint, Purpose, Span, Time};

use crate::config::{GilbertElliott, Loss, Network};
use crate::error::Error;
use crate::faults::Faults;
use crate::links::Links;
use crate::model::{self, Limit, Model};
use crate::state::{LinkState, States, Table};
use crate::verdict::{Cause, ClassStats, Stats, Verdict};

/// The emulated network of a run.
#[derive(Clone, Debug)]
pub struct Fabric {
    world: World,
    states: States,
    stats: Stats,
    /// Time at which each endpoint's uplink becomes free; empty without uplinks.
    leaves: Vec<Time>,
}

impl Fabric {
    /// A network for endpoints `0..endpoints`. The first `hubs` of them (clients and schedulers) communicate with most
    /// others, so the state of their links is found without a search.
    ///
    /// # Errors
    /// An [`Error`] for contradictory settings, or for `links` or `faults` with another number of endpoints. Keys start
    /// at `network` or `link`.
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
        let leaves = vec![Time::ZERO; if network.uplink.is_some() { endpoints as usize } else { 0 }];
        Ok(Self { world, states, stats: Stats::default(), leaves })
    }

    /// Prefetches the state that [`route`](Self::route) needs for a link. Callers prefetch several links before the
    /// first message, so that the cache misses overlap.
    #[inline]
    pub fn touch(&self, src: Endpoint, dst: Endpoint) {
        self.states.touch(src, dst);
    }

    /// The verdict on a message of this number of bytes sent now. Calls for one link must come in the order of sending,
    /// and the sender must be up.
    #[inline]
    pub fn route(&mut self, sent: Time, src: Endpoint, dst: Endpoint, class: Class, bytes: u32) -> Verdict {
        let world = &self.world;
        let model = &world.models[world.links.class(src, dst)];
        // Fast path of most runs, which costs no more than the draws. With losses it saves a tenth of the instructions
        // of a run.
        let after = match (model.fixed, model.chance) {
            (Some(after), _) if world.calm => after,
            (None, Some(chance)) if world.calm => {
                let link = self.states.next(src, dst);
                let trail = Trail { src, dst, count: link.count };
                if chance > 0.0 && trail.within(world.loss).unit() < chance {
                    return self.judge(link, sent, (src, dst), class, bytes);
                }
                model.delay.sample(|| trail.within(world.delay))
            }
            _ => {
                let link = self.states.next(src, dst);
                return self.judge(link, sent, (src, dst), class, bytes);
            }
        };
        let counts = self.stats.of_mut(class);
        counts.sent += 1;
        counts.bytes += u64::from(bytes);
        counts.delivered += 1;
        counts.propagation_ns = counts.propagation_ns.saturating_add(after.0);
        Verdict::Deliver { after, retransmissions: 0 }
    }

    /// The delay of every message, if all messages have the same delay and there are no losses, faults or uplinks.
    pub fn common_delay(&self) -> Option<Span> {
        let world = &self.world;
        let first = world.models.first()?.fixed?;
        let alike = |model: &Model| model.fixed == Some(first);
        (world.calm && world.models.iter().all(alike)).then_some(first)
    }

    /// Counts `count` messages of this number of bytes that take the [`common_delay`](Self::common_delay).
    #[inline]
    pub fn count_delivered(&mut self, class: Class, count: u64, after: Span, bytes: u32) {
        let counts = self.stats.of_mut(class);
        counts.sent += count;
        counts.bytes += count * u64::from(bytes);
        counts.delivered += count;
        counts.propagation_ns = counts.propagation_ns.saturating_add(count.saturating_mul(after.0));
    }

    /// The verdict on the next message of a link, whose state before the message is `link`.
    fn judge(
        &mut self,
        link: LinkState,
        sent: Time,
        (src, dst): (Endpoint, Endpoint),
        class: Class,
        bytes: u32,
    ) -> Verdict {
        let world = &self.world;
        let model = &world.models[world.links.class(src, dst)];
        let counts = self.stats.of_mut(class);
        counts.sent += 1;
        counts.bytes += u64::from(bytes);
        let now = model.uplink.map_or(sent, |uplink| {
            let leaves = &mut self.leaves[src.index()];
            *leaves = sent.max(*leaves) + uplink.transmission(bytes.into());
            *leaves
        });
        let mut transmission =
            Transmission { world, model, stats: &mut self.stats, link, sent, now, src, dst, class, bytes };
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

    /// The link classes of the network.
    pub const fn links(&self) -> &Links {
        &self.world.links
    }

    /// Whether a datagram can be lost. Otherwise policies need not send repair messages.
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
            format!("resolved for {known} endpoints, but the run has {endpoints}"),
            "resolve the faults or links for the run's layout",
        ))
    })
}

/// The parts of the network that do not change during a run.
#[derive(Clone, Debug)]
struct World {
    links: Links,
    models: Vec<Model>,
    faults: Faults,
    /// Whether there are no faults.
    calm: bool,
    peer_timeout: Span,
    correlation: f64,
    delay: Address,
    loss: Address,
    duplicate: Address,
    reorder: Address,
}

/// A message while its verdict is computed.
struct Transmission<'a> {
    world: &'a World,
    model: &'a Model,
    stats: &'a mut Stats,
    /// State of the message's link; `count` is the message's number on the link.
    link: LinkState,
    /// Time of sending; a crash of either end after this time affects the message.
    sent: Time,
    /// Time at which the message leaves its endpoint.
    now: Time,
    src: Endpoint,
    dst: Endpoint,
    class: Class,
    bytes: u32,
}

/// The identity of a message: the `count`-th from `src` to `dst`.
#[derive(Clone, Copy)]
struct Trail {
    src: Endpoint,
    dst: Endpoint,
    count: u32,
}

impl Trail {
    /// The address of this message in a family of draws.
    #[inline]
    const fn within(self, family: Address) -> Address {
        family.at(self.src.0 as u64).at(self.dst.0 as u64).at(self.count as u64)
    }
}

/// The outcome of a transmission.
enum Outcome {
    /// The transmission arrives.
    Arrives(Flight),
    /// The transmission is lost.
    Lost(Cause),
    /// The addressed incarnation has crashed.
    Reset {
        /// The earliest time at which the sender can be notified.
        known: Time,
    },
}

/// A transmission that arrives, with the parts of its delay.
#[derive(Clone, Copy)]
struct Flight {
    /// Arrival at the destination's machine.
    arrives: Time,
    /// Time of delivery, which a pause of the destination holds back.
    delivered: Time,
    queueing: Span,
    propagation: Span,
}

impl Transmission<'_> {
    #[inline]
    const fn trail(&self) -> Trail {
        Trail { src: self.src, dst: self.dst, count: self.link.count }
    }

    /// Advances the link's loss chain by one step for this message.
    fn step_chain(&mut self) {
        let Loss::GilbertElliott(ge) = self.model.loss else { return };
        if self.link.count == 0 {
            // The state before the first message has the stationary distribution; otherwise short-lived links would
            // lose less.
            let start = self.world.loss.at(u64::from(self.src.0)).at(u64::from(self.dst.0)).unit();
            self.link.bad = start < ge.share_bad();
        }
        self.link.bad = step(ge, self.link.bad, self.trail().within(self.world.loss).unit());
    }

    /// A datagram has one transmission, or two if the network duplicates it. Both occupy the link. One draw decides the
    /// loss of both: otherwise duplication would lower the configured loss.
    fn datagram(&mut self) -> Verdict {
        let original = self.transmit(0, self.now);
        let duplicate = self.duplicate();
        let flight = match original {
            Outcome::Arrives(flight) => flight,
            Outcome::Lost(cause) => return self.drop(cause),
            Outcome::Reset { .. } => return self.drop(Cause::Crash),
        };
        let after = self.deliver(&flight, Span::ZERO);
        let Some(copy) = duplicate else { return Verdict::Deliver { after, retransmissions: 0 } };
        self.counts().duplicated += 1;
        Verdict::Twice { after, again: copy.delivered.since(self.sent) }
    }

    /// A stream message is transmitted until it arrives, or until the peer timeout makes its peer unreachable.
    fn stream(&mut self) -> Verdict {
        let deadline = self.now + self.world.peer_timeout;
        let (mut at, mut timeout, mut attempt) = (self.now, self.model.rto, 0);
        let mut cause = Cause::Loss;
        loop {
            match self.transmit(attempt, at) {
                // The first transmission may take any time; only retransmissions must arrive within the peer timeout.
                Outcome::Arrives(flight) if attempt == 0 || self.in_time(cause, flight.arrives, deadline) => {
                    let after = self.deliver(&flight, at.since(self.now));
                    return Verdict::Deliver { after, retransmissions: attempt };
                }
                Outcome::Arrives(_) => return self.unreachable(deadline, cause),
                Outcome::Reset { known } => {
                    self.counts().lost[Cause::Crash as usize] += 1;
                    return self.unreachable(known.min(deadline), Cause::Crash);
                }
                Outcome::Lost(why) => cause = why,
            }
            self.counts().lost[cause as usize] += 1;
            at = self.world.faults.resumes(self.src, at + timeout);
            if self.world.faults.crash_between(self.src, self.sent, at).is_some() {
                // The crash of the sender lost the state that repeats the message or reports the failure.
                self.counts().dropped[Cause::Crash as usize] += 1;
                return Verdict::Drop(Cause::Crash);
            }
            if !self.in_time(cause, at, deadline) {
                return self.unreachable(deadline, cause);
            }
            timeout = timeout + timeout;
            attempt += 1;
            let repeated = u64::from(self.bytes);
            let counts = self.counts();
            counts.retransmissions += 1;
            counts.bytes += repeated;
        }
    }

    /// Whether the sender still waits at `t`. A full buffer is local to the sender, which waits for it without limit.
    fn in_time(&self, cause: Cause, t: Time, deadline: Time) -> bool {
        cause == Cause::Congestion || t <= deadline
    }

    /// One transmission that begins at `at`.
    fn transmit(&mut self, attempt: u32, at: Time) -> Outcome {
        let model = self.model;
        let (trail, family) = (self.trail(), self.world.delay);
        let address = || trail.within(family);
        let mut propagation = if attempt == 0 {
            let first = self.link.count == 0;
            model.delay.follow(address, first, self.world.correlation, &mut self.link.score)
        } else {
            self.beside(|| address().at(u64::from(attempt)))
        };
        // The delay is drawn before queueing, because the next message's delay is correlated with it and must not
        // depend on whether the buffer is full.
        let Some(queueing) = self.serialise(at) else { return Outcome::Lost(Cause::Congestion) };
        if self.class == Class::Datagram {
            let held_back = self.held_back(self.trail().within(self.world.reorder));
            self.counts().reordered += u64::from(held_back.is_some());
            propagation += held_back.unwrap_or_default();
        }
        let lost = self.lost(attempt);
        let degraded = self.degrade(attempt, at, &mut propagation);
        // Faults are checked first, so that a message that a partition stops is not counted as lost by chance.
        let outcome = self.land(at, queueing, propagation);
        if !matches!(outcome, Outcome::Arrives(_)) {
            return outcome;
        }
        if lost {
            return Outcome::Lost(Cause::Loss);
        }
        if degraded { Outcome::Lost(Cause::Degradation) } else { outcome }
    }

    /// Queues a transmission at the link. Returns the time for waiting and sending, or `None` if the buffer is full.
    fn serialise(&mut self, at: Time) -> Option<Span> {
        let Some(limit) = self.model.limit else { return Some(Span::ZERO) };
        let backlog = self.link.busy_until.since(at);
        if backlog > limit.longest_wait {
            return None;
        }
        let sending = limit.rate.transmission(u64::from(self.bytes));
        // A retransmission occupies the link from the time of the message's sending. If it did so from its own, later
        // start, it would delay messages that are sent before that start.
        self.link.busy_until = self.link.busy_until.max(self.now) + sending;
        Some(backlog + sending)
    }

    /// Whether the loss distribution drops this attempt.
    fn lost(&self, attempt: u32) -> bool {
        let at = |address: Address| if attempt == 0 { address } else { address.at(u64::from(attempt)) };
        match self.model.loss {
            Loss::Bernoulli(p) => !p.is_zero() && at(self.trail().within(self.world.loss)).unit() < p.get(),
            Loss::GilbertElliott(ge) => {
                let message = self.trail().within(self.world.loss);
                // Each attempt continues from the message's state. The link's own state is left unchanged: it depends
                // only on the number of messages.
                let bad = (1..=attempt)
                    .fold(self.link.bad, |bad, k| step(ge, bad, message.at(u64::from(k)).unit()));
                let loss = if bad { ge.bad_loss } else { ge.good_loss };
                at(message).at(WITHIN_STATE).unit() < loss.get()
            }
        }
    }

    /// The propagation delay of a further transmission of this message. Like the delay of the next message, it is
    /// correlated with the first transmission's. The next message's delay does not depend on further transmissions.
    fn beside(&self, address: impl FnOnce() -> Address) -> Span {
        let mut score = self.link.score;
        self.model.delay.follow(address, false, self.world.correlation, &mut score)
    }

    /// The extra delay of a datagram; `None` if it is not reordered.
    fn held_back(&self, address: Address) -> Option<Span> {
        if self.model.reorder == 0.0 || address.unit() >= self.model.reorder {
            return None;
        }
        let address = address.at(0);
        Some(match &self.model.reorder_by {
            Some(distribution) => distribution.sample(&mut address.draw()),
            None => self.model.delay.sample(|| address),
        })
    }

    /// The duplicate of this datagram, if there is one and neither a full buffer nor a fault stops it. The duplicate
    /// follows the original on the link.
    fn duplicate(&mut self) -> Option<Flight> {
        if self.model.duplicate == 0.0 {
            return None;
        }
        let address = self.trail().within(self.world.duplicate);
        if address.unit() >= self.model.duplicate {
            return None;
        }
        let queueing = self.serialise(self.now)?;
        let mut propagation =
            self.beside(|| address.at(0)) + self.held_back(address.at(1)).unwrap_or_default();
        if let Some(degraded) = self.world.faults.degraded(self.src, self.dst, self.now) {
            propagation = propagation.scale(degraded.factor);
        }
        match self.land(self.now, queueing, propagation) {
            Outcome::Arrives(flight) => Some(flight),
            Outcome::Lost(_) | Outcome::Reset { .. } => None,
        }
    }

    /// Scales the delay on a degraded link; returns whether its extra loss drops the transmission.
    fn degrade(&mut self, attempt: u32, at: Time, propagation: &mut Span) -> bool {
        if self.world.calm {
            return false;
        }
        let Some(degraded) = self.world.faults.degraded(self.src, self.dst, at) else { return false };
        self.counts().degraded += 1;
        *propagation = propagation.scale(degraded.factor);
        degraded.loss > 0.0
            && self.trail().within(self.world.loss).at(DEGRADED).at(u64::from(attempt)).unit() < degraded.loss
    }

    /// The outcome under faults of a transmission with this departure and delay.
    fn land(&self, at: Time, queueing: Span, propagation: Span) -> Outcome {
        let arrives = at + queueing + propagation;
        let mut flight = Flight { arrives, delivered: arrives, queueing, propagation };
        if self.world.calm {
            return Outcome::Arrives(flight);
        }
        let faults = &self.world.faults;
        if faults.crash_between(self.src, self.sent, at).is_some() {
            // The sender crashed while the message waited for the uplink.
            return Outcome::Lost(Cause::Crash);
        }
        if faults.cut(self.src, self.dst, at, arrives) {
            return Outcome::Lost(Cause::Partition);
        }
        flight.delivered = faults.resumes(self.dst, arrives);
        if faults.alive(self.dst, self.sent)
            && let Some((_, restart)) = faults.crash_between(self.dst, self.sent, flight.delivered)
        {
            return Outcome::Reset { known: arrives.max(restart) };
        }
        if !faults.alive(self.dst, flight.delivered) {
            return Outcome::Lost(Cause::Crash);
        }
        if self.class == Class::Stream && !faults.alive(self.dst, self.sent) {
            // The restarted peer does not know the stream.
            return Outcome::Reset { known: flight.delivered };
        }
        Outcome::Arrives(flight)
    }

    fn counts(&mut self) -> &mut ClassStats {
        self.stats.of_mut(self.class)
    }

    /// Counts a delivery; `repeating` is the time spent in retransmission timeouts. Returns the span from sending to
    /// delivery.
    #[inline]
    fn deliver(&mut self, flight: &Flight, repeating: Span) -> Span {
        let paused = flight.delivered.since(flight.arrives);
        let (sent, uplink) = (self.sent, self.now.since(self.sent));
        let counts = self.counts();
        counts.delivered += 1;
        counts.propagation_ns = counts.propagation_ns.saturating_add(flight.propagation.0);
        counts.queueing_ns = counts.queueing_ns.saturating_add((uplink + flight.queueing).0);
        counts.retransmission_ns = counts.retransmission_ns.saturating_add(repeating.0);
        counts.paused_ns = counts.paused_ns.saturating_add(paused.0);
        counts.held += u64::from(paused != Span::ZERO);
        flight.delivered.since(sent)
    }

    fn drop(&mut self, cause: Cause) -> Verdict {
        let counts = self.counts();
        counts.lost[cause as usize] += 1;
        counts.dropped[cause as usize] += 1;
        Verdict::Drop(cause)
    }

    fn unreachable(&mut self, at: Time, cause: Cause) -> Verdict {
        self.counts().unreachable[cause as usize] += 1;
        Verdict::Unreachable { after: at.since(self.sent), cause }
    }
}

/// First branch of a message's loss address beyond all attempt numbers.
const WITHIN_STATE: u64 = 1 << 40;
const DEGRADED: u64 = 1 << 41;

/// The state after one step of the chain.
fn step(ge: GilbertElliott, bad: bool, draw: f64) -> bool {
    if bad { draw >= ge.r.get() } else { draw < ge.p.get() }
}
