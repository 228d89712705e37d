//! The state of each used link, found by (source, destination) without allocation.
//!
//! Most links have a coordinator at one end, and coordinators have the lowest numbers. Each coordinator has a row of
//! slots for outgoing links and one for incoming links, created on first use. Large rows are allocated as zeroed
//! memory, whose pages the operating system creates lazily. Links between two other endpoints are in an open-addressing
//! table that grows with the number of used links.

use std::hint::black_box;

use volary_actors::base::{Endpoint, Time};

/// The state of a link.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct LinkState {
    /// Number of messages carried.
    pub(crate) count: u32,
    /// Whether the Gilbert-Elliott chain is in its bad state.
    pub(crate) bad: bool,
    /// Normal score of the last delay.
    pub(crate) score: f32,
    /// Time at which the current transmissions end.
    pub(crate) busy_until: Time,
}

/// [`LinkState`] in a form that is zero when new, so that rows can be allocated as zeroed memory.
type Packed = [u32; 5];

impl LinkState {
    fn unpack([count, bad, score, low, high]: Packed) -> Self {
        Self {
            count,
            bad: bad != 0,
            score: f32::from_bits(score),
            busy_until: Time(u64::from(low) | u64::from(high) << 32),
        }
    }

    const fn pack(self) -> Packed {
        let busy = self.busy_until.0;
        [self.count, self.bad as u32, self.score.to_bits(), busy as u32, (busy >> 32) as u32]
    }
}

/// The state that the models of a run need.
#[derive(Clone, Debug)]
pub(crate) enum States {
    /// No random numbers are drawn.
    None,
    /// Messages are counted, because draws are addressed by their number.
    Counts(Table<u32>),
    /// Delays are correlated, losses come in bursts, or links have a rate.
    Full(Table<Packed>),
}

impl States {
    /// Counts a message of a link and returns the link's state before it.
    #[inline]
    pub(crate) fn next(&mut self, src: Endpoint, dst: Endpoint) -> LinkState {
        match self {
            Self::None => LinkState::default(),
            Self::Counts(table) => {
                let slot = table.slot(src, dst);
                let count = *slot;
                *slot = count.wrapping_add(1);
                LinkState { count, ..LinkState::default() }
            }
            Self::Full(table) => {
                let slot = table.slot(src, dst);
                let state = LinkState::unpack(*slot);
                slot[0] = state.count.wrapping_add(1);
                state
            }
        }
    }

    /// Reads the data that [`next`](Self::next) will need, so that it is then in the cache. The processor does not wait
    /// for an unused value, so several such reads overlap.
    #[inline]
    pub(crate) fn touch(&self, src: Endpoint, dst: Endpoint) {
        match self {
            Self::None => {}
            Self::Counts(table) => _ = black_box(table.peek(src, dst)),
            Self::Full(table) => _ = black_box(table.peek(src, dst).map(|slot| slot[0])),
        }
    }

    /// Stores everything but the count.
    #[inline]
    pub(crate) fn store(&mut self, src: Endpoint, dst: Endpoint, state: LinkState) {
        if let Self::Full(table) = self {
            let slot = table.slot(src, dst);
            *slot = LinkState { count: slot[0], ..state }.pack();
        }
    }
}

/// Slots by directed pair of endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    hubs: u32,
    endpoints: u32,
    /// Slots by source hub, then destination; empty until used.
    outgoing: Vec<Vec<T>>,
    /// Slots by destination hub, then source; empty until used.
    incoming: Vec<Vec<T>>,
    rest: Sparse<T>,
}

impl<T: Copy + Default> Table<T> {
    pub(crate) fn new(hubs: u32, endpoints: u32) -> Self {
        let hubs = hubs.min(endpoints);
        let rows = || vec![Vec::new(); hubs as usize];
        Self { hubs, endpoints, outgoing: rows(), incoming: rows(), rest: Sparse::default() }
    }

