//! The observer: callbacks for everything a shard does.

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::machine::{Effect, Input, Note};
use volary_actors::message::Message;

/// A kind of event with a due time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// A message that crossed the emulated network.
    Delivery {
        /// The configured delay, to the microsecond.
        asked: Span,
    },
    /// A timer.
    Timer,
    /// The end of a copy.
    Work,
}

/// Callbacks of a shard. A recorder needs only the first two; callbacks with their default body cost nothing.
pub trait Observer {
    /// An actor emitted a note.
    fn note(&mut self, now: Time, who: ActorId, note: Note);
    /// The node of a core crashed.
    fn crashed(&mut self, now: Time, core: u32);
    /// Whether notes of a scheduler are needed in order of time, so that it must read broadcasts when they arrive.
    #[inline]
    fn watches(&self, _scheduler: u32) -> bool {
        false
    }
    /// An event is handled `late` after it was due.
    #[inline]
    fn due(&mut self, _what: Due, _late: Span) {}
    /// An actor handles a message that crossed the emulated network and was sent at `sent`, to the microsecond.
    #[inline]
    fn delivered(&mut self, _now: Time, _sent: Time, _from: ActorId, _to: ActorId, _msg: &Message) {}
    /// A message from another shard arrived `late` after it was due; zero if it was in time.
    #[inline]
    fn received(&mut self, _late: Span) {}
    /// An actor reacted to an input.
    #[inline]
    fn stepped(&mut self, _now: Time, _who: ActorId, _input: &Input, _effects: &[Effect]) {}
    /// An endpoint, and with it a node's workers, was restarted without its state for the `epoch`-th time.
    #[inline]
    fn restarted(&mut self, _now: Time, _who: ActorId, _epoch: u32) {}
    /// The run ended.
    #[inline]
    fn ended(&mut self, _now: Time) {}
}

/// Observes nothing.
impl Observer for () {
    #[inline]
    fn note(&mut self, _now: Time, _who: ActorId, _note: Note) {}
    fn crashed(&mut self, _now: Time, _core: u32) {}
}

/// Two observers, called in order.
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        self.0.note(now, who, note);
        self.1.note(now, who, note);
    }

    fn crashed(&mut self, now: Time, core: u32) {
        self.0.crashed(now, core);
        self.1.crashed(now, core);
    }

    #[inline]
    fn watches(&self, scheduler: u32) -> bool {
        self.0.watches(scheduler) || self.1.watches(scheduler)
    }

    #[inline]
    fn due(&mut self, what: Due, late: Span) {
        self.0.due(what, late);
        self.1.due(what, late);
    }

    #[inline]
    fn delivered(&mut self, now: Time, sent: Time, from: ActorId, to: ActorId, msg: &Message) {
        self.0.delivered(now, sent, from, to, msg);
        self.1.delivered(now, sent, from, to, msg);
    }

    #[inline]
    fn received(&mut self, late: Span) {
        self.0.received(late);
        self.1.received(late);
    }

    #[inline]
    fn stepped(&mut self, now: Time, who: ActorId, input: &Input, effects: &[Effect]) {
        self.0.stepped(now, who, input, effects);
        self.1.stepped(now, who, input, effects);
    }

    fn restarted(&mut self, now: Time, who: ActorId, epoch: u32) {
        self.0.restarted(now, who, epoch);
        self.1.restarted(now, who, epoch);
    }
    fn ended(&mut self, now: Time) {
        self.0.ended(now);
        self.1.ended(now);
    }
}
