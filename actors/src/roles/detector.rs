//! A member of a group that detects failures: SWIM (Das, Gupta and Motivala, DSN 2002) and Lifeguard (Dadgar, Phillips
//! and Currey, arXiv 1707.00788).
//!
//! Statements about a member are ordered by incarnation and then by [`Standing`]. A member adopts each statement that
//! is greater than its own, so all members agree in the end, whatever the order of messages. A member refutes a
//! suspicion of itself by raising its incarnation; no other member may raise it.
//!
//! There are two additions to the papers. A message to a member that its sender has declared dead is preceded by this
//! statement, and each member pings dead members from time to time. So a live member that others can reach does not
//! stay declared dead.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::base::{Rng, Span, Time, parameters};
use crate::layout::{GossipGroup, Layout, Neighbours, Origin, Role};
use crate::machine::{Effects, Input, Machine, Note, Stored, Timer};
use crate::message::{Detect, Message, Standing};

/// The next probe begins.
const PERIOD: Timer = Timer::Tick(0);
/// The acknowledgement of the ping is late.
const LATE: Timer = Timer::Tick(1);
/// The acknowledgement of a ping for another member is late.
const RELAY_LATE: Timer = Timer::Tick(2);
/// A member that has been declared dead is pinged.
const RECONNECT: Timer = Timer::Tick(3);

/// Fraction of `timeout` after which a member that pings on behalf of another sends a negative acknowledgement (the
/// Lifeguard paper, footnote 5).
const NACK_AFTER: f64 = 0.8;

parameters! {
    /// Parameters of Lifeguard.
    struct Lifeguard {
        /// Protocol period: time from one probe to the next.
        period: Span = Span::from_secs(1) => period,
        /// Whether the periods of all members begin together; otherwise each member begins at a random time of the
        /// first period.
        aligned: bool = false,
        /// Whether each probe goes to a random member, as in SWIM's analysis. Otherwise a member probes all others once
        /// in a random order, then draws a new order.
        random: bool = false,
        /// Time without an acknowledgement after which other members are asked to ping; less than `period`.
        timeout: Span = Span::from_millis(500) => period,
        /// Number of other members that are asked to ping a member that did not acknowledge in time.
        indirect: u32 = 3 => 0..=1_000,
        /// Minimum time for which a member is suspected before it is declared dead, in periods. It is multiplied by
        /// log10 of the number of members if this is above 1. 0: a member is declared dead at once.
        suspicion: f64 = 5.0 => 0.0..=100_000.0,
        /// Maximum time of suspicion, as a multiple of the minimum. The time falls from the maximum to the minimum with
        /// the logarithm of the number of independent suspicions (LHA-Suspicion). 1: always the minimum.
        slowest: f64 = 6.0 => 1.0..=1_000.0,
        /// Number of independent suspicions after the first that reduce the time of suspicion to the minimum.
        confirmations: u32 = 3 => 0..=1_000,
        /// Maximum local health of a member, where 0 is healthy; `period` and `timeout` are multiplied by the health
        /// plus 1. A failed probe raises it by 1, or by 2 if negative acknowledgements are missing. A refutation raises
        /// it by 1, and a successful probe lowers it by 1 (LHA-Probe). 0: no local health, no negative
        /// acknowledgements.
        health: u32 = 8 => 0..=1_000,
        /// Whether each message to a suspected member states the suspicion (Buddy System).
        buddy: bool = true,
        /// Maximum number of pieces of news in a message, besides the one about its receiver.
        piggyback: u32 = 6 => 1..=10_000,
        /// Number of messages in which a member sends a piece of news; multiplied by log10 of (members + 1), rounded
        /// up.
        repeats: u32 = 4 => 1..=10_000,
        /// Time between pings to a random member that has been declared dead.
        reconnect: Span = Span::from_secs(30) => period,
    }
}

impl Lifeguard {
    /// Checks the parameters against the group of a layout; a layout without a group fits.
    ///
    /// # Errors
    /// The reason and a remedy, as "key: reason".
    pub fn check(&self, layout: &Layout) -> Result<(), String> {
        let Self { period, timeout, .. } = *self;
        if timeout >= period {
            return Err(format!(
                "timeout: must be below `period`, {period}, so that others can ping within it"
            ));
        }
        if self.health > 0 && self.indirect > 0 && timeout.scale(1.0 + NACK_AFTER) >= period {
            return Err(format!(
                "timeout: {} times this value must be below `period`, {period}, so that negative acknowledgements \
                 arrive within a period; lower it",
                1.0 + NACK_AFTER
            ));
        }
        let Some(group) = layout.gossip() else { return Ok(()) };
        if group.origin != Origin::Nowhere {
            return Err(
                "members detect failures and spread no updates: leave out workload.gossip.updates".into()
            );
        }
        if *group.neighbours() != Neighbours::Complete {
            return Err("members probe all others: leave out workload.gossip.topology".into());
        }
        let most = group.members() - 1;
        if self.indirect >= most.max(1) {
            return Err(format!(
                "indirect: {most} others cannot include {} besides the probed member; write less, or add members",
                self.indirect
            ));
        }
        let shortest = self.shortest(group.members());
        if self.suspicion > 0.0 && shortest < period {
            return Err(format!(
                "suspicion: {shortest} is shorter than a probe of {period}; write 1 or more, or 0 for no suspicion"
            ));
        }
        Ok(())
    }

