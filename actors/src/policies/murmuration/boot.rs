//! A restarted scheduler copies the cache of another (section 4.2).
//!
//! It asks two random schedulers and takes the first answer that is whole. On a timeout it asks two others,
//! until everybody was asked; then it begins with an empty cache. Whoever has none yet does not answer. News
//! that comes meanwhile is kept, and counted after the copy.
//!
//! It counts as up from its restart on, so jobs come before it has a cache, and wait; in the paper it joins only then.
//! A question waits, as news does, while whoever is asked places the job in hand.

use crate::base::{ActorId, Span, Time};
use crate::machine::{Effects, Timer};
use crate::message::Gossip;

/// The tick at which two others are asked.
pub(super) const ASK: u32 = 2;

/// The tick at which an answer has lain long enough.
pub(super) const ANSWER: u32 = 3;

/// How many are asked at once.
const AT_ONCE: usize = 2;

/// An answer, as far as it has arrived.
#[derive(Debug)]
pub(super) struct CacheCopy {
    from: ActorId,
    /// Parts that are announced and those that came.
    parts: Option<u32>,
    came: u32,
    /// What is expected at each node, ns, and since when it lives.
    pub(super) entries: Vec<(i64, Time)>,
    /// Makers of news and the first of theirs that is not contained.
    pub(super) contained: Vec<(u32, u32)>,
}

/// A scheduler without a cache.
#[derive(Debug)]
pub(super) struct Boot {
    /// Its life: answers to an earlier one are ignored.
    round: u32,
    timeout: Span,
    /// Those not asked yet, the next ones at the end.
    left: Vec<ActorId>,
    answers: Vec<CacheCopy>,
    /// News that came meanwhile.
    pub(super) news: Vec<Gossip>,
}

impl Boot {
    /// Of life number `round`, with nobody asked yet; `others` in random order.
    pub(super) const fn new(round: u32, timeout: Span, others: Vec<ActorId>) -> Self {
        Self { round, timeout, left: others, answers: Vec::new(), news: Vec::new() }
    }

    /// Asks the next two that are up; `false` if nobody is left.
    pub(super) fn ask(&mut self, is_up: impl Fn(ActorId) -> bool, fx: &mut Effects<'_>) -> bool {
        let mut asked = 0;
        while asked < AT_ONCE
            && let Some(other) = self.left.pop()
        {
            if is_up(other) {
                asked += 1;
                fx.recover(other, Gossip::Ask { round: self.round });
            }
        }
        if asked > 0 {
            fx.arm(Timer::Tick(ASK), self.timeout);
        }
        asked > 0
    }

    /// Takes in a part of an answer; the answer, once it is whole.
    pub(super) fn answer(&mut self, from: ActorId, part: Gossip, nodes: u32) -> Option<CacheCopy> {
        let (Gossip::Answer { round, .. } | Gossip::Entry { round, .. } | Gossip::Heard { round, .. }) = part
        else {
            return None;
        };
        if round != self.round {
            return None;
        }
        let at = self.answers.iter().position(|copy| copy.from == from).unwrap_or_else(|| {
            let entries = vec![(0, Time::ZERO); nodes as usize];
            self.answers.push(CacheCopy { from, parts: None, came: 0, entries, contained: Vec::new() });
            self.answers.len() - 1
        });
        let copy = &mut self.answers[at];
        match part {
            Gossip::Answer { parts, .. } => copy.parts = Some(parts),
            Gossip::Entry { node, wait, since, .. } => {
                copy.came += 1;
                copy.entries[node as usize] = (wait, since);
            }
            Gossip::Heard { maker, number, .. } => {
                copy.came += 1;
                copy.contained.push((maker, number));
            }
            _ => {}
        }
        (copy.parts == Some(copy.came)).then(|| self.answers.swap_remove(at))
    }
}

/// Copies that are given to others.
#[derive(Debug)]
pub(super) struct Answers {
    /// The longest an answer entry.
    most: Span,
    /// Answers that lie: until when, for whom, to which attempt.
    delayed: Vec<(Time, ActorId, u32, Vec<Gossip>)>,
}

impl Answers {
    pub(super) const fn new(most: Span) -> Self {
        Self { most, delayed: Vec::new() }
    }

    /// Answers with a copy, now or after it lay for a while.
    pub(super) fn give(&mut self, to: ActorId, round: u32, parts: Vec<Gossip>, fx: &mut Effects<'_>) {
        if self.most == Span::ZERO {
            return send(to, round, parts, fx);
        }
        let after = self.most.scale(fx.rng().unit());
        self.delayed.push((fx.now() + after, to, round, parts));
        fx.arm(Timer::Tick(ANSWER), after);
    }

    /// Sends what has lain long enough.
    pub(super) fn due(&mut self, fx: &mut Effects<'_>) {
        let (due, delayed) =
            std::mem::take(&mut self.delayed).into_iter().partition(|entry| entry.0 <= fx.now());
        self.delayed = delayed;
        for (_, to, round, parts) in due {
            send(to, round, parts, fx);
        }
    }
}

/// The parts of an answer to `round`.
fn send(to: ActorId, round: u32, parts: Vec<Gossip>, fx: &mut Effects<'_>) {
    fx.recover(to, Gossip::Answer { round, parts: parts.len() as u32 });
    for part in parts {
        let part = match part {
            Gossip::Entry { node, wait, since, .. } => Gossip::Entry { round, node, wait, since },
            Gossip::Heard { maker, number, .. } => Gossip::Heard { round, maker, number },
            other => other,
        };
        fx.recover(to, part);
    }
}
