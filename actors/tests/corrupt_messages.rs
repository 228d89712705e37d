//! Robustness against corrupt messages: nothing that [`Message::check`] accepts makes a machine panic, in any state.
//! States arise from regular traffic in any order, with losses, returned messages, crashes, and random messages. One of
//! the policies is added to the registry, with its own messages.

mod common;
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
use messages::Reservation;
use policy::Reserved;
use volary_actors::base::{ActorId, Class, CopyId, JobId, Rng, Score, Span, Time};
use volary_actors::harness::PAIR;
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effect, Effects, Input, Machine, Timer};
use volary_actors::message::{
    Assignment, BacklogReport, Batch, Blocks, Contention, Detect, EndUpdate, Gossip, Group, Heartbeat, Job,
    Launch, Message, NodeReport, PlacementForm, PlacementUpdate, Preemption, Probe, Progress, Ring,
    RingProbe, Row, Share, Slice, SliceWork, Spread, Standing, Steal, TaskRange, Update, UsageReport,
    Waiting, kinds,
};
use volary_actors::policies::{PolicySpec, Registry};

/// Number of steps of one life of the system.
const STEPS: u32 = 1500;

struct Chaos<'a> {
    policy: &'a PolicySpec,
    layout: &'a Layout,
    load: &'a Load,
    dice: Rng,
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

    /// A message whose fields fit this system about half the time, or are as large as possible.
    fn nonsense(&mut self) -> Message {
        let job = JobId(self.dice.below(self.load.jobs + 1));
        let group = self.dice.below(self.load.tasks + 1);
        let task = job.task(group);
        let any = [0, 1, 2, self.dice.below(1 << 20), u32::MAX][self.below(5)];
        let copy = task.copy(any);
        let turn = self.below(2) as u16;
        let row = Row {
            job,
            base: group,
            len: 1 + self.below(3) as u16,
            turn,
            width: 1 + self.below(2) as u16,
            attempt: any,
            elsewhere: any == 1,
        };
        let span = Span(u64::from(any) << self.below(33));
        let repair = turn == 0;
        match self.below(64) {
            0 => Job::Submit { job, round: any }.into(),
            1 => Job::Finished { job, killed: false }.into(),
            2 => Launch::Row(row).into(),
            3 => Launch::Task { copy, at: self.now + span }.into(),
            4 | 5 => Launch::Completed { copy }.into(),
            6 => Launch::Drop(TaskRange { job, base: group, len: any, below: any }).into(),
            7 => Probe::Reserve { job, group, count: any, repair }.into(),
            8 => Probe::Claim { job, group, repair }.into(),
            9 | 10 => Probe::Grant { row, group }.into(),
            11 => Probe::Nothing { job, group }.into(),
            12 => Probe::Cancel { job, group }.into(),
            13 => Probe::Sample { task, repair }.into(),
            14 => Probe::Length { task, length: any as i32 }.into(),
            15 => {
                let (scheduler, limit) = (self.below(3) as u16, any as u8);
                RingProbe { task, scheduler, limit, hops: any as u16, repair, max_wait: span }.into()
            }
            16..18 => self.ring(span, any).into(),
            18 => {
                let (round, known) = (any as u16, (self.now + span).into());
                Share::Probe { job, count: any, round, last: repair, repair, known }.into()
            }
            19 => Share::Accepted { job }.into(),
            20 => Share::Rejected { job, count: any, round: any as u16, repair }.into(),
            21 => {
                let (bits, at) = ([any; 3], (self.now + span).into());
                Share::Bits(Blocks { first: any as u16, len: 1 + turn, bits, at }).into()
            }
            22 => Steal::Ask.into(),
            23 => Steal::Loot { scheduler: any, job, count: any, repair }.into(),
            24 => Steal::Nothing.into(),
            25 => Heartbeat::Wait { wait: span, passing: span, at: self.now + span }.into(),
            26..34 => self.gossip(job, group, any).into(),
            34 => {
                Progress::Report { copy, score: Score(any), at: (self.now + span).into(), age_ms: any }.into()
            }
            35 => NodeReport::Service { tasks: any, attained_ms: any, spread_ms: any, at: self.now + span }
                .into(),
            36 => NodeReport::Room { slots: any, at: self.now + span }.into(),
            37 => Preemption::Suspend { copy, turn: group }.into(),
            38 => Preemption::Resume { copy, turn: group }.into(),
            39..51 => self.group(copy, any).into(),
            51 => Reservation::Ask { task, round: any, repair }.into(),
            52 => Reservation::Length { task, round: any, length: any as i32 }.into(),
            53..56 => self.usage(copy, any),
            56..63 => self.gossiped(group, any),
            _ => {
                let core = self.below(3) as u16;
                let work = [SliceWork::Rest, SliceWork::Begin(copy), SliceWork::GoOn(copy)][any as usize % 3];
                Slice::Switch { core, work, epoch: any as u16, order: any, open: JobId(any) }.into()
            }
        }
    }

    fn gossiped(&mut self, member: u32, any: u32) -> Message {
        match self.below(2) {
            0 => self.spread(member, any).into(),
            _ => self.detect(member, any).into(),
        }
    }

    fn spread(&mut self, origin: u32, any: u32) -> Spread {
        let (update, more) = (Update { origin, number: any }, self.below(2) == 0);
        match self.below(3) {
            0 => Spread::Push { update, more },
            1 => Spread::Ask { digest: any.into() },
            _ => Spread::Answer { update, more },
        }
    }

    fn detect(&mut self, member: u32, any: u32) -> Detect {
        let (number, by) = (any, self.below(4) as u32);
        match self.below(6) {
            0 => Detect::Ping { number, by },
            1 => Detect::Ask { number, member },
            2 => Detect::Ack { number, member, by },
            3 => Detect::Nack { number },
            _ => {
                let standing = [Standing::Alive, Standing::Suspected, Standing::Dead][self.below(3)];
                Detect::News { member, incarnation: any, standing, by }
            }
        }
    }

    fn ring(&mut self, span: Span, any: u32) -> Ring {
        match self.below(2) {
            0 => Ring::State { limit: any, load: span, at: self.now + span },
            _ => Ring::Load { report: span.0, active: any, work: span },
        }
    }

    fn group(&mut self, copy: CopyId, any: u32) -> Group {
        let (core, scheduler) = (self.dice.below(9), self.dice.below(3));
        let (life, count, at) = (any as u16, any, self.now.into());
        let (len, step) = (1 + self.dice.below(3), [1, 2, any][self.below(3)]);
        let batch = Batch { job: copy.task.job, base: copy.task.index, len, step, attempt: any };
        let (waiting, next) = (Waiting { scheduler, batch }, Assignment { copy, scheduler });
        match self.below(10) {
            0 => Group::Tasks(waiting),
            1 => Group::Run { core, next },
            2 => Group::Idle { life, count, core },
            3 => Group::Status { life, count, core, running: next },
            4 => Group::Ask,
            5 => Group::Open(waiting),
            6 => Group::Takes { term: any, at },
            7 => Group::Lengths { waiting: any, busy: any, at },
            8 => Group::Mirror { job: batch.job, head: JobId(batch.job.0.saturating_sub(core)) },
            _ => Group::Watch,
        }
    }

    fn usage(&mut self, copy: CopyId, any: u32) -> Message {
        match self.below(3) {
            0 => UsageReport::Report { copy, cpu: any, memory: any, at: self.now.into() }.into(),
            1 => Contention::Throttled { copy, rate: any, at: self.now.into() }.into(),
            _ => Contention::Evicted { copy, age_ms: any, alone: any.is_multiple_of(2) }.into(),
        }
    }

    fn gossip(&mut self, job: JobId, node: u32, any: u32) -> Gossip {
        let (span, at) = (Span(u64::from(any) << self.below(33)), self.now);
        let number = any;
        let news = EndUpdate { node, number, estimate: span, counts_from: at + span };
        match self.below(12) {
            0 => Gossip::Ended(news),
            1 => Gossip::EndedRumour(news),
            2 => Gossip::Ask { epoch: any },
            3 => Gossip::Answer { epoch: any, parts: 4 + any % 9 },
            4 => Gossip::Entry { epoch: any, node, wait: i64::MIN + i64::from(any), renewed: at + span },
            5 => Gossip::Heard { epoch: any, origin: node, number },
            6 => Gossip::Backlog(BacklogReport { work: span, at: at + span, number, came: number }),
            _ => {
                let form = [
                    PlacementForm::Single,
                    PlacementForm::Batch,
                    PlacementForm::Rest,
                    PlacementForm::Withdrawn,
                ][self.below(4)];
                let (nodes, origin) = ([node, PlacementUpdate::NO_NODE], self.below(2) as u32);
                Gossip::Placed(PlacementUpdate {
                    at,
                    job,
                    nodes,
                    number,
                    origin,
                    form,
                    rumour: self.below(2) == 0,
                })
            }
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
