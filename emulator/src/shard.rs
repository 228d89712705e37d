//! The one loop: machines, event queue, network, cores.
//!
//! A [`Shard`] pops what is due, steps the machine concerned and turns its effects into queue entries, until
//! nothing is due. Events are ordered by (due time, source, source's count). What actors of one node say to
//! each other needs no network and no queue: it is delivered within the step, in the order it was said.
//!
//! Faults are known in advance, so the network decides at send time what a crash or partition does to a
//! message; the shard only makes machines vanish and come back.

use std::collections::VecDeque;

use volary_actors::base::{ActorId, CopyId, Endpoint, Rng, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effect, Effects, Input, Machine, Timer};
use volary_actors::message::{KINDS, Message};
use volary_actors::policies::{PolicySpec, Seat};
use volary_actors::roles::{Client, Worker};
use volary_netem::{Crash, Fabric, Verdict};

use crate::cores::Cores;
use crate::queue::{Key, Queue};
use crate::record::fold::Recorder;
use crate::workload::Workload;

/// What a shard is built from.
pub struct Parts<'a> {
    /// Who is who.
    pub layout: &'a Layout,
    /// Jobs and their work.
    pub workload: &'a Workload,
    /// What schedulers and nodes do.
    pub policy: &'a PolicySpec,
    /// The run's seed.
    pub seed: u64,
    /// What happens to messages.
    pub fabric: Fabric,
    /// When work ends.
    pub cores: Cores,
    /// Whether the network can lose datagrams.
    pub lossy: bool,
    /// Whether faults pause anyone.
    pub pauses: bool,
    /// How long after a crash the others learn of it, unless the restart comes first.
    pub peer_timeout: Span,
}

/// An input on its way to an actor. `stamp` tells whether it is still wanted: the epoch of an actor's own
/// timers, the generation of a core's completion.
#[derive(Debug)]
struct Event {
    to: ActorId,
    stamp: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Input(Input),
    /// The endpoint crashes.
    Crash,
    /// The failure detector reports the crash.
    Notice,
    /// The endpoint comes back.
    Restart,
}

/// Messages sent, by kind; what became of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Sent over the network, by [`KINDS`].
    pub by_kind: [u64; KINDS.len()],
    /// Of these, repairs of losses.
    pub recovery: u64,
    /// Datagrams lost and streams given back.
    pub dropped: u64,
    /// Transmissions that streams repeated.
    pub retransmissions: u64,
}

/// All actors of one process under one clock.
pub struct Shard<'a> {
    parts: Parts<'a>,
    machines: Vec<Option<Box<dyn Machine>>>,
    rngs: Vec<Rng>,
    epochs: Vec<u32>,
    /// How many events each source has made: part of their order.
    counts: Vec<u32>,
    /// Generation of what each core runs; a completion of an older one is void.
    generations: Vec<u32>,
    queue: Queue<Event>,
    lane: VecDeque<(ActorId, Input)>,
    effects: Vec<Effect>,
    now: Time,
    events: u64,
    hash: u64,
    traffic: Traffic,
    /// What was observed.
    pub recorder: Recorder<'a>,
}

impl<'a> Shard<'a> {
    /// Builds every actor and schedules faults; nothing runs before [`Shard::start`].
    #[must_use]
    pub fn new(parts: Parts<'a>, recorder: Recorder<'a>) -> Self {
        let actors = parts.layout.actors();
        let mut shard = Self {
            machines: Vec::with_capacity(actors as usize),
            rngs: (0..actors).map(|actor| Rng::new(parts.seed, actor, 0)).collect(),
            epochs: vec![0; actors as usize],
            counts: vec![0; actors as usize],
            generations: vec![0; parts.layout.workers() as usize],
            queue: Queue::new(),
            lane: VecDeque::new(),
            effects: Vec::new(),
            now: Time::ZERO,
            events: 0,
            hash: 0,
            traffic: Traffic { by_kind: [0; KINDS.len()], recovery: 0, dropped: 0, retransmissions: 0 },
            recorder,
            parts,
        };
        for actor in (0..actors).map(ActorId) {
            let machine = shard.build(actor);
            shard.machines.push(Some(machine));
        }
        shard.schedule_faults();
        shard
    }

    fn build(&self, actor: ActorId) -> Box<dyn Machine> {
        let Parts { layout, policy, lossy, .. } = self.parts;
        let seat = |index| Seat { me: actor, index, layout, lossy };
        match layout.role(actor) {
            Role::Client(i) => Box::new(Client::new(i)),
            Role::Scheduler(i) => policy.scheduler(seat(i)),
            Role::Node(i) => policy.node(seat(i)),
            Role::Worker { node, .. } => Box::new(Worker::new(layout.node(node))),
            Role::Extra(i) => unreachable!("no registered policy has an extra actor {i}"),
        }
    }

