//! The one loop: machines, event queue, network, cores.
//!
//! A [`Shard`] pops what is due, steps the machine concerned and turns its effects into queue entries, until
//! nothing is due. Events are ordered by (due time, source, source's count). What actors of one node say to
//! each other needs no network and no queue: it is delivered within the step, in the order it was said.
//!
//! Faults are known in advance, so the network decides at send time what a crash or partition does to a
//! message; the shard only makes machines vanish and come back.
//!
//! A shard may own some of the actors only. What its own say to others' leaves through the [`Outbox`], what others
//! say comes in through [`Shard::receive`]; who pushes first does not matter, so several shards do what one would.

use std::collections::VecDeque;

use volary_actors::base::{ActorId, Class, CopyId, Rng, Span, Time};
use volary_actors::layout::Role;
use volary_actors::machine::{Effect, Effects, Input, Machine, Timer};
use volary_actors::message::{KINDS, Message};

use super::board::Board;
use super::hands::Labour;
use super::{Due, Observer, Outbox, Parts, Traffic, ahead, order};
use crate::parcel::Parcel;
use crate::queue::{Key, Queue};

/// An input on its way to an actor. Of the actor's own doing, `stamp` tells whether it is still wanted: the
/// actor's epoch when it was made. Of a message, it is the delay that was asked for, in microseconds.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) to: ActorId,
    pub(super) stamp: u32,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Input(Input),
    /// Every other scheduler is told this by the actor that the event is addressed to.
    Told(Message),
    /// The endpoint crashes.
    Crash,
    /// The failure detector reports the crash.
    Notice,
    /// The endpoint comes back.
    Restart,
    /// The node stands still, and what its real cores do.
    Stall,
    /// They go on.
    Resume,
}

/// What every event about an actor needs, in half a cache line: in large clusters each look is a miss.
#[repr(align(32))]
pub(super) struct Resident {
    /// Gone while the actor is down.
    pub(super) machine: Option<Box<dyn Machine>>,
    pub(super) rng: Rng,
    /// How often it has crashed; of a worker, how often it has lost a copy or its copy was timed anew. Timers and
    /// completions of an older epoch are void.
    pub(super) epoch: u32,
    /// How many events it has made: part of their order.
    pub(super) count: u32,
}

const _: () = assert!(size_of::<Resident>() == 32, "two residents share a cache line");

/// Steps within one instant and one node after which a conversation counts as endless.
const ENDLESS: u32 = 1 << 24;

/// Actors of one thread under one clock.
pub struct Shard<'a, O> {
    pub(super) parts: Parts<'a>,
    pub(super) residents: Vec<Resident>,
    pub(super) queue: Queue<Event>,
    pub(super) ahead: Vec<ActorId>,
    pub(super) lane: VecDeque<(ActorId, Input)>,
    /// Who is down, as far as the failure detector has reported.
    pub(super) down: Vec<ActorId>,
    pub(super) effects: Vec<Effect>,
    /// What each core was last given to run, where injections are expected.
    pub(super) copies: Option<Box<[Option<CopyId>]>>,
    pub(super) now: Time,
    pub(super) events: u64,
    pub(super) hash: u64,
    pub(super) traffic: Traffic,
    pub(super) outbox: Outbox,
    pub(super) board: Board,
    /// What real cores do, if copies burn some.
    pub(super) labour: Option<Labour>,
    /// Who is told what happens.
    pub observer: O,
}

impl<'a, O: Observer> Shard<'a, O> {
    /// Builds every actor it owns and schedules faults; nothing runs before [`Shard::start`].
    #[must_use]
    pub fn new(parts: Parts<'a>, observer: O) -> Self {
        let actors = parts.layout.actors();
        let mut shard = Self {
            residents: Vec::with_capacity(actors as usize),
            queue: Queue::new(),
            ahead: Vec::new(),
            lane: VecDeque::new(),
            down: Vec::new(),
            effects: Vec::new(),
            copies: None,
            now: Time::ZERO,
            events: 0,
            hash: 0,
            traffic: Traffic { by_kind: [0; KINDS.len()], recovery: 0, dropped: 0, retransmissions: 0 },
            outbox: Outbox::new(parts.placement.shards()),
            board: Board::new(parts.layout, |scheduler| observer.watches(scheduler)),
            labour: None,
            observer,
            parts,
        };
        if actors >= ahead::LARGE {
            shard.queue.look_ahead();
        }
        for actor in 0..actors {
            let rng = Rng::new(shard.parts.seed, actor, 0);
            shard.residents.push(Resident { machine: None, rng, epoch: 0, count: 0 });
        }
        // A node and its workers are stepped together, so they are built to lie together.
        for endpoint in (0..shard.parts.layout.endpoints()).map(ActorId) {
            if shard.parts.placement.owns(endpoint.index()) {
                shard.settle(endpoint);
            }
        }
        shard.schedule_faults();
        shard
    }

