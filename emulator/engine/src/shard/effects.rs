//! Effects of machines, carried out by their shard: messages and copies.
//!
//! Messages are delivered within a node, over the emulated network, to other shards, or to all schedulers. Copies
//! on cores start, halt, report progress and complete, and interference is injected during a run. On shared nodes
//! copies have shares of the CPU, and changes of their use are reported to node managers.
//!
//! The state that upcoming events touch is prefetched into the cache. In a large cluster every event concerns an
//! actor that was last touched long ago, and each access (the event, the actor's slot, its machine) is a cache miss
//! that depends on the previous one. The queue knows a few dozen events in advance; their misses overlap when they
//! are requested together.

use volary_actors::base::{ActorId, Class, CopyId, Endpoint, Score, Span, Time};
use volary_actors::catalog::Catalog as _;
use volary_actors::layout::Role;
use volary_actors::machine::{Effect, Effects, Input};
use volary_actors::message::{KINDS, Message};
use volary_netem::Verdict;

use super::broadcasts::{BroadcastEntry, BroadcastLog};
use super::event_loop::{Event, EventKind, LARGE, Stamp, no_copies};
use super::executor::ExecutorState;
use super::{CoreExecutor, Observer, Parts, Shard};
use crate::cores::{Change, Injection, Next};
use crate::parcel::Parcel;
use crate::queue::Key;
use crate::results::Worked;
use volary_actors::base::CoreSet;

