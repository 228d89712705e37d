//! A member of a gossip group, and the source outside of the group.
//!
//! A member keeps the newest update of each origin. Its [`Exchange`] determines how updates spread: in each period it
//! pushes them to random neighbours or pulls theirs, or it forwards each update at once. A crash loses everything
//! except the number of the member's own last update.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::base::{ActorId, Address, DistributionSpec, Purpose, Rng, Span, Time, check_period};
use crate::layout::{GossipGroup, Layout, Origin, Role};
use crate::machine::{Effects, Input, Machine, Note, Stored, Timer};
use crate::message::{Message, Spread, Update};

/// The next period begins.
const PERIOD: Timer = Timer::Tick(0);
/// This actor originates its next update.
const ARISE: Timer = Timer::Tick(1);
/// The oldest waiting update is handled.
const HANDLED: Timer = Timer::Tick(2);

/// The exchange with random neighbours in each period.
#[derive(Clone, PartialEq, Debug)]
pub struct Periodic {
    /// The length of a period.
    pub period: DistributionSpec<Span>,
    /// Whether the periods of all members begin together, at the start of the run.
    pub aligned: bool,
    /// Number of distinct neighbours contacted in each period.
    pub fan_out: u32,
    /// Number of periods in which a member pushes each update, 0 for all periods; `None` if it does not push.
    pub push: Option<u32>,
    /// Whether a neighbour with the same updates leaves a pull unanswered; `None` if members do not pull.
    pub pull: Option<bool>,
}

/// The way in which members spread updates.
#[derive(Clone, PartialEq, Debug)]
pub enum Exchange {
    /// A member pushes to neighbours or pulls from them, once in each period.
    Periodic(Periodic),
    /// A member forwards each update that is new to it, at once.
    Flood {
        /// Number of distinct neighbours to which a member forwards an update; 0 for all.
        fan_out: u32,
        /// Time for which a member checks a new update before it accepts and forwards it; one update at a time.
        check: DistributionSpec<Span>,
        /// Time for which an origin prepares an update before it sends the update; one update at a time.
        prepare: DistributionSpec<Span>,
    },
}

impl Exchange {
    /// Checks the exchange against the group of a layout; a layout without a group fits.
    ///
    /// # Errors
    /// The reason and a remedy, as "key: reason".
    pub fn check(&self, layout: &Layout) -> Result<(), String> {
        let (times, fan_out) = match self {
            Self::Periodic(Periodic { period, fan_out, .. }) => (vec![("period", period)], *fan_out),
            Self::Flood { fan_out, check, prepare } => {
                (vec![("check", check), ("prepare", prepare)], *fan_out)
            }
        };
        if layout.gossip().is_some_and(|group| group.origin == Origin::Nowhere) {
            return Err("members have no updates to spread: write workload.gossip.updates".into());
        }
        for (key, time) in times {
            if time.is_unread() {
                return Err(format!("{key}: the file of this distribution was not read; give its `values`"));
            }
            if key == "period" {
                check_period(key, Span::from_secs_f64(time.mean()))?;
            }
        }
        let pulls = matches!(self, Self::Periodic(Periodic { push: None, .. }));
        if pulls && layout.gossip().is_some_and(|group| group.makes_updates(group.source())) {
            return Err("members pull only from members: set updates.at to members, or use push-pull".into());
        }
        let most = layout.gossip().map_or(u32::MAX, |group| group.most_degree().max(1));
        if fan_out <= most {
            return Ok(());
        }
        Err(format!(
            "fan_out: no member has {fan_out} neighbours; write {most} or less, or add members or edges"
        ))
    }
}

/// The newest update that a member has of an origin.
#[derive(Clone, Copy, Debug)]
struct Known {
    update: Update,
    /// Number of periods in which the member has pushed the update.
    pushed: u32,
}

/// A member, or the source.
#[derive(Clone, Debug)]
pub struct Gossiper {
    group: Arc<GossipGroup>,
    exchange: Arc<Exchange>,
    /// The number of this actor in the group.
    number: u32,
    /// Number of the last update that this actor originated.
    own: u32,
    /// Due time of this actor's latest update, which may be in the future.
    due: Time,
    /// The newest updates, by origin.
    entries: Vec<Known>,
    /// Updates that wait to be handled, the oldest first, each with its sender.
    waiting: VecDeque<(Update, u32)>,
    /// By origin, the number of the newest update that was ever in `waiting`.
    waited: BTreeMap<u32, u32>,
}

