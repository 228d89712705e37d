//! The numbers of updates that a scheduler has applied, per origin.
//!
//! The paper assumes that every update arrives, once. Here an update can arrive twice, or be contained in a report or
//! in a copied cache, and is then ignored. Updates may arrive in any order, and some are lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::Gossip;

/// Next number of an origin of which the cache contains no update. The window of such an origin starts at the first
/// update that arrives; updates that it has overtaken are applied too.
const UNKNOWN: u32 = u32::MAX;

/// Number of updates buffered after a missing datagram above which the missing update is given up as lost.
const GAP: usize = 256;

/// The first number of an epoch (number of restarts) of an origin.
pub(super) const fn first_of(epoch: u32) -> u32 {
    epoch << 24
}

/// The epoch of a number.
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
    /// The number at which the window of an unknown origin started, and the updates before it that have arrived since.
    overtaken: BTreeMap<u32, (u32, BTreeSet<u32>)>,
    /// Updates applied out of order, by origin and number; no entry is empty.
    early: BTreeMap<u32, BTreeMap<u32, Gossip>>,
    /// Whether a missing update may be lost for good; on a stream a missing update still arrives.
    datagrams: bool,
}

impl SeenWindow {
    /// An empty window for origins in their first epoch.
    pub(super) fn new(origins: u32, datagrams: bool) -> Self {
        Self {
            next: vec![0; origins as usize],
            past: Vec::new(),
            overtaken: BTreeMap::new(),
            early: BTreeMap::new(),
            datagrams,
        }
    }

    /// Marks an update as applied; returns whether it was new.
    pub(super) fn insert(&mut self, origin: u32, number: u32, update: Gossip) -> bool {
        let next = self.next[origin as usize];
        if next != UNKNOWN && epoch_of(number) < epoch_of(next) {
            return self.insert_of_earlier_epoch(origin, number);
        }
        self.enter_epoch(origin, number);
        let next = &mut self.next[origin as usize];
        if *next == UNKNOWN {
            self.overtaken.insert(origin, (number, BTreeSet::new()));
        }
        if number == *next || *next == UNKNOWN {
            *next = number.saturating_add(1);
        } else if number < *next {
            let overtaken = self.overtaken.get_mut(&origin);
            return overtaken.is_some_and(|(first, seen)| number < *first && seen.insert(number));
        } else {
            let early = self.early.entry(origin).or_default();
            if early.insert(number, update).is_some() {
                return false;
            }
            match early.first_key_value() {
                Some((&first, _)) if self.datagrams && early.len() > GAP => *next = first,
                _ => return true,
            }
        }
        self.close(origin);
        true
    }

    /// Marks all updates of an origin below a number as applied, because the origin's report contains them. Returns
    /// `false` if a newer update was applied, which the report would undo.
    pub(super) fn catch_up(&mut self, origin: u32, number: u32) -> bool {
        self.enter_epoch(origin, number);
        let next = &mut self.next[origin as usize];
        let early = self.early.get(&origin).and_then(|early| early.last_key_value());
        if *next != UNKNOWN && (*next > number || early.is_some_and(|(&last, _)| last >= number)) {
            return false;
        }
        *next = number;
        self.early.remove(&origin);
        self.overtaken.remove(&origin);
        true
    }

    /// Advances an origin beyond all updates that were applied early and now follow without a gap.
    fn close(&mut self, origin: u32) {
        let Some(early) = self.early.get_mut(&origin) else { return };
        let next = &mut self.next[origin as usize];
        while early.remove(next).is_some() {
            *next = next.saturating_add(1);
        }
        if early.is_empty() {
            self.early.remove(&origin);
        }
    }

    /// Handles the restart of an origin. An update of its earlier epoch is then treated as new only if it is newer
    /// than all applied ones.
    fn enter_epoch(&mut self, origin: u32, number: u32) {
        let next = &mut self.next[origin as usize];
        if epoch_of(number) > epoch_of(*next) {
            let early = self.early.remove(&origin);
            let last = early.and_then(|early| early.last_key_value().map(|(last, _)| last.saturating_add(1)));
            self.past.push((origin, last.unwrap_or(0).max(*next)));
            *next = first_of(epoch_of(number));
        }
    }

