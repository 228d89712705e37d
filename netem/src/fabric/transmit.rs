//! Transmissions: the attempts of a message, and the verdict of each class on them.

use volary_actors::base::{Address, Class, Endpoint, Span, Time};

use crate::config::{GilbertElliott, Loss};
use crate::faults::Faults;
use crate::links::Links;
use crate::model::Model;
use crate::state::LinkState;
use crate::verdict::{Cause, ClassStats, Stats, Verdict};

/// The parts of the network that do not change during a run.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) links: Links,
    pub(super) models: Vec<Model>,
    pub(super) faults: Faults,
    /// There are no faults.
    pub(super) calm: bool,
    pub(super) peer_timeout: Span,
    pub(super) correlation: f64,
    pub(super) delay: Address,
    pub(super) loss: Address,
    pub(super) duplicate: Address,
    pub(super) reorder: Address,
}

/// A message while its verdict is computed.
pub(super) struct Transmission<'a> {
    pub(super) world: &'a World,
    pub(super) model: &'a Model,
    pub(super) stats: &'a mut Stats,
    /// State of its link; `count` is the message's number on the link.
    pub(super) link: LinkState,
    pub(super) now: Time,
    pub(super) src: Endpoint,
    pub(super) dst: Endpoint,
    pub(super) class: Class,
    pub(super) bytes: u32,
}

/// The identity of a message: the `count`-th from `src` to `dst`.
#[derive(Clone, Copy)]
pub(super) struct Trail {
    pub(super) src: Endpoint,
    pub(super) dst: Endpoint,
    pub(super) count: u32,
}

impl Trail {
    /// The address of this message within a family of draws.
    #[inline]
    pub(super) const fn within(self, family: Address) -> Address {
        family.at(self.src.0 as u64).at(self.dst.0 as u64).at(self.count as u64)
    }
}

/// The outcome of a transmission.
enum Outcome {
    /// It gets through.
    Arrives(Flight),
    /// It is lost.
    Lost(Cause),
    /// The incarnation it was sent to has crashed.
    Reset {
        /// The earliest time at which the sender can learn this.
        known: Time,
    },
}

/// A transmission that gets through, with the parts of its delay.
#[derive(Clone, Copy)]
struct Flight {
    /// Arrival at the destination's machine.
    arrives: Time,
    /// Delivery, which a pause of the destination holds back.
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
    pub(super) fn step_chain(&mut self) {
        let Loss::GilbertElliott(ge) = self.model.loss else { return };
        if self.link.count == 0 {
            // The state before the first message: the stationary distribution, or short-lived links would lose less.
            let start = self.world.loss.at(u64::from(self.src.0)).at(u64::from(self.dst.0)).unit();
            self.link.bad = start < ge.share_bad();
        }
        self.link.bad = step(ge, self.link.bad, self.trail().within(self.world.loss).unit());
    }

    /// A datagram has one transmission, or two if the network duplicates it. Both occupy the link, and what is lost is
    /// decided once for both: otherwise duplication would lower the configured loss.
    pub(super) fn datagram(&mut self) -> Verdict {
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
        Verdict::Twice { after, again: copy.delivered.since(self.now) }
    }

    /// A stream message is transmitted until it gets through or its peer counts as unreachable.
    pub(super) fn stream(&mut self) -> Verdict {
        let deadline = self.now + self.world.peer_timeout;
        let (mut at, mut timeout, mut attempt) = (self.now, self.model.rto, 0);
        let mut cause = Cause::Loss;
        loop {
            match self.transmit(attempt, at) {
                // Delays are not limited; only retransmissions compete with the peer timeout.
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
            if self.world.faults.crash_between(self.src, self.now, at).is_some() {
                // The crash of the sender lost the state that repeats the message or reports the failure.
                self.counts().dropped[Cause::Crash as usize] += 1;
                return Verdict::Drop(Cause::Crash);
            }
            if !self.in_time(cause, at, deadline) {
                return self.unreachable(deadline, cause);
            }
            timeout = timeout + timeout;
            attempt += 1;
            self.counts().retransmissions += 1;
        }
    }

    /// Whether the sender still waits at `t`. A full buffer is local to the sender, so there it waits without limit.
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
        // After the delay, which the next message's follows: a full buffer changes no other message's delay.
        let Some(queueing) = self.serialise(at) else { return Outcome::Lost(Cause::Congestion) };
        if self.class == Class::Datagram {
            let held_back = self.held_back(self.trail().within(self.world.reorder));
            self.counts().reordered += u64::from(held_back.is_some());
            propagation += held_back.unwrap_or_default();
        }
        let lost = self.lost(attempt);
        let degraded = self.degrade(attempt, at, &mut propagation);
        // Faults come first: a message that a partition stops is not counted as lost by chance.
        let outcome = self.land(at, queueing, propagation);
        if !matches!(outcome, Outcome::Arrives(_)) {
            return outcome;
        }
        if lost {
            return Outcome::Lost(Cause::Loss);
        }
        if degraded { Outcome::Lost(Cause::Degradation) } else { outcome }
    }

