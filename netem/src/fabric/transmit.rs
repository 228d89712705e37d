//! One transmission, and what the two classes make of it.

use volary_actors::base::{Address, Class, Span, Time};

use super::{Passage, step};
use crate::config::Loss;
use crate::verdict::{Cause, ClassStats, Verdict};

/// How a transmission ended.
enum Outcome {
    /// It gets through.
    Arrives(Flight),
    /// It is lost.
    Lost(Cause),
    /// The incarnation it was sent to crashed: nothing sent to it can arrive any more.
    Reset {
        /// When the sender can learn so at the earliest.
        known: Time,
    },
}

/// A transmission that gets through: where its time went.
#[derive(Clone, Copy)]
struct Flight {
    /// Arrival at the destination's machine.
    arrives: Time,
    /// Delivery, which a pause of the destination holds back.
    delivered: Time,
    queueing: Span,
    propagation: Span,
}

impl Passage<'_> {
    /// A datagram has one transmission. Its duplicate, made behind whatever loses messages, exists only if the
    /// original gets through: otherwise duplication would lower the loss that was asked for.
    pub(super) fn datagram(&mut self) -> Verdict {
        let flight = match self.transmit(0, self.now) {
            Outcome::Arrives(flight) => flight,
            Outcome::Lost(cause) => return self.drop(cause),
            Outcome::Reset { .. } => return self.drop(Cause::Crash),
        };
        let after = self.deliver(&flight, Span::ZERO);
        let Some(copy) = self.duplicate() else { return Verdict::Deliver { after, retransmissions: 0 } };
        self.books().duplicated += 1;
        Verdict::Twice { after, again: copy.delivered.since(self.now) }
    }

    /// A stream message is transmitted until it gets through or its peer counts as unreachable.
    pub(super) fn stream(&mut self) -> Verdict {
        let deadline = self.now + self.world.peer_timeout;
        let (mut at, mut timeout, mut attempt) = (self.now, self.model.rto, 0);
        let mut cause = Cause::Loss;
        loop {
            match self.transmit(attempt, at) {
                // Delays are as asked, however long; only repetitions race against the peer timeout.
                Outcome::Arrives(flight) if attempt == 0 || self.in_time(cause, flight.arrives, deadline) => {
                    let after = self.deliver(&flight, at.since(self.now));
                    return Verdict::Deliver { after, retransmissions: attempt };
                }
                Outcome::Arrives(_) => return self.unreachable(deadline, cause),
                Outcome::Reset { known } => {
                    self.books().lost[Cause::Crash as usize] += 1;
                    return self.unreachable(known.min(deadline), Cause::Crash);
                }
                Outcome::Lost(why) => cause = why,
            }
            self.books().lost[cause as usize] += 1;
            at = self.world.faults.resumes(self.src, at + timeout);
            if self.world.faults.crash_between(self.src, self.now, at).is_some() {
                // Its sender's state is gone, and with it whoever would repeat it or be told.
                self.books().dropped[Cause::Crash as usize] += 1;
                return Verdict::Drop(Cause::Crash);
            }
            if !self.in_time(cause, at, deadline) {
                return self.unreachable(deadline, cause);
            }
            timeout = timeout + timeout;
            attempt += 1;
            self.books().retransmissions += 1;
        }
    }

    /// Whether the sender has not given up at `t`. A full buffer is its own doing, so it waits for that.
    fn in_time(&self, cause: Cause, t: Time, deadline: Time) -> bool {
        cause == Cause::Congestion || t <= deadline
    }

    /// One transmission that begins at `at`.
    fn transmit(&mut self, attempt: u32, at: Time) -> Outcome {
        let Some(queueing) = self.serialise(at) else { return Outcome::Lost(Cause::Congestion) };
        let model = self.model;
        let (trail, family) = (self.trail(), self.world.delay);
        let address = || trail.within(family);
        let mut propagation = if attempt == 0 {
            let first = self.link.count == 0;
            model.delay.follow(address, first, self.world.correlation, &mut self.link.score)
        } else {
            model.delay.sample(|| address().at(u64::from(attempt)))
        };
        if self.class == Class::Datagram {
            propagation += self.reorder();
        }
        let lost = self.lost(attempt);
        let degraded = self.degrade(attempt, at, &mut propagation);
        // Faults first: in the books, a message that a partition stopped was not unlucky.
        let outcome = self.land(at, queueing, propagation);
        if !matches!(outcome, Outcome::Arrives(_)) {
            return outcome;
        }
        if lost {
            return Outcome::Lost(Cause::Loss);
        }
        if degraded { Outcome::Lost(Cause::Degradation) } else { outcome }
    }

    /// Gives a transmission to the link: how long it waits and is sent, or `None` if the buffer is full.
    fn serialise(&mut self, at: Time) -> Option<Span> {
        let Some(limit) = self.model.limit else { return Some(Span::ZERO) };
        let backlog = self.link.busy_until.since(at);
        if backlog > limit.longest_wait {
            return None;
        }
        let sending = limit.rate.transmission(u64::from(self.bytes));
        // A repetition takes its share of the link from now on, or messages sent before it would be held up
        // by one that has not begun.
        self.link.busy_until = self.link.busy_until.max(self.now) + sending;
        Some(backlog + sending)
    }

    /// Whether the loss law takes this attempt.
    fn lost(&self, attempt: u32) -> bool {
        let at = |address: Address| if attempt == 0 { address } else { address.at(u64::from(attempt)) };
        match self.model.loss {
            Loss::Bernoulli(p) => !p.is_zero() && at(self.trail().within(self.world.loss)).unit() < p.get(),
            Loss::GilbertElliott(ge) => {
                let message = self.trail().within(self.world.loss);
                // Attempts go on from the message's state without moving the link's, which is a function of
                // the number of messages alone.
                let bad = (1..=attempt)
                    .fold(self.link.bad, |bad, k| step(ge, bad, message.at(u64::from(k)).unit()));
                let loss = if bad { ge.bad_loss } else { ge.good_loss };
                at(message).at(WITHIN_STATE).unit() < loss.get()
            }
        }
    }

    /// How much longer a datagram takes for being reordered.
    fn reorder(&mut self) -> Span {
        if self.model.reorder == 0.0 {
            return Span::ZERO;
        }
        let address = self.trail().within(self.world.reorder);
        if address.unit() >= self.model.reorder {
            return Span::ZERO;
        }
        self.books().reordered += 1;
        let address = address.at(0);
        match &self.model.reorder_by {
            Some(law) => law.sample(&mut address.draw()),
            None => self.model.delay.sample(|| address),
        }
    }

    /// The duplicate of this datagram, if there is one and no fault takes it.
    fn duplicate(&self) -> Option<Flight> {
        if self.model.duplicate == 0.0 {
            return None;
        }
        let address = self.trail().within(self.world.duplicate);
        if address.unit() >= self.model.duplicate {
            return None;
        }
        let mut propagation = self.model.delay.sample(|| address.at(0));
        if let Some(degraded) = self.world.faults.degraded(self.src, self.dst, self.now) {
            propagation = propagation.scale(degraded.factor);
        }
        match self.land(self.now, Span::ZERO, propagation) {
            Outcome::Arrives(flight) => Some(flight),
            Outcome::Lost(_) | Outcome::Reset { .. } => None,
        }
    }

    /// Stretches the delay of a degraded link; whether its extra loss takes the transmission.
    fn degrade(&mut self, attempt: u32, at: Time, propagation: &mut Span) -> bool {
        if self.world.calm {
            return false;
        }
        let Some(degraded) = self.world.faults.degraded(self.src, self.dst, at) else { return false };
        self.books().degraded += 1;
        *propagation = propagation.scale(degraded.factor);
        degraded.loss > 0.0
            && self.trail().within(self.world.loss).at(DEGRADED).at(u64::from(attempt)).unit() < degraded.loss
    }

    /// What faults do to a transmission with that departure and delay.
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
        Outcome::Arrives(flight)
    }

    fn books(&mut self) -> &mut ClassStats {
        self.stats.of_mut(self.class)
    }

    /// Enters a delivery into the books; `repeating` is the time that timeouts took. Returns the span from
    /// sending to delivery.
    #[inline]
    fn deliver(&mut self, flight: &Flight, repeating: Span) -> Span {
        let paused = flight.delivered.since(flight.arrives);
        let now = self.now;
        let books = self.books();
        books.delivered += 1;
        books.propagation_ns += flight.propagation.0;
        books.queueing_ns += flight.queueing.0;
        books.retransmission_ns += repeating.0;
        books.paused_ns += paused.0;
        books.held += u64::from(paused != Span::ZERO);
        flight.delivered.since(now)
    }

    fn drop(&mut self, cause: Cause) -> Verdict {
        let books = self.books();
        books.lost[cause as usize] += 1;
        books.dropped[cause as usize] += 1;
        Verdict::Drop(cause)
    }

    fn unreachable(&mut self, at: Time, cause: Cause) -> Verdict {
        self.books().unreachable[cause as usize] += 1;
        Verdict::Unreachable { after: at.since(self.now), cause }
    }
}

/// Branches of a message's loss address that no attempt number reaches.
const WITHIN_STATE: u64 = 1 << 40;
const DEGRADED: u64 = 1 << 41;