impl<O: Observer> Shard<'_, O> {
    /// Delivers a message to an actor of the same node within this step. A message to an actor that is down is
    /// returned.
    pub(super) fn deliver_locally(&mut self, me: ActorId, to: ActorId, msg: Message) {
        let input = Input::Deliver { from: me, msg };
        if !self.actors.is_up(to) {
            self.local_queue.push_back((me, Input::Undelivered { to, msg }));
        } else if self.parts.layout.endpoint(me) != self.parts.layout.endpoint(to)
            && let Some(at) = self.resumes_at(to)
        {
            // A client and its scheduler share a machine, but faults can pause one without the other.
            self.push(at, me, Event { to, stamp: Stamp::NONE, kind: EventKind::Input(input) });
        } else if self.parts.layout.endpoint(me) == self.parts.layout.endpoint(to)
            // A client and its scheduler share a machine, but each is a server of its own.
            || !self.queue_at_server(to, input)
        {
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
        match self.parts.fabric.route(self.now, src, dst, class, msg.wire_bytes(layout)) {
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
            // A delivery is strictly later than its cause on any clock, because merging the notes of two shards relies
            // on it.
            let due = self.now + after.max(Span(1));
            let count = self.actors.count_event(me);
            let parcel = Parcel { sent: self.now, due, from: me, count, to, msg, returned: false };
            self.outbox.put(self.home(to), parcel);
        }
    }

    /// Accepts a message from another shard at `now`. The message is delivered when it is due, or immediately if it is
    /// overdue.
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
    /// Sends a message to every other scheduler, as one event if the network delays all copies equally.
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
        let bytes = msg.wire_bytes(layout);
        self.parts.fabric.count_delivered(KINDS[kind as usize].1, receivers, after, bytes);
        if receivers > 0 {
            let kind = EventKind::Broadcast(msg);
            self.push(self.now + after, me, Event { to: me, stamp: Stamp::NONE, kind });
        }
    }

    /// Handles the arrival of a broadcast.
    pub(super) fn append_broadcast(&mut self, from: ActorId, msg: Message) {
        if self.broadcasts.entries.len() == BroadcastLog::FULL {
            (0..self.broadcasts.cursors.len()).for_each(|reader| self.read_as(reader));
            self.broadcasts.entries.clear();
            self.broadcasts.cursors.fill(0);
            self.broadcasts.read = 0;
        }
        self.broadcasts.entries.push(BroadcastEntry { at: self.now, from, msg });
    }

    /// Steps every watched scheduler through the entries that it has not read.
    pub fn read_broadcasts(&mut self) {
        (0..self.broadcasts.watched.len()).for_each(|at| self.read_as(self.broadcasts.watched[at] as usize));
        self.broadcasts.read = self.broadcasts.entries.len();
    }

    /// Steps a scheduler through the entries that it has not read.
    pub(super) fn catch_up(&mut self, actor: ActorId) {
        if let Some(reader) = self.broadcasts.reader(actor) {
            self.read_as(reader);
        }
    }

    fn read_as(&mut self, reader: usize) {
        let log = &mut self.broadcasts;
        let me = ActorId(log.first + reader as u32);
        let from = log.cursors[reader] as usize;
        log.cursors[reader] = log.entries.len() as u32;
        let Parts { workload, layout, .. } = self.parts;
        let Some((machine, rng)) = self.actors.machine(me) else { return };
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

impl<O: Observer> Shard<'_, O> {
    /// Runs a copy from the beginning, or resumes a suspended one that has `left` work. `elsewhere` says that another
    /// task of its gang runs on a node that the job does not prefer.
    pub(super) fn start_copy(&mut self, me: ActorId, copy: CopyId, left: Option<Span>, elsewhere: bool) {
        if let (Some(oracle), None) = (&mut self.oracle, left) {
            oracle.begin(copy.task.job);
        }
        let core = self.parts.layout.core_index(me);
        if let Some(slowed) = &mut self.elsewhere {
            slowed[core as usize] = elsewhere;
        }
        let workload = self.parts.workload;
        self.parts.cores.serve(core, || workload.class_index(copy.task.job));
        if self.share_changes.is_some() {
            return self.start_shared_copy(core, copy, self.work_on(core, copy), left);
        }
        let work = left.unwrap_or_else(|| self.work_on(core, copy));
        let end = self.parts.cores.start(core, self.now, work);
        if let Some(executor) = &mut self.executor {
            return executor.run(&self.parts.cores, core, self.now, copy, work, end);
        }
        if let Some(copies) = &mut self.copies {
            copies[core as usize] = Some(copy);
        }
        self.schedule_completion(me, copy, end);
    }

    /// The work of a copy on the core that runs it.
    fn work_on(&self, core: u32, copy: CopyId) -> Span {
        let elsewhere = self.elsewhere.as_ref().is_some_and(|slowed| slowed[core as usize]);
        let layout = self.parts.layout;
        self.parts.workload.work_on(copy, layout.kind(layout.node_of_core(core)), elsewhere)
    }

    pub(super) fn schedule_completion(&mut self, me: ActorId, copy: CopyId, end: Time) {
        // A copy that never ends stays until it is halted.
        if end < Time::MAX {
            let kind = EventKind::Input(Input::Done { copy });
            self.push(end, me, Event { to: me, stamp: self.epoch(me), kind });
        }
    }

    pub(super) fn halt_copy(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = self.parts.cores.preempt(core, self.now);
        let now = self.now;
        let left = self.executor.as_mut().map_or(left, |executor| executor.stop(core, now, left));
        self.actors.begin_epoch(me);
        // Ahead of other local inputs, because the core may be given new work in the same step.
        self.local_queue.push_front((me, Input::Halted { copy, left }));
        if self.share_changes.is_some() {
            self.plan_sharing(core);
        }
    }

    pub(super) fn query_progress(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = match &self.executor {
            Some(executor) => executor.left(core),
            None => self.parts.cores.left(core, self.now),
        };
        let work = self.work_on(core, copy);
        let (score, done) = (Score::of(work, left), work.saturating_sub(left));
        self.local_queue.push_front((me, Input::Progress { copy, score, done }));
    }

    /// Records the loss of the copy on a core in a crash.
    pub(super) fn lose_copy(&mut self, core: u32) {
        self.parts.cores.stop(core, self.now);
        if let Some(executor) = &mut self.executor {
            executor.halt(core);
        }
    }

    /// Handles the completion of the copy on a core.
    pub(super) fn complete_copy(&mut self, core: u32) {
        match &mut self.executor {
            None => self.parts.cores.finished(core, self.now),
            // A real core may finish earlier or later than the emulated one would.
            Some(executor) => {
                executor.completed(core);
                self.parts.cores.stop(core, self.now);
            }
        }
    }

    /// Enables [`inject`](Self::inject), which needs to know the copy on every core. Must be called before
    /// [`start`](Self::start).
    pub fn expect_injections(&mut self) {
        self.copies = Some(no_copies(self.parts.layout));
    }

    /// Overrides the interference profile of some cores when the clock shows `clock`. The past is fixed, so the
    /// injection begins at that time at the earliest, and never applies if it ends earlier. Returns its number and its
    /// start.
    ///
    /// # Panics
    /// Without [`expect_injections`](Self::expect_injections).
    pub fn inject(&mut self, clock: Time, mut injection: Injection) -> (usize, Time) {
        injection.from = injection.from.max(clock).max(self.now);
        injection.until = injection.until.max(injection.from);
        let number = self.parts.cores.inject(&injection);
        self.reschedule_completions(&injection.cores);
        (number, injection.from)
    }

    /// Ends an injection into `cores` when the clock shows `clock`, unless it has ended. Returns the latest time at
    /// which it ends.
    pub fn lift(&mut self, clock: Time, number: usize, cores: &CoreSet) -> Time {
        let at = clock.max(self.now);
        self.parts.cores.lift(number, at);
        self.reschedule_completions(cores);
        at
    }

    /// Recomputes the ends of copies. Completions queued for another time become void.
    fn reschedule_completions(&mut self, cores: &CoreSet) {
        if let Some(executor) = &mut self.executor {
            executor.slowdowns_changed();
        }
        if self.share_changes.is_some() {
            return self.retime_shared(cores);
        }
        for core in cores.iter() {
            let Some(end) = self.parts.cores.retime(core) else { continue };
            if let Some(executor) = &mut self.executor {
                executor.set_due(core, end);
                continue;
            }
            let worker = self.parts.layout.worker_of_core(core);
            self.actors.begin_epoch(worker);
            let copies = self.copies.as_ref().expect("injections were expected");
            if let Some(copy) = copies[core as usize] {
                self.schedule_completion(worker, copy, end);
            }
        }
    }
}

