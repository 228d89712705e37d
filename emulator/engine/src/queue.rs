//! The event queue: a monotone radix heap on the due time.
//!
//! Due times only move forward while a run is stepped, so entries can be kept in one bucket per highest bit in which
//! their due time differs from the last one popped. A pop takes from the lowest bucket; when that is empty, the next
//! bucket is redistributed into those below it. An entry moves at most 64 times, in practice a few, always from one
//! contiguous vector to the end of another, which suits the cache: in `cargo bench --bench queue` this heap is faster
//! than binary and 4-ary heaps from a thousand to a million pending events.
//!
//! Entries are 16 bytes, due time and slot; payload and tie-break are kept in a slab, one vector with a free list.
//! Events of the instant being popped are sorted by (source, count) once, when the instant is reached; events pushed
//! for that same instant afterwards go to a small binary heap. A gang of 10⁵ events at one instant therefore costs
//! O(log n) each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use volary_actors::base::{ActorId, Time};

use crate::prefetch::prefetch;

/// A queued event: its due time, and its slot in the slab.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due: u64,
    slot: u32,
}

/// Entries whose due time differs first in one particular bit from the last popped due time.
#[derive(Debug, Default)]
struct Bucket {
    entries: Vec<Entry>,
    /// Index of the first entry in key order; meaningless when empty. Entries leave a bucket only all at once, so
    /// pushes alone keep it up to date, and finding the minimum needs no scan.
    first: usize,
}

/// Events in the order of their [`Key`]s.
///
/// The queue is monotone: an event pushed with a due time before that of the last event popped is treated as due at
/// that time, and is returned with it in its key. Only [`pop`](Self::pop) moves that bound, so an event pushed later
/// may still be due before the time that [`due`](Self::due) returned. Keys should be distinct; the order of events with
/// equal keys is deterministic but unspecified.
#[derive(Debug)]
pub struct Queue<T> {
    /// Due time of the last event popped.
    last: u64,
    /// Events that were due at `last` when the queue reached that time, in reverse order.
    ready: Vec<(Rank, u32)>,
    /// Events pushed since then that are due at `last`.
    fresh: BinaryHeap<Reverse<(Rank, u32)>>,
    /// Bucket b holds entries whose highest bit that differs from `last` is bit b.
    buckets: Box<[Bucket; 64]>,
    /// Bit b is set when bucket b is not empty.
    occupied: u64,
    /// Slots of upcoming events that `visit_upcoming` has not visited yet.
    soon: Vec<u32>,
    /// Due time up to which all events have been in `soon`, except events pushed later; `u64::MAX` without lookahead.
    known: u64,
    slab: Slab<T>,
}

