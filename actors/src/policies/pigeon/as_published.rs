//! Phantom reserved workers, which reproduce a defect of the authors' simulator: the list of reserved workers is not
//! cleared between groups, so a master begins with the reserved workers of all groups up to its own, and a reserved
//! worker runs one task at once for each master that lists it.
//!
//! Elsewhere phantoms appear where nodes and cores are counted (in `groups`: `position`, `first_node`,
//! `real_workers`, `first_reserved`; `Pigeon::layout`), where a master tracks the copies that it gave to workers of
//! other groups (in `workers`: `lent`, `is_reserved`), and where a node reports an idle core to the master of another
//! group (`PigeonNode::is_foreign`).

use super::groups::{WorkerGroups, first_core};
use crate::layout::Layout;

/// Limit on the cores of a run with phantom reserved workers; the cores grow with the square of the number of groups.
const MOST_PHANTOM_CORES: u64 = 1 << 25;

impl WorkerGroups {
    /// The phantom reserved workers with which a master begins: one core of each reserved worker of its group and of
    /// the groups before it.
    pub(super) fn listed_phantoms(&self, group: u32, layout: &Layout) -> Vec<u32> {
        let listed = |owner| {
            let end = self.nodes(owner, layout).end;
            let nodes = end - self.reserved(owner, layout)..end;
            nodes.map(move |node| first_core(node, layout) + group - owner)
        };
        (0..=group).flat_map(listed).collect()
    }

    /// Whether a master may give tasks to the workers of a group.
    pub(super) const fn lists(&self, master: u32, group: u32) -> bool {
        group == master || (self.config.phantom_reserved && group < master)
    }

    /// Number of cores of each node in a run with phantom reserved workers: one for each master that lists it.
    pub(super) fn phantom_cores(&self, layout: &Layout) -> Vec<u32> {
        let cores = |node| {
            let group = self.group_of_node(node, layout);
            let first = self.nodes(group, layout).end - self.reserved(group, layout);
            if node >= first { self.count - group } else { 1 }
        };
        (0..layout.nodes()).map(cores).collect()
    }

    /// Checks that a run can have phantom reserved workers.
    pub(super) fn check_phantom(&self, layout: &Layout) -> Result<(), String> {
        if (0..layout.nodes()).any(|node| layout.cores(node) > 1) {
            return Err(
                "phantom_reserved: needs nodes of one core, as in the authors' simulator; set cluster.cores = 1".into(),
            );
        }
        if self.config.master_on_worker {
            return Err("phantom_reserved: the authors' simulator has no master_on_worker; remove one".into());
        }
        let cores: u64 = self.phantom_cores(layout).into_iter().map(u64::from).sum();
        if cores > MOST_PHANTOM_CORES {
            return Err(format!(
                "phantom_reserved: {} masters list {cores} workers, more than {MOST_PHANTOM_CORES}; raise group, or lower \
                 reserved",
                self.count
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Pigeon;
    use super::*;

    /// Each of two groups has two workers, one of them reserved. The second master lists both reserved workers.
    #[test]
    fn phantom_reserved_workers_are_listed_by_all_later_masters() {
        let config = Pigeon { group: 2, reserved: 0.5, phantom_reserved: true, ..Pigeon::default() };
        let cluster = Layout::new(1, 0, [1; 4]);
        let shape = WorkerGroups::new(&config, &cluster);
        let cores = shape.phantom_cores(&cluster);
        assert_eq!(cores, [1, 2, 1, 1]);
        let layout = Layout::new(1, 2, cores);
        let groups = WorkerGroups::new(&config, &layout);
        assert_eq!([0, 1].map(|group| groups.listed_reserved(group, &layout)), [vec![1], vec![2, 4]]);
        assert_eq!([groups.first_reserved(0, &layout), groups.first_reserved(1, &layout)], [1, 4]);
    }
}