    /// The minimum time of suspicion.
    fn shortest(&self, members: u32) -> Span {
        self.period.scale(self.suspicion * f64::from(members).log10().max(1.0))
    }

    /// The time of suspicion of a member that `others` members suspect independently after the first.
    fn suspected_for(&self, members: u32, others: u32) -> Span {
        let (shortest, most) = (self.shortest(members), self.confirmations.min(members.saturating_sub(2)));
        if others >= most {
            return shortest;
        }
        let left = 1.0 - f64::from(others + 1).ln() / f64::from(most + 1).ln();
        shortest.scale(1.0 + (self.slowest - 1.0) * left)
    }
}

/// The unacknowledged probe of the current period.
#[derive(Clone, Debug)]
struct OpenProbe {
    member: u32,
    /// The member's incarnation when the probe began; this incarnation is suspected if the probe fails.
    incarnation: u32,
    /// The members whose negative acknowledgements are missing.
    owing: Vec<u32>,
}

/// A member's belief about another member.
#[derive(Clone, Debug)]
struct Opinion {
    incarnation: u32,
    standing: Standing,
    since: Time,
    /// The members that made this statement independently, in the order of receipt.
    by: Vec<u32>,
}

/// A ping for another member.
#[derive(Clone, Copy, Debug)]
struct Relay {
    by: u32,
    number: u32,
    acknowledged: bool,
}

/// A member of a group, which detects failures of the others.
#[derive(Clone, Debug)]
pub struct Detector {
    group: Arc<GossipGroup>,
    config: Arc<Lifeguard>,
    /// The number of this member.
    number: u32,
    /// Number of refutations and restarts of this member.
    incarnation: u32,
    /// Number of probes that this member has begun.
    probes: u32,
    probe: Option<OpenProbe>,
    /// The members still to be probed in the current random order; the last is probed next.
    order: Vec<u32>,
    /// Beliefs about other members; a missing member is alive in incarnation 0.
    held: BTreeMap<u32, Opinion>,
    /// News to spread: the number of messages that contained the news so far, and the member that it is about.
    news: Vec<(u32, u32)>,
    /// Pings on behalf of other members, oldest first.
    relays: VecDeque<Relay>,
    /// Local health; 0 is the best.
    health: u32,
}

impl Detector {
    /// The machine of an actor of a group; the source, which is not a member, does nothing.
    ///
    /// # Panics
    /// In a run without a group.
    pub fn boxed(config: Lifeguard, me: Role, layout: &Layout) -> Box<dyn Machine> {
        let group = layout.gossip().expect("plans refuse policies that gossip in a run with jobs");
        let number = layout.in_group(me);
        Box::new(Self {
            group: Arc::clone(group),
            config: Arc::new(config),
            number,
            incarnation: 0,
            probes: 0,
            probe: None,
            order: Vec::new(),
            held: BTreeMap::new(),
            news: Vec::new(),
            relays: VecDeque::new(),
            health: 0,
        })
    }

    fn start(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        if self.number == self.group.source() || self.group.members() == 1 {
            return;
        }
        if epoch > 0 {
            self.incarnation = self.incarnation.saturating_add(1);
            self.spread(self.number);
        }
        let share = if self.config.aligned { 1.0 } else { fx.rng().unit() };
        fx.arm(PERIOD, self.config.period.scale(share));
        fx.arm(RECONNECT, self.config.reconnect);
    }

    fn is_dead(&self, member: u32) -> bool {
        self.held.get(&member).is_some_and(|held| held.standing == Standing::Dead)
    }

    /// The other members that this one has declared dead.
    fn dead(&self) -> Vec<u32> {
        let dead = self.held.iter().filter(|(_, held)| held.standing == Standing::Dead);
        dead.map(|(member, _)| *member).collect()
    }