/// Maximum size of a bucket that is announced to `visit_upcoming` as a whole. Prefetched state must stay in the cache
/// until its use, and there must be enough events for their misses to overlap.
const SOON: usize = 128;

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Queue<T> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self {
            last: 0,
            ready: Vec::new(),
            fresh: BinaryHeap::new(),
            buckets: Box::new(std::array::from_fn(|_| Bucket::default())),
            occupied: 0,
            soon: Vec::new(),
            known: u64::MAX,
            slab: Slab::new(),
        }
    }

    /// Enables [`visit_upcoming`](Self::visit_upcoming), at a small cost.
    pub const fn look_ahead(&mut self) {
        self.known = 0;
    }

    /// Number of pending events.
    pub const fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether no event is pending.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. A due time earlier than the last popped due time is raised to it.
    ///
    /// # Panics
    /// When 2³² events are pending.
    #[inline]
    pub fn push(&mut self, key: Key, value: T) {
        let rank = Rank::new(key.source, key.count);
        let slot = self.slab.insert(rank, value);
        self.place(Entry { due: key.due.0.max(self.last), slot }, rank);
    }

    /// The due time of the next event, which stays in the queue.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        if !self.ready.is_empty() || !self.fresh.is_empty() {
            return Some(Time(self.last));
        }
        let bucket = &self.buckets[self.lowest()?];
        Some(Time(bucket.entries[bucket.first].due))
    }

    /// Removes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Key, T)> {
        self.pop_by(Time::MAX)
    }

    /// Removes the next event if it is due by `limit`, which must not be before the last event popped.
    #[inline]
    pub fn pop_by(&mut self, limit: Time) -> Option<(Key, T)> {
        // One of these events may be the one that is removed now.
        self.soon.clear();
        let slot = match (self.ready.last(), self.fresh.peek()) {
            (None, None) => self.advance(limit.0)?,
            (Some(ready), Some(Reverse(fresh))) if ready > fresh => self.fresh.pop()?.0.1,
            (None, Some(_)) => self.fresh.pop()?.0.1,
            (Some(_), _) => self.ready.pop()?.1,
        };
        let (rank, value) = self.slab.remove(slot);
        Some((rank.key(self.last), value))
    }

    /// Calls `look` with upcoming events, so that the state they touch can be prefetched. Each event is visited once,
    /// in no particular order. Many calls visit no event, and no call visits more than `SOON` events.
    #[inline]
    pub fn visit_upcoming(&mut self, mut look: impl FnMut(&T)) {
        for &slot in &self.soon {
            self.slab.fetch(slot);
        }
        for &slot in &self.soon {
            look(self.slab.get(slot));
        }
        self.soon.clear();
    }

    /// The lowest bucket that has entries.
    #[inline]
    const fn lowest(&self) -> Option<usize> {
        if self.occupied == 0 { None } else { Some(self.occupied.trailing_zeros() as usize) }
    }

    /// Puts an entry into the bucket that its due time relative to `last` selects.
    #[inline]
    fn place(&mut self, entry: Entry, rank: Rank) {
        if entry.due == self.last {
            self.fresh.push(Reverse((rank, entry.slot)));
        } else {
            let b = highest_bit(entry.due ^ self.last);
            self.occupied |= 1 << b;
            self.buckets[b].push(entry, &self.slab, || rank);
        }
    }

    /// Moves `last` to the next due time, redistributes the lowest bucket into the buckets below it, and returns the
    /// slot of the first event; `None` if the next due time is after `limit`. Only called when nothing is due at
    /// `last`.
    fn advance(&mut self, limit: u64) -> Option<u32> {
        let b = self.lowest()?;
        let first = &self.buckets[b];
        if first.entries[first.first].due > limit {
            return None;
        }
        self.occupied &= !(1 << b);
        let first = self.buckets[b].first;
        let mut entries = mem::take(&mut self.buckets[b].entries);
        let next = entries.swap_remove(first);
        self.last = next.due;
        // The entries of this bucket differ only below bit b, and no other entry is due before them.
        let until = next.due | ((1 << b) - 1);
        if entries.len() <= SOON && until > self.known {
            self.known = until;
            self.soon.extend(entries.iter().map(|entry| entry.slot));
        }
        for &entry in &entries {
            let differs = entry.due ^ self.last;
            if differs == 0 {
                self.ready.push((self.slab.rank(entry.slot), entry.slot));
            } else {
                let below = highest_bit(differs);
                debug_assert!(below < b, "dealing out a bucket fills only buckets below it");
                self.occupied |= 1 << below;
                self.buckets[below].push(entry, &self.slab, || self.slab.rank(entry.slot));
            }
        }
        self.ready.sort_unstable_by(|a, b| b.cmp(a));
        entries.clear();
        self.buckets[b].entries = entries; // keeps its capacity
        Some(next.slot)
    }
}

impl Bucket {
    /// Adds an entry; `rank` is only called on a tie of due times.
    #[inline]
    fn push<T>(&mut self, entry: Entry, slab: &Slab<T>, rank: impl FnOnce() -> Rank) {
        match self.entries.get(self.first) {
            None => self.first = 0,
            Some(first) if entry.due > first.due => {}
            Some(first) => {
                if entry.due < first.due || rank() < slab.rank(first.slot) {
                    self.first = self.entries.len();
                }
            }
        }
        self.entries.push(entry);
    }
}

/// Index of the highest bit that is set; `bits` is not zero.
const fn highest_bit(bits: u64) -> usize {
    63 - bits.leading_zeros() as usize
}

/// The order of events: due time, then source, then the source's own count. It does not depend on the order of pushes,
/// so it is the same for any number of shards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Due time of the event.
    pub due: Time,
    /// The actor that caused it.
    pub source: ActorId,
    /// Number of events that the actor had caused before.
    pub count: u32,
}

/// Source and count of an event in one word, ordered like the pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank(u64);

impl Rank {
    const fn new(source: ActorId, count: u32) -> Self {
        Self((source.0 as u64) << 32 | count as u64)
    }

    /// The full key of an event due at `due`.
    const fn key(self, due: u64) -> Key {
        Key { due: Time(due), source: ActorId((self.0 >> 32) as u32), count: self.0 as u32 }
    }
}

