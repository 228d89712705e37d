//! Groups of workers: their nodes, their reserved workers, and their masters.

use std::ops::Range;

use super::config::Pigeon;
use crate::base::{ActorId, Time};
use crate::layout::Layout;

/// The groups of a layout. A node belongs to the group in which its first core falls, with cores counted in the order
/// of nodes. With phantom reserved workers each node counts as one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerGroups {
    size: u32,
    count: u32,
    reserved: f64,
    phantom: bool,
    master_on_worker: bool,
    standby: bool,
}

impl WorkerGroups {
    pub(super) fn new(config: &Pigeon, layout: &Layout) -> Self {
        let Pigeon { reserved, phantom_reserved: phantom, master_on_worker, standby, .. } = *config;
        let size = config.group.max(1);
        let mut groups = Self { size, count: 0, reserved, phantom, master_on_worker, standby };
        groups.count = layout.nodes().checked_sub(1).map_or(0, |last| groups.of(last, layout) + 1);
        groups
    }

    /// Number of groups.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The group of a node.
    pub(super) fn of(&self, node: u32, layout: &Layout) -> u32 {
        self.position(node, layout) / self.size
    }

    /// The number of a node's first core, where phantom cores do not count.
    fn position(&self, node: u32, layout: &Layout) -> u32 {
        if self.phantom { node } else { layout.core_index(layout.worker(node, 0)) }
    }

    /// The nodes of a group.
    pub(super) fn nodes(&self, group: u32, layout: &Layout) -> Range<u32> {
        self.first_node(group, layout)..self.first_node(group + 1, layout)
    }

    /// The first node whose first core is not before the first core of a group.
    fn first_node(&self, group: u32, layout: &Layout) -> u32 {
        let first = u64::from(group) * u64::from(self.size);
        if self.phantom {
            return first.min(u64::from(layout.nodes())) as u32;
        }
        if first >= u64::from(layout.workers()) {
            return layout.nodes();
        }
        let node = layout.node_of_core(first as u32);
        node + u32::from(u64::from(self.position(node, layout)) < first)
    }

    /// The cores of a group among all cores of the run.
    pub(super) fn cores(&self, group: u32, layout: &Layout) -> Range<u32> {
        let Range { start, end } = self.nodes(group, layout);
        let at = |node| {
            if node < layout.nodes() { layout.core_index(layout.worker(node, 0)) } else { layout.workers() }
        };
        at(start)..at(end)
    }

    /// The cores of a group that tasks may use: all except the core that the master occupies.
    pub(super) fn workers(&self, group: u32, layout: &Layout) -> Range<u32> {
        let Range { start, end } = self.cores(group, layout);
        start + u32::from(self.master_on_worker)..end
    }

    /// The nodes of a group that have workers.
    pub(super) fn worker_nodes(&self, group: u32, layout: &Layout) -> Range<u32> {
        let (nodes, workers) = (self.nodes(group, layout), self.workers(group, layout));
        if workers.is_empty() { nodes.end..nodes.end } else { layout.node_of_core(workers.start)..nodes.end }
    }

    /// Number of reserved workers of a group, without phantoms.
    fn reserved(&self, group: u32, layout: &Layout) -> u32 {
        let workers = if self.phantom { self.nodes(group, layout) } else { self.workers(group, layout) };
        let workers = workers.end.saturating_sub(workers.start);
        let share = (self.reserved * f64::from(workers)).round() as u32;
        share.max(u32::from(self.reserved > 0.0)).min(workers.saturating_sub(1))
    }

    /// The first reserved core of a group; all cores after it in the group are reserved as well.
    pub(super) fn first_reserved(&self, group: u32, layout: &Layout) -> u32 {
        if !self.phantom {
            return self.cores(group, layout).end - self.reserved(group, layout);
        }
        let node = self.nodes(group, layout).end - self.reserved(group, layout);
        if node < layout.nodes() { layout.core_index(layout.worker(node, 0)) } else { layout.workers() }
    }

