//! The event loop: machines, event queue, network, cores.
//!
//! A [`Shard`] pops the next event, steps the machine concerned and turns its effects into events, until nothing is
//! due. Events are ordered by (due time, source, source's count). Messages between actors of one node need neither
//! network nor queue: they are delivered within the step, in the order in which they were sent. Actors that take time
//! for messages have queues of their own.
//!
//! Faults are known in advance, so the network decides at send time what a crash or partition does to a message; the
//! shard only drops and rebuilds machines, and its failure detector reports both.
//!
//! A shard may own only some of the actors. Messages to other shards leave through the [`Outbox`]; messages from other
//! shards enter through [`Shard::receive`]. The order of events does not depend on the order in which they were queued,
//! so several shards together behave like one.
//!
//! A broadcast that reaches all other schedulers at the same time is one event. The delivery is passive: receivers
//! process it without effects other than notes (see `Effect::Broadcast`), so a scheduler may read it when it arrives or
//! at any time before its next input, with the same result. The broadcast is therefore appended to a log. A scheduler
//! reads the entries since its last step, each with its time of arrival, just before its next step. With thousands of
//! schedulers that each act rarely, this replaces an event per message and receiver by a tight loop. A scheduler whose
//! notes the observer needs in order of time reads every entry at once.

use std::collections::VecDeque;

use volary_actors::base::{ActorId, CopyId, Endpoint, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effect, Effects, Input, Machine, Oracle, Stored, Timer};
use volary_actors::message::{KINDS, Message};
use volary_actors::roles::Worker;
use volary_netem::Fabric;

use super::actors::Actors;
use super::broadcasts::BroadcastLog;
use super::executor::ExecutorState;
use super::observer::PassedBounds;
use super::servers::Servers;
use super::{Due, Observer, Outbox, Parts, Traffic};
use crate::cores::{Change, Cores};
use crate::queue::{Key, Queue};

/// A queued event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) to: ActorId,
    pub(super) stamp: Stamp,
    pub(super) kind: EventKind,
}

/// 32 bits of context, whose meaning depends on the kind of event. For timers, completions and returned messages it is
/// the actor's [epoch](super::actors::Actors::epoch) at the time of queueing, for deliveries the configured delay;
/// other events do not use it. A second field would make a queued event larger than a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp(u32);

impl Stamp {
    pub(super) const NONE: Self = Self(0);

    /// A delay in microseconds, saturating at 71 minutes.
    pub(super) fn delay(delay: Span) -> Self {
        Self(u32::try_from(delay.0 / 1000).unwrap_or(u32::MAX))
    }

    const fn as_delay(self) -> Span {
        Span(self.0 as u64 * 1000)
    }
}

#[derive(Debug)]
pub(super) enum EventKind {
    Input(Input),
    /// The actor has handled the first input in its queue.
    Handled,
    /// A broadcast sent by the addressed actor reaches all other schedulers.
    Broadcast(Message),
    /// The endpoint crashes.
    Crash,
    /// The failure detector reports the crash.
    CrashDetected,
    /// The endpoint comes back.
    Restart,
    /// The node is paused, and its real cores with it.
    Pause,
    /// The node and its real cores continue.
    Resume,
    /// The running copy of the worker, on a shared node, enters its next segment.
    Segment,
    /// The shares of a shared node are computed again.
    Share,
}

/// Number of actors above which actors do not fit into the cache and prefetching pays.
pub(super) const LARGE: u32 = 20_000;

/// Number of steps within one instant and one node above which a conversation counts as endless.
const ENDLESS: u32 = 1 << 24;

