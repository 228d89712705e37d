//! A unit on the hosts, as the controller sees it.

use volary_actors::base::Time;

use super::HostsError;
use super::protocol::Account;
use super::sense::possible;
use crate::parcel::Observation;
use crate::runtime::UnitError;
use crate::runtime::real::keeper::{Keeper, Over};
use crate::runtime::world::World;

/// A unit on its way, and when it is over.
pub(super) struct Ran<'a> {
    pub(super) world: &'a World,
    pub(super) keeper: Keeper<'a>,
    pub(super) over: Over,
    /// The last words of the hosts, by shard.
    pub(super) last: Vec<Option<Last>>,
    /// Why it could not go on.
    pub(super) broken: Option<String>,
    /// The host that is said to be why, if only others said so.
    pub(super) accused: Option<usize>,
}

/// The last word of a host on a unit.
pub(super) enum Last {
    Account(Box<Account>),
    /// It could not go on, but is ready for the next one.
    Refused,
}

impl Last {
    pub(super) fn account(self) -> Option<Box<Account>> {
        match self {
            Self::Account(account) => Some(account),
            Self::Refused => None,
        }
    }
}

impl Ran<'_> {
    /// Takes in a report of a host, if what it says can be.
    pub(super) fn report(&mut self, host: usize, notes: Vec<Observation>, mark: Time) -> Result<(), String> {
        if !notes.iter().all(|note| possible(self.world, note)) {
            return Err("it reports what cannot be".to_owned());
        }
        self.keeper.report(host, notes, mark);
        Ok(())
    }

    /// A host said why it cannot go on: that is worth more than what others say of it.
    pub(super) fn refused(&mut self, host: usize, name: &str, why: &str) {
        self.last[host] = Some(Last::Refused);
        if self.broken.is_none() || self.accused == Some(host) {
            (self.broken, self.accused) = (Some(format!("host {name}: {why}")), None);
        }
    }
}

/// Why not every host has said what it should.
pub(super) enum Unsaid {
    Interrupted,
    /// By that host, and why.
    Host(String, String),
}

impl From<Unsaid> for HostsError {
    fn from(unsaid: Unsaid) -> Self {
        match unsaid {
            Unsaid::Interrupted => Self::Interrupted,
            Unsaid::Host(host, why) => Self::Host { host, why },
        }
    }
}

impl From<Unsaid> for UnitError {
    fn from(unsaid: Unsaid) -> Self {
        match unsaid {
            Unsaid::Interrupted => Self::Interrupted,
            Unsaid::Host(host, why) => Self::Refused(format!("host {host}: {why}")),
        }
    }
}
