//! Windows of time in which a state applies to a unit: an endpoint, or a node.

use volary_actors::base::Time;

/// Disjoint windows [from, until) of each unit in order; empty if no unit has any.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Windows {
    /// First window of each unit, and their number at the end.
    first: Vec<u32>,
    windows: Vec<(Time, Time)>,
}

impl Windows {
    /// Sorts windows of units below `units` by unit and time, and joins those that overlap or touch.
    pub fn new(all: impl IntoIterator<Item = (u32, Time, Time)>, units: u32) -> Self {
        let mut all: Vec<_> = all.into_iter().collect();
        if all.is_empty() {
            return Self::default();
        }
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let touches = next.0 == kept.0 && next.1 <= kept.2;
            if touches {
                kept.2 = kept.2.max(next.2);
            }
            touches
        });
        let first = (0..=units).map(|unit| all.partition_point(|window| window.0 < unit) as u32).collect();
        Self { first, windows: all.into_iter().map(|(_, from, until)| (from, until)).collect() }
    }

    /// The windows of a unit.
    #[inline]
    pub fn of(&self, unit: u32) -> &[(Time, Time)] {
        if self.windows.is_empty() {
            return &[];
        }
        let unit = unit as usize;
        &self.windows[self.first[unit] as usize..self.first[unit + 1] as usize]
    }

    /// The windows of a unit that end after `t`.
    #[inline]
    pub fn after(&self, unit: u32, t: Time) -> &[(Time, Time)] {
        let windows = self.of(unit);
        &windows[windows.partition_point(|window| window.1 <= t)..]
    }

    /// The window that holds at `t`.
    #[inline]
    pub fn at(&self, unit: u32, t: Time) -> Option<(Time, Time)> {
        self.after(unit, t).first().copied().filter(|window| window.0 <= t)
    }

    /// All windows of all units.
    pub(super) fn all(&self) -> &[(Time, Time)] {
        &self.windows
    }

    /// Whether no unit has a window.
    pub const fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_joined_and_found() {
        let all = [(2, 50, 60), (1, 30, 40), (1, 10, 20), (1, 15, 30), (1, 80, 90)];
        let windows = Windows::new(all.map(|(unit, from, until)| (unit, Time(from), Time(until))), 3);
        assert_eq!(windows.after(1, Time(0)), [(Time(10), Time(40)), (Time(80), Time(90))]);
        assert_eq!(windows.after(1, Time(40)), [(Time(80), Time(90))]);
        assert!(windows.after(1, Time(90)).is_empty() && windows.of(0).is_empty());
        for (unit, at, holds) in [(1, 9, false), (1, 10, true), (1, 39, true), (1, 40, false), (2, 55, true)]
        {
            assert_eq!(windows.at(unit, Time(at)).is_some(), holds, "unit {unit} at {at}");
        }
    }
}
