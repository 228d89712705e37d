//! Groups of workers (section 2.1 of the paper): their nodes, their reserved workers, and the numbers of their masters.

use std::ops::Range;

use super::config::Pigeon;
use crate::base::ActorId;
use crate::layout::{Layout, Role};

/// The groups of a layout. A node belongs to the group in which its first core falls, with cores counted in the order
/// of nodes. With phantom reserved workers each node counts as one core.
#[derive(Clone, Debug)]
pub(super) struct WorkerGroups {
    pub(super) config: Pigeon,
    /// N_g.
    pub(super) count: u32,
}

impl WorkerGroups {
    pub(super) fn new(config: &Pigeon, layout: &Layout) -> Self {
        let mut groups = Self { config: config.clone(), count: 0 };
        groups.count = layout.nodes().checked_sub(1).map_or(0, |last| groups.group_of_node(last, layout) + 1);
        groups
    }

    /// The group of a node.
    pub(super) fn group_of_node(&self, node: u32, layout: &Layout) -> u32 {
        self.position(node, layout) / self.config.group
    }

    /// The number of a node's first core, where phantom cores do not count.
    fn position(&self, node: u32, layout: &Layout) -> u32 {
        if self.config.phantom_reserved { node } else { first_core(node, layout) }
    }

    /// The nodes of a group.
    pub(super) fn nodes(&self, group: u32, layout: &Layout) -> Range<u32> {
        self.first_node(group, layout)..self.first_node(group + 1, layout)
    }

    /// The first node whose first core is not before the first core of a group.
    fn first_node(&self, group: u32, layout: &Layout) -> u32 {
        let cores = if self.config.phantom_reserved { layout.nodes() } else { layout.workers() };
        let first = group.saturating_mul(self.config.group);
        if first >= cores {
            return layout.nodes();
        }
        let node = if self.config.phantom_reserved { first } else { layout.node_of_core(first) };
        node + u32::from(self.position(node, layout) < first)
    }

    /// The cores of a group that tasks may use: all except the core that the master occupies.
    pub(super) fn workers(&self, group: u32, layout: &Layout) -> Range<u32> {
        let Range { start, end } = self.nodes(group, layout);
        first_core(start, layout) + u32::from(self.config.master_on_worker)..first_core(end, layout)
    }

    /// The nodes of a group that have workers.
    pub(super) fn worker_nodes(&self, group: u32, layout: &Layout) -> Range<u32> {
        layout.node_of_core(self.workers(group, layout).start)..self.nodes(group, layout).end
    }

    /// The workers of a group without phantoms.
    pub(super) fn real_workers(&self, group: u32, layout: &Layout) -> Range<u32> {
        if self.config.phantom_reserved { self.nodes(group, layout) } else { self.workers(group, layout) }
    }

    /// Number of reserved workers of a group, without phantoms.
    pub(super) fn reserved(&self, group: u32, layout: &Layout) -> u32 {
        let workers = self.real_workers(group, layout).len() as u32;
        let share = (self.config.reserved * f64::from(workers)).round() as u32;
        share.max(u32::from(self.config.reserved > 0.0)).min(workers.saturating_sub(1))
    }

    /// The first reserved core of a group; all cores after it in the group are reserved as well.
    pub(super) fn first_reserved(&self, group: u32, layout: &Layout) -> u32 {
        let reserved = self.reserved(group, layout);
        if self.config.phantom_reserved {
            first_core(self.nodes(group, layout).end - reserved, layout)
        } else {
            self.workers(group, layout).end - reserved
        }
    }

    /// The reserved workers with which the master of a group begins.
    pub(super) fn listed_reserved(&self, group: u32, layout: &Layout) -> Vec<u32> {
        if self.config.phantom_reserved {
            return self.listed_phantoms(group, layout);
        }
        (self.first_reserved(group, layout)..self.workers(group, layout).end).collect()
    }

    /// The master of a group.
    pub(super) fn master(&self, group: u32, layout: &Layout) -> ActorId {
        layout.auxiliary(group)
    }

    /// The standby of a group.
    pub(super) fn standby(&self, group: u32, layout: &Layout) -> Option<ActorId> {
        self.config.standby.then(|| layout.auxiliary(self.count + group))
    }

    /// The group of the master or standby with this number.
    pub(super) const fn group_of_master(&self, number: u32) -> u32 {
        if number < self.count { number } else { number - self.count }
    }

    /// Number of masters and standbys.
    pub(super) const fn masters(&self) -> u32 {
        if self.config.standby { 2 * self.count } else { self.count }
    }

    /// The group of a node, master or standby; `None` for other actors.
    pub(super) fn group_of(&self, actor: ActorId, layout: &Layout) -> Option<u32> {
        match layout.role(actor) {
            Role::Auxiliary(master) => Some(self.group_of_master(master)),
            Role::Node(node) => Some(self.group_of_node(node, layout)),
            _ => None,
        }
    }
}

/// The number of a node's first core among all cores; after the last node the number of all cores.
pub(super) fn first_core(node: u32, layout: &Layout) -> u32 {
    if node < layout.nodes() { layout.core_index(layout.worker(node, 0)) } else { layout.workers() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(config: &Pigeon, layout: &Layout) -> Vec<(Range<u32>, Range<u32>)> {
        let groups = WorkerGroups::new(config, layout);
        let of = |group| {
            let nodes = groups.nodes(group, layout);
            assert!(nodes.clone().all(|node| groups.group_of_node(node, layout) == group));
            (nodes, groups.first_reserved(group, layout)..groups.workers(group, layout).end)
        };
        (0..groups.count).map(of).collect()
    }

    #[test]
    fn groups_hold_consecutive_nodes_and_reserve_their_last_workers() {
        let config = |group, reserved| Pigeon { group, reserved, ..Pigeon::default() };
        let single = Layout::new(1, 0, [1; 10]);
        assert_eq!(groups(&config(4, 0.25), &single), [(0..4, 3..4), (4..8, 7..8), (8..10, 9..10)]);
        assert_eq!(
            groups(&config(99, 0.02), &single),
            [(0..10, 9..10)],
            "a single group reserves at least one worker"
        );
        assert_eq!(groups(&config(5, 0.0), &single), [(0..5, 5..5), (5..10, 10..10)]);
        assert_eq!(
            groups(&config(1, 0.9), &single)[9],
            (9..10, 10..10),
            "at least one worker is not reserved"
        );
        let double = Layout::new(1, 0, [2; 5]);
        assert_eq!(groups(&config(3, 0.5), &double), [(0..2, 2..4), (2..3, 5..6), (3..5, 8..10)]);
        let mixed = Layout::new(1, 0, [4, 1, 3, 2]);
        assert_eq!(groups(&config(4, 0.2), &mixed), [(0..1, 3..4), (1..3, 7..8), (3..4, 9..10)]);
    }

    #[test]
    fn a_master_on_a_worker_occupies_the_first_worker_of_its_group() {
        let config = Pigeon { group: 3, master_on_worker: true, ..Pigeon::default() };
        let layout = Layout::new(1, 0, [1, 2, 2, 1]);
        let groups = WorkerGroups::new(&config, &layout);
        assert_eq!([0, 1].map(|group| groups.workers(group, &layout)), [1..3, 4..6]);
        assert_eq!([0, 1].map(|group| groups.worker_nodes(group, &layout)), [1..2, 2..4]);
    }
}
