//! Which news was heard before.

use std::collections::BTreeMap;

use crate::message::Gossip;

/// A maker of whom nothing is known yet: its first news to arrive counts as its first.
const UNKNOWN: u32 = u32::MAX;

/// How many of a maker's rumours may be waited around before what is missing counts as lost.
const GAP: u32 = 256;

/// How often the maker of a number was restarted.
const fn epoch_of(number: u32) -> u32 {
    number >> 24
}

/// News heard, by maker: schedulers first, then nodes.
#[derive(Debug)]
pub(super) struct SeenWindow {
    /// Number of the first news of each maker's present life that was not seen.
    next: Vec<u32>,
    /// The same of earlier lives: maker and number.
    past: Vec<(u32, u32)>,
    /// SeenWindow before something that was made earlier, by maker and number.
    early: BTreeMap<(u32, u32), Gossip>,
    /// How many of them each maker made: counted anew at each news they would cost more than all else.
    waiting: Vec<u32>,
    /// Whether what is missing can be lost for good; a stream brings it, however late.
    rumours: bool,
}

impl SeenWindow {
    /// Nothing of so many makers, whose lives are their first.
    pub(super) fn new(makers: u32, rumours: bool) -> Self {
        let none = vec![0; makers as usize];
        Self { next: none.clone(), past: Vec::new(), early: BTreeMap::new(), waiting: none, rumours }
    }

    /// Whether news is heard for the first time; it counts as heard from now on.
    pub(super) fn insert(&mut self, maker: u32, number: u32, news: Gossip) -> bool {
        let next = self.next[maker as usize];
        if next == UNKNOWN {
            self.next[maker as usize] = number.saturating_add(1);
            return true;
        }
        if epoch_of(number) < epoch_of(next) {
            return self.of_the_past(maker, number);
        }
        if epoch_of(number) > epoch_of(next) {
            self.retire_epoch(maker, number);
        }
        let next = self.next[maker as usize];
        if number < next || self.early.contains_key(&(maker, number)) {
            return false;
        }
        if number == next {
            self.close(maker, number.saturating_add(1));
        } else {
            self.early.insert((maker, number), news);
            self.waiting[maker as usize] += 1;
            if self.rumours
                && self.waiting[maker as usize] > GAP
                && let Some((&(_, first), _)) = self.early.range((maker, 0)..).next()
            {
                self.close(maker, first);
            }
        }
        true
    }

    /// All news of a maker below a number is known from the maker's own sum; `false` if newer news was heard, which
    /// the sum would undo.
    pub(super) fn catch_up(&mut self, maker: u32, number: u32) -> bool {
        let next = self.next[maker as usize];
        if next == UNKNOWN {
            self.next[maker as usize] = number;
            return true;
        }
        if epoch_of(number) > epoch_of(next) {
            self.retire_epoch(maker, number);
        }
        let newer = self.early.range((maker, number)..(maker + 1, 0)).next().is_some();
        if newer || self.next[maker as usize] > number {
            return false;
        }
        self.drop_early(maker);
        self.next[maker as usize] = number;
        true
    }

    /// MinWaitIndex around nothing of a maker any longer.
    fn drop_early(&mut self, maker: u32) {
        for _ in 0..std::mem::take(&mut self.waiting[maker as usize]) {
            if let Some((&first, _)) = self.early.range((maker, 0)..).next() {
                self.early.remove(&first);
            }
        }
    }

    /// Everything below a number was heard, and whatever was early right after it.
    fn close(&mut self, maker: u32, mut next: u32) {
        while self.early.remove(&(maker, next)).is_some() {
            self.waiting[maker as usize] -= 1;
            next = next.saturating_add(1);
        }
        self.next[maker as usize] = next;
    }

    /// A maker was restarted: of its life before, news is new only if it is younger than all that was seen.
    fn retire_epoch(&mut self, maker: u32, number: u32) {
        let last = self
            .early
            .range((maker, 0)..(maker + 1, 0))
            .next_back()
            .map(|(&(_, last), _)| last.saturating_add(1));
        self.past.push((maker, last.unwrap_or(0).max(self.next[maker as usize])));
        self.drop_early(maker);
        self.next[maker as usize] = number >> 24 << 24;
    }