/// Copies on real cores.
impl<O: Observer> Shard<'_, O> {
    /// Runs copies on real cores from now on. Must be called before [`start`](Self::start).
    pub fn set_executor(&mut self, executor: Box<dyn CoreExecutor>) {
        self.executor = Some(ExecutorState::new(executor, self.parts.layout.workers()));
        for node in 0..self.parts.layout.nodes() {
            let node = self.parts.layout.node(node);
            if self.parts.placement.owns(node.index()) {
                let pauses = self.parts.fabric.faults().pauses(Endpoint(node.0)).to_vec();
                for (from, until) in pauses {
                    self.schedule(from, node, EventKind::Pause);
                    self.schedule(until, node, EventKind::Resume);
                }
            }
        }
    }

    /// Handles the copies that the executor has finished and keeps its slowdown plan up to date. Must be called
    /// repeatedly; does nothing without an executor.
    pub fn poll_executor(&mut self, now: Time) {
        let Some(state) = &mut self.executor else { return };
        state.degrade(&self.parts.cores, now);
        while let Some((core, copy, at)) = self.executor.as_mut().and_then(ExecutorState::finished) {
            let me = self.parts.layout.worker_of_core(core);
            let kind = EventKind::Input(Input::Done { copy });
            self.push(at, me, Event { to: me, stamp: self.epoch(me), kind });
        }
    }

    /// Detaches the executor and returns the work of its cores; `None` without one.
    pub fn take_executor(&mut self) -> Option<Worked> {
        self.executor.take().map(ExecutorState::end)
    }

    /// Pauses or resumes the real cores of a node.
    pub(super) fn set_executor_paused(&mut self, actor: ActorId, paused: bool) {
        let Some(state) = &mut self.executor else { return };
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            state.set_paused(self.parts.layout.core_index(worker), paused);
        }
    }
}

