//! Groups of tasks that share reservations, and the nodes that hold the reservations of a group.

use std::ops::Range;

use crate::base::{ActorId, CopyId, JobId};
use crate::machine::Effects;
use crate::message::Probe;
use crate::roles::dispatcher::OpenTasks;

/// Tasks of a job that share reservations.
#[derive(Clone, Debug)]
pub(super) struct TaskGroup {
    pub(super) job: JobId,
    /// Number of the group within its job.
    pub(super) number: u32,
    /// Number of tasks.
    pub(super) len: u32,
    /// Tasks that were never handed out.
    fresh: Range<u32>,
    /// Copies that wait in the place of lost ones.
    pub(super) lost: Vec<CopyId>,
    /// The group's reservations.
    pub(super) places: Places,
}

impl TaskGroup {
    /// The groups of a job of `tasks` tasks, `size` tasks in each of them but the last.
    pub(super) fn of(job: JobId, tasks: u32, size: u32) -> Vec<Self> {
        let group = |number| {
            let first = number * size;
            let len = size.min(tasks - first);
            Self { job, number, len, fresh: first..first + len, lost: Vec::new(), places: Places::default() }
        };
        (0..tasks.div_ceil(size)).map(group).collect()
    }

    /// Number of tasks that wait for a node.
    pub(super) fn waiting(&self) -> u32 {
        (self.fresh.len() + self.lost.len()) as u32
    }

    /// The copy to hand out next: of a lost task, if there is one, else of the next task in order.
    pub(super) fn next(&mut self, tasks: &mut OpenTasks) -> Option<CopyId> {
        // A task given up as lost may have finished after all.
        self.lost.retain(|&copy| tasks.waits(copy));
        self.lost.pop().or_else(|| self.fresh.find_map(|index| tasks.waiting(self.job.task(index))))
    }
}

/// Nodes with unclaimed reservations, each with the number of its reservations.
#[derive(Clone, Default, Debug)]
pub struct Places(Vec<(ActorId, u32)>);

impl Places {
    /// Whether no node holds a reservation.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Total number of reservations.
    pub fn count(&self) -> usize {
        self.iter().map(|(_, places)| places as usize).sum()
    }

    /// The nodes, each with the number of its reservations.
    pub fn iter(&self) -> impl Iterator<Item = (ActorId, u32)> {
        self.0.iter().copied()
    }

    /// Number of reservations of a node.
    pub fn of(&self, node: ActorId) -> u32 {
        self.iter().find(|&(n, _)| n == node).map_or(0, |(_, places)| places)
    }

    /// Spreads `count` reservations evenly over the nodes of a sample, in which equal nodes are adjacent; the first
    /// nodes get the remainder. Calls `ask` once for each node, with the total number of its reservations.
    pub fn spread(&mut self, count: usize, sample: &[ActorId], mut ask: impl FnMut(ActorId, u32)) {
        let draws = sample.len().max(1);
        let (fresh, each, mut more) = (self.is_empty(), count / draws, count % draws);
        for same in sample.chunk_by(|a, b| a == b) {
            let places = (each * same.len() + more.min(same.len())) as u32;
            more = more.saturating_sub(same.len());
            let known = if fresh { None } else { self.0.iter().position(|(node, _)| *node == same[0]) };
            let at = known.unwrap_or(self.0.len());
            if known.is_none() {
                self.0.push((same[0], 0));
            }
            self.0[at].1 = self.0[at].1.saturating_add(places);
            ask(same[0], self.0[at].1);
        }
    }

    /// Removes up to `count` reservations that a node claimed or rejected; returns the number of removed reservations.
    pub fn take(&mut self, node: ActorId, count: u32) -> u32 {
        let Some(i) = self.0.iter().position(|(n, _)| *n == node) else { return 0 };
        let gone = count.min(self.0[i].1);
        self.0[i].1 -= gone;
        if self.0[i].1 == 0 {
            self.0.swap_remove(i);
        }
        gone
    }

    /// Removes the reservations of a node; returns their number.
    pub fn forget(&mut self, node: ActorId) -> u32 {
        let places = self.of(node);
        self.0.retain(|(n, _)| *n != node);
        places
    }

    /// Removes all reservations and sends each node a cancellation.
    pub fn cancel(&mut self, job: JobId, group: u32, fx: &mut Effects<'_>) {
        for (node, _) in self.0.drain(..) {
            fx.send(node, Probe::Cancel { job, group });
        }
    }
}