    /// Samples up to `count` other members that are not declared dead; never `except`.
    fn draw(&self, count: u32, except: Option<u32>, rng: &mut Rng) -> Vec<u32> {
        let others = self.group.degree(self.number);
        let out = self.dead().len() as u32 + u32::from(except.is_some_and(|except| !self.is_dead(except)));
        let count = count.min(others.saturating_sub(out)) as usize;
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let member = self.group.neighbour(self.number, rng.below(others));
            if Some(member) != except && !self.is_dead(member) && !drawn.contains(&member) {
                drawn.push(member);
            }
        }
        drawn
    }

    /// The next member to probe.
    fn next(&mut self, rng: &mut Rng) -> Option<u32> {
        if self.config.random {
            return self.draw(1, None, rng).pop();
        }
        let others = self.group.degree(self.number);
        while (self.dead().len() as u32) < others {
            while let Some(member) = self.order.pop() {
                if !self.is_dead(member) {
                    return Some(member);
                }
            }
            self.order = (0..others).map(|i| self.group.neighbour(self.number, i)).collect();
            for last in (1..self.order.len()).rev() {
                self.order.swap(last, rng.below(last as u32 + 1) as usize);
            }
        }
        None
    }

    /// Ends the last probe, and begins another.
    fn period(&mut self, fx: &mut Effects<'_>) {
        if let Some(OpenProbe { member, incarnation, owing }) = self.probe.take() {
            self.worsen(1 + u32::from(!owing.is_empty()));
            let at_once = self.config.suspicion == 0.0;
            let standing = if at_once { Standing::Dead } else { Standing::Suspected };
            self.hear(member, incarnation, standing, self.number, fx);
        }
        let slowed = f64::from(1 + self.health);
        if let Some(member) = self.next(fx.rng()) {
            self.probes = self.probes.wrapping_add(1);
            let incarnation = self.held.get(&member).map_or(0, |held| held.incarnation);
            self.probe = Some(OpenProbe { member, incarnation, owing: Vec::new() });
            fx.arm(LATE, self.config.timeout.scale(slowed));
            self.say(member, Detect::Ping { number: self.probes, by: self.number }, fx);
        }
        fx.arm(PERIOD, self.config.period.scale(slowed));
    }

    /// Asks others to ping, since the ping of this period was not acknowledged in time.
    fn ask_others(&mut self, fx: &mut Effects<'_>) {
        let Some(OpenProbe { member, .. }) = self.probe else { return };
        let asked = self.draw(self.config.indirect, Some(member), fx.rng());
        if let Some(probe) = self.probe.as_mut().filter(|_| self.config.health > 0) {
            probe.owing.clone_from(&asked);
        }
        for other in asked {
            self.say(other, Detect::Ask { number: self.probes, member }, fx);
        }
    }

    /// Makes local health worse.
    fn worsen(&mut self, by: u32) {
        self.health = (self.health + by).min(self.config.health);
    }

    /// Queues news of a member to be spread.
    fn spread(&mut self, member: u32) {
        self.news.retain(|(_, of)| *of != member);
        self.news.insert(0, (0, member));
    }

    /// Sends a message, preceded by the statement that its receiver should refute, if any, and by the least repeated
    /// news.
    fn say(&mut self, to: u32, msg: Detect, fx: &mut Effects<'_>) {
        let accused = self.held.get(&to).is_some_and(|held| match held.standing {
            Standing::Alive => false,
            Standing::Suspected => self.config.buddy,
            Standing::Dead => true,
        });
        let mut said: Vec<u32> = accused.then_some(to).into_iter().collect();
        self.news.sort_by_key(|(times, _)| *times);
        let most = self.config.repeats * f64::from(self.group.members() + 1).log10().ceil() as u32;
        let others = self.news.iter_mut().filter(|(_, of)| !accused || *of != to);
        for (times, of) in others.take(self.config.piggyback as usize) {
            *times += 1;
            said.push(*of);
        }
        self.news.retain(|(times, _)| *times < most);
        let to = fx.layout().node(to);
        for member in said {
            let (incarnation, standing, by) = match self.held.get(&member) {
                Some(held) => (held.incarnation, held.standing, held.by.last().copied().unwrap_or(member)),
                None => (self.incarnation, Standing::Alive, member),
            };
            fx.send(to, Detect::News { member, incarnation, standing, by });
        }
        fx.send(to, msg);
    }

    /// Adopts a statement about another member if it is greater; refutes a statement against this member.
    fn hear(&mut self, member: u32, incarnation: u32, standing: Standing, by: u32, fx: &mut Effects<'_>) {
        if member == self.number {
            if standing > Standing::Alive {
                if incarnation >= self.incarnation {
                    self.incarnation = incarnation.saturating_add(1);
                    self.worsen(1);
                }
                self.spread(member);
            }
            return;
        }
        let before =
            self.held.get(&member).map_or((0, Standing::Alive), |held| (held.incarnation, held.standing));
        if (incarnation, standing) == before && standing == Standing::Suspected {
            return self.confirm(member, by, fx);
        }
        if (incarnation, standing) <= before {
            return;
        }
        self.held.insert(member, Opinion { incarnation, standing, since: fx.now(), by: vec![by] });
        self.spread(member);
        if standing == Standing::Suspected {
            fx.arm(Timer::Node(member), self.config.suspected_for(self.group.members(), 0));
        }
        if (standing, before.1) != (Standing::Alive, Standing::Alive) {
            fx.note(Note::Regards { member, standing });
        }
    }

    /// Records one more independent suspicion of a suspected member.
    fn confirm(&mut self, member: u32, by: u32, fx: &mut Effects<'_>) {
        let Some(held) = self.held.get_mut(&member) else { return };
        let others = held.by.len() as u32;
        if self.config.slowest == 1.0 || others > self.config.confirmations || held.by.contains(&by) {
            return;
        }
        held.by.push(by);
        let end = held.since + self.config.suspected_for(self.group.members(), others);
        self.spread(member);
        fx.arm(Timer::Node(member), end.since(fx.now()));
    }

    /// Declares a suspected member dead if the suspicion has lasted long enough.
    fn judge(&mut self, member: u32, fx: &mut Effects<'_>) {
        let Some(held) = self.held.get(&member).filter(|held| held.standing == Standing::Suspected) else {
            return;
        };
        let lasts = self.config.suspected_for(self.group.members(), held.by.len() as u32 - 1);
        if fx.now() >= held.since + lasts {
            self.hear(member, held.incarnation, Standing::Dead, self.number, fx);
        }
    }

    fn receive(&mut self, from: u32, msg: Detect, fx: &mut Effects<'_>) {
        match msg {
            Detect::Ping { number, by } => {
                self.say(from, Detect::Ack { number, member: self.number, by }, fx)
            }
            Detect::Ask { number, member } => {
                if self.config.health > 0 {
                    self.relays.push_back(Relay { by: from, number, acknowledged: false });
                    fx.arm(RELAY_LATE, self.config.timeout.scale(NACK_AFTER));
                }
                self.say(member, Detect::Ping { number, by: from }, fx);
            }
            Detect::Ack { number, member, by } if by == self.number => {
                if number == self.probes && self.probe.as_ref().is_some_and(|probe| probe.member == member) {
                    self.probe = None;
                    self.health = self.health.saturating_sub(1);
                }
            }
            Detect::Ack { number, by, .. } => {
                let asked = self.relays.iter_mut().filter(|relay| (relay.by, relay.number) == (by, number));
                asked.for_each(|relay| relay.acknowledged = true);
                self.say(by, msg, fx);
            }
            Detect::Nack { number } => {
                if let Some(probe) = self.probe.as_mut().filter(|_| number == self.probes) {
                    probe.owing.retain(|other| *other != from);
                }
            }
            Detect::News { member, incarnation, standing, by } => {
                self.hear(member, incarnation, standing, by, fx)
            }
        }
    }
}

