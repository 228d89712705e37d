//! Making news and spreading it, for schedulers and nodes alike.

use std::collections::VecDeque;

use super::policy::{Copying, Murmuration, MurmurationSpread};
use crate::base::{ActorId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Timer};
use crate::message::Gossip;
use crate::policies::policy::BuildContext;

/// News kept for schedulers that are down. The oldest go first: whoever answers for a cache has long heard
/// them.
const KEPT: usize = 1024;

/// The tick at which news that lay long enough is spread.
pub(super) const SPREAD: u32 = 1;

/// What an actor makes known.
#[derive(Debug)]
pub(super) struct Disseminator {
    spread: MurmurationSpread,
    fan_out: u32,
    delay: Span,
    /// Number of the next news; the upper byte says how often this actor was restarted.
    number: u32,
    /// News that was spread: only where somebody may have missed it and counts what comes twice once.
    recent: Option<VecDeque<Gossip>>,
    /// News that lies for `delay`, and whether it is part of a repair.
    delayed: VecDeque<(Gossip, bool)>,
    /// Schedulers that are down, and the first news each has missed.
    down: Vec<(ActorId, u32)>,
    /// Those to pass something on to: kept for its memory.
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
            number: 0,
            recent: repeats.then(VecDeque::new),
            delayed: VecDeque::new(),
            down: Vec::new(),
            sample: Vec::new(),
        }
    }

    /// The life of this actor that now begins.
    pub(super) fn begin(&mut self, epoch: u32) {
        self.number = epoch << 24;
    }

    /// Whether news travels as datagrams.
    pub(super) fn rumours(&self) -> bool {
        self.spread != MurmurationSpread::Streams
    }

    /// Whether whoever hears news passes it on.
    pub(super) fn is_epidemic(&self) -> bool {
        self.spread == MurmurationSpread::Epidemic
    }

    /// The number of the next news.
    pub(super) const fn next(&self) -> u32 {
        self.number
    }

    /// A number for a piece of news.
    pub(super) const fn number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number.wrapping_sub(1)
    }

    /// Spreads news of our own, now or after it lay for a while.
    pub(super) fn announce(&mut self, news: Gossip, repair: bool, fx: &mut Effects<'_>) {
        if let Some(recent) = &mut self.recent {
            if recent.len() == KEPT {
                recent.pop_front();
            }
            recent.push_back(news);
        }
        if self.delay == Span::ZERO {
            self.send(news, repair, fx);
        } else {
            self.delayed.push_back((news, repair));
            fx.arm(Timer::Tick(SPREAD), self.delay);
        }
    }

    /// The oldest news that lies has lain long enough.
    pub(super) fn due(&mut self, fx: &mut Effects<'_>) {
        if let Some((news, repair)) = self.delayed.pop_front() {
            self.send(news, repair, fx);
        }
    }

    fn send(&mut self, news: Gossip, repair: bool, fx: &mut Effects<'_>) {
        if self.spread == MurmurationSpread::Epidemic {
            self.pass_on(news, None, repair, fx);
        } else if self.down.is_empty() && !repair {
            fx.broadcast(news);
        } else {
            for scheduler in others(fx).filter(|&other| self.is_up(other)) {
                fx.send_as(repair, scheduler, news);
            }
        }
    }

    /// Sends news to some random schedulers, not back to whom it came from.
    pub(super) fn pass_on(
        &mut self,
        news: Gossip,
        from: Option<ActorId>,
        repair: bool,
        fx: &mut Effects<'_>,
    ) {
        let layout = fx.layout();
        let schedulers = layout.schedulers();
        let (me, mut sample) = (fx.me(), std::mem::take(&mut self.sample));
        sample.clear();
        // A few among many: those drawn twice, or out of place, are drawn again, for a while.
        for _ in 0..4 * self.fan_out {
            let index = fx.rng().below(schedulers);
            let other = layout.scheduler(index);
            let fits = other != me && Some(other) != from && self.is_up(other) && !sample.contains(&index);
            if fits {
                sample.push(index);
                fx.send_as(repair, other, news);
                if sample.len() == self.fan_out as usize {
                    break;
                }
            }
        }
        self.sample = sample;
    }

    /// News comes back undelivered: it is said again, at once or when the scheduler is back.
    pub(super) fn returned(&mut self, to: ActorId, news: Gossip, fx: &mut Effects<'_>) {
        let Some((_, number)) = news.origin(fx.layout()) else { return };
        match self.down.iter_mut().find(|(who, _)| *who == to) {
            Some((_, missed)) => *missed = number.min(*missed),
            None => fx.recover(to, news),
        }
    }

    /// A scheduler crashed: it hears nothing until it is back.
    pub(super) fn down(&mut self, actor: ActorId, layout: &Layout) {
        if matches!(layout.role(actor), Role::Scheduler(_)) && self.is_up(actor) {
            self.down.push((actor, self.number));
        }
    }

    /// A scheduler is back: it hears what it missed.
    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Some(at) = self.down.iter().position(|&(who, _)| who == actor) else { return };
        let (_, missed) = self.down.swap_remove(at);
        for &news in self.recent.iter().flatten() {
            if news.origin(fx.layout()).is_some_and(|(_, number)| number >= missed) {
                fx.recover(actor, news);
            }
        }
    }

    /// Whether a scheduler is believed alive.
    pub(super) fn is_up(&self, scheduler: ActorId) -> bool {
        self.down.iter().all(|&(who, _)| who != scheduler)
    }
}

/// Every scheduler but the one that asks.
pub(super) fn others(fx: &Effects<'_>) -> impl Iterator<Item = ActorId> + use<> {
    let (me, first, count) = (fx.me(), fx.layout().scheduler(0), fx.layout().schedulers());
    (0..count).map(move |i| ActorId(first.0 + i)).filter(move |&other| other != me)
}
