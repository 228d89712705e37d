//! A small world in which every next event is a choice. It has the machines of a policy, messages in flight, timers,
//! cores, and a budget of faults.

mod moves;
mod setting;

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use volary_actors::base::{ActorId, Class, CopyId, JobId, Rng, Score, Span, TaskId, Time};
use volary_actors::catalog::Catalog;
use volary_actors::layout::Role;
use volary_actors::machine::{CacheNote, Effect, Effects, Input, Machine, Note, Oracle, Timer};
use volary_actors::message::{Group, KINDS, Launch, Message, Standing};
use volary_actors::policies::Gossips;

pub(crate) use self::moves::Move;
use self::setting::LAST;
pub(crate) use self::setting::{Budget, Defect, Setting, Shape};

/// A message in flight, or on its way back to its sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Flying {
    from: ActorId,
    to: ActorId,
    msg: Message,
    /// Number of restarts of its sender. A message that returns in a later epoch of the sender is void.
    epoch: u32,
    /// Time at which it returns to its sender; `None` if it can still arrive.
    returned: Option<Time>,
    passive: bool,
}

/// Time after which an undelivered message returns in a world without further faults.
const PEER_TIMEOUT: Span = Span::from_secs(10);

impl Flying {
    const fn receiver(&self) -> ActorId {
        if self.returned.is_some() { self.from } else { self.to }
    }

    fn is_datagram(&self) -> bool {
        KINDS[self.msg.kind() as usize].1 == Class::Datagram
    }
}

/// A failure of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    Panicked(String),
    Unexpected(&'static str),
    FinishedTwice(JobId),
    FinishedWithout(TaskId),
    /// A job was killed, though no policy here kills jobs.
    Killed(JobId),
    BusyCore(CopyId),
    StartedTwice(CopyId),
    /// A copy started before the stages that its job waits for had ended.
    TooEarly(CopyId),
    IdleCore(CopyId),
    NotChecked(String),
    /// No event is left, and jobs are open.
    Stuck(Vec<JobId>),
    /// Jobs stay open over many events, although no event is withheld.
    Endless(Vec<JobId>),
    /// No event is left, and a copy that began has neither ended nor been stopped.
    NoEnd(CopyId),
    /// A copy arrived at a node that has no place for it, although no fault happened.
    NoPlace(CopyId),
    /// The scheduler expected work, ns, on an idle node, although no message or timer was left.
    Unbalanced(CopyId, i64),
    /// A master of Pigeon gave a copy to a worker that was not idle, although no fault happened.
    NotIdle(CopyId),
    /// A member lacks an update of another that should have reached it.
    Uninformed(ActorId),
    /// A member holds this wrong belief about another member, although faults ended long ago.
    Wrong(ActorId, u32, Standing),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Up,
    Crashed { reported: bool },
}

/// One row of a history: an actor's input and the effects.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) at: Time,
    pub(crate) actor: ActorId,
    pub(crate) input: String,
    pub(crate) effects: Vec<String>,
}

/// A state of the world.
#[derive(Clone)]
pub(crate) struct World<'a> {
    setting: &'a Setting,
    /// `None` while the actor is down.
    machines: Vec<Option<Box<dyn Machine>>>,
    /// Machines with stored state that wait for the restart of their actor.
    successors: Vec<(ActorId, Box<dyn Machine>)>,
    /// Hash of each machine's text; 0 while it is down.
    texts: Vec<u64>,
    epochs: Vec<u32>,
    health: Vec<Health>,
    now: Time,
    flying: Vec<Flying>,
    timers: Vec<(Time, ActorId, Timer)>,
    /// The copy on each core, and the time at which it ends.
    cores: Vec<Option<(CopyId, Time)>>,
    /// The link that is cut, and whether in both directions.
    cut: Option<(ActorId, ActorId, bool)>,
    budget: Budget,
    /// Whether any fault has happened.
    faulty: bool,
    /// Whether a fault has happened that can leave caches of expected waits wrong.
    misled: bool,
    /// Whether the last job arrived when no message or timer was left, and no fault had misled a cache.
    settled: bool,
    oracle: Option<Oracle>,
    /// Copies that began and have not ended, with their nodes.
    open: BTreeMap<CopyId, u32>,
    /// Copies that arrived at a node and have neither ended nor been given up, with their nodes.
    held: BTreeMap<CopyId, u32>,
    started: BTreeSet<CopyId>,
    completed: BTreeSet<TaskId>,
    finished: BTreeSet<JobId>,
    /// The newest update that each member has; only one member originates updates.
    informed: BTreeMap<ActorId, u32>,
    /// Beliefs of members about others; a missing entry means that the other is alive.
    regards: BTreeMap<(ActorId, u32), Standing>,
    /// Number of the random stream that the next move draws from.
    stream: u64,
    /// Whether the last move drew random numbers.
    drew: bool,
    /// The rows of the history, if it is recorded.
    pub(crate) history: Option<Vec<Row>>,
}

