//! Recovery of a restarted scheduler: it copies the cache of another (section 4.2).
//!
//! It asks two random schedulers and takes the first complete answer. On a timeout it asks two others; when all have
//! been asked, it begins with an empty cache. A scheduler without a cache does not answer. Updates that arrive
//! meanwhile are kept and applied after the copy.
//!
//! The scheduler counts as up from its restart on, so jobs arrive before it has a cache, and wait; in the paper it
//! joins only afterwards. A question waits, as updates do, while the asked scheduler places a job.

use crate::base::{ActorId, Span, Time};
use crate::machine::{Effects, Timer};
use crate::message::Gossip;

/// The tick at which two others are asked.
pub(super) const ASK: u32 = 2;

/// The tick at which a delayed answer is sent.
pub(super) const ANSWER: u32 = 3;

/// Schedulers asked at once.
const AT_ONCE: usize = 2;

/// A partly received answer.
pub(super) struct CacheCopy {
    from: ActorId,
    /// Parts announced and parts received.
    parts: Option<u32>,
    came: u32,
    /// For each node the expected work, ns, and since when it lives.
    pub(super) entries: Vec<(i64, Time)>,
    /// For each origin the number of its first update that is not contained.
    pub(super) contained: Vec<(u32, u32)>,
}

/// A scheduler without a cache.
pub(super) struct Boot {
    /// The epoch of this scheduler; answers to an earlier one are ignored.
    round: u32,
    timeout: Span,
    /// Schedulers not asked yet; the next ones at the end.
    left: Vec<ActorId>,
    answers: Vec<CacheCopy>,
    /// Updates that arrived meanwhile.
    pub(super) update: Vec<Gossip>,
}

impl Boot {
    /// Begins epoch `round`; `others` are in random order.
    pub(super) const fn new(round: u32, timeout: Span, others: Vec<ActorId>) -> Self {
        Self { round, timeout, left: others, answers: Vec::new(), update: Vec::new() }
    }

    /// Asks the next two that are up; `false` if none is left.
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

    /// Adds a part of an answer; returns the answer when it is complete.
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
            Gossip::Heard { origin, number, .. } => {
                copy.came += 1;
                copy.contained.push((origin, number));
            }
            // Other messages have returned above.
            _ => {}
        }
        (copy.parts == Some(copy.came)).then(|| self.answers.swap_remove(at))
    }
}

/// Answers to other schedulers, with their artificial delay.
pub(super) struct Answers {
    /// Upper bound of the artificial delay before an answer is sent.
    most: Span,
    /// Delayed answers: due time, receiver, the receiver's epoch, parts.
    delayed: Vec<(Time, ActorId, u32, Vec<Gossip>)>,
}

impl Answers {
    pub(super) const fn new(most: Span) -> Self {
        Self { most, delayed: Vec::new() }
    }

    /// Answers with a copy, at once or after the artificial delay.
    pub(super) fn give(&mut self, to: ActorId, round: u32, parts: Vec<Gossip>, fx: &mut Effects<'_>) {
        if self.most == Span::ZERO {
            return send(to, round, parts, fx);
        }
        let after = self.most.scale(fx.rng().unit());
        self.delayed.push((fx.now() + after, to, round, parts));
        fx.arm(Timer::Tick(ANSWER), after);
    }

    /// Sends the answers whose delay has expired.
    pub(super) fn due(&mut self, fx: &mut Effects<'_>) {
        let (due, delayed) =
            std::mem::take(&mut self.delayed).into_iter().partition(|entry| entry.0 <= fx.now());
        self.delayed = delayed;
        for (_, to, round, parts) in due {
            send(to, round, parts, fx);
        }
    }
}

/// Sends the parts of an answer, marked with `round`.
fn send(to: ActorId, round: u32, parts: Vec<Gossip>, fx: &mut Effects<'_>) {
    fx.recover(to, Gossip::Answer { round, parts: parts.len() as u32 });
    for part in parts {
        let part = match part {
            Gossip::Entry { node, wait, since, .. } => Gossip::Entry { round, node, wait, since },
            Gossip::Heard { origin, number, .. } => Gossip::Heard { round, origin, number },
            other => other,
        };
        fx.recover(to, part);
    }
}