    /// Marks an update of an earlier epoch of its origin as applied. Returns whether the update was new.
    fn insert_of_earlier_epoch(&mut self, origin: u32, number: u32) -> bool {
        let same = |&&mut (of, next): &&mut (u32, u32)| of == origin && epoch_of(next) == epoch_of(number);
        let beyond = number.saturating_add(1);
        match self.past.iter_mut().find(same) {
            Some((_, next)) => std::mem::replace(next, beyond.max(*next)) < beyond,
            None => {
                self.past.push((origin, beyond));
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
        self.early.values().flat_map(BTreeMap::values)
    }

    /// Marks all updates of an origin below a number as applied, because a copied cache contains them. Before the first
    /// call all origins must be [unknown](Self::forget).
    pub(super) fn adopt(&mut self, origin: u32, number: u32) {
        let next = &mut self.next[origin as usize];
        let newer = *next == UNKNOWN || epoch_of(*next) < epoch_of(number);
        let past = if newer { std::mem::replace(next, number) } else { number };
        self.past.extend((past != UNKNOWN).then_some((origin, past)));
    }

    /// Resets all origins to unknown.
    pub(super) fn forget(&mut self) {
        self.next.fill(UNKNOWN);
        self.past.clear();
        self.overtaken.clear();
        self.early.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATE: Gossip = Gossip::Ask { epoch: 0 };

    fn receive(seen: &mut SeenWindow, numbers: &[u32]) -> Vec<bool> {
        numbers.iter().map(|&number| seen.insert(1, number, UPDATE)).collect()
    }

    #[test]
    fn an_update_is_applied_once_in_any_order() {
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(receive(&mut seen, &[2, 0, 2, 1, 0, 3]), [true, true, false, true, false, true]);
        assert!(seen.early.is_empty());
        assert_eq!(seen.contained().collect::<Vec<_>>(), [(0, 0), (1, 4)]);
    }

    #[test]
    fn a_copy_contains_the_updates_that_its_owner_had_received() {
        let mut owner = SeenWindow::new(2, true);
        receive(&mut owner, &[0, 1, 3]);
        assert_eq!(owner.early().count(), 1, "the copy does not contain update 3");
        let contained: Vec<_> = owner.contained().collect();
        let mut seen = SeenWindow::new(2, true);
        seen.forget();
        contained.into_iter().for_each(|(origin, number)| seen.adopt(origin, number));
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
        other.forget();
        contained.into_iter().for_each(|(origin, number)| other.adopt(origin, number));
        assert_eq!(receive(&mut other, &[first, second + 1, second + 2]), [false, false, true]);
    }

    /// A missing datagram is given up as lost after a bounded number of later updates.
    #[test]
    fn an_update_missing_for_many_later_updates_is_given_up_as_lost() {
        let mut seen = SeenWindow::new(2, true);
        for number in 1..1000 {
            assert!(seen.insert(1, number, UPDATE));
            assert!(seen.early().count() <= GAP);
        }
        assert_eq!(receive(&mut seen, &[0, 700]), [false, false]);
        let mut seen = SeenWindow::new(2, false);
        assert!((1..1000).all(|number| seen.insert(1, number, UPDATE)));
        assert_eq!(
            receive(&mut seen, &[700, 0, 0]),
            [false, true, false],
            "a stream still delivers missing updates"
        );
        assert!(seen.early.is_empty());
    }

    #[test]
    fn a_report_marks_all_updates_that_it_contains_as_applied() {
        let mut seen = SeenWindow::new(2, true);
        assert_eq!(receive(&mut seen, &[0, 2]), [true, true]);
        assert!(!seen.catch_up(1, 1) && !seen.catch_up(1, 2), "update 2 is newer than the report");
        assert!(seen.catch_up(1, 4));
        assert_eq!(receive(&mut seen, &[1, 3, 4]), [false, false, true]);
        assert!(seen.catch_up(1, 1 << 24), "the report is of a new epoch");
        assert!(seen.early.is_empty());
        assert_eq!(receive(&mut seen, &[5, 1 << 24]), [true, true]);
        assert!(!seen.catch_up(1, 6));
    }

    #[test]
    fn an_unknown_origin_starts_at_its_first_update() {
        let mut seen = SeenWindow::new(2, true);
        seen.forget();
        assert_eq!(receive(&mut seen, &[7, 7, 8]), [true, false, true]);
        assert_eq!(
            receive(&mut seen, &[5, 6, 5, 7]),
            [true, true, false, false],
            "7 has overtaken two updates"
        );
        assert!(seen.catch_up(1, 9));
        assert_eq!(receive(&mut seen, &[4]), [false], "the report contains it");
    }
}