thread_local! {
    /// The text of the last panic of a machine; `None` while none is stepped.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the texts of panics of machines instead of printing them.
pub(crate) fn keep_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if PANIC.with_borrow(Option::is_none) {
            return others(info);
        }
        let text = info.payload();
        let text = text
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| text.downcast_ref::<&str>().copied());
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        PANIC.set(Some(format!("{} at {at}", text.unwrap_or_default())));
    }));
}

/// Feeds text to a hasher.
struct Text(DefaultHasher);

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

fn hash_of(value: &impl Debug) -> u64 {
    let mut text = Text(DefaultHasher::new());
    let _ = write!(text, "{value:?}");
    text.0.finish() | 1
}

impl<'a> World<'a> {
    /// The world after the start of all actors.
    pub(crate) fn new(setting: &'a Setting) -> Result<Self, Failure> {
        let actors = setting.layout.actors();
        let mut world = Self {
            setting,
            machines: (0..actors).map(|id| Some(setting.build(ActorId(id)))).collect(),
            successors: Vec::new(),
            texts: vec![0; actors as usize],
            epochs: vec![0; actors as usize],
            health: vec![Health::Up; actors as usize],
            now: Time::ZERO,
            flying: Vec::new(),
            timers: Vec::new(),
            cores: vec![None; setting.layout.workers() as usize],
            cut: None,
            budget: setting.budget,
            faulty: false,
            misled: false,
            settled: false,
            oracle: setting.policy.traits().oracle.map(|_| Oracle::new(setting.jobs.jobs())),
            open: BTreeMap::new(),
            held: BTreeMap::new(),
            started: BTreeSet::new(),
            completed: BTreeSet::new(),
            finished: BTreeSet::new(),
            informed: BTreeMap::new(),
            regards: BTreeMap::new(),
            stream: 0,
            drew: false,
            history: None,
        };
        for id in 0..actors {
            world.dispatch(ActorId(id), Input::Start { epoch: 0 }, false)?;
        }
        Ok(world)
    }

    /// Jobs that have not finished, apart from the last.
    pub(crate) fn open_jobs(&self) -> Vec<JobId> {
        (0..self.setting.jobs.0.jobs).map(JobId).filter(|job| !self.finished.contains(job)).collect()
    }

    /// The identity of the state, without the budget.
    pub(crate) fn identity(&self) -> u64 {
        let mut all = DefaultHasher::new();
        self.texts.hash(&mut all);
        // The sum does not depend on the order.
        let flying = self.flying.iter().map(hash_of).fold(0, u64::wrapping_add);
        (flying, self.now, self.cut).hash(&mut all);
        // Timers of one actor fire in the order in which they were armed.
        let mut timers = vec![0; self.machines.len()];
        for timer in &self.timers {
            let of = &mut timers[timer.1.index()];
            *of = hash_of(&(*of, timer));
        }
        timers.hash(&mut all);
        hash_of(&(&self.cores, &self.health, &self.epochs, &self.oracle)).hash(&mut all);
        hash_of(&(
            &self.open,
            &self.held,
            &self.started,
            &self.completed,
            &self.finished,
            (&self.informed, &self.regards),
            (self.faulty, self.misled, self.settled),
        ))
        .hash(&mut all);
        self.successors.iter().for_each(|successor| hash_of(successor).hash(&mut all));
        all.finish()
    }

    /// The identity of the state with its budget.
    pub(crate) fn key(&self) -> u64 {
        let mut all = DefaultHasher::new();
        (self.identity(), self.budget).hash(&mut all);
        all.finish()
    }