impl Gossiper {
    /// The machine of an actor of a group.
    ///
    /// # Panics
    /// In a run without a group.
    pub fn boxed(exchange: Exchange, me: Role, layout: &Layout) -> Box<dyn Machine> {
        let group = layout.gossip().expect("plans refuse policies that gossip in a run with jobs");
        let number = layout.in_group(me);
        Box::new(Self {
            group: Arc::clone(group),
            exchange: Arc::new(exchange),
            number,
            own: 0,
            due: Time::ZERO,
            entries: Vec::new(),
            waiting: VecDeque::new(),
            waited: BTreeMap::new(),
        })
    }

    fn start(&mut self, fx: &mut Effects<'_>) {
        let exchange = Arc::clone(&self.exchange);
        if let Exchange::Periodic(periodic) = &*exchange
            && (self.number != self.group.source() || periodic.push.is_some())
        {
            let whole = periodic.period.sample(&mut fx.rng().draw());
            let is_constant = matches!(periodic.period, DistributionSpec::Constant(_));
            let share = if is_constant && !periodic.aligned { fx.rng().unit() } else { 1.0 };
            fx.arm(PERIOD, whole.scale(share));
        }
        if self.group.makes_updates(self.number) {
            self.due = fx.now();
            // If the gap is constant, members take turns.
            let turns = match self.group.every {
                DistributionSpec::Constant(_) if self.group.origin == Origin::Members => self.number + 1,
                _ => self.group.origins(),
            };
            self.arm_update(turns, fx);
        }
    }

    /// Arms the next update of this actor, `turns` gaps of the group after the last due time, so that a late update
    /// does not delay later ones.
    fn arm_update(&mut self, turns: u32, fx: &mut Effects<'_>) {
        self.due += self.group.gap(self.number, self.own + 1).scale(f64::from(turns));
        if self.due < self.group.until {
            fx.arm(ARISE, self.due.since(fx.now()));
        }
    }

    /// Originates the next update of this actor.
    fn arise(&mut self, fx: &mut Effects<'_>) {
        self.own += 1;
        let update = Update { origin: self.number, number: self.own };
        fx.note(Note::Informed { update });
        self.receive(update, self.number, fx);
        self.arm_update(self.group.origins(), fx);
    }

    /// Receives an update from another actor of the group.
    fn receive(&mut self, update: Update, from: u32, fx: &mut Effects<'_>) {
        let waits = self.waited.get(&update.origin).is_some_and(|newest| *newest >= update.number);
        if self.has(update) || waits {
            return;
        }
        if self.handling(update).is_none() {
            return self.learn(update, from, fx);
        }
        self.waited.insert(update.origin, update.number);
        self.waiting.push_back((update, from));
        if self.waiting.len() == 1 {
            self.handle_next(fx);
        }
    }

    /// The time for which this actor prepares its own update, or checks the update of another; `None` if it does
    /// neither.
    fn handling(&self, update: Update) -> Option<&DistributionSpec<Span>> {
        let Exchange::Flood { check, prepare, .. } = &*self.exchange else { return None };
        let time = if update.origin == self.number { prepare } else { check };
        (*time != DistributionSpec::Constant(Span::ZERO)).then_some(time)
    }

    /// Begins to handle the oldest waiting update.
    fn handle_next(&self, fx: &mut Effects<'_>) {
        if let Some(time) = self.waiting.front().and_then(|(update, _)| self.handling(*update)) {
            let time = time.sample(&mut fx.rng().draw());
            fx.arm(HANDLED, time);
        }
    }

