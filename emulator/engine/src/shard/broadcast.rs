//! Broadcasts to all schedulers, as one event each.
//!
//! A broadcast that reaches all other schedulers at the same time is one event. The delivery is passive: receivers
//! process it without effects other than notes (see `Effect::Broadcast`), so a scheduler may read it when it arrives or
//! at any time before its next input, with the same result. The broadcast is therefore appended to a log. A scheduler
//! reads the entries since its last step, each with its time of arrival, just before its next step. With thousands of
//! schedulers that each act rarely, this replaces an event per message and receiver by a tight loop. A scheduler whose
//! notes the observer needs in order of time reads every entry at once.

use volary_actors::base::{ActorId, Time};
use volary_actors::layout::Layout;
use volary_actors::machine::{Effect, Effects, Input};
use volary_actors::message::{KINDS, Message};

use super::event_loop::{ActorSlot, Event, EventKind, Stamp};
use super::{Observer, Parts, Shard};

/// Number of entries, of 48 bytes each, at which every scheduler reads the log and it is cleared.
const FULL: usize = 1 << 20;

/// A broadcast and the time of its arrival.
#[derive(Clone, Copy, Debug)]
struct BroadcastEntry {
    at: Time,
    from: ActorId,
    msg: Message,
}

const _: () = assert!(size_of::<BroadcastEntry>() == 48, "the memory of a full log is counted in entries");

/// Broadcasts in order of arrival, with a cursor for each scheduler.
#[derive(Debug)]
pub(super) struct BroadcastLog {
    entries: Vec<BroadcastEntry>,
    /// Id of scheduler 0.
    first: u32,
    /// How many entries each scheduler has read.
    cursors: Vec<u32>,
    /// Schedulers that read at once.
    eager: Vec<u32>,
    /// A reused buffer.
    effects: Vec<Effect>,
}

impl BroadcastLog {
    pub(super) fn new(layout: &Layout, eager: impl Fn(u32) -> bool) -> Self {
        let schedulers = layout.schedulers();
        Self {
            entries: Vec::new(),
            first: layout.scheduler(0).0,
            cursors: vec![0; schedulers as usize],
            eager: (0..schedulers).filter(|&reader| eager(reader)).collect(),
            effects: Vec::new(),
        }
    }

    /// Whether an actor has entries to read before it is stepped.
    #[inline]
    pub(super) fn has_unread(&self, actor: ActorId) -> bool {
        !self.entries.is_empty()
            && self.reader(actor).is_some_and(|reader| (self.cursors[reader] as usize) < self.entries.len())
    }

    #[inline]
    fn reader(&self, actor: ActorId) -> Option<usize> {
        let reader = actor.0.wrapping_sub(self.first) as usize;
        (reader < self.cursors.len()).then_some(reader)
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
        if self.broadcasts.entries.len() == FULL {
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