    /// Whether the last move drew at random, so that another stream may have another outcome.
    pub(crate) const fn drew(&self) -> bool {
        self.drew
    }

    fn up(&self, actor: ActorId) -> bool {
        self.health[actor.index()] == Health::Up
    }

    pub(crate) fn last_has_finished(&self) -> bool {
        self.finished.contains(&self.setting.jobs.last())
    }

    /// Whether nothing runs and no message is in flight. If caches must be right in the end, all timers must have fired
    /// as well, and no fault may last.
    pub(crate) fn is_quiet(&self) -> bool {
        let lasts = || self.cut.is_some() || self.health.iter().any(|health| *health != Health::Up);
        let waits = || self.timers.iter().any(|timer| timer.0 != LAST);
        self.flying.is_empty()
            && self.cores.iter().all(Option::is_none)
            && !(self.setting.conserves && (lasts() || waits()))
    }

    /// Whether the actors are members that gossip.
    pub(crate) fn gossips(&self) -> bool {
        self.setting.layout.gossip().is_some()
    }

    /// The newest update that any live member has.
    pub(crate) fn newest(&self) -> u32 {
        self.informed.values().copied().max().unwrap_or_default()
    }

    /// The first live member that lacks updates up to `number`, or is wrong about which members are down, as a
    /// failure.
    pub(crate) fn ignorance(&self, number: u32) -> Option<Failure> {
        let layout = &self.setting.layout;
        let detects = self.setting.policy.traits().gossips == Some(Gossips::Failures);
        let up = |member: u32| self.up(layout.node(member));
        for member in (0..layout.nodes()).filter(|member| up(*member)) {
            let me = layout.node(member);
            if self.informed.get(&me).copied().unwrap_or_default() < number {
                return Some(Failure::Uninformed(me));
            }
            for other in (0..layout.nodes()).filter(|other| detects && *other != member) {
                let standing = self.regards.get(&(me, other)).copied().unwrap_or(Standing::Alive);
                if standing != if up(other) { Standing::Alive } else { Standing::Dead } {
                    return Some(Failure::Wrong(me, other, standing));
                }
            }
        }
        None
    }

    /// The time of this state.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// A copy without an end in a quiet world, as a failure.
    pub(crate) fn lost_copy(&self) -> Option<Failure> {
        self.open.keys().next().map(|copy| Failure::NoEnd(*copy))
    }

    fn deliver(&mut self, message: Flying) -> Result<(), Failure> {
        let Flying { from, to, msg, returned, passive, .. } = message;
        if returned.is_some() {
            self.dispatch(from, Input::Undelivered { to, msg }, false)
        } else if !self.up(to) {
            // A stream message waited for the end of a cut.
            self.fail(message);
            Ok(())
        } else {
            self.hold(to, &msg)?;
            self.dispatch(to, Input::Deliver { from, msg }, passive)
        }
    }

    /// Checks that a node has a place for a copy that arrives at it, and records the copy.
    fn hold(&mut self, to: ActorId, msg: &Message) -> Result<(), Failure> {
        let Message::Launch(launch) = *msg else { return Ok(()) };
        if self.faulty {
            return Ok(());
        }
        // Rows of policies with a limit have one copy.
        let copy = match launch {
            Launch::Task { copy, .. } => copy,
            Launch::Row(row) => row.copy(0),
            Launch::Completed { .. } | Launch::Drop(_) => return Ok(()),
        };
        let (Role::Node(node), Some(queue)) = (self.setting.layout.role(to), self.setting.node_queue) else {
            return Ok(());
        };
        self.held.insert(copy, node);
        let held = self.held.values().filter(|of| **of == node).count();
        let places = self.setting.layout.cores(node) + queue;
        if held > places as usize { Err(Failure::NoPlace(copy)) } else { Ok(()) }
    }

    /// Records that a scheduler gives up copies of a node. The next copy may overtake the order to stop them.
    fn give_up(&mut self, to: ActorId, msg: &Message) {
        let (Message::Launch(Launch::Drop(range)), Role::Node(node)) = (*msg, self.setting.layout.role(to))
        else {
            return;
        };
        self.held
            .retain(|copy, of| *of != node || !(range.contains(copy.task) && range.covers(copy.attempt)));
    }

