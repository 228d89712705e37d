//! The disseminator: numbers updates and sends them, for schedulers and nodes alike.

use std::collections::VecDeque;

use super::config::{Copying, Murmuration, MurmurationSpread};
use crate::base::{ActorId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Note, Timer};
use crate::message::{EndUpdate, Gossip, PlacementForm};
use crate::policies::policy::BuildContext;

/// Updates kept for schedulers that are down. The oldest are dropped first: a scheduler that answers for a cache has
/// received them long ago.
const KEPT: usize = 1024;

/// The tick at which a delayed update is sent.
pub(super) const SPREAD: u32 = 1;

/// The updates of one actor, and their receivers.
pub(super) struct Disseminator {
    pub(super) spread: MurmurationSpread,
    fan_out: u32,
    delay: Span,
    observed: bool,
    /// Number of the next update; the upper byte is the epoch of this actor.
    pub(super) number: u32,
    /// Updates already sent; kept only where a receiver may have missed some and ignores duplicates.
    recent: Option<VecDeque<Gossip>>,
    /// Delayed updates, and whether each is part of a repair.
    delayed: VecDeque<(Gossip, bool)>,
    /// Schedulers that are down, and the first update each has missed.
    down: Vec<(ActorId, u32)>,
    /// Receivers of a forwarded update; a field to reuse its memory.
    sample: Vec<u32>,
}

impl Disseminator {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let repeats =
            context.lossy && config.spread == MurmurationSpread::Streams && config.copy == Copying::Numbered;
        Self {
            spread: config.spread,
            fan_out: config.fan_out,
            delay: config.update_delay,
            observed: context.observed,
            number: 0,
            recent: repeats.then(VecDeque::new),
            delayed: VecDeque::new(),
            down: Vec::new(),
            sample: Vec::new(),
        }
    }

    /// Begins an epoch.
    pub(super) fn begin(&mut self, epoch: u32) {
        self.number = epoch << 24;
    }

    /// Whether updates are datagrams.
    pub(super) fn rumours(&self) -> bool {
        self.spread != MurmurationSpread::Streams
    }

    /// Takes the number of the next update.
    pub(super) const fn take_number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number.wrapping_sub(1)
    }

    /// Sends an update of this actor, at once or after the artificial delay.
    pub(super) fn announce(&mut self, update: Gossip, repair: bool, fx: &mut Effects<'_>) {
        if self.observed {
            note_numbers(&update, fx);
        }
        if let Some(recent) = &mut self.recent {
            if recent.len() == KEPT {
                recent.pop_front();
            }
            recent.push_back(update);
        }
        if self.delay == Span::ZERO {
            self.send(update, repair, fx);
        } else {
            self.delayed.push_back((update, repair));
            fx.arm(Timer::Tick(SPREAD), self.delay);
        }
    }

    /// Sends the oldest delayed update; its delay has expired.
    pub(super) fn due(&mut self, fx: &mut Effects<'_>) {
        if let Some((update, repair)) = self.delayed.pop_front() {
            self.send(update, repair, fx);
        }
    }

    fn send(&mut self, update: Gossip, repair: bool, fx: &mut Effects<'_>) {
        if self.spread == MurmurationSpread::Epidemic {
            self.pass_on(update, None, repair, fx);
        } else if self.down.is_empty() && !repair {
            fx.broadcast(update);
        } else {
            for scheduler in others(fx).filter(|&other| self.is_up(other)) {
                fx.send_as(repair, scheduler, update);
            }
        }
    }

    /// Sends an update to `fan_out` random schedulers, except the one it came from.
    pub(super) fn pass_on(
        &mut self,
        update: Gossip,
        from: Option<ActorId>,
        repair: bool,
        fx: &mut Effects<'_>,
    ) {
        let layout = fx.layout();
        let schedulers = layout.schedulers();
        let (me, mut sample) = (fx.me(), std::mem::take(&mut self.sample));
        sample.clear();
        // Few are drawn among many, so unsuitable draws are repeated, a bounded number of times.
        for _ in 0..4 * self.fan_out {
            let index = fx.rng().below(schedulers);
            let other = layout.scheduler(index);
            let fits = other != me && Some(other) != from && self.is_up(other) && !sample.contains(&index);
            if fits {
                sample.push(index);
                fx.send_as(repair, other, update);
                if sample.len() == self.fan_out as usize {
                    break;
                }
            }
        }
        self.sample = sample;
    }

    /// Sends an undelivered update again, at once or when the scheduler is back.
    pub(super) fn undelivered(&mut self, to: ActorId, update: Gossip, fx: &mut Effects<'_>) {
        let Some((_, number)) = update.origin(fx.layout()) else { return };
        match self.down.iter_mut().find(|(who, _)| *who == to) {
            Some((_, missed)) => *missed = number.min(*missed),
            None => fx.recover(to, update),
        }
    }

    /// Notes that a scheduler crashed, and the first update it misses.
    pub(super) fn down(&mut self, actor: ActorId, layout: &Layout) {
        if matches!(layout.role(actor), Role::Scheduler(_)) && self.is_up(actor) {
            self.down.push((actor, self.number));
        }
    }

    /// Sends a restarted scheduler the updates it missed.
    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Some(at) = self.down.iter().position(|&(who, _)| who == actor) else { return };
        let (_, missed) = self.down.swap_remove(at);
        for &update in self.recent.iter().flatten() {
            if update.origin(fx.layout()).is_some_and(|(_, number)| number >= missed) {
                fx.recover(actor, update);
            }
        }
    }

    /// Whether a scheduler is believed alive.
    pub(super) fn is_up(&self, scheduler: ActorId) -> bool {
        self.down.iter().all(|&(who, _)| who != scheduler)
    }
}

/// Notes the number of an update for each node that it is about.
fn note_numbers(update: &Gossip, fx: &mut Effects<'_>) {
    let datagram = update.is_rumour();
    match *update {
        Gossip::Placed(update) if update.form != PlacementForm::Withdrawn => {
            update.nodes().for_each(|node| {
                fx.note(Note::Numbered { node, number: update.number, datagram });
            });
        }
        Gossip::Ended(EndUpdate { node, number, .. })
        | Gossip::EndedRumour(EndUpdate { node, number, .. }) => {
            fx.note(Note::Numbered { node, number, datagram });
        }
        // Withdrawals are measured by their effect, the rest is no update.
        _ => {}
    }
}

/// All schedulers but this one.
pub(super) fn others(fx: &Effects<'_>) -> impl Iterator<Item = ActorId> + use<> {
    let (me, first, count) = (fx.me(), fx.layout().scheduler(0), fx.layout().schedulers());
    (0..count).map(move |i| ActorId(first.0 + i)).filter(move |&other| other != me)
}