/// Actors of one thread under one clock.
pub struct Shard<'a, O> {
    pub(super) parts: Parts<'a>,
    pub(super) actors: Actors,
    pub(super) queue: Queue<Event>,
    /// Actors of upcoming events; a reused buffer.
    pub(super) upcoming: Vec<ActorId>,
    /// Inputs between actors of one node that this step has yet to deliver.
    pub(super) local_queue: VecDeque<(ActorId, Input)>,
    /// Endpoints that the failure detector has reported as down.
    pub(super) down: Vec<ActorId>,
    /// State that crashed machines have stored for their successors.
    pub(super) stored: Vec<(ActorId, Stored)>,
    effects: Vec<Effect>,
    /// The oracle, for a policy that asks for it.
    pub(super) oracle: Option<Oracle>,
    /// The copy last started on each core; `None` unless injections are expected or nodes are shared.
    pub(super) copies: Option<Box<[Option<CopyId>]>>,
    /// Whether the copy last started on each core belongs to a gang with another task on a node that the job does not
    /// prefer; `None` if no job prefers some nodes.
    pub(super) elsewhere: Option<Box<[bool]>>,
    /// Changes to copies when the CPU of a node is shared out, a reused buffer; `None` if nodes are not shared.
    pub(super) share_changes: Option<Vec<Change>>,
    pub(super) now: Time,
    events: u64,
    hash: u64,
    pub(super) traffic: Traffic,
    pub(super) bounds: PassedBounds,
    pub(super) outbox: Outbox,
    pub(super) broadcasts: BroadcastLog,
    /// The actors as servers; `None` if they take no time.
    pub(super) servers: Option<Servers>,
    /// Copies on real cores, in runs that have them.
    pub(super) executor: Option<ExecutorState>,
    /// The observer that gets the shard's callbacks.
    pub observer: O,
}

impl<'a, O: Observer> Shard<'a, O> {
    /// Builds every actor that the shard owns and schedules the faults; nothing runs before [`Shard::start`].
    pub fn new(parts: Parts<'a>, observer: O) -> Self {
        let actors = parts.layout.actors();
        let mut shard = Self {
            actors: Actors::new(parts.layout.endpoints(), parts.layout.workers(), parts.seed),
            queue: Queue::new(),
            upcoming: Vec::new(),
            local_queue: VecDeque::new(),
            down: Vec::new(),
            stored: Vec::new(),
            effects: Vec::new(),
            oracle: parts.oracle(),
            copies: parts.cores.is_shared().then(|| no_copies(parts.layout)),
            elsewhere: parts.workload.prefers().then(|| vec![false; parts.layout.workers() as usize].into()),
            share_changes: parts.cores.is_shared().then(Vec::new),
            now: Time::ZERO,
            events: 0,
            hash: 0,
            traffic: Traffic { by_kind: [0; KINDS.len()], recovery: 0, dropped: 0, retransmissions: 0 },
            bounds: PassedBounds::new(parts.window),
            outbox: Outbox::new(parts.placement.shards()),
            broadcasts: BroadcastLog::new(parts.layout, |scheduler| observer.watches(scheduler)),
            servers: parts.actors.map(|section| Servers::new(section, parts.layout, parts.seed)),
            executor: None,
            observer,
            parts,
        };
        if actors >= LARGE {
            shard.queue.look_ahead();
        }
        for endpoint in (0..shard.parts.layout.endpoints()).map(ActorId) {
            if shard.parts.placement.owns(endpoint.index()) {
                shard.build_machines(endpoint);
            }
        }
        shard.schedule_faults();
        shard
    }

