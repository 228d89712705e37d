//! The copying of caches (section 4.2, Fault Tolerance).
//!
//! A restarted scheduler asks two random schedulers for their caches and takes the first complete answer. On a timeout
//! it asks two others; when all have been asked, it begins with an empty cache. A scheduler without a cache does not
//! answer. Updates that arrive meanwhile are kept and applied after the copy.
//!
//! The copy lacks updates that the scheduler sent before its crash and that had not reached the copied scheduler. The
//! restarted scheduler expects too little work at their nodes until these restart or, with `repair`, report.
//!
//! Clients regard the scheduler as up from its restart on, so jobs that arrive before it has a cache wait. In the paper
//! the scheduler joins only when it has a cache. Like updates, a request for the cache waits while the scheduler places
//! a job.

use super::cache::{Cache, changes};
use super::disseminator::others;
use super::numbering::SeenWindow;
use super::scheduler::{CacheRequest, MurmurationRule};
use super::timers::{ANSWER, ASK};
use crate::base::{ActorId, Span};
use crate::machine::{CacheNote, Effects};
use crate::message::Gossip;

/// Number of schedulers asked at once.
const AT_ONCE: usize = 2;

impl MurmurationRule {
    /// Asks for a cache in a new epoch.
    pub(super) fn request(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        let mut left: Vec<ActorId> = others(fx).collect();
        for i in (1..left.len()).rev() {
            left.swap(i, fx.rng().below(i as u32 + 1) as usize);
        }
        self.request = Some(CacheRequest { epoch, left, received: Vec::new() });
        self.ask(fx);
    }

    /// Asks the next two schedulers that are up; if none is left, the cache is empty.
    pub(super) fn ask(&mut self, fx: &mut Effects<'_>) {
        let Some(request) = &mut self.request else { return };
        let up = std::iter::from_fn(|| request.left.pop()).filter(|&other| self.disseminator.is_up(other));
        let asked: Vec<_> = up.take(AT_ONCE).collect();
        if asked.is_empty() {
            return self.adopt(&[], fx);
        }
        let epoch = request.epoch;
        asked.into_iter().for_each(|other| fx.recover(other, Gossip::Ask { epoch }));
        fx.arm(ASK, self.config.ask_timeout);
    }

    /// Answers a request with a copy of the cache, at once or after the artificial delay; without a cache, not at all.
    pub(super) fn answer(&mut self, to: ActorId, epoch: u32, fx: &mut Effects<'_>) {
        if self.request.is_some() {
            return;
        }
        let parts = self.cache.copy(epoch, self.disseminator.number, fx);
        let mut after = self.config.answer_delay;
        if after > Span::ZERO {
            after = after.scale(fx.rng().unit());
            fx.arm(ANSWER, after);
        }
        self.to_send.push((fx.now() + after, to, epoch, parts));
        self.send_answers(fx);
    }

    /// Sends the answers whose delay has expired.
    pub(super) fn send_answers(&mut self, fx: &mut Effects<'_>) {
        let now = fx.now();
        for (_, to, epoch, parts) in self.to_send.extract_if(.., |answer| answer.0 <= now) {
            fx.recover(to, Gossip::Answer { epoch, parts: parts.len() as u32 });
            parts.into_iter().for_each(|part| fx.recover(to, part));
        }
    }

    /// Adds a part of an answer; adopts the answer when it is complete.
    pub(super) fn copied(&mut self, from: ActorId, epoch: u32, part: Gossip, fx: &mut Effects<'_>) {
        let Some(request) = self.request.as_mut().filter(|request| request.epoch == epoch) else { return };
        let at = request.received.iter().position(|answer| answer.0 == from).unwrap_or_else(|| {
            request.received.push((from, None, Vec::new()));
            request.received.len() - 1
        });
        let (_, announced, parts) = &mut request.received[at];
        match part {
            Gossip::Answer { parts, .. } => *announced = Some(parts),
            _ => parts.push(part),
        }
        if *announced == Some(parts.len() as u32) {
            let parts = std::mem::take(parts);
            self.adopt(&parts, fx);
        }
    }

    /// Installs the copied cache, or an empty one if there are no parts, and begins to place jobs.
    fn adopt(&mut self, parts: &[Gossip], fx: &mut Effects<'_>) {
        self.request = None;
        self.cache.adopt(parts, fx);
        self.read_inbox(fx);
    }
}

impl Cache {
    /// The parts of an answer: for every node its expected work and the time of its last restart, and for every origin
    /// the updates that the copy contains (`own` for this scheduler). With `wait = "clock"` times do not add up, so
    /// updates that were applied out of order are subtracted only approximately.
    fn copy(&self, epoch: u32, own: u32, fx: &Effects<'_>) -> Vec<Gossip> {
        let nodes = fx.layout().nodes();
        let mut early = vec![0i64; nodes as usize];
        for update in self.seen.iter().flat_map(SeenWindow::early) {
            // The copy does not contain this update, because an earlier update of the same origin is missing.
            let (nodes, change, at) = changes(update, fx);
            nodes.filter(|&node| self.counts(node, at)).for_each(|node| early[node as usize] += change);
        }
        let entries = (0..nodes).map(|node| {
            let wait = self.waits.work(node).saturating_sub(early[node as usize]);
            Gossip::Entry { epoch, node, wait, renewed: self.renewed(node) }
        });
        let contained = self.seen.iter().flat_map(SeenWindow::contained).map(|(origin, number)| {
            let number = if origin == self.me { own } else { number };
            Gossip::Heard { epoch, origin, number }
        });
        entries.chain(contained).collect()
    }

    /// Replaces the whole cache by the parts of a copy, or by an empty cache if there are none.
    fn adopt(&mut self, parts: &[Gossip], fx: &mut Effects<'_>) {
        self.seen.iter_mut().for_each(SeenWindow::forget);
        // Without a copy, earlier placements are unknown, and updates about their ends must be ignored.
        let mut entries = vec![(0, fx.now()); fx.layout().nodes() as usize];
        for part in parts {
            match *part {
                Gossip::Entry { node, wait, renewed, .. } => entries[node as usize] = (wait, renewed),
                Gossip::Heard { origin, number, .. } => {
                    self.seen.iter_mut().for_each(|seen| seen.adopt(origin, number));
                }
                _ => {}
            }
        }
        for (node, (wait, known)) in (0..).zip(entries) {
            // The sender of the copy may not have been notified yet that the node crashed or came back.
            let stale = known < self.renewed(node);
            if let Some(renewed) = self.renewed.get_mut(node as usize) {
                *renewed = known.max(*renewed);
            }
            self.waits.set(node, if stale { 0 } else { wait });
            if self.watched {
                fx.note(CacheNote::Believes { node, work: self.work(node, fx), at: fx.now() });
            }
        }
    }
}
