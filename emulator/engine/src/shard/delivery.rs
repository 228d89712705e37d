//! Message delivery: within a node, over the emulated network, to other shards.

use volary_actors::base::{ActorId, Class, Span, Time};
use volary_actors::machine::Input;
use volary_actors::message::{KINDS, Message};
use volary_netem::Verdict;

use super::event_loop::{Event, EventKind, Stamp};
use super::{Observer, Shard};
use crate::parcel::Parcel;
use crate::queue::Key;

/// Counters of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Messages sent over the network, indexed as [`KINDS`].
    pub by_kind: [u64; KINDS.len()],
    /// Number of these messages that repair losses.
    pub recovery: u64,
    /// Datagrams lost and stream messages returned to their sender.
    pub dropped: u64,
    /// Retransmissions by streams.
    pub retransmissions: u64,
}

/// Parcels for other shards, by shard and class, in the order in which they were sent.
#[derive(Debug)]
pub struct Outbox {
    boxes: Vec<[Vec<Parcel>; 2]>,
    filled: bool,
}

impl Outbox {
    /// An empty outbox for a number of shards.
    #[must_use]
    pub fn new(shards: u16) -> Self {
        Self { boxes: (0..shards).map(|_| [Vec::new(), Vec::new()]).collect(), filled: false }
    }

    fn put(&mut self, home: u16, parcel: Parcel) {
        let class = KINDS[parcel.msg.kind() as usize].1;
        self.boxes[home as usize][usize::from(class == Class::Datagram)].push(parcel);
        self.filled = true;
    }

    /// Passes the waiting parcels to `give`: shard, class and parcels, to be drained or taken. Parcels that it leaves
    /// stay in the outbox.
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

impl<O: Observer> Shard<'_, O> {
    /// Delivers a message to an actor of the same node within this step. A message to an actor that is down is
    /// returned.
    pub(super) fn deliver_locally(&mut self, me: ActorId, to: ActorId, msg: Message) {
        let input = Input::Deliver { from: me, msg };
        if self.actors[to.index()].machine.is_none() {
            self.local_queue.push_back((me, Input::Undelivered { to, msg }));
        } else if self.parts.layout.endpoint(me) != self.parts.layout.endpoint(to)
            && let Some(at) = self.resumes_at(to)
        {
            // A client and its scheduler share a machine, but faults can pause each by itself.
            self.push(at, me, Event { to, stamp: Stamp::NONE, kind: EventKind::Input(input) });
        } else {
            self.local_queue.push_back((to, input));
        }
    }

    /// Sends a message over the emulated network.
    pub(super) fn send(&mut self, me: ActorId, to: ActorId, msg: Message, recovery: bool) {
        let kind = msg.kind();
        let class = KINDS[kind as usize].1;
        let counts = !msg.is_fragment();
        self.traffic.by_kind[kind as usize] += u64::from(counts);
        self.traffic.recovery += u64::from(recovery && counts);
        let layout = self.parts.layout;
        let (src, dst) = (layout.endpoint(me), layout.endpoint(to));
        match self.parts.fabric.route(self.now, src, dst, class, msg.wire_bytes()) {
            Verdict::Deliver { after, retransmissions } => {
                self.traffic.retransmissions += if counts { retransmissions.into() } else { 0 };
                self.schedule_delivery(me, to, msg, after);
            }
            Verdict::Twice { after, again } => {
                self.schedule_delivery(me, to, msg, after);
                self.schedule_delivery(me, to, msg, again);
            }
            Verdict::Drop(_) => self.traffic.dropped += u64::from(counts),
            Verdict::Unreachable { after, .. } => {
                self.traffic.dropped += u64::from(counts);
                let kind = EventKind::Input(Input::Undelivered { to, msg });
                self.push(self.now + after, me, Event { to: me, stamp: self.epoch(me), kind });
            }
        }
    }

    /// Queues a message for delivery, or passes it to the shard that owns its receiver.
    #[inline]
    fn schedule_delivery(&mut self, me: ActorId, to: ActorId, msg: Message, after: Span) {
        if self.parts.placement.owns(self.parts.layout.endpoint(to).index()) {
            let kind = EventKind::Input(Input::Deliver { from: me, msg });
            self.push(self.now + after, me, Event { to, stamp: Stamp::delay(after), kind });
        } else {
            // Strictly later than its cause on any clock: merging the notes of two shards relies on it.
            let due = self.now + after.max(Span(1));
            let count = self.count_event(me);
            let parcel = Parcel { sent: self.now, due, from: me, count, to, msg, returned: false };
            self.outbox.put(self.home(to), parcel);
        }
    }

    /// Accepts a message from another shard at `now`. It is delivered when it is due, immediately if that time has
    /// passed.
    pub fn receive(&mut self, now: Time, parcel: &Parcel) {
        let Parcel { sent, due, from, count, to, msg, returned } = *parcel;
        self.observer.received(now.since(due));
        let (to, stamp, input) = if returned {
            let endpoint = self.parts.layout.endpoint(from);
            if self.parts.fabric.faults().crash_between(endpoint, sent, now).is_some() {
                // The sender has lost its state in the meantime.
                return;
            }
            (from, self.epoch(from), Input::Undelivered { to, msg })
        } else if self.crashed_since(to, due, now) {
            self.traffic.dropped += u64::from(!msg.is_fragment());
            if KINDS[msg.kind() as usize].1 == Class::Stream {
                self.outbox.put(self.home(from), Parcel { returned: true, ..*parcel });
            }
            return;
        } else {
            (to, Stamp::delay(due.since(sent)), Input::Deliver { from, msg })
        };
        let key = Key { due, source: parcel.from, count };
        self.queue.push(key, Event { to, stamp, kind: EventKind::Input(input) });
    }

    fn home(&self, actor: ActorId) -> u16 {
        self.parts.placement.home(self.parts.layout.endpoint(actor).index())
    }

    /// Whether the receiver of a late message has crashed since the message was due.
    fn crashed_since(&self, to: ActorId, due: Time, now: Time) -> bool {
        let endpoint = self.parts.layout.endpoint(to);
        due < now && self.parts.fabric.faults().crash_between(endpoint, due, now).is_some()
    }
}