impl<O: Observer> Shard<'_, O> {
    /// Runs a copy on a core of a shared node. `left` is the work that it has yet to do; `None` starts it from the
    /// beginning.
    pub(super) fn start_shared_copy(&mut self, core: u32, copy: CopyId, work: Span, left: Option<Span>) {
        let left = left.unwrap_or(work);
        let workload = self.parts.workload;
        let segment = workload.segment(copy.task, work.saturating_sub(left));
        let request = u32::try_from(workload.request(copy.task.job).cpu).unwrap_or(u32::MAX);
        // The remaining work of a suspended copy can exceed its whole work here, if it takes longer elsewhere.
        self.parts.cores.begin_shared(core, self.now, (work.max(left), left), request, segment);
        if let Some(copies) = &mut self.copies {
            copies[core as usize] = Some(copy);
        }
        self.plan_sharing(core);
    }

    /// Ends a segment of the copy of a worker. Ignored if the copy was stopped or retimed since.
    pub(super) fn end_segment(&mut self, worker: ActorId, stamp: Stamp) {
        if self.epoch(worker) != stamp {
            return;
        }
        let core = self.parts.layout.core_index(worker);
        let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { return };
        let workload = self.parts.workload;
        self.parts.cores.use_as(core, self.now, |done| workload.segment(copy.task, done));
        self.plan_sharing(core);
    }

    /// Schedules the sharing out of a node's CPU after all actions of its workers at this instant, so that simultaneous
    /// changes of use are handled as one. Otherwise a node would evict copies for memory that they never use at the
    /// same time.
    pub(super) fn plan_sharing(&mut self, core: u32) {
        let layout = self.parts.layout;
        let node = layout.node_of_core(core);
        if !self.parts.cores.note_sharing(node) {
            // Events of one instant are ordered by source, so the event of the last worker comes last.
            let last = layout.worker(node, layout.cores(node) - 1);
            let event = Event { to: layout.node(node), stamp: Stamp::NONE, kind: EventKind::Share };
            self.push(self.now, last, event);
        }
    }

    /// Shares out the CPU of a node, schedules the next event of each copy whose rate changes, and reports the use of
    /// its copies to its manager.
    pub(super) fn share_out(&mut self, manager: ActorId) {
        let Role::Node(node) = self.parts.layout.role(manager) else { return };
        let Some(mut changes) = self.share_changes.take() else { return };
        self.parts.cores.share_out(node, self.now, &mut changes);
        for &Change { core, next, .. } in &changes {
            if let Some(next) = next {
                self.schedule_next(core, next);
            }
        }
        if self.parts.policy.traits().node_usage.is_some() {
            self.tell_usage(node, &changes);
        }
        changes.clear();
        self.share_changes = Some(changes);
    }

    /// Reports changes on a node to its manager.
    fn tell_usage(&mut self, node: u32, changes: &[Change]) {
        let (manager, first) = (self.parts.layout.node(node), self.parts.layout.worker(node, 0));
        let first = self.parts.layout.core_index(first);
        let mut left = changes.len();
        for &Change { core, demand, given, memory, .. } in changes {
            left -= 1;
            let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { continue };
            let input = Input::Usage { copy, core: core - first, demand, given, memory, last: left == 0 };
            self.dispatch_when_running(manager, manager, input);
        }
    }

    /// Recomputes when the copies of some cores end or enter their next segments, because interference has changed.
    pub(super) fn retime_shared(&mut self, cores: &CoreSet) {
        for core in cores.iter() {
            if let Some(next) = self.parts.cores.retime_shared(core) {
                self.schedule_next(core, next);
            }
        }
    }

    /// Queues the next event of the copy of a core. An event queued before becomes void.
    fn schedule_next(&mut self, core: u32, (next, at): (Next, u64)) {
        let worker = self.parts.layout.worker_of_core(core);
        self.actors.begin_epoch(worker);
        let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { return };
        let at = Time(at);
        match next {
            Next::Done => self.schedule_completion(worker, copy, at),
            // A copy that is paused for ever has no further event.
            Next::Segment if at == Time::MAX => {}
            Next::Segment => {
                let stamp = self.epoch(worker);
                self.push(at, worker, Event { to: worker, stamp, kind: EventKind::Segment });
            }
        }
    }
}

/// Number of effects of one step above which it pays to prefetch their links.
const MANY: usize = 4;

impl<O: Observer> Shard<'_, O> {
    /// Prefetches the state that the upcoming events known to the queue touch.
    #[inline]
    pub(super) fn prefetch_upcoming(&mut self) {
        let Self { parts, queue, actors, upcoming, observer, .. } = self;
        queue.visit_upcoming(|event| {
            upcoming.push(event.to);
            // A message mostly has an answer.
            if let EventKind::Input(Input::Deliver { from, .. }) = event.kind {
                parts.fabric.touch(parts.layout.endpoint(event.to), parts.layout.endpoint(from));
            }
            // A node and its first worker mostly step each other; members of a gossip group have no workers.
            match parts.layout.role(event.to) {
                Role::Node(_) if parts.layout.gossip().is_some() => {}
                Role::Node(node) => upcoming.push(parts.layout.worker(node, 0)),
                Role::Worker { node, .. } => upcoming.push(parts.layout.node(node)),
                Role::Client(_) | Role::Scheduler(_) | Role::Auxiliary(_) => {}
            }
        });
        for &actor in &*upcoming {
            actors.fetch(actor);
            if let Some(core) = parts.layout.core_of(actor) {
                parts.cores.fetch(core);
                observer.fetch(core);
            }
        }
        for &actor in &*upcoming {
            actors.fetch_machine(actor);
        }
        upcoming.clear();
    }

    /// Prefetches the links that the messages among `effects` take, if there are many.
    #[inline]
    pub(super) fn prefetch_links(&self, me: ActorId, effects: &[Effect]) {
        if effects.len() < MANY || self.actors.len() < LARGE as usize {
            return;
        }
        let Parts { layout, fabric, .. } = &self.parts;
        for effect in effects {
            if let Effect::Send { to, .. } = *effect
                && !layout.local(me, to)
            {
                fabric.touch(layout.endpoint(me), layout.endpoint(to));
            }
        }
    }
}
