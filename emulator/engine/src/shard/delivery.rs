//! Message delivery: within a node, over the emulated network, to other shards, to all schedulers.

use volary_actors::base::{ActorId, Class, Span, Time};
use volary_actors::machine::{Effect, Effects, Input};
use volary_actors::message::{KINDS, Message};
use volary_netem::Verdict;

use super::broadcast::{BroadcastEntry, BroadcastLog};
use super::event_loop::{ActorSlot, Event, EventKind, Stamp};
use super::{Observer, Parts, Shard};
use crate::parcel::Parcel;
use crate::queue::Key;

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
        match self.parts.fabric.route(self.now, src, dst, class, Message::WIRE_BYTES) {
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

impl<O: Observer> Shard<'_, O> {
    /// Sends a message to every other scheduler: as one event, if the network delays all copies equally.
    pub(super) fn broadcast(&mut self, me: ActorId, msg: Message) {
        let layout = self.parts.layout;
        let common = if self.parts.shared { self.parts.fabric.common_delay() } else { None };
        let Some(after) = common else {
            for to in (0..layout.schedulers()).map(|i| layout.scheduler(i)).filter(|&to| to != me) {
                self.send(me, to, msg, false);
            }
            return;
        };
        let is_scheduler = self.broadcasts.reader(me).is_some();
        let receivers = u64::from(layout.schedulers() - u32::from(is_scheduler));
        let kind = msg.kind();
        self.traffic.by_kind[kind as usize] += if msg.is_fragment() { 0 } else { receivers };
        self.parts.fabric.count_delivered(KINDS[kind as usize].1, receivers, after);
        if receivers > 0 {
            let kind = EventKind::Broadcast(msg);
            self.push(self.now + after, me, Event { to: me, stamp: Stamp::NONE, kind });
        }
    }

    /// Handles the arrival of a broadcast.
    pub(super) fn append_broadcast(&mut self, from: ActorId, msg: Message) {
        if self.broadcasts.entries.len() == BroadcastLog::FULL {
            (0..self.broadcasts.cursors.len()).for_each(|reader| self.read_broadcasts(reader));
            self.broadcasts.entries.clear();
            self.broadcasts.cursors.fill(0);
        }
        self.broadcasts.entries.push(BroadcastEntry { at: self.now, from, msg });
        for at in 0..self.broadcasts.eager.len() {
            self.read_broadcasts(self.broadcasts.eager[at] as usize);
        }
    }

    /// Steps a scheduler through the entries that it has not read.
    pub(super) fn catch_up(&mut self, actor: ActorId) {
        if let Some(reader) = self.broadcasts.reader(actor) {
            self.read_broadcasts(reader);
        }
    }

    fn read_broadcasts(&mut self, reader: usize) {
        let log = &mut self.broadcasts;
        let me = ActorId(log.first + reader as u32);
        let from = log.cursors[reader] as usize;
        log.cursors[reader] = log.entries.len() as u32;
        let Parts { workload, layout, .. } = self.parts;
        let ActorSlot { machine: Some(machine), rng, .. } = &mut self.actors[me.index()] else { return };
        let mut effects = std::mem::take(&mut log.effects);
        for &BroadcastEntry { at, from, msg } in &log.entries[from..] {
            if from == me {
                continue;
            }
            let input = Input::Deliver { from, msg };
            machine.step(input, &mut Effects::new(at, me, rng, &mut effects, workload, layout).passive());
            self.observer.stepped(at, me, &input, &effects);
            for effect in effects.drain(..) {
                if let Effect::Note(note) = effect {
                    self.observer.note(at, me, note);
                }
            }
        }
        self.broadcasts.effects = effects;
    }
}
