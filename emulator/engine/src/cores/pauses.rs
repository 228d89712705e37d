//! Pauses of nodes.

use volary_actors::base::Time;

/// A pause of a node: its cores do no work in [from, until), and then continue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pause {
    /// The node.
    pub node: u32,
    /// When it begins.
    pub from: Time,
    /// When it ends; [`Time::MAX`] if never.
    pub until: Time,
}

/// The pauses of a run, sorted by node and time; adjacent ones are joined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pauses(Vec<Pause>);

impl Pauses {
    /// Pauses in any order; they may overlap.
    #[must_use]
    pub fn new(pauses: impl IntoIterator<Item = Pause>) -> Self {
        let mut sorted: Vec<Pause> = pauses.into_iter().filter(|pause| pause.from < pause.until).collect();
        sorted.sort_unstable();
        sorted.dedup_by(|next, kept| {
            let touches = next.node == kept.node && next.from <= kept.until;
            if touches {
                kept.until = kept.until.max(next.until);
            }
            touches
        });
        Self(sorted)
    }

    /// Whether no node ever pauses.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pauses of a node that end after `at`, in order.
    pub fn after(&self, node: u32, at: Time) -> impl Iterator<Item = Pause> {
        let first = self.0.partition_point(|pause| (pause.node, pause.until) <= (node, at));
        self.0[first..].iter().copied().take_while(move |pause| pause.node == node)
    }

    /// Whether a node is paused at `at`.
    #[must_use]
    pub fn stopped(&self, node: u32, at: Time) -> bool {
        self.after(node, at).next().is_some_and(|pause| pause.from <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(node: u32, from: u64, until: u64) -> Pause {
        Pause { node, from: Time(from), until: Time(until) }
    }

    #[test]
    fn overlaps_are_merged_and_found() {
        let pauses = Pauses::new([
            pause(2, 50, 60),
            pause(1, 30, 40),
            pause(1, 10, 20),
            pause(1, 15, 30),
            pause(1, 70, 70),
            pause(1, 80, 90),
        ]);
        assert_eq!(pauses.after(1, Time(0)).collect::<Vec<_>>(), [pause(1, 10, 40), pause(1, 80, 90)]);
        assert_eq!(pauses.after(1, Time(40)).collect::<Vec<_>>(), [pause(1, 80, 90)]);
        assert_eq!(pauses.after(1, Time(90)).count(), 0);
        assert_eq!(pauses.after(0, Time(0)).count(), 0);
        for (node, at, stopped) in
            [(1, 9, false), (1, 10, true), (1, 39, true), (1, 40, false), (2, 55, true)]
        {
            assert_eq!(pauses.stopped(node, Time(at)), stopped, "node {node} at {at}");
        }
    }
}
