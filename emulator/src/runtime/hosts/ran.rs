//! A unit on the hosts, as the controller sees it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use volary_actors::base::{Span, Time};

use super::HostsError;
use super::protocol::Account;
use super::sense::{FAR, possible};
use crate::parcel::Observation;
use crate::runtime::UnitError;
use crate::runtime::real::keeper::{Keeper, Over};
use crate::runtime::world::World;

/// Observations that wait at most until every host has come as far; all of them take some hundred megabytes.
const WAITING: usize = 16_000_000;

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
    pub(super) begun: Instant,
    /// Emulated seconds per real second.
    pub(super) speed: f64,
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
    /// Takes in a report of a host, if what it says can be. Otherwise says why, and which host is to blame if it
    /// is not the one that reports.
    pub(super) fn report(
        &mut self,
        host: usize,
        notes: Vec<Observation>,
        mark: Time,
    ) -> Result<(), (Option<usize>, String)> {
        let now = Time::ZERO + Span::from_secs_f64(self.begun.elapsed().as_secs_f64() * self.speed);
        let can_be = |note: &Observation| note.at <= now + FAR && possible(self.world, note);
        if mark > now + FAR || !notes.iter().all(can_be) {
            return Err((None, "it reports what cannot be".to_owned()));
        }
        self.keeper.report(host, notes, mark);
        if self.keeper.waiting() > WAITING {
            let why = format!(
                "it has reported nothing since {:.3} s of the run, and more than {WAITING} observations of the \
                 others wait for it",
                self.keeper.complete().as_secs_f64()
            );
            return Err((Some(self.keeper.slowest()), why));
        }
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

/// A number that no other session has: the time, mixed with the process.
pub(super) fn run_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64) << 16 ^ u64::from(std::process::id()) << 8
}
