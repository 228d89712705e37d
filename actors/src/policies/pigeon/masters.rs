//! The master of a group as other actors know it: the first master if it is up, else the standby, else the worker that
//! has declared itself master and has the best claim (section 6.1 of the paper).

use std::cmp::Reverse;

use super::groups::WorkerGroups;
use crate::base::{ActorId, Time};
use crate::layout::Layout;

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
    fn beats(&self, other: &Self) -> bool {
        let rank = |claim: &Self| (claim.term, Reverse((claim.at, claim.node)));
        rank(self) > rank(other)
    }
}

/// The masters of a group as an actor knows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupMasters {
    /// The first master and the standby.
    seats: [Option<ActorId>; 2],
    /// Whether the first master and the standby are up.
    up: [bool; 2],
    /// The best claim of a worker, while neither is up.
    claim: Option<MasterClaim>,
}

impl GroupMasters {
    /// The masters of a group at the beginning, when all are up.
    pub(super) fn new(groups: &WorkerGroups, group: u32, layout: &Layout) -> Self {
        let seats = [Some(groups.master(group, layout)), groups.standby(group, layout)];
        Self { seats, up: seats.map(|seat| seat.is_some()), claim: None }
    }

    /// The current master, if there is one.
    pub(super) fn current(&self) -> Option<ActorId> {
        match self.up {
            [true, _] => self.seats[0],
            [_, true] => self.seats[1],
            _ => self.declared(),
        }
    }

    /// The worker that declared itself master, while it is the master.
    pub(super) fn declared(&self) -> Option<ActorId> {
        self.claim.map(|claim| claim.node)
    }

    /// Records that an actor crashed or is back. Returns whether the actor is a master of the group. The return of the
    /// first master or of the standby voids claims.
    pub(super) fn record(&mut self, actor: ActorId, up: bool) -> bool {
        let seat = self.seats.iter().position(|seat| *seat == Some(actor));
        if let Some(seat) = seat {
            self.up[seat] = up;
        }
        let claims = self.declared() == Some(actor);
        if claims || (seat.is_some() && up) {
            self.claim = None;
        }
        claims || seat.is_some()
    }

    /// Records a worker's claim to be master. Returns whether the claim is new; `None` if another actor is the master.
    /// While the first master or the standby is up, claims are void, because they were made before its return.
    pub(super) fn accept(&mut self, new: MasterClaim) -> Option<bool> {
        let beats = |old: MasterClaim| {
            if old.node == new.node { new.term >= old.term } else { new.beats(&old) }
        };
        let is_accepted = self.up == [false; 2] && self.claim.is_none_or(beats);
        is_accepted.then(|| self.claim.replace(new) != Some(new))
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Pigeon;
    use super::*;

    #[test]
    fn the_earliest_claim_of_the_latest_election_wins() {
        let claim = |term, at, node| MasterClaim { term, at: Time(at), node: ActorId(node) };
        let order = [claim(1, 5, 9), claim(1, 5, 7), claim(1, 3, 8), claim(2, 9, 9)];
        for (i, worse) in order.iter().enumerate() {
            assert!(order[i + 1..].iter().all(|better| better.beats(worse) && !worse.beats(better)));
            assert!(!worse.beats(worse));
        }
        let layout = Layout::new(1, 2, [1; 40]);
        let [first, standby] = [layout.auxiliary(0), layout.auxiliary(1)];
        let groups = WorkerGroups::new(&Pigeon { standby: true, ..Pigeon::default() }, &layout);
        let mut masters = GroupMasters::new(&groups, 0, &layout);
        assert_eq!(masters.current(), Some(first));
        masters.record(first, false);
        assert_eq!(masters.current(), Some(standby));
        masters.record(standby, false);
        assert_eq!(masters.current(), None);
        assert_eq!(
            [1, 0, 2, 2].map(|i| masters.accept(order[i])),
            [Some(true), None, Some(true), Some(false)]
        );
        assert_eq!(masters.current(), Some(ActorId(8)));
        masters.record(first, true);
        assert_eq!((masters.current(), masters.claim), (Some(first), None));
        assert_eq!(masters.accept(order[3]), None, "the first master is back");
        masters.record(first, false);
        assert_eq!(masters.current(), None, "the claim stays void when the first master is down again");
    }
}
