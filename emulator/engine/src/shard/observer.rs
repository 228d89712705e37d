//! The observer, with callbacks for every action of a shard; and the output of a shard: parcels for other shards, and
//! counters of messages.

use volary_actors::base::{ActorId, Class, Span, Time};
use volary_actors::machine::{Effect, Input, Note};
use volary_actors::message::{KINDS, Message};

use crate::cores::SharedUse;
use crate::handling::RoleLoad;
use crate::parcel::Parcel;
use crate::workload::Window;

/// A kind of event with a due time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// A message that crossed the emulated network.
    Delivery {
        /// The configured delay, to the microsecond.
        asked: Span,
    },
    /// A timer of an actor.
    Timer,
    /// The end of a copy.
    Work,
}

/// Callbacks of a shard. A recorder needs only the first two callbacks; callbacks with their default body cost nothing.
pub trait Observer {
    /// An actor emitted a note.
    fn note(&mut self, now: Time, who: ActorId, note: Note);
    /// The node of a core crashed.
    fn crashed(&mut self, now: Time, core: u32);
    /// Whether a scheduler must read broadcasts by [`reads_by`](Self::reads_by), because its notes are needed.
    fn watches(&self, _scheduler: u32) -> bool {
        false
    }
    /// The time from which on watched schedulers must have read all earlier broadcasts. Until then they read broadcasts
    /// only when they are stepped, so their notes are not in order of time.
    #[inline]
    fn reads_by(&self) -> Time {
        Time::MAX
    }
    /// Prefetches what is kept about a core, which an upcoming event concerns.
    #[inline]
    fn fetch(&self, _core: u32) {}
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

/// An observer that observes nothing.
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

    fn watches(&self, scheduler: u32) -> bool {
        self.0.watches(scheduler) || self.1.watches(scheduler)
    }

    #[inline]
    fn reads_by(&self) -> Time {
        self.0.reads_by().min(self.1.reads_by())
    }

    #[inline]
    fn fetch(&self, core: u32) {
        self.0.fetch(core);
        self.1.fetch(core);
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

/// Counters of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Messages sent over the network, indexed as [`KINDS`].
    pub by_kind: [u64; KINDS.len()],
    /// Messages sent over the network that repair losses.
    pub recovery: u64,
    /// Datagrams lost and stream messages returned to their sender.
    pub dropped: u64,
    /// Retransmissions by streams.
    pub retransmissions: u64,
}

impl Traffic {
    /// Subtracts the counters of an earlier time.
    pub(super) fn subtract(&mut self, earlier: &Self) {
        self.by_kind.iter_mut().zip(earlier.by_kind).for_each(|(count, before)| *count -= before);
        self.recovery -= earlier.recovery;
        self.dropped -= earlier.dropped;
        self.retransmissions -= earlier.retransmissions;
    }
}

/// Counters of messages, of the load of actors and of the use of shared nodes.
#[derive(Clone, Debug)]
pub struct WindowTally {
    /// Counters of messages.
    pub traffic: Traffic,
    /// Bytes sent over the network, headers and repeated transmissions included.
    pub bytes: u64,
    /// The load of actors that take time, in the order of [`ROLES`](crate::handling::ROLES); empty if they take none.
    pub loads: Vec<RoleLoad>,
    /// Use of shared nodes; `None` if nodes are not shared.
    pub shared: Option<SharedUse>,
}

/// The counters at the bounds of the window that have passed.
#[derive(Debug)]
pub(super) struct PassedBounds {
    pub(super) window: Window,
    /// The next bound; the end of time once both have passed, or if the whole run is measured.
    pub(super) next: Time,
    pub(super) begin: Option<Box<WindowTally>>,
    pub(super) end: Option<Box<WindowTally>>,
}

impl PassedBounds {
    pub(super) fn new(window: Window) -> Self {
        let next = if window.is_whole() { Time::MAX } else { window.from };
        Self { window, next, begin: None, end: None }
    }
}

/// Parcels for other shards, by shard and class, in the order in which they were sent.
#[derive(Debug)]
pub struct Outbox {
    boxes: Vec<[Vec<Parcel>; 2]>,
    filled: bool,
}

impl Outbox {
    /// An empty outbox for a number of shards.
    pub fn new(shards: u16) -> Self {
        Self { boxes: (0..shards).map(|_| [Vec::new(), Vec::new()]).collect(), filled: false }
    }

    pub(super) fn put(&mut self, home: u16, parcel: Parcel) {
        let class = KINDS[parcel.msg.kind() as usize].1;
        self.boxes[home as usize][usize::from(class == Class::Datagram)].push(parcel);
        self.filled = true;
    }

    /// Calls `give` with shard, class and waiting parcels, which it may drain or take. Parcels that it leaves stay in
    /// the outbox.
    pub fn flush(&mut self, mut give: impl FnMut(u16, Class, &mut Vec<Parcel>)) {
        if !std::mem::take(&mut self.filled) {
            return;
        }
        for (shard, [streams, datagrams]) in self.boxes.iter_mut().enumerate() {
            for (class, parcels) in [(Class::Stream, streams), (Class::Datagram, datagrams)] {
                if !parcels.is_empty() {
                    give(shard as u16, class, parcels);
                    self.filled |= !parcels.is_empty();
                }
            }
        }
    }
}
