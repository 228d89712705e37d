//! The master of a group: the first one if it is up, else the standby, else the worker with the best claim.

use crate::base::{ActorId, Time};

/// The claim of a worker to be master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MasterClaim {
    /// The number of the election.
    pub(super) term: u32,
    pub(super) at: Time,
    pub(super) node: ActorId,
}

impl MasterClaim {
    /// Whether it takes precedence: a later election, else the earliest claim, else the lowest number.
    pub(super) fn beats(&self, other: &Self) -> bool {
        (other.term, self.at, self.node) < (self.term, other.at, other.node)
    }
}

/// What an actor believes about the masters of a group.
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

    /// The master, if there is one.
    pub(super) fn current(&self) -> Option<ActorId> {
        if self.first_up {
            return Some(self.first);
        }
        if self.standby_up { self.standby } else { self.claim.map(|claim| claim.node) }
    }

    /// The worker that declared itself master, while it is.
    pub(super) fn declared(&self) -> Option<ActorId> {
        if self.first_up || self.standby_up { None } else { self.current() }
    }

    /// An actor crashed or is back; returns whether it is one of these.
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

    /// A worker claims to be master; returns whether it is from now on, or was. While a first master or a standby is up
    /// no worker is: the claim is from before it was back.
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

    /// Whether a claim is the one in force.
    pub(super) fn has(&self, claim: MasterClaim) -> bool {
        self.declared().is_some() && self.claim == Some(claim)
    }

    /// The claim of a worker that cannot be reached is void.
    pub(super) fn give_up(&mut self, node: ActorId) {
        self.claim = self.claim.filter(|claim| claim.node != node);
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(masters.current(), None, "and when it is down again that claim is void");
    }
}
