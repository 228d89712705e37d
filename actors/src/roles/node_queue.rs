//! The queue of a node and its order.

use std::collections::VecDeque;

use crate::base::{Span, Time};

/// The order of a queue.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum QueueOrder {
    /// First in, first out.
    #[default]
    Fifo,
    /// The least rank first. The entries that overtake an entry may have at most `bypass` times its estimate in all;
    /// an entry that would exceed this limit for any entry ahead waits. (Shortest remaining time in the authors'
    /// simulators of Eagle, Yaq-d and Murmuration, where `bypass` is 5.) An entry without a rank overtakes nothing,
    /// and is served at the head.
    Least {
        /// Maximum sum of the estimates of entries that overtake an entry, as a multiple of the entry's own estimate.
        bypass: f64,
    },
}

/// The position of an entry in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rank {
    /// Sort key: the least comes first, and among equals the earlier entry; `None` is served in order of arrival.
    pub key: Option<(Span, Time)>,
    /// The time by which the entry delays entries that it overtakes.
    pub estimate: Span,
}

impl Rank {
    /// The rank of entries in queues without ranks.
    pub const FIFO: Self = Self { key: None, estimate: Span::ZERO };
}

/// The key of an entry without a rank, which sorts after all others.
const IN_TURN: (Span, Time) = (Span::MAX, Time::MAX);

/// The sort data of an entry. They fill half a cache line, because the choice of the next entry reads the data of the
/// whole queue.
#[derive(Clone, Copy, Debug)]
struct RankedEntry {
    key: (Span, Time),
    estimate: Span,
    /// Sum of the estimates of entries that may still overtake this entry.
    slack: Span,
}

const _: () = assert!(size_of::<RankedEntry>() == 32, "two entries share a cache line");

#[derive(Clone, Debug)]
struct Ranked {
    bypass: f64,
    waiting: VecDeque<RankedEntry>,
    /// Lower bound of the estimates of waiting entries.
    shortest: Span,
    /// Lower bound of the keys of waiting entries.
    least: (Span, Time),
}

impl Ranked {
    fn new(bypass: f64) -> Self {
        Self { bypass, waiting: VecDeque::new(), shortest: Span::MAX, least: IN_TURN }
    }

    fn entry(&mut self, Rank { key, estimate }: Rank) -> RankedEntry {
        if self.waiting.is_empty() {
            (self.shortest, self.least) = (Span::MAX, IN_TURN);
        }
        let key = key.unwrap_or(IN_TURN);
        self.shortest = self.shortest.min(estimate);
        self.least = self.least.min(key);
        // The product would be NaN for an estimate of zero.
        let slack = if self.bypass.is_infinite() { Span::MAX } else { estimate.scale(self.bypass) };
        RankedEntry { key, estimate, slack }
    }

    /// Reduces the slack of the first `ahead` entries by `passing`, the estimate of the entry that overtakes them.
    fn overtake(&mut self, ahead: usize, passing: Span) {
        self.waiting.iter_mut().take(ahead).for_each(|w| w.slack = w.slack.saturating_sub(passing));
    }

    fn next(&mut self) -> usize {
        let Some(&head) = self.waiting.front() else { return 0 };
        if head.key == IN_TURN || head.key == self.least {
            return 0;
        }
        let (mut next, mut key, mut slack) = (0, head.key, head.slack);
        let (mut shortest, mut least) = (head.estimate, head.key);
        for (at, waiting) in self.waiting.iter().enumerate().skip(1) {
            if slack < self.shortest {
                return next; // nothing behind can overtake
            }
            if waiting.key < key && waiting.estimate <= slack {
                (next, key) = (at, waiting.key);
                if key == self.least {
                    return next;
                }
            }
            slack = slack.min(waiting.slack);
            shortest = shortest.min(waiting.estimate);
            least = least.min(waiting.key);
        }
        // All entries were read, so the bounds are exact again.
        (self.shortest, self.least) = (shortest, least);
        next
    }
}

/// The position of an entry that left the queue and may return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the entry, in order of arrival.
    number: u64,
    estimate: Span,
    /// Sum of the estimates of entries that may still overtake the entry.
    slack: Span,
}

