//! Places reserved on nodes for a group of tasks.

use crate::base::{ActorId, JobId};
use crate::machine::Effects;
use crate::message::Probe;

/// Nodes with unclaimed reservations, and how many each has left.
#[derive(Default)]
pub(crate) struct Places(Vec<(ActorId, u32)>);

impl Places {
    /// Whether no node has one.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Total number of places.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|&(_, places)| places as usize).sum()
    }

    /// The nodes, each with the number of its places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ActorId, u32)> {
        self.0.iter().copied()
    }

    /// Number of places of a node.
    pub(crate) fn of(&self, node: ActorId) -> u32 {
        self.0.iter().find(|(n, _)| *n == node).map_or(0, |&(_, places)| places)
    }

    /// Adds places of a node that has none.
    pub(crate) fn push(&mut self, node: ActorId, count: u32) {
        self.0.push((node, count));
    }

    /// Adds places of a node; returns how many it has now.
    pub(crate) fn add(&mut self, node: ActorId, count: u32) -> u32 {
        if let Some((_, places)) = self.0.iter_mut().find(|(n, _)| *n == node) {
            *places = places.saturating_add(count);
            return *places;
        }
        self.push(node, count);
        count
    }

    /// Removes up to `count` places that a node claimed or rejected; returns how many it had of them.
    pub(crate) fn take(&mut self, node: ActorId, count: u32) -> u32 {
        let Some(i) = self.0.iter().position(|(n, _)| *n == node) else { return 0 };
        let gone = count.min(self.0[i].1);
        self.0[i].1 -= gone;
        if self.0[i].1 == 0 {
            self.0.swap_remove(i);
        }
        gone
    }

    /// Removes the places of a node; returns how many it had.
    pub(crate) fn forget(&mut self, node: ActorId) -> u32 {
        let places = self.0.iter().filter(|(n, _)| *n == node).map(|(_, count)| count).sum();
        self.0.retain(|(n, _)| *n != node);
        places
    }

    /// Removes all places and sends each node a cancellation.
    pub(crate) fn cancel(&mut self, job: JobId, group: u32, fx: &mut Effects<'_>) {
        for (node, _) in self.0.drain(..) {
            fx.send(node, Probe::Cancel { job, group });
        }
    }
}

/// Number of `places` that the node at `index` of `found` holds: with fewer nodes than places each holds several, the
/// first ones one more.
pub(crate) fn portion(places: usize, found: usize, index: usize) -> u32 {
    (places / found + usize::from(index < places % found)) as u32
}