    /// The reserved workers with which a master begins: those of its group, and with phantoms one core of each reserved
    /// worker of the groups before it.
    pub(super) fn reserved_cores(&self, group: u32, layout: &Layout, out: &mut Vec<u32>) {
        if !self.phantom {
            out.extend(self.first_reserved(group, layout)..self.cores(group, layout).end);
            return;
        }
        for owner in 0..=group {
            let nodes = self.nodes(owner, layout);
            let reserved = nodes.end - self.reserved(owner, layout)..nodes.end;
            out.extend(reserved.map(|node| layout.core_index(layout.worker(node, group - owner))));
        }
    }

    /// Number of cores of a node in a run with phantom reserved workers: one for each master that lists it.
    pub(super) fn phantom_cores(&self, node: u32, layout: &Layout) -> u32 {
        let group = self.of(node, layout);
        let first = self.nodes(group, layout).end - self.reserved(group, layout);
        if node >= first { self.count - group } else { 1 }
    }

    /// The master of a group.
    pub(super) fn master(&self, group: u32, layout: &Layout) -> ActorId {
        layout.auxiliary(group)
    }

    /// The standby of a group.
    pub(super) fn standby(&self, group: u32, layout: &Layout) -> Option<ActorId> {
        self.standby.then(|| layout.auxiliary(self.count + group))
    }

    /// The group of a master or standby, and whether the actor is a standby.
    pub(super) const fn group_of_master(&self, number: u32) -> (u32, bool) {
        if number < self.count { (number, false) } else { (number - self.count, true) }
    }

    /// Number of masters and standbys.
    pub(super) const fn masters(&self) -> u32 {
        if self.standby { 2 * self.count } else { self.count }
    }
}

// The master of a group: the first master if it is up, else the standby, else the worker with the best claim.

/// The claim of a worker to be master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MasterClaim {
    /// The number of the election.
    pub(super) term: u32,
    pub(super) at: Time,
    pub(super) node: ActorId,
}

impl MasterClaim {
    /// Whether this claim takes precedence: a later election, else the earliest claim, else the lowest number.
    pub(super) fn beats(&self, other: &Self) -> bool {
        (other.term, self.at, self.node) < (self.term, other.at, other.node)
    }
}

/// The masters of a group as an actor knows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupMasters {
    first: ActorId,
    standby: Option<ActorId>,
    first_up: bool,
    standby_up: bool,
    claim: Option<MasterClaim>,
}

impl GroupMasters {
    /// The masters of a group at the beginning, when both are up.
    pub(super) const fn new(first: ActorId, standby: Option<ActorId>) -> Self {
        Self { first, standby, first_up: true, standby_up: standby.is_some(), claim: None }
    }

    /// The current master, if there is one.
    pub(super) fn current(&self) -> Option<ActorId> {
        if self.first_up {
            return Some(self.first);
        }
        if self.standby_up { self.standby } else { self.claim.map(|claim| claim.node) }
    }

    /// The worker that declared itself master, while it is the master.
    pub(super) fn declared(&self) -> Option<ActorId> {
        if self.first_up || self.standby_up { None } else { self.current() }
    }

    /// Records that an actor crashed or is back. Returns whether the actor is a master of the group.
    pub(super) fn set(&mut self, actor: ActorId, up: bool) -> bool {
        if actor == self.first {
            self.first_up = up;
        } else if Some(actor) == self.standby {
            self.standby_up = up;
        } else {
            let claims = self.claim.is_some_and(|claim| claim.node == actor);
            self.claim = self.claim.filter(|_| !claims);
            return claims;
        }
        if up {
            self.claim = None;
        }
        true
    }

    /// Records a worker's claim to be master. Returns whether that worker is the master now. While the first master or
    /// the standby is up, claims are void, because they were made before its return.
    pub(super) fn accept(&mut self, new: MasterClaim) -> bool {
        let none_up = !self.first_up && !self.standby_up;
        let better = none_up
            && self
                .claim
                .is_none_or(|old| if old.node == new.node { new.term >= old.term } else { new.beats(&old) });
        if better {
            self.claim = Some(new);
        }
        better
    }

