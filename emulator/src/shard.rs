//! The one loop: machines, event queue, network, cores.
//!
//! A [`Shard`] pops what is due, steps the machine concerned and turns its effects into queue entries, until
//! nothing is due. Events are ordered by (due time, source, source's count). What actors of one node say to
//! each other needs no network and no queue: it is delivered within the step, in the order it was said.
//!
//! Faults are known in advance, so the network decides at send time what a crash or partition does to a
//! message; the shard only makes machines vanish and come back.

mod faults;

use std::collections::VecDeque;

use volary_actors::base::{ActorId, CopyId, Endpoint, Rng, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effect, Effects, Input, Machine, Timer};
use volary_actors::message::{KINDS, Message};
use volary_actors::policies::{PolicySpec, Seat};
use volary_actors::roles::{Client, Worker};
use volary_netem::{Fabric, Verdict};

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

/// An input on its way to an actor. `stamp` tells whether it is still wanted: the actor's epoch when it was made.
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

/// What every event about an actor needs, in half a cache line: in large clusters each look is a miss.
#[repr(align(32))]
struct Resident {
    /// Gone while the actor is down.
    machine: Option<Box<dyn Machine>>,
    rng: Rng,
    /// How often it has crashed; of a worker, how often it has lost a copy. Timers and completions of an older
    /// epoch are void.
    epoch: u32,
    /// How many events it has made: part of their order.
    count: u32,
}

const _: () = assert!(size_of::<Resident>() == 32, "two residents share a cache line");

/// All actors of one process under one clock.
pub struct Shard<'a> {
    parts: Parts<'a>,
    residents: Vec<Resident>,
    queue: Queue<Event>,
    lane: VecDeque<(ActorId, Input)>,
    /// Who is down, as far as the failure detector has reported.
    down: Vec<ActorId>,
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
            residents: Vec::with_capacity(actors as usize),
            queue: Queue::new(),
            lane: VecDeque::new(),
            down: Vec::new(),
            effects: Vec::new(),
            now: Time::ZERO,
            events: 0,
            hash: 0,
            traffic: Traffic { by_kind: [0; KINDS.len()], recovery: 0, dropped: 0, retransmissions: 0 },
            recorder,
            parts,
        };
        for actor in 0..actors {
            let rng = Rng::new(shard.parts.seed, actor, 0);
            shard.residents.push(Resident { machine: None, rng, epoch: 0, count: 0 });
        }
        // A node and its workers are stepped together, so they are built to lie together.
        for endpoint in (0..shard.parts.layout.endpoints()).map(ActorId) {
            shard.settle(endpoint);
        }
        shard.schedule_faults();
        shard
    }

    /// Gives an endpoint its machine, and a node's workers theirs.
    fn settle(&mut self, endpoint: ActorId) {
        let layout = self.parts.layout;
        self.residents[endpoint.index()].machine = Some(self.build(endpoint));
        if let Role::Node(node) = layout.role(endpoint) {
            for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
                self.residents[worker.index()].machine = Some(self.build(worker));
            }
        }
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

    /// Puts `machine` in the place of the one that the policy gave `actor`, until that crashes: for benchmarks
    /// and tests of the loop itself. To be called before [`start`](Self::start).
    pub fn install(&mut self, actor: ActorId, machine: Box<dyn Machine>) {
        self.residents[actor.index()].machine = Some(machine);
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
            What::Notice => self.notice(event.to),
            What::Restart => self.restart(event.to),
        }
        true
    }

    fn input(&mut self, to: ActorId, stamp: u32, input: Input) {
        let done = matches!(input, Input::Done { .. });
        // Of an earlier life, or of a copy that was halted since.
        let own = done || matches!(input, Input::Fire(_) | Input::Undelivered { .. });
        if own && self.residents[to.index()].epoch != stamp {
            return;
        }
        if done {
            self.parts.cores.finished(self.parts.layout.core_index(to), self.now);
        }
        // Cores stall in a pause, so a completion falls on its beginning at the latest and goes through.
        if !done && let Some(at) = self.resumes(to) {
            self.push(at, to, Event { to, stamp, what: What::Input(input) });
            return;
        }
        if self.residents[to.index()].machine.is_some() {
            self.dispatch(to, input);
        }
    }

    /// When a paused actor goes on; `None` if it is not paused.
    fn resumes(&self, actor: ActorId) -> Option<Time> {
        if !self.parts.pauses {
            return None;
        }
        let at = self.parts.fabric.faults().resumes(self.parts.layout.endpoint(actor), self.now);
        (at > self.now).then_some(at)
    }

    /// Gives an actor an input now, or when its pause ends: then in order with what `source` sends it later.
    fn tell(&mut self, source: ActorId, to: ActorId, input: Input) {
        match self.resumes(to) {
            Some(at) => self.push(at, source, Event { to, stamp: 0, what: What::Input(input) }),
            None => self.dispatch(to, input),
        }
    }

    /// Steps an actor, and then whoever it spoke to on the same node, until all is said.
    fn dispatch(&mut self, to: ActorId, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        let mut next = Some((to, input));
        while let Some((to, input)) = next {
            if let Resident { machine: Some(machine), rng, .. } = &mut self.residents[to.index()] {
                let Parts { workload, layout, .. } = self.parts;
                machine.step(input, &mut Effects::new(self.now, to, rng, &mut effects, workload, layout));
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
        let input = Input::Deliver { from: me, msg };
        if self.residents[to.index()].machine.is_none() {
            self.lane.push_back((me, Input::Undelivered { to, msg }));
        } else if self.parts.layout.endpoint(me) != self.parts.layout.endpoint(to)
            && let Some(at) = self.resumes(to)
        {
            // A client and its scheduler share a machine, but each can stall by itself.
            self.push(at, me, Event { to, stamp: 0, what: What::Input(input) });
        } else {
            self.lane.push_back((to, input));
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
                self.push(
                    self.now + after,
                    me,
                    Event { to: me, stamp: self.residents[me.index()].epoch, what },
                );
            }
        }
    }

    fn arm(&mut self, me: ActorId, timer: Timer, after: Span) {
        let what = What::Input(Input::Fire(timer));
        self.push(self.now + after, me, Event { to: me, stamp: self.residents[me.index()].epoch, what });
    }

    fn run(&mut self, me: ActorId, copy: CopyId, left: Option<Span>) {
        let core = self.parts.layout.core_index(me);
        let work = left.unwrap_or_else(|| self.parts.workload.work(copy));
        let end = self.parts.cores.start(core, self.now, work);
        let stamp = self.residents[me.index()].epoch;
        self.push(end, me, Event { to: me, stamp, what: What::Input(Input::Done { copy }) });
    }

    fn halt(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = self.parts.cores.stop(core, self.now);
        self.residents[me.index()].epoch += 1;
        // Before anything else is said to this core: it may be given new work in the same step.
        self.lane.push_front((me, Input::Halted { copy, left }));
    }

    fn push(&mut self, due: Time, source: ActorId, event: Event) {
        let count = &mut self.residents[source.index()].count;
        *count = count.wrapping_add(1);
        self.queue.push(Key { due, source, count: *count }, event);
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
        self.residents[endpoint.index()].machine.is_some()
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