impl Machine for Detector {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => self.start(epoch, fx),
            Input::Fire(PERIOD) => self.period(fx),
            Input::Fire(LATE) => self.ask_others(fx),
            Input::Fire(RELAY_LATE) => {
                if let Some(Relay { by, number, acknowledged: false }) = self.relays.pop_front() {
                    self.say(by, Detect::Nack { number }, fx);
                }
            }
            Input::Fire(RECONNECT) => {
                let dead = self.dead();
                if !dead.is_empty() {
                    let member = dead[fx.rng().below(dead.len() as u32) as usize];
                    self.say(member, Detect::Ping { number: self.probes, by: self.number }, fx);
                }
                fx.arm(RECONNECT, self.config.reconnect);
            }
            Input::Fire(Timer::Node(member)) => self.judge(member, fx),
            Input::Deliver { from, msg: Message::Detect(msg) } => {
                self.receive(fx.layout().in_group(fx.layout().role(from)), msg, fx);
            }
            Input::Deliver { msg, .. } | Input::Undelivered { msg, .. } => fx.unexpected(&msg),
            // No actor of a group relies on the failure detector of the run.
            Input::Down { .. } | Input::Up { .. } => {}
            _ => unreachable!("{input:?} reached a member of a gossip group"),
        }
    }

    fn stored(&mut self) -> Option<Stored> {
        Some(Box::new(self.incarnation))
    }

    fn restore(&mut self, stored: Stored) {
        self.incarnation = stored.downcast().map_or(self.incarnation, |incarnation| *incarnation);
    }
}

#[cfg(test)]
mod tests;