    /// Builds the machine of an endpoint and, for a node, the machines of its workers.
    pub(super) fn build_machines(&mut self, endpoint: ActorId) {
        let layout = self.parts.layout;
        self.actors.slot(endpoint).machine = Some(self.parts.machine(endpoint));
        if let Role::Node(node) = layout.role(endpoint) {
            for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
                self.actors.set_worker(layout.core_index(worker), Some(Worker::new(endpoint)));
            }
        }
    }

    /// Replaces the machine of `endpoint` until it crashes, for benchmarks and tests of the loop itself. Must be called
    /// before [`start`](Self::start).
    ///
    /// # Panics
    /// If the actor is a worker, which is not an endpoint.
    pub fn install(&mut self, endpoint: ActorId, machine: Box<dyn Machine>) {
        self.actors.slot(endpoint).machine = Some(machine);
    }

    /// Steps every actor that the shard owns with `Start`, in order of ids.
    pub fn start(&mut self) {
        self.pass_bounds();
        for actor in (0..self.parts.layout.actors()).map(ActorId) {
            if self.actors.is_up(actor) {
                self.dispatch(actor, Input::Start { epoch: 0 });
            }
        }
    }

    /// Due time of the next event.
    pub fn next(&self) -> Option<Time> {
        self.queue.due()
    }

    /// Handles the next event at its due time; `false` if there is none.
    pub fn advance(&mut self) -> bool {
        self.advance_by(Time::MAX)
    }

    /// Handles the next event at its due time; `false` if none is due by `limit`.
    pub fn advance_by(&mut self, limit: Time) -> bool {
        self.queue.pop_by(limit).is_some_and(|(key, event)| self.handle(Time::ZERO, key, event))
    }

    /// Handles the next event at the time that the clock shows, or at its due time if that is later; returns `false` if
    /// there is none. Actors see this time instead of the due time.
    pub fn advance_at(&mut self, clock: Time) -> bool {
        self.queue.pop().is_some_and(|(key, event)| self.handle(clock, key, event))
    }

    /// Handles an event that has left the queue.
    #[inline]
    fn handle(&mut self, clock: Time, key: Key, event: Event) -> bool {
        self.prefetch_upcoming();
        self.now = self.now.max(key.due).max(clock);
        if self.bounds.next <= self.now {
            self.pass_bounds();
        }
        self.observe_lateness(key.due, &event);
        self.events += 1;
        self.hash = order_hash(self.hash, key, &event);
        if self.broadcasts.read < self.broadcasts.entries.len() && self.observer.reads_by() <= self.now {
            self.read_broadcasts();
        }
        match event.kind {
            EventKind::Input(input) => self.handle_input(key.due, event.to, event.stamp, input),
            EventKind::Handled => self.end_handling(event.to, event.stamp),
            EventKind::Broadcast(msg) => self.append_broadcast(event.to, msg),
            EventKind::Crash => self.crash(event.to),
            EventKind::CrashDetected => self.detect_crash(event.to),
            EventKind::Restart => self.restart(event.to),
            EventKind::Pause => self.set_executor_paused(event.to, true),
            EventKind::Resume => self.set_executor_paused(event.to, false),
            EventKind::Segment => self.end_segment(event.to, event.stamp),
            EventKind::Share => self.share_out(event.to),
        }
        true
    }

    /// Reports how late an event is handled.
    #[inline]
    fn observe_lateness(&mut self, due: Time, event: &Event) {
        let what = match event.kind {
            EventKind::Input(Input::Deliver { .. }) => Due::Delivery { asked: event.stamp.as_delay() },
            EventKind::Input(Input::Done { .. }) | EventKind::Segment => Due::Work,
            EventKind::Input(Input::Fire(_)) | EventKind::Handled => Due::Timer,
            EventKind::Input(_) | EventKind::Broadcast(_) => return,
            EventKind::Crash | EventKind::CrashDetected | EventKind::Restart => return,
            EventKind::Pause | EventKind::Resume | EventKind::Share => return,
        };
        self.observer.due(what, self.now.since(due));
    }

    #[inline]
    fn handle_input(&mut self, due: Time, to: ActorId, stamp: Stamp, input: Input) {
        let done = matches!(input, Input::Done { .. });
        // An actor that restarts is notified again of the actors that are down, so reports from before are void.
        let has_epoch = done
            || matches!(
                input,
                Input::Fire(_) | Input::Undelivered { .. } | Input::Down { .. } | Input::Up { .. }
            );
        if has_epoch && self.epoch(to) != stamp {
            return;
        }
        if done {
            let core = self.parts.layout.core_index(to);
            self.complete_copy(core);
            if self.share_changes.is_some() {
                self.plan_sharing(core);
            }
        }
        // Cores do no work in a pause, so a completion is due by the beginning of the pause and is not held back.
        if !done && let Some(at) = self.resumes_at(to) {
            self.push(at, to, Event { to, stamp, kind: EventKind::Input(input) });
            return;
        }
        if self.actors.is_up(to) {
            if let Input::Deliver { from, msg } = &input {
                // A local message that a pause held back has no delay of its own.
                let sent = Time(due.0.saturating_sub(stamp.as_delay().0));
                self.observer.delivered(self.now, sent, *from, to, msg);
            }
            self.handle_or_queue(to, input);
        } else if self.parts.fabric.faults().alive(self.parts.layout.endpoint(to), self.now) {
            // The actor restarts at this very instant: deliver after the restart.
            self.push(self.now, to, Event { to, stamp, kind: EventKind::Input(input) });
        } else if let Input::Deliver { from, msg } = input
            && self.parts.layout.local(from, to)
        {
            // A crash cut short the pause that held back this local message. The network returns its own messages at
            // send time.
            self.dispatch_when_running(to, from, Input::Undelivered { to, msg });
        }
    }

    /// The actor's epoch, in the form that events carry.
    #[inline]
    pub(super) fn epoch(&self, actor: ActorId) -> Stamp {
        Stamp(self.actors.epoch(actor))
    }

    /// The time at which a paused actor continues; `None` if it is not paused.
    #[inline]
    pub(super) fn resumes_at(&self, actor: ActorId) -> Option<Time> {
        if !self.parts.pauses {
            return None;
        }
        let at = self.parts.fabric.faults().resumes(self.parts.layout.endpoint(actor), self.now);
        (at > self.now).then_some(at)
    }

    /// Steps an actor with an input now or, if it is paused, when its pause ends, in order with later events of
    /// `source`. Inputs that carry an epoch are dropped if the actor crashes in the pause.
    pub(super) fn dispatch_when_running(&mut self, source: ActorId, to: ActorId, input: Input) {
        match self.resumes_at(to) {
            Some(at) => {
                self.push(at, source, Event { to, stamp: self.epoch(to), kind: EventKind::Input(input) })
            }
            None => self.handle_or_queue(to, input),
        }
    }

    /// Steps an actor, then the actors of the same node that have local inputs, until no local input is left.
    pub(super) fn dispatch(&mut self, to: ActorId, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        let mut next = Some((to, input));
        let mut steps = 0;
        while let Some((to, input)) = next {
            steps += 1;
            if self.broadcasts.has_unread(to) {
                self.catch_up(to);
            }
            assert!(
                steps < ENDLESS,
                "actor {} and its neighbours exchange messages without end at {}",
                to.0,
                self.now
            );
            if let Some((machine, rng)) = self.actors.machine(to) {
                let Parts { workload, layout, .. } = self.parts;
                let fx = Effects::new(self.now, to, rng, &mut effects, workload, layout);
                machine.step(input, &mut fx.with_oracle(self.oracle.as_ref()));
                self.observer.stepped(self.now, to, &input, &effects);
                self.prefetch_links(to, &effects);
                for &effect in &effects {
                    self.carry_out(to, effect);
                }
                effects.clear();
            }
            next = self.local_queue.pop_front();
        }
        self.effects = effects;
    }

    #[inline]
    fn carry_out(&mut self, me: ActorId, effect: Effect) {
        match effect {
            Effect::Broadcast { msg } => self.broadcast(me, msg),
            Effect::Send { to, msg, recovery } => {
                if self.parts.layout.local(me, to) {
                    self.deliver_locally(me, to, msg);
                } else {
                    self.send(me, to, msg, recovery);
                }
            }
            Effect::Arm { timer, after } => self.arm(me, timer, after),
            Effect::Run { copy, left, elsewhere } => self.start_copy(me, copy, left, elsewhere),
            Effect::Halt { copy } => self.halt_copy(me, copy),
            Effect::QueryProgress { copy } => self.query_progress(me, copy),
            Effect::Note(note) => self.observer.note(self.now, me, note),
        }
    }

    #[inline]
    fn arm(&mut self, me: ActorId, timer: Timer, after: Span) {
        let event = Event { to: me, stamp: self.epoch(me), kind: EventKind::Input(Input::Fire(timer)) };
        if timer == Timer::Settled {
            // Events of one instant are ordered by source. This source is above all actors, so the timer fires last.
            let (source, count) = (ActorId(u32::MAX - me.0), self.actors.count_event(me));
            return self.queue.push(Key { due: self.now + after, source, count }, event);
        }
        self.push(self.now + after, me, event);
    }

    #[inline]
    pub(super) fn push(&mut self, due: Time, source: ActorId, event: Event) {
        let count = self.actors.count_event(source);
        self.queue.push(Key { due, source, count }, event);
    }
}