    fn place(&self, origin: u32) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&origin, |entry| entry.update.origin)
    }

    /// Whether this actor has an update or a newer one.
    fn has(&self, update: Update) -> bool {
        self.place(update.origin).is_ok_and(|at| self.entries[at].update >= update)
    }

    /// Stores a new update that another member sent or this actor originated, and spreads it.
    fn learn(&mut self, update: Update, from: u32, fx: &mut Effects<'_>) {
        if self.has(update) {
            return;
        }
        let entry = Known { update, pushed: 0 };
        match self.place(update.origin) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
        if update.origin != self.number {
            fx.note(Note::Informed { update });
        }
        if let Exchange::Flood { fan_out, .. } = *self.exchange {
            let count = if fan_out == 0 { u32::MAX } else { fan_out };
            let from = self.group.place_of(self.number, from);
            for peer in self.peers(count, from, fx.rng()) {
                fx.send(fx.layout().node(peer), Spread::Push { update, more: false });
            }
        }
    }

    /// Samples `count` different neighbours, or all if there are no more; never the one with index `except`.
    fn peers(&self, count: u32, except: Option<u32>, rng: &mut Rng) -> Vec<u32> {
        let (group, me) = (&self.group, self.number);
        let drawn = rng.different(count, group.degree(me), except.as_slice());
        drawn.into_iter().map(|i| group.neighbour(me, i)).collect()
    }

    /// Pushes to, and pulls from, the neighbours sampled for this period.
    fn period(&mut self, fx: &mut Effects<'_>) {
        let exchange = Arc::clone(&self.exchange);
        let Exchange::Periodic(Periodic { period, fan_out, push, pull, .. }) = &*exchange else { return };
        let pull = pull.filter(|_| self.number != self.group.source());
        let digest = if pull == Some(true) { self.digest() } else { UNKNOWN };
        for peer in self.peers(*fan_out, None, fx.rng()) {
            let to = fx.layout().node(peer);
            if let Some(rounds) = push {
                let hot = self.entries.iter().filter(|entry| *rounds == 0 || entry.pushed < *rounds);
                for (at, entry) in hot.enumerate() {
                    fx.send(to, Spread::Push { update: entry.update, more: at > 0 });
                }
            }
            if pull.is_some() {
                fx.send(to, Spread::Ask { digest });
            }
        }
        self.entries.iter_mut().for_each(|entry| entry.pushed = entry.pushed.saturating_add(1));
        let next = period.sample(&mut fx.rng().draw());
        fx.arm(PERIOD, next);
    }

    /// A digest of all updates of this actor.
    fn digest(&self) -> u64 {
        let one = |entry: &Known| {
            let Update { origin, number } = entry.update;
            Address::new(u64::from(number), Purpose::Topology).at(origin.into()).seed()
        };
        self.entries.iter().map(one).fold(UNKNOWN, u64::wrapping_add)
    }
}

/// The digest of an actor without updates; as the digest of a pull, it always gets an answer.
const UNKNOWN: u64 = 0;

impl Machine for Gossiper {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { .. } => self.start(fx),
            Input::Fire(PERIOD) => self.period(fx),
            Input::Fire(ARISE) => self.arise(fx),
            Input::Fire(HANDLED) => {
                if let Some((update, from)) = self.waiting.pop_front() {
                    self.learn(update, from, fx);
                    self.handle_next(fx);
                }
            }
            Input::Deliver { from, msg: Message::Spread(msg) } => {
                let from = fx.layout().in_group(fx.layout().role(from));
                match msg {
                    Spread::Push { update, .. } | Spread::Answer { update, .. } => {
                        self.receive(update, from, fx);
                    }
                    Spread::Ask { digest } => {
                        if digest == UNKNOWN || digest != self.digest() {
                            self.answer(fx.layout().node(from), fx);
                        }
                    }
                }
            }
            Input::Deliver { msg, .. } | Input::Undelivered { msg, .. } => fx.unexpected(&msg),
            // No actor of a group relies on the failure detector of the run.
            Input::Down { .. } | Input::Up { .. } => {}
            _ => unreachable!("{input:?} reached a member of a gossip group"),
        }
    }

    fn stored(&mut self) -> Option<Stored> {
        Some(Box::new(self.own))
    }

    fn restore(&mut self, stored: Stored) {
        self.own = stored.downcast().map_or(self.own, |own| *own);
    }
}

impl Gossiper {
    /// Sends all updates of this actor.
    fn answer(&self, to: ActorId, fx: &mut Effects<'_>) {
        for (at, entry) in self.entries.iter().enumerate() {
            fx.send(to, Spread::Answer { update: entry.update, more: at > 0 });
        }
    }
}

#[cfg(test)]
mod tests;
