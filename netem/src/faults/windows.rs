//! Windows of time in which a state applies to an endpoint.

use volary_actors::base::{Endpoint, Time};

/// Disjoint windows [from, until) of each endpoint in order; empty if no endpoint has any.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Windows {
    /// First window of each endpoint, and their number at the end.
    first: Vec<u32>,
    windows: Vec<(Time, Time)>,
}

impl Windows {
    /// Sorts windows by endpoint and time and joins those that overlap or touch.
    pub(super) fn new(mut all: Vec<(Endpoint, Time, Time)>, endpoints: u32) -> Self {
        if all.is_empty() {
            return Self::default();
        }
        all.sort_unstable();
        let mut joined: Vec<(Endpoint, Time, Time)> = Vec::with_capacity(all.len());
        for (who, from, until) in all {
            match joined.last_mut() {
                Some(last) if last.0 == who && from <= last.2 => last.2 = last.2.max(until),
                _ => joined.push((who, from, until)),
            }
        }
        let first = (0..=endpoints).map(|e| joined.partition_point(|w| w.0.0 < e) as u32).collect();
        Self { first, windows: joined.into_iter().map(|(_, from, until)| (from, until)).collect() }
    }

    #[inline]
    pub(super) fn of(&self, who: Endpoint) -> &[(Time, Time)] {
        if self.windows.is_empty() {
            return &[];
        }
        &self.windows[self.first[who.index()] as usize..self.first[who.index() + 1] as usize]
    }

    /// The window that holds at `t`.
    #[inline]
    pub(super) fn at(&self, who: Endpoint, t: Time) -> Option<(Time, Time)> {
        let windows = self.of(who);
        let after = windows.partition_point(|w| w.0 <= t);
        windows[..after].last().copied().filter(|w| t < w.1)
    }

    /// All windows of all endpoints.
    pub(super) fn all(&self) -> &[(Time, Time)] {
        &self.windows
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}