    /// Whether a claim is in force.
    pub(super) fn has(&self, claim: MasterClaim) -> bool {
        self.declared().is_some() && self.claim == Some(claim)
    }

    /// Voids the claim of a worker that cannot be reached.
    pub(super) fn give_up(&mut self, node: ActorId) {
        self.claim = self.claim.filter(|claim| claim.node != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(config: &Pigeon, layout: &Layout) -> Vec<(Range<u32>, Range<u32>)> {
        let groups = WorkerGroups::new(config, layout);
        let of = |group| {
            let nodes = groups.nodes(group, layout);
            assert!(nodes.clone().all(|node| groups.of(node, layout) == group));
            (nodes, groups.first_reserved(group, layout)..groups.cores(group, layout).end)
        };
        (0..groups.count()).map(of).collect()
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
    fn a_master_takes_the_place_of_the_first_worker() {
        let config = Pigeon { group: 3, master_on_worker: true, ..Pigeon::default() };
        let layout = Layout::new(1, 0, [1, 2, 2, 1]);
        let groups = WorkerGroups::new(&config, &layout);
        assert_eq!([0, 1].map(|group| groups.workers(group, &layout)), [1..3, 4..6]);
        assert_eq!([0, 1].map(|group| groups.worker_nodes(group, &layout)), [1..2, 2..4]);
    }

    /// Each of two groups has two workers, one of them reserved. The second master lists both reserved workers.
    #[test]
    fn phantom_reserved_workers_are_listed_by_all_later_masters() {
        let config = Pigeon { group: 2, reserved: 0.5, phantom_reserved: true, ..Pigeon::default() };
        let cluster = Layout::new(1, 0, [1; 4]);
        let shape = WorkerGroups::new(&config, &cluster);
        let cores: Vec<_> = (0..4).map(|node| shape.phantom_cores(node, &cluster)).collect();
        assert_eq!(cores, [1, 2, 1, 1]);
        let layout = Layout::new(1, 2, cores);
        let groups = WorkerGroups::new(&config, &layout);
        let listed = |group| {
            let mut out = Vec::new();
            groups.reserved_cores(group, &layout, &mut out);
            out
        };
        assert_eq!((listed(0), listed(1)), (vec![1], vec![2, 4]));
        assert_eq!([groups.first_reserved(0, &layout), groups.first_reserved(1, &layout)], [1, 4]);
    }
}

#[cfg(test)]
mod claim_tests {
    use super::*;

    #[test]
    fn the_earliest_claim_of_the_latest_election_wins() {
        let claim = |term, at, node| MasterClaim { term, at: Time(at), node: ActorId(node) };
        let order = [claim(1, 5, 9), claim(1, 5, 7), claim(1, 3, 8), claim(2, 9, 9)];
        for (i, worse) in order.iter().enumerate() {
            assert!(order[i + 1..].iter().all(|better| better.beats(worse) && !worse.beats(better)));
            assert!(!worse.beats(worse));
        }
        let [first, standby] = [ActorId(1), ActorId(2)];
        let mut masters = GroupMasters::new(first, Some(standby));
        assert_eq!(masters.current(), Some(first));
        masters.set(first, false);
        assert_eq!(masters.current(), Some(standby));
        masters.set(standby, false);
        assert_eq!(masters.current(), None);
        assert!(masters.accept(order[1]) && !masters.accept(order[0]) && masters.accept(order[2]));
        assert_eq!(masters.current(), Some(ActorId(8)));
        assert!(masters.has(order[2]) && !masters.has(order[1]));
        masters.set(first, true);
        assert_eq!((masters.current(), masters.claim), (Some(first), None));
        assert!(!masters.accept(order[3]), "the first master is back");
        masters.set(first, false);
        assert_eq!(masters.current(), None, "the claim stays void when the first master is down again");
    }
}