/// Marks the end of the free list.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
enum Slot<T> {
    Full { rank: Rank, value: T },
    Free { next: u32 },
}

#[derive(Debug)]
struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0 }
    }

    const fn len(&self) -> usize {
        self.len
    }

    /// Maximum number of slots used at once so far.
    #[cfg(test)]
    const fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Stores a value and returns its slot. The slot freed last is reused first, because it is still in the cache.
    #[inline]
    fn insert(&mut self, rank: Rank, value: T) -> u32 {
        self.len += 1;
        let full = Slot::Full { rank, value };
        if self.free == NONE {
            let slot = self.slots.len();
            assert!(slot < NONE as usize, "more events pending than 32-bit slots");
            self.slots.push(full);
            return slot as u32;
        }
        let slot = self.free;
        let place = &mut self.slots[slot as usize];
        let Slot::Free { next } = place else { unreachable!("slot {slot} is listed as free but full") };
        self.free = *next;
        *place = full;
        slot
    }

    /// Tie-break of a stored event.
    #[inline]
    fn rank(&self, slot: u32) -> Rank {
        match &self.slots[slot as usize] {
            Slot::Full { rank, .. } => *rank,
            Slot::Free { .. } => unreachable!("slot {slot} is queued but free"),
        }
    }

    /// The stored value.
    #[inline]
    fn get(&self, slot: u32) -> &T {
        match &self.slots[slot as usize] {
            Slot::Full { value, .. } => value,
            Slot::Free { .. } => unreachable!("slot {slot} is queued but free"),
        }
    }

    /// Prefetches a slot.
    #[inline]
    fn fetch(&self, slot: u32) {
        prefetch(&self.slots[slot as usize]);
    }

    /// Takes a value out and frees its slot.
    #[inline]
    fn remove(&mut self, slot: u32) -> (Rank, T) {
        let free = Slot::Free { next: self.free };
        match mem::replace(&mut self.slots[slot as usize], free) {
            Slot::Full { rank, value } => {
                self.free = slot;
                self.len -= 1;
                (rank, value)
            }
            Slot::Free { .. } => unreachable!("slot {slot} is queued but free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;
    use volary_actors::base::{ActorId, Time};

    use super::{Key, Queue};

    fn key(due: u64, source: u32, count: u32) -> Key {
        Key { due: Time(due), source: ActorId(source), count }
    }

    /// A reference implementation of the queue.
    #[derive(Default)]
    struct Model {
        heap: BinaryHeap<Reverse<(Key, u64)>>,
        last: Time,
    }

    impl Model {
        fn push(&mut self, mut key: Key, value: u64) {
            key.due = key.due.max(self.last);
            self.heap.push(Reverse((key, value)));
        }

        fn pop(&mut self) -> Option<(Key, u64)> {
            let Reverse((key, value)) = self.heap.pop()?;
            self.last = key.due;
            Some((key, value))
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        /// Push an event this far after the last popped due time, from this source.
        Push {
            ahead: u64,
            source: u32,
        },
        /// Push an event at this absolute time, which may be before the last popped due time.
        PushAt {
            due: u64,
            source: u32,
        },
        /// Push this many events at one instant.
        Burst {
            ahead: u64,
            many: u32,
        },
        Pop {
            many: u32,
        },
        Peek,
    }

    fn op() -> impl Strategy<Value = Op> {
        // Spans of every magnitude, with few enough distinct values that ties are common.
        let ahead = (0u32..64, 0u64..4).prop_map(|(shift, n)| n.checked_shl(shift).unwrap_or(0) >> 1);
        prop_oneof![
            6 => (ahead.clone(), 0u32..5).prop_map(|(ahead, source)| Op::Push { ahead, source }),
            1 => (prop_oneof![0u64..50, Just(u64::MAX), any::<u64>()], 0u32..5)
                .prop_map(|(due, source)| Op::PushAt { due, source }),
            1 => (ahead, 1u32..40).prop_map(|(ahead, many)| Op::Burst { ahead, many }),
            4 => (1u32..30).prop_map(|many| Op::Pop { many }),
            2 => Just(Op::Peek),
        ]
    }

    /// Applies each operation to both queue and model.
    struct Pair {
        queue: Queue<u64>,
        model: Model,
        pushed: u64,
    }

    impl Pair {
        fn push(&mut self, due: u64, source: u32) {
            // Counts fall, so that the order of pushes differs from the order of keys.
            let count = u32::MAX - self.pushed as u32;
            self.queue.push(key(due, source, count), self.pushed);
            self.model.push(key(due, source, count), self.pushed);
            self.pushed += 1;
        }

        fn pop(&mut self) -> bool {
            let (got, expected) = (self.queue.pop(), self.model.pop());
            assert_eq!(got, expected);
            got.is_some()
        }

        fn agree(&mut self) {
            assert_eq!(self.queue.len(), self.model.heap.len());
            assert_eq!(self.queue.is_empty(), self.model.heap.is_empty());
            let due = self.model.heap.peek().map(|Reverse((key, _))| key.due);
            assert_eq!(self.queue.due(), due);
            if let Some(due) = due.filter(|&due| due > self.model.last) {
                assert_eq!(self.queue.pop_by(Time(due.0 - 1)), None, "nothing is due by then");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn events_are_popped_in_the_order_of_a_model(ops in proptest::collection::vec(op(), 1..200)) {
            let mut pair = Pair { queue: Queue::new(), model: Model::default(), pushed: 0 };
            for op in ops {
                let last = pair.model.last.0;
                match op {
                    Op::Push { ahead, source } => pair.push(last.saturating_add(ahead), source),
                    Op::PushAt { due, source } => pair.push(due, source),
                    Op::Burst { ahead, many } => {
                        (0..many).for_each(|i| pair.push(last.saturating_add(ahead), i % 3));
                    }
                    Op::Pop { many } => (0..many).for_each(|_| { pair.pop(); }),
                    Op::Peek => pair.agree(),
                }
            }
            pair.agree();
            while pair.pop() {}
            pair.agree();
        }
    }

    #[test]
    fn events_earlier_than_a_returned_due_time_can_be_pushed() {
        let mut queue = Queue::new();
        queue.push(key(1000, 0, 0), "late");
        assert_eq!(queue.due(), Some(Time(1000)));
        queue.push(key(10, 1, 0), "early");
        assert_eq!(queue.pop(), Some((key(10, 1, 0), "early")));
        assert_eq!(queue.due(), Some(Time(1000)));
        queue.push(key(20, 1, 1), "between");
        assert_eq!(queue.pop(), Some((key(20, 1, 1), "between")));
        assert_eq!(queue.pop(), Some((key(1000, 0, 0), "late")));
        assert_eq!((queue.pop(), queue.due()), (None, None));
    }

    #[test]
    fn an_event_pushed_for_the_past_is_due_now() {
        let mut queue = Queue::new();
        queue.push(key(50, 3, 0), 'a');
        queue.pop();
        queue.push(key(50, 9, 0), 'c');
        queue.push(key(7, 1, 0), 'b');
        assert_eq!(queue.pop(), Some((key(50, 1, 0), 'b')), "its key says when it is really due");
        assert_eq!(queue.pop(), Some((key(50, 9, 0), 'c')));
    }

    #[test]
    fn events_of_the_instant_being_popped_keep_their_order() {
        // A gang: 10⁵ events at one instant, each of which causes another event at the same instant.
        let n = 100_000u32;
        let mut queue = Queue::new();
        for source in (0..n).rev() {
            queue.push(key(1_000_000, source, 0), source);
        }
        let mut popped = 0u32;
        let mut previous = None;
        while let Some((at, source)) = queue.pop() {
            assert!(previous < Some(at), "{at:?} after {previous:?}");
            previous = Some(at);
            if at.count == 0 {
                queue.push(key(at.due.0, source, 1), source);
            }
            popped += 1;
        }
        assert_eq!(popped, 2 * n);
    }

    #[test]
    fn freed_slots_are_reused() {
        let mut queue = Queue::new();
        for round in 0..1_000u32 {
            for source in 0..10 {
                queue.push(key(u64::from(round) * 7 + u64::from(source), source, round), ());
            }
            for _ in 0..10 {
                queue.pop();
            }
        }
        assert!(queue.is_empty());
        assert_eq!(queue.slab.capacity(), 10, "10 events pend at most");
    }

    /// Popped events are not visited, even if `visit_upcoming` is not called after each pop.
    #[test]
    fn popped_events_are_not_prefetched() {
        let mut queue = Queue::new();
        queue.look_ahead();
        (0..4).for_each(|count| queue.push(key(5, 0, count), count));
        assert_eq!([queue.pop(), queue.pop()].map(|event| event.unwrap().1), [0, 1]);
        queue.visit_upcoming(|value| assert!(*value > 1, "{value} has gone"));
        assert_eq!(queue.len(), 2);
    }
}