impl<'a, O: Observer> Shard<'a, O> {
    /// Parcels that wait for other shards.
    pub const fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Number of pending events.
    pub const fn pending(&self) -> usize {
        self.queue.len()
    }

    /// The time of the last event.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Number of events handled.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Hash of the order of events so far.
    pub const fn order_hash(&self) -> u64 {
        self.hash
    }

    /// Counters of messages.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The error of a program that decides for an actor of this shard, if there is one. The run cannot continue after
    /// it.
    pub fn failure(&self) -> Option<String> {
        self.parts.programs.as_ref()?.failure()
    }

    /// CPU time of planning so far, in nanoseconds.
    pub fn planning(&self) -> u64 {
        self.parts.stopwatch.as_ref().map_or(0, |stopwatch| stopwatch.elapsed())
    }

    /// The network, with its counters.
    pub const fn fabric(&self) -> &Fabric {
        &self.parts.fabric
    }

    /// The cores, with their totals and bursts.
    pub const fn cores(&self) -> &Cores {
        &self.parts.cores
    }

    /// Ids and roles of the actors.
    pub const fn layout(&self) -> &'a Layout {
        self.parts.layout
    }

    /// Whether an endpoint is up now.
    pub fn is_up(&self, endpoint: Endpoint) -> bool {
        self.actors.is_up(ActorId(endpoint.0))
    }
}