    fn schedule_faults(&mut self) {
        let crashes: Vec<_> = self.parts.fabric.faults().crashes().to_vec();
        for Crash { who, at, restart } in crashes {
            let actor = ActorId(who.0);
            self.schedule(at, actor, What::Crash);
            let noticed = at + self.parts.peer_timeout;
            match restart {
                Some(back) if back <= noticed => {
                    self.schedule(back, actor, What::Notice);
                    self.schedule(back, actor, What::Restart);
                }
                Some(back) => {
                    self.schedule(noticed, actor, What::Notice);
                    self.schedule(back, actor, What::Restart);
                }
                None => self.schedule(noticed, actor, What::Notice),
            }
        }
    }

    fn schedule(&mut self, at: Time, actor: ActorId, what: What) {
        self.push(at, actor, Event { to: actor, stamp: 0, what });
    }

    /// Steps every actor with `Start`, in order of ids.
    pub fn start(&mut self) {
        for actor in (0..self.parts.layout.actors()).map(ActorId) {
            self.dispatch(actor, Input::Start { epoch: 0 });
        }
    }

    /// When the next event is due.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.queue.peek().map(|key| key.due)
    }

    /// Handles one event; `false` if there is none.
    pub fn advance(&mut self) -> bool {
        let Some((key, event)) = self.queue.pop() else { return false };
        self.now = key.due;
        self.events += 1;
        self.hash = (self.hash.rotate_left(7) ^ fingerprint(key, &event)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match event.what {
            What::Input(input) => self.input(event.to, event.stamp, input),
            What::Crash => self.crash(event.to),
            What::Notice => self.broadcast(event.to, Input::Down { actor: event.to }),
            What::Restart => self.restart(event.to),
        }
        true
    }

    fn input(&mut self, to: ActorId, stamp: u32, input: Input) {
        match input {
            Input::Done { .. } => {
                let core = self.parts.layout.core_index(to);
                if self.generations[core as usize] != stamp {
                    return;
                }
                self.parts.cores.finished(core, self.now);
            }
            // A timer of an earlier life, or of a life that is over.
            Input::Fire(_) | Input::Undelivered { .. } if self.epochs[to.index()] != stamp => return,
            Input::Fire(_)
            | Input::Undelivered { .. }
            | Input::Start { .. }
            | Input::Deliver { .. }
            | Input::Halted { .. }
            | Input::Down { .. }
            | Input::Up { .. } => {}
        }
        // Cores stall in a pause, so a completion falls on its beginning at the latest and goes through.
        if self.parts.pauses && !matches!(input, Input::Done { .. }) {
            let resumes = self.parts.fabric.faults().resumes(self.parts.layout.endpoint(to), self.now);
            if resumes > self.now {
                self.push(resumes, to, Event { to, stamp, what: What::Input(input) });
                return;
            }
        }
        if self.machines[to.index()].is_some() {
            self.dispatch(to, input);
        }
    }

    /// Steps an actor, and then whoever it spoke to on the same node, until all is said.
    fn dispatch(&mut self, to: ActorId, input: Input) {
        self.lane.push_back((to, input));
        while let Some((to, input)) = self.lane.pop_front() {
            let Some(machine) = &mut self.machines[to.index()] else { continue };
            let mut effects = std::mem::take(&mut self.effects);
            let rng = &mut self.rngs[to.index()];
            let mut fx =
                Effects::new(self.now, to, rng, &mut effects, self.parts.workload, self.parts.layout);
            machine.step(input, &mut fx);
            for effect in effects.drain(..) {
                self.carry_out(to, effect);
            }
            self.effects = effects;
        }
    }

    fn carry_out(&mut self, me: ActorId, effect: Effect) {
        match effect {
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
            Effect::Note(note) => self.recorder.note(self.now, me, note),
        }
    }

    /// Delivers a message on the same node at once; one to an actor that is down comes back.
    fn say(&mut self, me: ActorId, to: ActorId, msg: Message) {
        if self.machines[to.index()].is_some() {
            self.lane.push_back((to, Input::Deliver { from: me, msg }));
        } else {
            self.lane.push_back((me, Input::Undelivered { to, msg }));
        }
    }

    fn send(&mut self, me: ActorId, to: ActorId, msg: Message, recovery: bool) {
        let kind = msg.kind();
        let class = KINDS[kind as usize].1;
        self.traffic.by_kind[kind as usize] += 1;
        self.traffic.recovery += u64::from(recovery);
        let layout = self.parts.layout;
        let (src, dst) = (layout.endpoint(me), layout.endpoint(to));
        let deliver = || What::Input(Input::Deliver { from: me, msg });
        match self.parts.fabric.route(self.now, src, dst, class, msg.wire_bytes()) {
            Verdict::Deliver { after, retransmissions } => {
                self.traffic.retransmissions += u64::from(retransmissions);
                self.push(self.now + after, me, Event { to, stamp: 0, what: deliver() });
            }
            Verdict::Twice { after, again } => {
                self.push(self.now + after, me, Event { to, stamp: 0, what: deliver() });
                self.push(self.now + again, me, Event { to, stamp: 0, what: deliver() });
            }
            Verdict::Drop(_) => self.traffic.dropped += 1,
            Verdict::Unreachable { after, .. } => {
                self.traffic.dropped += 1;
                let what = What::Input(Input::Undelivered { to, msg });
                self.push(self.now + after, me, Event { to: me, stamp: self.epochs[me.index()], what });
            }
        }
    }

    fn arm(&mut self, me: ActorId, timer: Timer, after: Span) {
        let what = What::Input(Input::Fire(timer));
        self.push(self.now + after, me, Event { to: me, stamp: self.epochs[me.index()], what });
    }

    fn run(&mut self, me: ActorId, copy: CopyId, left: Option<Span>) {
        let core = self.parts.layout.core_index(me);
        let work = left.unwrap_or_else(|| self.parts.workload.work(copy));
        let end = self.parts.cores.start(core, self.now, work);
        let generation = self.generations[core as usize];
        self.push(end, me, Event { to: me, stamp: generation, what: What::Input(Input::Done { copy }) });
    }

    fn halt(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = self.parts.cores.stop(core, self.now);
        self.generations[core as usize] += 1;
        // Before anything else is said to this core: it may be given new work in the same step.
        self.lane.push_front((me, Input::Halted { copy, left }));
    }

    fn push(&mut self, due: Time, source: ActorId, event: Event) {
        let count = &mut self.counts[source.index()];
        *count = count.wrapping_add(1);
        self.queue.push(Key { due, source, count: *count }, event);
    }

    /// An actor's machine vanishes with all it knew; a node takes its workers and their copies along.
    fn crash(&mut self, actor: ActorId) {
        self.machines[actor.index()] = None;
        self.epochs[actor.index()] += 1;
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            self.machines[worker.index()] = None;
            let core = self.parts.layout.core_index(worker);
            if self.parts.cores.is_busy(core) {
                self.parts.cores.stop(core, self.now);
                self.generations[core as usize] += 1;
            }
            self.recorder.crashed(self.now, core);
        }
    }

    /// The actor comes back empty and is announced; whoever heard of its crash learns that it is up.
    fn restart(&mut self, actor: ActorId) {
        let epoch = self.epochs[actor.index()];
        let layout = self.parts.layout;
        self.rngs[actor.index()] = Rng::new(self.parts.seed, actor.0, epoch);
        self.machines[actor.index()] = Some(self.build(actor));
        if let Role::Node(node) = layout.role(actor) {
            for core in 0..layout.cores(node) {
                let worker = layout.worker(node, core);
                self.machines[worker.index()] = Some(self.build(worker));
            }
        }
        self.dispatch(actor, Input::Start { epoch });
        self.broadcast(actor, Input::Up { actor });
    }

    /// Tells everybody the failure detector reports to: coordinators of anyone, nodes of coordinators.
    fn broadcast(&mut self, about: ActorId, input: Input) {
        let layout = self.parts.layout;
        let to_nodes = layout.coordinates(about);
        for other in (0..layout.endpoints()).map(ActorId) {
            let told = layout.coordinates(other) || to_nodes;
            if told && other != about && self.machines[other.index()].is_some() {
                self.dispatch(other, input);
            }
        }
    }

    /// The time of the last event.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events handled.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Hash of the order of events so far.
    #[must_use]
    pub const fn order_hash(&self) -> u64 {
        self.hash
    }

    /// Messages sent so far.
    #[must_use]
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The network, for its counters.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.parts.fabric
    }

    /// The cores, for their accounts and bursts.
    #[must_use]
    pub const fn cores(&self) -> &Cores {
        &self.parts.cores
    }

    /// Who is who.
    #[must_use]
    pub const fn layout(&self) -> &'a Layout {
        self.parts.layout
    }

    /// Whether an endpoint is up now.
    #[must_use]
    pub fn is_up(&self, endpoint: Endpoint) -> bool {
        self.machines[endpoint.index()].is_some()
    }
}

/// What of an event enters the order hash: when, from whom, to whom, and what kind of thing.
fn fingerprint(key: Key, event: &Event) -> u64 {
    let kind = match &event.what {
        What::Input(Input::Deliver { msg, .. }) => u64::from(msg.kind()),
        What::Input(Input::Undelivered { msg, .. }) => 0x100 + u64::from(msg.kind()),
        What::Input(Input::Done { copy }) => 0x200 + (u64::from(copy.task.index) << 16),
        What::Input(_) => 0x300,
        What::Crash => 0x400,
        What::Notice => 0x500,
        What::Restart => 0x600,
    };
    key.due.0
        ^ (u64::from(key.source.0) << 32 | u64::from(key.count))
        ^ kind.rotate_left(24)
        ^ u64::from(event.to.0).rotate_left(48)
}
