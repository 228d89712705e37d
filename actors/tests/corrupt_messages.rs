//! Robustness against corrupt messages: no message that [`Message::check`] accepts makes a machine panic, in any
//! state. States result from regular traffic in any order, with losses, returned messages, crashes, and random
//! messages. One of the policies is added to the registry, with its own messages.

mod common;
#[path = "common/forged.rs"]
mod forged;
#[path = "../../emulator/examples/reserved/messages.rs"]
mod messages;
#[path = "../../emulator/examples/reserved/node.rs"]
mod node;
#[path = "../../emulator/examples/reserved/policy.rs"]
mod policy;
#[path = "../../emulator/examples/reserved/scheduler.rs"]
mod scheduler;

use std::collections::{BTreeSet, VecDeque};

use common::{Load, gossiping, group, policies};
use forged::Forger;
use messages::Reservation;
use policy::Reserved;
use volary_actors::base::{ActorId, Class, CopyId, JobId, Rng, Score, Span, Time};
use volary_actors::harness::PAIR;
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effect, Effects, Input, Machine, Timer};
use volary_actors::message::{Message, kinds};
use volary_actors::policies::{PolicySpec, Registry};

/// Number of steps of a system from start to end.
const STEPS: u32 = 1500;

struct Chaos<'a> {
    policy: &'a PolicySpec,
    layout: &'a Layout,
    load: &'a Load,
    dice: Rng,
    forger: Forger,
    now: Time,
    /// `None` while the actor is down.
    machines: Vec<Option<Box<dyn Machine>>>,
    rngs: Vec<Rng>,
    epochs: Vec<u32>,
    pending: Vec<(ActorId, ActorId, Message)>,
    /// Armed timers, each with its actor and the actor's epoch at that time.
    timers: Vec<(ActorId, u32, Timer)>,
    /// The copy that each core runs.
    running: Vec<Option<CopyId>>,
}

impl<'a> Chaos<'a> {
    fn new(policy: &'a PolicySpec, layout: &'a Layout, load: &'a Load, seed: u64) -> Self {
        let actors = layout.actors();
        let mut chaos = Self {
            policy,
            layout,
            load,
            dice: Rng::new(seed, u32::MAX, 0),
            forger: Forger {
                dice: Rng::new(seed, u32::MAX, 1),
                now: Time::ZERO,
                jobs: load.jobs,
                tasks: load.tasks,
            },
            now: Time::ZERO,
            machines: (0..actors).map(|id| Some(policy.machine(ActorId(id), layout, true, false))).collect(),
            rngs: (0..actors).map(|id| Rng::new(seed, id, 0)).collect(),
            epochs: vec![0; actors as usize],
            pending: Vec::new(),
            timers: Vec::new(),
            running: vec![None; layout.workers() as usize],
        };
        for id in 0..actors {
            chaos.dispatch(ActorId(id), Input::Start { epoch: 0 });
        }
        chaos
    }

    fn below(&mut self, bound: usize) -> usize {
        self.dice.below(bound as u32) as usize
    }

    /// A random actor with an endpoint.
    fn somebody(&mut self) -> ActorId {
        ActorId(self.dice.below(self.layout.endpoints()))
    }

    fn dispatch(&mut self, to: ActorId, input: Input) {
        let mut local = VecDeque::from([(to, input)]);
        while let Some((me, input)) = local.pop_front() {
            let Some(machine) = &mut self.machines[me.index()] else { continue };
            let mut out = Vec::new();
            let rng = &mut self.rngs[me.index()];
            machine.step(input, &mut Effects::new(self.now, me, rng, &mut out, self.load, self.layout));
            for effect in out {
                self.carry_out(me, effect, &mut local);
            }
        }
    }

    fn carry_out(&mut self, me: ActorId, effect: Effect, local: &mut VecDeque<(ActorId, Input)>) {
        let core = |me| self.layout.core_index(me) as usize;
        match effect {
            Effect::Send { to, msg, .. } if self.layout.local(me, to) => {
                local.push_back((to, Input::Deliver { from: me, msg }));
            }
            Effect::Send { to, msg, .. } => {
                assert!(msg.check(me, to, self.layout, self.load), "{msg:?} from {me} to {to}");
                self.pending.push((me, to, msg));
            }
            Effect::Broadcast { msg } => {
                for other in (0..self.layout.schedulers()).map(|i| self.layout.scheduler(i)) {
                    if other != me {
                        self.carry_out(me, Effect::Send { to: other, msg, recovery: false }, local);
                    }
                }
            }
            Effect::Arm { timer, .. } => self.timers.push((me, self.epochs[me.index()], timer)),
            Effect::Run { copy, .. } => self.running[core(me)] = Some(copy),
            Effect::Halt { copy } => {
                assert_eq!(self.running[core(me)].take(), Some(copy));
                local.push_front((me, Input::Halted { copy, left: Span::from_millis(1) }));
            }
            Effect::QueryProgress { copy } => {
                let score = Score(self.dice.below(Score::ALL.0 + 1));
                let done = Span::from_millis(u64::from(self.dice.below(10_000)));
                local.push_front((me, Input::Progress { copy, score, done }));
            }
            Effect::Note(_) => {}
        }
    }