    /// Queues a transmission at the link: the time for waiting and sending, or `None` if the buffer is full.
    fn serialise(&mut self, at: Time) -> Option<Span> {
        let Some(limit) = self.model.limit else { return Some(Span::ZERO) };
        let backlog = self.link.busy_until.since(at);
        if backlog > limit.longest_wait {
            return None;
        }
        let sending = limit.rate.transmission(u64::from(self.bytes));
        // A retransmission occupies the link from now on: counted from its later start, it would delay messages
        // that are sent before it.
        self.link.busy_until = self.link.busy_until.max(self.now) + sending;
        Some(backlog + sending)
    }

    /// Whether this attempt is lost by the loss distribution.
    fn lost(&self, attempt: u32) -> bool {
        let at = |address: Address| if attempt == 0 { address } else { address.at(u64::from(attempt)) };
        match self.model.loss {
            Loss::Bernoulli(p) => !p.is_zero() && at(self.trail().within(self.world.loss)).unit() < p.get(),
            Loss::GilbertElliott(ge) => {
                let message = self.trail().within(self.world.loss);
                // Attempts continue from the message's state and leave the link's, which is a function of the number of
                // messages alone.
                let bad = (1..=attempt)
                    .fold(self.link.bad, |bad, k| step(ge, bad, message.at(u64::from(k)).unit()));
                let loss = if bad { ge.bad_loss } else { ge.good_loss };
                at(message).at(WITHIN_STATE).unit() < loss.get()
            }
        }
    }

    /// The propagation delay of a further transmission of this message. It is correlated with that of the first, as the
    /// delay of the next message is, which does not depend on how often this one was sent.
    fn beside(&self, address: impl FnOnce() -> Address) -> Span {
        let mut score = self.link.score;
        self.model.delay.follow(address, false, self.world.correlation, &mut score)
    }

    /// The extra delay of a datagram, if it is reordered.
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

    /// The duplicate of this datagram, if there is one and neither a full buffer nor a fault stops it. It follows the
    /// original on the link.
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

    /// The outcome under faults of a transmission with that departure and delay.
    fn land(&self, at: Time, queueing: Span, propagation: Span) -> Outcome {
        let arrives = at + queueing + propagation;
        let mut flight = Flight { arrives, delivered: arrives, queueing, propagation };
        if self.world.calm {
            return Outcome::Arrives(flight);
        }
        let faults = &self.world.faults;
        if faults.cut(self.src, self.dst, at, arrives) {
            return Outcome::Lost(Cause::Partition);
        }
        flight.delivered = faults.resumes(self.dst, arrives);
        if faults.alive(self.dst, self.now)
            && let Some((_, restart)) = faults.crash_between(self.dst, self.now, flight.delivered)
        {
            return Outcome::Reset { known: arrives.max(restart) };
        }
        if !faults.alive(self.dst, flight.delivered) {
            return Outcome::Lost(Cause::Crash);
        }
        if self.class == Class::Stream && !faults.alive(self.dst, self.now) {
            // The peer that came back does not know the stream.
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
        let now = self.now;
        let counts = self.counts();
        counts.delivered += 1;
        counts.propagation_ns = counts.propagation_ns.saturating_add(flight.propagation.0);
        counts.queueing_ns = counts.queueing_ns.saturating_add(flight.queueing.0);
        counts.retransmission_ns = counts.retransmission_ns.saturating_add(repeating.0);
        counts.paused_ns = counts.paused_ns.saturating_add(paused.0);
        counts.held += u64::from(paused != Span::ZERO);
        flight.delivered.since(now)
    }

    fn drop(&mut self, cause: Cause) -> Verdict {
        let counts = self.counts();
        counts.lost[cause as usize] += 1;
        counts.dropped[cause as usize] += 1;
        Verdict::Drop(cause)
    }

    fn unreachable(&mut self, at: Time, cause: Cause) -> Verdict {
        self.counts().unreachable[cause as usize] += 1;
        Verdict::Unreachable { after: at.since(self.now), cause }
    }
}

/// Branches of a message's loss address beyond all attempt numbers.
const WITHIN_STATE: u64 = 1 << 40;
const DEGRADED: u64 = 1 << 41;

/// The state after one step of the chain.
fn step(ge: GilbertElliott, bad: bool, draw: f64) -> bool {
    if bad { draw >= ge.r.get() } else { draw < ge.p.get() }
}