    fn of_the_past(&mut self, maker: u32, number: u32) -> bool {
        let same = |&&mut (of, next): &&mut (u32, u32)| of == maker && epoch_of(next) == epoch_of(number);
        match self.past.iter_mut().find(same) {
            Some((_, next)) if number < *next => false,
            Some((_, next)) => {
                *next = number.saturating_add(1);
                true
            }
            None => {
                self.past.push((maker, number.saturating_add(1)));
                true
            }
        }
    }

    /// Makers with the number of the first news of them that is not contained in a copy.
    pub(super) fn contained(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let present = self.next.iter().enumerate().map(|(maker, &next)| (maker as u32, next));
        self.past.iter().copied().chain(present)
    }

    /// News that was heard but is newer than what [`contained`](Self::contained) says.
    pub(super) fn early(&self) -> impl Iterator<Item = &Gossip> {
        self.early.values()
    }

    /// Takes over what another had seen.
    pub(super) fn adopt(&mut self, contained: &[(u32, u32)]) {
        self.forget();
        for &(maker, number) in contained {
            let next = self.next[maker as usize];
            if next == UNKNOWN || number == UNKNOWN || epoch_of(next) < epoch_of(number) {
                if next != UNKNOWN {
                    self.past.push((maker, next));
                }
                self.next[maker as usize] = number;
            } else {
                self.past.push((maker, number));
            }
        }
    }

    /// Nothing is known of anybody.
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

    const NEWS: Gossip = Gossip::Ask { round: 0 };

    fn receive(seen: &mut SeenWindow, numbers: &[u32]) -> Vec<bool> {
        numbers.iter().map(|&number| seen.insert(1, number, NEWS)).collect()
    }

    #[test]
    fn news_counts_once_in_any_order() {
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(receive(&mut seen, &[2, 0, 2, 1, 0, 3]), [true, true, false, true, false, true]);
        assert_eq!(seen.early().count(), 0);
        assert_eq!(seen.contained().collect::<Vec<_>>(), [(0, 0), (1, 4)]);
    }

    #[test]
    fn a_copy_contains_what_its_owner_had_heard() {
        let mut owner = SeenWindow::new(2, true);
        receive(&mut owner, &[0, 1, 3]);
        assert_eq!(owner.early().count(), 1, "3 is not in the copy; its owner takes it out");
        let contained: Vec<_> = owner.contained().collect();
        let mut seen = SeenWindow::new(2, true);
        seen.adopt(&contained);
        assert_eq!(receive(&mut seen, &[1, 3, 2, 4]), [false, true, true, true]);
    }

    #[test]
    fn a_restarted_maker_begins_anew() {
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

    /// Of those who lose datagrams nobody waits for ever.
    #[test]
    fn what_is_missing_for_long_counts_as_lost() {
        let mut seen = SeenWindow::new(2, true);
        for number in 1..1000 {
            assert!(seen.insert(1, number, NEWS));
            let waiting = seen.early().count() as u32;
            assert!(waiting <= GAP && waiting == seen.waiting[1]);
        }
        assert_eq!(receive(&mut seen, &[0, 700]), [false, false]);
        let mut seen = SeenWindow::new(2, false);
        assert!((1..1000).all(|number| seen.insert(1, number, NEWS)));
        assert_eq!(receive(&mut seen, &[700, 0, 0]), [false, true, false], "a stream brings it all the same");
        assert_eq!((seen.early().count(), seen.waiting[1]), (0, 0));
    }

    #[test]
    fn a_sum_stands_for_all_that_is_in_it() {
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(receive(&mut seen, &[0, 2]), [true, true]);
        assert!(!seen.catch_up(1, 1) && !seen.catch_up(1, 2), "2 is newer");
        assert!(seen.catch_up(1, 4));
        assert_eq!(receive(&mut seen, &[1, 3, 4]), [false, false, true]);
        assert!(seen.catch_up(1, 1 << 24), "of a new life");
        assert_eq!((seen.early().count(), seen.waiting[1]), (0, 0));
        assert_eq!(receive(&mut seen, &[5, 1 << 24]), [true, true]);
        assert!(!seen.catch_up(1, 6));
    }

    #[test]
    fn of_a_stranger_the_first_news_is_the_first() {
        let mut seen = SeenWindow::new(2, true);
        seen.forget();
        assert_eq!(receive(&mut seen, &[7, 7, 8]), [true, false, true]);
    }
}