/// A table without a copy on any core.
pub(super) fn no_copies(layout: &Layout) -> Box<[Option<CopyId>]> {
    vec![None; layout.workers() as usize].into()
}

/// The order hash after one more event.
#[inline]
fn order_hash(before: u64, key: Key, event: &Event) -> u64 {
    (before.rotate_left(7) ^ fingerprint(key, event)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The part of an event that enters the order hash: time, source, receiver and kind.
fn fingerprint(key: Key, event: &Event) -> u64 {
    let kind = match &event.kind {
        EventKind::Input(Input::Deliver { msg, .. }) => u64::from(msg.kind()),
        EventKind::Input(Input::Undelivered { msg, .. }) => 0x100 + u64::from(msg.kind()),
        EventKind::Input(Input::Done { copy }) => 0x200 + (u64::from(copy.task.index) << 16),
        EventKind::Input(_) => 0x300,
        EventKind::Broadcast(msg) => 0x700 + u64::from(msg.kind()),
        EventKind::Crash => 0x400,
        EventKind::CrashDetected => 0x500,
        EventKind::Restart => 0x600,
        EventKind::Pause => 0x800,
        EventKind::Resume => 0x900,
        EventKind::Segment => 0xa00,
        EventKind::Share => 0xb00,
        EventKind::Handled => 0xc00,
    };
    key.due.0
        ^ (u64::from(key.source.0) << 32 | u64::from(key.count))
        ^ kind.rotate_left(24)
        ^ u64::from(event.to.0).rotate_left(48)
}