/// A queue in any [`QueueOrder`].
#[derive(Clone, Debug)]
pub struct NodeQueue<E> {
    /// Entries with their numbers, in ascending order.
    entries: VecDeque<(u64, E)>,
    /// Ranks of the `entries`, in the same order; absent where entries are served in order of arrival.
    ranked: Option<Box<Ranked>>,
    /// The number of the next entry.
    number: u64,
}

impl<E> NodeQueue<E> {
    /// An empty queue.
    pub fn new(order: QueueOrder) -> Self {
        let ranked = match order {
            QueueOrder::Fifo => None,
            QueueOrder::Least { bypass } => Some(Box::new(Ranked::new(bypass))),
        };
        Self { entries: VecDeque::new(), ranked, number: 0 }
    }

    /// Whether entries have ranks.
    pub const fn is_ranked(&self) -> bool {
        self.ranked.is_some()
    }

    /// The number of waiting entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// The entries in order of arrival, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut E> {
        self.entries.iter_mut().map(|(_, entry)| entry)
    }

    /// Adds an entry at the tail.
    pub fn push(&mut self, entry: E, rank: Rank) {
        self.entries.push_back((self.number, entry));
        self.number += 1;
        if let Some(ranked) = &mut self.ranked {
            let entry = ranked.entry(rank);
            ranked.waiting.push_back(entry);
        }
    }

    /// The place of an entry that is served at its arrival, when nothing waits: as if it were pushed and removed.
    pub fn pass(&mut self, rank: Rank) -> Place {
        debug_assert!(self.is_empty());
        let ranked = self.ranked.as_mut().map(|ranked| ranked.entry(rank));
        let (estimate, slack) = ranked.map_or((Span::ZERO, Span::ZERO), |r| (r.estimate, r.slack));
        self.number += 1;
        Place { number: self.number - 1, estimate, slack }
    }

    /// The place of the entry at an index.
    pub fn place(&self, at: usize) -> Option<Place> {
        let &(number, _) = self.entries.get(at)?;
        let ranked = self.ranked.as_ref().map(|ranked| ranked.waiting[at]);
        let (estimate, slack) = ranked.map_or((Span::ZERO, Span::ZERO), |r| (r.estimate, r.slack));
        Some(Place { number, estimate, slack })
    }

    /// The index of the entry with a place, if the entry is in the queue.
    pub fn find(&self, place: Place) -> Option<usize> {
        self.entries.binary_search_by_key(&place.number, |&(number, _)| number).ok()
    }

    /// Puts an entry that left the queue back into its place, with the slack that it had when it left.
    pub fn put_back(&mut self, entry: E, place: Place, rank: Rank) {
        let at = self.ahead(place);
        self.entries.insert(at, (place.number, entry));
        if let Some(ranked) = &mut self.ranked {
            let entry = RankedEntry { slack: place.slack, ..ranked.entry(rank) };
            ranked.waiting.insert(at, entry);
        }
    }

    /// The number of entries ahead of a place.
    fn ahead(&self, place: Place) -> usize {
        self.entries.partition_point(|&(number, _)| number < place.number)
    }

    /// Recomputes the keys of all entries with `key`.
    pub fn rerank(&mut self, key: impl Fn(&E) -> Option<(Span, Time)>) {
        if let Some(ranked) = &mut self.ranked {
            ranked.least = IN_TURN;
            for (waiting, entry) in ranked.waiting.iter_mut().zip(&self.entries) {
                waiting.key = key(&entry.1).unwrap_or(IN_TURN);
                ranked.least = ranked.least.min(waiting.key);
            }
        }
    }

    /// The next entry to be served, and its index. The entries ahead are charged only when it is served.
    pub fn first(&mut self) -> Option<(usize, &mut E)> {
        let at = self.ranked.as_mut().map_or(0, |ranked| ranked.next());
        self.entries.get_mut(at).map(|(_, entry)| (at, entry))
    }

    /// Charges the entries ahead of a place for the entry that was served from it.
    pub fn overtake(&mut self, place: Place) {
        let ahead = self.ahead(place);
        if let Some(ranked) = &mut self.ranked {
            ranked.overtake(ahead, place.estimate);
        }
    }

    /// Serves the entry at an index: removes it, and charges the entries that it overtakes.
    pub fn serve_at(&mut self, at: usize) -> Option<E> {
        if let Some(ranked) = &mut self.ranked
            && at > 0
            && let Some(&RankedEntry { estimate, .. }) = ranked.waiting.get(at)
        {
            ranked.overtake(at, estimate);
        }
        self.remove(at)
    }

    /// Serves the next entry in the queue's order.
    pub fn serve(&mut self) -> Option<E> {
        let (at, _) = self.first()?;
        self.serve_at(at)
    }

    /// Removes the entry at an index.
    pub fn remove(&mut self, at: usize) -> Option<E> {
        if let Some(ranked) = &mut self.ranked {
            ranked.waiting.remove(at);
        }
        self.entries.remove(at).map(|(_, entry)| entry)
    }

    /// Keeps only the entries for which `keep` returns true.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut E) -> bool) {
        if self.ranked.is_none() {
            return self.entries.retain_mut(|(_, entry)| keep(entry));
        }
        let mut at = 0;
        while at < self.entries.len() {
            if keep(&mut self.entries[at].1) {
                at += 1;
            } else {
                let _ = self.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rank(key: Option<u64>, estimate: u64) -> Rank {
        Rank { key: key.map(|key| (Span::from_secs(key), Time::ZERO)), estimate: Span::from_secs(estimate) }
    }

    fn drain(queue: &mut NodeQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.serve()).collect()
    }

    #[test]
    fn the_least_rank_comes_first_and_equal_ranks_keep_their_order() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 5.0 });
        for (entry, key) in [(0, 30), (1, 10), (2, 20), (3, 10)] {
            queue.push(entry, rank(Some(key), 10));
        }
        assert_eq!(drain(&mut queue), [1, 3, 2, 0]);
    }

    /// With a bypass of five, an entry of one second can be overtaken by five seconds of work, not by six.
    #[test]
    fn an_entry_is_not_overtaken_by_more_than_its_bypass() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 5.0 });
        queue.push(0, rank(Some(100), 1));
        for entry in 1..7 {
            queue.push(entry, rank(Some(1), 1));
        }
        assert_eq!(drain(&mut queue), [1, 2, 3, 4, 5, 0, 6]);
    }

    /// An entry without slack is not served before the entries ahead of it. Entries shorter than those that it stops
    /// may still overtake.
    #[test]
    fn an_entry_without_slack_stops_only_entries_behind_it() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 1.0 });
        for (entry, key, estimate) in [(0, 50, 10), (1, 100, 2), (2, 1, 9), (3, 2, 1), (4, 3, 2)] {
            queue.push(entry, rank(Some(key), estimate));
        }
        assert_eq!(drain(&mut queue), [3, 0, 1, 2, 4]);
    }

    /// An entry of the plain queue: number, key, estimate and slack.
    type PlainEntry = (u32, Option<u64>, u64, u64);

    /// The next entry by a scan of the whole queue: the head, or the least key that may overtake all entries before it.
    fn plainly(waiting: &[PlainEntry]) -> usize {
        let Some(&(_, Some(head), _, mut slack)) = waiting.first() else { return 0 };
        let (mut next, mut least) = (0, head);
        for (at, &(_, key, estimate, own)) in waiting.iter().enumerate().skip(1) {
            if let Some(key) = key.filter(|&key| key < least && estimate <= slack) {
                (next, least) = (at, key);
            }
            slack = slack.min(own);
        }
        next
    }

    proptest! {
        /// A queue that reads only as many entries as it needs serves the same entries in the same order as a full
        /// scan.
        #[test]
        fn a_partial_scan_serves_entries_in_the_order_of_a_full_scan(
            steps in prop::collection::vec((0u8..8, prop::option::of(0u64..6), 1u64..6, 0usize..8), 1..200)
        ) {
            let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 2.0 });
            let mut model: Vec<PlainEntry> = Vec::new();
            let mut out: Vec<(PlainEntry, Place)> = Vec::new();
            for (number, (step, key, estimate, at)) in (0..).zip(steps) {
                let entry = (number, key, estimate, 2 * estimate);
                match step {
                    0..3 => {
                        queue.push(number, rank(key, estimate));
                        model.push(entry);
                    }
                    3 => {
                        if let Some((entry, place)) = out.pop() {
                            let at = model.partition_point(|waiting| waiting.0 < entry.0);
                            queue.put_back(entry.0, place, rank(entry.1, entry.2));
                            model.insert(at, entry);
                        } else if let Some(place) = queue.place(at) {
                            queue.remove(at);
                            out.push((model.remove(at), place));
                        }
                    }
                    4 if at < model.len() => prop_assert_eq!(queue.remove(at), Some(model.remove(at).0)),
                    5 if at == 0 => {
                        let key_of = |entry: u32| u64::from(entry) * 7 % 5;
                        queue.rerank(|&entry| Some((Span::from_secs(key_of(entry)), Time::ZERO)));
                        model.iter_mut().for_each(|waiting| waiting.1 = Some(key_of(waiting.0)));
                    }
                    _ => {
                        let first = queue.first().map(|(at, &mut entry)| (at, entry));
                        let at = plainly(&model);
                        prop_assert_eq!(first, model.get(at).map(|waiting| (at, waiting.0)));
                        prop_assert_eq!(queue.serve(), first.map(|(_, entry)| entry));
                        if let Some(&(_, _, passing, _)) = model.get(at) {
                            model[..at].iter_mut().for_each(|waiting| waiting.3 = waiting.3.saturating_sub(passing));
                            model.remove(at);
                        }
                    }
                }
            }
        }
    }

    /// An entry of one second was overtaken by four seconds of work before it left; after its return one more can
    /// overtake.
    #[test]
    fn an_entry_put_back_keeps_its_place_and_its_budget() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 5.0 });
        queue.push(0, rank(Some(100), 1));
        (1..7).for_each(|entry| queue.push(entry, rank(Some(1), 1)));
        assert_eq!([(); 4].map(|()| queue.serve()), [1, 2, 3, 4].map(Some));
        let place = queue.place(0).unwrap();
        assert_eq!(queue.remove(0), Some(0));
        assert_eq!(queue.find(place), None);
        queue.put_back(0, place, rank(Some(100), 1));
        assert_eq!(queue.find(place), Some(0));
        assert_eq!(drain(&mut queue), [5, 0, 6]);
    }

    /// An entry is charged for being overtaken only when the overtaking entry is actually served.
    #[test]
    fn an_entry_that_is_not_served_overtakes_nothing() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 1.0 });
        (0..4u32).for_each(|entry| queue.push(entry, rank(Some(u64::from(4 - entry)), 1)));
        for last in [3, 2] {
            assert_eq!(queue.first(), Some((last, &mut (last as u32))));
            queue.remove(last);
        }
        assert_eq!(drain(&mut queue), [1, 0]);
    }

    #[test]
    fn recomputed_ranks_change_the_order() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 5.0 });
        (0..3u32).for_each(|entry| queue.push(entry, rank(Some(u64::from(entry)), 1)));
        queue.rerank(|&entry| Some((Span::from_secs(3 - u64::from(entry)), Time::ZERO)));
        assert_eq!(drain(&mut queue), [2, 1, 0]);
    }

    #[test]
    fn an_entry_without_a_rank_is_served_once_it_is_the_head() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 5.0 });
        queue.push(0, rank(Some(9), 1));
        queue.push(1, rank(None, 100));
        queue.push(2, rank(Some(1), 1));
        queue.push(3, rank(Some(2), 1));
        assert_eq!(drain(&mut queue), [2, 3, 0, 1]);
        queue.push(1, rank(None, 100));
        queue.push(2, rank(Some(1), 1));
        assert_eq!(drain(&mut queue), [1, 2]);
    }

    #[test]
    fn entries_keep_their_ranks_through_all_changes() {
        let mut queue = NodeQueue::new(QueueOrder::Least { bypass: 5.0 });
        for entry in 0..6u32 {
            queue.push(entry, rank(Some(u64::from(6 - entry)), 1));
        }
        queue.retain_mut(|entry| *entry % 2 == 0);
        assert_eq!(drain(&mut queue), [4, 2, 0]);
        let mut queue = NodeQueue::new(QueueOrder::Fifo);
        (0..4).for_each(|entry| queue.push(entry, Rank::FIFO));
        assert_eq!(drain(&mut queue), [0, 1, 2, 3]);
    }
}
