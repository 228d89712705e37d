//! The disseminator. It numbers updates and sends them, for schedulers and nodes alike, and recognises repeated
//! updates.

use std::collections::{BTreeMap, VecDeque};

use super::config::{Copying, Murmuration, MurmurationSpread};
use crate::base::{ActorId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{CacheNote, Effects, Timer};
use crate::message::{EndUpdate, Gossip, PlacementForm};
use crate::policies::policy::BuildContext;

/// Number of updates kept for schedulers that are down. The oldest are dropped first, because a scheduler that answers
/// for a cache has received them long ago.
const KEPT: usize = 1024;

/// The tick at which a delayed update is sent.
pub(super) const SPREAD: u32 = 1;

/// The updates of one actor, and their receivers.
#[derive(Clone, Debug)]
pub(super) struct Disseminator {
    pub(super) spread: MurmurationSpread,
    fan_out: u32,
    delay: Span,
    observed: bool,
    /// Number of the next update; the upper byte is the epoch of this actor.
    pub(super) number: u32,
    /// Updates already sent; kept only where a receiver may have missed some and ignores duplicates.
    recent: Option<VecDeque<Gossip>>,
    /// Delayed updates, each with the flag that it is part of a repair.
    delayed: VecDeque<(Gossip, bool)>,
    /// Schedulers that are down, each with the first update that it has missed.
    down: Vec<(ActorId, u32)>,
    /// Receivers of a forwarded update; the field reuses the memory.
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

    /// Sends the oldest delayed update, whose delay has expired.
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

    /// Sends an update to `fan_out` random schedulers, except the sender of the update.
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
        // Few schedulers are drawn among many, so unsuitable draws are repeated, a bounded number of times.
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

    /// Records that a scheduler crashed, and the first update that it misses.
    pub(super) fn down(&mut self, actor: ActorId, layout: &Layout) {
        if matches!(layout.role(actor), Role::Scheduler(_)) && self.is_up(actor) {
            self.down.push((actor, self.number));
        }
    }

    /// Sends a restarted scheduler the updates that it missed.
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

/// Notes the number of an update for each of its nodes.
fn note_numbers(update: &Gossip, fx: &mut Effects<'_>) {
    let datagram = update.is_rumour();
    match *update {
        Gossip::Placed(update) if update.form != PlacementForm::Withdrawn => {
            update.nodes().for_each(|node| {
                fx.note(CacheNote::Numbered { node, number: update.number, datagram });
            });
        }
        Gossip::Ended(EndUpdate { node, number, .. })
        | Gossip::EndedRumour(EndUpdate { node, number, .. }) => {
            fx.note(CacheNote::Numbered { node, number, datagram });
        }
        // Withdrawals are noted where they take effect; other messages are not updates.
        _ => {}
    }
}

/// All schedulers except this one.
pub(super) fn others(fx: &Effects<'_>) -> impl Iterator<Item = ActorId> + use<> {
    let (me, first, count) = (fx.me(), fx.layout().scheduler(0), fx.layout().schedulers());
    (0..count).map(move |i| ActorId(first.0 + i)).filter(move |&other| other != me)
}

// The window of already applied update numbers, per origin.

/// Next number of an origin that has sent no update yet. The window of such an origin starts at the first update that
/// arrives.
const UNKNOWN: u32 = u32::MAX;

/// Number of buffered datagram updates of an origin from which on missing updates count as lost.
const GAP: u32 = 256;

/// The epoch (number of restarts) of the origin of a number.
const fn epoch_of(number: u32) -> u32 {
    number >> 24
}

/// Applied updates by origin: schedulers first, then nodes.
#[derive(Clone, Debug)]
pub(super) struct SeenWindow {
    /// Number of the first missing update of each origin's current epoch.
    next: Vec<u32>,
    /// Number of the first missing update of each earlier epoch: origin and number.
    past: Vec<(u32, u32)>,
    /// Updates applied out of order, by origin and number.
    early: BTreeMap<(u32, u32), Gossip>,
    /// Length of `early` per origin. Counting `early` on each update would dominate the cost.
    waiting: Vec<u32>,
    /// Whether a missing update may be lost for good; on a stream a missing update still arrives.
    rumours: bool,
}

impl SeenWindow {
    /// An empty window for origins in their first epoch.
    pub(super) fn new(origins: u32, rumours: bool) -> Self {
        let none = vec![0; origins as usize];
        Self { next: none.clone(), past: Vec::new(), early: BTreeMap::new(), waiting: none, rumours }
    }

    /// Marks an update as applied; returns whether it was new.
    pub(super) fn insert(&mut self, origin: u32, number: u32, update: Gossip) -> bool {
        let next = self.next[origin as usize];
        if next == UNKNOWN {
            self.next[origin as usize] = number.saturating_add(1);
            return true;
        }
        if epoch_of(number) < epoch_of(next) {
            return self.insert_of_earlier_epoch(origin, number);
        }
        if epoch_of(number) > epoch_of(next) {
            self.retire_epoch(origin, number);
        }
        let next = self.next[origin as usize];
        if number < next || self.early.contains_key(&(origin, number)) {
            return false;
        }
        if number == next {
            self.close(origin, number.saturating_add(1));
        } else {
            self.early.insert((origin, number), update);
            self.waiting[origin as usize] += 1;
            if self.rumours
                && self.waiting[origin as usize] > GAP
                && let Some((&(_, first), _)) = self.early.range((origin, 0)..).next()
            {
                self.close(origin, first);
            }
        }
        true
    }

    /// Marks all updates of an origin below a number as applied, because the origin's report contains them. Returns
    /// `false` if a newer update was applied, which the report would undo.
    pub(super) fn catch_up(&mut self, origin: u32, number: u32) -> bool {
        let next = self.next[origin as usize];
        if next == UNKNOWN {
            self.next[origin as usize] = number;
            return true;
        }
        if epoch_of(number) > epoch_of(next) {
            self.retire_epoch(origin, number);
        }
        let newer = self.early.range((origin, number)..(origin + 1, 0)).next().is_some();
        if newer || self.next[origin as usize] > number {
            return false;
        }
        self.drop_early(origin);
        self.next[origin as usize] = number;
        true
    }

    /// Drops the out-of-order updates of an origin.
    fn drop_early(&mut self, origin: u32) {
        for _ in 0..std::mem::take(&mut self.waiting[origin as usize]) {
            if let Some((&first, _)) = self.early.range((origin, 0)..).next() {
                self.early.remove(&first);
            }
        }
    }

    /// Advances an origin to a number, and beyond all updates that follow this number without a gap.
    fn close(&mut self, origin: u32, mut next: u32) {
        while self.early.remove(&(origin, next)).is_some() {
            self.waiting[origin as usize] -= 1;
            next = next.saturating_add(1);
        }
        self.next[origin as usize] = next;
    }

    /// Handles the restart of an origin: an update of its earlier epoch then counts as new only if it is newer than all
    /// applied ones.
    fn retire_epoch(&mut self, origin: u32, number: u32) {
        let last = self
            .early
            .range((origin, 0)..(origin + 1, 0))
            .next_back()
            .map(|(&(_, last), _)| last.saturating_add(1));
        self.past.push((origin, last.unwrap_or(0).max(self.next[origin as usize])));
        self.drop_early(origin);
        self.next[origin as usize] = number >> 24 << 24;
    }

    /// Marks an update of an earlier epoch of its origin as applied. Returns whether the update was new.
    fn insert_of_earlier_epoch(&mut self, origin: u32, number: u32) -> bool {
        let same = |&&mut (of, next): &&mut (u32, u32)| of == origin && epoch_of(next) == epoch_of(number);
        match self.past.iter_mut().find(same) {
            Some((_, next)) if number < *next => false,
            Some((_, next)) => {
                *next = number.saturating_add(1);
                true
            }
            None => {
                self.past.push((origin, number.saturating_add(1)));
                true
            }
        }
    }

    /// For each origin, the number of the first update that a copy of the cache does not contain.
    pub(super) fn contained(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let present = self.next.iter().enumerate().map(|(origin, &next)| (origin as u32, next));
        self.past.iter().copied().chain(present)
    }

    /// Applied updates beyond those of [`contained`](Self::contained).
    pub(super) fn early(&self) -> impl Iterator<Item = &Gossip> {
        self.early.values()
    }

    /// Adopts the window of another scheduler.
    pub(super) fn adopt(&mut self, contained: &[(u32, u32)]) {
        self.forget();
        for &(origin, number) in contained {
            let next = self.next[origin as usize];
            if next == UNKNOWN || number == UNKNOWN || epoch_of(next) < epoch_of(number) {
                if next != UNKNOWN {
                    self.past.push((origin, next));
                }
                self.next[origin as usize] = number;
            } else {
                self.past.push((origin, number));
            }
        }
    }

    /// Resets all origins to unknown.
    pub(super) fn forget(&mut self) {
        self.next.fill(UNKNOWN);
        self.past.clear();
        self.early.clear();
        self.waiting.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATE: Gossip = Gossip::Ask { round: 0 };

    fn receive(seen: &mut SeenWindow, numbers: &[u32]) -> Vec<bool> {
        numbers.iter().map(|&number| seen.insert(1, number, UPDATE)).collect()
    }

    #[test]
    fn an_update_counts_once_in_any_order() {
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(receive(&mut seen, &[2, 0, 2, 1, 0, 3]), [true, true, false, true, false, true]);
        assert_eq!(seen.early().count(), 0);
        assert_eq!(seen.contained().collect::<Vec<_>>(), [(0, 0), (1, 4)]);
    }

    #[test]
    fn a_copy_contains_the_updates_that_its_owner_had_received() {
        let mut owner = SeenWindow::new(2, true);
        receive(&mut owner, &[0, 1, 3]);
        assert_eq!(owner.early().count(), 1, "the copy does not contain update 3");
        let contained: Vec<_> = owner.contained().collect();
        let mut seen = SeenWindow::new(2, true);
        seen.adopt(&contained);
        assert_eq!(receive(&mut seen, &[1, 3, 2, 4]), [false, true, true, true]);
    }

    #[test]
    fn a_restarted_origin_begins_a_new_epoch() {
        let (first, second) = (5, 1 << 24);
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(
            receive(&mut seen, &[0, 1, second + 1, second, 1, first]),
            [true, true, true, true, false, true]
        );
        let contained: Vec<_> = seen.contained().collect();
        let mut other = SeenWindow::new(2, true);
        other.adopt(&contained);
        assert_eq!(receive(&mut other, &[first, second + 1, second + 2]), [false, false, true]);
    }

    /// A missing datagram counts as lost after a bounded number of later updates.
    #[test]
    fn an_update_missing_for_long_counts_as_lost() {
        let mut seen = SeenWindow::new(2, true);
        for number in 1..1000 {
            assert!(seen.insert(1, number, UPDATE));
            let waiting = seen.early().count() as u32;
            assert!(waiting <= GAP && waiting == seen.waiting[1]);
        }
        assert_eq!(receive(&mut seen, &[0, 700]), [false, false]);
        let mut seen = SeenWindow::new(2, false);
        assert!((1..1000).all(|number| seen.insert(1, number, UPDATE)));
        assert_eq!(
            receive(&mut seen, &[700, 0, 0]),
            [false, true, false],
            "a stream still delivers missing updates"
        );
        assert_eq!((seen.early().count(), seen.waiting[1]), (0, 0));
    }

    #[test]
    fn a_report_marks_all_updates_that_it_contains_as_applied() {
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(receive(&mut seen, &[0, 2]), [true, true]);
        assert!(!seen.catch_up(1, 1) && !seen.catch_up(1, 2), "update 2 is newer than the report");
        assert!(seen.catch_up(1, 4));
        assert_eq!(receive(&mut seen, &[1, 3, 4]), [false, false, true]);
        assert!(seen.catch_up(1, 1 << 24), "the report is of a new epoch");
        assert_eq!((seen.early().count(), seen.waiting[1]), (0, 0));
        assert_eq!(receive(&mut seen, &[5, 1 << 24]), [true, true]);
        assert!(!seen.catch_up(1, 6));
    }

    #[test]
    fn an_unknown_origin_starts_at_its_first_update() {
        let mut seen = SeenWindow::new(2, true);
        seen.forget();
        assert_eq!(receive(&mut seen, &[7, 7, 8]), [true, false, true]);
    }
}
