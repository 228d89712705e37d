//! The disseminator, which sends the updates of a scheduler or a node to the schedulers.
//!
//! The paper has reliable streams to all schedulers (section 4.1) and an artificial delay (section 6.2.3). Datagrams
//! and epidemic spread are ours.

use std::collections::VecDeque;

use super::cache::changes;
use super::config::{Copying, Murmuration, MurmurationSpread};
use super::timers::SPREAD;
use crate::base::{ActorId, Span};
use crate::layout::Role;
use crate::machine::{CacheNote, Effects};
use crate::message::{Gossip, PlacementForm, PlacementUpdate};
use crate::policies::policy::BuildContext;

/// Number of updates kept for schedulers that are down. The oldest are dropped first, because a scheduler whose
/// cache is copied has received them long ago.
const KEPT: usize = 1024;

/// The updates of one actor, and their receivers.
#[derive(Clone, Debug)]
pub(super) struct Disseminator {
    /// Whether updates travel as rumours, that is, in datagrams.
    pub(super) rumours: bool,
    /// Number of schedulers to which an update is sent or forwarded; zero without epidemic spread.
    fan_out: u32,
    delay: Span,
    observed: bool,
    /// Number of the next update; the upper byte is the epoch of this actor.
    pub(super) number: u32,
    /// Updates already sent; kept only where a receiver may have missed some and ignores duplicates.
    pub(super) recent: Option<VecDeque<Gossip>>,
    /// Delayed updates, each with the flag that it repairs a loss.
    delayed: VecDeque<(Gossip, bool)>,
    /// Schedulers that are down, each with the first update that it has missed.
    pub(super) down: Vec<(ActorId, u32)>,
}

impl Disseminator {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let repeats =
            context.lossy && config.spread == MurmurationSpread::Streams && config.copy == Copying::Numbered;
        Self {
            rumours: config.spread != MurmurationSpread::Streams,
            fan_out: if config.spread == MurmurationSpread::Epidemic { config.fan_out } else { 0 },
            delay: config.update_delay,
            observed: context.observed,
            number: 0,
            recent: repeats.then(VecDeque::new),
            delayed: VecDeque::new(),
            down: Vec::new(),
        }
    }

    /// Takes the number of the next update.
    pub(super) const fn take_number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number.wrapping_sub(1)
    }

    /// Sends an update of this actor, at once or after the artificial delay.
    pub(super) fn announce(&mut self, update: Gossip, recovery: bool, fx: &mut Effects<'_>) {
        // Withdrawals are noted where they take effect.
        let withdrawn =
            matches!(update, Gossip::Placed(PlacementUpdate { form: PlacementForm::Withdrawn, .. }));
        if self.observed
            && !withdrawn
            && let Some((_, number)) = update.origin(fx.layout())
        {
            let datagram = update.is_rumour();
            changes(&update, fx).0.for_each(|node| fx.note(CacheNote::Numbered { node, number, datagram }));
        }
        if let Some(recent) = &mut self.recent {
            if recent.len() == KEPT {
                recent.pop_front();
            }
            recent.push_back(update);
        }
        if self.delay == Span::ZERO {
            self.send(update, recovery, fx);
        } else {
            self.delayed.push_back((update, recovery));
            fx.arm(SPREAD, self.delay);
        }
    }

    /// Sends the oldest delayed update, whose delay has expired.
    pub(super) fn due(&mut self, fx: &mut Effects<'_>) {
        if let Some((update, recovery)) = self.delayed.pop_front() {
            self.send(update, recovery, fx);
        }
    }

    fn send(&self, update: Gossip, recovery: bool, fx: &mut Effects<'_>) {
        if self.fan_out > 0 {
            self.sample(update, fx.me(), recovery, fx);
        } else if self.down.is_empty() && !recovery {
            fx.broadcast(update);
        } else {
            for scheduler in others(fx).filter(|&other| self.is_up(other)) {
                fx.send_as(recovery, scheduler, update);
            }
        }
    }

    /// Sends or forwards an update to `fan_out` random schedulers that are up, or to all of them if there are fewer,
    /// but never to the sender of the update. Without epidemic spread it sends none.
    pub(super) fn sample(&self, update: Gossip, from: ActorId, recovery: bool, fx: &mut Effects<'_>) {
        if self.fan_out == 0 {
            return; // The receiver of a broadcast must not draw random numbers.
        }
        let layout = fx.layout();
        let ends = [fx.me(), from].into_iter().chain(self.down.iter().map(|&(who, _)| who));
        let mut left_out: Vec<u32> = ends
            .filter_map(|who| match layout.role(who) {
                Role::Scheduler(number) => Some(number),
                _ => None,
            })
            .collect();
        left_out.sort_unstable();
        left_out.dedup();
        for other in fx.rng().different(self.fan_out, layout.schedulers(), &left_out) {
            fx.send_as(recovery, layout.scheduler(other), update);
        }
    }

    /// Whether a scheduler is believed alive.
    pub(super) fn is_up(&self, scheduler: ActorId) -> bool {
        self.down.iter().all(|&(who, _)| who != scheduler)
    }
}

/// All schedulers except this one.
pub(super) fn others(fx: &Effects<'_>) -> impl Iterator<Item = ActorId> + use<> {
    let (me, first, count) = (fx.me(), fx.layout().scheduler(0), fx.layout().schedulers());
    (0..count).map(move |i| ActorId(first.0 + i)).filter(move |&other| other != me)
}