    /// Records that a message does not arrive; a stream message returns to its sender.
    fn fail(&mut self, message: Flying) {
        if !message.is_datagram() && message.epoch == self.epochs[message.from.index()] {
            self.flying.push(Flying { returned: Some(self.now + PEER_TIMEOUT), ..message });
        }
    }

    /// Steps an actor, and then the actors of its node that it sends to.
    fn dispatch(&mut self, to: ActorId, input: Input, passive: bool) -> Result<(), Failure> {
        let mut local = VecDeque::from([(to, input)]);
        let mut steps = 0;
        while let Some((me, input)) = local.pop_front() {
            steps += 1;
            if steps > 10_000 {
                return Err(Failure::Endless(self.open_jobs()));
            }
            let Some(machine) = &mut self.machines[me.index()] else { continue };
            let before = Rng::new(self.stream, me.0, self.epochs[me.index()]);
            let mut rng = before.clone();
            let mut out = Vec::new();
            let Setting { jobs, layout, defect, .. } = self.setting;
            PANIC.set(Some(String::new()));
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                let fx = Effects::new(self.now, me, &mut rng, &mut out, jobs, layout)
                    .with_oracle(self.oracle.as_ref());
                machine.step(input, &mut if passive { fx.passive() } else { fx });
                defect.iter().for_each(|defect| defect(layout.role(me), input, &mut out));
            }));
            let text = PANIC.take();
            if stepped.is_err() {
                return Err(Failure::Panicked(text.unwrap_or_default()));
            }
            self.drew |= rng != before;
            self.texts[me.index()] = hash_of(machine);
            if let Some(history) = &mut self.history {
                let effects = out.iter().map(|effect| format!("{effect:?}")).collect();
                history.push(Row { at: self.now, actor: me, input: format!("{input:?}"), effects });
            }
            for effect in out {
                self.carry_out(me, effect, &mut local)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, mut message: Flying) -> Result<(), Failure> {
        let Flying { from, to, msg, .. } = message;
        if !msg.check(from, to, &self.setting.layout, &self.setting.jobs) {
            return Err(Failure::NotChecked(format!(
                "{msg:?} from {} to {}",
                self.setting.name(from),
                self.setting.name(to)
            )));
        }
        self.is_idle(from, &msg)?;
        self.give_up(to, &msg);
        message.epoch = self.epochs[from.index()];
        let datagram = message.is_datagram();
        // A datagram may reach the next epoch of its receiver; a stream message waits for the end of a cut.
        let flies = if self.is_cut(from, to) { !datagram } else { datagram || self.up(to) };
        if flies {
            self.flying.push(message);
        } else {
            self.fail(message);
        }
        Ok(())
    }

    /// Checks that the worker to which a master of Pigeon sends a copy is idle: it runs no copy, no other copy is on
    /// its way to the worker, and no report of the worker is on its way to the master.
    fn is_idle(&self, master: ActorId, msg: &Message) -> Result<(), Failure> {
        let Message::Group(Group::Run { core, next }) = *msg else { return Ok(()) };
        let concerns = |flying: &Flying| {
            let given = matches!(flying.msg, Message::Group(Group::Run { core: of, .. }) if of == core);
            let reports = matches!(flying.msg, Message::Group(Group::Idle { core: of, .. }) if of == core);
            given || reports && flying.to == master
        };
        let idle = self.cores[core as usize].is_none() && !self.flying.iter().any(concerns);
        if idle || self.faulty { Ok(()) } else { Err(Failure::NotIdle(next.copy)) }
    }

    fn carry_out(
        &mut self,
        me: ActorId,
        effect: Effect,
        local: &mut VecDeque<(ActorId, Input)>,
    ) -> Result<(), Failure> {
        let layout = &self.setting.layout;
        match effect {
            Effect::Send { to, msg, .. } if layout.local(me, to) => {
                if self.machines[to.index()].is_some() {
                    local.push_back((to, Input::Deliver { from: me, msg }));
                } else {
                    local.push_back((me, Input::Undelivered { to, msg }));
                }
            }
            Effect::Send { to, msg, .. } => {
                self.send(Flying { from: me, to, msg, epoch: 0, returned: None, passive: false })?;
            }
            Effect::Broadcast { msg } => {
                for to in
                    (0..layout.schedulers()).map(|i| self.setting.layout.scheduler(i)).filter(|to| *to != me)
                {
                    self.send(Flying { from: me, to, msg, epoch: 0, returned: None, passive: true })?;
                }
            }
            Effect::Arm { timer, after } => {
                let arrival = matches!(timer, Timer::Arrival(job) if job == self.setting.jobs.last());
                let due = if arrival { LAST } else { self.now + after };
                self.timers.push((due, me, timer));
            }
            Effect::Run { copy, left, .. } => {
                if let (Some(oracle), None) = (&mut self.oracle, left) {
                    oracle.begin(copy.task.job);
                }
                let core = &mut self.cores[layout.core_index(me) as usize];
                if core.is_some() {
                    return Err(Failure::BusyCore(copy));
                }
                *core = Some((copy, self.now + left.unwrap_or_else(|| self.setting.jobs.work(copy))));
            }
            Effect::Halt { copy } => {
                let core = &mut self.cores[layout.core_index(me) as usize];
                let Some((_, end)) = core.take_if(|(running, _)| *running == copy) else {
                    return Err(Failure::IdleCore(copy));
                };
                local.push_front((me, Input::Halted { copy, left: end.since(self.now) }));
            }
            Effect::QueryProgress { copy } => {
                let core = self.cores[layout.core_index(me) as usize];
                let Some((_, end)) = core.filter(|(running, _)| *running == copy) else {
                    return Err(Failure::IdleCore(copy));
                };
                let (left, work) = (end.since(self.now), self.setting.jobs.work(copy));
                let (score, done) = (Score::of(work, left), work.saturating_sub(left));
                local.push_front((me, Input::Progress { copy, score, done }));
            }
            Effect::Note(note) => self.note(me, note)?,
        }
        Ok(())
    }

    fn note(&mut self, me: ActorId, note: Note) -> Result<(), Failure> {
        match note {
            Note::Finished { job } => {
                if !self.finished.insert(job) {
                    return Err(Failure::FinishedTwice(job));
                }
                let tasks = (0..self.setting.jobs.job(job).tasks).map(|task| job.task(task));
                if let Some(task) = tasks.into_iter().find(|task| !self.completed.contains(task)) {
                    return Err(Failure::FinishedWithout(task));
                }
            }
            Note::Started { copy, resumed } => {
                let mut awaited = self.setting.jobs.links(copy.task.job).predecessors();
                if !awaited.all(|job| self.finished.contains(&job)) {
                    return Err(Failure::TooEarly(copy));
                }
                let layout = &self.setting.layout;
                let node = layout.node_of_core(layout.core_index(me));
                if !resumed && !self.started.insert(copy) {
                    return Err(Failure::StartedTwice(copy));
                }
                self.open.insert(copy, node);
            }
            Note::Completed { copy } => {
                self.completed.insert(copy.task);
                self.open.remove(&copy);
                self.held.remove(&copy);
            }
            Note::Preempted { copy } | Note::Discarded { copy } => {
                self.open.remove(&copy);
                self.held.remove(&copy);
            }
            // A suspended copy may be forgotten, so the results count it as stopped.
            Note::Suspended { copy } => {
                self.open.remove(&copy);
            }
            Note::Cache(CacheNote::Placed { copy, believed, .. }) if self.settled => {
                let idle = copy.task.job == self.setting.jobs.last()
                    && copy.task.index < self.setting.layout.nodes();
                if idle && believed != 0 {
                    return Err(Failure::Unbalanced(copy, believed));
                }
            }
            Note::Unexpected { kind } if !self.faulty => {
                return Err(Failure::Unexpected(KINDS[kind as usize].0));
            }
            Note::Killed { job } => return Err(Failure::Killed(job)),
            Note::Arrived { .. } | Note::Resubmitted { .. } | Note::Evicted { .. } | Note::Cache(_) => {}
            Note::Bound { .. } | Note::Planned { .. } | Note::Enacted { .. } | Note::Predicted { .. } => {}
            Note::Unexpected { .. } | Note::Value { .. } => {}
            Note::Informed { update } => {
                self.informed.insert(me, update.number);
            }
            Note::Regards { member, standing } => {
                self.regards.insert((me, member), standing);
            }
        }
        Ok(())
    }
}