    fn step(&mut self, seen: &mut BTreeSet<u8>) {
        let gap = self.below(500) as u64;
        self.now += Span::from_millis(gap);
        match self.below(20) {
            0..9 => {
                if let Some((from, to, msg)) = take(&mut self.dice, &mut self.pending) {
                    self.dispatch(to, Input::Deliver { from, msg });
                    if msg.class() == Class::Datagram && self.below(4) == 0 {
                        self.dispatch(to, Input::Deliver { from, msg });
                    }
                }
            }
            9 => {
                if let Some((from, to, msg)) = take(&mut self.dice, &mut self.pending)
                    && msg.class() == Class::Stream
                {
                    self.dispatch(from, Input::Undelivered { to, msg });
                }
            }
            10 | 11 => {
                let core = self.below(self.running.len().max(1));
                if let Some(copy) = self.running.get_mut(core).and_then(Option::take) {
                    self.dispatch(self.layout.worker_of_core(core as u32), Input::Done { copy });
                }
            }
            12 | 13 => {
                if let Some((me, epoch, timer)) = take(&mut self.dice, &mut self.timers)
                    && self.epochs[me.index()] == epoch
                {
                    self.dispatch(me, Input::Fire(timer));
                }
            }
            14 => self.crash_or_restart(),
            _ => {
                let (from, to, msg) = self.forged();
                seen.insert(msg.kind());
                if self.below(4) == 0 {
                    self.dispatch(from, Input::Undelivered { to, msg });
                } else {
                    self.dispatch(to, Input::Deliver { from, msg });
                }
            }
        }
    }

    fn crash_or_restart(&mut self) {
        let who = self.somebody();
        if who.0 < self.layout.schedulers() {
            return;
        }
        let up = self.machines[who.index()].is_none();
        if !up && self.below(8) > 0 {
            return;
        }
        let mut own = vec![who];
        if let Role::Node(node) = self.layout.role(who) {
            own.extend((0..self.layout.cores(node)).map(|core| self.layout.worker(node, core)));
        }
        for actor in own {
            self.machines[actor.index()] = up.then(|| self.policy.machine(actor, self.layout, true, false));
            if let Role::Worker { .. } = self.layout.role(actor) {
                self.running[self.layout.core_index(actor) as usize] = None;
            }
        }
        if up {
            self.dispatch(who, Input::Start { epoch: self.epochs[who.index()] });
        } else {
            self.epochs[who.index()] += 1;
        }
        let news = if up { Input::Up { actor: who } } else { Input::Down { actor: who } };
        for other in (0..self.layout.endpoints()).map(ActorId) {
            if other != who && (self.layout.coordinates(other) || self.layout.coordinates(who)) {
                self.dispatch(other, news);
            }
        }
    }

    /// A random message between any two actors that passes the check.
    fn forged(&mut self) -> (ActorId, ActorId, Message) {
        loop {
            let (from, to, msg) = (self.somebody(), self.somebody(), self.nonsense());
            if msg.check(from, to, self.layout, self.load) {
                return (from, to, msg);
            }
        }
    }

    /// A message of any kind.
    fn nonsense(&mut self) -> Message {
        let Forger { jobs, tasks, .. } = self.forger;
        if self.below(32) > 0 {
            self.forger.now = self.now;
            return self.forger.nonsense();
        }
        let task = JobId(self.dice.below(jobs + 1)).task(self.dice.below(tasks + 1));
        let (round, repair) = ([0, 1, u32::MAX][self.below(3)], self.below(2) == 0);
        match self.below(2) {
            0 => Reservation::Ask { task, round, repair }.into(),
            _ => Reservation::Length { task, round, length: round as i32 }.into(),
        }
    }
}

/// Removes and returns a random element.
fn take<T>(dice: &mut Rng, from: &mut Vec<T>) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(dice.below(from.len() as u32) as usize))
}

#[test]
fn no_accepted_message_makes_a_machine_panic() {
    let registry = Registry::ours().with::<Reserved>("reserved").with_messages::<Reservation>();
    registry.install().unwrap();
    let mut seen = BTreeSet::new();
    for policy in policies(3).into_iter().chain(gossiping()) {
        for seed in 0..60 {
            let schedulers = 1 + seed as u32 % 2;
            // Some policies accept only nodes of one core.
            let mut layouts = [[1, 2, 3, 2], [1; 4]].map(|cores| Layout::new(schedulers, 0, cores)).to_vec();
            if policy.traits().gossips.is_some() {
                layouts = vec![group(&policy, 4)];
            }
            let Some(layout) = layouts.into_iter().find(|layout| policy.check(layout).is_ok()) else {
                continue;
            };
            let layout = policy.layout(layout);
            eprintln!("seed {seed}, {schedulers} schedulers, {policy:?}");
            let load = Load::new(12, 5, schedulers, 1.0).in_stages(PAIR);
            let mut chaos = Chaos::new(&policy, &layout, &load, seed);
            for _ in 0..STEPS {
                chaos.step(&mut seen);
            }
        }
    }
    // Every kind of message that may cross the network was forged.
    let crossing = kinds().filter(|(name, _)| !name.starts_with("core.")).count();
    assert_eq!(seen.len(), crossing);
}
