//! The slab: keys and payloads of pending events, in one vector with a free list.

use volary_actors::base::{ActorId, Time};

use crate::prefetch::prefetch;

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
pub(super) struct Rank(u64);

impl Rank {
    pub(super) const fn new(source: ActorId, count: u32) -> Self {
        Self((source.0 as u64) << 32 | count as u64)
    }

    /// The full key of an event due at `due`.
    pub(super) const fn key(self, due: u64) -> Key {
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
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Maximum number of slots used at once so far.
    #[cfg(test)]
    pub(super) const fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Stores a value and returns its slot. The slot freed last is reused first, because it is still in the cache.
    #[inline]
    pub(super) fn insert(&mut self, rank: Rank, value: T) -> u32 {
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
    pub(super) fn rank(&self, slot: u32) -> Rank {
        match &self.slots[slot as usize] {
            Slot::Full { rank, .. } => *rank,
            Slot::Free { .. } => unreachable!("slot {slot} is queued but free"),
        }
    }

    /// The stored value.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> &T {
        match &self.slots[slot as usize] {
            Slot::Full { value, .. } => value,
            Slot::Free { .. } => unreachable!("slot {slot} is queued but free"),
        }
    }

    /// Prefetches a slot.
    #[inline]
    pub(super) fn fetch(&self, slot: u32) {
        prefetch(&self.slots[slot as usize]);
    }

    /// Takes a value out and frees its slot.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> (Rank, T) {
        let free = Slot::Free { next: self.free };
        match std::mem::replace(&mut self.slots[slot as usize], free) {
            Slot::Full { rank, value } => {
                self.free = slot;
                self.len -= 1;
                (rank, value)
            }
            Slot::Free { .. } => unreachable!("slot {slot} is queued but free"),
        }
    }
}