    /// Gives an endpoint its machine, and a node's workers theirs.
    pub(super) fn settle(&mut self, endpoint: ActorId) {
        let layout = self.parts.layout;
        self.residents[endpoint.index()].machine = Some(self.parts.machine(endpoint));
        if let Role::Node(node) = layout.role(endpoint) {
            for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
                self.residents[worker.index()].machine = Some(self.parts.machine(worker));
            }
        }
    }

    /// Puts `machine` in the place of the one that the policy gave `actor`, until that crashes: for benchmarks
    /// and tests of the loop itself. To be called before [`start`](Self::start).
    pub fn install(&mut self, actor: ActorId, machine: Box<dyn Machine>) {
        self.residents[actor.index()].machine = Some(machine);
    }

    /// Steps every actor it owns with `Start`, in order of ids.
    pub fn start(&mut self) {
        for actor in (0..self.parts.layout.actors()).map(ActorId) {
            if self.residents[actor.index()].machine.is_some() {
                self.dispatch(actor, Input::Start { epoch: 0 });
            }
        }
    }

    /// Takes a message from another shard in at `now`, to be delivered when it is due: at once if that is past.
    pub fn receive(&mut self, now: Time, parcel: &Parcel) {
        let Parcel { sent, due, from, count, to, msg, returned } = *parcel;
        self.observer.received(now.since(due));
        let asked = order::asked(due.since(sent));
        let (to, stamp, input) = if returned {
            let endpoint = self.parts.layout.endpoint(from);
            if self.parts.fabric.faults().crash_between(endpoint, sent, now).is_some() {
                // Of an earlier life.
                return;
            }
            (from, self.residents[from.index()].epoch, Input::Undelivered { to, msg })
        } else if self.reset(to, due, now) {
            self.traffic.dropped += u64::from(!msg.is_fragment());
            if KINDS[msg.kind() as usize].1 == Class::Stream {
                self.outbox.put(self.home(from), Parcel { returned: true, ..*parcel });
            }
            return;
        } else {
            (to, asked, Input::Deliver { from, msg })
        };
        self.queue
            .push(Key { due, source: parcel.from, count }, Event { to, stamp, what: What::Input(input) });
    }

    pub(super) fn home(&self, actor: ActorId) -> u16 {
        self.parts.placement.home(self.parts.layout.endpoint(actor).index())
    }

    /// Whether the actor that a late message was meant for has crashed since it was due.
    fn reset(&self, to: ActorId, due: Time, now: Time) -> bool {
        let endpoint = self.parts.layout.endpoint(to);
        due < now && self.parts.fabric.faults().crash_between(endpoint, due, now).is_some()
    }

    /// When the next event is due.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.queue.peek().map(|key| key.due)
    }

    /// Handles the next event at the time it is due; `false` if there is none.
    pub fn advance(&mut self) -> bool {
        self.advance_at(Time::ZERO)
    }

    /// Handles the next event when the clock shows `clock`, or its due time if that is later: actors see the
    /// time that it is, not the time that it should be. `false` if there is no event.
    pub fn advance_at(&mut self, clock: Time) -> bool {
        let Some((key, event)) = self.queue.pop() else { return false };
        self.look_ahead();
        self.now = self.now.max(key.due).max(clock);
        self.observe(key.due, &event);
        self.events += 1;
        self.hash = order::hash(self.hash, key, &event);
        match event.what {
            What::Input(input) => self.input(event.to, event.stamp, input),
            What::Told(msg) => self.told(event.to, msg),
            What::Crash => self.crash(event.to),
            What::Notice => self.notice(event.to),
            What::Restart => self.restart(event.to),
            What::Stall => self.stall(event.to, true),
            What::Resume => self.stall(event.to, false),
        }
        true
    }

    /// Tells how late an event comes.
    #[inline]
    fn observe(&mut self, due: Time, event: &Event) {
        let what = match event.what {
            What::Input(Input::Deliver { .. }) => {
                Due::Delivery { asked: Span(u64::from(event.stamp) * 1000) }
            }
            What::Input(Input::Done { .. }) => Due::Work,
            What::Input(Input::Fire(_)) => Due::Timer,
            What::Input(_) | What::Told(_) => return,
            What::Crash | What::Notice | What::Restart | What::Stall | What::Resume => return,
        };
        self.observer.due(what, self.now.since(due));
    }

    pub(super) fn input(&mut self, to: ActorId, stamp: u32, input: Input) {
        let done = matches!(input, Input::Done { .. });
        // Of an earlier life, or of a copy that was halted since.
        let own = done || matches!(input, Input::Fire(_) | Input::Undelivered { .. });
        if own && self.residents[to.index()].epoch != stamp {
            return;
        }
        if done {
            self.ended(self.parts.layout.core_index(to));
        }
        // Cores stall in a pause, so a completion falls on its beginning at the latest and goes through.
        if !done && let Some(at) = self.resumes(to) {
            self.push(at, to, Event { to, stamp, what: What::Input(input) });
            return;
        }
        if self.residents[to.index()].machine.is_some() {
            self.dispatch(to, input);
        } else if self.parts.fabric.faults().alive(self.parts.layout.endpoint(to), self.now) {
            // It comes back at this very instant: after that.
            self.push(self.now, to, Event { to, stamp, what: What::Input(input) });
        } else if let Input::Deliver { from, msg } = input
            && self.parts.layout.local(from, to)
        {
            // It waited for the end of a pause that a crash cut short; the network would have known.
            self.tell(to, from, Input::Undelivered { to, msg });
        }
    }

    /// When a paused actor goes on; `None` if it is not paused.
    pub(super) fn resumes(&self, actor: ActorId) -> Option<Time> {
        if !self.parts.pauses {
            return None;
        }
        let at = self.parts.fabric.faults().resumes(self.parts.layout.endpoint(actor), self.now);
        (at > self.now).then_some(at)
    }

    /// Gives an actor an input now, or when its pause ends: then in order with what `source` sends it later.
    pub(super) fn tell(&mut self, source: ActorId, to: ActorId, input: Input) {
        match self.resumes(to) {
            Some(at) => self.push(at, source, Event { to, stamp: 0, what: What::Input(input) }),
            None => self.dispatch(to, input),
        }
    }

    /// Steps an actor, and then whoever it spoke to on the same node, until all is said.
    pub(super) fn dispatch(&mut self, to: ActorId, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        let mut next = Some((to, input));
        let mut steps = 0;
        while let Some((to, input)) = next {
            steps += 1;
            if self.board.is_behind(to) {
                self.catch_up(to);
            }
            assert!(steps < ENDLESS, "actor {} and its neighbours talk without end at {}", to.0, self.now);
            if let Resident { machine: Some(machine), rng, .. } = &mut self.residents[to.index()] {
                let Parts { workload, layout, .. } = self.parts;
                machine.step(input, &mut Effects::new(self.now, to, rng, &mut effects, workload, layout));
                self.observer.stepped(self.now, to, &input, &effects);
                self.look_at_links(to, &effects);
                for effect in effects.drain(..) {
                    self.carry_out(to, effect);
                }
            }
            next = self.lane.pop_front();
        }
        self.effects = effects;
    }

    fn carry_out(&mut self, me: ActorId, effect: Effect) {
        match effect {
            Effect::Broadcast { msg } => self.announce(me, msg),
            Effect::Send { to, msg, recovery } => {
                if self.parts.layout.local(me, to) {
                    self.say(me, to, msg);
                } else {
                    self.send(me, to, msg, recovery);
                }
            }
            Effect::Arm { timer, after } => self.arm(me, timer, after),
            Effect::Run { copy, left } => self.run(me, copy, left),
            Effect::Halt { copy } => self.halt(me, copy),
            Effect::QueryProgress { copy } => self.gauge(me, copy),
            Effect::Note(note) => self.observer.note(self.now, me, note),
        }
    }

    fn arm(&mut self, me: ActorId, timer: Timer, after: Span) {
        let what = What::Input(Input::Fire(timer));
        self.push(self.now + after, me, Event { to: me, stamp: self.residents[me.index()].epoch, what });
    }

    pub(super) fn push(&mut self, due: Time, source: ActorId, event: Event) {
        let count = self.count(source);
        self.queue.push(Key { due, source, count }, event);
    }

    /// Counts one more event that `source` has caused.
    pub(super) fn count(&mut self, source: ActorId) -> u32 {
        let count = &mut self.residents[source.index()].count;
        *count = count.wrapping_add(1);
        *count
    }
}
