//! The event queue: a monotone radix heap on the due time.
//!
//! Due times only move forward while a run is stepped, so entries can be kept in one bucket per highest bit in which
//! their due time differs from the last one popped. A pop takes from the lowest bucket; when that is empty, the next
//! bucket is redistributed into those below it. An entry moves at most 64 times, in practice a few, always from one
//! contiguous vector to the end of another, which suits the cache: in `cargo bench --bench queue` this heap is faster
//! than binary and 4-ary heaps from a thousand to a million pending events.
//!
//! Entries are 16 bytes, due time and slot; payload and tie-break are kept in a slab. Events of the instant being
//! popped are sorted by (source, count) once, when the instant is reached; events pushed for that same instant
//! afterwards go to a small binary heap. A gang of 10⁵ events at one instant therefore costs O(log n) each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use volary_actors::base::Time;

use super::slab::{Key, Rank, Slab};

/// A queued event: its due time, and its slot in the slab.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due: u64,
    slot: u32,
}

/// Entries whose due time first differs from the last one popped in one particular bit.
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
    /// Events due at `last` when it was reached, in reverse order.
    ready: Vec<(Rank, u32)>,
    /// Events pushed since then that are due at `last`.
    fresh: BinaryHeap<Reverse<(Rank, u32)>>,
    /// Bucket b holds entries whose highest bit that differs from `last` is bit b.
    buckets: Box<[Bucket; 64]>,
    /// Bit b is set when bucket b is not empty.
    occupied: u64,
    /// Slots of upcoming events that `foresee` has not visited yet.
    soon: Vec<u32>,
    /// Due time up to which all events have been in `soon`, except those pushed later; `u64::MAX` without lookahead.
    known: u64,
    pub(super) slab: Slab<T>,
}

/// Maximum size of a bucket that is announced to `foresee` as a whole: few enough events for what they need to stay in
/// the cache until it is used, enough for their misses to overlap.
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

    /// Enables [`foresee`](Self::foresee), at a small cost.
    pub const fn look_ahead(&mut self) {
        self.known = 0;
    }

    /// Number of pending events.
    pub const fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether nothing is pending.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. A due time before that of the last event popped is raised to it.
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

    /// Calls `look` with upcoming events, each once and in no particular order, often none and at most `SOON`, so that
    /// the state they touch can be prefetched.
    #[inline]
    pub fn foresee(&mut self, mut look: impl FnMut(&T)) {
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

    /// Moves `last` to the next due time, redistributes the lowest bucket into those below it, and returns the slot of
    /// the first event; `None` if that time is after `limit`. Only called when nothing is due at `last`.
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
        // They differ from each other below bit b only, and nothing else is due before them.
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
                debug_assert!(below < b, "dealing out a bucket fills only those below it");
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