    #[inline]
    fn slot(&mut self, src: Endpoint, dst: Endpoint) -> &mut T {
        debug_assert!(src.0 < self.endpoints && dst.0 < self.endpoints, "{src:?} or {dst:?} does not exist");
        let (row, column) = if src.0 < self.hubs {
            (&mut self.outgoing[src.index()], dst.index())
        } else if dst.0 < self.hubs {
            (&mut self.incoming[dst.index()], src.index())
        } else {
            return self.rest.slot(u64::from(src.0) << 32 | u64::from(dst.0));
        };
        if row.is_empty() {
            *row = vec![T::default(); self.endpoints as usize];
        }
        &mut row[column]
    }

    /// The slot of a link of a coordinator, if it was ever used.
    #[inline]
    fn peek(&self, src: Endpoint, dst: Endpoint) -> Option<T> {
        if src.0 < self.hubs {
            self.outgoing[src.index()].get(dst.index()).copied()
        } else if dst.0 < self.hubs {
            self.incoming[dst.index()].get(src.index()).copied()
        } else {
            None
        }
    }
}

/// A table that only grows, with linear probing, at most two thirds full. Key and slot are adjacent, so that a lookup
/// takes one memory access.
#[derive(Clone, Debug, Default)]
struct Sparse<T> {
    used: usize,
    /// Pairs of a key plus one and a slot; a pair with key zero is free. The length is a power of two, or zero.
    links: Vec<(u64, T)>,
}

impl<T: Copy + Default> Sparse<T> {
    fn slot(&mut self, key: u64) -> &mut T {
        if self.used * 3 >= self.links.len() * 2 {
            self.grow();
        }
        let at = self.find(key);
        let (known, slot) = &mut self.links[at];
        if *known == 0 {
            *known = key + 1;
            self.used += 1;
        }
        slot
    }

    /// The index of a key, or of the free entry for the key.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mask = self.links.len() - 1;
        // Fibonacci hashing of both halves; the high bits of the product depend on the whole key.
        let mut at = ((key ^ (key >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.links[at].0 != 0 && self.links[at].0 != key + 1 {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let size = (self.links.len() * 2).max(64);
        let links = std::mem::replace(&mut self.links, vec![(0, T::default()); size]);
        for (key, slot) in links.into_iter().filter(|(key, _)| *key != 0) {
            let at = self.find(key - 1);
            self.links[at] = (key, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For every split between rows and the sparse table, the states behave like a map from pairs.
        #[test]
        fn link_states_behave_like_a_map_from_pairs(hubs in 0u32..12, uses in prop::collection::vec((0u32..40, 0u32..40), 0..3000)) {
            let mut states = States::Counts(Table::new(hubs, 40));
            let mut model = BTreeMap::new();
            for (src, dst) in uses {
                let expected = model.entry((src, dst)).or_insert(0u32);
                prop_assert_eq!(states.next(Endpoint(src), Endpoint(dst)).count, *expected);
                *expected += 1;
            }
        }
    }

    #[test]
    fn the_full_state_of_a_link_is_stored_and_read_back() {
        let mut states = States::Full(Table::new(1, 5));
        for (src, dst) in [(0, 3), (3, 0), (3, 4)] {
            let (src, dst) = (Endpoint(src), Endpoint(dst));
            assert_eq!(states.next(src, dst), LinkState::default());
            let state = LinkState { count: 0, bad: true, score: -1.25, busy_until: Time(u64::MAX - 5) };
            states.store(src, dst, state);
            assert_eq!(states.next(src, dst), LinkState { count: 1, ..state });
        }
    }

    #[test]
    fn the_sparse_table_keeps_its_entries_when_it_grows() {
        let mut sparse = Sparse::<u32>::default();
        for key in 0..10_000u64 {
            *sparse.slot(key << 32 | (key * 7)) = key as u32;
        }
        assert!((0..10_000u64).all(|key| *sparse.slot(key << 32 | (key * 7)) == key as u32));
        assert!(sparse.links.len() <= 32_768, "the table has {} slots for 10,000 keys", sparse.links.len());
    }
}
